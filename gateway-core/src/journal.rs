//! The write-ahead record of a running turn: the request before the first call, then what happened, as it happens.
//! It is what a handoff is assembled from, at the cut or at the next start. Bodies are redacted before they get here.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{CallOutcome, Todo};
use crate::failure::Failure;
use crate::ids::{
    AttemptId, ConversationId, HandoffId, InboundId, ProfileId, ProviderSessionId, SessionKey,
    TurnId,
};
use crate::message::{Origin, ReplyTarget};
use crate::route::Route;

/// The first row of a turn, durable before any prompt leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    pub turn: TurnId,
    pub profile: ProfileId,
    pub session: SessionKey,
    pub conversation: ConversationId,
    pub inbound: InboundId,
    pub origin: Origin,
    pub target: ReplyTarget,
    /// Whole and verbatim, up to 1 MiB.
    pub request: String,
    pub started_at: Timestamp,
    /// The gateway process that runs it; see `state/instances` for how a dead owner is told.
    pub owner: String,
    /// The handoffs this turn claimed and carries, oldest first.
    pub carries: Vec<HandoffId>,
}

/// How far a turn has come. Everything but `Open` is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Open,
    Answered,
    /// Sealed into a handoff.
    Cut,
    Stopped,
    /// Ended with a typed error and nothing worth saving.
    Failed,
}

/// One thing that happened, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalEntry {
    /// An attempt begins on this route.
    Attempt {
        attempt: AttemptId,
        route: Route,
        at: Timestamp,
    },
    /// The provider named its session.
    Session {
        id: ProviderSessionId,
    },
    /// Answer text (deltas of one block may be merged).
    Text {
        block: u32,
        text: String,
    },
    /// Blocks of the current attempt were withdrawn.
    Retract {
        from_block: u32,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: String,
    },
    ToolResult {
        id: String,
        outcome: CallOutcome,
        text: String,
    },
    Todos {
        todos: Vec<Todo>,
    },
    /// The current attempt ended badly.
    Failed {
        failure: Failure,
        at: Timestamp,
    },
    /// The person stopped the turn.
    Stopped {
        at: Timestamp,
    },
}
