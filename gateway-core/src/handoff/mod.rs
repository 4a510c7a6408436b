//! The sealed remainder of a cut turn: what was asked, what was done, what hangs open. Facts for the next turn, never a
//! script to replay.

pub mod assemble;
pub mod carriage;
pub mod cut;
pub mod merge;
pub mod name;
pub mod redact;
pub mod render;
pub mod think;
pub mod validity;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{CallOutcome, Todo};
use crate::ids::{ConversationId, HandoffId, InboundId, ProfileId, SessionKey, TurnId};
use crate::route::Route;

/// The payload's version this code writes; a newer one is read as [`HandoffState::Corrupt`], never guessed at.
pub const PAYLOAD_VERSION: u32 = 1;

/// What a cut turn leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    pub version: u32,
    pub id: HandoffId,
    pub turn: TurnId,
    pub profile: ProfileId,
    pub session: SessionKey,
    pub conversation: ConversationId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Short words: `rate limit`, `interrupted by a restart`, …
    pub reason: String,
    /// The route that was live at the cut; `None` = none had started.
    pub route: Option<Route>,
    /// The pending request, whole and verbatim. After cuts in a row: every request that got no answer, oldest first,
    /// each whole and verbatim, with [`assemble::LATER_REQUEST`] between them.
    pub request: String,
    pub request_id: InboundId,
    /// Visible text already reported, redacted; empty = none.
    pub progress: String,
    pub calls: Vec<CallRecord>,
    pub open_todos: Vec<Todo>,
    /// The soonest known reset at the cut.
    pub next_reset: Option<Timestamp>,
    /// Turns cut in a row before this one, whose remains are merged in here.
    pub earlier_cuts: u32,
}

/// One tool call of the cut turn, in issue order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    pub id: String,
    pub name: String,
    /// Redacted, cut.
    pub arguments: String,
    pub outcome: CallOutcome,
    /// Redacted, cut; `None` = there was none.
    pub result: Option<String>,
}

/// Where a stored handoff stands.
// Armed -> Claimed -> Acked; Claimed -> Armed (released); Armed -> Discarded | Expired; Stopped is born final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffState {
    /// Waits for the next human turn of its conversation.
    Armed,
    /// A running turn carries it.
    Claimed,
    /// An answered turn carried it: done.
    Acked,
    /// The person stopped the turn: shown, never injected.
    Stopped,
    Discarded,
    /// Merged into a newer handoff by a second cut.
    Chained,
    Expired,
    Corrupt,
}

/// A stored handoff with its state and the version that guards each change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredHandoff {
    pub handoff: Handoff,
    pub state: HandoffState,
    /// Grows by one with each change; a change names the version it saw.
    pub revision: i64,
    /// The turn that claimed it, while claimed, acked or chained.
    pub claimed_by: Option<TurnId>,
}
