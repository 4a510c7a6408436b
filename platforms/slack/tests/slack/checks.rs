//! What the look at start finds, and that it stops what cannot serve.

use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN, Fault};
use platform_slack::{SCOPES, Slack, SlackSettings};
use platforms::adapter::{Adapter, Finding, Severity};

use crate::support::settings;

async fn check(settings: SlackSettings) -> Result<Vec<Finding>, Finding> {
    Slack::new(settings).unwrap().check().await
}

fn said(findings: &[Finding]) -> Vec<String> {
    let line = |one: &Finding| format!("{:?}: {one}", one.severity);
    findings.iter().map(line).collect()
}

#[tokio::test]
async fn all_is_well_and_it_says_who_it_is() {
    let fake = FakeSlack::start().await;
    let mut settings = settings(&fake);
    settings.channels = vec![fake.general()];
    settings.guilds = vec!["T0BATON01".to_owned()];
    let findings = check(settings).await.unwrap();
    assert_eq!(
        said(&findings),
        ["Fine: Slack: @baton (U0BATON01) in Workshop (T0BATON01)."]
    );
    fake.assert_clean();
}

#[tokio::test]
async fn every_missing_scope_is_named_with_its_reason() {
    for scope in SCOPES {
        let fake = FakeSlack::builder().without_scope(scope.name).start().await;
        let found = check(settings(&fake)).await;
        let (severity, finding) = match (scope.essential, found) {
            (true, Err(finding)) => (Severity::Fatal, finding),
            (false, Ok(mut findings)) => (Severity::Warning, findings.remove(1)),
            (_, other) => panic!("{}: {other:?}", scope.name),
        };
        assert_eq!(finding.severity, severity, "{}", scope.name);
        let what = format!(
            "lacks the scope {}, needed to {}.",
            scope.name, scope.reason
        );
        assert!(
            finding.what.contains(&what) && finding.hint.contains("reinstall"),
            "{finding}"
        );
        fake.assert_clean();
    }
}

#[tokio::test]
async fn tokens_of_the_wrong_kind_are_told_before_slack_is_asked() {
    let fake = FakeSlack::start().await;
    let rows = [
        (
            APP_TOKEN,
            APP_TOKEN,
            "bot token begins with xoxb-; the configured one is an app-level token",
        ),
        (
            BOT_TOKEN,
            BOT_TOKEN,
            "app token begins with xapp-; the configured one is a bot token",
        ),
        (APP_TOKEN, "xoxp-1", "is a user's token"),
        (APP_TOKEN, "", "is empty"),
        ("secret", BOT_TOKEN, "does not look like one of Slack's"),
    ];
    for (app, bot, want) in rows {
        let settings = SlackSettings {
            api_url: Some(fake.api()),
            ..SlackSettings::new(app, bot)
        };
        let finding = check(settings).await.unwrap_err();
        assert!(
            finding.what.contains(want) && finding.severity == Severity::Fatal,
            "{finding}"
        );
        assert!(!finding.to_string().contains("secret"), "{finding}");
    }
    assert!(fake.requests().is_empty());
    fake.assert_clean();
}

#[tokio::test]
async fn what_slack_refuses_stops_it_with_a_hint() {
    let fake = FakeSlack::start().await;
    let mut wrong = settings(&fake);
    wrong.bot_token = "xoxb-wrong".into();
    insta::assert_snapshot!(check(wrong).await.unwrap_err(), @"Slack refused the bot token at auth.test: invalid_auth. The token is wrong or was revoked; copy it again from the app's settings.");
    let mut wrong = settings(&fake);
    wrong.app_token = "xapp-wrong".into();
    insta::assert_snapshot!(check(wrong).await.unwrap_err(), @"Slack refused the app token at apps.connections.open: invalid_auth. The token is wrong or was revoked; copy it again from the app's settings.");
    fake.plan("apps.connections.open", Fault::Error("missing_scope"));
    let finding = check(settings(&fake)).await.unwrap_err();
    assert!(finding.hint.contains("connections:write"), "{finding}");
    fake.plan("auth.test", Fault::ServerError);
    insta::assert_snapshot!(check(settings(&fake)).await.unwrap_err(), @"Slack does not answer as it should: auth.test: Slack answered 500 Internal Server Error. Check the network, and api_url if it is set.");
    fake.assert_clean();
    let nobody = SlackSettings {
        // Port 1 of loopback: nothing listens there.
        api_url: Some("http://127.0.0.1:1/api".to_owned()),
        ..SlackSettings::new(APP_TOKEN, BOT_TOKEN)
    };
    let finding = check(nobody).await.unwrap_err();
    assert!(
        finding.what.contains("auth.test") && finding.severity == Severity::Fatal,
        "{finding}"
    );
    let no_url = SlackSettings {
        api_url: Some("slack.com/api".to_owned()),
        ..SlackSettings::new(APP_TOKEN, BOT_TOKEN)
    };
    assert!(Slack::new(no_url).is_err_and(|finding| finding.hint.contains("api_url")));
}

#[tokio::test]
async fn channels_and_the_workspace_are_looked_at() {
    let fake = FakeSlack::start().await;
    let mut elsewhere = settings(&fake);
    elsewhere.guilds = vec!["T1".to_owned()];
    let finding = check(elsewhere).await.unwrap_err();
    insta::assert_snapshot!(finding, @"The Slack tokens belong to the workspace Workshop (T0BATON01), which is not among the configured ones (T1). Configure this workspace, or use the tokens of the app in the other one.");
    let mut settings = settings(&fake);
    let outside = fake.channel("outside", false);
    settings.channels = vec![fake.general(), outside.clone(), "#general".to_owned()];
    let findings = check(settings).await.unwrap();
    assert_eq!(
        said(&findings)[1..],
        [
            format!("Warning: Slack: the bot is not in the channel #outside ({outside}). Type /invite @baton there."),
            "Warning: Slack: there is no channel #general the bot can see. Use its id (channel details, at the bottom), \
             not its name; in a private one type /invite @baton first."
                .to_owned(),
        ]
    );
    fake.assert_clean();
}

#[tokio::test]
async fn it_says_where_commands_come_from() {
    let fake = FakeSlack::start().await;
    let slack = Slack::new(settings(&fake)).unwrap();
    let table: Vec<_> = commands::specs().collect();
    let findings = slack.register(&table).await.unwrap();
    assert!(
        findings[0]
            .what
            .contains("slash commands stand in the manifest"),
        "{}",
        findings[0]
    );
    assert!(fake.requests().is_empty(), "nothing to ask Slack");
    let unheard = slack.listen(
        tokio::sync::mpsc::channel(1).0,
        tokio_util::sync::CancellationToken::new(),
    );
    assert!(unheard.await.is_err(), "it must have been checked");
    fake.assert_clean();
}
