//! How long until an instant, in the few words people read: `6h`, `3.4d`, `now`, `an unknown time`.
//!
//! Instants come in and text goes out at the moment of saying: a text kept for later would be wrong by then. Rounding is
//! that of the contract: whole minutes with halves to even, hours and days with one decimal.

use jiff::Timestamp;

const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;
/// From here on hours are easier to read than minutes.
const HOURS_FROM_S: f64 = 5_400.0;
const DAYS_FROM_S: f64 = 172_800.0;

/// Returns the time left until `until`: `now` if it has come, `an unknown time` if there is no instant.
pub fn time_until(until: Option<Timestamp>, now: Timestamp) -> String {
    let Some(until) = until else {
        return "an unknown time".to_owned();
    };
    let left = seconds_between(now, until);
    if left <= 0.0 {
        "now".to_owned()
    } else if left < HOURS_FROM_S {
        format!("{}m", (left / MINUTE_S).round_ties_even().max(1.0))
    } else if left < DAYS_FROM_S {
        one_decimal(left / HOUR_S, "h")
    } else {
        one_decimal(left / DAY_S, "d")
    }
}

/// Seconds from one instant to another; negative if `to` is the earlier one.
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn one_decimal(value: f64, unit: &str) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_after_ms(ms: i64) -> String {
        let now = Timestamp::from_second(1_789_981_200).unwrap();
        let until = Timestamp::from_millisecond(1_789_981_200_000 + ms).unwrap();
        time_until(Some(until), now)
    }

    #[test]
    fn a51_minutes_round_halves_to_even_and_are_at_least_one() {
        let rows = [
            (10_000, "1m"),
            (89_000, "1m"),
            (90_000, "2m"),
            (150_000, "2m"),
            (390_000, "6m"),
            (5_369_000, "89m"),
            (5_370_000, "90m"),
            (5_399_000, "90m"),
            (5_400_000, "1.5h"),
            (1, "1m"),
        ];
        for (ms, want) in rows {
            assert_eq!(text_after_ms(ms), want, "{ms} ms");
        }
    }

    #[test]
    fn a52_hours_and_days_have_one_decimal_and_no_point_zero() {
        let rows = [
            (7_560_000, "2.1h"),
            (21_600_000, "6h"),
            (21_599_000, "6h"),
            (172_584_000, "47.9h"),
            (172_799_000, "48h"),
            (172_800_000, "2d"),
            (293_760_000, "3.4d"),
            (604_800_000, "7d"),
        ];
        for (ms, want) in rows {
            assert_eq!(text_after_ms(ms), want, "{ms} ms");
        }
    }

    #[test]
    fn a53_nothing_known_and_nothing_left_have_words() {
        assert_eq!(time_until(None, Timestamp::UNIX_EPOCH), "an unknown time");
        assert_eq!(text_after_ms(0), "now");
        assert_eq!(text_after_ms(-1_000), "now");
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        assert!(time_until(Some(Timestamp::MAX), Timestamp::MIN).ends_with('d'));
        assert_eq!(time_until(Some(Timestamp::MIN), Timestamp::MAX), "now");
    }
}
