//! Each rule of the fake Slack, broken once.

use std::time::Duration;

use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN, Fault, NotPossible};
use reqwest::Client;
use serde_json::{Value, json};

struct Raw<'a> {
    fake: &'a FakeSlack,
    client: Client,
}

impl<'a> Raw<'a> {
    fn new(fake: &'a FakeSlack) -> Self {
        super::install_tls();
        Self {
            fake,
            client: Client::new(),
        }
    }

    async fn call(&self, method: &str, body: Value) -> Value {
        self.call_as(BOT_TOKEN, method, body).await.1
    }

    async fn call_as(&self, token: &str, method: &str, body: Value) -> (u16, Value) {
        let request = self
            .client
            .post(format!("{}/{method}", self.fake.api()))
            .bearer_auth(token)
            .json(&body);
        let response = request.send().await.expect("the fake answers");
        let status = response.status().as_u16();
        (status, response.json().await.expect("the answer is JSON"))
    }

    async fn post(&self, body: Value) -> Value {
        let mut body = body;
        body["channel"] = json!(self.fake.general());
        self.call("chat.postMessage", body).await
    }
}

#[tokio::test]
async fn bad_messages_are_refused_and_reported() {
    let fake = FakeSlack::start().await;
    let app = Raw::new(&fake);
    let section = |length: usize| json!({ "type": "section", "text": { "type": "mrkdwn", "text": "x".repeat(length) } });
    let button = |label: usize| {
        json!([{ "type": "actions", "elements": [
        { "type": "button", "action_id": "a", "text": { "type": "plain_text", "text": "x".repeat(label) } }
    ] }])
    };
    let rows = [
        (
            "text above 40000",
            json!({ "text": "x".repeat(40_001) }),
            "msg_too_long",
        ),
        (
            "markdown above 12000",
            json!({ "markdown_text": "x".repeat(12_001) }),
            "invalid_arguments",
        ),
        (
            "markdown with text",
            json!({ "markdown_text": "x", "text": "x" }),
            "markdown_text_conflict",
        ),
        (
            "51 blocks",
            json!({ "blocks": (0..51).map(|_| section(1)).collect::<Vec<_>>() }),
            "invalid_blocks",
        ),
        (
            "section above 3000",
            json!({ "blocks": [section(3001)] }),
            "invalid_blocks",
        ),
        (
            "blocks above 13200",
            json!({ "blocks": (0..5).map(|_| section(2900)).collect::<Vec<_>>() }),
            "msg_blocks_too_long",
        ),
        (
            "label above 75",
            json!({ "blocks": button(76) }),
            "invalid_blocks",
        ),
        (
            "unknown parameter",
            json!({ "text": "x", "thread": "1" }),
            "invalid_arguments",
        ),
    ];
    for (name, body, word) in rows {
        let answer = app.post(body).await;
        assert_eq!(answer["error"], word, "{name}: {answer}");
        assert!(!fake.violations().take().is_empty(), "{name}");
    }
    assert_eq!(app.post(json!({ "blocks": button(75) })).await["ok"], true);
    assert_eq!(
        app.call("chat.nonsense", json!({})).await["error"],
        "unknown_method"
    );
    assert_eq!(fake.violations().take().len(), 1);
    fake.assert_clean();
}

#[tokio::test]
async fn every_method_answers_as_the_file_says() {
    let fake = FakeSlack::builder().limit_speed(1000.0).start().await;
    let app = Raw::new(&fake);
    let (general, anna) = (fake.general(), fake.person("anna"));
    let dm = fake.dm(&anna);
    let sent = app.post(json!({ "text": "root" })).await;
    let ts = sent["ts"].clone();
    for (method, body) in [
        ("auth.test", json!({})),
        ("users.info", json!({ "user": anna })),
        ("conversations.info", json!({ "channel": general })),
        ("conversations.info", json!({ "channel": dm })),
        ("conversations.open", json!({ "users": anna })),
        (
            "chat.update",
            json!({ "channel": general, "ts": ts, "text": "changed" }),
        ),
        (
            "chat.postEphemeral",
            json!({ "channel": general, "user": anna, "text": "for you" }),
        ),
        (
            "conversations.history",
            json!({ "channel": general, "limit": 10 }),
        ),
        (
            "conversations.replies",
            json!({ "channel": general, "ts": ts }),
        ),
        (
            "reactions.add",
            json!({ "channel": general, "timestamp": ts, "name": "eyes" }),
        ),
        (
            "reactions.remove",
            json!({ "channel": general, "timestamp": ts, "name": "eyes" }),
        ),
        (
            "assistant.threads.setStatus",
            json!({ "channel_id": general, "thread_ts": ts, "status": "is thinking" }),
        ),
    ] {
        let answer = app.call(method, body).await;
        assert_eq!(answer["ok"], true, "{method}: {answer}");
    }
    let stream = app
        .call(
            "chat.startStream",
            json!({ "channel": general, "thread_ts": ts, "markdown_text": "a" }),
        )
        .await;
    let stream = stream["ts"].clone();
    app.call(
        "chat.appendStream",
        json!({ "channel": general, "ts": stream, "markdown_text": "b" }),
    )
    .await;
    app.call(
        "chat.stopStream",
        json!({ "channel": general, "ts": stream, "markdown_text": "c" }),
    )
    .await;
    assert_eq!(
        fake.wait_for_text(&general, |text| text == "abc")
            .await
            .thread_ts
            .as_deref(),
        ts.as_str()
    );
    let after = app
        .call(
            "chat.appendStream",
            json!({ "channel": general, "ts": stream, "markdown_text": "d" }),
        )
        .await;
    assert_eq!(after["error"], "message_not_in_streaming_state");
    assert_eq!(
        app.call("chat.delete", json!({ "channel": general, "ts": ts }))
            .await["ok"],
        true
    );
    fake.assert_clean();
}

#[tokio::test]
async fn logins_scopes_and_membership() {
    let fake = FakeSlack::builder()
        .without_scope("chat:write")
        .start()
        .await;
    let app = Raw::new(&fake);
    assert_eq!(
        app.post(json!({ "text": "x" })).await["error"],
        "missing_scope"
    );
    assert_eq!(
        app.call_as("xoxb-wrong", "auth.test", json!({})).await.1["error"],
        "invalid_auth"
    );
    assert_eq!(
        app.call("apps.connections.open", json!({})).await["error"],
        "not_allowed_token_type"
    );
    assert_eq!(
        app.call_as(APP_TOKEN, "apps.connections.open", json!({}))
            .await
            .1["ok"],
        true
    );
    let elsewhere = fake.channel("elsewhere", false);
    let answer = app
        .call("conversations.history", json!({ "channel": elsewhere }))
        .await;
    assert_eq!(answer["error"], "not_in_channel");
    fake.assert_clean();
}

#[tokio::test]
async fn one_post_a_second_and_channel() {
    let fake = FakeSlack::start().await;
    let app = Raw::new(&fake);
    assert_eq!(app.post(json!({ "text": "1" })).await["ok"], true);
    assert_eq!(
        app.post(json!({ "text": "2" })).await["error"],
        "ratelimited"
    );
    let other = fake.channel("other", true);
    assert_eq!(
        app.call("chat.postMessage", json!({ "channel": other, "text": "1" }))
            .await["ok"],
        true
    );
    fake.clock().advance(Duration::from_secs(1));
    assert_eq!(app.post(json!({ "text": "2" })).await["ok"], true);
    fake.clock().advance(Duration::from_secs(1));
    fake.plan("chat.postMessage", Fault::Lost);
    assert_eq!(
        app.call_as(
            BOT_TOKEN,
            "chat.postMessage",
            json!({ "channel": other, "text": "2" })
        )
        .await
        .0,
        500
    );
    assert_eq!(fake.from_bot(&other).len(), 2, "carried out all the same");
    fake.assert_clean();
}

#[tokio::test]
async fn response_url_is_used_up_and_expires() {
    let fake = FakeSlack::start().await;
    let app = Raw::new(&fake);
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.install_commands(&["/usage"]);
    assert_eq!(
        fake.slash(&general, &anna, "/other", ""),
        Err(NotPossible::NoSuchCommand)
    );
    let asked = fake.slash(&general, &anna, "/usage", "").unwrap();
    let respond = |url: &str| app.client.post(url).json(&json!({ "text": "x" })).send();
    for _ in 0..5 {
        assert_eq!(respond(&asked.response_url).await.unwrap().status(), 200);
    }
    assert_eq!(respond(&asked.response_url).await.unwrap().status(), 404);
    assert_eq!(fake.private(&general, &anna).len(), 5);
    assert!(fake.from_bot(&general).is_empty());
    let later = fake.slash(&general, &anna, "/usage", "").unwrap();
    fake.clock().advance(Duration::from_secs(1801));
    assert_eq!(respond(&later.response_url).await.unwrap().status(), 404);
    fake.assert_clean();
}

#[tokio::test]
async fn unacked_events_come_again_three_times() {
    let fake = FakeSlack::start().await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "hello");
    for (attempt, wait) in [(1, 4), (2, 64), (3, 304)] {
        fake.clock().advance(Duration::from_secs(wait));
        fake.wait_for("a redelivery", |fake| {
            fake.envelopes()
                .iter()
                .any(|envelope| envelope.attempt == attempt)
                .then_some(())
        })
        .await;
    }
    let ids: Vec<Value> = fake
        .envelopes()
        .iter()
        .map(|envelope| envelope.payload["event_id"].clone())
        .collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| *id == ids[0]), "one event");
    fake.assert_clean();
}
