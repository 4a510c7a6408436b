//! The parsers of foreign text, opened for tests that feed them anything. Behind the feature `foreign`; nothing that
//! serves a person uses it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use gateway_core::event::Event;
use gateway_core::failure::Failure;
use gateway_core::ids::SubscriptionId;
use gateway_core::usage::Reading;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;

use crate::anthropic_http::{AnthropicHttp, AnthropicSettings};
use crate::claude::stream::{Stream, TurnEnd};
use crate::codex::stream as codex;
use crate::http::exchange::{Heard, Protocol};
use crate::openai_http::{OpenAiHttp, OpenAiSettings};
use crate::opencode::stream as opencode;
use crate::sse::{Caps, SseEvents};

/// What a parser made of the text.
#[derive(Debug, Default)]
pub struct Outcome {
    pub events: Vec<Event>,
    pub failure: Option<Failure>,
    /// The text of an answer, if it ended as one.
    pub answer: Option<String>,
}

impl Outcome {
    /// The limit readings among the events.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.events.iter().filter_map(|event| match event {
            Event::Limit(reading) => Some(reading),
            _ => None,
        })
    }
}

/// The lines of `claude -p --output-format stream-json`.
pub fn claude(text: &str, now: Timestamp) -> Outcome {
    let mut stream = Stream::new(SubscriptionId::new("foreign"));
    let events = text
        .split('\n')
        .flat_map(|line| stream.push(line, now))
        .collect();
    let (failure, answer) = match stream.end() {
        Some(TurnEnd::Failed(failure)) => (Some(failure.clone()), None),
        Some(TurnEnd::Answered(answer)) => (None, Some(answer.text.clone())),
        Some(TurnEnd::Interrupted | TurnEnd::SessionMissing) | None => (None, None),
    };
    Outcome {
        events,
        failure,
        answer,
    }
}

/// The messages of `codex app-server`, one a line.
pub fn codex(text: &str, now: Timestamp) -> Outcome {
    let zone = jiff::tz::TimeZone::UTC;
    let mut stream = codex::Stream::new(SubscriptionId::new("foreign"), zone);
    let mut outcome = Outcome::default();
    for message in objects(text) {
        let method = message.get("method").and_then(Value::as_str);
        if let (Some(method), Some(params)) = (method, message.get("params")) {
            outcome.events.extend(stream.push(method, params, now));
        }
    }
    match stream.end() {
        Some(codex::TurnEnd::Failed(failure)) => outcome.failure = Some(failure.clone()),
        Some(codex::TurnEnd::Answered(answer)) => outcome.answer = Some(answer.text.clone()),
        Some(codex::TurnEnd::Interrupted) | None => {}
    }
    outcome
}

/// The events of `opencode serve`, one a line; the last object is also taken for what the server has stored and answered.
pub fn opencode(text: &str, now: Timestamp) -> Outcome {
    let mut stream = opencode::Stream::after(&[]);
    let events: Vec<Value> = objects(text).collect();
    let mut outcome = Outcome::default();
    for event in &events {
        outcome.events.extend(stream.push(event, now));
    }
    let last = events.last().cloned().unwrap_or_default();
    let stored = stream.take_stored(std::slice::from_ref(&last));
    outcome.events.extend(stored);
    match stream.end(last.get("info").unwrap_or(&Value::Null), now) {
        Ok(answer) => outcome.answer = Some(answer.text),
        Err(failure) => outcome.failure = Some(failure),
    }
    outcome
}

fn objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.split('\n')
        .filter_map(|line| serde_json::from_str(line).ok())
}

/// The event stream of the Anthropic Messages API.
pub fn anthropic(chunks: &[&[u8]], now: Timestamp) -> Outcome {
    let provider = AnthropicHttp::new(AnthropicSettings {
        subscription: SubscriptionId::new("foreign"),
        base_url: String::new(),
        key: SecretString::from("foreign"),
        max_tokens: 1,
        client: client(),
        now: Arc::new(move || now),
    });
    hear(provider.protocol(Value::Null), chunks)
}

/// The event stream of an OpenAI-compatible chat completion.
pub fn openai(chunks: &[&[u8]], now: Timestamp) -> Outcome {
    let provider = OpenAiHttp::new(OpenAiSettings {
        subscription: SubscriptionId::new("foreign"),
        base_url: String::new(),
        key: None,
        max_tokens: None,
        client: client(),
        now: Arc::new(move || now),
    });
    hear(provider.protocol(Value::Null), chunks)
}

fn hear<P: Protocol>(mut protocol: P, chunks: &[&[u8]]) -> Outcome {
    let chunks: Vec<io::Result<Bytes>> = chunks
        .iter()
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let mut stream = SseEvents::new(stream::iter(chunks), Caps::default(), || {});
    let mut outcome = Outcome::default();
    while let Some(Some(Ok(event))) = stream.next().now_or_never() {
        match protocol.hear(&event) {
            Heard::Events(events) => outcome.events.extend(events),
            Heard::Error(object) => {
                // A whole answer in one object is another shape of the same protocol.
                let _ = protocol.hear_whole(&object);
                break;
            }
            Heard::Complete => break,
        }
    }
    match protocol.close() {
        Ok(answer) => outcome.answer = Some(answer.text),
        Err(failure) => outcome.failure = Some(failure),
    }
    outcome
}

/// Never dials: the parsers are fed by hand.
fn client() -> reqwest::Client {
    static CLIENT: std::sync::OnceLock<reqwest::Client> = std::sync::OnceLock::new();
    CLIENT
        .get_or_init(|| {
            crate::install_tls();
            crate::http::client().expect("the platform's TLS roots can be read")
        })
        .clone()
}
