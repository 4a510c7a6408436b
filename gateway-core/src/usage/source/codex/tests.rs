use serde_json::json;

use super::*;
use crate::usage::source::testing::{lines, origin};

#[test]
fn the_app_server_speaks_camel_case_minutes_and_epoch_seconds() {
    let answer = json!({
        "rateLimits": {
            "limitId": "codex", "limitName": null, "planType": "plus", "rateLimitReachedType": null,
            "primary": {"usedPercent": 25, "windowDurationMins": 300, "resetsAt": 1_796_050_000},
            "secondary": {"usedPercent": 102, "windowDurationMins": 10080, "resetsAt": 1_796_400_000},
            "credits": {"hasCredits": false, "unlimited": false, "balance": "0"}, "individualLimit": null,
        },
        "rateLimitsByLimitId": {
            "codex": {"limitId": "codex",
                "primary": {"usedPercent": 25, "windowDurationMins": 300, "resetsAt": 1_796_050_000}, "secondary": null},
            "codex_bengalfox": {"limitId": "codex_bengalfox", "limitName": "Spark",
                "primary": {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": 1_796_050_000}},
            "premium": {"limitId": "premium", "primary": null, "secondary": null},
        },
        "rateLimitResetCredits": {"availableCount": 1, "credits": [{"status": "available", "expiresAt": 1_800_000_000}]},
    });
    assert_eq!(
        lines(&rate_limits(&answer, &origin())),
        [
            "five_hour account 25% - 2026-11-30T14:46:40Z 300m",
            "five_hour bucket:codex_bengalfox 100% - 2026-11-30T14:46:40Z 300m",
        ]
    );
}

#[test]
fn an_update_keeps_what_it_omits_and_speaks_only_of_what_it_names() {
    let mut limits = RateLimits::default();
    let first = limits.read(
        &json!({"rateLimits": {"planType": "plus",
            "primary": {"usedPercent": 10, "windowDurationMins": 10080, "resetsAt": 1_796_400_000},
            "secondary": {"usedPercent": 1, "windowDurationMins": 43200, "resetsAt": 1_798_000_000}}}),
        &origin(),
    );
    assert_eq!(first.len(), 2);
    let update = limits.read(
        &json!({"rateLimits": {"limitId": null, "primary": {"usedPercent": 12, "resetsAt": null}, "secondary": null}}),
        &origin(),
    );
    assert_eq!(
        lines(&update),
        ["seven_day account 12% - 2026-12-04T16:00:00Z 10080m"]
    );
}

#[test]
fn a_rollout_line_speaks_snake_case() {
    let line = json!({"type": "token_count", "info": null, "rate_limits": {
        "limit_id": "codex", "limit_name": null, "plan_type": "pro", "rate_limit_reached_type": null, "credits": null,
        "primary": {"used_percent": 12.5, "window_minutes": 10080, "resets_at": 1_796_400_000},
        "secondary": null, "individual_limit": null,
    }});
    assert_eq!(
        lines(&rate_limits(&line, &origin())),
        ["seven_day account 12.5% - 2026-12-04T16:00:00Z 10080m"]
    );
}

#[test]
fn the_usage_endpoint_speaks_seconds_and_a_verdict() {
    let answer = json!({
        "plan_type": "plus",
        "rate_limit": {"allowed": false, "limit_reached": true,
            "primary_window": {"used_percent": 100, "limit_window_seconds": 18000, "reset_after_seconds": 60, "reset_at": 1_796_050_000},
            "secondary_window": {"used_percent": 31, "limit_window_seconds": 604800, "reset_after_seconds": 360_000}},
        "code_review_rate_limit": {"allowed": false, "limit_reached": true,
            "primary_window": {"used_percent": 100, "limit_window_seconds": 604800, "reset_at": 1_796_400_000}},
        "additional_rate_limits": [{"limit_name": "Spark", "metered_feature": "codex_bengalfox",
            "rate_limit": {"allowed": true, "limit_reached": false,
                "primary_window": {"used_percent": 16, "limit_window_seconds": 18000, "reset_at": 1_796_050_000},
                "secondary_window": {"used_percent": 0, "limit_window_seconds": 0, "reset_at": 0}}}, null, {"x": 1}],
        "credits": {"has_credits": false, "balance": "0"}, "spend_control": {"reached": false},
        "rate_limit_reset_credits": {"available_count": 2},
    });
    assert_eq!(
        lines(&usage(&answer, &origin())),
        [
            "five_hour account 100% rejected 2026-11-30T14:46:40Z 300m",
            "seven_day account 31% - 2026-12-04T16:00:00Z 10080m",
            "seven_day bucket:code_review 100% rejected 2026-12-04T16:00:00Z 10080m",
            "five_hour bucket:codex_bengalfox 16% allowed 2026-11-30T14:46:40Z 300m",
        ]
    );
}

#[test]
fn headers_carry_a_family_per_bucket() {
    let seen: Headers = [
        ("x-codex-primary-used-percent", "99"),
        ("x-codex-primary-window-minutes", "300"),
        ("x-codex-primary-reset-at", "1796050000"),
        ("X-Codex-Secondary-Used-Percent", "42.5"),
        ("x-codex-secondary-window-minutes", "10080"),
        ("x-codex-secondary-reset-after-seconds", "360000"),
        ("x-codex-bengalfox-primary-used-percent", "7"),
        ("x-codex-bengalfox-primary-window-minutes", "300"),
        ("x-codex-bengalfox-secondary-used-percent", "0"),
        ("x-codex-bengalfox-secondary-window-minutes", "0"),
        ("x-codex-active-limit", "codex"),
        ("x-codex-rate-limit-reached-type", "rate_limit_reached"),
        ("x-codex-plan-type", "plus"),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        lines(&headers(&seen, &origin())),
        [
            "five_hour account 99% rejected 2026-11-30T14:46:40Z 300m",
            "seven_day account 42.5% - 2026-12-04T16:00:00Z 10080m",
            "five_hour bucket:codex_bengalfox 7% - - 300m",
        ]
    );
}

#[test]
fn a_slot_without_a_length_is_named_by_its_reset_else_by_custom() {
    let rows = [
        (
            json!({"primary": {"used_percent": 5}}),
            "five_hour account 5% - - 300m",
        ),
        (
            json!({"plan_type": "free", "primary": {"used_percent": 5}}),
            "monthly account 5% - - 43200m",
        ),
        (
            json!({"primary": {"used_percent": 5, "resets_at": 1_796_400_000}}),
            "seven_day account 5% - 2026-12-04T16:00:00Z 10080m",
        ),
        (
            json!({"primary": {"used_percent": 5, "window_minutes": 60}}),
            "primary account 5% - - 60m",
        ),
    ];
    for (snapshot, want) in rows {
        assert_eq!(
            lines(&rate_limits(&snapshot, &origin())),
            [want],
            "{snapshot}"
        );
    }
}

#[test]
fn one_odd_value_voids_only_itself() {
    let snapshot = json!({
        "primary": {"used_percent": -3, "window_minutes": "300", "resets_at": 0},
        "secondary": {"used_percent": "80", "window_minutes": 1e99, "resets_at": 99_999_999_999_999_999_999.0},
    });
    assert_eq!(
        lines(&rate_limits(&snapshot, &origin())),
        [
            "five_hour account - - - 300m",
            "seven_day account 80% - - 10080m"
        ]
    );
    assert!(rate_limits(&json!([{"primary": 5}]), &origin()).is_empty());
}
