//! The rows of the behaviour table (3A) that are the gate's, by number; from the snapshot's text to the advice.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ids::SubscriptionId;
use crate::usage::{Reading, WindowStatus, merge, portal};
use jiff::Timestamp;

const NOW_S: i64 = 1_789_981_200;
const DAY_S: i64 = 86_400;

fn now() -> Timestamp {
    Timestamp::from_second(NOW_S).unwrap()
}

/// An account observed ten minutes ago.
fn account(slug: &str, windows: Value) -> Value {
    json!({"provider_slug": slug, "observed_at": NOW_S - 600, "windows": windows})
}

fn spent(slug: &str, left_s: i64) -> Value {
    account(
        slug,
        json!([{"key": "seven_day", "status": "rejected", "resets_at": NOW_S + left_s}]),
    )
}

fn registry(accounts: Value) -> Vec<Reading> {
    let text =
        json!({"schema": 6, "providers": [{"id": "claude", "accounts": accounts}]}).to_string();
    merge::newest(portal::parse(text.as_bytes()).readings, now())
}

/// A verdict on slug `S`, model `claude-opus-4-8`: window and reset in epoch seconds; `None` = eligible.
fn verdict(readings: &[Reading]) -> Option<(String, i64)> {
    let sub = SubscriptionId::new("S");
    let windows = readings
        .iter()
        .filter(|reading| reading.subscription == sub)
        .map(Reading::view);
    match judge(
        "claude-opus-4-8",
        windows,
        GateSettings::default(),
        NOW_S * 1_000,
    ) {
        EntryVerdict::Eligible => None,
        EntryVerdict::Skip { window, until_ms } => Some((window.to_owned(), until_ms / 1_000)),
    }
}

fn verdict_on(windows: Value) -> Option<(String, i64)> {
    verdict(&registry(json!([account("S", windows)])))
}

fn skip(window: &str, at_s: i64) -> Option<(String, i64)> {
    Some((window.to_owned(), at_s))
}

/// One rejected weekly window with this reset.
fn weekly(resets_at: Value) -> Option<(String, i64)> {
    verdict_on(json!([{"key": "seven_day", "status": "rejected", "resets_at": resets_at}]))
}

#[test]
fn a1_to_a8_status_and_reset_decide_never_the_percentage() {
    let w = |key: &str, status: &str, pct: f64, left: i64| json!({"key": key, "status": status, "pct": pct, "resets_at": NOW_S + left});
    let rows = [
        (
            "a1",
            json!([
                w("five_hour", "allowed", 3.0, 900),
                w("seven_day", "rejected", 100.0, 293_760)
            ]),
            skip("seven_day", 1_790_274_960),
        ),
        (
            "a2",
            json!([
                w("five_hour", "rejected", 101.0, 1_800),
                w("seven_day", "allowed_warning", 93.0, 9_000)
            ]),
            skip("five_hour", NOW_S + 1_800),
        ),
        ("a3", json!([w("seven_day", "rejected", 100.0, 90)]), None),
        ("a4", json!([w("seven_day", "rejected", 100.0, 300)]), None),
        (
            "a5",
            json!([w("seven_day", "rejected", 100.0, 301)]),
            skip("seven_day", NOW_S + 301),
        ),
        ("a6", json!([w("seven_day", "rejected", 100.0, -60)]), None),
        (
            "a7",
            json!([
                w("five_hour", "allowed", 5.0, 900),
                w("seven_day", "allowed", 17.0, 9_000)
            ]),
            None,
        ),
        (
            "a8 at 90",
            json!([w("five_hour", "allowed_warning", 90.0, 9_000)]),
            None,
        ),
        (
            "a8 at 100",
            json!([w("five_hour", "allowed_warning", 100.0, 9_000)]),
            None,
        ),
        (
            "rejected at 12",
            json!([w("five_hour", "rejected", 12.0, 9_000)]),
            skip("five_hour", NOW_S + 9_000),
        ),
    ];
    for (name, windows, want) in rows {
        assert_eq!(verdict_on(windows), want, "{name}");
    }
}

#[test]
fn a9_an_unknown_subscription_or_an_empty_registry_is_eligible() {
    assert_eq!(verdict(&registry(json!([spent("other", DAY_S)]))), None);
    for text in ["{}", "null"] {
        assert_eq!(
            verdict(&portal::parse(text.as_bytes()).readings),
            None,
            "{text}"
        );
    }
}

#[test]
fn a10_a11_without_a_readable_reset_it_is_eligible() {
    assert_eq!(
        verdict_on(json!([{"key": "seven_day", "status": "rejected"}])),
        None
    );
    for reset in [json!("not-a-date"), json!(""), json!(true), json!(null)] {
        assert_eq!(weekly(reset.clone()), None, "{reset}");
    }
}

#[test]
fn a12_to_a14_every_form_of_the_reset_is_the_same_instant() {
    let forms = [
        json!("2026-09-24T16:00:00.000Z"),
        json!("2026-09-24T18:00:00+02:00"),
        json!("1790265600"),
        json!(1_790_265_600),
        json!("1.7902656e9"),
    ];
    for form in forms {
        assert_eq!(
            weekly(form.clone()),
            skip("seven_day", 1_790_265_600),
            "{form}"
        );
    }
}

#[test]
fn a15_to_a18_evidence_is_trusted_up_to_six_hours_and_only_with_a_stamp() {
    let observed = |stamp: Value| {
        let mut account = spent("S", 3 * DAY_S);
        account["observed_at"] = stamp;
        verdict(&registry(json!([account]))).is_some()
    };
    let rows = [
        ("a15", json!(NOW_S - 2 * DAY_S), false),
        ("a16", json!("2026-09-19T09:00:00Z"), false),
        ("a17 exactly 6 h", json!(NOW_S - 21_600), true),
        ("a17 one second more", json!(NOW_S - 21_601), false),
        ("a18 empty", json!(""), false),
        ("a18 prose", json!("not-a-date"), false),
        ("a18 null", json!(null), false),
        ("a55 ten years ahead", json!("2036-09-18T09:00:00Z"), false),
        ("a55 61 s ahead", json!(NOW_S + 61), false),
        ("a55 60 s ahead, two clocks", json!(NOW_S + 60), true),
    ];
    for (name, stamp, skipped) in rows {
        assert_eq!(observed(stamp), skipped, "{name}");
    }
    let mut unstamped = spent("S", 3 * DAY_S);
    unstamped.as_object_mut().unwrap().remove("observed_at");
    assert_eq!(verdict(&registry(json!([unstamped]))), None);
}

#[test]
fn a19_to_a21_a_scoped_window_reaches_only_models_of_its_family() {
    let far = NOW_S + 4 * DAY_S;
    let w = |extra: Value| {
        let mut window = json!({"status": "rejected", "resets_at": far});
        window
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!([window, {"key": "five_hour", "status": "allowed"}])
    };
    let rows = [
        (
            "a19",
            w(json!({"key": "seven_day_overage_included", "scoped": true, "model": "Fable"})),
            None,
        ),
        (
            "a19 of this family",
            w(json!({"key": "seven_day_overage_included", "scoped": true, "model": "Opus"})),
            skip("seven_day_overage_included", far),
        ),
        ("a20", w(json!({"key": "seven_day", "scoped": true})), None),
        (
            "a20 python truth",
            w(json!({"key": "seven_day", "scoped": "no"})),
            None,
        ),
        (
            "a20 not scoped",
            w(json!({"key": "seven_day", "scoped": 0})),
            skip("seven_day", far),
        ),
        (
            "a21 of another family",
            w(json!({"key": "seven_day_sonnet"})),
            None,
        ),
        (
            "a21 of this family",
            w(json!({"key": "seven_day_opus"})),
            skip("seven_day_opus", far),
        ),
        ("spend", w(json!({"key": "overage"})), None),
        ("nobody knows it", w(json!({"key": "lunar_cycle"})), None),
    ];
    for (name, windows, want) in rows {
        assert_eq!(verdict_on(windows), want, "{name}");
    }
}

#[test]
fn a22_a23_status_is_trimmed_and_folded_and_other_words_say_nothing() {
    let status = |status: Value| {
        verdict_on(json!([{"key": "seven_day", "status": status, "resets_at": NOW_S + DAY_S}]))
            .is_some()
    };
    for refused in [json!(" Rejected "), json!("EXHAUSTED")] {
        assert!(status(refused.clone()), "{refused}");
    }
    for silent in [json!("blocked"), json!(null), json!(7)] {
        assert!(!status(silent.clone()), "{silent}");
    }
}

#[test]
fn a24_a25_the_latest_blocking_reset_counts() {
    let w =
        |key: &str, left: i64| json!({"key": key, "status": "rejected", "resets_at": NOW_S + left});
    assert_eq!(
        verdict_on(json!([w("seven_day", 120), w("five_hour", 3_600)])),
        skip("five_hour", NOW_S + 3_600)
    );
    let far = skip("seven_day", NOW_S + 3 * DAY_S);
    assert_eq!(
        verdict_on(json!([w("five_hour", 3_600), w("seven_day", 3 * DAY_S)])),
        far
    );
    assert_eq!(
        verdict_on(json!([w("seven_day", 3 * DAY_S), w("five_hour", 3_600)])),
        far
    );
}

#[test]
fn a47_of_two_accounts_with_one_slug_the_newest_counts() {
    let stale = |status: &str, age: i64| {
        json!({"provider_slug": "S", "observed_at": NOW_S - age,
            "windows": [{"key": "seven_day", "status": status, "resets_at": NOW_S + DAY_S}]})
    };
    for (first, second, skipped) in [
        (stale("rejected", 100), stale("allowed", 200), true),
        (stale("allowed", 100), stale("rejected", 200), false),
    ] {
        for accounts in [json!([first, second]), json!([second, first])] {
            assert_eq!(
                verdict(&registry(accounts.clone())).is_some(),
                skipped,
                "{accounts}"
            );
        }
    }
}

#[test]
fn a54_a56_milliseconds_are_understood_and_nonsense_fails_open() {
    assert_eq!(
        weekly(json!(1_790_265_600_000_i64)),
        skip("seven_day", 1_790_265_600)
    );
    for word in [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "\"NaN\"",
        "\"Infinity\"",
    ] {
        let text = format!(
            r#"{{"providers":[{{"accounts":[{{"provider_slug":"S","observed_at":{},"windows":[
                {{"key":"seven_day","status":"rejected","resets_at":{word}}},
                {{"key":"five_hour","status":"rejected","resets_at":{}}}]}}]}}]}}"#,
            NOW_S - 1,
            NOW_S + 900
        );
        let readings = portal::parse(text.as_bytes()).readings;
        assert_eq!(
            verdict(&readings),
            skip("five_hour", NOW_S + 900),
            "{word}: the other window still counts"
        );
    }
    assert_eq!(
        weekly(json!(NOW_S + 367 * DAY_S)),
        None,
        "no window is longer than a year"
    );
}

// === the walk ===

struct Chain {
    names: Vec<(String, bool)>,
    readings: Vec<Reading>,
}

impl Chain {
    /// Names of subscriptions; one in parentheses is metered without an opt-in.
    fn new(names: &str, accounts: Value) -> Self {
        let names = names
            .split_whitespace()
            .map(|name| match name.strip_prefix('(') {
                Some(name) => (name.trim_end_matches(')').to_owned(), false),
                None => (name.to_owned(), true),
            });
        Self {
            names: names.collect(),
            readings: registry(accounts),
        }
    }

    fn entries(
        &self,
    ) -> impl Iterator<Item = (EntryView<'_>, impl Iterator<Item = WindowView<'_>>)> {
        self.names.iter().map(|(name, usable)| {
            let entry = EntryView {
                subscription: name,
                model: "m",
                counts_as: name,
                usable: *usable,
            };
            let sub = SubscriptionId::new(name);
            let windows = self
                .readings
                .iter()
                .filter(move |reading| reading.subscription == sub);
            (entry, windows.map(Reading::view))
        })
    }

    fn ask<'q>(&self, change: impl FnOnce(&mut WalkQuestion<'q>)) -> GateAdvice {
        let mut question = WalkQuestion {
            reason: FailureKind::RateLimit,
            failed: "primary",
            cursor: 0,
            already_gated: false,
            line_shown: false,
            relay_seat: false,
            memo: &[],
            settings: GateSettings::default(),
            now_ms: NOW_S * 1_000,
        };
        change(&mut question);
        before_walk(&question, self.entries())
    }

    fn prologue(&self) -> GateAdvice {
        prologue(GateSettings::default(), NOW_S * 1_000, self.entries())
    }
}

fn skipped(advice: &GateAdvice) -> Vec<usize> {
    advice.skips.iter().map(|skip| skip.position).collect()
}

fn line(advice: &GateAdvice) -> &str {
    advice.status_line.as_deref().unwrap_or_default()
}

#[test]
fn a26_to_a31_survivors_keep_their_order_and_the_line_counts() {
    let two = Chain::new("s1 s2 s17", json!([spent("s1", DAY_S), spent("s2", DAY_S)])).ask(|_| {});
    assert_eq!(
        (skipped(&two), two.count, two.target),
        (vec![0, 1], 2, Some(2))
    );
    assert!(line(&two).contains("skipping 2 exhausted subs "), "{two:?}");

    let one = Chain::new("a b", json!([spent("a", DAY_S)])).ask(|_| {});
    assert!(
        line(&one).contains("skipping 1 exhausted sub "),
        "a27 {one:?}"
    );
    assert_eq!(one.all_spent_until_ms, None, "a30");

    let none = Chain::new("a b", json!([])).ask(|_| {});
    assert_eq!(none.count, 0);
    assert_eq!(
        line(&none),
        "⚠️ Rate limited — switching to fallback provider...",
        "a28"
    );

    let all = Chain::new(
        "s1 s2",
        json!([spent("s1", 3 * DAY_S), spent("s2", 21_600)]),
    )
    .ask(|_| {});
    assert_eq!(all.ruling, GateRuling::AllExhausted);
    assert_eq!(
        (all.target, all.all_spent_until_ms),
        (None, Some((NOW_S + 21_600) * 1_000)),
        "a29"
    );
    assert_eq!(all.status_line, None, "nothing is switched to");

    let middle = Chain::new("a b c d", json!([spent("b", DAY_S)])).ask(|_| {});
    assert_eq!((skipped(&middle), middle.target), (vec![1], Some(0)), "a31");
}

#[test]
fn a32_a41_an_empty_tail_counts_as_gated() {
    let empty = Chain::new("", json!([])).ask(|_| {});
    assert_eq!(
        (empty.ruling, empty.gated, empty.status_line),
        (GateRuling::EmptyChain, true, None)
    );
    let walked = Chain::new("a", json!([spent("a", DAY_S)])).ask(|q| q.cursor = 1);
    assert_eq!(
        (walked.ruling, walked.gated, walked.skips.len()),
        (GateRuling::EmptyChain, true, 0)
    );
}

#[test]
fn a33_a34_twenty_one_entries_of_which_seventeen_are_spent_give_one_line() {
    let alive = [5, 10, 15, 20];
    let accounts: Vec<_> = (1..=21)
        .filter(|n| !alive.contains(n))
        .map(|n| spent(&format!("s{n}"), DAY_S))
        .collect();
    let names: Vec<_> = (1..=21).map(|n| format!("s{n}")).collect();
    let chain = Chain::new(&names.join(" "), json!(accounts));
    let first = chain.ask(|_| {});
    assert!(line(&first).contains("skipping 17 exhausted subs"));
    // Each survivor fails in turn; the gate has run and stays silent.
    let memo = skipped(&first);
    let mut walk = vec![];
    let mut next = first.target;
    while let Some(at) = next {
        walk.push(at);
        let again = chain.ask(|question| {
            question.cursor = at + 1;
            question.already_gated = first.gated;
            question.line_shown = true;
            question.memo = &memo;
        });
        assert_eq!(again.status_line, None);
        next = again.target;
    }
    assert_eq!(walk, [4, 9, 14, 19]);
}

#[test]
fn a35_a36_only_quota_reasons_ask_the_registry() {
    let chain = Chain::new("a b", json!([spent("a", DAY_S)]));
    for reason in [
        FailureKind::RateLimit,
        FailureKind::Billing,
        FailureKind::UpstreamRateLimit,
    ] {
        assert_eq!(
            chain.ask(|q| q.reason = reason).target,
            Some(1),
            "{reason:?}"
        );
    }
    for reason in [
        FailureKind::Timeout,
        FailureKind::Overloaded,
        FailureKind::Auth,
        FailureKind::Transport,
    ] {
        let advice = chain.ask(|q| q.reason = reason);
        assert_eq!(
            (advice.target, advice.gated, advice.ruling),
            (Some(0), false, GateRuling::NotQuota),
            "{reason:?}"
        );
    }
}

#[test]
fn a37_a_recovered_subscription_is_used_on_the_next_turn() {
    let before = Chain::new("s1 s2", json!([spent("s1", DAY_S)])).ask(|_| {});
    let after = Chain::new(
        "s1 s2",
        json!([account(
            "s1",
            json!([{"key": "seven_day", "status": "allowed"}])
        )]),
    )
    .ask(|_| {});
    assert_eq!((before.target, after.target), (Some(1), Some(0)));
}

#[test]
fn a38_what_is_walked_already_is_left_alone() {
    let advice = Chain::new("a b", json!([spent("a", DAY_S)])).ask(|q| q.cursor = 1);
    assert_eq!(
        (advice.count, advice.target, advice.skips.len()),
        (0, Some(1), 0)
    );
}

#[test]
fn a39_a42_the_gate_runs_once_and_its_memo_holds_for_any_later_reason() {
    let chain = Chain::new("a b c", json!([spent("a", DAY_S), spent("b", DAY_S)]));
    let second = chain.ask(|q| {
        q.already_gated = true;
        q.memo = &[0];
    });
    assert_eq!(
        (skipped(&second), second.target, second.ruling),
        (vec![0], Some(1), GateRuling::AlreadyGated)
    );
    let timeout = chain.ask(|q| {
        q.already_gated = true;
        q.reason = FailureKind::Timeout;
        q.memo = &[0, usize::MAX];
    });
    assert_eq!(
        (timeout.target, timeout.count, timeout.gated),
        (Some(1), 1, true)
    );
}

#[test]
fn a40_without_a_registry_the_chain_is_walked_as_ever() {
    let advice = Chain::new("a b", json!(null)).ask(|_| {});
    assert_eq!(
        (advice.target, advice.count, advice.ruling),
        (Some(0), 0, GateRuling::Walk)
    );
}

#[test]
fn a43_a_seat_of_a_relay_does_not_use_the_gate_up() {
    let chain = Chain::new("a b", json!([spent("a", DAY_S)]));
    let seat = chain.ask(|q| q.relay_seat = true);
    assert_eq!(
        (seat.target, seat.gated, seat.status_line.is_none()),
        (Some(0), false, true)
    );
    assert_eq!(chain.ask(|_| {}).target, Some(1));
}

#[test]
fn a50_names_join_without_regard_to_case() {
    let advice = Chain::new("Claude-APX-1 b", json!([spent(" claude-apx-1", DAY_S)])).ask(|_| {});
    assert_eq!(advice.target, Some(1));
}

#[test]
fn n_counts_subscriptions_not_entries() {
    let names: Vec<_> = (0..200).map(|n| format!("group-{:03}", n % 100)).collect();
    let windows = registry(json!([spent("s", DAY_S)]));
    let entries = names.iter().map(|name| {
        let entry = EntryView {
            subscription: "s",
            model: "m",
            counts_as: name,
            usable: true,
        };
        (entry, windows.iter().map(Reading::view))
    });
    let advice = prologue(GateSettings::default(), NOW_S * 1_000, entries);
    assert_eq!((advice.count, advice.skips.len()), (100, 200));
}

#[test]
fn a_metered_entry_without_an_opt_in_is_never_the_one_in_use() {
    let chain = Chain::new("a (paid) b", json!([spent("a", DAY_S)]));
    assert_eq!(
        (chain.ask(|_| {}).target, chain.prologue().target),
        (Some(2), Some(2))
    );
    let only = Chain::new(
        "a (paid)",
        json!([spent("a", 21_600), spent("paid", 3_600)]),
    );
    for advice in [only.ask(|_| {}), only.prologue()] {
        assert_eq!((advice.target, skipped(&advice)), (None, vec![0]));
        assert_eq!(
            advice.all_spent_until_ms,
            Some((NOW_S + 21_600) * 1_000),
            "what is not used has no say"
        );
        assert_eq!(advice.status_line, None);
    }
}

#[test]
fn a_head_known_to_be_spent_is_said_before_any_request() {
    let chain = Chain::new("a b c", json!([spent("a", DAY_S), spent("b", DAY_S)]));
    let advice = chain.prologue();
    assert_eq!(
        line(&advice),
        "⚠️ Quota known to be spent — skipping 2 exhausted subs (quota registry) and using c/m..."
    );
    assert_eq!(
        (skipped(&advice), advice.gated, advice.target),
        (vec![0, 1], true, Some(2))
    );
    let one = Chain::new("a b", json!([spent("a", DAY_S)])).prologue();
    assert!(line(&one).contains("skipping 1 exhausted sub (quota registry) and using b/m..."));
}

#[test]
fn a_free_head_leaves_the_turn_as_it_is_and_the_gate_unused() {
    assert_eq!(
        Chain::new("a b", json!([spent("b", DAY_S)])).prologue(),
        GateAdvice::default()
    );
    assert_eq!(Chain::new("", json!([])).prologue(), GateAdvice::default());
    assert!(!GateAdvice::default().gated);
}

proptest! {
    #[test]
    fn judge_skips_only_on_proof(
        status in 0_u8..4, used in prop::option::of(-10.0..200.0_f64),
        observed in prop::option::of(any::<i64>()), resets in prop::option::of(any::<i64>()), now_ms in any::<i64>(),
    ) {
        let status = [WindowStatus::Unknown, WindowStatus::Allowed, WindowStatus::Warning, WindowStatus::Rejected][usize::from(status)];
        let window = WindowView {
            id: "five_hour", scope: ScopeView::Unstated, status, used_pct: used,
            resets_at_ms: resets, observed_at_ms: observed, source: ReadingSource::Probe,
        };
        if let EntryVerdict::Skip { until_ms, .. } = judge("m", [window], GateSettings::default(), now_ms) {
            prop_assert!(i128::from(until_ms) - i128::from(now_ms) > 300_000);
            prop_assert!(i128::from(now_ms) - i128::from(observed.unwrap()) <= 21_600_000);
            prop_assert!(!matches!(status, WindowStatus::Allowed | WindowStatus::Warning));
        }
    }
}
