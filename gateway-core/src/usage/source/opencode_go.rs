//! OpenCode Go: `GET https://opencode.ai/zen/go/v1/usage` with the plan's key.
//!
//! `{"usage": {"rolling": {"status", "percent", "resetsAt"}, "weekly": …, "monthly": …}}`; `percent` counts to 100 and
//! beyond. Older and console variants write `usagePercent` and `resetInSec`. The dollars behind the percentages differ per
//! model, but the payload has one number per window: it is taken as the whole account's.

use serde_json::Value;

use super::Origin;
use super::fields::{self, member, number_of, text_of};
use super::span;
use crate::usage::{Reading, WindowStatus};

/// Member, the registry's id, and the length where it has one (a month has none).
const WINDOWS: [(&str, &str, Option<u32>); 3] = [
    ("rolling", "go_rolling", Some(span::SESSION)),
    ("weekly", "go_weekly", Some(span::WEEK)),
    ("monthly", "go_monthly", None),
];

/// Reads the payload; one reading per window it names. Fewer than three from the endpoint itself means that it failed.
pub fn usage(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let usage = member(payload, &["usage"]).unwrap_or(payload);
    let read = |(name, id, mins): (&str, &str, Option<u32>)| {
        let camel = format!("{name}Usage"); // the console's name
        let window = member(usage, &[name, &camel]).filter(|window| window.is_object())?;
        let used = number_of(window, &["percent", "usagePercent", "usedPercent"]);
        Some(Reading {
            used_pct: used.and_then(fields::points),
            status: text_of(window, &["status"]).map_or(WindowStatus::Unknown, fields::status),
            resets_at: fields::reset_of(
                origin,
                window,
                &["resetsAt", "resetAt", "resets_at"],
                &["resetInSec", "resetsInSec"],
            ),
            duration_mins: mins,
            ..origin.reading(id)
        })
    };
    WINDOWS.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn three_windows_above_a_hundred_and_without_currency() {
        let payload = json!({"usage": {
            "rolling": {"status": "ok", "percent": 15.0, "resetsAt": "2026-11-30T20:00:00Z"},
            "weekly": {"status": "ok", "percent": 40, "resetsAt": "2026-12-06T00:00:00.000Z"},
            "monthly": {"status": "rate-limited", "percent": 120, "resetsAt": null, "new": [1]},
        }});
        assert_eq!(
            lines(&usage(&payload, &origin())),
            [
                "go_rolling account 15% allowed 2026-11-30T20:00:00Z 300m",
                "go_weekly account 40% allowed 2026-12-06T00:00:00Z 10080m",
                "go_monthly account 120% rejected - -",
            ]
        );
    }

    #[test]
    fn the_console_counts_seconds() {
        let payload = json!({
            "rollingUsage": {"status": "ok", "usagePercent": 3, "resetInSec": 3600},
            "weeklyUsage": null,
        });
        assert_eq!(
            lines(&usage(&payload, &origin())),
            ["go_rolling account 3% allowed 2026-11-30T13:00:00Z 300m"]
        );
    }

    #[test]
    fn a_refusal_of_the_endpoint_has_no_windows() {
        for payload in [
            json!({"type": "error", "error": {"type": "EntitlementError"}}),
            json!({"usage": []}),
            json!(null),
        ] {
            assert!(usage(&payload, &origin()).is_empty(), "{payload}");
        }
    }
}
