//! The bridge to simcord works, so that an adapter's test can rely on it: one round of registering, listening, answering.

use gateway_fakes::python::Script;
use serde_json::{Value, json};

#[tokio::test]
async fn bridge_serves_a_message_and_shows_the_answer() {
    super::install_tls();
    let Some(mut simcord) = Script::start("simcord", "simcord_bridge.py", &[]).await else {
        return;
    };
    let world: Value = serde_json::from_str(&simcord.line().await).unwrap();
    let text = |key: &str| world[key].as_str().unwrap().to_owned();
    let client = reqwest::Client::new();
    let commands = format!(
        "{}/api/v10/applications/{}/commands",
        text("base"),
        text("application")
    );
    let usage = json!([{ "name": "usage", "description": "What is left", "type": 1 }]);
    let registered: Value = client
        .put(commands)
        .json(&usage)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&registered[0]["name"], &registered[0]["version"]),
        (&json!("usage"), &json!("1"))
    );
    assert_eq!(simcord.ask(r#"{"say": "hello"}"#).await, r#"{"ok": true}"#);
    let messages = format!(
        "{}/api/v10/channels/{}/messages",
        text("base"),
        text("channel")
    );
    let sent = client
        .post(messages)
        .json(&json!({ "content": "hi", "nonce": null }))
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
    let seen: Value = serde_json::from_str(&simcord.ask(r#"{"seen": true}"#).await).unwrap();
    assert_eq!(seen["ok"][0]["content"], "hello");
    assert_eq!(seen["ok"][1]["content"], "hi");
}
