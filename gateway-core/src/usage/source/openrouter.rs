//! OpenRouter: `GET /api/v1/key` (the key's own cap) and `GET /api/v1/credits` (the account's balance).
//!
//! The company's own client libraries hand the same on in camelCase.
//!
//! A cap refuses every request once it is reached, and `limit_reset` names its UTC period: `daily`, `weekly` (from Monday),
//! `monthly`, or nothing: then only a top-up opens it again. The balance is money and gates nothing by itself. Free models
//! have a daily count of their own.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use super::fields::{self, member, number_of, text_of};
use super::{Origin, span};
use crate::usage::{Reading, WindowScope};

/// Reads either payload, or its `data`.
pub fn key(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let data = member(payload, &["data"]).unwrap_or(payload);
    let cap = cap(data, origin);
    let free = data.get("free_model_daily_requests").and_then(|free| {
        let limit = number_of(free, &["limit"])?;
        let left = || Some(limit - number_of(free, &["remaining"])?);
        let used = number_of(free, &["used"]).or_else(left)?;
        Some(Reading {
            scope: Some(WindowScope::Bucket("free_models".to_owned())),
            used_pct: fields::counted(used, limit),
            resets_at: next("daily", origin),
            duration_mins: Some(span::DAY),
            ..origin.reading("free_models")
        })
    });
    let balance = number_of(data, &["total_credits"]).and_then(|bought| {
        Some(Reading {
            scope: Some(WindowScope::Spend),
            used_pct: fields::counted(number_of(data, &["total_usage"])?, bought),
            ..origin.reading("credits")
        })
    });
    cap.into_iter().chain(free).chain(balance).collect()
}

fn cap(data: &Value, origin: &Origin<'_>) -> Option<Reading> {
    let limit = number_of(data, &["limit"])?;
    let left = number_of(data, &["limit_remaining", "limitRemaining"])?;
    let period = text_of(data, &["limit_reset", "limitReset"]).unwrap_or_default();
    let mins = match period {
        "daily" => Some(span::DAY),
        "weekly" => Some(span::WEEK),
        "monthly" => Some(span::MONTH),
        _ => None,
    };
    Some(Reading {
        used_pct: fields::counted(limit - left, limit),
        resets_at: next(period, origin),
        duration_mins: mins,
        ..origin.reading(mins.and_then(span::id).unwrap_or("key_limit"))
    })
}

/// When the UTC period after the origin's begins.
fn next(period: &str, origin: &Origin<'_>) -> Option<Timestamp> {
    let today = TimeZone::UTC.to_datetime(origin.observed_at?).date();
    let first: Option<Date> = match period {
        "daily" => today.tomorrow().ok(),
        "weekly" => today.nth_weekday(1, Weekday::Monday).ok(),
        "monthly" => today.first_of_month().checked_add(1.month()).ok(),
        _ => None,
    };
    TimeZone::UTC.to_timestamp(first?.at(0, 0, 0, 0)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn a_cap_resets_with_its_utc_period() {
        let rows = [
            (
                json!("daily"),
                "daily account 90% - 2026-12-01T00:00:00Z 1440m",
            ),
            (
                json!("weekly"),
                "seven_day account 90% - 2026-12-07T00:00:00Z 10080m",
            ),
            (
                json!("monthly"),
                "monthly account 90% - 2026-12-01T00:00:00Z 43200m",
            ),
            (json!(null), "key_limit account 90% - - -"),
        ];
        for (period, want) in rows {
            let payload = json!({"data": {"label": "k", "limit": 5, "usage": 99, "limit_remaining": 0.5, "limit_reset": period}});
            assert_eq!(lines(&key(&payload, &origin())), [want]);
        }
    }

    #[test]
    fn a_balance_is_money_and_no_cap_is_no_window() {
        let rows = [
            (
                json!({"data": {"total_credits": 10, "total_usage": 10.5}}),
                vec!["credits spend 105% - - -"],
            ),
            (
                json!({"data": {"limit": null, "limit_remaining": null, "usage": 3}}),
                vec![],
            ),
            (
                json!({"data": {"free_model_daily_requests": {"limit": 50, "remaining": 0}}}),
                vec!["free_models bucket:free_models 100% - 2026-12-01T00:00:00Z 1440m"],
            ),
        ];
        for (payload, want) in rows {
            assert_eq!(lines(&key(&payload, &origin())), want, "{payload}");
        }
    }
}
