//! The servers over real sockets, and their shapes against what the real CLIs accepted (`captures/http`).

use std::collections::BTreeSet;

use jiff::Timestamp;

use serde_json::json;

use super::*;

const PROMPT: &str = "What is it?";

async fn post(
    server: &Loopback,
    path: &str,
    body: &Value,
) -> (u16, reqwest::header::HeaderMap, reqwest::Result<String>) {
    crate::install_tls();
    let client = crate::http::client().unwrap();
    let url = format!("{}{path}", server.base_url());
    let answer = client
        .post(url)
        .header("x-api-key", "sk-visible")
        .json(body)
        .send()
        .await
        .unwrap();
    (
        answer.status().as_u16(),
        answer.headers().clone(),
        answer.text().await,
    )
}

fn messages(stream: bool) -> Value {
    json!({
        "model": "m",
        "stream": stream,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": PROMPT}],
    })
}

/// The data objects of a stream, in order; `[DONE]` becomes a string.
fn objects(stream: &str) -> Vec<Value> {
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        .collect()
}

/// Every key path of an object with the type of its value.
fn shape(value: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    walk(value, &format!("{path}.{key}"), into);
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| walk(item, &format!("{path}[]"), into)),
            Value::Null => drop(into.insert(format!("{path}: null"))),
            Value::Bool(_) => drop(into.insert(format!("{path}: bool"))),
            Value::Number(_) => drop(into.insert(format!("{path}: number"))),
            Value::String(_) => drop(into.insert(format!("{path}: string"))),
        }
    }
    let mut paths = BTreeSet::new();
    walk(value, "", &mut paths);
    paths
}

fn event_names(stream: &str) -> Vec<&str> {
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect()
}

#[tokio::test]
async fn an_anthropic_stream_has_the_captured_events_and_fields() {
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    server.enqueue(Step::Answer {
        text: "Hello from the mock.".into(),
        deltas: 4,
        headers: vec![],
    });
    let (status, headers, body) = post(&server, "/v1/messages", &messages(true)).await;
    let (ours, theirs) = (
        body.unwrap(),
        include_str!("../../captures/http/anthropic-text.sse"),
    );
    assert_eq!(status, 200);
    assert!(
        headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    assert_eq!(event_names(&ours), event_names(theirs));
    for (ours, theirs) in objects(&ours).iter().zip(objects(theirs)) {
        assert_eq!(shape(ours), shape(&theirs));
    }
}

#[tokio::test]
async fn an_anthropic_tool_call_has_the_captured_events_and_fields() {
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    let theirs = include_str!("../../captures/http/anthropic-tool-use.sse");
    server.enqueue(Step::ToolUse {
        text: "Let me look.".into(),
        name: "Bash".into(),
        input: json!({"command": "echo hello-from-bash", "description": "Say hello"}),
    });
    let (_, _, body) = post(&server, "/v1/messages", &messages(true)).await;
    let ours = body.unwrap();
    let shapes = |stream: &str| objects(stream).iter().map(shape).collect::<BTreeSet<_>>();
    assert_eq!(shapes(&ours), shapes(theirs));
    assert!(
        ours.contains(r#"\"command\":\"echo hello-from-bash\""#),
        "{ours}"
    );
}

#[tokio::test]
async fn whole_answers_and_refusals_have_the_captured_fields() {
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    server.enqueue(Step::answer("Hello from the mock."));
    let (_, _, body) = post(&server, "/v1/messages", &messages(false)).await;
    let ours: Value = serde_json::from_str(&body.unwrap()).unwrap();
    let theirs: Value =
        serde_json::from_str(include_str!("../../captures/http/anthropic-nonstream.json")).unwrap();
    assert!(shape(&ours).is_superset(&shape(&theirs)), "{ours}");

    let resets_at = Timestamp::from_second(1_796_001_127).unwrap();
    server.enqueue(Step::UnifiedRejected {
        window: "five_hour".into(),
        resets_at,
    });
    let (status, headers, body) = post(&server, "/v1/messages", &messages(true)).await;
    let ours: Value = serde_json::from_str(&body.unwrap()).unwrap();
    let theirs: Value =
        serde_json::from_str(include_str!("../../captures/http/anthropic-error-429.json")).unwrap();
    assert_eq!((status, shape(&ours)), (429, shape(&theirs)));
    let captured = include_str!("../../captures/http/anthropic-unified-headers.txt");
    for (name, value) in captured.lines().filter_map(|line| line.split_once(": ")) {
        // The other window's reset and a generic wait are left out: a server that knows one reset states one.
        if ["retry-after", "anthropic-ratelimit-unified-7d-reset"].contains(&name) {
            continue;
        }
        assert_eq!(
            headers.get(name).map(|value| value.to_str().unwrap()),
            Some(value),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_chat_completions_stream_has_the_captured_fields() {
    let server = Loopback::start(Wire::OpenAi).await.unwrap();
    server.enqueue(Step::Answer {
        text: "Hello from the mock.".into(),
        deltas: 4,
        headers: vec![],
    });
    let (_, _, body) = post(&server, "/v1/chat/completions", &messages(true)).await;
    let shapes = |stream: &str| {
        let objects = objects(stream);
        objects.iter().flat_map(shape).collect::<BTreeSet<_>>()
    };
    let (ours, theirs) = (
        body.unwrap(),
        include_str!("../../captures/http/chat-completions-text.sse"),
    );
    assert_eq!(shapes(&ours), shapes(theirs));
    assert_eq!(objects(&ours).last(), Some(&json!("[DONE]")));

    server.enqueue(Step::ToolUse {
        text: "Let me look.".into(),
        name: "bash".into(),
        input: json!({"command": "x"}),
    });
    let (_, _, body) = post(&server, "/v1/chat/completions", &messages(true)).await;
    assert_eq!(
        shapes(&body.unwrap()),
        shapes(include_str!(
            "../../captures/http/chat-completions-tool-call.sse"
        ))
    );
}

#[tokio::test]
async fn everything_is_recorded_and_counted_whatever_its_path() {
    let server = Loopback::start(Wire::OpenAi).await.unwrap();
    let (status, ..) = post(&server, "/v1/chat/completions?x=1", &messages(false)).await;
    let (missing, ..) = post(&server, "/v1/nothing", &json!({})).await;
    assert_eq!((status, missing, server.count()), (200, 404, 2));
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].prompt(), PROMPT);
    assert_eq!(requests[0].header("x-api-key"), Some("sk-visible"));
    assert!(requests[0].at_seq < requests[1].at_seq);
}

#[tokio::test]
async fn a_cut_stream_says_what_it_said_and_then_breaks() {
    for (wire, path) in [
        (Wire::Anthropic, "/v1/messages"),
        (Wire::OpenAi, "/v1/chat/completions"),
    ] {
        let server = Loopback::start(wire).await.unwrap();
        server.enqueue(Step::cut_after("one two three", 2, Cut::CleanEof));
        let (_, _, body) = post(&server, path, &messages(true)).await;
        let body = body.unwrap();
        assert!(
            !body.contains("message_stop") && !body.contains("[DONE]"),
            "{body}"
        );
        assert_eq!(
            objects(&body)
                .iter()
                .filter(|data| shape(data)
                    .iter()
                    .any(|path| path.ends_with(".text: string")
                        || path.ends_with(".content: string")))
                .count(),
            3,
            "{body}"
        );
        server.enqueue(Step::cut_after("one two three", 2, Cut::Abrupt));
        let (_, _, body) = post(&server, path, &messages(true)).await;
        body.unwrap_err();
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_and_a_dropped_server_lets_go() {
    crate::install_tls();
    let client = crate::http::client().unwrap();
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    server.script([Step::hang(), Step::stall_after("one two", 1), Step::hang()]);
    let url = format!("{}/v1/messages", server.base_url());
    let request = || client.post(&url).json(&messages(true)).send();

    let waiting = tokio::spawn(request());
    server.requests_reach(1).await;
    waiting.abort();
    server.hangups_reach(1).await;

    let mut stalled = request().await.unwrap();
    assert!(stalled.chunk().await.unwrap().is_some());
    drop(stalled);
    server.hangups_reach(2).await;

    let waiting = tokio::spawn(request());
    server.requests_reach(3).await;
    drop(server);
    waiting.await.unwrap().unwrap().text().await.unwrap();
    assert!(request().await.is_err(), "the port is closed");
}
