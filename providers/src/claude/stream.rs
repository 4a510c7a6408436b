//! The program's JSON lines to events and an end. Pure: text in, values out, no process and no clock.
//!
//! Records and fields that are not known are nothing, never an error; the order in which fields are believed stands in
//! `failure.rs`. A turn is over with its first `result`: what follows belongs to nobody. Records of sub-agents
//! (`parent_tool_use_id`) are signs of life only.

use std::collections::{HashMap, HashSet};

use gateway_core::event::{CallOutcome, Event, TokenUsage};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ProviderSessionId, SubscriptionId};
use gateway_core::turn::Answer;
use jiff::Timestamp;
use serde_json::Value;

use super::blocks::Blocks;
use super::failure::{self, Envelope};
use super::limits::{self, Refusal};
use super::todos::Todos;

/// How the program says its turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    Answered(Answer),
    Failed(Failure),
    /// It gave the turn up because somebody interrupted it.
    Interrupted,
    /// The session to resume does not exist; nothing was sent.
    SessionMissing,
}

/// Reads one turn.
#[derive(Debug)]
pub struct Stream {
    subscription: SubscriptionId,
    session: Option<ProviderSessionId>,
    version: Option<String>,
    key_source: Option<String>,
    message: String,
    blocks: Blocks,
    todos: Todos,
    calls: HashMap<String, (String, Value)>,
    denied: HashSet<String>,
    refusal: Option<Refusal>,
    envelope: Envelope,
    shown: bool,
    end: Option<TurnEnd>,
}

impl Stream {
    /// A turn of this subscription, before its first record.
    pub fn new(subscription: SubscriptionId) -> Self {
        Self {
            subscription,
            session: None,
            version: None,
            key_source: None,
            message: String::new(),
            blocks: Blocks::default(),
            todos: Todos::default(),
            calls: HashMap::new(),
            denied: HashSet::new(),
            refusal: None,
            envelope: Envelope::default(),
            shown: false,
            end: None,
        }
    }

    /// Takes one line; returns what it reports.
    pub fn push(&mut self, line: &str, now: Timestamp) -> Vec<Event> {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            return Vec::new();
        };
        if self.end.is_some() || text(&record, "parent_tool_use_id").is_some() {
            return Vec::new();
        }
        let events = self.read(&record, now);
        self.shown |= events.iter().any(is_content);
        events
    }

    /// How the turn ended; `None` = not yet.
    pub fn end(&self) -> Option<&TurnEnd> {
        self.end.as_ref()
    }

    /// Whether anything a person sees has been reported.
    pub fn has_shown(&self) -> bool {
        self.shown
    }

    /// The program's version, once it said so.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The API key the program found and bills instead of the login; `None` = the login pays, or not said yet.
    pub fn billed_key(&self) -> Option<&str> {
        let source = self.key_source.as_deref()?;
        (!matches!(source, "none" | "oauth" | "")).then_some(source)
    }

    fn read(&mut self, record: &Value, now: Timestamp) -> Vec<Event> {
        match text(record, "type").unwrap_or_default() {
            "system" => self.system(record).into_iter().collect(),
            "stream_event" => self.partial(record).into_iter().collect(),
            "assistant" => self.assistant(record, now),
            "user" => self.user(record),
            "rate_limit_event" => self.limit(record, now),
            "result" => self.result(record, now),
            _ => Vec::new(),
        }
    }

    fn system(&mut self, record: &Value) -> Option<Event> {
        match text(record, "subtype")? {
            "init" => self.init(record),
            "permission_denied" => {
                self.denied
                    .extend(text(record, "tool_use_id").map(str::to_owned));
                None
            }
            "api_retry" => Some(activity(retry_words(record))),
            "status" if text(record, "status") == Some("compacting") => {
                Some(activity("compacting the conversation".to_owned()))
            }
            _ => None,
        }
    }

    fn init(&mut self, record: &Value) -> Option<Event> {
        self.version = text(record, "claude_code_version").map(str::to_owned);
        self.key_source = text(record, "apiKeySource").map(str::to_owned);
        let id = ProviderSessionId::new(text(record, "session_id")?);
        let new = self.session.as_ref() != Some(&id);
        self.session = Some(id.clone());
        new.then_some(Event::Session { id })
    }

    fn partial(&mut self, record: &Value) -> Option<Event> {
        let event = record.get("event")?;
        let kind = text(event, "type")?;
        if kind == "message_start" {
            let id = event.get("message").and_then(|message| text(message, "id"));
            id?.clone_into(&mut self.message);
            return None;
        }
        // Every record of 2.1.332 names its message; older ones leave it to the last `message_start`.
        let message = text(record, "api_message_id").unwrap_or(&self.message);
        match kind {
            "content_block_start" => {
                let block = event.get("content_block")?;
                match text(block, "type")? {
                    "thinking" | "redacted_thinking" => Some(activity("thinking".to_owned())),
                    _ => self
                        .blocks
                        .delta(message, number(event, "index")?, text(block, "text")?),
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta")?;
                self.blocks
                    .delta(message, number(event, "index")?, text(delta, "text")?)
            }
            "message_stop" => {
                let abandoned = record.get("abandoned_blocks")?;
                let from = number(abandoned, "from_block_index")?;
                self.blocks
                    .abandon(text(abandoned, "api_message_id")?, from)
            }
            _ => None,
        }
    }

    fn assistant(&mut self, record: &Value, now: Timestamp) -> Vec<Event> {
        let Some(message) = record.get("message") else {
            return Vec::new();
        };
        let blocks = message.get("content").and_then(Value::as_array);
        if text(message, "model") == Some("<synthetic>") || flag(record, "is_api_error_message") {
            self.api_error(record, now);
            return Vec::new(); // the program's own words about an error are not the answer
        }
        let id = text(message, "id").unwrap_or_default();
        let blocks = blocks.into_iter().flatten();
        blocks
            .filter_map(|block| self.finished_block(id, block))
            .collect()
    }

    /// The record of a limit repeats what its event said; one without an event still names the window.
    fn api_error(&mut self, record: &Value, now: Timestamp) {
        self.envelope.take(record);
        let named = record
            .get("api_error_params")
            .and_then(|params| params.get("rate_limit_info"));
        if let (None, Some(info)) = (&self.refusal, named) {
            self.refusal = limits::read(info, &self.subscription, now).refusal;
        }
    }

    fn finished_block(&mut self, message: &str, block: &Value) -> Option<Event> {
        match text(block, "type")? {
            "text" => self.blocks.whole(message, text(block, "text")?),
            "tool_use" | "server_tool_use" => self.call(block),
            // The service ran this tool itself; its result has no text of its own.
            kind if kind.ends_with("_tool_result") => Some(Event::ToolResult {
                id: text(block, "tool_use_id")?.to_owned(),
                outcome: CallOutcome::Completed,
                text: String::new(),
            }),
            _ => None,
        }
    }

    fn call(&mut self, block: &Value) -> Option<Event> {
        let (id, name) = (text(block, "id")?, text(block, "name")?);
        let input = block.get("input").cloned().unwrap_or_default();
        let arguments = input.to_string();
        self.calls.insert(id.to_owned(), (name.to_owned(), input));
        Some(Event::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        })
    }

    fn user(&mut self, record: &Value) -> Vec<Event> {
        let content = record
            .get("message")
            .and_then(|message| message.get("content"));
        let blocks = content.and_then(Value::as_array).into_iter().flatten();
        let results = blocks.filter(|block| text(block, "type") == Some("tool_result"));
        results
            .flat_map(|block| self.tool_result(record, block))
            .collect()
    }

    fn tool_result(&mut self, record: &Value, block: &Value) -> Vec<Event> {
        let Some(id) = text(block, "tool_use_id") else {
            return Vec::new();
        };
        let outcome = self.outcome(id, record, block);
        let result = Event::ToolResult {
            id: id.to_owned(),
            outcome,
            text: result_text(block.get("content")),
        };
        let todos = match self.calls.remove(id) {
            Some((tool, input)) if outcome == CallOutcome::Completed => {
                let typed = record.get("tool_use_result").unwrap_or(&Value::Null);
                self.todos.after(&tool, &input, typed)
            }
            _ => None,
        };
        [Some(result), todos.map(Event::Todos)]
            .into_iter()
            .flatten()
            .collect()
    }

    fn outcome(&self, id: &str, record: &Value, block: &Value) -> CallOutcome {
        let metas = record.get("tool_result_meta").and_then(Value::as_array);
        let meta = metas
            .into_iter()
            .flatten()
            .find(|meta| text(meta, "id") == Some(id));
        let kind = meta
            .and_then(|meta| text(meta, "non_execution_kind"))
            .unwrap_or_default();
        match flag(block, "is_error") {
            true if self.denied.contains(id) || kind.contains("reject") => CallOutcome::Denied,
            true if kind.contains("interrupt") || kind.contains("cancel") => CallOutcome::Cancelled,
            true => CallOutcome::Failed,
            false => CallOutcome::Completed,
        }
    }

    fn limit(&mut self, record: &Value, now: Timestamp) -> Vec<Event> {
        let info = record.get("rate_limit_info").unwrap_or(&Value::Null);
        let notice = limits::read(info, &self.subscription, now);
        self.refusal = notice.refusal;
        notice.readings.into_iter().map(Event::Limit).collect()
    }

    fn result(&mut self, record: &Value, now: Timestamp) -> Vec<Event> {
        self.envelope.take(record);
        let usage = record.get("usage").map(usage);
        // A turn that never reached the model is reported with zeros (`no-credentials`): that says nothing.
        let spent = usage.filter(|usage| usage.output > Some(0) || usage.input > Some(0));
        let mut events: Vec<Event> = spent.map(Event::Usage).into_iter().collect();
        if flag(record, "is_error") {
            self.end = Some(self.bad_end(record, now));
            return events;
        }
        // Text that never came as a block is still the answer: a finished turn is not empty.
        if self.blocks.is_empty() {
            let whole = text(record, "result").and_then(|text| self.blocks.whole("", text));
            events.extend(whole);
        }
        self.end = Some(TurnEnd::Answered(Answer {
            text: self.blocks.text(),
            usage: usage.unwrap_or_default(),
        }));
        events
    }

    fn bad_end(&self, record: &Value, now: Timestamp) -> TurnEnd {
        let errors = record.get("errors").and_then(Value::as_array);
        let mut errors = errors.into_iter().flatten().filter_map(Value::as_str);
        if self.envelope.terminal.starts_with("aborted") {
            TurnEnd::Interrupted
        } else if number(record, "num_turns") == Some(0)
            && errors.any(|error| error.starts_with("No conversation found"))
        {
            TurnEnd::SessionMissing
        } else if text(record, "subtype").is_some_and(|subtype| subtype.starts_with("error_max_")) {
            let words = failure::one_line(text(record, "subtype").unwrap_or_default());
            TurnEnd::Failed(Failure::new(
                FailureKind::BadRequest,
                FailureScope::Request,
                words,
            ))
        } else {
            TurnEnd::Failed(failure::classify(
                &self.envelope,
                self.refusal.as_ref(),
                now,
            ))
        }
    }
}

fn is_content(event: &Event) -> bool {
    matches!(
        event,
        Event::Text { .. } | Event::ToolCall { .. } | Event::ToolResult { .. } | Event::Todos(_)
    )
}

fn activity(what: String) -> Event {
    Event::Activity { what }
}

fn retry_words(record: &Value) -> String {
    let count = |name| number(record, name).map_or("?".to_owned(), |n| n.to_string());
    let error = text(record, "error").unwrap_or("unknown");
    format!(
        "retry {} of {} ({error})",
        count("attempt"),
        count("max_retries")
    )
}

fn result_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| text(block, "text"))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn usage(value: &Value) -> TokenUsage {
    TokenUsage {
        input: number(value, "input_tokens"),
        output: number(value, "output_tokens"),
        cache_read: number(value, "cache_read_input_tokens"),
        cache_write: number(value, "cache_creation_input_tokens"),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests;
