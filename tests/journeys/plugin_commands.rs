//! Slash commands that plugins bring: answered by the plugin within its budget, listed, and never in place of one of ours.

use std::collections::BTreeMap;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::ProfileId;
use gateway_core::message::{Content, Origin, Standing};
use gateway_host::config::{DEFAULT_PROFILE, PluginFile, PluginUse};
use providers::scripted::Act;
use serde_json::json;
use support::{World, target_folder};

/// A gateway with the fixture in this mode.
async fn world(mode: &str) -> World {
    let mut world = World::builder().plan("a").build().await;
    let file = PluginFile {
        file: Some(target_folder().join("examples/libfixture_plugin.so")),
        sha256: None,
    };
    let usage = PluginUse {
        order: 0,
        enabled: true,
        required: false,
        budget_ms: BTreeMap::from([("on_command".to_owned(), 500)]),
        config: json!({ "mode": mode }),
    };
    world.settings.plugins.insert("fixture".into(), file);
    let profile = world
        .settings
        .profiles
        .get_mut(&ProfileId::new(DEFAULT_PROFILE));
    let profile = profile.expect("the default profile");
    profile.plugins.insert("fixture".into(), usage);
    world.restart().await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_answers_its_command_and_help_lists_it() {
    let mut world = world("commands").await;
    let help = world.command("help").await;
    assert!(
        help.contains("/fixture [text]: Says what it was told."),
        "{help}"
    );
    assert!(!help.contains("Tries to take a name."), "{help}");
    assert_eq!(
        world.command("fixture hello there").await,
        "fixture \"hello there\" by ann on chat of default: 0 documents"
    );
    assert_eq!(
        world.command("FIXTURE nothing").await,
        "/fixture has nothing to say."
    );
    // One of ours stays ours.
    assert!(!world.command("status").await.contains("documents"));
    let near = world.command("fixtur").await;
    assert!(near.contains("Did you mean /fixture?"), "{near}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_at_its_command_is_said_and_harms_nothing() {
    let mut world = world("commands").await;
    let silent = "The plugin fixture, which brings /fixture, did not answer. /plugins shows operators how it fares.";
    assert_eq!(world.command("fixture panic").await, silent);
    let again = world.command("fixture hello").await;
    assert!(again.starts_with("fixture \"hello\""), "{again}");
    assert_eq!(world.command("fixture hang").await, silent);
    assert!(
        world
            .command("status")
            .await
            .contains("Turn: none is running.")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_even_say_its_commands_brings_none() {
    let mut world = world("panic in commands").await;
    let said = world.command("fixture hello").await;
    assert!(said.starts_with("There is no command /fixture."), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_discards_waits_no_longer_and_only_operators_may_ask_for_it() {
    let mut world = world("commands").await;
    let refused = Failure::new(FailureKind::RateLimit, FailureScope::Account, "refused");
    world
        .sub("a")
        .play(vec![Act::text("Half."), Act::Fail(refused)]);
    world.say("count the files").await;
    let content = Content::Command {
        name: "fixture-drop".into(),
        args: String::new(),
    };
    let mut inbound = world.inbound(content, Origin::Human);
    inbound.sender.standing = Standing::Member;
    world.gateway().receive(inbound).await;
    let record = world.surface.record();
    let said = record.replies().last().expect("an answer").0;
    assert_eq!(said, "/fixture-drop is for operators only.");
    assert!(
        world
            .command("resume-handoff")
            .await
            .contains("count the files")
    );

    let said = world.command("fixture-drop").await;
    assert!(said.ends_with("1 documents"), "{said}");
    assert_eq!(
        world.command("resume-handoff").await,
        "No saved handoff for this chat."
    );
}
