//! Registering commands: names, caps, ids and the daily limit.

use std::time::Duration;

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::NotPossible;
use reqwest::Method;
use serde_json::{Value, json};

use super::raw_bot::{Raw, command};

#[tokio::test]
async fn commands_are_checked_capped_and_keep_their_ids() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    for (name, commands) in [
        ("upper case", json!([command("Usage")])),
        ("a space", json!([command("resume handoff")])),
        ("twice", json!([command("usage"), command("usage")])),
        (
            "long description",
            json!([{ "name": "a", "type": 1, "description": "d".repeat(101) }]),
        ),
    ] {
        assert_eq!(bot.register(commands).await.0, 400, "{name}");
        assert!(!fake.violations().take().is_empty(), "{name}");
    }
    let (_, first) = bot
        .register(json!([command("usage"), command("help")]))
        .await;
    let (_, second) = bot.register(json!([command("usage")])).await;
    assert_eq!(first[0]["id"], second[0]["id"]);
    assert_eq!(fake.commands(None).len(), 1);
    let many: Vec<Value> = (0..101).map(|at| command(&format!("c{at}"))).collect();
    let (status, _) = bot.register(Value::Array(many)).await;
    assert_eq!(status, 400, "a scope takes 100");
    fake.violations().take();
    let anna = fake.person("anna");
    assert_eq!(
        fake.slash(fake.general(), anna, "help", &[]),
        Err(NotPossible::NoSuchCommand)
    );
    let guild = format!(
        "/applications/{}/guilds/{}/commands",
        fake.application(),
        fake.guild()
    );
    assert_eq!(
        bot.call(Method::POST, &guild, command("usage")).await.0,
        201
    );
    assert_eq!(
        fake.slash(fake.general(), anna, "usage", &[]),
        Err(NotPossible::ListedTwice)
    );
    fake.assert_clean();
}

#[tokio::test]
async fn daily_creates_run_out() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let set = |from: usize| {
        (from..from + 90)
            .map(|at| command(&format!("c{at}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(bot.register(json!(set(0))).await.0, 200);
    assert_eq!(bot.register(json!(set(90))).await.0, 200);
    assert_eq!(bot.register(json!(set(180))).await.1["code"], 30034);
    fake.clock().advance(Duration::from_secs(86_401));
    assert_eq!(bot.register(json!(set(180))).await.0, 200);
    fake.assert_clean();
}
