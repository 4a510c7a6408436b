//! The usage registry's records: quota windows and observations of them. Decisions about them live beside this file.
//! `None` is unknown everywhere, never zero and never "no such window".

pub mod blocking;
pub mod burn;
pub mod freshness;
pub mod identity;
pub mod instant;
pub mod kinship;
pub mod lenient;
pub mod merge;
pub mod portal;
pub mod probe;
pub mod refusal;
pub mod scope;
pub mod source;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::SubscriptionId;
use crate::plan::WindowView;

/// What a window limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowScope {
    Account,
    /// A model family, by name (`opus`).
    Model(String),
    Bucket(String),
    /// Money; never blocks by itself.
    Spend,
}

/// What the provider says of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowStatus {
    Unknown,
    Allowed,
    Warning,
    /// `rejected` or `exhausted`.
    Rejected,
}

/// Where an observation comes from; on equal age the earlier variant wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingSource {
    Failure,
    Event,
    Header,
    Probe,
    Hub,
    /// Display only; never decides.
    Rollout,
}

/// How long a window's cycle is, in the order people read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// Hours.
    Session,
    Weekly,
    Monthly,
    /// Neither its length nor its name tells.
    Other,
}

impl WindowKind {
    /// By the stated length, else by the id. Codex's `primary` is a position, not a length, so its id alone tells nothing.
    pub fn of(window: &str, duration_mins: Option<u32>) -> Self {
        match duration_mins {
            Some(43_200..) => Self::Monthly,
            Some(10_080..) => Self::Weekly,
            Some(1..) => Self::Session,
            _ if window.contains("month") => Self::Monthly,
            _ if window.contains("seven_day") || window.contains("week") => Self::Weekly,
            _ if window.contains("hour") || matches!(window, "go_rolling" | "session") => {
                Self::Session
            }
            _ => Self::Other,
        }
    }
}

/// One observation of one window of one subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The registry's join key (`provider_slug`).
    pub subscription: SubscriptionId,
    /// Stable window id: `five_hour`, `seven_day`, `seven_day_<model>`, `primary`, …
    pub window: String,
    /// `None` = not stated; see [`WindowScope`] rules per window id.
    pub scope: Option<WindowScope>,
    /// Points of 100 used; above 100 is legal.
    pub used_pct: Option<f64>,
    pub status: WindowStatus,
    pub resets_at: Option<Timestamp>,
    pub duration_mins: Option<u32>,
    pub observed_at: Option<Timestamp>,
    pub source: ReadingSource,
}

impl Reading {
    /// Borrows the reading as the gate looks at it.
    pub fn view(&self) -> WindowView<'_> {
        WindowView {
            id: &self.window,
            scope: scope::view(self.scope.as_ref()),
            status: self.status,
            used_pct: self.used_pct,
            resets_at_ms: self.resets_at.map(Timestamp::as_millisecond),
            observed_at_ms: self.observed_at.map(Timestamp::as_millisecond),
            source: self.source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_length_outranks_the_id() {
        use WindowKind::{Monthly, Other, Session, Weekly};
        let rows = [
            ("primary", Some(300), Session),
            ("primary", Some(43_200), Monthly),
            ("secondary", Some(10_080), Weekly),
            ("primary", None, Other),
            ("five_hour", None, Session),
            ("seven_day_opus", None, Weekly),
            ("go_weekly", None, Weekly),
            ("monthly_spend", None, Monthly),
            ("five_hour", Some(0), Session),
        ];
        for (id, mins, want) in rows {
            assert_eq!(WindowKind::of(id, mins), want, "{id} {mins:?}");
        }
    }
}
