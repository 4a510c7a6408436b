//! One window as it was seen, and what that says: how full it is, how far that may be believed, and whom it limits.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::facts::Selection;
use crate::usage::blocking::TOLERANCE;
use crate::usage::scope::{self, Reach};
use crate::usage::{Reading, WindowKind, WindowStatus};

/// A reading with what it limits.
#[derive(Clone, Copy)]
pub(super) struct Seen<'f> {
    pub(super) reading: &'f Reading,
    pub(super) reach: Reach<'f>,
}

/// One window of a quota group, as everybody who looked at it saw it.
pub struct Window<'f> {
    /// Never empty; the last one counts.
    pub(super) readings: Vec<Seen<'f>>,
}

impl<'f> Window<'f> {
    /// The id its readings share.
    pub fn id(&self) -> &'f str {
        self.readings
            .first()
            .map_or("", |seen| seen.reading.window.as_str())
    }

    /// Whether its readings say they limit what a report's scope says.
    pub fn limits(&self, reach: Reach<'_>) -> bool {
        let first = self.readings.first();
        first.is_some_and(|seen| order_of(seen.reach, reach) == Ordering::Equal)
    }

    pub(super) fn newest(&self) -> Option<&'f Reading> {
        self.readings.last().map(|seen| seen.reading)
    }

    /// By the length its newest readings state.
    pub fn cycle(&self) -> Cycle {
        let mins = self
            .readings
            .iter()
            .rev()
            .find_map(|seen| seen.reading.duration_mins);
        Cycle::of(self.id(), mins)
    }
}

/// What one window says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look<'f> {
    pub window: &'f str,
    pub cycle: Cycle,
    /// Points of 100; `None` = unknown, and nothing refuses either.
    pub level: Option<f64>,
    /// Two fresh readings cannot both be true.
    pub contradicted: bool,
    pub fresh: bool,
    /// Its cycle has ended since: neither full nor empty is known.
    pub rolled: bool,
    /// Refused, or at 100 and above whatever its status.
    pub exhausted: bool,
    pub resets_at: Option<Timestamp>,
    pub age_ms: Option<i64>,
}

impl Look<'_> {
    /// Nobody can say how full it is.
    pub fn is_vague(&self) -> bool {
        self.level.is_none() || self.contradicted
    }

    /// It may be acted on as the source's: fresh, of the running cycle, not vague.
    pub fn is_usable(&self) -> bool {
        self.fresh && !self.rolled && !self.is_vague()
    }

    /// Its level, a refusal counting as full.
    pub fn fullness(&self) -> f64 {
        let level = self.level.unwrap_or(-1.0);
        if self.exhausted {
            level.max(100.0)
        } else {
            level
        }
    }
}

/// How long a window runs, as far as waiting is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cycle {
    Session,
    Weekly,
    Monthly,
}

impl Cycle {
    /// By the stated length, else by the id. Codex calls its windows `primary` and `secondary`; where it states no length they
    /// are the session and the week.
    pub fn of(window: &str, duration_mins: Option<u32>) -> Self {
        match WindowKind::of(window, duration_mins) {
            WindowKind::Monthly => Self::Monthly,
            WindowKind::Weekly => Self::Weekly,
            WindowKind::Other if window == "secondary" => Self::Weekly,
            WindowKind::Session | WindowKind::Other => Self::Session,
        }
    }
}

/// Whether a window limits a selection. An id nobody knows limits everything: proof of room is asked for. A bucket replaces
/// the main windows.
pub fn applies(reach: Reach<'_>, selection: &Selection) -> bool {
    match (reach, selection.bucket.as_deref()) {
        (Reach::Bucket(bucket), Some(wanted)) => folded(bucket).eq(folded(wanted)),
        (Reach::Bucket(_), None) | (Reach::Spend, _) | (_, Some(_)) => false,
        (Reach::Account | Reach::Unknown, None) => true,
        (Reach::Model(family), None) => {
            let model = selection.model.as_deref().unwrap_or_default();
            scope::fits(family, model)
        }
    }
}

pub(super) fn level(reading: &Reading) -> Option<f64> {
    let known = reading
        .used_pct
        .filter(|used| used.is_finite() && *used >= 0.0);
    match reading.status {
        WindowStatus::Rejected => known.or(Some(100.0)),
        _ => known,
    }
}

pub(super) fn is_exhausted(reading: &Reading) -> bool {
    reading.status == WindowStatus::Rejected
        || level(reading).is_some_and(|level| level >= 100.0 - TOLERANCE)
}

pub(super) fn order(a: &Seen<'_>, b: &Seen<'_>) -> Ordering {
    let ids = a.reading.window.cmp(&b.reading.window);
    ids.then_with(|| order_of(a.reach, b.reach))
}

fn order_of(a: Reach<'_>, b: Reach<'_>) -> Ordering {
    let key = |reach| match reach {
        Reach::Account => (0, ""),
        Reach::Unknown => (1, ""),
        Reach::Spend => (2, ""),
        Reach::Model(family) => (3, family),
        Reach::Bucket(bucket) => (4, bucket),
    };
    let ((a, one), (b, two)): ((u8, &str), (u8, &str)) = (key(a), key(b));
    a.cmp(&b).then_with(|| folded(one).cmp(folded(two)))
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.trim().chars().flat_map(char::to_lowercase)
}
