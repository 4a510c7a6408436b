//! The Anthropic Messages API: the conversation so far and the prompt go out, text comes back as a stream.
//!
//! No tools, no sessions, no system prompt and no retry here: a refusal is a value, and the turn decides. The key goes
//! into one header and nowhere else.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::event::{Event, TokenUsage};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::SubscriptionId;
use gateway_core::turn::Answer;
use gateway_core::usage::source::{Origin, claude};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::http::exchange::{self, Heard, Protocol};
use crate::http::{conversation, join, judge, key_login};
use crate::sse::SseEvent;
use crate::{AttemptHandle, AttemptRequest, Health, LoginFacts, Permissions, Provider};

/// The version of the API this code speaks.
const API_VERSION: &str = "2023-06-01";

/// What one subscription on the Messages API needs.
#[derive(Clone)]
pub struct AnthropicSettings {
    /// The registry's join key for readings.
    pub subscription: SubscriptionId,
    /// For example `https://api.anthropic.com`; a trailing slash or `/v1` changes nothing.
    pub base_url: String,
    pub key: SecretString,
    /// The most tokens an answer may have.
    pub max_tokens: u32,
    pub client: reqwest::Client,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A subscription on the Messages API.
pub struct AnthropicHttp(Arc<AnthropicSettings>);

impl AnthropicHttp {
    /// Takes the settings as they are; [`Provider::health`] says whether they can work.
    pub fn new(settings: AnthropicSettings) -> Self {
        Self(Arc::new(settings))
    }

    /// One attempt's side, before anything is sent.
    pub(crate) fn protocol(&self, body: Value) -> Messages {
        Messages {
            settings: self.0.clone(),
            body,
            text: String::new(),
            usage: TokenUsage::default(),
            stop_reason: None,
            complete: false,
        }
    }
}

#[async_trait]
impl Provider for AnthropicHttp {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let now = self.0.now.clone();
        let messages = self.protocol(body(&request, self.0.max_tokens));
        AttemptHandle::spawn(move |events, stop| {
            exchange::run(messages, request.limits, request.go, now, events, stop)
        })
    }

    fn keeps_sessions(&self) -> bool {
        false
    }

    fn check_permissions(&self, _permissions: Permissions) -> Result<(), String> {
        Ok(()) // No tool is ever offered, so every level is kept.
    }

    async fn login(&self) -> LoginFacts {
        let key = self.0.key.expose_secret().trim();
        key_login(&self.0.base_url, Some(key))
    }

    async fn health(&self) -> Health {
        if self.0.key.expose_secret().trim().is_empty() {
            return Health::Broken {
                problem: format!("{}: the API key is empty", self.0.subscription),
                hint: "put the key into the variable or file the subscription names".into(),
            };
        }
        match join(&self.0.base_url, "messages") {
            Ok(_) => Health::Ready { version: None },
            Err(problem) => Health::Broken {
                problem: format!("{}: {problem}", self.0.subscription),
                hint: "set base_url to the API's address, for example https://api.anthropic.com"
                    .into(),
            },
        }
    }
}

fn body(request: &AttemptRequest, max_tokens: u32) -> Value {
    json!({
        "model": request.model,
        "max_tokens": max_tokens,
        "stream": true,
        "messages": conversation(&request.history, &request.prompt),
    })
}

/// One attempt.
pub(crate) struct Messages {
    settings: Arc<AnthropicSettings>,
    body: Value,
    text: String,
    usage: TokenUsage,
    stop_reason: Option<String>,
    complete: bool,
}

impl Protocol for Messages {
    fn request(&self) -> reqwest::RequestBuilder {
        // A base that is no URL becomes an empty one, which the client refuses as a builder error.
        let url = join(&self.settings.base_url, "messages")
            .map(String::from)
            .unwrap_or_default();
        let mut key =
            reqwest::header::HeaderValue::from_str(self.settings.key.expose_secret().trim())
                .unwrap_or_else(|_| reqwest::header::HeaderValue::from_static(""));
        key.set_sensitive(true);
        self.settings
            .client
            .post(url)
            .header("x-api-key", key)
            .header("anthropic-version", API_VERSION)
            .header("accept", "text/event-stream")
            .json(&self.body)
    }

    fn secret(&self) -> Option<&str> {
        Some(self.settings.key.expose_secret())
    }

    fn readings(&self, headers: &HeaderMap, now: Timestamp) -> Vec<Reading> {
        let origin = Origin::new(&self.settings.subscription, now, ReadingSource::Header);
        claude::headers(&judge::headers(headers), &origin)
    }

    fn refine(&self, failure: Failure, headers: &HeaderMap, now: Timestamp) -> Failure {
        // Of several windows that refuse, the one that resets last: all must be open again.
        let readings = self.readings(headers, now).into_iter();
        let refused = readings
            .filter(|reading| reading.status == WindowStatus::Rejected)
            .max_by_key(|reading| reading.resets_at);
        match refused {
            Some(window) if failure.kind == FailureKind::RateLimit => {
                let ahead = window.resets_at.filter(|at| *at > now);
                let retry_at = ahead.or(failure.retry_at);
                failure.retry_at(retry_at).window(Some(window.window))
            }
            _ => failure,
        }
    }

    fn hear(&mut self, event: &SseEvent) -> Heard {
        let Ok(object) = serde_json::from_str::<Value>(&event.data) else {
            return Heard::Events(Vec::new()); // not ours to understand; a missing end is found at the close
        };
        let kind = object
            .get("type")
            .and_then(Value::as_str)
            .or(event.name.as_deref());
        match kind.unwrap_or_default() {
            "message_start" => self.take_usage(object.pointer("/message/usage")),
            "content_block_start" => self.block_start(&object),
            "content_block_delta" => self.delta(&object),
            "message_delta" => {
                let reason = object.pointer("/delta/stop_reason").and_then(Value::as_str);
                self.stop_reason = reason.map(str::to_owned).or(self.stop_reason.take());
                self.take_usage(object.get("usage"))
            }
            "message_stop" => {
                self.complete = true;
                Heard::Complete
            }
            "error" => Heard::Error(object),
            _ => Heard::Events(Vec::new()),
        }
    }

    fn hear_whole(&mut self, body: &Value) -> Heard {
        let Some(content) = body.get("content").and_then(Value::as_array) else {
            return Heard::Error(body.clone());
        };
        let mut events = Vec::new();
        for (block, content) in content.iter().enumerate() {
            if let Some(text) = content.get("text").and_then(Value::as_str) {
                events.extend(self.say(block as u64, text));
            }
        }
        if let Heard::Events(usage) = self.take_usage(body.get("usage")) {
            events.extend(usage);
        }
        self.stop_reason = body
            .get("stop_reason")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.complete = true;
        Heard::Events(events)
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn close(self) -> Result<Answer, Failure> {
        let request = |kind, detail: &str| Err(Failure::new(kind, FailureScope::Request, detail));
        match self.stop_reason.as_deref() {
            _ if !self.complete => request(
                FailureKind::Transport,
                "the stream ended before message_stop",
            ),
            Some("refusal") => request(
                FailureKind::ContentFilter,
                "the model's safety filter ended the answer",
            ),
            Some("model_context_window_exceeded") => Err(Failure::new(
                FailureKind::ContextOverflow,
                FailureScope::Session,
                "the answer ran into the end of the model's context window",
            )),
            _ if self.text.trim().is_empty() => request(
                FailureKind::Transport,
                "the provider ended its answer without any text",
            ),
            _ => Ok(Answer {
                text: self.text,
                usage: self.usage,
            }),
        }
    }
}

impl Messages {
    fn block_start(&mut self, object: &Value) -> Heard {
        let block = object
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        match object
            .pointer("/content_block/type")
            .and_then(Value::as_str)
        {
            Some("text") => {
                let text = object
                    .pointer("/content_block/text")
                    .and_then(Value::as_str);
                Heard::Events(
                    text.and_then(|text| self.say(block, text))
                        .into_iter()
                        .collect(),
                )
            }
            Some("thinking" | "redacted_thinking") => Heard::Events(vec![Event::Activity {
                what: "thinking".into(),
            }]),
            _ => Heard::Events(Vec::new()),
        }
    }

    fn delta(&mut self, object: &Value) -> Heard {
        let block = object
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let text = object.pointer("/delta/text").and_then(Value::as_str);
        Heard::Events(
            text.and_then(|text| self.say(block, text))
                .into_iter()
                .collect(),
        )
    }

    fn say(&mut self, block: u64, text: &str) -> Option<Event> {
        if text.is_empty() {
            return None;
        }
        self.text.push_str(text);
        Some(Event::Text {
            block: u32::try_from(block).unwrap_or(u32::MAX),
            delta: text.to_owned(),
        })
    }

    /// The counts are running totals; a field that is not sent again keeps its value.
    fn take_usage(&mut self, usage: Option<&Value>) -> Heard {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return Heard::Events(Vec::new());
        };
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        self.usage = TokenUsage {
            input: count("input_tokens").or(self.usage.input),
            output: count("output_tokens").or(self.usage.output),
            cache_read: count("cache_read_input_tokens").or(self.usage.cache_read),
            cache_write: count("cache_creation_input_tokens").or(self.usage.cache_write),
        };
        Heard::Events(vec![Event::Usage(self.usage)])
    }
}

#[cfg(test)]
mod tests;
