//! Kimi for coding: `GET https://api.kimi.com/coding/v1/usages`.
//!
//! `usage` is the weekly allowance, `limits[]` carries the shorter windows; numbers are text, and a number that is zero is
//! left out (proto3), so any two of `used`, `limit` and `remaining` must do. Newer answers have `usages` instead or besides: pools
//! by name with ratios, where the name tells the length (`limit_5h`, `limit_month_total`).

use serde_json::Value;

use super::fields::{self, member, number_of, text_of};
use super::{MAX_WINDOWS, Origin, span};
use crate::usage::{Reading, merge};

const RESETS: [&str; 4] = ["resetTime", "reset_time", "resetAt", "reset_at"];

/// Reads the payload.
pub fn usages(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let weekly =
        member(payload, &["usage"]).and_then(|detail| counted(detail, Some(span::WEEK), origin));
    let limits = payload.get("limits").and_then(Value::as_array);
    let shorter = limits.into_iter().flatten().filter_map(|limit| {
        let length = limit.get("window").and_then(minutes);
        counted(member(limit, &["detail"]).unwrap_or(limit), length, origin)
    });
    let pools = payload.get("usages").and_then(Value::as_object);
    let ratios = pools
        .into_iter()
        .flatten()
        .take(MAX_WINDOWS)
        .filter_map(|(name, pool)| {
            let used = number_of(pool, &["used_ratio", "usedRatio"]).and_then(fields::fraction);
            let mins = pool_length(name);
            let one = reading(Some(used?), pool, mins, origin);
            // Two pools may be of one length: the month's total and the month's code.
            let told = matches!(mins, Some(span::SESSION | span::WEEK));
            Some(Reading {
                window: if told { one.window } else { name.clone() },
                ..one
            })
        });
    let mut readings: Vec<Reading> = Vec::new();
    let all = weekly.into_iter().chain(shorter).take(MAX_WINDOWS);
    for reading in all.chain(ratios) {
        if !readings
            .iter()
            .any(|known| merge::same_window(known, &reading))
        {
            readings.push(reading);
        }
    }
    readings
}

fn counted(detail: &Value, mins: Option<u32>, origin: &Origin<'_>) -> Option<Reading> {
    let limit = number_of(detail, &["limit"])?;
    let left = || Some(limit - number_of(detail, &["remaining"])?);
    let used = number_of(detail, &["used"]).or_else(left);
    let used = used.and_then(|used| fields::counted(used, limit));
    Some(reading(used, detail, mins, origin))
}

fn reading(used: Option<f64>, detail: &Value, mins: Option<u32>, origin: &Origin<'_>) -> Reading {
    let id = mins.and_then(span::id).unwrap_or("limit");
    Reading {
        used_pct: used,
        resets_at: fields::reset_of(origin, detail, &RESETS, &[]),
        duration_mins: mins,
        ..origin.reading(id)
    }
}

/// The length in a pool's name.
fn pool_length(name: &str) -> Option<u32> {
    const WORDS: [(&str, u32); 5] = [
        ("5h", span::SESSION),
        ("7d", span::WEEK),
        ("week", span::WEEK),
        ("month", span::MONTH),
        ("day", span::DAY),
    ];
    let found = WORDS.iter().find(|(word, _)| name.contains(word));
    found.map(|(_, mins)| *mins)
}

/// `{"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}`.
fn minutes(window: &Value) -> Option<u32> {
    let unit = text_of(window, &["timeUnit", "time_unit"]).unwrap_or("TIME_UNIT_MINUTE");
    let each = match unit {
        "TIME_UNIT_SECOND" => 1.0 / 60.0,
        "TIME_UNIT_HOUR" => 60.0,
        "TIME_UNIT_DAY" => f64::from(span::DAY),
        "TIME_UNIT_WEEK" => f64::from(span::WEEK),
        _ => 1.0,
    };
    fields::minutes(number_of(window, &["duration"])? * each)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn numbers_are_text_and_zeros_are_left_out() {
        let payload = json!({
            "usage": {"limit": "100", "used": "26", "resetTime": "2026-12-03T09:00:00.376980Z"},
            "limits": [
                {"window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"},
                 "detail": {"limit": "100", "remaining": "15", "resetTime": "2026-11-30T15:00:00Z"}},
                {"window": {"duration": 1, "timeUnit": "TIME_UNIT_FORTNIGHT"}, "detail": {"remaining": "3"}},
            ],
            "usages": {"limit_5h": {"used_ratio": 0.84, "reset_time": "2026-11-30T15:00:00Z"}},
        });
        assert_eq!(
            lines(&usages(&payload, &origin())),
            [
                "seven_day account 26% - 2026-12-03T09:00:00.37698Z 10080m",
                "five_hour account 85% - 2026-11-30T15:00:00Z 300m",
            ]
        );
    }

    #[test]
    fn ratios_alone_will_do_and_no_allowance_is_no_share() {
        let ratios = json!({"usages": {"limit_7d": {"used_ratio": 1, "reset_time": "2026-12-03T09:00:00Z"}}});
        assert_eq!(
            lines(&usages(&ratios, &origin())),
            ["seven_day account 100% - 2026-12-03T09:00:00Z 10080m"]
        );
        let pools = json!({"usages": {
            "limit_month_total": {"used_ratio": 1, "reset_time": "2026-12-03T09:00:00Z"}, "limit_month_code": {"used_ratio": 0}, "odd": {}}});
        assert_eq!(
            lines(&usages(&pools, &origin())),
            [
                "limit_month_total account 100% - 2026-12-03T09:00:00Z 43200m",
                "limit_month_code account 0% - - 43200m",
            ]
        );
        let nothing = json!({"usage": {"limit": "0", "used": "0"}});
        assert_eq!(
            lines(&usages(&nothing, &origin())),
            ["seven_day account - - - 10080m"]
        );
    }
}
