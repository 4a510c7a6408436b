//! How far one window's reading may be believed now: per window, never per snapshot, because a sparse update refreshes only
//! its own window (rules F1 to F4 of the routing contract). Pure; the time is an argument.
//!
//! Two questions have two answers. "May this window be believed to be spent?" (a source) is asked of [`is_exhausted`]; "may
//! this subscription receive work on the strength of this window?" (a candidate) of [`is_candidate`], which is stricter:
//! what nobody has looked at since its cycle ended is never assumed to be empty.

use super::blocking::{self, MAX_AHEAD_MS};
use crate::plan::WindowView;

/// A reading this old or younger is fresh, in milliseconds.
pub const FRESH_MS: i64 = 600_000;
/// A window without a reset is a candidate only on a reading this young, in milliseconds.
pub const RESETLESS_MS: i64 = 120_000;
/// A window without a reset is a candidate only up to this share used, in points of 100.
pub const RESETLESS_USED: f64 = 95.0;

/// What a reading's age and reset make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// F1: read within ten minutes (and at most a minute ahead of our clock), its cycle still running.
    Fresh,
    /// F4: fresh, but nobody said when the window resets.
    Resetless,
    /// F3: read within ten minutes, but its cycle has ended since: it describes a window that is over.
    Rolled,
    /// F1: older than ten minutes.
    Stale,
    /// F2: stamped more than a minute ahead of our clock; as good as stale.
    Future,
    /// No instant of observation is known; as good as stale.
    Undated,
}

impl Freshness {
    /// Its word in machine-readable output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Resetless => "resetless",
            Self::Rolled => "rolled",
            Self::Stale => "stale",
            Self::Future => "future",
            Self::Undated => "undated",
        }
    }
}

/// Classifies one reading.
pub fn freshness(window: &WindowView<'_>, now_ms: i64) -> Freshness {
    let Some(observed) = window.observed_at_ms else {
        return Freshness::Undated;
    };
    let age = now_ms.saturating_sub(observed);
    match window.resets_at_ms {
        _ if age < -MAX_AHEAD_MS => Freshness::Future,
        _ if age > FRESH_MS => Freshness::Stale,
        Some(reset) if reset <= now_ms => Freshness::Rolled,
        Some(_) => Freshness::Fresh,
        None => Freshness::Resetless,
    }
}

/// Whether the cycle this reading describes has ended.
pub fn is_rolled(window: &WindowView<'_>, now_ms: i64) -> bool {
    window.resets_at_ms.is_some_and(|reset| reset <= now_ms)
}

/// Whether the window is spent as a source (section 1.6): it refuses, and its cycle has not ended. A full window without a
/// reset is spent.
pub fn is_exhausted(window: &WindowView<'_>, now_ms: i64) -> bool {
    blocking::refuses(window.status, window.used_pct) && !is_rolled(window, now_ms)
}

/// Whether work may be sent to a subscription on the strength of this window's reading.
pub fn is_candidate(window: &WindowView<'_>, now_ms: i64) -> bool {
    let age = now_ms.saturating_sub(window.observed_at_ms.unwrap_or(i64::MIN));
    match freshness(window, now_ms) {
        Freshness::Fresh => !is_exhausted(window, now_ms),
        Freshness::Resetless => {
            age <= RESETLESS_MS
                && window.used_pct.is_some_and(|used| used <= RESETLESS_USED)
                && !is_exhausted(window, now_ms)
        }
        Freshness::Rolled | Freshness::Stale | Freshness::Future | Freshness::Undated => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::ScopeView;
    use crate::usage::{ReadingSource, WindowStatus};

    const NOW: i64 = 1_789_981_200_000;

    fn window(
        age_s: Option<i64>,
        resets_in_s: Option<i64>,
        used_pct: Option<f64>,
        status: WindowStatus,
    ) -> WindowView<'static> {
        WindowView {
            id: "five_hour",
            scope: ScopeView::Unstated,
            status,
            used_pct,
            resets_at_ms: resets_in_s.map(|left| NOW + left * 1_000),
            observed_at_ms: age_s.map(|age| NOW - age * 1_000),
            source: ReadingSource::Event,
        }
    }

    #[test]
    fn f1_to_f4_at_their_edges() {
        use Freshness::{Fresh, Future, Resetless, Rolled, Stale, Undated};
        use WindowStatus::{Allowed, Rejected, Unknown};
        #[rustfmt::skip]
        let rows = [
            // age, resets in, used, status             -> class, candidate, exhausted
            (Some(0), Some(3_600), Some(40.0), Allowed,    Fresh, true, false),
            (Some(600), Some(3_600), Some(40.0), Allowed,  Fresh, true, false),
            (Some(601), Some(3_600), Some(40.0), Allowed,  Stale, false, false),
            (Some(-60), Some(3_600), Some(40.0), Allowed,  Fresh, true, false),
            (Some(-61), Some(3_600), Some(40.0), Allowed,  Future, false, false),
            (None, Some(3_600), Some(40.0), Allowed,       Undated, false, false),
            (Some(60), Some(0), Some(40.0), Allowed,       Rolled, false, false),
            (Some(60), Some(-60), Some(100.0), Unknown,    Rolled, false, false),
            (Some(60), Some(-60), Some(100.0), Rejected,   Rolled, false, false),
            (Some(60), Some(1), Some(100.0), Unknown,      Fresh, false, true),
            (Some(60), Some(1), Some(12.0), Rejected,      Fresh, false, true),
            (Some(86_400), Some(60), None, Rejected,       Stale, false, true),
            (Some(60), Some(60), Some(100.0), Allowed,     Fresh, true, false),
            (Some(0), None, Some(95.0), Allowed,           Resetless, true, false),
            (Some(120), None, Some(95.0), Allowed,         Resetless, true, false),
            (Some(121), None, Some(95.0), Allowed,         Resetless, false, false),
            (Some(0), None, Some(95.1), Allowed,           Resetless, false, false),
            (Some(0), None, None, Allowed,                 Resetless, false, false),
            (Some(0), None, Some(100.0), Unknown,          Resetless, false, true),
            (Some(601), None, Some(1.0), Allowed,          Stale, false, false),
        ];
        for (age, resets_in, used, status, class, candidate, exhausted) in rows {
            let window = window(age, resets_in, used, status);
            let name = format!("{age:?} {resets_in:?} {used:?} {status:?}");
            assert_eq!(freshness(&window, NOW), class, "{name}");
            assert_eq!(is_candidate(&window, NOW), candidate, "{name}");
            assert_eq!(is_exhausted(&window, NOW), exhausted, "{name}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_not_recent_receives_work(age_ms in any::<i64>(), reset_ms in any::<Option<i64>>(), used in any::<Option<f64>>()) {
            let window = WindowView {
                observed_at_ms: Some(age_ms),
                resets_at_ms: reset_ms,
                used_pct: used,
                ..window(None, None, None, WindowStatus::Unknown)
            };
            let age = i128::from(NOW) - i128::from(age_ms);
            if is_candidate(&window, NOW) {
                prop_assert!((-i128::from(MAX_AHEAD_MS)..=i128::from(FRESH_MS)).contains(&age));
                prop_assert!(reset_ms.is_none_or(|reset| reset > NOW));
            }
        }
    }
}
