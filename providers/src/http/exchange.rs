//! One request and its answer, for any protocol: go, send, read, judge. The protocol says what to send and what each
//! object of the stream means; everything about time, size, stop and broken connections is here.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use gateway_core::event::Event;
use gateway_core::failure::{AttemptLimits, Evidence, Failure, FailureKind, FailureScope, detail};
use gateway_core::turn::{Answer, AttemptEnd};
use gateway_core::usage::Reading;
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::judge;
use super::pace::{Interrupt, Pace};
use crate::Stop;
use crate::sse::{Caps, SseEvent, SseEvents, chain};

/// The most of a refusal's body that is read.
const MAX_ERROR_BYTES: usize = 256 * 1024;

/// The clock, passed in.
pub(crate) type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What one protocol makes of one object of its stream.
pub(crate) enum Heard {
    Events(Vec<Event>),
    /// The object is an error of the provider.
    Error(Value),
    /// The last object has come: what follows is not read.
    Complete,
}

/// One attempt's side of a protocol.
pub(crate) trait Protocol: Send + 'static {
    /// The request, complete.
    fn request(&self) -> reqwest::RequestBuilder;
    /// The secret to strike out of texts.
    fn secret(&self) -> Option<&str>;
    /// Window readings of the answer's headers, on success and on refusal.
    fn readings(&self, headers: &HeaderMap, now: Timestamp) -> Vec<Reading>;
    /// What this refusal says of a window, beyond the common judgement.
    fn refine(&self, failure: Failure, headers: &HeaderMap, now: Timestamp) -> Failure;
    /// Takes one event of the stream.
    fn hear(&mut self, event: &SseEvent) -> Heard;
    /// Takes a whole answer that came without a stream.
    fn hear_whole(&mut self, body: &Value) -> Heard;
    /// Whether the answer is whole already, so that a connection that breaks now takes nothing away.
    fn is_complete(&self) -> bool;
    /// Closes: the answer, or what is missing.
    fn close(self) -> Result<Answer, Failure>;
}

/// Runs the attempt to its end.
pub(crate) async fn run<P: Protocol>(
    protocol: P,
    limits: AttemptLimits,
    mut go: oneshot::Receiver<()>,
    now: Now,
    events: mpsc::Sender<Event>,
    stop: Stop,
) -> AttemptEnd {
    let mut pace = Pace::start(limits, stop);
    if let Err(interrupt) = pace.go(&mut go).await {
        return interrupt.end();
    }
    let exchange = Exchange {
        protocol,
        pace,
        now,
        events,
    };
    match exchange.run().await {
        Ok(answer) => AttemptEnd::Answered(answer),
        Err(end) => end,
    }
}

struct Exchange<P> {
    protocol: P,
    pace: Pace,
    now: Now,
    events: mpsc::Sender<Event>,
}

impl<P: Protocol> Exchange<P> {
    async fn run(mut self) -> Result<Answer, AttemptEnd> {
        let sent = self.bounded(self.protocol.request().send()).await?;
        let response = sent.map_err(|error| self.unsent(&error))?;
        self.pace.heard();
        for reading in self.protocol.readings(response.headers(), (self.now)()) {
            self.emit(Event::Limit(reading)).await?;
        }
        match shape(&response) {
            Shape::Refusal => return Err(self.refusal(response).await?),
            Shape::Whole => self.whole(response).await?,
            Shape::Stream => self.stream(response).await?,
        }
        self.protocol.close().map_err(AttemptEnd::Failed)
    }

    async fn stream(&mut self, response: reqwest::Response) -> Result<(), AttemptEnd> {
        let headers = response.headers().clone();
        let life = self.pace.life();
        let mut stream = SseEvents::new(response.bytes_stream(), Caps::default(), move || {
            life.heard()
        });
        while let Some(read) = self.bounded(stream.next()).await? {
            let event = match read {
                Ok(event) => event,
                Err(_) if self.protocol.is_complete() => return Ok(()),
                Err(error) => return Err(self.cut(&error)),
            };
            let heard = self.protocol.hear(&event);
            match self.take(heard, &headers).await? {
                More::Yes => {}
                More::No => return Ok(()),
            }
        }
        Ok(())
    }

    /// An answer that is one object although a stream was asked for, or an error under a success status.
    async fn whole(&mut self, response: reqwest::Response) -> Result<(), AttemptEnd> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.body(response, Caps::default().event_bytes).await?;
        let text = String::from_utf8_lossy(&body);
        match serde_json::from_str::<Value>(&text) {
            Ok(object) => {
                let heard = self.protocol.hear_whole(&object);
                self.take(heard, &headers).await.map(drop)
            }
            Err(_) if text.trim().is_empty() => Err(failed(
                FailureKind::Transport,
                "the provider answered with an empty body",
            )),
            Err(_) => Err(self.answered(status, &headers, &text)),
        }
    }

    async fn take(&mut self, heard: Heard, headers: &HeaderMap) -> Result<More, AttemptEnd> {
        match heard {
            Heard::Events(events) => {
                for event in events {
                    self.emit(event).await?;
                }
                Ok(More::Yes)
            }
            Heard::Complete => Ok(More::No),
            Heard::Error(object) => {
                let evidence = Evidence::of_object(judge::headers(headers), &object);
                Err(self.judged(&evidence, headers))
            }
        }
    }

    async fn refusal(&mut self, response: reqwest::Response) -> Result<AttemptEnd, AttemptEnd> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.body(response, MAX_ERROR_BYTES).await?;
        let text = String::from_utf8_lossy(&body);
        Ok(self.answered(status, &headers, &text))
    }

    fn answered(&self, status: u16, headers: &HeaderMap, text: &str) -> AttemptEnd {
        let evidence = Evidence::of_answer(status, judge::headers(headers), text);
        self.judged(&evidence, headers)
    }

    fn judged(&self, evidence: &Evidence, headers: &HeaderMap) -> AttemptEnd {
        let now = (self.now)();
        let failure = judge::judged(evidence, self.protocol.secret(), now);
        AttemptEnd::Failed(self.protocol.refine(failure, headers, now))
    }

    /// At most `limit` bytes of the body; a body that breaks off is what came of it.
    async fn body(
        &mut self,
        response: reqwest::Response,
        limit: usize,
    ) -> Result<Bytes, AttemptEnd> {
        let mut stream = response.bytes_stream();
        let mut body = BytesMut::new();
        while let Some(Ok(chunk)) = self.bounded(stream.next()).await? {
            self.pace.heard();
            let room = limit.saturating_sub(body.len());
            body.extend(chunk.iter().take(room));
            if body.len() >= limit {
                break;
            }
        }
        Ok(body.freeze())
    }

    async fn emit(&mut self, event: Event) -> Result<(), AttemptEnd> {
        // A receiver that is gone is a dropped handle; its stop ends the attempt.
        let _ = self.bounded(self.events.send(event)).await?;
        Ok(())
    }

    async fn bounded<T>(&self, work: impl Future<Output = T>) -> Result<T, AttemptEnd> {
        self.pace.bounded(work).await.map_err(Interrupt::end)
    }

    fn unsent(&self, error: &reqwest::Error) -> AttemptEnd {
        let (kind, scope) = match () {
            () if error.is_builder() => (FailureKind::BadRequest, FailureScope::Account), // the route's own setting, not the request
            () if error.is_connect() => (FailureKind::Transport, FailureScope::NetworkEdge),
            () if error.is_timeout() => (FailureKind::Timeout, FailureScope::Request),
            () => (FailureKind::Transport, FailureScope::Request),
        };
        AttemptEnd::Failed(Failure::new(kind, scope, self.line(&chain(error))))
    }

    fn cut(&self, error: &str) -> AttemptEnd {
        failed(
            FailureKind::Transport,
            &self.line(&format!("the stream broke: {error}")),
        )
    }

    fn line(&self, text: &str) -> String {
        detail::line(text, false, self.protocol.secret())
    }
}

enum More {
    Yes,
    No,
}

enum Shape {
    Refusal,
    /// One body: JSON, HTML or nothing.
    Whole,
    Stream,
}

/// Only a body that says it is something else is not read as a stream: some endpoints forget the type.
fn shape(response: &reqwest::Response) -> Shape {
    if !response.status().is_success() {
        return Shape::Refusal;
    }
    let kind = response.headers().get("content-type");
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let empty = response.content_length() == Some(0);
    match empty || kind.contains("json") && !kind.contains("stream") || kind.contains("html") {
        true => Shape::Whole,
        false => Shape::Stream,
    }
}

pub(crate) fn failed(kind: FailureKind, detail: &str) -> AttemptEnd {
    AttemptEnd::Failed(Failure::new(kind, FailureScope::Request, detail))
}
