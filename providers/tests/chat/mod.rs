//! A model API on loopback that speaks as much of chat/completions as the programs need. Replies are given in order; a
//! request beyond the last one gets a 400, which fails the turn at once.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// What one request gets.
pub(crate) enum Reply {
    /// A whole answer, a delta per piece.
    Text(Vec<&'static str>),
    /// Calls of tools: name and arguments.
    Tools(Vec<(&'static str, Value)>),
    /// The beginning of an answer, then silence.
    Hanging(Vec<&'static str>),
    /// The beginning of an answer; then the connection breaks.
    Cut(Vec<&'static str>),
    /// A status with extra headers.
    Status(u16, Vec<(&'static str, String)>, String),
    /// A page instead of an answer, under status 200.
    Html,
}

impl Reply {
    pub(crate) fn error(status: u16, error: &Value) -> Self {
        Self::Status(status, Vec::new(), json!({"error": error}).to_string())
    }
}

/// The server; it ends with the test's runtime.
pub(crate) struct Mock {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Value>>,
    count: watch::Sender<usize>,
}

impl Mock {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.replies.lock().extend(replies);
    }

    /// Forgets the replies nobody asked for and the requests so far.
    pub(crate) fn clear(&self) {
        self.shared.replies.lock().clear();
        self.shared.requests.lock().clear();
        self.shared.count.send_replace(0);
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, body: Bytes) -> Response<Body> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let model = request["model"].as_str().unwrap_or("mock").to_owned();
    shared.requests.lock().push(request);
    shared.count.send_modify(|count| *count += 1);
    let reply = shared.replies.lock().pop_front();
    match reply {
        Some(Reply::Text(pieces)) => {
            let chunks = texts(&pieces, &model).chain(closing("stop", &model));
            streamed(whole(chunks))
        }
        Some(Reply::Tools(calls)) => {
            let calls = calls.iter().enumerate().map(|(index, (name, input))| {
                let function = json!({"name": name, "arguments": input.to_string()});
                let id = format!("call_{}", uuid::Uuid::new_v4().simple());
                json!({"index": index, "id": id, "type": "function", "function": function})
            });
            let calls: Vec<Value> = calls.collect();
            let opening = chunk(&json!({"role": "assistant", "content": null}), None, &model);
            let calling = chunk(&json!({"tool_calls": calls}), None, &model);
            streamed(whole(
                [opening, calling]
                    .into_iter()
                    .chain(closing("tool_calls", &model)),
            ))
        }
        Some(Reply::Hanging(pieces)) => streamed(
            whole(texts(&pieces, &model))
                .chain(stream::pending())
                .boxed(),
        ),
        Some(Reply::Cut(pieces)) => {
            let begun: Vec<String> = texts(&pieces, &model).collect();
            let begun = stream::iter(begun.into_iter().map(Bytes::from).map(Ok));
            // The program sees nothing of a chunk the break follows at once.
            let breaking = stream::once(async {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                Err(std::io::Error::other("cut"))
            });
            streamed(begun.chain(breaking).boxed())
        }
        Some(Reply::Status(status, headers, body)) => {
            let mut response = Response::builder()
                .status(status)
                .header("content-type", "application/json");
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).unwrap()
        }
        Some(Reply::Html) => Response::builder()
            .header("content-type", "text/html")
            .body(Body::from("<html><body>Welcome to the hotel</body></html>"))
            .unwrap(),
        None => Response::builder()
            .status(400)
            .header("content-type", "application/json")
            .body(Body::from(
                json!({"error": {"message": "no reply left", "type": "invalid_request_error"}})
                    .to_string(),
            ))
            .unwrap(),
    }
}

fn whole(chunks: impl Iterator<Item = String>) -> BoxStream<'static, Result<Bytes, Infallible>> {
    let chunks: Vec<String> = chunks.collect();
    stream::iter(chunks.into_iter().map(Bytes::from).map(Ok)).boxed()
}

fn streamed<E>(events: BoxStream<'static, Result<Bytes, E>>) -> Response<Body>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(events))
        .unwrap()
}

fn texts<'a>(pieces: &'a [&'static str], model: &'a str) -> impl Iterator<Item = String> + 'a {
    let opening = chunk(&json!({"role": "assistant", "content": ""}), None, model);
    let pieces = pieces
        .iter()
        .map(move |piece| chunk(&json!({"content": piece}), None, model));
    std::iter::once(opening).chain(pieces)
}

fn closing(finish: &'static str, model: &str) -> [String; 3] {
    let usage = json!({
        "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 10},
    });
    let last = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [], "usage": usage});
    [
        chunk(&json!({}), Some(finish), model),
        format!("data: {last}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ]
}

fn chunk(delta: &Value, finish: Option<&str>, model: &str) -> String {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices});
    format!("data: {chunk}\n\n")
}
