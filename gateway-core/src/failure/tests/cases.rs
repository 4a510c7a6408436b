//! Failures as people reported them, through the same door as `baton explain failure`. `cases/failures.jsonl` is drawn from
//! public reports; `cases/failure-variants.jsonl` says the same things in other words, of other vendors, in other languages;
//! `cases/failure-unseen.jsonl` are reports whose judgement was written down before the rules had seen them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::explain::failure_line;

/// A wait is right within this.
const TOLERANCE_S: f64 = 2.0;

/// Reports judged differently on purpose: (id, why).
const ACCEPTED: &[(&str, &str)] = &[];

const REPORTS: &str = include_str!("../../../cases/failures.jsonl");
const VARIANTS: &str = include_str!("../../../cases/failure-variants.jsonl");
const UNSEEN: &str = include_str!("../../../cases/failure-unseen.jsonl");

#[test]
fn public_reports_are_judged_right() {
    check(REPORTS);
}

#[test]
fn other_words_for_the_same_are_judged_the_same() {
    check(VARIANTS);
}

#[test]
fn reports_no_rule_was_written_for_are_judged_right() {
    check(UNSEEN);
}

#[test]
fn every_answer_agrees_with_itself() {
    let cases = [REPORTS, VARIANTS, UNSEEN].map(str::lines);
    for line in cases.into_iter().flatten() {
        let case: Value = serde_json::from_str(line).unwrap();
        let got = answer(&case);
        assert_eq!(contradiction(&got), None, "{}: {got}", case["id"]);
    }
}

/// What an answer says against itself: a step that cannot help a failure of its class, a wait without an instant, an
/// instant nobody waits for.
pub(super) fn contradiction(got: &Value) -> Option<&'static str> {
    let fitting: &[&str] = match got["class"].as_str().unwrap() {
        "rate_limit" | "upstream_rate_limit" => &["leave", "retry"],
        "billing" => &["leave", "mend"],
        "overloaded" | "timeout" => &["retry", "handoff_then_failover"],
        "transport" => &["retry", "leave", "tell_user_no_retry"],
        "auth" => &["leave", "refresh_auth_then_retry", "tell_user_no_retry"],
        "context_overflow" => &["rotate_session", "mend"],
        "content_filter" => &["tell_user_no_retry"],
        "bad_request" => &["tell_user_no_retry", "mend", "leave"],
        "none" => &["none"],
        other => panic!("class {other}"),
    };
    let action = got["action"].as_str().unwrap();
    if !fitting.contains(&action) && !fitting.contains(&group(&got["action"])) {
        return Some("the step does not fit the class");
    }
    let stated = !got["retry_at"].is_null() || !got["retry_after_s"].is_null();
    let waits = matches!(
        action,
        "skip_account_until" | "skip_model_until" | "retry_same_after"
    );
    // A cut answer is handed over whatever instant it names; a poller's own pause is no failure.
    let may_wait = waits || matches!(action, "handoff_then_failover" | "none");
    match stated {
        true if !may_wait => Some("an instant nobody waits for"),
        false if waits => Some("a wait without an instant"),
        _ => None,
    }
}

fn check(cases: &str) {
    let mut misses = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        // Low confidence: even people do not agree on these; they must be answered, no more.
        let weighs = case["confidence"] != "low" && ACCEPTED.iter().all(|(known, _)| *known != id);
        let miss = compare(&case, &answer(&case));
        if weighs && !miss.is_empty() {
            misses.push(format!("{id} {}: {}", case["title"], miss.join("; ")));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

fn answer(case: &Value) -> Value {
    let mut line = case["input"].clone();
    line["id"] = case["id"].clone();
    line["now"] = case["now"].clone();
    let (answer, good) = failure_line(&line.to_string());
    assert!(good, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

fn compare(case: &Value, got: &Value) -> Vec<String> {
    let (want, mut misses) = (&case["expect"], Vec::new());
    let class = got["class"].as_str().unwrap();
    let also = |class: &str| {
        want["also_ok"]
            .as_array()
            .is_some_and(|also| also.iter().any(|other| other == class))
    };
    if want["class"] != class && !also(class) {
        misses.push(format!("class {class}, not {}", want["class"]));
    }
    if !right_wait(want, got, instant(&case["now"]).unwrap()) {
        misses.push(format!(
            "retry_at {} instead of {} / {}",
            got["retry_at"], want["retry_at"], want["retry_after_s"]
        ));
    }
    if group(&got["action"]) != group(&want["action"]) {
        misses.push(format!("action {}, not {}", got["action"], want["action"]));
    }
    misses
}

/// The instant is right within the tolerance; what is not stated must be null; what is past already may be.
fn right_wait(want: &Value, got: &Value, now: f64) -> bool {
    let wanted = instant(&want["retry_at"]).or_else(|| Some(now + want["retry_after_s"].as_f64()?));
    let answered = instant(&got["retry_at"]);
    match (wanted, answered) {
        (None, None) => got["retry_after_s"] == json!(null),
        (None, Some(_)) => false,
        (Some(wanted), answered) if wanted <= now => {
            answered.is_none_or(|at| at <= now + TOLERANCE_S)
        }
        (Some(_), None) => false,
        (Some(wanted), Some(answered)) => (wanted - answered).abs() <= TOLERANCE_S,
    }
}

fn instant(value: &Value) -> Option<f64> {
    let at: Timestamp = value.as_str()?.parse().unwrap();
    Some(at.as_duration().as_secs_f64())
}

/// Actions that come to the same.
fn group(action: &Value) -> &str {
    match action.as_str().unwrap() {
        "skip_account_until"
        | "skip_model_until"
        | "failover_now"
        | "disable_until_operator"
        | "handoff_then_failover" => "leave",
        "retry_same_after" | "retry_same_then_failover" | "probe_soon" => "retry",
        "shrink_request" | "repair_history_then_retry" => "mend",
        "eligible" | "none" => "none",
        other => other,
    }
}
