//! What an answer says about its failure: the innermost error of whatever was wrapped around it, with its typed names.
//!
//! Unwrapping only; the judgement is in `judge.rs`. Anything may be in these bytes, so everything here is total.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// How many wrappers are opened before the rest is taken as it is.
const MAX_DEPTH: usize = 6;

/// One refused answer, unwrapped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// The HTTP status; `None` = the error came inside a stream.
    pub(crate) status: Option<u16>,
    pub(crate) headers: HeaderMap,
    /// Every typed name met on the way in (`type`, `code`, `status`, `reason`), lower case, innermost last.
    pub(crate) names: Vec<String>,
    /// The innermost message as written.
    pub(crate) message: String,
    /// The message in lower case.
    pub(crate) text: String,
    /// The objects met on the way in, innermost last: where resets are looked for.
    pub(crate) objects: Vec<Value>,
    /// An aggregator passed on another vendor's error.
    pub(crate) wrapped: bool,
    pub(crate) html: bool,
}

impl Evidence {
    /// Reads a whole answer.
    pub(crate) fn of_answer(status: u16, headers: HeaderMap, body: &str) -> Self {
        let mut evidence = Self {
            status: Some(status),
            headers,
            ..Self::default()
        };
        match serde_json::from_str::<Value>(body) {
            Ok(value) => evidence.open(&value, 0),
            Err(_) => evidence.take_text(body),
        }
        evidence.close()
    }

    /// Reads an error object that came inside a stream or under status 200.
    pub(crate) fn of_object(headers: HeaderMap, object: &Value) -> Self {
        let mut evidence = Self {
            headers,
            ..Self::default()
        };
        evidence.open(object, 0);
        evidence.close()
    }

    /// Whether any typed name is one of these (lower case).
    pub(crate) fn named(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether the message holds any of these (lower case).
    pub(crate) fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    fn take_text(&mut self, body: &str) {
        let start = body.trim_start();
        let head: String = start.chars().take(200).collect::<String>().to_lowercase();
        self.html =
            head.starts_with("<!doctype") || head.contains("<html") || head.starts_with("<head");
        match embedded(body) {
            Some(value) if !self.html => {
                self.message = body.to_owned();
                self.open(&value, 1);
            }
            _ => self.message = body.to_owned(),
        }
    }

    /// Goes into an error value; deeper messages replace the ones around them.
    fn open(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => self.say(text, depth),
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    self.open(first, depth + 1);
                }
            }
            Value::Object(fields) => {
                self.objects.push(value.clone());
                for key in ["type", "error_type", "code", "status", "name", "reason"] {
                    self.name(fields.get(key));
                }
                for detail in fields
                    .get("details")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    self.name(detail.get("reason"));
                    self.objects.push(detail.clone());
                }
                if let Some(message) = fields.get("message").and_then(Value::as_str) {
                    self.say(message, depth);
                }
                if let Some(raw) = value.pointer("/metadata/raw") {
                    self.wrapped = true;
                    self.open(raw, depth + 1);
                }
                // `previous_errors` is history and stays closed.
                for key in ["error", "response"] {
                    if let Some(inner) = fields.get(key).filter(|inner| !inner.is_null()) {
                        self.open(inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str, depth: usize) {
        if !text.trim().is_empty() {
            self.message = text.to_owned();
        }
        if let Some(inner) = embedded(text) {
            self.open(&inner, depth + 1);
        }
    }

    fn name(&mut self, value: Option<&Value>) {
        let name = match value {
            Some(Value::String(text)) => text.to_lowercase(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return,
        };
        // "error" is the envelope's own type and says nothing.
        if name != "error" {
            self.names.push(name);
        }
    }

    fn close(mut self) -> Self {
        self.text = self.message.to_lowercase().replace('\u{2019}', "'");
        self
    }
}

/// A JSON object written inside prose (`429 {"error":…}`), also in Python's single quotes.
fn embedded(text: &str) -> Option<Value> {
    let (_, after) = text.split_once('{')?;
    let (inside, _) = after.rsplit_once('}')?;
    let candidate = format!("{{{inside}}}");
    let value: Value = serde_json::from_str(&candidate)
        .or_else(|_| serde_json::from_str(&python_to_json(&candidate)))
        .ok()?;
    value.is_object().then_some(value)
}

fn python_to_json(text: &str) -> String {
    text.replace('\'', "\"")
        .replace(": None", ": null")
        .replace(": True", ": true")
        .replace(": False", ": false")
}
