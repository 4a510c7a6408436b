//! A Discord bot without a library: it sends exactly what it is told.

use gateway_fakes::FakeDiscord;
use reqwest::Method;
use serde_json::{Value, json};

/// A bot that sends exactly what it is told.
pub(super) struct Raw<'a> {
    fake: &'a FakeDiscord,
    pub(super) client: reqwest::Client,
}

impl<'a> Raw<'a> {
    pub(super) fn new(fake: &'a FakeDiscord) -> Self {
        super::install_tls();
        Self {
            fake,
            client: reqwest::Client::new(),
        }
    }

    pub(super) async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/v10{path}", self.fake.base());
        let request = self
            .client
            .request(method, url)
            .header("authorization", format!("Bot {}", self.fake.token()));
        let request = if body.is_null() {
            request
        } else {
            request.json(&body)
        };
        let response = request.send().await.expect("the fake answers");
        let status = response.status().as_u16();
        let text = response.text().await.expect("the answer has a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub(super) async fn send(&self, body: Value) -> (u16, Value) {
        self.call(
            Method::POST,
            &format!("/channels/{}/messages", self.fake.general()),
            body,
        )
        .await
    }

    pub(super) async fn register(&self, commands: Value) -> (u16, Value) {
        self.call(
            Method::PUT,
            &format!("/applications/{}/commands", self.fake.application()),
            commands,
        )
        .await
    }
}

/// A slash command to register.
pub(super) fn command(name: &str) -> Value {
    json!({ "name": name, "description": "a command", "type": 1 })
}
