//! Commands are registered once, in one scope, and written only when they differ.

use gateway_core::command::CommandSpec;
use gateway_core::message::Audience;
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{Fault, NotPossible};
use platform_discord::{CommandScope, Discord, DiscordSettings};
use platforms::adapter::{Adapter, Finding, Severity};
use serde_json::json;

use crate::bot::{install_tls, settings, specs};

const GLOBAL: &str = "/applications/{application_id}/commands";
const OF_GUILD: &str = "/applications/{application_id}/guilds/{guild_id}/commands";

async fn register(
    settings: DiscordSettings,
    specs: &[&CommandSpec],
) -> Result<Vec<Finding>, Finding> {
    install_tls();
    let discord = Discord::new(settings).expect("usable settings");
    discord.check().await.expect("it can serve");
    discord.register(specs).await
}

fn writes(fake: &FakeDiscord) -> Vec<(String, usize)> {
    let writes = fake
        .requests()
        .into_iter()
        .filter(|request| request.method != "GET");
    let named = |request: gateway_fakes::discord::Requested| {
        let count = request.body.as_array().map_or(0, Vec::len);
        (request.template.unwrap_or_default(), count)
    };
    writes.map(named).collect()
}

#[tokio::test]
async fn an_unchanged_start_writes_nothing() {
    let fake = FakeDiscord::start().await;
    let specs = specs();
    let names: usize = specs.iter().map(|spec| 1 + spec.aliases.len()).sum();
    for _ in 0..3 {
        let found = register(settings(&fake), &specs).await.unwrap();
        assert!(
            found
                .iter()
                .all(|finding| finding.severity == Severity::Fine),
            "{found:?}"
        );
    }
    assert_eq!(writes(&fake), [(GLOBAL.to_owned(), names)]);
    assert_eq!(fake.commands(None).len(), names);
    let fewer = &specs[1..];
    register(settings(&fake), fewer).await.unwrap();
    assert_eq!(writes(&fake).len(), 2, "one overwrite for the change");
    assert!(fake.commands(None).len() < names);
    fake.assert_clean();
}

#[tokio::test]
async fn one_scope_has_them_and_the_other_is_emptied_first() {
    let fake = FakeDiscord::start().await;
    let specs = specs();
    let here = DiscordSettings {
        commands: CommandScope::Guilds(vec![fake.guild().to_string()]),
        ..settings(&fake)
    };
    register(here.clone(), &specs).await.unwrap();
    register(here, &specs).await.unwrap();
    let count = fake.commands(Some(fake.guild())).len();
    assert_eq!(writes(&fake), [(OF_GUILD.to_owned(), count)]);
    let everywhere = DiscordSettings {
        guilds: Vec::new(),
        ..settings(&fake)
    };
    register(everywhere, &specs).await.unwrap();
    let moved = [(OF_GUILD.to_owned(), 0), (GLOBAL.to_owned(), count)];
    assert_eq!(writes(&fake)[1..], moved);
    assert!(fake.commands(Some(fake.guild())).is_empty());
    let anna = fake.person("anna");
    let used = fake.slash(fake.general(), anna, "status", &[]);
    assert!(used.is_ok(), "listed once: {used:?}");
    fake.assert_clean();
}

#[tokio::test]
async fn a_prefix_keeps_them_apart_from_others() {
    let fake = FakeDiscord::start().await;
    let prefixed = DiscordSettings {
        command_prefix: "b-".to_owned(),
        ..settings(&fake)
    };
    register(prefixed, &specs()).await.unwrap();
    let anna = fake.person("anna");
    let used = |name| fake.slash(fake.general(), anna, name, &[]);
    assert!(used("b-status").is_ok());
    assert_eq!(used("status"), Err(NotPossible::NoSuchCommand));
    fake.assert_clean();
}

#[tokio::test]
async fn what_the_caps_cut_is_said() {
    let fake = FakeDiscord::start().await;
    let many: Vec<CommandSpec> = (0..99)
        .map(|n| {
            spec(
                &format!("c{n}"),
                &["alias-a", "alias-b"][..usize::from(n == 0) * 2],
            )
        })
        .collect();
    let many: Vec<&CommandSpec> = many.iter().collect();
    let found = register(settings(&fake), &many).await.unwrap();
    let demoted = |finding: &&Finding| finding.what.contains("/alias-b is reached as /c0");
    assert_eq!(found.iter().filter(demoted).count(), 1, "{found:?}");
    assert_eq!(fake.commands(None).len(), 100);
    let beyond: Vec<CommandSpec> = (0..101).map(|n| spec(&format!("c{n}"), &[])).collect();
    let beyond: Vec<&CommandSpec> = beyond.iter().collect();
    let finding = register(settings(&fake), &beyond).await.unwrap_err();
    assert!(finding.what.contains("/c100 does not fit"), "{finding}");
    assert_eq!(fake.commands(None).len(), 100);
    fake.assert_clean();
}

fn spec(name: &str, aliases: &'static [&'static str]) -> CommandSpec {
    CommandSpec {
        name: Box::leak(name.to_owned().into_boxed_str()),
        aliases,
        summary: "A command",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    }
}

#[tokio::test]
async fn a_day_without_creations_left_is_a_warning() {
    let fake = FakeDiscord::start().await;
    let body = json!({ "code": 30034, "message": "Max number of daily application command creates has been reached (200)" });
    fake.plan("PUT", GLOBAL, Fault::Answer { status: 400, body });
    let found = register(settings(&fake), &specs()).await.unwrap();
    let warned = found
        .iter()
        .find(|finding| finding.severity == Severity::Warning);
    assert!(
        warned.is_some_and(|finding| finding.hint.contains("tomorrow")),
        "{found:?}"
    );
    assert_eq!(writes(&fake).len(), 1);
    fake.assert_clean();
}
