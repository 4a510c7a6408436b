//! The only conversions between records and the types of `gateway-core`. From core to record nothing is lost that a hook
//! decides on; from record to core an unknown code is `None`, or the harmless one where the field says so.

use abi_stable::std_types::{ROption, RString, RVec};
use gateway_core::event::{CallOutcome, Todo, TodoStatus};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::journal::JournalEntry;
use gateway_core::message::Origin;
use gateway_core::plan::{EntryView, ScopeView, WindowView};
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};
use jiff::Timestamp;

use crate::records::{
    DocumentRecord, DocumentState, FailureRecord, FailureScopeCode, JournalKind, JournalRecord,
    OriginCode, OutcomeCode, ReasonCode, RouteRecord, ScopeCode, SourceCode, StatusCode, TodoCode,
    TodoRecord, WindowRecord,
};

/// Ties a core enum to its code, both ways.
macro_rules! code_table {
    ($core:ident <=> $code:ident { $($var:ident),* $(,)? }) => {
        impl From<$core> for $code {
            fn from(value: $core) -> Self {
                match value { $($core::$var => Self::$var),* }
            }
        }
        impl $code {
            /// The core value; `None` = a code of a newer version.
            pub fn known(self) -> Option<$core> {
                match self { $(Self::$var => Some($core::$var),)* _ => None }
            }
        }
    };
}

code_table!(Origin <=> OriginCode { Human, Synthetic });
code_table!(WindowStatus <=> StatusCode { Unknown, Allowed, Warning, Rejected });
code_table!(ReadingSource <=> SourceCode { Failure, Event, Header, Probe, Hub, Rollout });
code_table!(CallOutcome <=> OutcomeCode { Completed, Failed, Denied, Cancelled, Unknown });
code_table!(TodoStatus <=> TodoCode { Pending, InProgress, Completed, Cancelled });
code_table!(HandoffState <=> DocumentState {
    Armed, Claimed, Acked, Stopped, Discarded, Chained, Expired, Corrupt
});
code_table!(FailureKind <=> ReasonCode {
    RateLimit, Billing, UpstreamRateLimit, Overloaded, Timeout, Transport, Auth, ContextOverflow, ContentFilter,
    BadRequest, Crashed
});
code_table!(FailureScope <=> FailureScopeCode {
    Account, AccountModel, Burst, UpstreamShared, Request, Session, NetworkEdge
});

fn millis(at: Option<Timestamp>) -> ROption<i64> {
    at.map(Timestamp::as_millisecond).into()
}

fn instant(ms: ROption<i64>) -> Option<Timestamp> {
    ms.into_option()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

impl RouteRecord {
    /// The route as the gate looks at it.
    pub fn view(&self) -> EntryView<'_> {
        EntryView {
            subscription: &self.subscription,
            model: &self.model,
            counts_as: &self.counts_as,
            usable: self.usable,
        }
    }
}

impl WindowRecord {
    /// The window as the gate looks at it; an unknown status never blocks, an unknown source or scope is the weakest one.
    pub fn view(&self) -> WindowView<'_> {
        WindowView {
            id: &self.id,
            scope: match self.scope {
                ScopeCode::Unstated => ScopeView::Unstated,
                ScopeCode::Account => ScopeView::Account,
                ScopeCode::Model => ScopeView::Model(&self.scope_name),
                ScopeCode::Bucket => ScopeView::Bucket(&self.scope_name),
                // Money never blocks by itself; neither does a scope of a newer version.
                _ => ScopeView::Spend,
            },
            status: self.status.known().unwrap_or(WindowStatus::Unknown),
            used_pct: self.used_pct.into_option(),
            resets_at_ms: self.resets_at_ms.into_option(),
            observed_at_ms: self.observed_at_ms.into_option(),
            source: self.source.known().unwrap_or(ReadingSource::Rollout),
        }
    }
}

impl From<&Reading> for WindowRecord {
    fn from(reading: &Reading) -> Self {
        let (scope, name) = match &reading.scope {
            None => (ScopeCode::Unstated, ""),
            Some(WindowScope::Account) => (ScopeCode::Account, ""),
            Some(WindowScope::Model(name)) => (ScopeCode::Model, name.as_str()),
            Some(WindowScope::Bucket(name)) => (ScopeCode::Bucket, name.as_str()),
            Some(WindowScope::Spend) => (ScopeCode::Spend, ""),
        };
        Self {
            id: reading.window.as_str().into(),
            scope,
            scope_name: name.into(),
            status: reading.status.into(),
            used_pct: reading.used_pct.into(),
            resets_at_ms: millis(reading.resets_at),
            observed_at_ms: millis(reading.observed_at),
            source: reading.source.into(),
        }
    }
}

impl From<&Todo> for TodoRecord {
    fn from(todo: &Todo) -> Self {
        Self {
            id: todo.id.as_str().into(),
            content: todo.content.as_str().into(),
            status: todo.status.into(),
        }
    }
}

impl From<&TodoRecord> for Todo {
    /// A status of a newer version counts as open.
    fn from(record: &TodoRecord) -> Self {
        Self {
            id: record.id.as_str().to_owned(),
            content: record.content.as_str().to_owned(),
            status: record.status.known().unwrap_or(TodoStatus::Pending),
        }
    }
}

impl From<&Failure> for FailureRecord {
    fn from(failure: &Failure) -> Self {
        Self {
            reason: failure.kind.into(),
            scope: failure.scope.clone().into(),
            retry_at_ms: millis(failure.retry_at),
            window: failure.window.as_deref().map(RString::from).into(),
            detail: failure.detail.as_str().into(),
        }
    }
}

impl FailureRecord {
    /// The core value; `None` = a reason of a newer version.
    pub fn failure(&self) -> Option<Failure> {
        Some(Failure {
            kind: self.reason.known()?,
            scope: self.scope.known().unwrap_or(FailureScope::Request),
            retry_at: instant(self.retry_at_ms),
            window: self.window.as_ref().map(ToString::to_string).into_option(),
            detail: self.detail.as_str().to_owned(),
        })
    }
}

impl JournalRecord {
    fn blank(kind: JournalKind) -> Self {
        Self {
            kind,
            id: RString::new(),
            name: RString::new(),
            text: RString::new(),
            block: 0,
            outcome: OutcomeCode::Unknown,
            at_ms: ROption::RNone,
            todos: RVec::new(),
            failure: ROption::RNone,
        }
    }

    /// The journal entry; `None` = a kind of a newer version, or a record that does not hold together.
    pub fn entry(&self) -> Option<JournalEntry> {
        let at = instant(self.at_ms);
        Some(match self.kind {
            JournalKind::Attempt => JournalEntry::Attempt {
                attempt: self.id.as_str().into(),
                route: self.name.parse().ok()?,
                at: at?,
            },
            JournalKind::Session => JournalEntry::Session {
                id: self.id.as_str().into(),
            },
            JournalKind::Text => JournalEntry::Text {
                block: self.block,
                text: self.text.as_str().to_owned(),
            },
            JournalKind::Retract => JournalEntry::Retract {
                from_block: self.block,
            },
            JournalKind::ToolCall => JournalEntry::ToolCall {
                id: self.id.as_str().to_owned(),
                name: self.name.as_str().to_owned(),
                arguments: self.text.as_str().to_owned(),
            },
            JournalKind::ToolResult => JournalEntry::ToolResult {
                id: self.id.as_str().to_owned(),
                outcome: self.outcome.known().unwrap_or(CallOutcome::Unknown),
                text: self.text.as_str().to_owned(),
            },
            JournalKind::Todos => JournalEntry::Todos {
                todos: self.todos.iter().map(Todo::from).collect(),
            },
            JournalKind::Failed => JournalEntry::Failed {
                failure: self.failure.as_ref().into_option()?.failure()?,
                at: at?,
            },
            JournalKind::Stopped => JournalEntry::Stopped { at: at? },
            _ => return None,
        })
    }
}

impl From<&JournalEntry> for JournalRecord {
    fn from(entry: &JournalEntry) -> Self {
        match entry {
            JournalEntry::Attempt { attempt, route, at } => Self {
                id: attempt.as_str().into(),
                name: route.to_string().into(),
                at_ms: millis(Some(*at)),
                ..Self::blank(JournalKind::Attempt)
            },
            JournalEntry::Session { id } => Self {
                id: id.as_str().into(),
                ..Self::blank(JournalKind::Session)
            },
            JournalEntry::Text { block, text } => Self {
                block: *block,
                text: text.as_str().into(),
                ..Self::blank(JournalKind::Text)
            },
            JournalEntry::Retract { from_block } => Self {
                block: *from_block,
                ..Self::blank(JournalKind::Retract)
            },
            JournalEntry::ToolCall {
                id,
                name,
                arguments,
            } => Self {
                id: id.as_str().into(),
                name: name.as_str().into(),
                text: arguments.as_str().into(),
                ..Self::blank(JournalKind::ToolCall)
            },
            JournalEntry::ToolResult { id, outcome, text } => Self {
                id: id.as_str().into(),
                outcome: (*outcome).into(),
                text: text.as_str().into(),
                ..Self::blank(JournalKind::ToolResult)
            },
            JournalEntry::Todos { todos } => Self {
                todos: todos.iter().map(TodoRecord::from).collect(),
                ..Self::blank(JournalKind::Todos)
            },
            JournalEntry::Failed { failure, at } => Self {
                failure: ROption::RSome(failure.into()),
                at_ms: millis(Some(*at)),
                ..Self::blank(JournalKind::Failed)
            },
            JournalEntry::Stopped { at } => Self {
                at_ms: millis(Some(*at)),
                ..Self::blank(JournalKind::Stopped)
            },
        }
    }
}

impl From<&StoredHandoff> for DocumentRecord {
    fn from(stored: &StoredHandoff) -> Self {
        Self {
            id: stored.handoff.id.as_str().into(),
            state: stored.state.into(),
            json: serde_json::to_string(&stored.handoff)
                .unwrap_or_default()
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journal_entry_crosses_and_comes_back() {
        let at = Timestamp::from_millisecond(1_789_981_200_123).unwrap();
        let failure = Failure::new(
            FailureKind::Billing,
            FailureScope::AccountModel,
            "no credits",
        )
        .retry_at(Some(at))
        .window(Some("seven_day".into()));
        let entries = [
            JournalEntry::Attempt {
                attempt: "a1".into(),
                route: "Sub/a/b".parse().unwrap(),
                at,
            },
            JournalEntry::Session { id: "s".into() },
            JournalEntry::Text {
                block: 3,
                text: "é".into(),
            },
            JournalEntry::Retract { from_block: 2 },
            JournalEntry::ToolCall {
                id: "t".into(),
                name: "Bash".into(),
                arguments: "{}".into(),
            },
            JournalEntry::ToolResult {
                id: "t".into(),
                outcome: CallOutcome::Denied,
                text: "no".into(),
            },
            JournalEntry::Todos {
                todos: vec![Todo {
                    id: "1".into(),
                    content: "x".into(),
                    status: TodoStatus::InProgress,
                }],
            },
            JournalEntry::Failed { failure, at },
            JournalEntry::Stopped { at },
        ];
        for entry in entries {
            assert_eq!(JournalRecord::from(&entry).entry(), Some(entry));
        }
    }

    #[test]
    fn unknown_codes_never_block() {
        let mut record = WindowRecord {
            id: "five_hour".into(),
            scope: ScopeCode(200),
            scope_name: "x".into(),
            status: StatusCode(200),
            used_pct: ROption::RNone,
            resets_at_ms: ROption::RNone,
            observed_at_ms: ROption::RNone,
            source: SourceCode(200),
        };
        assert_eq!(record.view().status, WindowStatus::Unknown);
        assert_eq!(record.view().scope, ScopeView::Spend);
        record.scope = ScopeCode::Model;
        assert_eq!(record.view().scope, ScopeView::Model("x"));
        assert_eq!(ReasonCode(99).known(), None);
        assert!(JournalRecord::blank(JournalKind(99)).entry().is_none());
    }
}
