//! How much of a window one turn burns, and whether the next one fits: samples to an expectation to a projection
//! (section 3.2 of the routing contract). Points of 100 throughout. A prediction is no fact: it never spends money and never
//! makes a turn wait, so everything here is willing to say "unknown".

use jiff::Timestamp;

use super::Reading;
use super::blocking::TOLERANCE;

/// What is expected of a turn when every sample rounded to nothing: providers report whole points.
const LEAST_BURN: f64 = 0.5;
/// How far from the edge of a turn a reading may lie and still count as taken at it, in milliseconds.
const EDGE_MS: i64 = 120_000;
/// Two resets this close to each other belong to one cycle, in milliseconds.
const SAME_CYCLE_MS: i64 = 60_000;

/// The burn one turn is expected to have: the mean of the newest samples or the last one, whichever is more.
///
/// `samples` are oldest first; `None` is a discarded one, a negative one counts as 0. Only the newest `keep` count, and
/// fewer than `least` say nothing (`None`).
pub fn expected(samples: &[Option<f64>], keep: usize, least: usize) -> Option<f64> {
    let (mut sum, mut count, mut last) = (0.0, 0_u32, None);
    let known = samples.iter().rev().flatten();
    for sample in known.filter(|sample| sample.is_finite()).take(keep) {
        let sample = sample.max(0.0);
        sum += sample;
        count += 1;
        last.get_or_insert(sample);
    }
    let last = last?;
    if usize::try_from(count).unwrap_or(usize::MAX) < least {
        return None;
    }
    let expected = last.max(sum / f64::from(count));
    Some(if expected > 0.0 { expected } else { LEAST_BURN })
}

/// Where a window stands after one more turn, with the safety factor on what is expected of it.
pub fn projected(used_pct: f64, expected_pct: f64, safety: f64) -> f64 {
    used_pct + safety * expected_pct
}

/// Whether a level is above a limit; exactly on it is not, whatever floats make of that.
pub fn is_above(level: f64, limit: f64) -> bool {
    level > limit + TOLERANCE
}

/// The sample a turn leaves behind for one window; `None` = not comparable: a reading far from the turn's edge, another
/// cycle, an unknown level.
pub fn sample(
    start: &Reading,
    end: &Reading,
    turn: std::ops::RangeInclusive<Timestamp>,
) -> Option<f64> {
    let near = |reading: &Reading, edge: &Timestamp| {
        let at = reading.observed_at?.as_millisecond();
        (distance(at, edge.as_millisecond()) <= EDGE_MS).then_some(())
    };
    near(start, turn.start())?;
    near(end, turn.end())?;
    let same_cycle = match (start.resets_at, end.resets_at) {
        (Some(a), Some(b)) => distance(a.as_millisecond(), b.as_millisecond()) <= SAME_CYCLE_MS,
        (None, None) => true,
        _ => false,
    };
    let known = |used: Option<f64>| used.filter(|used| used.is_finite() && *used >= 0.0);
    let delta = known(end.used_pct)? - known(start.used_pct)?;
    same_cycle.then_some(delta.max(0.0))
}

/// Minutes until a window is full at the pace of these samples; `None` = it does not move, or nobody knows.
pub fn minutes_to_full(used_pct: f64, burnt_pct: f64, active_minutes: f64) -> Option<f64> {
    let minutes = (100.0 - used_pct) / (burnt_pct / active_minutes);
    (burnt_pct > 0.0 && active_minutes > 0.0 && minutes.is_finite()).then(|| minutes.max(0.0))
}

fn distance(a: i64, b: i64) -> i64 {
    a.saturating_sub(b).saturating_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::{ReadingSource, WindowStatus};

    #[test]
    fn the_worked_examples_of_the_contract() {
        let known = |samples: &[f64]| samples.iter().map(|s| Some(*s)).collect::<Vec<_>>();
        // used, samples, trips at 90
        let rows = [
            (84.0, known(&[7.0, 7.0, 7.0]), true),
            (81.25, known(&[7.0, 7.0, 7.0]), false),
            (81.5, known(&[7.0, 7.0, 7.0]), true),
            (70.0, known(&[2.0, 4.0, 20.0]), true),
            (70.0, known(&[20.0, 4.0, 2.0]), false),
            (10.0, known(&[7.0, 7.0]), false),
            (89.5, known(&[0.0, 0.0, 0.0]), true),
            (84.0, known(&[90.0, 1.0, 1.0, 1.0]), false),
        ];
        for (used, samples, trips) in rows {
            let expected = expected(&samples, 3, 2).unwrap();
            assert_eq!(
                is_above(projected(used, expected, 1.25), 90.0),
                trips,
                "{used} {samples:?}"
            );
        }
    }

    #[test]
    fn too_few_samples_say_nothing() {
        let rows: [(&[Option<f64>], Option<f64>); 6] = [
            (&[], None),
            (&[Some(7.0)], None),
            (&[None, Some(7.0), None], None),
            (&[Some(7.0), None, Some(f64::NAN), Some(9.0)], Some(9.0)),
            (&[Some(-5.0), Some(-1.0)], Some(0.5)),
            (&[Some(4.0), Some(-4.0)], Some(2.0)),
        ];
        for (samples, want) in rows {
            assert_eq!(expected(samples, 3, 2), want, "{samples:?}");
        }
        assert_eq!(expected(&[Some(1.0)], 0, 0), None);
    }

    fn reading(at_s: i64, used_pct: Option<f64>, resets_s: Option<i64>) -> Reading {
        Reading {
            subscription: "s".into(),
            window: "five_hour".to_owned(),
            scope: None,
            used_pct,
            status: WindowStatus::Unknown,
            resets_at: resets_s.and_then(|at| Timestamp::from_second(at).ok()),
            duration_mins: None,
            observed_at: Timestamp::from_second(at_s).ok(),
            source: ReadingSource::Probe,
        }
    }

    #[test]
    fn a_sample_needs_both_edges_and_one_cycle() {
        let turn = Timestamp::from_second(1_000).unwrap()..=Timestamp::from_second(2_000).unwrap();
        let rows = [
            (
                "both edges",
                1_000,
                2_000,
                Some(9_000),
                Some(17.0),
                Some(7.0),
            ),
            (
                "120 s away is near",
                880,
                2_120,
                Some(9_060),
                Some(17.0),
                Some(7.0),
            ),
            ("121 s is not", 879, 2_000, Some(9_000), Some(17.0), None),
            ("another cycle", 1_000, 2_000, Some(9_061), Some(17.0), None),
            ("a reset came or went", 1_000, 2_000, None, Some(17.0), None),
            ("unknown level", 1_000, 2_000, Some(9_000), None, None),
            (
                "less than before",
                1_000,
                2_000,
                Some(9_000),
                Some(4.0),
                Some(0.0),
            ),
        ];
        for (name, start, end, resets, used, want) in rows {
            let start = reading(start, Some(10.0), Some(9_000));
            let end = reading(end, used, resets);
            assert_eq!(sample(&start, &end, turn.clone()), want, "{name}");
        }
    }

    #[test]
    fn the_time_to_full_needs_a_pace() {
        assert_eq!(minutes_to_full(80.0, 10.0, 30.0), Some(60.0));
        assert_eq!(minutes_to_full(120.0, 10.0, 30.0), Some(0.0));
        assert_eq!(minutes_to_full(80.0, 0.0, 30.0), None);
        assert_eq!(minutes_to_full(80.0, 5.0, 0.0), None);
    }
}
