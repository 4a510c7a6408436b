//! A server that plays `opencode serve` badly: event streams that break, processes that die, aborts that are not obeyed.
//! The program is a script that announces the test's own port.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod attempt;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attempt::request;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use futures_util::StreamExt as _;
use gateway_core::event::Event;
use gateway_core::failure::FailureKind;
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use parking_lot::Mutex;
use providers::opencode::{OpenCode, OpenCodeSettings};
use providers::{AttemptHandle, AttemptRequest, Permissions, Provider};
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot, watch};

const SESSION: &str = "ses_1";
const SCRIPT: &str = "#!/bin/sh
echo $$ >> \"$FAKE_PIDS\"
echo \"opencode server listening on http://127.0.0.1:$FAKE_PORT\"
while :; do sleep 1; done
";

/// What the fake does and has seen.
struct Fake {
    /// `None` breaks the stream for whoever listens now.
    events: broadcast::Sender<Option<Value>>,
    listeners: watch::Sender<usize>,
    requests: watch::Sender<Vec<(String, Value)>>,
    /// What the prompt's call answers, once it is told.
    reply: Mutex<Option<oneshot::Receiver<Value>>>,
    stored: Mutex<Value>,
    takes_rules: bool,
    obeys: bool,
}

struct World {
    fake: Arc<Fake>,
    opencode: OpenCode,
    folder: tempfile::TempDir,
    over: Option<oneshot::Sender<Value>>,
}

impl World {
    async fn new() -> Self {
        Self::with(SCRIPT, true, true).await
    }

    async fn with(script: &str, takes_rules: bool, obeys: bool) -> Self {
        let (over, reply) = oneshot::channel();
        let fake = Arc::new(Fake {
            events: broadcast::channel(256).0,
            listeners: watch::Sender::new(0),
            requests: watch::Sender::new(Vec::new()),
            reply: Mutex::new(Some(reply)),
            stored: Mutex::new(json!([])),
            takes_rules,
            obeys,
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("opencode");
        let mut file = std::fs::File::create(&binary).unwrap();
        file.write_all(script.as_bytes()).unwrap();
        drop(file);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&binary, executable).unwrap();
        let opencode = OpenCode::new(OpenCodeSettings {
            binary: Some(binary),
            home: Some(folder.path().join("login")),
            env: BTreeMap::from([
                ("FAKE_PORT".to_owned(), port.to_string()),
                (
                    "FAKE_PIDS".to_owned(),
                    folder.path().join("pids").display().to_string(),
                ),
            ]),
            subscription: "fake".into(),
            metered: true,
            hidden: Vec::new(),
            usage_base: None,
            now: Arc::new(|| Timestamp::from_second(1_796_000_000).unwrap()),
        });
        Self {
            fake,
            opencode,
            folder,
            over: Some(over),
        }
    }

    fn start(&self, change: impl FnOnce(&mut AttemptRequest)) -> AttemptHandle {
        let (mut request, word) = request("m/m", "hi", self.folder.path().to_owned());
        change(&mut request);
        word.send(()).unwrap();
        self.opencode.start(request)
    }

    /// Waits until the prompt has come.
    async fn prompted(&self) {
        self.asked("POST /session/ses_1/message").await;
    }

    async fn asked(&self, what: &str) -> Value {
        let mut requests = self.fake.requests.subscribe();
        let found = |requests: &Vec<(String, Value)>| {
            let found = requests.iter().rev().find(|(line, _)| line == what);
            found.map(|(_, body)| body.clone())
        };
        let seen = requests
            .wait_for(|requests| found(requests).is_some())
            .await;
        found(&seen.unwrap()).unwrap()
    }

    async fn listeners(&self, count: usize) {
        let mut listeners = self.fake.listeners.subscribe();
        listeners.wait_for(|now| *now >= count).await.unwrap();
    }

    fn say(&self, kind: &str, mut properties: Value) {
        properties["sessionID"] = SESSION.into();
        let event = json!({"payload": {"type": kind, "properties": properties}});
        let _ = self.fake.events.send(Some(event));
    }

    fn break_stream(&self) {
        let _ = self.fake.events.send(None);
    }

    fn store(&self, text: &str, ended: bool) {
        *self.fake.stored.lock() = json!([stored(text, ended)]);
    }

    fn finish(&mut self) {
        let reply = self.fake.stored.lock()[0].clone();
        self.over.take().unwrap().send(reply).unwrap();
    }

    fn pids(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

fn part(text: &str, ended: bool) -> Value {
    let time = match ended {
        true => json!({"start": 1, "end": 2}),
        false => json!({"start": 1}),
    };
    json!({"id": "prt_1", "messageID": "msg_2", "type": "text", "text": text, "time": time})
}

fn info() -> Value {
    json!({"id": "msg_2", "role": "assistant", "finish": "stop"})
}

fn stored(text: &str, ended: bool) -> Value {
    json!({"info": info(), "parts": [part(text, ended)]})
}

fn delta(text: &str) -> Value {
    json!({"messageID": "msg_2", "partID": "prt_1", "field": "text", "delta": text})
}

async fn answer(State(fake): State<Arc<Fake>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    assert!(head.headers.contains_key("authorization"), "the password");
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let line = format!("{} {}", head.method, head.uri.path());
    fake.requests
        .send_modify(|requests| requests.push((line.clone(), body.clone())));
    match line.as_str() {
        "GET /global/event" => events(&fake),
        "GET /config/providers" => {
            json_answer(&json!({"providers": [{"id": "m", "models": {"m": {}}}]}))
        }
        "POST /session" => {
            let rules = fake.takes_rules.then(|| body["permission"].clone());
            json_answer(&json!({"id": SESSION, "permission": rules}))
        }
        "GET /session/ses_1" => json_answer(&json!({"id": SESSION, "permission": [
            {"permission": "*", "pattern": "*", "action": "deny"}
        ]})),
        "GET /session/ses_1/message" => json_answer(&fake.stored.lock().clone()),
        "POST /session/ses_1/message" => {
            let reply = fake.reply.lock().take();
            match reply {
                Some(reply) => match reply.await {
                    Ok(reply) => json_answer(&reply),
                    Err(_) => std::future::pending().await,
                },
                None => json_answer(&stored("Second.", true)),
            }
        }
        "POST /session/ses_1/abort" if !fake.obeys => std::future::pending().await,
        _ => json_answer(&json!({})),
    }
}

fn events(fake: &Arc<Fake>) -> Response<Body> {
    let listening = fake.events.subscribe();
    let fake = fake.clone();
    let greeting = json!({"payload": {"type": "server.connected", "properties": {}}});
    let first = futures_util::stream::once(async move {
        fake.listeners.send_modify(|count| *count += 1);
        Ok(Bytes::from(format!("data: {greeting}\n\n")))
    });
    let rest = futures_util::stream::unfold(listening, |mut listening| async {
        match listening.recv().await {
            Ok(Some(event)) => Some((Ok(Bytes::from(format!("data: {event}\n\n"))), listening)),
            _ => Some((Err(std::io::Error::other("broken")), listening)),
        }
    });
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(first.chain(rest)))
        .unwrap()
}

fn json_answer(value: &Value) -> Response<Body> {
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from(value.to_string()))
        .unwrap()
}

async fn heard(mut handle: AttemptHandle) -> (String, Vec<Event>, AttemptEnd) {
    let mut events = Vec::new();
    while let Some(event) = handle.events.recv().await {
        events.push(event);
    }
    (seen(&events), events, handle.end.await.unwrap())
}

fn seen(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::Text { delta, .. } => text.push_str(delta),
            Event::Retract { .. } => text.clear(),
            _ => {}
        }
    }
    text
}

fn answered(end: &AttemptEnd) -> &str {
    match end {
        AttemptEnd::Answered(answer) => &answer.text,
        other => panic!("{other:?}"),
    }
}

fn failed(end: &AttemptEnd) -> (FailureKind, &str) {
    match end {
        AttemptEnd::Failed(failure) => (failure.kind, &failure.detail),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn child_an_event_stream_that_breaks_loses_and_doubles_nothing() {
    let mut world = World::new().await;
    let mut handle = world.start(|_| {});
    world.prompted().await;
    world.say("message.updated", json!({"info": info()}));
    world.say("message.part.updated", json!({"part": part("", false)}));
    world.say("message.part.delta", delta("one "));
    let first = loop {
        match handle.events.recv().await.unwrap() {
            Event::Text { delta, .. } => break delta,
            _ => continue,
        }
    };
    assert_eq!(first, "one ");
    // "two" is said while nobody listens; the store has nothing of a part that is still written.
    world.store("", false);
    world.break_stream();
    world.listeners(2).await;
    world.asked("GET /session/ses_1/todo").await;
    world.say("message.part.delta", delta("three"));
    world.say(
        "message.part.updated",
        json!({"part": part("one two three", true)}),
    );
    world.store("one two three", true);
    world.say("session.idle", json!({}));
    world.finish();
    let (rest, events, end) = heard(handle).await;
    assert_eq!(rest, "two three", "{events:?}");
    assert_eq!(answered(&end), "one two three");
}

#[tokio::test]
async fn child_what_no_event_brought_is_read_from_the_session() {
    let mut world = World::new().await;
    let handle = world.start(|_| {});
    world.prompted().await;
    world.store("All of it.", true);
    world.say("session.idle", json!({}));
    world.finish();
    let (text, _, end) = heard(handle).await;
    assert_eq!(
        (text.as_str(), answered(&end)),
        ("All of it.", "All of it.")
    );
}

#[tokio::test]
async fn child_questions_are_refused_at_once() {
    let mut world = World::new().await;
    let handle = world.start(|_| {});
    world.prompted().await;
    world.say("permission.asked", json!({"id": "per_1"}));
    let body = world.asked("POST /permission/per_1/reply").await;
    assert_eq!(body, json!({"reply": "reject"}));
    world.say("question.asked", json!({"id": "que_1"}));
    world.asked("POST /question/que_1/reject").await;
    world.store("Done.", true);
    world.say("session.idle", json!({}));
    world.finish();
    assert_eq!(answered(&heard(handle).await.2), "Done.");
}

#[tokio::test]
async fn child_a_process_that_dies_fails_the_turn_and_the_next_has_a_new_one() {
    let world = World::new().await;
    let handle = world.start(|_| {});
    world.prompted().await;
    let pid = rustix::process::Pid::from_raw(world.pids()[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let (_, _, end) = heard(handle).await;
    let (kind, detail) = failed(&end);
    assert_eq!(kind, FailureKind::Crashed);
    assert!(detail.contains("signal: 9"), "{detail}");
    // The old call hangs for ever; the next one is answered at once.
    let (_, _, end) = heard(world.start(|_| {})).await;
    assert_eq!(answered(&end), "Second.");
    assert_eq!(world.pids().len(), 2);
}

#[tokio::test]
async fn child_a_server_that_does_not_obey_a_stop_is_ended() {
    let world = World::with(SCRIPT, true, false).await;
    let handle = world.start(|_| {});
    world.prompted().await;
    handle.stop.stop();
    let (_, _, end) = heard(handle).await;
    assert_eq!(end, AttemptEnd::Stopped);
    let pid = rustix::process::Pid::from_raw(world.pids()[0]).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err(), "it lives");
}

#[tokio::test]
async fn child_silence_and_a_far_retry_end_the_turn() {
    let world = World::new().await;
    let handle = world.start(|request| request.limits.silence = Duration::from_millis(1500));
    world.prompted().await;
    // An aborted turn answers.
    let silent = heard(handle);
    let abort = async {
        world.asked("POST /session/ses_1/abort").await;
    };
    let ((_, _, end), ()) = tokio::join!(silent, abort);
    assert_eq!(failed(&end).0, FailureKind::Timeout);

    let mut world = World::new().await;
    let handle = world.start(|_| {});
    world.prompted().await;
    let next = 1_796_003_600_000_i64;
    let status = json!({"type": "retry", "attempt": 1, "message": "You have hit your usage limit", "next": next});
    world.say("session.status", json!({"status": status}));
    world.asked("POST /session/ses_1/abort").await;
    world.store("", false);
    world.finish();
    let (_, _, end) = heard(handle).await;
    let AttemptEnd::Failed(failure) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!(failure.retry_at.unwrap().as_millisecond(), next);
}

#[tokio::test]
async fn child_a_session_that_does_not_take_its_rules_is_not_used() {
    let world = World::with(SCRIPT, false, true).await;
    let (_, _, end) = heard(world.start(|_| {})).await;
    let (kind, detail) = failed(&end);
    assert_eq!(kind, FailureKind::Crashed);
    assert!(detail.contains("rules"), "{detail}");
    // Resumed it has them; a higher level is not answered for by this server.
    let (_, _, end) = heard(world.start(|request| {
        request.session = Some(SESSION.into());
        request.permissions = Permissions::Full;
    }))
    .await;
    assert!(failed(&end).1.contains("rules"), "{end:?}");
    let prompts = world
        .fake
        .requests
        .borrow()
        .iter()
        .filter(|(line, _)| line.ends_with("/message") && line.starts_with("POST"))
        .count();
    assert_eq!(prompts, 0);
}

#[tokio::test]
async fn child_a_program_that_does_not_serve_says_why() {
    let world = World::with("#!/bin/sh\necho 'no such option' >&2\nexit 3\n", true, true).await;
    let (_, _, end) = heard(world.start(|_| {})).await;
    let (kind, detail) = failed(&end);
    assert_eq!(kind, FailureKind::Crashed);
    assert!(
        detail.contains("no such option") && detail.contains('3'),
        "{detail}"
    );
    let missing: PathBuf = world.folder.path().join("opencode");
    std::fs::remove_file(missing).unwrap();
    let (_, _, end) = heard(world.start(|_| {})).await;
    assert!(failed(&end).1.contains("does not exist"), "{end:?}");
}
