//! The usage registry's records: quota windows and observations of them. Decisions about them live beside this file.
//! `None` is unknown everywhere, never zero and never "no such window".

pub mod blocking;
pub mod identity;
pub mod instant;
pub mod lenient;
pub mod merge;
pub mod portal;
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
