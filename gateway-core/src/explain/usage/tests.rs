//! The rows of `cases/usage.jsonl`, compared as the score does, and what no line may do.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::explain::usage_line;
use crate::usage::instant;

const CASES: &str = include_str!("../../../cases/usage.jsonl");
/// Payloads of other programs, gathered and answered by the contract before the parsers were looked at.
const FOREIGN: &str = include_str!("../../../cases/usage-foreign.jsonl");
const NOW: &str = "2026-09-21T09:00:00Z";

fn cases() -> Vec<Value> {
    let rows = CASES.lines().chain(FOREIGN.lines());
    let rows = rows.filter(|row| !row.trim().is_empty());
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

fn line(case: &Value) -> String {
    let mut line = case["input"].clone();
    line["id"] = case["id"].clone();
    line["now"] = case.get("now").cloned().unwrap_or_else(|| json!(NOW));
    line.to_string()
}

fn answer(line: &str) -> Value {
    serde_json::from_str(&usage_line(line).0).unwrap()
}

/// What is wrong with an answer; the lenient verdicts count as one, as both mean "try it".
fn misses(expect: &Value, got: &Value) -> Vec<String> {
    let mut misses = Vec::new();
    let tries = |verdict: &Value| matches!(verdict.as_str(), Some("eligible" | "fail_open"));
    let (want, have) = (&expect["action"], &got["verdict"]);
    if want != have && !(tries(want) && tries(have)) {
        misses.push(format!("verdict {want}, got {have}"));
    }
    if let Some(want) = expect.get("retry_at").and_then(instant::instant) {
        let have = instant::instant(&got["retry_at"]);
        if have.is_none_or(|have| (have.as_second() - want.as_second()).abs() > 2) {
            misses.push(format!("retry_at {want}, got {}", got["retry_at"]));
        }
    }
    for (window, want) in expect
        .get("used_percent")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let have = got["used_percent"][window].as_f64();
        if have.is_none_or(|have| (have - want.as_f64().unwrap()).abs() > 0.5) {
            misses.push(format!("{window} {want}, got {have:?}"));
        }
    }
    misses
}

#[test]
fn every_case_is_answered_as_expected() {
    let cases = cases();
    assert!(cases.len() >= 250, "{}", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let misses = misses(&case["expect"], &answer(&line(case)));
            (!misses.is_empty())
                .then(|| format!("{} {}: {}", case["id"], case["title"], misses.join("; ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_without_a_payload_an_id_or_a_time_is_an_error() {
    for line in [
        json!({"id": "a"}),
        json!({"id": "a", "now": NOW}),
        json!({"id": "a", "now": "soon", "snapshot": {}}),
        json!({"now": NOW, "snapshot": {}}),
        json!([]),
    ] {
        let (answer, fine) = usage_line(&line.to_string());
        assert!(!fine && answer.contains("\"error\""), "{answer}");
    }
}

#[test]
fn hostile_values_void_only_themselves() {
    let text = r#"{"id": "a", "now": "2026-09-21T09:00:00Z", "snapshot": {"five_hour": {"utilization": NaN, "utilization": 1e400,
        "resets_at": "\ud800"}, "seven_day": {"utilization": 100, "resets_at": "2026-09-25T00:00:00Z"}}}"#;
    assert_eq!(answer(text)["verdict"], "skip");
    let deep = format!(
        r#"{{"id":"a","now":"{NOW}","snapshot":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(answer(&deep)["verdict"], "fail_open");
    let wide: Vec<Value> = (0..10_000)
        .map(|n| json!({"key": n.to_string(), "pct": 100, "resets_at": "2026-09-25T00:00:00Z"}))
        .collect();
    let wide = json!({"id": "a", "now": NOW, "snapshot": {"windows": wide}}).to_string();
    assert_eq!(answer(&wide)["verdict"], "skip");
}

#[test]
fn what_goes_on_without_end_is_cut() {
    let rows = |row: fn(usize) -> Value| Value::from_iter((0..20_000).map(row));
    let members =
        |row: fn(usize) -> Value| Value::from_iter((0..20_000).map(|n| (format!("m{n}"), row(n))));
    let payloads = [
        json!({"windows": members(|n| json!({"used_percent": n % 100, "n": n}))}),
        json!({"windows": members(|_| json!({"key": "five_hour", "used_percent": 3}))}),
        json!({"rateLimitsByLimitId": members(|_| json!({"primary": {"usedPercent": 5}})), "primary": {"usedPercent": 1}}),
        json!({"rate_limit_info": {"unifiedWindows": members(|_| json!({"utilization": 0.5}))}}),
        json!({"additional_rate_limits": rows(|n| json!({"limit_name": n.to_string(), "rate_limit": {"primary_window": {"used_percent": 5}}}))}),
        json!({"five_hour": {"utilization": 40}, "limits": rows(|n| json!({"kind": n.to_string(), "percent": 5}))}),
        json!({"usages": members(|_| json!({"used_ratio": 0.5}))}),
        json!({"quota_snapshots": members(|_| json!({"percent_remaining": 5}))}),
        json!({"groups": rows(|n| json!({"displayName": "gpt", "buckets": [{"bucketId": n.to_string(), "remainingFraction": 0.5}]}))}),
        json!({"models": members(|_| json!({"quotaInfo": {"remainingFraction": 0.5}}))}),
    ];
    for payload in payloads {
        let line = json!({"id": "a", "now": NOW, "snapshot": payload}).to_string();
        let answer = answer(&line);
        let windows = answer["used_percent"].as_object().unwrap().len();
        let head: String = line.chars().take(120).collect();
        assert!((1..=600).contains(&windows), "{windows}: {head}");
    }
    // More payloads than any line has.
    let mut line = members(|n| json!({"used_percent": n % 100}));
    line["id"] = json!("a");
    line["now"] = json!(NOW);
    let windows = answer(&line.to_string())["used_percent"]
        .as_object()
        .unwrap()
        .len();
    assert!(windows <= 16, "{windows}");
}

/// A payload made of the words the parsers know, in places where they do not belong.
fn payload() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 36] = [
        "five_hour",
        "seven_day",
        "seven_day_opus",
        "primary",
        "secondary",
        "rate_limits",
        "rateLimits",
        "rate_limit",
        "primary_window",
        "used_percent",
        "utilization",
        "percentage",
        "remaining",
        "limit",
        "used",
        "resets_at",
        "reset_after_seconds",
        "window_minutes",
        "status",
        "limits",
        "kind",
        "type",
        "model",
        "windows",
        "providers",
        "accounts",
        "usage",
        "weekly",
        "quota_snapshots",
        "model_remains",
        "buckets",
        "files",
        "data",
        "observed_at",
        "body",
        "rate_limit_info",
    ];
    let number = prop_oneof![
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        (0.0..200.0).prop_map(|number: f64| json!(number)),
        (1_700_000_000_i64..1_900_000_000).prop_map(|number| json!(number)),
    ];
    let leaf = prop_oneof![
        4 => number,
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop::sample::select(vec!["rejected", "allowed", "2026-09-25T00:00:00Z", "100", "Weekly", "CREDIT_LIMIT", "{\"a\":1}"]).prop_map(|text| json!(text)),
        1 => ".{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(NAMES.to_vec()), inner), 0..8).prop_map(
                |members| members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            ),
        ]
    })
}

proptest! {
    #[test]
    fn any_payload_gets_a_sane_answer_and_always_the_same(payload in payload(), member in prop::sample::select(vec!["snapshot", "event", "headers"])) {
        let line = json!({"id": "a", "now": NOW, member: payload}).to_string();
        let (text, fine) = usage_line(&line);
        prop_assert!(fine, "{}", text);
        prop_assert_eq!(&usage_line(&line).0, &text);
        let answer: Value = serde_json::from_str(&text).unwrap();
        let now = instant::instant_text(NOW).unwrap();
        let skips = answer["verdict"].as_str().unwrap().starts_with("skip");
        prop_assert_eq!(skips, answer["retry_at"].is_string());
        if let Some(at) = instant::instant(&answer["retry_at"]) {
            let left = at.as_second() - now.as_second();
            prop_assert!((300..=366 * 86_400).contains(&left), "{}", text);
        }
        for used in answer["used_percent"].as_object().unwrap().values() {
            prop_assert!(used.as_f64().is_some_and(|used| used.is_finite() && used >= 0.0), "{}", text);
        }
    }

    #[test]
    fn a_case_cut_anywhere_never_panics(row in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        static CASES: std::sync::LazyLock<Vec<Value>> = std::sync::LazyLock::new(cases);
        let line = line(row.get(&CASES));
        let end = cut.index(line.len());
        let end = (0..=end).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        usage_line(line.get(..end).unwrap());
    }
}
