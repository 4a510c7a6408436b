//! Socket Mode's faults, seen through a socket that does exactly what it is told.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::APP_TOKEN;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(fake: &FakeSlack) -> Self {
        super::install_tls();
        let request = reqwest::Client::new()
            .post(format!("{}/apps.connections.open", fake.api()))
            .bearer_auth(APP_TOKEN);
        let answer: Value = request
            .send()
            .await
            .expect("the fake answers")
            .json()
            .await
            .expect("JSON");
        let url = answer["url"].as_str().expect("a socket address").to_owned();
        let address = url
            .trim_start_matches("ws://")
            .split('/')
            .next()
            .expect("host and port")
            .to_owned();
        let stream = TcpStream::connect(address).await.expect("it listens");
        let (socket, _) = tokio_tungstenite::client_async(url, stream)
            .await
            .expect("the ticket is good");
        let mut socket = Self(socket);
        assert_eq!(socket.next().await["type"], "hello");
        socket
    }

    async fn next(&mut self) -> Value {
        loop {
            let frame = tokio::time::timeout(Duration::from_secs(10), self.0.next())
                .await
                .expect("something comes");
            if let Message::Text(text) = frame.expect("open").expect("whole") {
                return serde_json::from_str(text.as_str()).expect("JSON");
            }
        }
    }

    async fn ack(&mut self, envelope: &Value) {
        let ack = json!({ "envelope_id": envelope["envelope_id"] });
        self.0
            .send(Message::text(ack.to_string()))
            .await
            .expect("open");
    }
}

#[tokio::test]
async fn each_event_goes_to_one_of_the_sockets() {
    let fake = FakeSlack::start().await;
    let (mut one, mut two) = (Socket::open(&fake).await, Socket::open(&fake).await);
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "1");
    fake.say(&general, &anna, "2");
    for (socket, text) in [(&mut one, "1"), (&mut two, "2")] {
        let envelope = socket.next().await;
        assert_eq!(envelope["payload"]["event"]["text"], text);
        socket.ack(&envelope).await;
    }
    fake.wait_for("both acks", |fake| {
        fake.envelopes()
            .iter()
            .all(|one| one.acked.is_some())
            .then_some(())
    })
    .await;
    fake.assert_clean();
}

#[tokio::test]
async fn after_a_disconnect_notice_the_newer_socket_is_used() {
    let fake = FakeSlack::start().await;
    let mut old = Socket::open(&fake).await;
    assert_eq!(fake.ask_to_disconnect("refresh_requested"), 1);
    assert_eq!(old.next().await["reason"], "refresh_requested");
    let mut new = Socket::open(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "to the new one");
    assert_eq!(
        new.next().await["payload"]["event"]["text"],
        "to the new one"
    );
    fake.send_late(1);
    fake.say(&general, &anna, "late");
    assert_eq!(old.next().await["payload"]["event"]["text"], "late");
    fake.assert_clean();
}

#[tokio::test]
async fn mention_twice_and_duplicate_envelope() {
    let fake = FakeSlack::start().await;
    let mut socket = Socket::open(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let said = fake.say(&general, &anna, fake.mention().as_str());
    let (mention, message) = (socket.next().await, socket.next().await);
    assert_eq!(
        (
            &mention["payload"]["event"]["type"],
            &message["payload"]["event"]["type"]
        ),
        (&json!("app_mention"), &json!("message"))
    );
    assert_eq!(
        mention["payload"]["event"]["ts"],
        message["payload"]["event"]["ts"]
    );
    fake.duplicate_envelopes(1);
    fake.repeat(&said);
    assert_eq!(socket.next().await, socket.next().await);
    fake.assert_clean();
}

#[tokio::test]
async fn silent_socket_answers_no_ping() {
    let fake = FakeSlack::start().await;
    let mut socket = Socket::open(&fake).await;
    assert_eq!(fake.silence_sockets(), 1);
    fake.say(&fake.general(), &fake.person("anna"), "into silence");
    socket
        .0
        .send(Message::Ping("are you there".into()))
        .await
        .expect("it is open");
    let answer = tokio::time::timeout(Duration::from_millis(300), socket.0.next()).await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(fake.sockets(), 1);
}

#[tokio::test]
async fn acks_are_checked_and_commands_without_a_socket_are_lost() {
    let fake = FakeSlack::start().await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let lost = fake
        .slash(&general, &anna, "/usage", "")
        .expect("any command is installed");
    assert_eq!(fake.envelopes()[0].socket, None);
    let mut socket = Socket::open(&fake).await;
    socket.ack(&json!({ "envelope_id": "unknown" })).await;
    fake.wait_for("the complaint", |fake| {
        (!fake.violations().list().is_empty()).then_some(())
    })
    .await;
    assert!(fake.violations().take()[0].contains("unknown envelope"));
    fake.clock().advance(Duration::from_secs(400));
    assert_eq!(fake.acked_after(&lost), None);
    assert_eq!(fake.envelopes().len(), 1, "never again");
}
