//! A refused turn as evidence: what a failure says about the window that refused it.

use jiff::{SignedDuration, Timestamp};

use super::freshness::is_rolled;
use super::scope::{self, Reach};
use super::{Reading, ReadingSource, WindowKind, WindowScope, WindowStatus, blocking};
use crate::failure::{Failure, FailureKind, FailureScope};
use crate::ids::SubscriptionId;
use crate::plan::ScopeView;

/// The window id of a refusal that names none. It carries an explicit scope, as its id says nothing.
pub const UNNAMED_WINDOW: &str = "refusal";

/// Turns a failure into a reading: a rate limit or a billing stop of the account or of this model, with a stated reset
/// ahead. `None` = the failure proves nothing about a window, or nobody knows until when.
pub fn reading_of_failure(
    slug: &SubscriptionId,
    model: &str,
    failure: &Failure,
    now: Timestamp,
) -> Option<Reading> {
    if !matches!(failure.kind, FailureKind::RateLimit | FailureKind::Billing) {
        return None;
    }
    let resets_at = failure.retry_at.filter(|at| *at > now)?;
    let window = failure
        .window
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty());
    let window = window.unwrap_or(UNNAMED_WINDOW);
    let scope = match failure.scope {
        FailureScope::Account => account_scope(window),
        FailureScope::AccountModel => model_scope(window, model),
        _ => return None,
    };
    Some(Reading {
        subscription: slug.clone(),
        window: window.to_owned(),
        scope,
        used_pct: None,
        status: WindowStatus::Rejected,
        resets_at: Some(resets_at),
        duration_mins: None,
        observed_at: Some(now),
        source: ReadingSource::Failure,
    })
}

/// Two resets this close to each other are one, in milliseconds.
const SAME_RESET_MS: i64 = 120_000;
/// A window at least this full may be the one a refusal did not name, in points of 100.
const NEARLY_FULL: f64 = 90.0;

/// Gives a refusal that names no window the window it must be about (F7): the known one that resets at that very time, else
/// the fullest nearly full one whose cycle is long enough for that reset. Where neither is known it stays unnamed: blaming
/// the wrong window would let a reading of that one clear the mark. `known` are the newest readings of the subscription.
pub fn named<'a>(
    mark: Reading,
    known: impl IntoIterator<Item = &'a Reading>,
    now: Timestamp,
) -> Reading {
    let Some(resets_at) = mark.resets_at.filter(|_| mark.window == UNNAMED_WINDOW) else {
        return mark;
    };
    let apart = |reading: &Reading| {
        let at = reading.resets_at?.as_millisecond();
        Some(
            at.saturating_sub(resets_at.as_millisecond())
                .saturating_abs(),
        )
    };
    let used = |reading: &Reading| match blocking::refuses(reading.status, reading.used_pct) {
        true => 100.0,
        false => reading.used_pct.unwrap_or(0.0),
    };
    let fits = known.into_iter().filter(|reading| {
        is_about(&mark, reading) && !is_rolled(&reading.view(), now.as_millisecond())
    });
    let best = fits
        .filter_map(|reading| {
            let same = apart(reading).is_some_and(|apart| apart <= SAME_RESET_MS);
            let full = used(reading) >= NEARLY_FULL && can_reset_at(reading, resets_at, now);
            (same || full).then(|| (same, used(reading), reading))
        })
        .max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    match best {
        None => mark,
        Some((_, _, window)) => Reading {
            window: window.window.clone(),
            scope: window.scope.clone(),
            duration_mins: window.duration_mins,
            ..mark
        },
    }
}

/// Whether the refusal may be about this window: account-wide ones for an account's refusal, the family's for a model's.
fn is_about(mark: &Reading, window: &Reading) -> bool {
    if window.window == UNNAMED_WINDOW {
        return false;
    }
    match (
        &mark.scope,
        scope::reach(&window.window, scope::view(window.scope.as_ref())),
    ) {
        (Some(WindowScope::Model(model)), Reach::Model(family)) => scope::fits(family, model),
        (Some(WindowScope::Model(_)), _) => false,
        (_, reach) => reach == Reach::Account,
    }
}

/// Whether a cycle of this window's length can end that late; one of unknown length can.
fn can_reset_at(window: &Reading, resets_at: Timestamp, now: Timestamp) -> bool {
    let longest = match WindowKind::of(&window.window, window.duration_mins) {
        WindowKind::Session => SignedDuration::from_hours(24),
        WindowKind::Weekly => SignedDuration::from_hours(8 * 24),
        WindowKind::Monthly => SignedDuration::from_hours(32 * 24),
        WindowKind::Other => return true,
    };
    resets_at.duration_since(now) <= longest
}

/// What replaces the marks that fresh readings prove wrong: unnamed ones older than a reading of the same surface that has
/// room. Marks on a named window need no help, the newer reading of that window outranks them. `known` are the newest
/// readings of the subscription, `fresh` what has just been read of it.
pub fn disproved(known: &[Reading], fresh: &[Reading], now: Timestamp) -> Vec<Reading> {
    let marks = known.iter().filter(|mark| {
        mark.window == UNNAMED_WINDOW
            && mark.source == ReadingSource::Failure
            && mark.status == WindowStatus::Rejected
    });
    marks
        .filter(|mark| {
            let mut about = fresh
                .iter()
                .filter(|reading| is_about(mark, reading))
                .peekable();
            about.peek().is_some()
                && about.all(|reading| has_room(reading) && reading.observed_at > mark.observed_at)
        })
        .map(|mark| cleared(mark, now))
        .collect()
}

fn has_room(reading: &Reading) -> bool {
    let said = reading.used_pct.is_some()
        || matches!(
            reading.status,
            WindowStatus::Allowed | WindowStatus::Warning
        );
    said && !blocking::refuses(reading.status, reading.used_pct)
}

/// The reading that replaces a mark: newer than it by all means, and silent about how full the window is.
pub fn cleared(mark: &Reading, now: Timestamp) -> Reading {
    let after_mark = mark
        .observed_at
        .and_then(|at| at.checked_add(SignedDuration::from_millis(1)).ok());
    Reading {
        used_pct: None,
        status: WindowStatus::Allowed,
        resets_at: None,
        observed_at: Some(after_mark.map_or(now, |at| at.max(now))),
        source: ReadingSource::Event,
        ..mark.clone()
    }
}

/// The account refuses: said explicitly wherever the id alone would not mean it.
fn account_scope(window: &str) -> Option<WindowScope> {
    match scope::reach(window, ScopeView::Unstated) {
        Reach::Account | Reach::Model(_) => None,
        _ => Some(WindowScope::Account),
    }
}

/// Only this model is refused. An id that names a family speaks for itself.
fn model_scope(window: &str, model: &str) -> Option<WindowScope> {
    match scope::reach(window, ScopeView::Unstated) {
        Reach::Model(family) if scope::fits(family, model) => None,
        _ => Some(WindowScope::Model(model.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EntryVerdict, GateSettings, judge};

    fn now() -> Timestamp {
        Timestamp::from_second(1_789_981_200).unwrap()
    }

    fn failure(
        kind: FailureKind,
        scope: FailureScope,
        window: Option<&str>,
        left_s: Option<i64>,
    ) -> Failure {
        let at = left_s.and_then(|s| Timestamp::from_second(now().as_second() + s).ok());
        Failure::new(kind, scope, "x")
            .retry_at(at)
            .window(window.map(str::to_owned))
    }

    fn blocks(failure: &Failure, model: &str) -> bool {
        let reading = reading_of_failure(&"s".into(), "claude-opus-4-8", failure, now());
        let verdict = judge(
            model,
            reading.iter().map(Reading::view),
            GateSettings::default(),
            now().as_millisecond(),
        );
        verdict != EntryVerdict::Eligible
    }

    #[test]
    fn a_refusal_blocks_what_it_is_about_and_nothing_else() {
        use FailureKind::{Billing, Overloaded, RateLimit, UpstreamRateLimit};
        use FailureScope::{Account, AccountModel, Burst};
        let hour = Some(3_600);
        let rows = [
            (RateLimit, Account, Some("five_hour"), hour, true, true),
            (RateLimit, Account, None, hour, true, true),
            (Billing, Account, Some("overage"), hour, true, true),
            (RateLimit, Account, Some("lunar_cycle"), hour, true, true),
            (
                RateLimit,
                Account,
                Some("seven_day_opus"),
                hour,
                true,
                false,
            ),
            (RateLimit, AccountModel, None, hour, true, false),
            (
                RateLimit,
                AccountModel,
                Some("seven_day"),
                hour,
                true,
                false,
            ),
            (
                RateLimit,
                AccountModel,
                Some("seven_day_opus"),
                hour,
                true,
                false,
            ),
            (RateLimit, Account, Some("five_hour"), None, false, false),
            (
                RateLimit,
                Account,
                Some("five_hour"),
                Some(-1),
                false,
                false,
            ),
            (RateLimit, Burst, None, hour, false, false),
            (UpstreamRateLimit, Account, None, hour, false, false),
            (Overloaded, Account, None, hour, false, false),
        ];
        for (kind, scope, window, left, same, other) in rows {
            let failure = failure(kind, scope.clone(), window, left);
            assert_eq!(
                blocks(&failure, "claude-opus-4-8"),
                same,
                "{kind:?} {scope:?} {window:?}"
            );
            assert_eq!(
                blocks(&failure, "claude-sonnet-5"),
                other,
                "{kind:?} {scope:?} {window:?}"
            );
        }
    }

    fn known(window: &str, used: f64, resets_in_s: i64) -> Reading {
        Reading {
            subscription: "s".into(),
            window: window.to_owned(),
            scope: None,
            used_pct: Some(used),
            status: WindowStatus::Unknown,
            resets_at: Timestamp::from_second(now().as_second() + resets_in_s).ok(),
            duration_mins: None,
            observed_at: Timestamp::from_second(now().as_second() - 60).ok(),
            source: ReadingSource::Probe,
        }
    }

    #[test]
    fn f7_an_unnamed_refusal_is_about_the_fullest_window_that_can_be_meant() {
        use FailureScope::{Account, AccountModel};
        let day = 86_400;
        #[rustfmt::skip]
        let rows = [
            ("nothing known", Account, 3_600, vec![], "refusal"),
            ("the fullest", Account, 3_600, vec![("five_hour", 99.0, 7_000), ("seven_day", 91.0, 3 * day)], "five_hour"),
            ("the one that resets then", Account, 3 * day, vec![("five_hour", 99.0, 7_000), ("seven_day", 12.0, 3 * day + 60)], "seven_day"),
            ("none is full", Account, 3_600, vec![("five_hour", 50.0, 7_000)], "refusal"),
            ("five hours cannot take six days", Account, 6 * day, vec![("five_hour", 99.0, 7_000)], "refusal"),
            ("a finished cycle", Account, 3_600, vec![("five_hour", 99.0, -1)], "refusal"),
            ("a model's window is not the account's", Account, 3_600, vec![("seven_day_opus", 99.0, 7_000)], "refusal"),
            ("the account's window is not the model's", AccountModel, 3_600, vec![("five_hour", 99.0, 7_000)], "refusal"),
            ("the model's own", AccountModel, day, vec![("five_hour", 99.0, 7_000), ("seven_day_opus", 95.0, 2 * day)], "seven_day_opus"),
            ("another model's", AccountModel, day, vec![("seven_day_sonnet", 95.0, 2 * day)], "refusal"),
        ];
        for (name, scope, left, windows, want) in rows {
            let failure = failure(FailureKind::RateLimit, scope, None, Some(left));
            let mark = reading_of_failure(&"s".into(), "claude-opus-4-8", &failure, now()).unwrap();
            let known: Vec<_> = windows
                .into_iter()
                .map(|(id, used, left)| known(id, used, left))
                .collect();
            let named = named(mark, &known, now());
            assert_eq!(named.window, want, "{name}");
            assert_eq!(
                (named.status, named.source),
                (WindowStatus::Rejected, ReadingSource::Failure)
            );
        }
        let stated = failure(
            FailureKind::RateLimit,
            Account,
            Some("seven_day"),
            Some(3_600),
        );
        let mark = reading_of_failure(&"s".into(), "m", &stated, now()).unwrap();
        assert_eq!(
            named(mark.clone(), &[known("five_hour", 99.0, 3_600)], now()),
            mark
        );
    }

    #[test]
    fn f7_fresh_readings_with_room_clear_what_no_window_was_named_for() {
        let failure = failure(
            FailureKind::RateLimit,
            FailureScope::Account,
            None,
            Some(3_600),
        );
        let mark = reading_of_failure(&"s".into(), "m", &failure, now()).unwrap();
        let later = |window: &str, used: f64| Reading {
            observed_at: Timestamp::from_second(now().as_second() + 30).ok(),
            ..known(window, used, 7_000)
        };
        let rows = [
            (
                "room in both",
                vec![later("five_hour", 10.0), later("seven_day", 99.0)],
                1,
            ),
            (
                "one is full",
                vec![later("five_hour", 10.0), later("seven_day", 100.0)],
                0,
            ),
            (
                "older than the mark",
                vec![known("five_hour", 10.0, 7_000)],
                0,
            ),
            ("about a model", vec![later("seven_day_opus", 10.0)], 0),
            ("nothing was read", vec![], 0),
        ];
        for (name, fresh, want) in rows {
            let cleared = disproved(std::slice::from_ref(&mark), &fresh, now());
            assert_eq!(cleared.len(), want, "{name}");
            assert!(
                cleared
                    .iter()
                    .all(|reading| reading.observed_at > mark.observed_at)
            );
        }
    }
}
