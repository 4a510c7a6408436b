//! What is found before anything is served, and what the operator is told to do.

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::permission;
use platform_discord::{Discord, DiscordSettings};
use platforms::adapter::{Adapter, Finding, Severity};

use crate::bot::{install_tls, settings};

async fn check(settings: DiscordSettings) -> Result<Vec<Finding>, Finding> {
    install_tls();
    Discord::new(settings)
        .expect("usable settings")
        .check()
        .await
}

fn warnings(found: &[Finding]) -> Vec<String> {
    let warnings = found
        .iter()
        .filter(|finding| finding.severity == Severity::Warning);
    warnings.map(ToString::to_string).collect()
}

#[tokio::test]
async fn all_is_well() {
    let fake = FakeDiscord::start().await;
    let mut settings = settings(&fake);
    let anna = fake.person("anna");
    let thread = fake.thread(fake.say(fake.general(), anna, "hi"), "thread");
    settings.channels = vec![fake.general().to_string(), thread.to_string()];
    let found = check(settings).await.unwrap();
    assert_eq!(warnings(&found), Vec::<String>::new());
    assert!(found[0].what.contains("logged in as baton"));
    assert!(
        fake.requests()
            .iter()
            .all(|request| request.method == "GET")
    );
    fake.assert_clean();
}

#[tokio::test]
async fn a_token_that_is_not_known_and_a_discord_out_of_reach() {
    let fake = FakeDiscord::start().await;
    let wrong = DiscordSettings {
        token: "MTA.wrong.token".into(),
        ..settings(&fake)
    };
    let finding = check(wrong).await.unwrap_err();
    assert!(finding.to_string().contains("Bot page"), "{finding}");
    assert_eq!(fake.invalid_requests(), 1, "asked once");
    fake.assert_clean();
}

#[tokio::test]
async fn the_intent_is_looked_for_where_it_is_needed() {
    let fake = FakeDiscord::builder()
        .without_message_content()
        .start()
        .await;
    let finding = check(settings(&fake)).await.unwrap_err();
    assert!(finding.hint.contains("Message Content Intent"), "{finding}");
    let not_needed = DiscordSettings {
        message_content: false,
        ..settings(&fake)
    };
    assert!(check(not_needed).await.is_ok());
    fake.assert_clean();
}

#[tokio::test]
async fn rights_and_places_are_named_one_by_one() {
    let fake = FakeDiscord::start().await;
    let (mute, blind) = (fake.channel("mute"), fake.channel("blind"));
    fake.deny(mute, permission::SEND_MESSAGES | permission::ATTACH_FILES);
    fake.deny(blind, permission::VIEW_CHANNEL);
    let dm = fake.dm(fake.person("anna"));
    let mut settings = settings(&fake);
    settings.guilds.push("5".to_owned());
    settings.channels = [mute, blind, dm]
        .iter()
        .map(ToString::to_string)
        .chain(["7".to_owned()])
        .collect();
    let found = warnings(&check(settings.clone()).await.unwrap());
    let says = |parts: &[&str]| {
        let fits = |line: &&String| parts.iter().all(|part| line.contains(part));
        assert_eq!(
            found.iter().filter(fits).count(),
            1,
            "{parts:?} in {found:#?}"
        );
    };
    says(&["not in the Discord server 5", "oauth2/authorize?client_id="]);
    says(&["#mute", "Send Messages:"]);
    says(&["#mute", "Attach Files"]);
    says(&[&blind.to_string(), "View Channel"]);
    says(&["channel 7 does not exist"]);
    says(&[&dm.to_string(), "belongs to no server"]);
    assert_eq!(found.len(), 6, "{found:#?}");
    settings.guilds = vec!["5".to_owned()];
    settings.channels = vec![mute.to_string()];
    let found = warnings(&check(settings).await.unwrap());
    assert!(
        found
            .iter()
            .any(|line| line.contains("which guilds does not name"))
    );
    fake.assert_clean();
}
