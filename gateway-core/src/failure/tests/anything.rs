//! Whatever comes in: no panic, an instant that can be believed, work in proportion to the input.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use crate::explain::failure_line;

fn judged(evidence: &Evidence, now: Timestamp) -> Judgement {
    judge(evidence, &Context::at(now), None)
}

fn believable(judgement: &Judgement, now: Timestamp) -> bool {
    judgement
        .retry_at
        .is_none_or(|at| at > now && at.duration_since(now) < HORIZON)
}

/// Pieces real messages are made of, put together in any way.
fn prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("usage limit reached".to_owned()),
        Just("resets".to_owned()),
        Just("try again in".to_owned()),
        Just("at".to_owned()),
        Just("重置".to_owned()),
        Just("Rate limit per minute".to_owned()),
        "[0-9]{1,4}(:[0-9]{2})?(am|pm|h|m|s|ms| days)?",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})?",
        "(Jan|Feb|Monday|mañana|tomorrow|midnight|noon) [0-9]{1,2}",
        "\\((UTC|PT|America/New_York|Asia/Tokyo|IST|GMT[+-][0-9]{1,2})\\)",
        "\\|[0-9]{9,20}",
        "\\PC{0,12}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![
        prose(),
        "[{}\\[\\]\":,'a-z0-9 \\\\]{0,200}",
        (prose(), any::<f64>()).prop_map(|(text, number)| json!({"error": {"message": text, "resets_at": number, "retryDelay": format!("{number}s")}}).to_string()),
        (prose(), "\\PC{0,40}").prop_map(|(text, value)| json!({"type": "error", "error": {"type": value, "message": text, "resets_in_seconds": value, "reset_at": value}}).to_string()),
    ]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    // 1970 to 2100: whatever the clock of the host says.
    (0_i64..4_102_444_800).prop_map(|second| Timestamp::from_second(second).unwrap())
}

proptest! {
    #[test]
    fn an_instant_is_neither_past_nor_absurd(
        status in 100_u16..1000,
        header in prop_oneof!["[ -~]{0,40}", prose(), any::<f64>().prop_map(|number| number.to_string())],
        body in body(),
        now in moment(),
    ) {
        let names = ["retry-after", "retry-after-ms", "x-ratelimit-reset", "anthropic-ratelimit-unified-reset", "x-codex-primary-reset-at", "date"];
        let mut headers: Headers = names.iter().map(|name| (name, &header)).collect();
        headers.add("anthropic-ratelimit-unified-status", "rejected");
        headers.add("x-codex-primary-used-percent", "100");
        let judgement = judged(&Evidence::of_answer(status, headers, &body), now);
        prop_assert!(believable(&judgement, now), "{judgement:?}");
        prop_assert!(judgement.detail.chars().count() <= 300);
        let judgement = judged(&Evidence::of_text(&body), now);
        prop_assert!(believable(&judgement, now), "{judgement:?}");
    }

    #[test]
    fn any_line_gets_one_answer(line in prop_oneof![".{0,200}", body()], now in moment()) {
        for line in [line.clone(), json!({"id": "x", "now": now.to_string(), "text": line}).to_string()] {
            let (answer, good) = failure_line(&line);
            let answer: Value = serde_json::from_str(&answer).unwrap();
            prop_assert_eq!(answer.get("error").is_none(), good);
            prop_assert!(!answer.to_string().contains('\n'));
            if good {
                prop_assert_eq!(super::cases::contradiction(&answer), None, "{}", answer);
            }
        }
    }
}

#[test]
fn bad_input_is_answered() {
    let deep = format!("{}1{}", "{\"error\":".repeat(5_000), "}".repeat(5_000));
    for (line, good) in [
        (
            r#"{"id": "a", "status": NaN, "text": "429"}"#.to_owned(),
            true,
        ),
        (
            r#"{"id": "a", "status": 1e400, "body": {"error": {"resets_at": 1e400}}}"#.to_owned(),
            true,
        ),
        (
            r#"{"id": "a", "text": "usage limit \ud800 reached"}"#.to_owned(),
            true,
        ),
        (r#"{"id": "a", "id": "b", "status": 429}"#.to_owned(), true),
        (r#"{"id": "a", "status": 70000}"#.to_owned(), false),
        (r#"{"id": "a", "now": "soon"}"#.to_owned(), false),
        (
            r#"{"id": "a", "host_zone": "Mars/Olympus"}"#.to_owned(),
            false,
        ),
        (r#"{"id": 7}"#.to_owned(), false),
        (r#"{"text": "429"}"#.to_owned(), false),
        ("[]".to_owned(), false),
        ("{".to_owned(), false),
        (format!(r#"{{"id": "a", "body": {deep}}}"#), true),
        (json!({"id": "a", "body": deep}).to_string(), true),
    ] {
        let (answer, answered) = failure_line(&line);
        let start: String = line.chars().take(80).collect();
        assert_eq!(answered, good, "{start}: {answer}");
    }
}

#[test]
fn a_failure_without_words_says_so() {
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let judgement = judged(&Evidence::of_answer(500, Headers::default(), ""), now);
    assert_eq!(judgement.detail, "status 500 without a message");
}

/// Fifty megabytes of each kind that invites more than linear work. The bound is loose: unoptimised, on a busy machine.
#[test]
fn work_is_bounded_by_the_size() {
    let size = 50_000_000;
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    for unit in [
        "{",
        "{\"a\":",
        "resets at 3pm ",
        "|1790000000",
        "'",
        "\\\"",
        "data: {}\n",
        "<",
        "重",
        "Limit 1 Requested ",
    ] {
        let body = unit.repeat(size / unit.len());
        let start = Instant::now();
        judged(&Evidence::of_answer(429, Headers::default(), &body), now);
        let spent = start.elapsed();
        assert!(spent < Duration::from_secs(20), "{unit:?}: {spent:?}");
    }
}

#[test]
fn a_stated_reset_does_not_move_with_a_clock_an_hour_off() {
    let text = "Claude AI usage limit reached|1790010000";
    let right = Timestamp::from_second(1_790_000_000).unwrap();
    for off in [-3_600, 0, 3_600] {
        let judgement = judged(
            &Evidence::of_text(text),
            right + SignedDuration::from_secs(off),
        );
        assert_eq!(
            judgement.retry_at.map(Timestamp::as_second),
            Some(1_790_010_000)
        );
    }
}

#[test]
fn a_date_that_cannot_be_states_nothing_and_neither_does_the_clock_beside_it() {
    let now: Timestamp = "2026-11-30T16:35:00Z".parse().unwrap();
    for when in [
        "Nov 30th, 9999 12:59 AM",
        "Nov 30, 99999 12:59 AM",
        "Dec 5, 1970 at 2:00 AM",
        "9999-01-01 05:00",
        "99999-01-01 05:00",
        "2026-13-45 05:00",
        "1970-01-01 00:00:00",
        "Feb 30, 2027 5:00 AM",
        "Smarch 1st, 2026 1:00 AM",
        "10 lipca 2026 r., 11:52",
        "2026. március 3. 11:52",
    ] {
        for words in [
            format!("You've hit your usage limit. Try again at {when} UTC."),
            format!("Usage limit reached, resets {when} (UTC)"),
        ] {
            let judgement = judged(&Evidence::of_text(&words), now);
            assert_eq!(judgement.retry_at, None, "{words}");
        }
    }
}
