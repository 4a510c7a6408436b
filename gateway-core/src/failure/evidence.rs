//! What an answer says about its failure: the innermost error of whatever was wrapped around it, with its typed names.
//!
//! Unwrapping only; the judgement is in `judge.rs`. Anything may be in these bytes, so everything here is total and bounded.

use serde_json::{Map, Value};

use super::loose;
use super::members::{
    INNER_KEYS, MESSAGE_KEYS, NAME_KEYS, STATUS_KEYS, Verdict, has_answer_text, is_hollow,
    limit_event, no_answer, reason_phrase, status_number,
};
use super::resets::fields::{self, Stated};
use super::stream::Stream;
use super::tidy::tidy;
use crate::headers::Headers;
use crate::usage::lenient;

/// How many wrappers are opened before the rest is taken as it is.
const MAX_DEPTH: usize = 10;
/// How many values are looked at in all.
const MAX_VALUES: usize = 400;
/// A longer body is no error object; its beginning says what it is.
const MAX_BODY: usize = 1024 * 1024;
/// Names kept.
const MAX_NAMES: usize = 32;

/// One answer, unwrapped.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The HTTP status of the answer; `None` = the error came inside a stream or from a program.
    pub(super) status: Option<u16>,
    /// The status the innermost error names.
    pub(super) inner_status: Option<u16>,
    pub(super) headers: Headers,
    /// Every typed name met on the way in, as written, innermost last.
    pub(super) names: Vec<String>,
    /// The innermost message as written.
    pub(super) message: String,
    message_depth: usize,
    /// The texts around it.
    pub(super) outer: String,
    /// Resets and waits stated in fields.
    pub(super) stated: Vec<Stated>,
    /// The same of another source.
    pub(super) beside: Vec<Stated>,
    /// Whether anything marks this as an error.
    pub(super) errored: bool,
    /// Whether anything marks this as a success.
    pub(super) succeeded: bool,
    /// An aggregator passed on another vendor's error.
    pub(super) wrapped: bool,
    /// Retries of an inner layer came before.
    pub(super) retried: bool,
    pub(super) html: bool,
    /// Text of the answer came before the error.
    pub(super) shown: bool,
    /// The program's own words in the place of the model's.
    pub(super) synthetic: bool,
    /// A body that should be there is empty.
    pub(super) empty: bool,
    /// The program ended badly.
    pub(super) exited: bool,
    /// What a limit event of the Claude program says.
    pub(super) event: Option<Verdict>,
    /// The model a quota names.
    pub(super) model: Option<String>,
    /// The window a limit names.
    pub(super) window: Option<String>,
    /// A quota is given in Google's words, whose short delays beside a day's quota are false.
    pub(super) google: bool,
    /// The envelope of MiniMax was met.
    pub(super) base_resp: bool,
    stream: Stream,
    values: usize,
}

impl Evidence {
    /// Reads a whole answer.
    pub fn of_answer(status: u16, headers: Headers, body: &str) -> Self {
        let mut evidence = Self {
            status: Some(status),
            headers,
            ..Self::default()
        };
        evidence.take_body(body);
        evidence
    }

    /// Reads an error object that came inside a stream or under status 200.
    pub fn of_object(headers: Headers, object: &Value) -> Self {
        let mut evidence = Self {
            headers,
            errored: true,
            ..Self::default()
        };
        evidence.take_value(object);
        evidence
    }

    /// Reads what a program printed.
    pub fn of_text(text: &str) -> Self {
        let mut evidence = Self::default();
        evidence.take_text(text);
        evidence
    }

    /// The headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Whether a stream of an answer was cut: it began, nothing went wrong in it, and it has no end.
    pub(super) fn is_cut(&self) -> bool {
        self.stream.is_cut() && !self.errored
    }

    pub(crate) fn set_status(&mut self, status: u16) {
        self.status = Some(status);
    }

    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        self.headers.add(name, value);
    }

    /// Takes note that the program ended badly, whatever it printed.
    pub(crate) fn set_exited(&mut self) {
        self.exited = true;
        self.errored = true;
    }

    /// Takes the body of an answer: JSON, an event stream, HTML, or prose.
    pub(crate) fn take_body(&mut self, body: &str) {
        if body.trim().is_empty() {
            self.empty = true;
            return;
        }
        let start = body.trim_start_matches('\u{feff}').trim_start();
        let json = start.starts_with(['{', '[', '"']) && body.len() <= MAX_BODY;
        let whole = json.then(|| lenient::parse(start));
        match whole {
            Some(Ok(value)) => self.open(&value, 0),
            _ => self.take_text(body),
        }
    }

    /// Takes a value that was parsed already.
    pub(crate) fn take_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.take_body(text),
            value => self.open(value, 0),
        }
    }

    /// Takes prose, whatever may be written inside it.
    pub(crate) fn take_text(&mut self, text: &str) {
        let text = tidy(loose::head(text));
        let text = text.as_ref();
        let start: String = text.trim_start().chars().take(200).collect();
        let start = start.to_lowercase();
        if ["<!doctype", "<html", "<head", "<title"]
            .iter()
            .any(|tag| start.contains(tag))
        {
            self.html = true;
            self.message = text.to_owned();
        } else if loose::ends_without_beginning(text) {
            self.empty = true;
        } else if !self.lines(text) {
            self.say(text, 0);
        }
    }

    /// Takes what another source says of the same account, for example its usage screen. A refusal's own words outrank it.
    pub(crate) fn take_other_source(&mut self, value: &Value) {
        self.look_beside(value, 0);
    }

    fn look_beside(&mut self, value: &Value, depth: usize) {
        if let (Value::Object(fields), 0..4) = (value, depth) {
            fields::collect(fields, depth, &mut self.beside);
            for inner in fields.values() {
                self.look_beside(inner, depth + 1);
            }
        }
    }

    /// Opens the JSON of an event stream or of a program's lines; `false` = it is neither.
    fn lines(&mut self, text: &str) -> bool {
        let mut any = false;
        for line in text.lines() {
            let line = line.trim();
            let data = line.strip_prefix("data:").map(str::trim);
            self.stream.mark(data == Some("[DONE]"));
            let json = data.or_else(|| line.starts_with('{').then_some(line));
            let Some(Ok(value)) = json.map(serde_json::from_str::<Value>) else {
                if line
                    .strip_prefix("event:")
                    .is_some_and(|name| name.contains("error"))
                {
                    self.errored = true;
                }
                continue;
            };
            if value.is_object() {
                any = true;
                if data.is_some() {
                    self.stream.look(&value);
                }
                self.open(&value, 1);
            }
        }
        any
    }

    /// Goes into an error value; deeper messages replace the ones around them.
    fn open(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return;
        }
        match value {
            Value::String(text) => self.say(text, depth),
            Value::Array(items) => self.open_all(items, depth),
            Value::Object(fields) => self.open_object(fields, depth),
            _ => {}
        }
    }

    fn open_all(&mut self, items: &[Value], depth: usize) {
        let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        match texts {
            Some(texts) if !texts.is_empty() => self.say(&texts.join("\n"), depth),
            _ => {
                items.iter().for_each(|item| self.stream.look(item));
                items
                    .iter()
                    .take(16)
                    .for_each(|item| self.open(item, depth));
            }
        }
    }

    fn open_object(&mut self, fields: &Map<String, Value>, depth: usize) {
        let lower: Vec<(String, &Value)> = fields
            .iter()
            .map(|(key, value)| (key.to_ascii_lowercase(), value))
            .collect();
        let get = |key: &str| {
            lower
                .iter()
                .find_map(|(known, value)| (known == key).then_some(*value))
        };
        self.marks(&get);
        if self.succeeded && get("type").is_some_and(|kind| kind == "result") {
            return; // an answer, not an error
        }
        if get("type").is_some_and(|kind| kind == "message") && !self.synthetic {
            // The model's own words; only a refusal among them is a failure.
            if get("stop_reason").is_some_and(|reason| reason == "refusal") {
                self.errored = true;
                self.names.push("stop_reason refusal".to_owned());
            }
            return;
        }
        if let Some((verdict, window)) = limit_event(&get) {
            self.event = Some(verdict);
            self.window = window;
        }
        for key in NAME_KEYS {
            self.name(key, get(key));
        }
        for key in STATUS_KEYS {
            if let Some(status) = get(key).and_then(status_number) {
                self.inner_status = Some(status);
            }
        }
        if let Some(headers) = ["headers", "responseheaders", "response_headers"]
            .iter()
            .find_map(|key| get(key)?.as_object())
        {
            self.take_headers(headers);
        }
        fields::collect(fields, depth, &mut self.stated);
        for key in MESSAGE_KEYS {
            if let Some(text) = get(key).and_then(Value::as_str) {
                self.say(text, depth);
            }
        }
        self.wrapped |= get("raw").is_some()
            || get("provider_name").is_some_and(Value::is_string) && get("raw").is_some();
        for key in INNER_KEYS {
            match get(key) {
                // Its own message is read above.
                Some(Value::String(_)) if MESSAGE_KEYS.contains(key) || NAME_KEYS.contains(key) => {
                }
                Some(Value::Null) | None => {}
                Some(inner) => self.open(inner, depth + 1),
            }
        }
    }

    /// What marks the object as an error or as a success.
    fn marks<'v>(&mut self, get: &impl Fn(&str) -> Option<&'v Value>) {
        let is = |key: &str, wanted: bool| get(key).and_then(Value::as_bool) == Some(wanted);
        let kind = get("type").and_then(Value::as_str).unwrap_or_default();
        let failed_kind = matches!(
            kind,
            "error" | "response.failed" | "turn.failed" | "session.error" | "stream_error"
        );
        let has_error = ["error", "errors"].iter().any(|key| match get(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        });
        self.errored |= failed_kind
            || has_error
            || is("is_error", true)
            || is("success", false)
            || is("isapierrormessage", true);
        // MiniMax answers 200 whatever happened; 0 is its success.
        let base = get("base_resp").and_then(|base| base.get("status_code")?.as_i64());
        self.base_resp |= base.is_some();
        let unanswered = no_answer(get);
        self.errored |= base.is_some_and(|code| code != 0) || unanswered.is_some();
        self.names.extend(unanswered);
        self.succeeded |= is("is_error", false);
        self.empty |= is_hollow(get);
        self.retried |= get("previous_errors")
            .and_then(Value::as_array)
            .is_some_and(|past| !past.is_empty());
        self.shown |= has_answer_text(get);
        self.synthetic |= get("model").is_some_and(|model| model == "<synthetic>");
        let model = get("model")
            .or_else(|| get("model_name"))
            .and_then(Value::as_str);
        if let Some(model) = model.filter(|model| !model.starts_with('<')) {
            self.model = Some(model.chars().take(80).collect());
        }
    }

    fn take_headers(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields {
            match value {
                Value::String(text) => self.headers.add(name, text),
                Value::Array(items) => {
                    for text in items.iter().filter_map(Value::as_str) {
                        self.headers.add(name, text);
                    }
                }
                Value::Null | Value::Object(_) => {}
                other => self.headers.add(name, &other.to_string()),
            }
        }
    }

    fn say(&mut self, text: &str, depth: usize) {
        let text = tidy(loose::head(text));
        let text = text.as_ref();
        if text.trim().is_empty() {
            return;
        }
        if depth >= self.message_depth || self.message.is_empty() {
            let before = std::mem::replace(&mut self.message, text.to_owned());
            self.message_depth = depth;
            self.surround(&before);
        } else {
            self.surround(text);
        }
        if depth > MAX_DEPTH {
            return;
        }
        if let Some((place, inner)) = loose::embedded(text) {
            self.errored = true;
            self.open(&inner, depth + 1);
            // The prose around the object is the wrapper's, unless the object said nothing.
            if self.message != text {
                let whole = self.outer.rfind(text);
                if let Some(start) = whole {
                    self.outer.truncate(start);
                }
                self.surround(text.get(..place.start).unwrap_or_default());
                self.surround(text.get(place.end..).unwrap_or_default());
            }
        }
    }

    fn surround(&mut self, text: &str) {
        if !text.trim().is_empty() && self.outer.len() + text.len() <= 16 * 1024 {
            self.outer.push_str(text);
            self.outer.push('\n');
        }
    }

    fn name(&mut self, key: &str, value: Option<&Value>) {
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            // `codexErrorInfo` may be `{"httpConnectionFailed": {…}}`.
            Some(Value::Object(fields)) if key.starts_with("codex") => {
                fields.keys().next().cloned().unwrap_or_default()
            }
            _ => return,
        };
        if let Some(status) = reason_phrase(&text) {
            self.inner_status = self.inner_status.or(Some(status));
            return;
        }
        let is_status = text
            .parse::<u16>()
            .is_ok_and(|number| (100..600).contains(&number));
        // "error" is the envelope's own type and says nothing.
        let says_nothing = matches!(
            text.as_str(),
            "" | "error" | "result" | "assistant" | "text" | "retry" | "success" | "0"
        );
        if !is_status && !says_nothing && text.len() <= 200 && self.names.len() < MAX_NAMES {
            self.google |= text == "RESOURCE_EXHAUSTED";
            self.names.push(text);
        }
    }
}
