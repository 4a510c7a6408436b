use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::decision_line;
use super::super::tests::{answer, any_json, cases};

/// A Claude login out of its session and a Codex login with room.
fn scenario(change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut scenario = json!({
        "id": "x", "now": "2026-09-21T09:00:00Z", "trigger": "limit_failure",
        "settings": {"quota.enabled": true},
        "event": {"class": "usage_limit", "window": "five_hour"},
        "source": {"subscription": "claude", "model": "opus"},
        "chain": [{"subscription": "codex", "model": "gpt"}],
        "subscriptions": [
            {"id": "claude", "provider": "claude", "identity": {"account_id": "a"}},
            {"id": "codex", "provider": "codex", "identity": {"account_id": "b"}},
            {"id": "prepaid", "provider": "fireworks", "paid": true},
        ],
        "readings": [
            {"subscription": "claude", "window": "five_hour", "used_pct": 100,
                "resets_at": "2026-09-21T12:00:00Z", "observed_at": "2026-09-21T08:59:00Z"},
            {"subscription": "codex", "window": "primary", "used_pct": 40,
                "resets_at": "2026-09-21T11:00:00Z", "observed_at": "2026-09-21T08:59:00Z"},
        ],
    });
    change(scenario.as_object_mut().unwrap());
    answer(&scenario.to_string())
}

fn ruling(got: &Value) -> (&str, &str) {
    (
        got["decision"].as_str().unwrap_or_default(),
        got["reason"].as_str().unwrap_or_default(),
    )
}

#[test]
fn a_verdict_has_every_member_that_applies() {
    assert_eq!(
        scenario(|_| ()),
        json!({"id": "x", "decision": "switch", "reason": "exhausted", "target": "codex",
            "target_model": "gpt", "until": null, "rejected": []})
    );
    let held = scenario(|s| s["readings"][1]["used_pct"] = json!(null));
    assert_eq!(
        held,
        json!({"id": "x", "decision": "wait", "reason": "no_candidate", "target": null,
            "target_model": null, "until": "2026-09-21T12:00:00Z",
            "rejected": [{"subscription": "codex", "reason": "ambiguous"}]})
    );
}

#[test]
fn what_cannot_be_read_never_spends_or_moves() {
    let paid = |change: Value| {
        scenario(|s| {
            s["chain"] = json!([{"subscription": "prepaid", "price_estimate_usd": 0.4}]);
            s["settings"]["paid.enabled"] = json!(true);
            for (path, value) in change.as_object().unwrap() {
                let (table, member) = path.split_once('/').unwrap();
                match table {
                    "chain" => s["chain"][0][member] = value.clone(),
                    _ => {
                        let table = s.entry(table.to_owned()).or_insert(json!({}));
                        table[member] = value.clone();
                    }
                }
            }
        })
    };
    assert_eq!(ruling(&paid(json!({}))), ("switch", "exhausted"));
    #[rustfmt::skip]
    let rows = [
        (json!({"settings/paid.enabled": "true"}), "paid_not_allowed"),
        (json!({"settings/paid.cap_day_usd": 0}), "paid_not_allowed"),
        (json!({"settings/paid.cap_thread_usd": "lots"}), "paid_not_allowed"),
        (json!({"settings/paid.cap_day_usd": -5}), "paid_not_allowed"),
        (json!({"settings/paid.accounts": "prepaid"}), "paid_not_allowed"),
        (json!({"settings/paid.accounts": []}), "paid_not_allowed"),
        (json!({"chain/price_estimate_usd": null}), "spend_cap"),
        (json!({"chain/price_estimate_usd": -1}), "spend_cap"),
        (json!({"chain/price_estimate_usd": "cheap"}), "spend_cap"),
        (json!({"spend/today_usd": "some"}), "spend_cap"),
        (json!({"spend/today_usd": 4.61}), "spend_cap"),
        (json!({"spend/thread_usd": "1.61"}), "spend_cap"),
    ];
    for (change, want) in rows {
        let got = paid(change.clone());
        assert_eq!(got["rejected"][0]["reason"], want, "{change}");
    }
    let rows = [
        (
            json!({"tool_in_flight_s": "long"}),
            ("drain", "tool_in_flight"),
        ),
        (json!({"tool_in_flight_s": -5}), ("drain", "tool_in_flight")),
        (
            json!({"tool_in_flight_s": 1e300}),
            ("abort", "drain_timeout"),
        ),
        (json!({"children_running": 2}), ("drain", "tool_in_flight")),
        (json!({"status": " Paused "}), ("noop", "paused")),
    ];
    for (thread, want) in rows {
        let got = scenario(|s| drop(s.insert("thread".to_owned(), thread.clone())));
        assert_eq!(ruling(&got), want, "{thread}");
    }
    for auth in [json!(" OK"), json!(true), json!(1)] {
        let got = scenario(|s| s["subscriptions"][1]["auth"] = auth);
        assert_eq!(got["rejected"][0]["reason"], "unauthenticated");
    }
}

#[test]
fn absurd_settings_are_clamped_or_ignored() {
    let with = |name: &str, value: Value| scenario(|s| s["settings"][name] = value);
    assert_eq!(ruling(&with("cap.thread", json!(-3))), ("wait", "cap"));
    assert_eq!(
        ruling(&with("cap.thread", json!(1e300))),
        ("switch", "exhausted")
    );
    assert_eq!(
        ruling(&with("fresh_max_mins", json!({}))),
        ("switch", "exhausted")
    );
    assert_eq!(
        ruling(&with("fresh_max_mins", json!(-1))),
        ("wait", "no_candidate")
    );
    let never = with("wait_if_reset_within_mins", json!(1e300));
    assert_eq!(ruling(&never), ("wait", "reset_imminent"));
}

#[test]
fn a_source_nobody_named_proves_nothing() {
    let got = scenario(|s| drop(s.remove("source")));
    assert_eq!(ruling(&got), ("hold", "reset_unknown"));
    assert_eq!(got["rejected"][0]["reason"], "identity_unknown");
    let told = scenario(|s| {
        s.remove("source");
        s["event"]["resets_at"] = json!("2026-09-21T09:05:00Z");
    });
    assert_eq!(ruling(&told), ("wait", "reset_imminent"));
}

#[test]
fn an_entry_without_a_subscription_is_left_alone() {
    let got = scenario(|s| s["chain"] = json!([7, {"model": "m"}, {"subscription": " "}]));
    assert_eq!(ruling(&got), ("wait", "no_candidate"));
    assert_eq!(got["rejected"], json!([]));
}

#[test]
fn a_person_goes_back_to_whatever_they_name() {
    let back = |named: Value| {
        scenario(|s| {
            s["trigger"] = json!("switch_back");
            s.insert("switch_back".to_owned(), named);
        })
    };
    let got = back(json!({"subscription": "CLAUDE"}));
    assert_eq!(got["warning"], "still_limited");
    assert_eq!(
        (&got["target"], &got["target_model"]),
        (&json!("CLAUDE"), &json!("opus"))
    );
    let got = back(json!({"subscription": "codex"}));
    assert_eq!(
        (ruling(&got), got.get("warning")),
        (("switch", "user"), None)
    );
    for nobody in [json!({}), json!(null), json!({"subscription": "ghost"})] {
        assert_eq!(ruling(&back(nobody)), ("refuse", "unknown"));
    }
}

/// Replaces what stands at one of the value's places, counted in depth first.
fn replace(value: &mut Value, place: &mut usize, by: &Value) {
    if *place == 0 {
        *value = by.clone();
    }
    *place = place.wrapping_sub(1);
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => return,
    };
    for child in children {
        if *place == usize::MAX {
            return;
        }
        replace(child, place, by);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_case_with_anything_anywhere_is_answered_by_one_line(
        case in any::<prop::sample::Index>(),
        changes in prop::collection::vec((1_usize..120, any_json()), 1..4),
    ) {
        static CASES: LazyLock<Vec<Value>> = LazyLock::new(cases);
        let mut scenario = case.get(&CASES).clone();
        scenario.as_object_mut().unwrap().remove("expect");
        for (place, by) in &changes {
            replace(&mut scenario, &mut place.clone(), by);
        }
        scenario["id"] = json!("p");
        let (line, ok) = decision_line(&scenario.to_string());
        prop_assert!(!line.contains('\n'));
        let got: Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(&got["id"], "p");
        let members = if ok { &["decision", "reason"][..] } else { &["error"] };
        for member in members {
            prop_assert!(got[*member].is_string(), "{}", line);
        }
    }
}
