use serde_json::json;

use super::*;
use crate::usage::source::testing::{lines, origin};

#[test]
fn the_endpoint_counts_to_a_hundred_whatever_the_value() {
    let payload = json!({
        "five_hour": {"utilization": 1.0, "resets_at": "2026-11-30T14:59:59.543+00:00"},
        "seven_day": {"utilization": 0.0, "resets_at": null},
        "seven_day_opus": null,
        "seven_day_sonnet": {"utilization": 100, "resets_at": "2026-12-03T09:00:00Z"},
        "seven_day_oauth_apps": {"utilization": 3},
        "cinder_cove": {"utilization": 7.5, "resets_at": null},
        "extra_usage": {"is_enabled": true, "monthly_limit": 5000, "used_credits": 1250.0, "utilization": null},
    });
    assert_eq!(
        lines(&usage(&payload, &origin())),
        [
            "five_hour account 1% - 2026-11-30T14:59:59.543Z 300m",
            "seven_day account 0% - - 10080m",
            "seven_day_sonnet model:sonnet 100% - 2026-12-03T09:00:00Z 10080m",
            "seven_day_oauth_apps bucket:oauth_apps 3% - - 10080m",
            "cinder_cove - 7.5% - - -",
            "monthly_spend spend 25% - - -",
        ]
    );
}

#[test]
fn get_usage_scopes_windows_to_models_by_name() {
    let payload = json!({"subscription_type": "max", "rate_limits_available": true, "rate_limits": {
        "five_hour": {"utilization": 12, "resets_at": "2026-11-30T15:00:00Z"},
        "model_scoped": [{"display_name": "Fable", "utilization": 100, "resets_at": "2026-12-03T09:00:00Z"}, {"x": 1}],
        "limits": [
            {"kind": "session", "percent": 12, "resets_at": "2026-11-30T15:00:00Z", "scope": null},
            {"kind": "weekly_all", "percent": 40, "resets_at": "2026-12-03T09:00:00Z"},
            {"kind": "weekly_scoped", "percent": 100, "scope": {"model": {"display_name": "fable"}}},
            {"kind": "lunar", "percent": 5, "scope": {"moon": true}}, "odd",
        ],
        "spend": {"enabled": false, "percent": 99},
    }});
    assert_eq!(
        lines(&usage(&payload, &origin())),
        [
            "five_hour account 12% - 2026-11-30T15:00:00Z 300m",
            "seven_day_fable model:Fable 100% - 2026-12-03T09:00:00Z 10080m",
            "seven_day account 40% - 2026-12-03T09:00:00Z 10080m",
            "lunar - 5% - - -",
        ]
    );
}

#[test]
fn a_status_line_gets_percentages_and_epochs() {
    let payload = json!({"model": {"id": "opus"}, "rate_limits": {
        "five_hour": {"used_percentage": 23.5, "resets_at": 1_796_050_000},
        "seven_day": {"used_percentage": 41.2, "resets_at": 1_796_400_000}}});
    assert_eq!(
        lines(&usage(&payload, &origin())),
        [
            "five_hour account 23.5% - 2026-11-30T14:46:40Z 300m",
            "seven_day account 41.2% - 2026-12-04T16:00:00Z 10080m",
        ]
    );
}

#[test]
fn events_count_to_one() {
    let event = json!({"type": "rate_limit_event", "rate_limit_info": {
        "status": "allowed_warning", "rateLimitType": "seven_day_opus", "utilization": 1, "resetsAt": 1_796_400_000_000_i64,
        "surpassedThreshold": 0.75, "isUsingOverage": false,
        "unifiedWindows": {"five_hour": {"utilization": 0.07, "resetsAt": 1_796_050_000}}}});
    assert_eq!(
        lines(&rate_limit_info(&event, &origin())),
        [
            "five_hour account 7% - 2026-11-30T14:46:40Z 300m",
            "seven_day_opus model:opus 100% warning 2026-12-04T16:00:00Z 10080m",
        ]
    );
}

#[test]
fn a_turn_on_refused_overage_means_that_the_window_is_spent() {
    let info = |in_use: bool, overage: &str| {
        json!({"status": "allowed", "rateLimitType": "seven_day", "resetsAt": 1_796_400_000,
            "isUsingOverage": in_use, "overageStatus": overage})
    };
    for (info, want) in [
        (info(true, "rejected"), WindowStatus::Rejected),
        (info(true, "allowed"), WindowStatus::Allowed),
        (info(false, "rejected"), WindowStatus::Allowed),
    ] {
        assert_eq!(rate_limit_info(&info, &origin())[0].status, want, "{info}");
    }
}

fn unified(pairs: &[(&str, &str)]) -> Vec<String> {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (format!("{HEADER}{name}"), value));
    lines(&headers(&pairs.collect(), &origin()))
}

#[test]
fn headers_count_to_one_and_name_windows_briefly() {
    assert_eq!(
        unified(&[
            ("5h-utilization", "1.02"),
            ("5h-reset", "1796050000"),
            ("5h-status", "rejected"),
            ("7d-utilization", "0.05"),
            ("7d-sonnet-utilization", "0.5"),
            ("7d_oi-status", "allowed"),
            ("status", "rejected"),
            ("reset", "1796050000"),
            ("representative-claim", "five_hour"),
            ("overage-status", "rejected"),
            ("overage-reset", "1798000000"),
            ("fallback-percentage", "0.5"),
        ]),
        [
            "five_hour account 102% rejected 2026-11-30T14:46:40Z 300m",
            "seven_day account 5% - - 10080m",
            "seven_day_sonnet model:sonnet 50% - - 10080m",
            "seven_day_overage_included - - allowed - 10080m",
        ]
    );
}

#[test]
fn the_overall_word_goes_to_the_window_it_names() {
    type Row = (
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
    );
    let rows: [Row; 4] = [
        (
            &[
                ("status", "rejected"),
                ("reset", "1796050000"),
                ("representative-claim", "seven_day_opus"),
            ],
            &["seven_day_opus model:opus - rejected 2026-11-30T14:46:40Z 10080m"],
        ),
        (
            &[
                ("5h-utilization", "1"),
                ("status", "rejected"),
                ("reset", "600"),
                ("representative-claim", "five_hour"),
            ],
            &["five_hour account 100% rejected 2026-11-30T12:10:00Z 300m"],
        ),
        (
            &[("status", "rejected"), ("reset", "1796050000")],
            &["refusal account - rejected 2026-11-30T14:46:40Z -"],
        ),
        (&[("status", "allowed"), ("reset", "1796050000")], &[]),
    ];
    for (pairs, want) in rows {
        assert_eq!(unified(pairs), want, "{pairs:?}");
    }
}

#[test]
fn the_word_of_an_event_is_the_named_windows_and_a_served_request_was_refused_by_none() {
    let event = |word: &str, week: f64| {
        json!({"rate_limit_info": {"status": word, "rateLimitType": "five_hour", "resetsAt": 1_796_050_000,
        "unifiedWindows": {"five_hour": {"utilization": 0.99}, "seven_day": {"utilization": week, "resetsAt": 1_796_400_000}}}})
    };
    let rows = [
        ("rejected", 0.4, "rejected", "40% -"),
        ("rejected", 1.0, "rejected", "100% -"),
        ("allowed", 0.4, "allowed", "40% -"),
        ("allowed_warning", 1.0, "warning", "100% allowed"),
    ];
    for (word, week, five, seven) in rows {
        assert_eq!(
            lines(&rate_limit_info(&event(word, week), &origin())),
            [
                format!("five_hour account 99% {five} 2026-11-30T14:46:40Z 300m"),
                format!("seven_day account {seven} 2026-12-04T16:00:00Z 10080m"),
            ],
            "{word} {week}"
        );
    }
}
