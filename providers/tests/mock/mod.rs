//! A model API on loopback that speaks as much of the Messages protocol as the program needs. Replies are given in order;
//! a request beyond the last one gets a 400, which fails the turn at once.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// When the five-hour window of every reply resets (epoch seconds): two hours after the first question. 2.1.332 compares it
/// with the machine's clock and leaves a window's level out of its event if the reset lies beyond the window's length.
pub(crate) fn resets_at() -> i64 {
    static AT: OnceLock<i64> = OnceLock::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test reads the machine's clock"
    )]
    *AT.get_or_init(|| jiff::Timestamp::now().as_second() + 7_200)
}

/// What one request gets.
pub(crate) enum Reply {
    /// A whole message in server-sent events.
    Events(Vec<String>),
    /// The beginning of a message, then silence.
    Hanging(Vec<String>),
    /// The beginning of a message; the connection breaks when told.
    Cut(Vec<String>, oneshot::Receiver<()>),
    /// 429 of a spent five-hour window that resets then (epoch seconds).
    Limited(i64),
}

impl Reply {
    pub(crate) fn text(deltas: &[&str]) -> Self {
        let mut events = opened(deltas);
        events.push(event(&json!({"type": "content_block_stop", "index": 0})));
        events.extend(closing("end_turn"));
        Self::Events(events)
    }

    pub(crate) fn tools(calls: &[(&str, &str, Value)]) -> Self {
        let mut events = vec![message_start()];
        for (index, (id, name, input)) in calls.iter().enumerate() {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
            events.push(event(
                &json!({"type": "content_block_start", "index": index, "content_block": block}),
            ));
            events.push(event(
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(event(
                &json!({"type": "content_block_stop", "index": index}),
            ));
        }
        events.extend(closing("tool_use"));
        Self::Events(events)
    }

    pub(crate) fn hanging(deltas: &[&str]) -> Self {
        Self::Hanging(opened(deltas))
    }

    /// The sender breaks the connection.
    pub(crate) fn cut(deltas: &[&str]) -> (Self, oneshot::Sender<()>) {
        let (cut, told) = oneshot::channel();
        (Self::Cut(opened(deltas), told), cut)
    }

    pub(crate) fn limited(resets_at: i64) -> Self {
        Self::Limited(resets_at)
    }
}

/// The server; it ends with the test's runtime.
pub(crate) struct Mock {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Value>>,
}

impl Mock {
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let shared = Arc::new(Shared::default());
        shared.replies.lock().extend(replies);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// One more reply at the end.
    pub(crate) fn reply(&self, reply: Reply) {
        self.shared.replies.lock().push_back(reply);
    }

    /// The bodies of the message requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, body: Bytes) -> Response<Body> {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return Response::new(Body::empty()); // HEAD / and the like
    };
    shared.requests.lock().push(request);
    let reply = shared.replies.lock().pop_front();
    match reply {
        Some(Reply::Events(events)) => streamed(
            stream::iter(events)
                .map(Bytes::from)
                .map(Ok::<_, Infallible>)
                .boxed(),
        ),
        Some(Reply::Hanging(events)) => {
            let begun = stream::iter(events)
                .map(Bytes::from)
                .map(Ok::<_, Infallible>);
            streamed(begun.chain(stream::pending()).boxed())
        }
        Some(Reply::Cut(events, told)) => {
            let begun = stream::iter(events)
                .map(Bytes::from)
                .map(Ok::<_, std::io::Error>);
            let breaking = stream::once(async move {
                let _ = told.await;
                Err(std::io::Error::other("cut"))
            });
            streamed(begun.chain(breaking).boxed())
        }
        Some(Reply::Limited(resets_at)) => limited(resets_at),
        None => error(
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "no reply left",
        ),
    }
}

fn streamed<E>(events: BoxStream<'static, Result<Bytes, E>>) -> Response<Body>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    Response::builder()
        .header("content-type", "text/event-stream")
        .header("anthropic-ratelimit-unified-status", "allowed")
        .header(
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour",
        )
        .header("anthropic-ratelimit-unified-reset", resets_at().to_string())
        .header("anthropic-ratelimit-unified-5h-status", "allowed")
        .header(
            "anthropic-ratelimit-unified-5h-reset",
            resets_at().to_string(),
        )
        .header("anthropic-ratelimit-unified-5h-utilization", "0.12")
        .body(Body::from_stream(events))
        .unwrap()
}

fn limited(resets_at: i64) -> Response<Body> {
    let mut response = error(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "limit");
    for (name, value) in [
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        (
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour".to_owned(),
        ),
        ("anthropic-ratelimit-unified-reset", resets_at.to_string()),
        (
            "anthropic-ratelimit-unified-5h-status",
            "rejected".to_owned(),
        ),
        (
            "anthropic-ratelimit-unified-5h-reset",
            resets_at.to_string(),
        ),
        (
            "anthropic-ratelimit-unified-5h-utilization",
            "1.02".to_owned(),
        ),
    ] {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}

fn opened(deltas: &[&str]) -> Vec<String> {
    let block = json!({"type": "text", "text": ""});
    let mut events = vec![
        message_start(),
        event(&json!({"type": "content_block_start", "index": 0, "content_block": block})),
    ];
    for text in deltas {
        let delta = json!({"type": "text_delta", "text": text});
        events.push(event(
            &json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        ));
    }
    events
}

fn message_start() -> String {
    let usage = json!({"input_tokens": 12, "output_tokens": 1});
    let id = format!("msg_{}", uuid::Uuid::new_v4());
    event(&json!({"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": "mock", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    }}))
}

fn closing(reason: &str) -> [String; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [
        event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})),
        event(&json!({"type": "message_stop"})),
    ]
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}
