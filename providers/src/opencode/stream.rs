//! The server's events to ours. Pure: values in, values out, no connection and no clock.
//!
//! Only what belongs to this turn counts: messages that appeared after it began. Events and fields that are not known are
//! nothing, never an error. The same facts may come twice, as events and from the stored messages (`take_stored`): each
//! is reported once.

use std::collections::{BTreeMap, HashMap, HashSet};

use gateway_core::event::{CallOutcome, Event, Todo, TodoStatus, TokenUsage};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::turn::Answer;
use jiff::Timestamp;
use serde_json::Value;

use super::blocks::Blocks;
use super::failure::{self, Tries};

/// Model requests in a row that bring nothing at all before the turn is given up (`serve-html` has no end).
const EMPTY_STEPS: u32 = 3;

/// Reads one turn.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    messages: HashMap<String, Kind>,
    blocks: Blocks,
    calls: HashMap<String, Call>,
    /// Parts that are reported once: thinking, compactions, ends of steps.
    told: HashSet<String>,
    usage: BTreeMap<String, TokenUsage>,
    step: u32,
    step_is_open: bool,
    /// Something came of the running step.
    step_has_content: bool,
    empty_steps: u32,
    tries: Tries,
    error: Option<Value>,
    verdict: Option<Failure>,
    todos: Option<Vec<Todo>>,
    idle: bool,
}

/// Text parts of model requests that were made again: the program starts a step anew in the same message and leaves what
/// the broken one had written where it is, without an end (`serve-cut`). The event that says so may have been lost.
fn made_again(parts: &[Value]) -> Vec<&str> {
    let mut gone = Vec::new();
    let mut running = Vec::new();
    for part in parts {
        match text(part, "type") {
            Some("step-start") => gone.append(&mut running),
            Some("step-finish") => running.clear(),
            Some("text") if part.pointer("/time/end").is_none() => {
                running.extend(text(part, "id"));
            }
            _ => {}
        }
    }
    gone
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    /// The model's summary of a session that was compacted: for the model, not for people.
    Summary,
    User,
    /// Older than the turn.
    Old,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Running,
    Ended,
}

impl Stream {
    /// A turn of a session that holds these messages already.
    pub(crate) fn after(messages: &[Value]) -> Self {
        let ids = messages
            .iter()
            .filter_map(|message| message.pointer("/info/id").and_then(Value::as_str));
        Self {
            messages: ids.map(|id| (id.to_owned(), Kind::Old)).collect(),
            ..Self::default()
        }
    }

    /// Takes one event of the session (`type`, `properties`).
    pub(crate) fn push(&mut self, event: &Value, now: Timestamp) -> Vec<Event> {
        let properties = event.get("properties").unwrap_or(&Value::Null);
        match text(event, "type").unwrap_or_default() {
            "message.updated" => {
                self.message(properties.get("info").unwrap_or(&Value::Null));
                Vec::new()
            }
            "message.part.updated" => self.part(properties.get("part").unwrap_or(&Value::Null)),
            "message.part.delta" => self.delta(properties),
            "session.status" => self.status(properties.get("status").unwrap_or(&Value::Null), now),
            "session.error" => {
                self.error = properties.get("error").cloned().or(self.error.take());
                Vec::new()
            }
            "session.idle" => {
                self.idle = true;
                Vec::new()
            }
            "todo.updated" => self.take_todos(properties.get("todos")),
            _ => Vec::new(),
        }
    }

    /// Takes the messages as they are stored: what no event brought is reported now.
    pub(crate) fn take_stored(&mut self, messages: &[Value]) -> Vec<Event> {
        let mut events = Vec::new();
        for message in messages {
            self.message(message.get("info").unwrap_or(&Value::Null));
            let parts = message.get("parts").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                events.extend(self.part(part));
            }
            let parts = parts.map(Vec::as_slice).unwrap_or_default();
            for part in made_again(parts) {
                events.extend(self.blocks.forget(part));
            }
        }
        events
    }

    /// Takes the session's todo list, whole; it is told when it changed.
    pub(super) fn take_todos(&mut self, list: Option<&Value>) -> Vec<Event> {
        let list = todos(list);
        if self.todos.as_ref() == Some(&list) {
            return Vec::new();
        }
        self.todos = Some(list.clone());
        vec![Event::Todos(list)]
    }

    /// Whether the last that was heard is that nothing runs any more.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Events may have been missed: texts still being written are only shown once they are whole.
    pub(super) fn tear(&mut self) {
        self.blocks.tear();
    }

    /// Why the turn is to be given up now; `None` = it goes on.
    pub(crate) fn verdict(&self) -> Option<&Failure> {
        self.verdict.as_ref()
    }

    /// How the turn ended, from its last message.
    pub(crate) fn end(&self, last: &Value, now: Timestamp) -> Result<Answer, Failure> {
        if let Some(error) = last.get("error").filter(|error| !error.is_null()) {
            return Err(failure::of_error(error, self.error.as_ref(), now));
        }
        let request = |kind, words: &str| Err(Failure::new(kind, FailureScope::Request, words));
        let answered = !self.blocks.is_empty();
        match text(last, "finish") {
            _ if kind_of(last) == Kind::Summary => Err(Failure::new(
                FailureKind::ContextOverflow,
                FailureScope::Session,
                "the turn ended while opencode was compacting the session",
            )),
            Some("content-filter") => request(
                FailureKind::ContentFilter,
                "the provider's content filter ended the answer",
            ),
            _ if answered => Ok(Answer {
                text: self.blocks.text(),
                usage: self.total(),
            }),
            // A part of the turn failed without a word in its last message.
            _ => match &self.error {
                Some(error) => Err(failure::of_error(error, None, now)),
                None => request(
                    FailureKind::Transport,
                    "the provider ended its answer without any text",
                ),
            },
        }
    }

    fn message(&mut self, info: &Value) {
        if let Some(id) = text(info, "id") {
            let kind = kind_of(info);
            self.messages.entry(id.to_owned()).or_insert(kind);
        }
    }

    fn part(&mut self, part: &Value) -> Vec<Event> {
        let (Some(id), Some(message)) = (text(part, "id"), text(part, "messageID")) else {
            return Vec::new();
        };
        match (self.messages.get(message), text(part, "type")) {
            (Some(Kind::Answer), Some("text")) => self.text(id, part),
            (Some(Kind::Answer), Some("tool")) => self.tool(id, part),
            (Some(Kind::Answer | Kind::Summary), Some("step-start")) => {
                self.step_start(id);
                Vec::new()
            }
            (Some(Kind::Answer | Kind::Summary), Some("step-finish")) => self.step_finish(id, part),
            (Some(Kind::Answer), Some("reasoning")) => {
                self.content();
                self.once(id, "thinking")
            }
            (Some(Kind::User), Some("compaction")) => self.once(id, "compacting the conversation"),
            _ => Vec::new(),
        }
    }

    fn text(&mut self, id: &str, part: &Value) -> Vec<Event> {
        let flag = |key: &str| part.get(key).and_then(Value::as_bool) == Some(true);
        if flag("synthetic") || flag("ignored") {
            return Vec::new();
        }
        let words = text(part, "text").unwrap_or_default();
        if !words.is_empty() {
            self.content();
        }
        let open = part.pointer("/time/end").is_none();
        self.blocks.whole(id, self.step, words, open)
    }

    fn delta(&mut self, properties: &Value) -> Vec<Event> {
        let part = text(properties, "partID").unwrap_or_default();
        match (text(properties, "field"), text(properties, "delta")) {
            (Some("text"), Some(delta)) => {
                let events = self.blocks.delta(part, delta);
                if !events.is_empty() {
                    self.content();
                }
                events
            }
            _ => Vec::new(),
        }
    }

    fn tool(&mut self, id: &str, part: &Value) -> Vec<Event> {
        let state = part.get("state").unwrap_or(&Value::Null);
        let status = text(state, "status").unwrap_or_default();
        let ended = matches!(status, "completed" | "error");
        self.content();
        if !ended && status != "running" {
            return Vec::new(); // its arguments are still being written
        }
        let call = text(part, "callID").unwrap_or(id).to_owned();
        let known = self.calls.get(id).copied();
        let started = known.is_none().then(|| Event::ToolCall {
            id: call.clone(),
            name: text(part, "tool").unwrap_or("unknown").to_owned(),
            arguments: state.get("input").unwrap_or(&Value::Null).to_string(),
        });
        let over = (ended && known != Some(Call::Ended)).then(|| Event::ToolResult {
            id: call,
            outcome: outcome(part, state),
            text: text(state, "output")
                .or(text(state, "error"))
                .unwrap_or_default()
                .to_owned(),
        });
        let now = match (ended, known) {
            (true, _) | (_, Some(Call::Ended)) => Call::Ended,
            _ => Call::Running,
        };
        self.calls.insert(id.to_owned(), now);
        started.into_iter().chain(over).collect()
    }

    fn step_start(&mut self, id: &str) {
        if self.told.insert(id.to_owned()) {
            self.step += 1;
            self.step_is_open = true;
            self.step_has_content = false;
        }
    }

    fn step_finish(&mut self, id: &str, part: &Value) -> Vec<Event> {
        if !self.told.insert(id.to_owned()) {
            return Vec::new();
        }
        self.step_is_open = false;
        let spent = part.get("tokens").map(tokens).filter(|usage| {
            usage.input > Some(0) || usage.output > Some(0) || usage.cache_read > Some(0)
        });
        match (self.step_has_content, spent) {
            (false, None) => self.empty_steps += 1,
            _ => self.empty_steps = 0,
        }
        if self.empty_steps >= EMPTY_STEPS {
            self.verdict.get_or_insert_with(failure::nothing_comes);
        }
        let Some(spent) = spent else {
            return Vec::new();
        };
        self.usage.insert(id.to_owned(), spent);
        vec![Event::Usage(self.total())]
    }

    fn status(&mut self, status: &Value, now: Timestamp) -> Vec<Event> {
        self.idle = text(status, "type") == Some("idle");
        if text(status, "type") != Some("retry") {
            return Vec::new();
        }
        let mut events = Vec::new();
        if std::mem::take(&mut self.step_is_open) {
            events.extend(self.blocks.abandon(self.step));
        }
        if let Some(failure) = self.tries.retry(status, now) {
            self.verdict.get_or_insert(failure);
        }
        let attempt = status.get("attempt").and_then(Value::as_u64).unwrap_or(1);
        let message = failure::one_line(text(status, "message").unwrap_or_default());
        events.push(activity(format!("retry {attempt} ({message})")));
        events
    }

    fn content(&mut self) {
        self.step_has_content = true;
        self.tries.progress();
    }

    fn once(&mut self, id: &str, what: &str) -> Vec<Event> {
        let new = self.told.insert(id.to_owned());
        new.then(|| activity(what.to_owned())).into_iter().collect()
    }

    /// The tokens of all model requests of the turn, a compaction's included.
    fn total(&self) -> TokenUsage {
        let sum = |of: fn(&TokenUsage) -> Option<u64>| {
            let counted: Vec<u64> = self.usage.values().filter_map(of).collect();
            (!counted.is_empty()).then(|| counted.iter().sum())
        };
        TokenUsage {
            input: sum(|usage| usage.input),
            output: sum(|usage| usage.output),
            cache_read: sum(|usage| usage.cache_read),
            cache_write: sum(|usage| usage.cache_write),
        }
    }
}

fn kind_of(info: &Value) -> Kind {
    let summary = info.get("summary").and_then(Value::as_bool) == Some(true);
    match text(info, "role") {
        Some("assistant") if summary || text(info, "mode") == Some("compaction") => Kind::Summary,
        Some("assistant") => Kind::Answer,
        _ => Kind::User,
    }
}

/// The program types neither refusals nor exits: a refusal is told by the beginning of its sentence (1.18.33).
fn outcome(part: &Value, state: &Value) -> CallOutcome {
    let interrupted = state.pointer("/metadata/interrupted");
    let exit = state.pointer("/metadata/exit").and_then(Value::as_i64);
    let error = text(state, "error").unwrap_or_default();
    let denied = [
        "The user has specified a rule which prevents you",
        "The user rejected permission",
    ];
    match text(state, "status") {
        Some("error") if interrupted.and_then(Value::as_bool) == Some(true) => {
            CallOutcome::Cancelled
        }
        Some("error") if denied.iter().any(|words| error.contains(words)) => CallOutcome::Denied,
        Some("error") => CallOutcome::Failed,
        // A call of a tool that is not there is answered by a tool of that name.
        _ if text(part, "tool") == Some("invalid") => CallOutcome::Failed,
        _ if exit.is_some_and(|code| code != 0) => CallOutcome::Failed,
        _ => CallOutcome::Completed,
    }
}

/// `input` leaves out the cached part; `reasoning` stands beside `output` and is written like it.
fn tokens(value: &Value) -> TokenUsage {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    TokenUsage {
        input: count("/input"),
        output: count("/output").map(|output| output + count("/reasoning").unwrap_or_default()),
        cache_read: count("/cache/read"),
        cache_write: count("/cache/write"),
    }
}

fn todos(list: Option<&Value>) -> Vec<Todo> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    let todo = |(at, entry): (usize, &Value)| Todo {
        id: text(entry, "id").map_or_else(|| (at + 1).to_string(), str::to_owned),
        content: text(entry, "content").unwrap_or_default().to_owned(),
        status: match text(entry, "status") {
            Some("in_progress") => TodoStatus::InProgress,
            Some("completed") => TodoStatus::Completed,
            Some("cancelled") => TodoStatus::Cancelled,
            _ => TodoStatus::Pending,
        },
    };
    entries.enumerate().map(todo).collect()
}

fn activity(what: String) -> Event {
    Event::Activity { what }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
