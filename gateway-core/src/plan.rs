//! Which routes are eligible, in what order, and why each other one was skipped: the quota gate.
//!
//! The gate skips only on affirmative evidence: an applicable window refused by the newest reading, observed at most six
//! hours ago and not ahead of the clock, with a known reset more than five minutes away. Everything else is tried.

/// A window as the gate looks at it; borrowed, so that a plugin can read records in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowView<'a> {
    pub id: &'a str,
    pub scope: ScopeView<'a>,
    pub status: crate::usage::WindowStatus,
    /// Points of 100; `None` = unknown.
    pub used_pct: Option<f64>,
    pub resets_at_ms: Option<i64>,
    pub observed_at_ms: Option<i64>,
    pub source: crate::usage::ReadingSource,
}

/// A borrowed [`WindowScope`](crate::usage::WindowScope).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeView<'a> {
    /// Not stated: decided by the window's id.
    Unstated,
    Account,
    Model(&'a str),
    Bucket(&'a str),
    Spend,
}

/// A chain entry as the gate looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryView<'a> {
    /// As shown to people.
    pub subscription: &'a str,
    pub model: &'a str,
    /// Folded name or quota group: entries that share it count as one subscription in N.
    pub counts_as: &'a str,
}

/// The gate's constants, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSettings {
    /// Evidence older than this is not used; equal is trusted. 21,600 s.
    pub max_age_ms: i64,
    /// A reset this close or closer is not worth a skip. 300 s.
    pub horizon_ms: i64,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            max_age_ms: 21_600_000,
            horizon_ms: 300_000,
        }
    }
}

/// The gate's word on one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryVerdict<'a> {
    Eligible,
    /// Spent: the blocking window that resets last, and when.
    Skip {
        window: &'a str,
        until_ms: i64,
    },
}

/// Judges one entry. Windows must be the newest reading per (window, scope) of its subscription.
pub fn judge<'a>(
    _model: &str,
    _windows: impl IntoIterator<Item = WindowView<'a>>,
    _settings: GateSettings,
    _now_ms: i64,
) -> EntryVerdict<'a> {
    unimplemented!()
}
