//! Instants and percentages as the world writes them. Tolerant in form, strict in belief: what is not clearly an instant
//! or a share is unknown, and never an error (notes N2 and N3 of the decision contract).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// From these magnitudes on an epoch number counts milliseconds, microseconds, nanoseconds.
const MILLIS_FROM: i128 = 100_000_000_000;
const MICROS_FROM: i128 = 100_000_000_000_000;
const NANOS_FROM: i128 = 100_000_000_000_000_000;

/// Reads an instant: RFC 3339 (no offset means UTC) or an epoch number or numeric string in s, ms, µs or ns by magnitude.
/// A list of one is what it holds (header libraries write that). Zero, negative, not finite and everything else is `None`.
pub fn instant(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => number
            .as_i128()
            .and_then(epoch_integer)
            .or_else(|| number.as_f64().and_then(epoch_float)),
        Value::String(text) => instant_text(text),
        Value::Array(items) => match items.as_slice() {
            [one] if !one.is_array() => instant(one),
            _ => None,
        },
        _ => None,
    }
}

/// The same for text.
pub fn instant_text(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i128>() {
        return epoch_integer(number);
    }
    if let Ok(number) = text.parse::<f64>() {
        return epoch_float(number);
    }
    written_instant(text).filter(|at| *at > Timestamp::UNIX_EPOCH)
}

/// Reads a share in points of 100. Above 100 is legal; negative, not finite and not numeric is unknown.
pub fn percent(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn epoch_integer(number: i128) -> Option<Timestamp> {
    if number <= 0 {
        return None;
    }
    let scale = match number {
        NANOS_FROM.. => 1,
        MICROS_FROM.. => 1_000,
        MILLIS_FROM.. => 1_000_000,
        _ => 1_000_000_000,
    };
    Timestamp::from_nanosecond(number.checked_mul(scale)?).ok()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast saturates, and a saturated value is no Timestamp"
)]
fn epoch_float(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let scale = match number {
        1e17.. => 1.0,
        1e14.. => 1e3,
        1e11.. => 1e6,
        _ => 1e9,
    };
    let nanos = (number * scale).round() as i128;
    Timestamp::from_nanosecond(nanos)
        .ok()
        .filter(|at| *at > Timestamp::UNIX_EPOCH)
}

fn written_instant(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    // A bare date is no instant, but the parser of civil times would take it as midnight.
    if !text.contains(':') {
        return None;
    }
    let civil: DateTime = text.parse().ok()?;
    TimeZone::UTC.to_timestamp(civil).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_one_instant_is_the_same_instant() {
        let forms = [
            json!("2026-09-24T16:00:00.000Z"),
            json!("2026-09-24T16:00:00Z"),
            json!(" 2026-09-24T18:00:00+02:00 "),
            json!("2026-09-24T16:00:00"),
            json!("2026-09-24 16:00:00"),
            json!("2026-09-24t16:00:00z"),
            json!("1790265600"),
            json!(1_790_265_600),
            json!(1_790_265_600.0),
            json!("1.7902656e9"),
            json!(1_790_265_600_000_i64),
            json!("1790265600000"),
            json!(1_790_265_600_000_000_i64),
            json!(1_790_265_600_000_000_000_i64),
            json!(1.7902656e18),
            json!(["1790265600"]),
        ];
        for form in forms {
            assert_eq!(
                instant(&form).map(Timestamp::as_second),
                Some(1_790_265_600),
                "{form}"
            );
        }
    }

    #[test]
    fn what_is_no_instant_is_none() {
        let forms = [
            json!(null),
            json!(true),
            json!(false),
            json!(""),
            json!("  "),
            json!("not-a-date"),
            json!(0),
            json!(-5),
            json!("0"),
            json!("-1"),
            json!("NaN"),
            json!("Infinity"),
            json!("-inf"),
            json!(1e300),
            json!("1e400"),
            json!([]),
            json!([1_790_265_600, 1_790_265_600]),
            json!([[1_790_265_600]]),
            json!({}),
            json!("2026-09-24"),
            json!("in 5 hours"),
            json!("1960-01-01T00:00:00Z"),
            json!("99999999999999999999999999999999999999999"),
            json!(1e-12),
        ];
        for form in forms {
            assert_eq!(instant(&form), None, "{form}");
        }
    }

    #[test]
    fn shares_are_points_of_a_hundred_or_unknown() {
        assert_eq!(percent(&json!(99.5)), Some(99.5));
        assert_eq!(percent(&json!("84")), Some(84.0));
        assert_eq!(percent(&json!(102)), Some(102.0));
        assert_eq!(percent(&json!(0)), Some(0.0));
        for unknown in [
            json!(-1),
            json!("NaN"),
            json!("inf"),
            json!(null),
            json!(true),
            json!("x"),
        ] {
            assert_eq!(percent(&unknown), None, "{unknown}");
        }
    }
}
