//! The rules of a handoff as tables: each test names its rule and the rows of the behaviour contract (B1 to B53) it holds.
//! Rows about files stand with the mirror, rows about turns and commands with the journeys.

mod assembling;
mod naming;
mod rendering;

use jiff::{SignedDuration, Timestamp};

use super::assemble::{Cut, assemble};
use super::{CallRecord, Handoff, HandoffState, PAYLOAD_VERSION, StoredHandoff, validity};
use crate::event::{CallOutcome, Todo, TodoStatus};
use crate::failure::{Failure, FailureKind, FailureScope};
use crate::ids::{AttemptId, HandoffId, SessionKey};
use crate::journal::{JournalEntry, TurnRow};
use crate::message::{Origin, ReplyTarget};
use crate::route::Route;

/// 2026-09-21T09:00:00Z.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_789_981_200).unwrap()
}

pub(super) fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

pub(super) fn turn(request: &str) -> TurnRow {
    TurnRow {
        turn: "turn-1".into(),
        profile: "default".into(),
        session: "agent:default:console:local".into(),
        conversation: "conversation-1".into(),
        inbound: "inbound-42".into(),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: "console".into(),
            address: "local".into(),
        },
        request: request.into(),
        started_at: now(),
        owner: "gateway-1".into(),
        carries: vec![],
    }
}

pub(super) fn attempt(route: &str) -> JournalEntry {
    JournalEntry::Attempt {
        attempt: AttemptId::new("a"),
        route: route.parse().unwrap(),
        at: now(),
    }
}

pub(super) fn text(block: u32, text: &str) -> JournalEntry {
    JournalEntry::Text {
        block,
        text: text.into(),
    }
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> JournalEntry {
    JournalEntry::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

pub(super) fn result(id: &str, outcome: CallOutcome, text: &str) -> JournalEntry {
    JournalEntry::ToolResult {
        id: id.into(),
        outcome,
        text: text.into(),
    }
}

pub(super) fn failed() -> JournalEntry {
    JournalEntry::Failed {
        failure: Failure::new(FailureKind::RateLimit, FailureScope::Account, "429"),
        at: now(),
    }
}

pub(super) fn todo(content: &str, status: TodoStatus) -> Todo {
    Todo {
        id: content.into(),
        content: content.into(),
        status,
    }
}

pub(super) fn todos(todos: &[(&str, TodoStatus)]) -> JournalEntry {
    JournalEntry::Todos {
        todos: todos
            .iter()
            .map(|(content, status)| todo(content, *status))
            .collect(),
    }
}

/// The handoff of a turn with these entries, cut by a rate limit now.
pub(super) fn cut(request: &str, entries: &[JournalEntry]) -> Handoff {
    cut_again(request, entries, &[]).expect("something to save")
}

pub(super) fn cut_again(
    request: &str,
    entries: &[JournalEntry],
    carried: &[Handoff],
) -> Option<Handoff> {
    assemble(&Cut {
        id: &HandoffId::new("handoff-1"),
        turn: &turn(request),
        entries,
        carried,
        reason: "rate limit",
        next_reset: None,
        now: now(),
    })
}

pub(super) fn stored(handoff: Handoff, state: HandoffState) -> StoredHandoff {
    StoredHandoff {
        handoff,
        state,
        revision: 1,
        claimed_by: None,
    }
}
