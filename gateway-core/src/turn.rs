//! How a turn ends, and the facts a turn carries between its phases.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::TokenUsage;
use crate::failure::Failure;
use crate::ids::HandoffId;
use crate::route::Route;

/// One provider attempt's end.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    Answered(Answer),
    Failed(Failure),
    /// Our stop reached it.
    Stopped,
}

/// What an answering attempt leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The whole visible text of this attempt.
    pub text: String,
    pub usage: TokenUsage,
}

/// Always exactly one per turn, always visible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Answered {
        route: Route,
    },
    Cut {
        /// Short words, for example `rate limit`.
        reason: String,
        /// `None` = nothing worth saving, or handoffs are off.
        handoff: Option<HandoffId>,
        /// The soonest known reset over the chain; `None` = unknown.
        next_reset: Option<Timestamp>,
    },
    Stopped,
}
