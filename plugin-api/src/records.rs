//! Facts in ABI form: owned, `repr(C)`, built once by the gateway and lent to plugins as slices. Every struct here is
//! frozen for the major version; small integers are open sets, so an unknown one is data and not an error.
//! Absence is unknown, never zero.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RString, RVec, Tuple2};

/// A late addition to a context or an answer: name and text.
pub type Attr = Tuple2<RString, RString>;

macro_rules! open_code {
    ($(#[$doc:meta])* $name:ident { $($(#[$var_doc:meta])* $var:ident = $value:literal),* $(,)? }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(abi_stable::StableAbi, Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub u8);

        #[allow(non_upper_case_globals, reason = "reads like the enum it stands for, and stays open")]
        impl $name {
            $($(#[$var_doc])* pub const $var: Self = Self($value);)*
        }
    };
}

pub(crate) use open_code;

open_code! {
    /// Who stands behind the message.
    OriginCode { Human = 0, Synthetic = 1 }
}
open_code! {
    /// What a window limits.
    ScopeCode { Unstated = 0, Account = 1, Model = 2, Bucket = 3, Spend = 4 }
}
open_code! {
    /// What the provider says of a window.
    StatusCode { Unknown = 0, Allowed = 1, Warning = 2, Rejected = 3 }
}
open_code! {
    /// Where an observation comes from.
    SourceCode { Failure = 0, Event = 1, Header = 2, Probe = 3, Hub = 4, Rollout = 5 }
}
open_code! {
    /// Why an attempt ended badly.
    ReasonCode {
        RateLimit = 0, Billing = 1, UpstreamRateLimit = 2, Overloaded = 3, Timeout = 4, Transport = 5, Auth = 6,
        ContextOverflow = 7, ContentFilter = 8, BadRequest = 9, Crashed = 10,
    }
}
open_code! {
    /// What a failure takes down.
    FailureScopeCode {
        Account = 0, AccountModel = 1, Burst = 2, UpstreamShared = 3, Request = 4, Session = 5, NetworkEdge = 6,
    }
}
open_code! {
    /// How a tool call ended; `Unknown` may have run.
    OutcomeCode { Completed = 0, Failed = 1, Denied = 2, Cancelled = 3, Unknown = 4 }
}
open_code! {
    /// Where a todo stands.
    TodoCode { Pending = 0, InProgress = 1, Completed = 2, Cancelled = 3 }
}
open_code! {
    /// Where a saved handoff stands.
    DocumentState {
        Armed = 0, Claimed = 1, Acked = 2, Stopped = 3, Discarded = 4, Chained = 5, Expired = 6, Corrupt = 7,
    }
}
open_code! {
    /// What a [`JournalRecord`] is.
    JournalKind {
        Attempt = 0, Session = 1, Text = 2, Retract = 3, ToolCall = 4, ToolResult = 5, Todos = 6, Failed = 7,
        Stopped = 8,
    }
}

/// One entry of the chain, in order.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct RouteRecord {
    /// As shown to people.
    pub subscription: RString,
    pub model: RString,
    /// The registry's join key, folded.
    pub slug: RString,
    /// Folded name or quota group: entries that share it count as one subscription.
    pub counts_as: RString,
    /// Whether a turn here costs money of its own.
    pub metered: bool,
    /// Whether the walk would take this entry at all; a metered entry nobody opted into is not usable.
    pub usable: bool,
    /// The entry's windows are `windows[first_window .. first_window + window_count]` of the context.
    pub first_window: u32,
    pub window_count: u32,
}

/// The newest reading of one quota window of one subscription.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct WindowRecord {
    /// `five_hour`, `seven_day`, `primary`, …
    pub id: RString,
    pub scope: ScopeCode,
    /// The model family or bucket the scope names; empty otherwise.
    pub scope_name: RString,
    pub status: StatusCode,
    /// Points of 100; above 100 is legal.
    pub used_pct: ROption<f64>,
    pub resets_at_ms: ROption<i64>,
    pub observed_at_ms: ROption<i64>,
    pub source: SourceCode,
}

/// One entry of a CLI's todo list.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct TodoRecord {
    pub id: RString,
    pub content: RString,
    pub status: TodoCode,
}

/// Why an attempt ended badly.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct FailureRecord {
    pub reason: ReasonCode,
    pub scope: FailureScopeCode,
    pub retry_at_ms: ROption<i64>,
    /// The window a limit names.
    pub window: ROption<RString>,
    /// One redacted line.
    pub detail: RString,
}

/// One thing that happened in the turn, in order. Which fields carry something depends on `kind`.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct JournalRecord {
    pub kind: JournalKind,
    /// Attempt, session or call id.
    pub id: RString,
    /// The tool's name; of an attempt its route, `subscription/model`.
    pub name: RString,
    /// Answer text, arguments or result: redacted.
    pub text: RString,
    /// Block number of a text, first withdrawn block of a retract.
    pub block: u32,
    pub outcome: OutcomeCode,
    pub at_ms: ROption<i64>,
    pub todos: RVec<TodoRecord>,
    pub failure: ROption<FailureRecord>,
}

/// A saved handoff of this conversation.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct DocumentRecord {
    pub id: RString,
    pub state: DocumentState,
    /// The payload as JSON (`gateway_core::handoff::Handoff`).
    pub json: RString,
}
