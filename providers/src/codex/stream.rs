//! The program's notifications about one thread to events and an end. Pure: values in, values out, no process, no clock.
//!
//! Methods, items and fields that are not known are nothing, never an error. An `error` notification that will be retried
//! is a sign of life; only `turn/completed` ends a turn. Token counts are totals of the thread: what the thread had before
//! this turn is subtracted.

use gateway_core::event::{Event, Todo, TodoStatus, TokenUsage};
use gateway_core::failure::Failure;
use gateway_core::ids::SubscriptionId;
use gateway_core::turn::Answer;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::failure::{self, Trouble};
use super::items;
use super::limits::Limits;
use super::text::Text;

/// How the program says its turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnEnd {
    Answered(Answer),
    Failed(Failure),
    /// It gave the turn up because somebody interrupted it.
    Interrupted,
}

/// Reads one turn.
#[derive(Debug)]
pub(crate) struct Stream {
    subscription: SubscriptionId,
    zone: TimeZone,
    turn: Option<String>,
    text: Text,
    todos: Vec<Todo>,
    limits: Limits,
    before: Counts,
    usage: TokenUsage,
    retrying: Option<Trouble>,
    trouble: Option<Trouble>,
    end: Option<TurnEnd>,
}

impl Stream {
    /// A turn of this subscription, before its first notification. `zone` is the one the program writes times in.
    pub(crate) fn new(subscription: SubscriptionId, zone: TimeZone) -> Self {
        Self {
            subscription,
            zone,
            turn: None,
            text: Text::default(),
            todos: Vec::new(),
            limits: Limits::default(),
            before: Counts::default(),
            usage: TokenUsage::default(),
            retrying: None,
            trouble: None,
            end: None,
        }
    }

    /// Takes one notification; returns what it reports.
    pub(crate) fn push(&mut self, method: &str, params: &Value, now: Timestamp) -> Vec<Event> {
        if self.end.is_some() {
            return Vec::new();
        }
        if method == "account/rateLimits/updated" {
            let readings = self.limits.take(params, &self.subscription, now);
            return readings.into_iter().map(Event::Limit).collect();
        }
        if method == "turn/started" {
            self.turn = turn_of(params).map(str::to_owned);
            return Vec::new();
        }
        if method == "thread/tokenUsage/updated" {
            return self.counted(params).into_iter().collect();
        }
        let ours = turn_of(params).is_none() || turn_of(params) == self.turn.as_deref();
        if !ours {
            return Vec::new();
        }
        self.read(method, params, now)
    }

    /// How the turn ended; `None` = not yet.
    pub(crate) fn end(&self) -> Option<&TurnEnd> {
        self.end.as_ref()
    }

    /// The id of the running turn; `None` = it has not begun.
    pub(super) fn turn(&self) -> Option<&str> {
        self.turn.as_deref()
    }

    /// Why the program is trying again; `None` = it is not, or something came since.
    pub(super) fn retrying(&self) -> Option<&Trouble> {
        self.retrying.as_ref()
    }

    fn read(&mut self, method: &str, params: &Value, now: Timestamp) -> Vec<Event> {
        let one = |event: Option<Event>| event.into_iter().collect();
        match method {
            "item/agentMessage/delta" => {
                self.retrying = None;
                let item = text(params, "itemId").unwrap_or_default();
                one(self
                    .text
                    .delta(item, text(params, "delta").unwrap_or_default()))
            }
            "item/started" => self.started(params),
            "item/completed" => self.completed(params),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.retrying = None;
                one(Some(activity("thinking".to_owned())))
            }
            "item/commandExecution/outputDelta" | "item/mcpToolCall/progress" => {
                one(Some(activity("working".to_owned())))
            }
            "turn/plan/updated" => one(self.planned(params)),
            "thread/compacted" => one(Some(activity("compacting the conversation".to_owned()))),
            "error" => self.error(params),
            "turn/completed" => self.over(params, now),
            _ => Vec::new(),
        }
    }

    fn started(&mut self, params: &Value) -> Vec<Event> {
        let Some(item) = params.get("item") else {
            return Vec::new();
        };
        self.retrying = None;
        let event = match text(item, "type") {
            Some("reasoning") => Some(activity("thinking".to_owned())),
            Some("contextCompaction") => Some(activity("compacting the conversation".to_owned())),
            _ => items::call(item),
        };
        event.into_iter().collect()
    }

    fn completed(&mut self, params: &Value) -> Vec<Event> {
        let Some(item) = params.get("item") else {
            return Vec::new();
        };
        self.retrying = None;
        let event = match text(item, "type") {
            Some("agentMessage") => {
                let id = text(item, "id").unwrap_or_default();
                self.text.whole(id, text(item, "text").unwrap_or_default())
            }
            _ => items::result(item),
        };
        event.into_iter().collect()
    }

    fn planned(&mut self, params: &Value) -> Option<Event> {
        let steps = params.get("plan").and_then(Value::as_array)?;
        let todo = |(at, step): (usize, &Value)| Todo {
            id: (at + 1).to_string(),
            content: text(step, "step").unwrap_or_default().to_owned(),
            status: match text(step, "status") {
                Some("inProgress") => TodoStatus::InProgress,
                Some("completed") => TodoStatus::Completed,
                _ => TodoStatus::Pending,
            },
        };
        let todos: Vec<Todo> = steps.iter().enumerate().map(todo).collect();
        (todos != self.todos).then(|| {
            self.todos.clone_from(&todos);
            Event::Todos(todos)
        })
    }

    fn error(&mut self, params: &Value) -> Vec<Event> {
        let trouble = Trouble::read(params.get("error").unwrap_or(&Value::Null));
        if params.get("willRetry").and_then(Value::as_bool) != Some(true) {
            self.trouble = Some(trouble);
            return Vec::new();
        }
        let words = failure::one_line(&format!("{} {}", trouble.message, trouble.details));
        self.retrying = Some(trouble);
        let abandoned = self.text.abandon();
        abandoned.into_iter().chain([activity(words)]).collect()
    }

    fn over(&mut self, params: &Value, now: Timestamp) -> Vec<Event> {
        let turn = params.get("turn").unwrap_or(&Value::Null);
        let end = match text(turn, "status") {
            Some("completed") => TurnEnd::Answered(Answer {
                text: self.text.all(),
                usage: self.usage,
            }),
            Some("interrupted") => TurnEnd::Interrupted,
            _ => {
                let told = turn.get("error").filter(|error| !error.is_null());
                let trouble = told.map(Trouble::read).or_else(|| self.trouble.take());
                TurnEnd::Failed(failure::classify(
                    &trouble.unwrap_or_default(),
                    &self.limits,
                    now,
                    &self.zone,
                ))
            }
        };
        self.end = Some(end);
        Vec::new()
    }

    /// Counts that come before this turn began are what the thread had (they are repeated when it is resumed).
    fn counted(&mut self, params: &Value) -> Option<Event> {
        let total = Counts::read(params.get("tokenUsage")?.get("total")?);
        if self.turn.is_none() || turn_of(params) != self.turn.as_deref() {
            self.before = total;
            return None;
        }
        let usage = total.since(&self.before)?;
        (usage != self.usage).then(|| {
            self.usage = usage;
            Event::Usage(usage)
        })
    }
}

/// Totals of a thread, in tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
}

impl Counts {
    fn read(total: &Value) -> Self {
        let count = |name: &str| total.get(name).and_then(Value::as_u64).unwrap_or_default();
        Self {
            input: count("inputTokens"),
            cached: count("cachedInputTokens"),
            cache_write: count("cacheWriteInputTokens"),
            output: count("outputTokens"),
        }
    }

    /// What this turn added; `None` = nothing yet, or the totals went backwards (a full window is reported with zeros).
    /// The program counts cached tokens as input too.
    fn since(&self, before: &Self) -> Option<TokenUsage> {
        let input = self.input.checked_sub(before.input)?;
        let output = self.output.checked_sub(before.output)?;
        let cached = self.cached.saturating_sub(before.cached);
        let written = self.cache_write.saturating_sub(before.cache_write);
        (input + output > 0).then(|| TokenUsage {
            input: Some(input.saturating_sub(cached).saturating_sub(written)),
            output: Some(output),
            cache_read: Some(cached),
            cache_write: Some(written),
        })
    }
}

fn turn_of(params: &Value) -> Option<&str> {
    text(params, "turnId").or_else(|| text(params.get("turn")?, "id"))
}

fn activity(what: String) -> Event {
    Event::Activity { what }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
