//! When a subscription's own surface is asked how much is left. A pure schedule: the host keeps one [`ProbeState`] per quota
//! group and asks here before and after each probe.
//!
//! Asking costs no quota but is limited by its own rate: a provider that says "too often" is left alone for as long as it
//! asks, at least a minute and at most six hours. `Retry-After: 0` was seen on every answer of a surface that went on
//! refusing; it means five minutes here.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::freshness::{self, Freshness};
use crate::plan::WindowView;

/// A stated wait is kept, but never shorter than this.
const WAIT_LEAST: Duration = Duration::from_secs(60);
/// Nor longer than this.
const WAIT_MOST: Duration = Duration::from_secs(6 * 3_600);
/// After `Retry-After: 0`, or a throttle that states nothing.
const WAIT_UNSTATED: Duration = Duration::from_secs(300);
/// After a probe that broke; doubled with each further one.
const WAIT_FAILED: Duration = Duration::from_secs(30);
/// The longest wait after probes that broke: the ten minutes in which an exhausted subscription is looked at anyway.
const WAIT_FAILED_MOST: Duration = Duration::from_secs(600);
/// After an answer: it is as good as new for a minute, even if it named no window at all.
const WAIT_ANSWERED: Duration = Duration::from_secs(60);
/// How often an exhausted subscription is looked at again, so that an early reset is noticed (F9).
pub const RECHECK: SignedDuration = SignedDuration::from_secs(600);

/// What is remembered of the probes of one quota group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeState {
    /// When the last probe ended; `None` = there was none in this process.
    pub last_at: Option<Timestamp>,
    /// Not before this instant; `None` = any time.
    pub not_before: Option<Timestamp>,
    /// There is no surface to ask: never again in this process. Not kept: the next one may have a newer program.
    #[serde(skip)]
    pub unsupported: bool,
    /// Probes that broke, since the last one that did not.
    pub broken: u32,
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeEnd {
    /// It answered, whatever it said.
    Answered,
    /// There is no surface, or this login cannot use it.
    Unsupported,
    /// Asked too often; `None` = no wait was stated.
    Throttled(Option<Duration>),
    /// It broke: no connection, no sense, too late.
    Broken,
}

/// Why a probe is thought of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Somebody wants to know now: asked if what is known is not fresh.
    Demand,
    /// A timer of the running gateway: asked if it is exhausted and was not looked at for ten minutes.
    Sweep,
}

impl ProbeState {
    /// The state after a probe that ended like this.
    #[must_use]
    pub fn after(self, end: ProbeEnd, now: Timestamp) -> Self {
        let broken = match end {
            ProbeEnd::Broken => self.broken.saturating_add(1),
            ProbeEnd::Throttled(_) => self.broken,
            ProbeEnd::Answered | ProbeEnd::Unsupported => 0,
        };
        let wait = match end {
            ProbeEnd::Answered | ProbeEnd::Unsupported => WAIT_ANSWERED,
            ProbeEnd::Throttled(stated) => throttled(stated),
            ProbeEnd::Broken => {
                let doubled = WAIT_FAILED.saturating_mul(1 << (broken - 1).min(16));
                doubled.min(WAIT_FAILED_MOST)
            }
        };
        Self {
            last_at: Some(now),
            not_before: now.checked_add(wait).ok(),
            unsupported: self.unsupported || end == ProbeEnd::Unsupported,
            broken,
        }
    }

    /// Whether a probe may leave now at all. A wait that ends later than the longest there is was written by a clock that
    /// was ahead: it is none.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let waits = |at: Timestamp| {
            let left = at.duration_since(now);
            left.is_positive() && left.unsigned_abs() <= WAIT_MOST
        };
        !self.unsupported && !self.not_before.is_some_and(waits)
    }
}

fn throttled(stated: Option<Duration>) -> Duration {
    match stated {
        None => WAIT_UNSTATED,
        Some(zero) if zero.is_zero() => WAIT_UNSTATED,
        Some(wait) => wait.clamp(WAIT_LEAST, WAIT_MOST),
    }
}

/// Whether a subscription with these windows is to be probed now.
pub fn is_due<'a>(
    state: &ProbeState,
    occasion: Occasion,
    windows: impl IntoIterator<Item = WindowView<'a>>,
    now: Timestamp,
) -> bool {
    if !state.is_open(now) {
        return false;
    }
    let now_ms = now.as_millisecond();
    let mut windows = windows.into_iter().peekable();
    match occasion {
        Occasion::Demand => {
            windows.peek().is_none()
                || windows.any(|window| wants(freshness::freshness(&window, now_ms)))
        }
        Occasion::Sweep => {
            let recent = now_ms.saturating_sub(RECHECK.as_millis().try_into().unwrap_or(i64::MAX));
            // A look that is still to come was written by a clock that was ahead.
            let looked = state.last_at.filter(|at| *at <= now);
            let looked = looked.map(Timestamp::as_millisecond);
            let (mut exhausted, mut newest) = (false, looked.unwrap_or(i64::MIN));
            for window in windows.filter(|window| freshness::is_exhausted(window, now_ms)) {
                exhausted = true;
                // A stamp ahead of the clock must not put the look off.
                newest = newest.max(window.observed_at_ms.unwrap_or(i64::MIN).min(now_ms));
            }
            exhausted && newest <= recent
        }
    }
}

/// A resetless window stays resetless however often it is asked for: its age alone decides.
fn wants(freshness: Freshness) -> bool {
    !matches!(freshness, Freshness::Fresh | Freshness::Resetless)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ScopeView;
    use crate::usage::{ReadingSource, WindowStatus};

    const NOW_S: i64 = 1_789_981_200;

    fn at(offset_s: i64) -> Timestamp {
        Timestamp::from_second(NOW_S + offset_s).unwrap()
    }

    fn window(age_s: i64, resets_in_s: Option<i64>, status: WindowStatus) -> WindowView<'static> {
        WindowView {
            id: "five_hour",
            scope: ScopeView::Unstated,
            status,
            used_pct: Some(40.0),
            resets_at_ms: resets_in_s.map(|left| (NOW_S + left) * 1_000),
            observed_at_ms: Some((NOW_S - age_s) * 1_000),
            source: ReadingSource::Event,
        }
    }

    #[test]
    fn how_long_the_surface_is_left_alone() {
        use ProbeEnd::{Answered, Broken, Throttled};
        let s = |seconds| Some(Duration::from_secs(seconds));
        let rows = [
            ("answered", vec![Answered], 60),
            ("stated", vec![Throttled(s(900))], 900),
            ("stated too short", vec![Throttled(s(5))], 60),
            ("stated too long", vec![Throttled(s(1_000_000))], 21_600),
            ("zero is five minutes", vec![Throttled(s(0))], 300),
            ("not stated", vec![Throttled(None)], 300),
            ("broken", vec![Broken], 30),
            ("broken twice", vec![Broken, Broken], 60),
            ("broken for long", vec![Broken; 40], 600),
            (
                "broken, then answered, then broken",
                vec![Broken, Answered, Broken],
                30,
            ),
            (
                "a throttle keeps the count",
                vec![Broken, Throttled(None), Broken],
                60,
            ),
        ];
        for (name, ends, want_s) in rows {
            let state = ends
                .into_iter()
                .fold(ProbeState::default(), |state, end| state.after(end, at(0)));
            assert_eq!(state.not_before, Some(at(want_s)), "{name}");
            assert!(
                !state.is_open(at(want_s - 1)) && state.is_open(at(want_s)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_clock_that_was_ahead_silences_nobody() {
        let day = 86_400;
        let state = ProbeState::default().after(ProbeEnd::Answered, at(day));
        assert!(state.is_open(at(0)));
        let spent = || [window(2_000, Some(3_600), WindowStatus::Rejected)];
        assert!(is_due(&state, Occasion::Sweep, spent(), at(0)));
        let longest = ProbeEnd::Throttled(Some(Duration::from_secs(1_000_000)));
        let state = ProbeState::default().after(longest, at(0));
        assert!(!state.is_open(at(0)), "the longest stated wait is kept");
    }

    #[test]
    fn what_has_no_surface_is_never_asked_again() {
        let state = ProbeState::default().after(ProbeEnd::Unsupported, at(0));
        let later = state.after(ProbeEnd::Answered, at(1));
        for state in [state, later] {
            assert!(!is_due(&state, Occasion::Demand, [], at(1_000_000)));
        }
    }

    #[test]
    fn on_demand_only_what_is_not_fresh_is_asked_for() {
        use WindowStatus::Allowed;
        let fresh = window(60, Some(3_600), Allowed);
        let rows = [
            ("nothing known", vec![], true),
            ("fresh", vec![fresh], false),
            (
                "one of two is stale",
                vec![fresh, window(601, Some(3_600), Allowed)],
                true,
            ),
            ("rolled", vec![window(60, Some(-1), Allowed)], true),
            (
                "stamped ahead",
                vec![window(-90, Some(3_600), Allowed)],
                true,
            ),
            ("no reset, young", vec![window(60, None, Allowed)], false),
            ("no reset, old", vec![window(601, None, Allowed)], true),
        ];
        for (name, windows, want) in rows {
            let state = ProbeState::default();
            assert_eq!(
                is_due(&state, Occasion::Demand, windows.clone(), at(0)),
                want,
                "{name}"
            );
            let just = state.after(ProbeEnd::Answered, at(-59));
            assert!(
                !is_due(&just, Occasion::Demand, windows, at(0)),
                "{name}: just asked"
            );
        }
    }

    #[test]
    fn f9_an_exhausted_one_is_looked_at_every_ten_minutes() {
        use WindowStatus::{Allowed, Rejected};
        let rows = [
            (
                "has room",
                vec![window(9_000, Some(3_600), Allowed)],
                None,
                false,
            ),
            (
                "refused just now",
                vec![window(599, Some(3_600), Rejected)],
                None,
                false,
            ),
            (
                "refused ten minutes ago",
                vec![window(600, Some(3_600), Rejected)],
                None,
                true,
            ),
            (
                "looked at since",
                vec![window(900, Some(3_600), Rejected)],
                Some(-599),
                false,
            ),
            (
                "looked at ten minutes ago",
                vec![window(900, Some(3_600), Rejected)],
                Some(-600),
                true,
            ),
            (
                "its cycle is over",
                vec![window(900, Some(-1), Rejected)],
                None,
                false,
            ),
            (
                "without a reset",
                vec![window(900, None, Rejected)],
                None,
                true,
            ),
            (
                "stamped ahead",
                vec![window(-90, Some(3_600), Rejected)],
                None,
                false,
            ),
            ("nothing known", vec![], None, false),
        ];
        for (name, windows, last, want) in rows {
            let state = ProbeState {
                last_at: last.map(at),
                ..ProbeState::default()
            };
            assert_eq!(
                is_due(&state, Occasion::Sweep, windows, at(0)),
                want,
                "{name}"
            );
        }
    }
}
