//! chat/completions of OpenAI and of everything compatible with it: hosted, aggregated or local.
//!
//! No tools, no sessions and no retry here: a refusal is a value, and the turn decides. Headers become readings where they
//! speak of a quota: `x-codex-*` (a relay of a ChatGPT subscription), and the budgets of `x-ratelimit-*` that are longer
//! than a burst, for the model asked. Minute budgets pace the same account and are no windows; a refusal's reset is read
//! from them.

mod probe;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::event::{Event, TokenUsage};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::SubscriptionId;
use gateway_core::turn::Answer;
use gateway_core::usage::source::{Origin, codex, ratelimit_headers};
use gateway_core::usage::{Reading, ReadingSource};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::http::exchange::{self, Heard, Protocol};
use crate::http::{conversation, join, judge};
use crate::sse::SseEvent;
use crate::{
    AttemptHandle, AttemptRequest, Health, LoginFacts, Permissions, ProbeError, Probed, Provider,
};

/// What one subscription on an OpenAI-compatible endpoint needs.
#[derive(Clone)]
pub struct OpenAiSettings {
    /// The registry's join key for readings, and the name in messages.
    pub subscription: SubscriptionId,
    /// For example `https://api.openai.com/v1`; a trailing slash or a missing `/v1` changes nothing.
    pub base_url: String,
    /// `None` = the endpoint wants none (a local one).
    pub key: Option<SecretString>,
    /// The most tokens an answer may have; `None` = the endpoint's own limit.
    pub max_tokens: Option<u32>,
    pub client: reqwest::Client,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A subscription on an OpenAI-compatible endpoint.
pub struct OpenAiHttp(Arc<OpenAiSettings>);

impl OpenAiHttp {
    /// Takes the settings as they are; [`Provider::health`] says whether they can work.
    pub fn new(settings: OpenAiSettings) -> Self {
        Self(Arc::new(settings))
    }

    /// One attempt's side, before anything is sent.
    pub(crate) fn protocol(&self, body: Value) -> Chat {
        Chat {
            settings: self.0.clone(),
            body,
            text: String::new(),
            refusal: String::new(),
            usage: TokenUsage::default(),
            finish: None,
            done: false,
            thinking: false,
        }
    }
}

#[async_trait]
impl Provider for OpenAiHttp {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let now = self.0.now.clone();
        let chat = self.protocol(body(&request, self.0.max_tokens));
        AttemptHandle::spawn(move |events, stop| {
            exchange::run(chat, request.limits, request.go, now, events, stop)
        })
    }

    fn keeps_sessions(&self) -> bool {
        false
    }

    fn check_permissions(&self, _permissions: Permissions) -> Result<(), String> {
        Ok(()) // No tool is ever offered, so every level is kept.
    }

    async fn probe(&self, limit: Duration) -> Result<Probed, ProbeError> {
        match probe::address(&self.0.base_url) {
            Some(address) => probe::capped(&self.0, address, limit).await,
            None => Err(ProbeError::Unsupported(
                "this endpoint documents none".to_owned(),
            )),
        }
    }

    async fn login(&self) -> LoginFacts {
        probe::login(&self.0)
    }

    async fn health(&self) -> Health {
        let empty = |key: &SecretString| key.expose_secret().trim().is_empty();
        if self.0.key.as_ref().is_some_and(empty) {
            return Health::Broken {
                problem: format!("{}: the API key is empty", self.0.subscription),
                hint: "put the key into the variable or file the subscription names, or name none for a local endpoint".into(),
            };
        }
        match join(&self.0.base_url, "chat/completions") {
            Ok(_) => Health::Ready { version: None },
            Err(problem) => Health::Broken {
                problem: format!("{}: {problem}", self.0.subscription),
                hint: "set base_url to the API's address, for example https://api.openai.com/v1"
                    .into(),
            },
        }
    }
}

fn body(request: &AttemptRequest, max_tokens: Option<u32>) -> Value {
    let mut body = json!({
        "model": request.model,
        "messages": conversation(&request.history, &request.prompt),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let (Some(max), Value::Object(fields)) = (max_tokens, &mut body) {
        fields.insert("max_tokens".into(), max.into());
    }
    body
}

/// One attempt.
pub(crate) struct Chat {
    settings: Arc<OpenAiSettings>,
    body: Value,
    text: String,
    refusal: String,
    usage: TokenUsage,
    finish: Option<String>,
    done: bool,
    /// Whether the current stretch of thinking was told already.
    thinking: bool,
}

impl Protocol for Chat {
    fn request(&self) -> reqwest::RequestBuilder {
        // A base that is no URL becomes an empty one, which the client refuses as a builder error.
        let url = join(&self.settings.base_url, "chat/completions")
            .map(String::from)
            .unwrap_or_default();
        let request = self
            .settings
            .client
            .post(url)
            .header("accept", "text/event-stream")
            .json(&self.body);
        match self.secret() {
            Some(key) => request.bearer_auth(key.trim()),
            None => request,
        }
    }

    fn secret(&self) -> Option<&str> {
        self.settings.key.as_ref().map(|key| key.expose_secret())
    }

    fn readings(&self, headers: &HeaderMap, now: Timestamp) -> Vec<Reading> {
        let origin = Origin::new(&self.settings.subscription, now, ReadingSource::Header);
        let headers = judge::headers(headers);
        let model = self.body.get("model").and_then(Value::as_str);
        let mut readings = codex::headers(&headers, &origin);
        readings.extend(ratelimit_headers::readings(&headers, model, &origin));
        readings
    }

    fn refine(&self, failure: Failure, _headers: &HeaderMap, _now: Timestamp) -> Failure {
        failure
    }

    fn hear(&mut self, event: &SseEvent) -> Heard {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Heard::Complete;
        }
        match serde_json::from_str::<Value>(&event.data) {
            Ok(object) if is_error(&object, event.name.as_deref()) => Heard::Error(object),
            Ok(object) => Heard::Events(self.chunk(&object, "delta")),
            Err(_) => Heard::Events(Vec::new()), // a missing end is found at the close
        }
    }

    fn hear_whole(&mut self, body: &Value) -> Heard {
        if is_error(body, None) || body.get("choices").is_none() {
            return Heard::Error(body.clone());
        }
        self.done = true;
        Heard::Events(self.chunk(body, "message"))
    }

    fn is_complete(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn close(self) -> Result<Answer, Failure> {
        let request = |kind, detail: &str| Err(Failure::new(kind, FailureScope::Request, detail));
        match self.finish.as_deref() {
            Some("content_filter") => request(
                FailureKind::ContentFilter,
                "the provider's content filter ended the answer",
            ),
            Some("error") => request(
                FailureKind::Transport,
                "the provider ended the answer with an error",
            ),
            _ if !self.is_complete() => request(
                FailureKind::Transport,
                "the stream ended before its last event",
            ),
            _ if !self.text.trim().is_empty() => Ok(Answer {
                text: self.text,
                usage: self.usage,
            }),
            _ if !self.refusal.is_empty() => {
                request(FailureKind::ContentFilter, "the model refused to answer")
            }
            _ => request(
                FailureKind::Transport,
                "the provider ended its answer without any text",
            ),
        }
    }
}

impl Chat {
    /// Takes one chunk (`delta`) or a whole completion (`message`).
    fn chunk(&mut self, object: &Value, part: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let choice = object.pointer("/choices/0").unwrap_or(&Value::Null);
        let message = choice.get(part).unwrap_or(&Value::Null);
        let text = |name: &str| {
            message
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        if let Some(delta) = text("content") {
            self.thinking = false;
            self.text.push_str(delta);
            events.push(Event::Text {
                block: 0,
                delta: delta.to_owned(),
            });
        } else if text("reasoning_content").or(text("reasoning")).is_some() && !self.thinking {
            self.thinking = true;
            events.push(Event::Activity {
                what: "thinking".into(),
            });
        }
        self.refusal.push_str(text("refusal").unwrap_or_default());
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
        }
        events.extend(self.take_usage(object.get("usage")));
        events
    }

    /// `prompt_tokens` includes the cached ones; ours does not.
    fn take_usage(&mut self, usage: Option<&Value>) -> Option<Event> {
        let usage = usage.filter(|usage| usage.is_object())?;
        let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let cached = count("/prompt_tokens_details/cached_tokens");
        let prompt = count("/prompt_tokens");
        self.usage = TokenUsage {
            input: prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or_default())),
            output: count("/completion_tokens"),
            cache_read: cached,
            cache_write: None,
        };
        Some(Event::Usage(self.usage))
    }
}

/// An error object, however it is wrapped: `{"error": …}`, `event: error`, or `{"code": "…", "message": "…"}` alone.
fn is_error(object: &Value, event: Option<&str>) -> bool {
    let named = object.get("error").is_some_and(|error| !error.is_null());
    let bare = object.get("message").is_some_and(Value::is_string)
        && object.get("choices").is_none()
        && (object.get("code").is_some() || object.get("type").is_some());
    named || bare || event == Some("error")
}

#[cfg(test)]
mod tests;
