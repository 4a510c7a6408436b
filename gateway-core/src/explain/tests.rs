use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::decision_line;
use crate::usage::instant::instant;

/// The contract's cases: scenarios with the verdict members that count.
pub(super) const CASES: &str = include_str!("../../cases/decisions.jsonl");

pub(super) fn answer(line: &str) -> Value {
    serde_json::from_str(&decision_line(line).0).unwrap()
}

pub(super) fn cases() -> Vec<Value> {
    CASES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_case_of_the_contract_is_answered_as_expected() {
    let cases = cases();
    assert_eq!(cases.len(), 353);
    let wrong: Vec<String> = cases.iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn gate_case() -> &'static str {
    let line = CASES.lines().find(|line| line.contains(r#""gate-01""#));
    line.unwrap()
}

/// What differs between the answer and the expected members, as the contract compares them.
fn differences(case: &Value) -> Vec<String> {
    let mut scenario = case.as_object().unwrap().clone();
    for told in ["expect", "origin", "note", "title"] {
        scenario.remove(told);
    }
    let got = answer(&Value::Object(scenario).to_string());
    let expected = case["expect"].as_object().unwrap();
    expected
        .iter()
        .filter(|(member, want)| !agrees(member, want, &got[member.as_str()]))
        .map(|(member, want)| {
            format!(
                "{}: {member}: want {want}, got {}",
                case["id"],
                got[member.as_str()]
            )
        })
        .collect()
}

fn agrees(member: &str, want: &Value, got: &Value) -> bool {
    match member {
        "until" => same_instant(want, got),
        "target" | "target_model" => folded(want) == folded(got),
        "rejected" => rejections(want) == rejections(got),
        "skipped" => {
            let (want, got) = (want.as_array().unwrap(), got.as_array().unwrap());
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| same_skip(want, got))
        }
        _ => want == got,
    }
}

/// Rejections compare as a set.
fn rejections(value: &Value) -> Option<Vec<(String, String)>> {
    let one = |rejection: &Value| {
        let reason = rejection["reason"].as_str()?;
        Some((
            folded(&rejection["subscription"]).to_string(),
            reason.to_owned(),
        ))
    };
    let mut all: Vec<_> = value.as_array()?.iter().map(one).collect::<Option<_>>()?;
    all.sort();
    Some(all)
}

fn same_skip(want: &Value, got: &Value) -> bool {
    folded(&want["subscription"]) == folded(&got["subscription"])
        && want.get("model").is_none_or(|model| *model == got["model"])
        && want
            .get("until")
            .is_none_or(|until| same_instant(until, &got["until"]))
}

fn folded(value: &Value) -> Value {
    value
        .as_str()
        .map_or_else(|| value.clone(), |text| json!(text.trim().to_lowercase()))
}

fn same_instant(want: &Value, got: &Value) -> bool {
    match (instant(want), instant(got)) {
        (Some(want), Some(got)) => (want.as_second() - got.as_second()).abs() <= 2,
        (None, None) => want.is_null() && got.is_null(),
        _ => false,
    }
}

/// A scenario with one entry `a` that the registry knows to be spent, and `b` behind it.
fn scenario(change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut scenario = json!({
        "id": "x", "now": "2026-09-21T09:00:00Z", "trigger": "gate",
        "chain": [{"subscription": "a", "model": "claude-opus-4-8"}, {"subscription": "b", "model": "m"}],
        "readings": [{"subscription": "a", "window": "seven_day", "status": "rejected",
            "resets_at": "2026-09-24T09:00:00Z", "observed_at": "2026-09-21T08:50:00Z"}],
        "gate": {"reason": "rate_limit"},
    });
    change(scenario.as_object_mut().unwrap());
    answer(&scenario.to_string())
}

fn reading(change: Value) -> Value {
    let mut reading = json!({"subscription": "a", "window": "seven_day", "status": "rejected",
        "resets_at": "2026-09-24T09:00:00Z", "observed_at": "2026-09-21T08:50:00Z"});
    reading
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    reading
}

#[test]
fn buckets_and_spend_windows_reach_only_their_own() {
    let rows = [
        (
            "bucket window, plain entry",
            json!({"scope": "bucket:spark"}),
            Value::Null,
            "a",
        ),
        (
            "bucket window, its entry",
            json!({"scope": "bucket:spark"}),
            json!("Spark"),
            "b",
        ),
        (
            "bucket window, another bucket",
            json!({"scope": "bucket:spark"}),
            json!("code"),
            "a",
        ),
        ("main window, bucket entry", json!({}), json!("spark"), "a"),
        (
            "spend never blocks",
            json!({"window": "overage"}),
            Value::Null,
            "a",
        ),
        (
            "scope spend never blocks",
            json!({"scope": "spend"}),
            Value::Null,
            "a",
        ),
        (
            "this model",
            json!({"scope": "model:Opus 4"}),
            Value::Null,
            "b",
        ),
        (
            "another model",
            json!({"scope": "model:Opus 45"}),
            Value::Null,
            "a",
        ),
        (
            "unknown id with a scope",
            json!({"window": "lunar", "scope": "account"}),
            Value::Null,
            "b",
        ),
        (
            "rollout never decides",
            json!({"source": "rollout"}),
            Value::Null,
            "a",
        ),
        (
            "60 s ahead is borne",
            json!({"observed_at": "2026-09-21T09:01:00Z"}),
            Value::Null,
            "b",
        ),
        (
            "a reset in 367 days is not believed",
            json!({"resets_at": "2027-09-23T09:00:01Z"}),
            Value::Null,
            "a",
        ),
        (
            "a warning at 101 is a served turn",
            json!({"status": "allowed_warning", "used_pct": 101}),
            Value::Null,
            "a",
        ),
        (
            "a word that says nothing leaves the percentage",
            json!({"status": "blocked", "used_pct": "100"}),
            Value::Null,
            "b",
        ),
    ];
    for (name, change, bucket, target) in rows {
        let got = scenario(|s| {
            s["readings"] = json!([reading(change)]);
            if !bucket.is_null() {
                s["chain"][0]["bucket"] = bucket;
            }
        });
        assert_eq!(got["target"], target, "{name}: {got}");
    }
}

#[test]
fn settings_move_the_horizon_and_the_age() {
    let far = scenario(|s| {
        s.insert("settings".into(), json!({"gate.horizon_s": 400_000}));
    });
    assert_eq!(far["target"], "a");
    let young = scenario(|s| {
        s.insert("settings".into(), json!({"gate.max_age_s": 599}));
    });
    assert_eq!(young["target"], "a");
}

#[test]
fn a_memo_counts_with_the_new_skips_and_keeps_what_is_unknown_unknown() {
    let got = scenario(|s| s["gate"]["memo"] = json!([" B "]));
    assert_eq!(got["decision"], "wait");
    assert_eq!(got["skipped_count"], 2);
    assert_eq!(got["until"], "2026-09-24T09:00:00Z");
    assert_eq!(
        got["skipped"][1],
        json!({"subscription": "b", "model": "m", "until": null})
    );
}

#[test]
fn a_chain_without_any_subscription_is_empty() {
    for chain in [
        json!([{"model": "m"}]),
        json!([7, null, "x"]),
        json!([{"subscription": "  "}]),
        json!({}),
    ] {
        let got = scenario(|s| s["chain"] = chain);
        assert_eq!(
            (got["decision"].as_str(), got["reason"].as_str()),
            (Some("noop"), Some("empty_chain"))
        );
    }
}

#[test]
fn garbage_gets_an_error_with_the_id_if_there_is_one() {
    let deep = format!(r#"{{"id": "q", "x": {}"#, "[".repeat(300_000));
    let rows = [
        ("", Value::Null),
        ("null", Value::Null),
        ("[1]", Value::Null),
        ("{", Value::Null),
        ("\u{0}\u{1}", Value::Null),
        (
            r#"{"id": 7, "trigger": "gate", "now": 1789981200}"#,
            Value::Null,
        ),
        (r#"{"trigger": "gate", "now": 1789981200}"#, Value::Null),
        (r#"{"id": "q", "trigger": "gate"}"#, json!("q")),
        (
            r#"{"id": "q", "trigger": "gate", "now": "yesterday"}"#,
            json!("q"),
        ),
        (
            r#"{"id": "q", "trigger": "dance", "now": 1789981200}"#,
            json!("q"),
        ),
        (r#"{"id": "q", "trigger": ["gate"]}"#, json!("q")),
        (
            r#"{"id": "q", "trigger": "gate", "now": 17899812"#,
            json!("q"),
        ),
        (deep.as_str(), json!("q")),
    ];
    for (line, id) in rows {
        let (text, ok) = decision_line(line);
        let answer: Value = serde_json::from_str(&text).unwrap();
        let shown: String = line.chars().take(60).collect();
        assert!(!ok && answer["error"].is_string(), "{shown}: {text}");
        assert_eq!(answer["id"], id, "{shown}");
    }
}

#[test]
fn strange_members_do_not_spoil_an_understandable_line() {
    let line = format!(
        r#"{{"id": "q\ud800", "now": "2026-09-21T09:00:00Z", "trigger": "gate", "z": {}1{}, "n": 1e999, "m": NaN,
            "chain": [{{"subscription": "a"}}, 7, {{"subscription": ["b"]}}, {{"subscription": "b", "model": 9}}],
            "readings": [null, {{"subscription": "a", "window": "seven_day", "status": "rejected",
                "resets_at": "2026-09-24T09:00:00Z", "observed_at": "2026-09-21T08:50:00Z", "used_pct": {{}}}}],
            "subscriptions": "none", "settings": [], "gate": {{"cursor": -3, "memo": "a", "already_gated": "yes"}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let got = answer(&line.replace('\n', " "));
    assert_eq!(
        (got["target"].as_str(), got["skipped_count"].as_u64()),
        (Some("b"), Some(1)),
        "{got}"
    );
    assert_eq!(got["id"], "q\u{fffd}");
}

#[test]
fn huge_and_odd_cursors_are_clamped() {
    let rows = [
        (json!(1e300), "noop"),
        (json!(u64::MAX), "noop"),
        (json!(-1e300), "switch"),
        (json!(1.0), "switch"),
    ];
    for (cursor, decision) in rows {
        let got = scenario(|s| s["gate"]["cursor"] = cursor.clone());
        assert_eq!(got["decision"], decision, "{cursor}");
    }
    assert_eq!(
        scenario(|s| s["gate"]["cursor"] = json!(1.0))["skipped_count"],
        0
    );
}

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "gate",
            "a",
            "seven_day",
            "rejected",
            "2026-09-21T09:00:00Z",
            "model:a"
        ])
        .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "id",
        "now",
        "trigger",
        "chain",
        "readings",
        "gate",
        "subscription",
        "subscriptions",
        "identity",
        "model",
        "window",
        "scope",
        "status",
        "resets_at",
        "observed_at",
        "used_pct",
        "cursor",
        "memo",
        "settings",
        "bucket",
        "account_id",
        "email",
        "gate.max_age_s",
        "source",
        "reason",
    ]);
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_members_never_panic_and_give_one_line(members in prop::collection::hash_map(
        prop::sample::select(vec!["chain", "readings", "gate", "settings", "subscriptions", "source", "now", "trigger"]),
        any_json(), 0..8,
    )) {
        let mut scenario = json!({"id": "p", "now": "2026-09-21T09:00:00Z", "trigger": "gate"});
        for (name, value) in members {
            scenario[name] = value;
        }
        let (line, _) = decision_line(&scenario.to_string());
        prop_assert!(!line.contains('\n'));
        let answer: Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(&answer["id"], "p");
    }

    #[test]
    fn arbitrary_text_never_panics(line in "\\PC{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for line in [line.as_str(), &String::from_utf8_lossy(&bytes)] {
            let (text, _) = decision_line(line);
            prop_assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
        }
    }

    #[test]
    fn a_cut_scenario_never_panics(cut in 0_usize..400) {
        let line = gate_case();
        let (text, _) = decision_line(line.get(..cut.min(line.len())).unwrap_or_default());
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[test]
fn the_answer_is_the_same_whatever_the_clock_says() {
    // Pure: two calls agree, and instants are those of the scenario.
    let line = gate_case();
    assert_eq!(decision_line(line), decision_line(line));
    let until = answer(line)["skipped"][0]["until"]
        .as_str()
        .unwrap()
        .parse::<Timestamp>();
    assert_eq!(until.unwrap().as_second(), 1_790_274_960);
}
