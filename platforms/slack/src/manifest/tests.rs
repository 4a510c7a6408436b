use std::collections::BTreeSet;

use slack_morphism::SlackAppManifest;

use super::*;

fn table() -> Vec<&'static CommandSpec> {
    commands::specs().collect()
}

fn made(app: App<'_>) -> Value {
    let (text, _) = manifest(&table(), app).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Slack's rules (its manifest reference), as far as this manifest can break them.
fn broken(manifest: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let length = |at: &str, range: std::ops::RangeInclusive<usize>, broken: &mut Vec<String>| {
        let value = manifest.pointer(at).and_then(Value::as_str);
        let count = value.map(|text| text.chars().count());
        if !count.is_some_and(|count| range.contains(&count)) {
            broken.push(format!("{at}: {count:?} characters"));
        }
    };
    length("/display_information/name", 1..=35, &mut broken);
    length("/display_information/description", 1..=140, &mut broken);
    length("/features/bot_user/display_name", 1..=80, &mut broken);
    let commands = manifest
        .pointer("/features/slash_commands")
        .and_then(Value::as_array)
        .unwrap();
    if !(1..=50).contains(&commands.len()) {
        broken.push(format!("{} commands", commands.len()));
    }
    for (at, command) in commands.iter().enumerate() {
        length(
            &format!("/features/slash_commands/{at}/command"),
            2..=32,
            &mut broken,
        );
        length(
            &format!("/features/slash_commands/{at}/description"),
            1..=2_000,
            &mut broken,
        );
        if command.get("usage_hint").is_some() {
            length(
                &format!("/features/slash_commands/{at}/usage_hint"),
                1..=1_000,
                &mut broken,
            );
        }
    }
    let names: BTreeSet<&str> = commands
        .iter()
        .map(|one| one["command"].as_str().unwrap())
        .collect();
    if names.len() != commands.len() || !names.iter().all(|name| name.starts_with('/')) {
        broken.push("names of commands".to_owned());
    }
    if names.contains("/status") || names.contains("/remind") {
        broken.push("a command of Slack's own".to_owned());
    }
    let bot = manifest
        .pointer("/features/bot_user/display_name")
        .and_then(Value::as_str)
        .unwrap();
    if !bot
        .chars()
        .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.'))
    {
        broken.push(format!("the bot's name {bot}"));
    }
    for (at, most) in [
        ("/oauth_config/scopes/bot", 255),
        ("/settings/event_subscriptions/bot_events", 100),
    ] {
        let list = manifest.pointer(at).and_then(Value::as_array).unwrap();
        if list.len() > most {
            broken.push(at.to_owned());
        }
    }
    broken
}

#[test]
fn the_manifest_keeps_slacks_rules_and_others_read_it() {
    let long = "A name that is much longer than thirty-five characters";
    for app in [
        App::default(),
        App {
            name: long,
            prefix: "b-",
        },
        App {
            name: "✓",
            prefix: "",
        },
    ] {
        let manifest = made(app);
        assert_eq!(broken(&manifest), Vec::<String>::new(), "{app:?}");
        let read: SlackAppManifest = serde_json::from_value(manifest.clone()).unwrap();
        let settings = read.settings.unwrap();
        assert_eq!(settings.socket_mode_enabled, Some(true));
        assert!(settings.interactivity.unwrap().is_enabled);
        let listed = read.oauth_config.unwrap().scopes.unwrap().bot.unwrap();
        assert_eq!(listed.len(), SCOPES.len());
    }
}

#[test]
fn the_rules_are_rules() {
    let mut manifest = made(App::default());
    manifest["display_information"]["name"] = json!("x".repeat(36));
    manifest["features"]["slash_commands"][0]["command"] = json!("no-slash");
    manifest["features"]["slash_commands"][1]["command"] = json!("/status");
    assert_eq!(broken(&manifest).len(), 3);
}

#[test]
fn the_manifest_of_today() {
    let (text, fitted) = manifest(&table(), App::default()).unwrap();
    assert_eq!(fitted.demoted.len(), 1, "/status is Slack's own");
    insta::assert_snapshot!(text);
}

#[test]
fn the_operator_hears_that_commands_stand_in_the_manifest() {
    let findings = registered(&table(), "").unwrap();
    insta::assert_snapshot!(findings[1], @"Slack: /status is reached as /baton status (the platform has its own).");
    let bad = CommandSpec {
        name: "Bad Name",
        ..*table()[0]
    };
    let refused = registered(&[&bad], "").unwrap_err();
    assert_eq!(refused.severity, Severity::Fatal);
    assert!(refused.what.contains("/Bad Name"), "{refused}");
}
