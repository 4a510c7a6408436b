//! A planned HTTP answer: headers, frames, and how it ends. Frames are flushed one by one.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// One answer, ready to be sent.
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) parts: VecDeque<Part>,
    /// Held back until this fires; `Some(None)` = until the client goes away.
    pub(super) hang: Option<Option<Arc<Notify>>>,
}

/// One thing that happens to the body.
pub(super) enum Part {
    Frame(String),
    /// Silence until the notify fires; `None` = until the client goes away.
    Stall(Option<Arc<Notify>>),
    /// The connection closes.
    Cut,
}

impl Reply {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self::text(code, "application/json", body.to_string())
    }

    pub(super) fn text(code: u16, content_type: &str, body: String) -> Self {
        Self {
            code,
            headers: vec![("content-type".into(), content_type.into())],
            parts: VecDeque::from([Part::Frame(body)]),
            hang: None,
        }
    }

    pub(super) fn stream(parts: impl IntoIterator<Item = Part>) -> Self {
        Self {
            code: 200,
            headers: vec![
                (
                    "content-type".into(),
                    "text/event-stream; charset=utf-8".into(),
                ),
                ("cache-control".into(), "no-cache".into()),
            ],
            parts: parts.into_iter().collect(),
            hang: None,
        }
    }

    pub(super) fn with_headers(
        mut self,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Waits if it must, then answers. A client that goes away before the end counts as a hang-up.
    pub(super) async fn send(
        self,
        hangups: Arc<watch::Sender<usize>>,
        closing: CancellationToken,
    ) -> Response {
        let guard = HangupGuard {
            hangups: Some(hangups),
        };
        if let Some(until) = self.hang {
            wait(until, &closing).await;
        }
        let playing = Playing {
            parts: self.parts,
            guard,
            closing,
        };
        let body = Body::from_stream(futures_util::stream::unfold(playing, Playing::next));
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::IM_A_TEAPOT);
        for (name, value) in self.headers {
            let name = HeaderName::try_from(name).expect("a script names headers that exist");
            let value =
                HeaderValue::try_from(value).expect("a script writes header values in ASCII");
            response.headers_mut().append(name, value);
        }
        response
    }
}

struct Playing {
    parts: VecDeque<Part>,
    guard: HangupGuard,
    closing: CancellationToken,
}

impl Playing {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        // Giving way once makes hyper flush the frame before: a cut must not swallow what was said.
        tokio::task::yield_now().await;
        loop {
            match self.parts.pop_front() {
                Some(Part::Frame(frame)) => {
                    if self.parts.is_empty() {
                        self.guard.complete();
                    }
                    return Some((Ok(Bytes::from(frame)), self));
                }
                Some(Part::Stall(until)) => wait(until, &self.closing).await,
                Some(Part::Cut) => {
                    self.guard.complete();
                    self.parts.clear();
                    return Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), self));
                }
                None => {
                    self.guard.complete();
                    return None;
                }
            }
        }
    }
}

async fn wait(until: Option<Arc<Notify>>, closing: &CancellationToken) {
    let fired = async {
        match until {
            Some(notify) => notify.notified().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = fired => {}
        () = closing.cancelled() => {}
    }
}

/// Counts a client that left before its answer was complete.
struct HangupGuard {
    hangups: Option<Arc<watch::Sender<usize>>>,
}

impl HangupGuard {
    fn complete(&mut self) {
        self.hangups = None;
    }
}

impl Drop for HangupGuard {
    fn drop(&mut self) {
        if let Some(hangups) = self.hangups.take() {
            hangups.send_modify(|count| *count += 1);
        }
    }
}
