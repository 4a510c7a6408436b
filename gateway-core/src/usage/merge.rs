//! The newest evidence per window. Several sources speak of one window (an event, a header, the portal's file, a refusal);
//! exactly one of them counts: the newest, on equal age the one nearer to the provider, then the fuller one.
//!
//! A reading stamped more than a minute ahead of the clock loses to any sane one, or a broken clock would own the window
//! for ever. Rollout readings are for display and never decide.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use jiff::Timestamp;

use super::blocking::{self, MAX_AHEAD_MS};
use super::scope::{self, Reach};
use super::{Reading, ReadingSource};

/// Returns the newest reading per (subscription, window, scope), in the order the windows first appear.
pub fn newest(readings: impl IntoIterator<Item = Reading>, now: Timestamp) -> Vec<Reading> {
    newest_per(readings, now, |reading| {
        reading.subscription.key().to_owned()
    })
}

/// The same with another owner of the windows than the subscription, for example its quota group.
pub fn newest_per<O: Hash + Eq>(
    readings: impl IntoIterator<Item = Reading>,
    now: Timestamp,
    owner: impl Fn(&Reading) -> O,
) -> Vec<Reading> {
    let mut places: HashMap<(O, String, Limits), usize> = HashMap::new();
    let mut kept: Vec<Reading> = Vec::new();
    for reading in readings {
        if reading.source == ReadingSource::Rollout {
            continue;
        }
        match places.entry((
            owner(&reading),
            reading.window.clone(),
            Limits::of(&reading),
        )) {
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(reading);
            }
            Entry::Occupied(place) => {
                if let Some(old) = kept.get_mut(*place.get())
                    && compare(&reading, old, now) != Ordering::Less
                {
                    *old = reading;
                }
            }
        }
    }
    kept
}

/// Orders two readings of one window by how much they count; the greater one is believed. What decides outranks what is
/// for display, a sane stamp outranks one ahead of the clock, then the newer, the nearer to the provider and the fuller
/// counts. Readings that agree in all of that are told apart by what else they say, so that the order in which they came
/// never matters: the later reset first, as nothing is lost by looking again.
pub fn compare(a: &Reading, b: &Reading, now: Timestamp) -> Ordering {
    let decides = |reading: &Reading| reading.source != ReadingSource::Rollout;
    decides(a)
        .cmp(&decides(b))
        .then_with(|| sanity(a, now).cmp(&sanity(b, now)))
        .then_with(|| a.observed_at.cmp(&b.observed_at))
        .then_with(|| closeness(a.source).cmp(&closeness(b.source)))
        .then_with(|| fullness(a).total_cmp(&fullness(b)))
        .then_with(|| a.resets_at.cmp(&b.resets_at))
        .then_with(|| (a.status as u8).cmp(&(b.status as u8)))
        .then_with(|| b.source.cmp(&a.source))
        .then_with(|| said(a.used_pct).total_cmp(&said(b.used_pct)))
        .then_with(|| a.duration_mins.cmp(&b.duration_mins))
        .then_with(|| a.subscription.key().cmp(b.subscription.key()))
}

/// Whether a stamp is further ahead of the clock than two honest machines can be.
pub fn is_ahead(observed_at: Timestamp, now: Timestamp) -> bool {
    observed_at
        .as_millisecond()
        .saturating_sub(now.as_millisecond())
        > MAX_AHEAD_MS
}

/// A reading as it is taken in: it was observed now at the latest, and its reset lies within the year around that. What was
/// observed more than a year ago is `None`: it says nothing any more.
pub fn heard(mut reading: Reading, now: Timestamp) -> Option<Reading> {
    let now_ms = now.as_millisecond();
    let observed = reading.observed_at.map_or(now, |at| at.min(now));
    let observed_ms = observed.as_millisecond();
    if now_ms.saturating_sub(observed_ms) > blocking::MAX_RESET_MS {
        return None;
    }
    reading.observed_at = Some(observed);
    reading.resets_at = reading.resets_at.filter(|at| {
        let ahead = at.as_millisecond().saturating_sub(observed_ms);
        (-blocking::MAX_RESET_MS..=blocking::MAX_RESET_MS).contains(&ahead)
    });
    reading.used_pct = reading
        .used_pct
        .filter(|used| used.is_finite() && *used >= 0.0);
    Some(reading)
}

/// Whether both readings are about the same window of whoever owns them.
pub fn same_window(a: &Reading, b: &Reading) -> bool {
    a.window == b.window && Limits::of(a) == Limits::of(b)
}

/// What a window limits, owned and folded: an unstated scope and the stated one that means the same are one window.
#[derive(PartialEq, Eq, Hash)]
enum Limits {
    Account,
    Model(String),
    Bucket(String),
    Spend,
    Unknown,
}

impl Limits {
    fn of(reading: &Reading) -> Self {
        match scope::reach(&reading.window, scope::view(reading.scope.as_ref())) {
            Reach::Account => Self::Account,
            Reach::Model(family) => Self::Model(family.to_lowercase()),
            Reach::Bucket(bucket) => Self::Bucket(bucket.to_lowercase()),
            Reach::Spend => Self::Spend,
            Reach::Unknown => Self::Unknown,
        }
    }
}

fn sanity(reading: &Reading, now: Timestamp) -> u8 {
    match reading.observed_at {
        Some(at) if !is_ahead(at, now) => 2,
        Some(_) => 1,
        None => 0,
    }
}

/// How near a source is to the provider's own word; an event and a header are equals.
fn closeness(source: ReadingSource) -> u8 {
    match source {
        ReadingSource::Failure => 4,
        ReadingSource::Event | ReadingSource::Header => 3,
        ReadingSource::Probe => 2,
        ReadingSource::Hub => 1,
        ReadingSource::Rollout => 0,
    }
}

/// Unknown is less than nothing used; a number that is none is unknown.
fn said(used_pct: Option<f64>) -> f64 {
    used_pct.filter(|used| used.is_finite()).unwrap_or(-1.0)
}

/// A refused window is full, whatever its percentage says.
fn fullness(reading: &Reading) -> f64 {
    let used = said(reading.used_pct);
    if blocking::refuses(reading.status, reading.used_pct) {
        used.max(100.0)
    } else {
        used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::usage::{WindowScope, WindowStatus};

    fn now() -> Timestamp {
        Timestamp::from_second(1_789_981_200).unwrap()
    }

    fn reading(window: &str, age_s: i64, source: ReadingSource, used: f64) -> Reading {
        Reading {
            subscription: "s".into(),
            window: window.to_owned(),
            scope: None,
            used_pct: Some(used),
            status: WindowStatus::Unknown,
            resets_at: None,
            duration_mins: None,
            observed_at: Timestamp::from_second(now().as_second() - age_s).ok(),
            source,
        }
    }

    fn winner(readings: Vec<Reading>) -> f64 {
        let kept = newest(readings, now());
        assert_eq!(kept.len(), 1);
        kept[0].used_pct.unwrap()
    }

    #[test]
    fn n11_the_newest_wins_then_the_source_then_the_fuller() {
        use ReadingSource::{Event, Failure, Header, Hub, Probe};
        let rows = [
            (
                "newer",
                vec![("", 10, Hub, 1.0), ("", 20, Failure, 2.0)],
                1.0,
            ),
            (
                "failure before event",
                vec![("", 10, Event, 1.0), ("", 10, Failure, 2.0)],
                2.0,
            ),
            (
                "header before probe",
                vec![("", 10, Header, 1.0), ("", 10, Probe, 2.0)],
                1.0,
            ),
            (
                "probe before hub",
                vec![("", 10, Hub, 9.0), ("", 10, Probe, 2.0)],
                2.0,
            ),
            (
                "event and header: the fuller",
                vec![("", 10, Event, 1.0), ("", 10, Header, 2.0)],
                2.0,
            ),
            (
                "header and event: the fuller",
                vec![("", 10, Header, 2.0), ("", 10, Event, 1.0)],
                2.0,
            ),
            (
                "60 s ahead is sane",
                vec![("", -60, Probe, 1.0), ("", 10, Probe, 2.0)],
                1.0,
            ),
            (
                "61 s ahead loses",
                vec![("", -61, Probe, 1.0), ("", 10_000, Probe, 2.0)],
                2.0,
            ),
        ];
        for (name, readings, want) in rows {
            let readings = readings
                .into_iter()
                .map(|(_, age, source, used)| reading("five_hour", age, source, used))
                .collect();
            assert_eq!(winner(readings), want, "{name}");
        }
    }

    #[test]
    fn a_stamped_reading_beats_one_without_a_time() {
        let mut timeless = reading("five_hour", 0, ReadingSource::Failure, 1.0);
        timeless.observed_at = None;
        let stamped = reading("five_hour", 90_000, ReadingSource::Hub, 2.0);
        assert_eq!(winner(vec![stamped, timeless]), 2.0);
    }

    #[test]
    fn scopes_keep_windows_apart_and_an_unstated_one_is_what_its_id_says() {
        let mut stated = reading("seven_day_opus", 5, ReadingSource::Probe, 1.0);
        stated.scope = Some(WindowScope::Model("Opus".into()));
        let unstated = reading("seven_day_opus", 10, ReadingSource::Probe, 2.0);
        let mut account = reading("seven_day_opus", 20, ReadingSource::Probe, 3.0);
        account.scope = Some(WindowScope::Account);
        assert_eq!(newest([stated, unstated, account], now()).len(), 2);
    }

    #[test]
    fn rollout_readings_never_decide() {
        assert!(
            newest(
                [reading("five_hour", 0, ReadingSource::Rollout, 1.0)],
                now()
            )
            .is_empty()
        );
    }

    fn any_reading() -> impl Strategy<Value = Reading> {
        use ReadingSource::{Event, Failure, Header, Hub, Probe, Rollout};
        use WindowStatus::{Allowed, Rejected, Unknown, Warning};
        (
            prop::sample::select(vec!["five_hour", "seven_day"]),
            prop::option::of(-120_i64..120),
            prop::sample::select(vec![Failure, Event, Header, Probe, Hub, Rollout]),
            prop::option::of(prop::sample::select(vec![0.0, 99.0, 100.0, f64::NAN])),
            prop::sample::select(vec![Unknown, Allowed, Warning, Rejected]),
            prop::option::of(0_i64..3),
            prop::option::of(Just(300_u32)),
        )
            .prop_map(
                |(window, age, source, used, status, resets_in, mins)| Reading {
                    used_pct: used,
                    status,
                    resets_at: resets_in
                        .map(|s| Timestamp::from_second(now().as_second() + s).unwrap()),
                    duration_mins: mins,
                    observed_at: age
                        .map(|s| Timestamp::from_second(now().as_second() - s).unwrap()),
                    ..reading(window, 0, source, 0.0)
                },
            )
    }

    fn sorted(mut readings: Vec<Reading>) -> Vec<String> {
        readings.sort_by(|a, b| a.window.cmp(&b.window));
        readings
            .iter()
            .map(|reading| format!("{reading:?}"))
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_kept_does_not_depend_on_the_order(all in prop::collection::vec(any_reading(), 1..12), turn in 0_usize..12) {
            let there = sorted(newest(all.clone(), now()));
            let back = sorted(newest(all.iter().rev().cloned(), now()));
            prop_assert_eq!(&there, &back);
            let mut turned = all.clone();
            turned.rotate_left(turn % all.len());
            prop_assert_eq!(&there, &sorted(newest(turned.clone(), now())));
            // Merged in two steps, as two processes do it, or in one.
            let (one, other) = turned.split_at(turn % all.len());
            let steps = newest(one.to_vec(), now()).into_iter().chain(newest(other.to_vec(), now()));
            prop_assert_eq!(&there, &sorted(newest(steps, now())));
        }

        #[test]
        fn no_instant_is_taken_in_that_cannot_be(observed in prop::option::of(any::<i64>()), reset in prop::option::of(any::<i64>()), near in any::<bool>()) {
            let instant = |ms: i64| {
                let ms = if near { now().as_millisecond().saturating_add(ms % (3 * blocking::MAX_RESET_MS)) } else { ms };
                Timestamp::from_millisecond(ms).ok()
            };
            let raw = Reading {
                observed_at: observed.and_then(instant),
                resets_at: reset.and_then(instant),
                ..reading("five_hour", 0, ReadingSource::Event, 1.0)
            };
            if let Some(heard) = heard(raw, now()) {
                let at = heard.observed_at.unwrap();
                let year = jiff::SignedDuration::from_millis(blocking::MAX_RESET_MS);
                prop_assert!(at <= now() && now().duration_since(at) <= year);
                prop_assert!(heard.resets_at.is_none_or(|reset| reset.duration_since(at).abs() <= year));
            }
        }

        #[test]
        fn no_reading_ahead_of_the_clock_beats_a_sane_one(all in prop::collection::vec(any_reading(), 1..12)) {
            for kept in newest(all.clone(), now()) {
                let sane = |reading: &Reading| reading.observed_at.is_some_and(|at| !is_ahead(at, now()));
                let other = all.iter().any(|other| same_window(other, &kept) && other.source != ReadingSource::Rollout && sane(other));
                prop_assert!(sane(&kept) || !other);
                prop_assert!(kept.source != ReadingSource::Rollout);
            }
        }
    }
}
