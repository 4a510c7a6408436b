//! Why an attempt ended badly, as data. A provider classifies once, at the source, typed fields before prose; everybody
//! else reads these values and never the text.
//!
//! [`Evidence`] unwraps an answer to its innermost error, [`judge`] says what it means, when to ask again and what to do.

mod action;
pub mod detail;
mod evidence;
mod judge;
mod loose;
mod members;
mod quota;
mod resets;
mod rows;
mod signs;
mod size;
mod stream;
mod tidy;
mod vendors;
mod words;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use crate::headers::Headers;
pub use action::Action;
pub use evidence::Evidence;
pub use judge::{Context, Endpoint, Judgement, judge};
pub use resets::number::{HORIZON, plausible};

/// The instant for which a sentence announces a reset ("resets 3pm (Europe/Berlin)"), seen at `now` by a program whose host
/// is in `zone`; `None` = it announces none, or it has passed.
pub(crate) fn reset_in_words(
    text: &str,
    now: Timestamp,
    zone: Option<&jiff::tz::TimeZone>,
) -> Option<Timestamp> {
    let clock = resets::clock::Clock {
        now,
        received: now,
        host_zone: zone,
        vendor_zone: None,
        window: None,
    };
    resets::in_prose(text, &clock, false).at
}

/// What went wrong. The words are the contract's (`baton explain failure` prints them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A quota window or a rate limit of this subscription.
    RateLimit,
    /// Money: credits, balance, a spend limit.
    Billing,
    /// An upstream shared pool behind an aggregator.
    UpstreamRateLimit,
    Overloaded,
    /// No answer in time, ours or theirs; also a silent stream.
    Timeout,
    /// The connection failed or the stream was cut.
    Transport,
    Auth,
    ContextOverflow,
    ContentFilter,
    /// The request itself is wrong (unknown model, malformed); retrying cannot help.
    BadRequest,
    /// The provider's process could not be started or died without a word.
    Crashed,
}

impl FailureKind {
    /// Whether the quota gate runs for it: rate limit, billing, upstream rate limit.
    pub fn is_quota(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Billing | Self::UpstreamRateLimit
        )
    }

    /// The short reason used in notices and handoffs, for example `rate limit`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::RateLimit => "rate limit",
            Self::Billing => "billing or quota exhausted",
            Self::UpstreamRateLimit => "upstream model rate limit",
            Self::Overloaded => "provider overloaded",
            Self::Timeout => "request timeout",
            Self::Transport => "connection to the provider lost",
            Self::Auth => "authentication failed",
            Self::ContextOverflow => "the conversation no longer fits the model's window",
            Self::ContentFilter => "the provider's content filter",
            Self::BadRequest => "the provider refused the request",
            Self::Crashed => "the provider's program did not run to its end",
        }
    }
}

/// What the failure is about, and so how much of the world it takes down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureScope {
    Account,
    /// Only this model on the account.
    AccountModel,
    /// A minute budget; the account is fine.
    Burst,
    UpstreamShared,
    Request,
    Session,
    /// The way out of this machine; every route suffers.
    NetworkEdge,
}

/// Why an attempt ended badly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub scope: FailureScope,
    /// The instant the provider stated for trying again; `None` = it stated none, and none is invented.
    pub retry_at: Option<Timestamp>,
    /// The window a limit names (`five_hour`, `seven_day`, …); `None` = not named.
    pub window: Option<String>,
    /// One line for people and logs, redacted, at most 300 characters; never shown as an answer.
    pub detail: String,
}

impl Failure {
    /// Builds a failure without a reset or a window.
    pub fn new(kind: FailureKind, scope: FailureScope, detail: impl Into<String>) -> Self {
        Self {
            kind,
            scope,
            retry_at: None,
            window: None,
            detail: detail.into(),
        }
    }

    /// Adds the instant the provider stated.
    pub fn retry_at(mut self, at: Option<Timestamp>) -> Self {
        self.retry_at = at;
        self
    }

    /// Adds the window the limit names.
    pub fn window(mut self, window: Option<String>) -> Self {
        self.window = window;
        self
    }
}

/// Bounds on one attempt. All of them are ours: the CLIs can be silent for minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// The whole attempt.
    pub deadline: Duration,
    /// The longest silence (no event at all).
    pub silence: Duration,
}

#[cfg(test)]
mod tests;
