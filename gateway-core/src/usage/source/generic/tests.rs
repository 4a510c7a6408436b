use serde_json::json;

use super::*;
use crate::usage::source::testing::{lines, origin};

fn read(payload: &Value) -> Vec<String> {
    lines(&readings(payload, unit(payload), &origin()))
}

#[test]
fn windows_are_found_by_what_their_members_mean() {
    let reset = "2026-12-01T00:00:00Z";
    let rows = [
        (
            "registries",
            json!({"account": "a", "windows": {"five_hour": {"used": 102.0, "status": "rejected", "resets_at": reset}}}),
            vec!["five_hour account 102% rejected 2026-12-01T00:00:00Z 300m"],
        ),
        (
            "lists with keys",
            json!({"windows": [{"key": "seven_day_opus", "pct": 7, "resets_at": reset}, {"label": "Weekly", "used_percent": "3%"}]}),
            vec![
                "seven_day_opus model:opus 7% - 2026-12-01T00:00:00Z 10080m",
                "seven_day account 3% - - 10080m",
            ],
        ),
        (
            "prefixed members",
            json!({"session_percent": 12, "session_resets_at": reset, "weeklyQuotaRemainingPercent": 0, "weeklyQuotaResetAtUnix": 1_796_400_000}),
            vec![
                "five_hour account 12% - 2026-12-01T00:00:00Z 300m",
                "seven_day account 100% - 2026-12-04T16:00:00Z 10080m",
            ],
        ),
        (
            "counts, as text, what is left",
            json!({"daily": {"limit": "5000", "remaining": "1250", "reset_date": "2026-12-01"}}),
            vec!["daily account 75% - 2026-12-01T00:00:00Z 1440m"],
        ),
        (
            "a refusal without a share",
            json!({"quota": {"exhausted": true, "resetAt": reset}}),
            vec!["quota account - rejected 2026-12-01T00:00:00Z -"],
        ),
        (
            "by model",
            json!({"models": {"gpt-6.1": {"remaining_fraction": 0.25, "reset_in": "2h30m"}}}),
            vec!["gpt-6.1 model:gpt-6.1 75% - 2026-11-30T14:30:00Z -"],
        ),
        (
            "money",
            json!({"extra_usage": {"used_percent": 100}, "credits": {"limit": 10, "used": 10}}),
            vec!["extra_usage spend 100% - - -", "credits spend 100% - - -"],
        ),
        (
            "no quota at all",
            json!({"context_window": {"used_percentage": 99}, "cost": {"total": 3}, "tokens": {"used": 5}, "chat": {"unlimited": true, "percent_remaining": 0}}),
            vec![],
        ),
    ];
    for (name, payload, want) in rows {
        assert_eq!(read(&payload), want, "{name}");
    }
}

#[test]
fn the_unit_is_settled_by_all_values_together() {
    let two =
        |a: Value, b: Value| json!({"five_hour": {"utilization": a}, "weekly": {"utilization": b}});
    let used = |payload: &Value| -> Vec<Option<f64>> {
        let found = readings(payload, unit(payload), &origin());
        found.iter().map(|reading| reading.used_pct).collect()
    };
    assert_eq!(
        used(&two(json!(0.23), json!(0.9))),
        [Some(23.0), Some(90.0)]
    );
    assert_eq!(used(&two(json!(1), json!(99))), [Some(1.0), Some(99.0)]);
    assert_eq!(used(&two(json!(0), json!(0))), [Some(0.0), Some(0.0)]);
    // A lone 1 is one percent or all of it: it is neither.
    assert_eq!(used(&json!({"five_hour": {"utilization": 1}})), []);
}

#[test]
fn counts_settle_what_a_percentage_claims() {
    let rows = [
        (
            json!({"used": 5, "remaining": 4995, "percentUsed": 0.001}),
            0.1,
        ),
        (json!({"used": 40, "limit": 50, "percentage": 20}), 80.0),
        (json!({"used": 11, "limit": 90, "percentage": 12}), 12.0),
        (json!({"percentUsed": 0.4}), 0.4),
    ];
    for (window, want) in rows {
        let payload = json!({"daily": window});
        let found = readings(&payload, Unit::Unknown, &origin());
        assert_eq!(found[0].used_pct, Some(want), "{payload}");
    }
}

#[test]
fn a_wait_needs_a_time_to_count_from() {
    let payload = json!({"weekly": {"percent": 100, "resets_in": "4 days"}});
    let mut unknown = origin();
    unknown.observed_at = None;
    assert_eq!(
        readings(&payload, Unit::Unknown, &unknown)[0].resets_at,
        None
    );
    let stamped = json!({"fetched_at": "2026-11-29T00:00:00Z", "weekly": {"percent": 100, "resets_in": "4 days"}});
    let reading = &readings(&stamped, Unit::Unknown, &unknown)[0];
    assert_eq!(
        reading.resets_at.unwrap().to_string(),
        "2026-12-03T00:00:00Z"
    );
    assert_eq!(
        reading.observed_at.unwrap().to_string(),
        "2026-11-29T00:00:00Z"
    );
}
