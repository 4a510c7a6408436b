//! Upstream servers on loopback: they speak the real wire protocols, answer from a script and count what reaches them.
//!
//! For tests and `baton demo`. Not a mock of our own providers: nothing here knows them, so what the servers counted is
//! evidence. A [`Loopback`] binds a port the system chooses on 127.0.0.1 and closes it when it is dropped; every request
//! is recorded before it is answered, whatever its path.

mod anthropic;
mod openai;
mod reply;
mod responses;
mod step;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use step::{Cut, Step};

/// The largest request body the servers read.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Orders requests over all servers of the process.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Which upstream a server plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The Messages API: `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/chat/completions`, as OpenAI and its many compatibles speak it.
    OpenAi,
    /// The Responses API: `POST …/responses`, as Codex speaks it. Limits come as `x-codex-*` headers.
    Responses,
}

/// One request as the server received it, secrets included.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// Grows over all servers of the process: requests of two servers can be ordered.
    pub at_seq: u64,
    pub method: String,
    /// Without the query.
    pub path: String,
    /// In wire order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; `Null` if it is none.
    pub body: Value,
    /// The body as text.
    pub text: String,
}

impl RecordedRequest {
    /// Returns the first header of this (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the text of the newest user message; empty if there is none. Content blocks are joined.
    pub fn prompt(&self) -> String {
        let messages = self.body.get("messages").or_else(|| self.body.get("input"));
        let messages = messages.and_then(Value::as_array);
        let newest = messages
            .into_iter()
            .flatten()
            .rev()
            .find(|message| message.get("role").and_then(Value::as_str) == Some("user"));
        newest
            .and_then(|message| message.get("content"))
            .map(content_text)
            .unwrap_or_default()
    }

    fn wants_stream(&self) -> bool {
        self.body.get("stream").and_then(Value::as_bool) == Some(true)
    }

    fn model(&self) -> &str {
        self.body
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or("loopback-model")
    }
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

/// Decides the answer to a request no scripted step waits for.
type Otherwise = Arc<dyn Fn(&RecordedRequest) -> Step + Send + Sync>;

/// A running server; closed when dropped.
pub struct Loopback {
    address: SocketAddr,
    shared: Arc<Shared>,
    _close_on_drop: DropGuard,
}

struct Shared {
    wire: Wire,
    steps: Mutex<VecDeque<Step>>,
    otherwise: Mutex<Otherwise>,
    requests: Mutex<Vec<RecordedRequest>>,
    count: watch::Sender<usize>,
    hangups: Arc<watch::Sender<usize>>,
    closing: CancellationToken,
}

impl Loopback {
    /// Binds a free port on 127.0.0.1 and serves on the current runtime.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(wire: Wire) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let closing = CancellationToken::new();
        let shared = Arc::new(Shared::new(wire, closing.clone()));
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let closed = closing.clone().cancelled_owned();
        tokio::spawn(async move {
            let serving = axum::serve(listener, router).with_graceful_shutdown(closed);
            if let Err(error) = serving.await {
                tracing::debug!(%error, "a loopback server ended");
            }
        });
        Ok(Self {
            address,
            shared,
            _close_on_drop: closing.drop_guard(),
        })
    }

    /// Returns `http://127.0.0.1:PORT`, without a path.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues one answer; queued answers are used up in order before [`otherwise`](Self::otherwise) is asked.
    pub fn enqueue(&self, step: Step) {
        self.shared.steps.lock().push_back(step);
    }

    /// Queues several answers.
    pub fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.steps.lock().extend(steps);
    }

    /// Sets what answers when nothing is queued; at first a short text.
    pub fn otherwise(&self, decide: impl Fn(&RecordedRequest) -> Step + Send + Sync + 'static) {
        *self.shared.otherwise.lock() = Arc::new(decide);
    }

    /// Returns every request so far, oldest first.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().clone()
    }

    /// Returns how many requests arrived, of any path.
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Waits until at least `count` requests have arrived.
    pub async fn requests_reach(&self, count: usize) {
        reach(&self.shared.count, count).await;
    }

    /// Waits until at least `count` clients went away before their answer was complete.
    pub async fn hangups_reach(&self, count: usize) {
        reach(&self.shared.hangups, count).await;
    }
}

async fn reach(counter: &watch::Sender<usize>, count: usize) {
    let mut seen = counter.subscribe();
    let reached = seen.wait_for(|now| *now >= count).await;
    reached.expect("the sender is borrowed here, so it is not dropped");
}

impl Shared {
    fn new(wire: Wire, closing: CancellationToken) -> Self {
        Self {
            wire,
            steps: Mutex::default(),
            otherwise: Mutex::new(Arc::new(|_: &RecordedRequest| {
                Step::answer("Hello from the loopback server.")
            })),
            requests: Mutex::default(),
            count: watch::Sender::new(0),
            hangups: Arc::new(watch::Sender::new(0)),
            closing,
        }
    }

    fn record(&self, request: &RecordedRequest) {
        self.requests.lock().push(request.clone());
        self.count.send_modify(|count| *count += 1);
    }

    fn next_step(&self, request: &RecordedRequest) -> Step {
        let queued = self.steps.lock().pop_front();
        queued.unwrap_or_else(|| {
            let decide = self.otherwise.lock().clone();
            decide(request)
        })
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(request) = read(request).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    shared.record(&request);
    let reply = match (shared.wire, request.method.as_str(), request.path.as_str()) {
        (Wire::Anthropic, "POST", "/v1/messages") => {
            anthropic::reply(shared.next_step(&request), &request)
        }
        (Wire::Anthropic, "POST", "/v1/messages/count_tokens") => anthropic::count_tokens(&request),
        (Wire::OpenAi, "POST", "/v1/chat/completions" | "/chat/completions") => {
            openai::reply(shared.next_step(&request), &request)
        }
        (Wire::Responses, "POST", path) if path.ends_with("/responses") => {
            responses::reply(shared.next_step(&request), &request)
        }
        (Wire::Anthropic, ..) => anthropic::not_found(&request),
        (Wire::OpenAi | Wire::Responses, ..) => openai::not_found(&request),
    };
    reply
        .send(shared.hangups.clone(), shared.closing.clone())
        .await
}

async fn read(request: Request) -> Option<RecordedRequest> {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, MAX_REQUEST_BYTES).await.ok()?;
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    Some(RecordedRequest {
        at_seq: SEQUENCE.fetch_add(1, Ordering::SeqCst),
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: headers.collect(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

#[cfg(test)]
mod tests;
