//! Usage payloads of other programs and services, as readings: one file per source, each a pure function.
//!
//! **The unit belongs to the source, not to the value**: Claude's usage endpoint counts to 100 and its events to 1, Codex
//! counts minutes in one payload and seconds in the next. So a caller names the parser of the surface it asked; only
//! [`detect`], which serves `baton explain usage`, guesses from the shape.
//!
//! Every parser bears any JSON: unknown members, kinds and windows are passed over, one odd value voids only itself.
//! A window that is `null` does not exist, a missing value is unknown and never zero, above 100 is legal, and money
//! (credits, overage, extra usage) becomes a window of scope `Spend`, which blocks nobody by itself.
//! What a reading means for a turn is decided elsewhere ([`blocking`](super::blocking), [`plan`](crate::plan)).

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod detect;
mod fields;
pub mod gemini;
pub mod generic;
pub mod glm;
pub mod grok;
pub mod hub;
pub mod kimi;
pub mod login;
pub mod minimax;
pub mod opencode_go;
pub mod openrouter;
pub mod ratelimit_headers;
mod span;

use jiff::{SignedDuration, Timestamp};

pub use crate::headers::Headers;

use super::{Reading, ReadingSource, WindowScope, WindowStatus};
use crate::ids::SubscriptionId;

/// No account has more windows; a list that goes on is not looked at further.
const MAX_WINDOWS: usize = 256;

/// Where a payload comes from; the same for all its windows.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub subscription: &'a SubscriptionId,
    /// When the payload was made, or else received. `None` = nobody knows: "resets in 30 minutes" then has no anchor and
    /// stays unknown (a reset recomputed against now moves away for ever).
    pub observed_at: Option<Timestamp>,
    pub source: ReadingSource,
}

impl<'a> Origin<'a> {
    /// A payload received at a known time, as every live source has it.
    pub fn new(subscription: &'a SubscriptionId, at: Timestamp, source: ReadingSource) -> Self {
        Self {
            subscription,
            observed_at: Some(at),
            source,
        }
    }

    /// A reading of an account-wide window about which nothing is known yet.
    fn reading(&self, window: impl Into<String>) -> Reading {
        Reading {
            subscription: self.subscription.clone(),
            window: window.into(),
            scope: Some(WindowScope::Account),
            used_pct: None,
            status: WindowStatus::Unknown,
            resets_at: None,
            duration_mins: None,
            observed_at: self.observed_at,
            source: self.source,
        }
    }

    /// An instant stated as a wait.
    fn after(&self, seconds: f64) -> Option<Timestamp> {
        let wait = SignedDuration::try_from_secs_f64(seconds).ok()?;
        let at = self.observed_at?.checked_add(wait).ok()?;
        (seconds > 0.0 && fields::is_plausible(at)).then_some(at)
    }
}

#[cfg(test)]
pub(crate) mod testing;
