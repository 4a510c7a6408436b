//! What the readings prove, per window: how far one may be believed as proof of room, as proof of its absence, or not at all.
//!
//! A [`Board`] indexes the facts once for one decision. A reading is fresh per window, never per snapshot; a refusal mark
//! stays fresh until its reset, however old; nothing read before the last restart admits (notes N11, N12, N23, N24).

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::facts::{Burn, Facts, LoginState, Selection};
use super::look::{Cycle, Look, Seen, Window, applies, is_exhausted, level, order};
use crate::ids::SubscriptionId;
use crate::usage::blocking::{MAX_AHEAD_MS, MAX_RESET_MS};
use crate::usage::identity::Login;
use crate::usage::kinship::{HubMails, Kinship, Kinships};
use crate::usage::merge;
use crate::usage::scope;
use crate::usage::{Reading, ReadingSource, WindowStatus, burn};

/// Two resets this close to each other belong to one cycle, in milliseconds.
const SAME_CYCLE_MS: i64 = 60_000;
/// Two fresh readings of a window further apart than this, in points, cannot both be true.
const CONTRADICTION_PCT: f64 = 20.0;
/// Promised room is free again after this, inclusive, in milliseconds.
const RESERVATION_MS: i64 = 60 * 60_000;

/// The facts, indexed for one decision.
pub struct Board<'f> {
    pub facts: &'f Facts,
    pub now: Timestamp,
    now_ms: i64,
    logins: HashMap<&'f str, &'f LoginState>,
    readings: HashMap<&'f str, Vec<Seen<'f>>>,
    burn: HashMap<&'f str, Vec<&'f Burn>>,
    reserved: HashMap<&'f str, f64>,
    tried: HashSet<&'f str>,
    hubs: HubMails<'f>,
    kinships: Kinships<'f>,
}

impl<'f> Board<'f> {
    /// Indexes the facts.
    pub fn new(facts: &'f Facts, now: Timestamp) -> Self {
        let head = |id: &'f SubscriptionId| facts.groups.head(id);
        let now_ms = now.as_millisecond();
        let mut logins = HashMap::with_capacity(facts.logins.len());
        for state in &facts.logins {
            logins.entry(state.login.id.key()).or_insert(state);
        }
        let mut readings: HashMap<_, Vec<_>> = HashMap::new();
        for reading in &facts.readings {
            if reading.source != ReadingSource::Rollout {
                let reach = scope::reach(&reading.window, scope::view(reading.scope.as_ref()));
                let seen = Seen { reading, reach };
                readings
                    .entry(head(&reading.subscription))
                    .or_default()
                    .push(seen);
            }
        }
        let mut burn: HashMap<_, Vec<_>> = HashMap::new();
        for samples in &facts.burn {
            burn.entry(head(&samples.subscription))
                .or_default()
                .push(samples);
        }
        let mut reserved: HashMap<_, f64> = HashMap::new();
        for promise in &facts.reservations {
            let age = promise
                .at
                .map_or(0, |at| now_ms.saturating_sub(at.as_millisecond()));
            if age <= RESERVATION_MS && promise.pct.is_finite() {
                *reserved.entry(head(&promise.subscription)).or_default() += promise.pct.max(0.0);
            }
        }
        let hubs = facts.logins.iter().filter(|state| state.hub);
        Self {
            facts,
            now,
            now_ms,
            logins,
            readings,
            burn,
            reserved,
            tried: facts.thread.tried.iter().map(head).collect(),
            hubs: HubMails::of(hubs.map(|state| &state.login)),
            kinships: Kinships::of(facts.logins.iter().map(|state| &state.login), &facts.groups),
        }
    }

    /// The login behind a subscription; `None` = nobody knows one.
    pub fn login(&self, id: &SubscriptionId) -> Option<&'f LoginState> {
        self.logins.get(id.key()).copied()
    }

    /// Points promised to others on this subscription's quota group.
    pub fn reserved(&self, id: &SubscriptionId) -> f64 {
        let head = self.facts.groups.head(id);
        self.reserved.get(head).copied().unwrap_or(0.0)
    }

    /// Whether this episode has tried this subscription's quota group.
    pub fn is_tried(&self, id: &SubscriptionId) -> bool {
        self.tried.contains(self.facts.groups.head(id))
    }

    /// Whether a hub's login cannot be told from another one.
    pub fn is_ambiguous(&self, state: &LoginState) -> bool {
        state.hub && self.hubs.is_ambiguous(&state.login)
    }

    /// What is known of two logins' quotas.
    pub fn kinship(&self, a: &Login, b: &Login) -> Kinship {
        self.kinships.between(a, b)
    }

    /// Milliseconds since an instant; negative = it lies ahead.
    pub fn age_ms(&self, at: Timestamp) -> i64 {
        self.now_ms.saturating_sub(at.as_millisecond())
    }

    /// The expected burn of a window from its quota group's own samples; `None` = too few.
    pub fn expected_burn(&self, id: &SubscriptionId, window: &str) -> Option<f64> {
        let known = self.burn.get(self.facts.groups.head(id))?;
        let mut of_window = known.iter().filter(|burn| burn.window == window);
        let own = of_window.clone().find(|burn| burn.subscription == *id);
        let guard = &self.facts.settings.guard;
        let samples = &own.or_else(|| of_window.next())?.samples;
        burn::expected(samples, guard.samples, guard.min_samples)
    }

    /// The windows that limit a selection, each with its readings over the whole quota group, in order of their ids.
    pub fn windows(&self, selection: &Selection) -> Vec<Window<'f>> {
        let head = self.facts.groups.head(&selection.subscription);
        let all = self.readings.get(head).map_or(&[][..], Vec::as_slice);
        let mut seen: Vec<Seen<'f>> = all
            .iter()
            .filter(|seen| applies(seen.reach, selection))
            .copied()
            .collect();
        seen.sort_by(|a, b| order(a, b).then_with(|| self.by_age(a.reading, b.reading)));
        seen.chunk_by(|a, b| order(a, b) == Ordering::Equal)
            .map(|readings| Window {
                readings: readings.to_vec(),
            })
            .collect()
    }

    /// Orders a window's readings, whatever the order in which they came; the last one counts.
    fn by_age(&self, a: &Reading, b: &Reading) -> Ordering {
        merge::compare(a, b, self.now)
    }

    /// Any reading's still coming reset for a window's id, whatever its age and whether or not the window limits the
    /// selection; the newest one's.
    pub fn reset_of(&self, id: &SubscriptionId, window: &str) -> Option<Timestamp> {
        let all = self.readings.get(self.facts.groups.head(id))?;
        let readings = all.iter().map(|seen| seen.reading);
        self.newest_reset(readings.filter(|reading| reading.window == window))
    }

    /// What the newest readings say of the windows that limit a selection.
    pub fn looks(&self, selection: &Selection) -> Vec<Look<'f>> {
        let windows = self.windows(selection);
        windows
            .iter()
            .filter_map(|window| self.look(window))
            .collect()
    }

    fn look(&self, window: &Window<'f>) -> Option<Look<'f>> {
        let newest = window.newest()?;
        Some(Look {
            contradicted: self.is_contradicted(window),
            cycle: window.cycle(),
            ..self.look_at(newest, true)
        })
    }

    /// What a window says of a refused turn: its fullest fresh reading of the cycle that still runs. A rosier copy cannot
    /// explain a refusal away (note N13).
    pub fn fullest(&self, window: &Window<'f>) -> Option<Look<'f>> {
        let newest = window.newest()?;
        let looks = window.readings.iter().map(|seen| {
            let is_newest = std::ptr::eq(seen.reading, newest);
            self.look_at(seen.reading, is_newest)
        });
        let told = looks.filter(|look| look.fresh && !look.rolled);
        let fullest = told.max_by(|a, b| a.fullness().total_cmp(&b.fullness()))?;
        Some(Look {
            cycle: window.cycle(),
            ..fullest
        })
    }

    /// The newest still coming reset among a window's readings, of any age.
    pub fn coming_reset(&self, window: &Window<'f>) -> Option<Timestamp> {
        self.newest_reset(window.readings.iter().map(|seen| seen.reading))
    }

    fn newest_reset(&self, readings: impl Iterator<Item = &'f Reading>) -> Option<Timestamp> {
        let coming = readings.filter(|reading| self.reset(reading).is_some_and(|at| at > self.now));
        let newest = coming.max_by(|a, b| self.by_age(a, b))?;
        self.reset(newest)
    }

    fn look_at(&self, reading: &'f Reading, is_newest: bool) -> Look<'f> {
        let resets_at = self.reset(reading);
        Look {
            window: &reading.window,
            cycle: Cycle::of(&reading.window, reading.duration_mins),
            level: level(reading),
            contradicted: false,
            fresh: self.is_fresh(reading) || (is_newest && self.is_mark(reading)),
            rolled: resets_at.is_some_and(|at| at <= self.now),
            exhausted: is_exhausted(reading),
            resets_at,
            age_ms: reading.observed_at.map(|at| self.age_ms(at)),
        }
    }

    fn is_fresh(&self, reading: &Reading) -> bool {
        reading.observed_at.is_some_and(|at| {
            let age = self.age_ms(at);
            let young = (-MAX_AHEAD_MS..=self.facts.settings.fresh_max_ms).contains(&age);
            young && self.facts.restarted_at.is_none_or(|restart| at >= restart)
        })
    }

    /// A refused turn is proof until the reset, unless something newer is known.
    fn is_mark(&self, reading: &Reading) -> bool {
        reading.source == ReadingSource::Failure
            && reading.status == WindowStatus::Rejected
            && reading
                .observed_at
                .is_some_and(|at| self.age_ms(at) >= -MAX_AHEAD_MS)
            && self.reset(reading).is_some_and(|at| at > self.now)
    }

    /// A reset as far as it is believed.
    fn reset(&self, reading: &Reading) -> Option<Timestamp> {
        self.believed(reading.resets_at?)
    }

    /// No window is longer than a year: a reset further ahead is not believed.
    pub fn believed(&self, reset: Timestamp) -> Option<Timestamp> {
        (-self.age_ms(reset) <= MAX_RESET_MS).then_some(reset)
    }

    /// Whether two fresh readings of the running cycle cannot both be true: other resets and far apart levels.
    fn is_contradicted(&self, window: &Window<'f>) -> bool {
        if window.readings.len() < 2 {
            return false;
        }
        let mut told: Vec<(i64, f64)> = window
            .readings
            .iter()
            .filter(|seen| self.is_fresh(seen.reading))
            .filter_map(|seen| {
                let reset = self.reset(seen.reading).filter(|at| *at > self.now)?;
                Some((reset.as_millisecond(), level(seen.reading)?))
            })
            .collect();
        told.sort_by_key(|(reset, _)| *reset);
        let mut earlier = told.iter().peekable();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        told.iter().any(|(reset, level)| {
            while let Some((_, other)) =
                earlier.next_if(|(other, _)| reset.saturating_sub(*other) > SAME_CYCLE_MS)
            {
                (low, high) = (low.min(*other), high.max(*other));
            }
            burn::is_above(high - level, CONTRADICTION_PCT)
                || burn::is_above(level - low, CONTRADICTION_PCT)
        })
    }
}
