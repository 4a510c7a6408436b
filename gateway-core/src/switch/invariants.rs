//! What holds for every decision, over generated facts (section 3.9 of the contract, as far as it can be said of one decision).

use jiff::Timestamp;
use proptest::prelude::*;

use super::decide::{self, Decision, NoopReason, ProceedReason};
use super::facts::{Burn, Facts, LimitClass, Selection};
use super::testing::{at, base, login, now, reading, refused, regroup};
use super::{RejectReason, Verdict};
use crate::spend::Usd;
use crate::usage::{Reading, ReadingSource, WindowStatus};

const IDS: [&str; 5] = ["claude", "codex", "second", "go", "prepaid"];

fn any_reading() -> impl Strategy<Value = Reading> {
    use ReadingSource::{Event, Failure, Hub, Probe, Rollout};
    use WindowStatus::{Allowed, Rejected, Unknown, Warning};
    let levels = vec![
        None,
        Some(0.0),
        Some(40.0),
        Some(80.0),
        Some(94.0),
        Some(96.0),
        Some(100.0),
    ];
    (
        prop::sample::select(IDS.to_vec()),
        prop::sample::select(vec!["five_hour", "seven_day", "seven_day_opus", "lunar"]),
        prop::sample::select(levels),
        prop::sample::select(vec![Unknown, Unknown, Allowed, Warning, Rejected]),
        prop::sample::select(vec![
            None,
            Some(-60),
            Some(300),
            Some(10_000),
            Some(400_000),
        ]),
        prop::sample::select(vec![
            None,
            Some(-300),
            Some(0),
            Some(60),
            Some(60),
            Some(600),
            Some(5_000),
        ]),
        prop::sample::select(vec![Probe, Probe, Event, Hub, Failure, Rollout]),
    )
        .prop_map(
            |(id, window, used_pct, status, resets_in, age, source)| Reading {
                used_pct,
                status,
                resets_at: resets_in.map(at),
                observed_at: age.map(|age: i64| at(-age)),
                source,
                ..reading(id, window, 0.0)
            },
        )
}

prop_compose! {
    fn any_facts()(
        readings in prop::collection::vec(any_reading(), 0..14),
        chain in prop::collection::vec((0_usize..5, prop::sample::select(vec!["opus", "gpt"])), 0..6),
        accounts in prop::collection::vec(prop::sample::select(vec!["", "a", "b"]), 5),
        flags in prop::collection::vec(prop::bool::weighted(0.1), 8),
        samples in prop::collection::vec(0.0_f64..30.0, 0..4),
        paid in any::<bool>(),
    ) -> Facts {
        let providers = ["claude", "codex", "claude", "opencode-go", "api"];
        let mut facts = base();
        facts.readings = readings;
        facts.logins = IDS.iter().zip(providers).map(|(id, provider)| login(id, provider)).collect();
        for (state, account) in facts.logins.iter_mut().zip(&accounts) {
            state.login.account_id = (!account.is_empty()).then(|| (*account).to_owned());
        }
        facts.logins[1].enabled = !flags[0];
        facts.logins[2].authenticated = !flags[1];
        facts.chain = chain.into_iter().map(|(at, model)| Selection {
            price: Usd::from_dollars(0.4),
            ..Selection::new(IDS[at], Some(model))
        }).collect();
        facts.thread.superseded = flags[2];
        facts.thread.approval_pending = flags[3];
        facts.thread.children_running = flags[4];
        facts.thread.tool_in_flight_ms = flags[5].then_some(1_000);
        facts.thread.tried = if flags[6] { vec!["second".into()] } else { Vec::new() };
        facts.thread.undone_at = flags[7].then(|| at(-60));
        facts.settings.paid.enabled = paid;
        facts.burn = vec![Burn {
            subscription: "claude".into(),
            window: "five_hour".to_owned(),
            samples: samples.into_iter().map(Some).collect(),
        }];
        regroup(facts)
    }
}

/// Both decisions that can move work.
fn both(facts: &Facts, now: Timestamp) -> [Verdict; 2] {
    [
        decide::limit_failure(facts, LimitClass::UsageLimit, &refused(), now),
        decide::before_turn(facts, now),
    ]
}

fn target<'f>(facts: &'f Facts, verdict: &Verdict) -> Option<&'f Selection> {
    match verdict.decision {
        Decision::Switch(_, position) => facts.chain.get(position),
        _ => None,
    }
}

fn named(facts: &Facts, verdict: &Verdict) -> Option<(String, Option<String>)> {
    let target = target(facts, verdict)?;
    Some((target.subscription.key().to_owned(), target.model.clone()))
}

/// The decision without the place in the chain.
fn kind(verdict: &Verdict) -> Decision {
    match verdict.decision {
        Decision::Switch(reason, _) => Decision::Switch(reason, 0),
        other => other,
    }
}

fn is_metered(facts: &Facts, id: &crate::ids::SubscriptionId) -> bool {
    let mut logins = facts.logins.iter();
    logins.any(|state| state.login.id == *id && state.login.metered)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // I1: what is too old, rolled or from the future never receives work.
    #[test]
    fn i1_no_candidate_rests_on_an_old_reading(mut facts in any_facts(), shift in 601_i64..5_000) {
        for reading in &mut facts.readings {
            if reading.subscription.key() != "claude" {
                reading.observed_at = Some(at(-shift));
                reading.status = WindowStatus::Unknown;
            }
        }
        for verdict in both(&facts, now()) {
            if let Some(target) = target(&facts, &verdict) {
                prop_assert!(is_metered(&facts, &target.subscription));
            }
        }
    }

    #[test]
    fn i2_the_target_is_another_quota_than_the_source_and_all_that_was_tried(facts in any_facts()) {
        for verdict in both(&facts, now()) {
            if let Some(target) = target(&facts, &verdict) {
                let head = |id| facts.groups.head(id);
                let source = &facts.source.as_ref().unwrap().subscription;
                prop_assert_ne!(head(&target.subscription), head(source));
                prop_assert!(facts.thread.tried.iter().all(|tried| head(tried) != head(&target.subscription)));
            }
        }
    }

    #[test]
    fn i3_nothing_moves_while_something_is_open(facts in any_facts()) {
        let [verdict, _] = both(&facts, now());
        if target(&facts, &verdict).is_some() {
            let thread = &facts.thread;
            prop_assert!(!thread.approval_pending && !thread.children_running && thread.tool_in_flight_ms.is_none());
        }
    }

    #[test]
    fn i5_and_money_a_used_up_cap_and_a_prediction_never_move_or_spend(mut facts in any_facts()) {
        let [_, before] = both(&facts, now());
        if let Decision::Switch(reason, _) = before.decision
            && reason != decide::SwitchReason::Exhausted {
            let target = target(&facts, &before).unwrap();
            prop_assert!(!is_metered(&facts, &target.subscription));
        }
        facts.thread.auto_switches = vec![now(); 3];
        for verdict in both(&facts, now()) {
            prop_assert!(target(&facts, &verdict).is_none());
        }
    }

    #[test]
    fn i9_off_is_off(mut facts in any_facts(), auto_resume in any::<bool>()) {
        facts.settings.enabled = false;
        facts.settings.auto_resume = auto_resume;
        let [refused, before] = both(&facts, now());
        if !auto_resume && !facts.thread.superseded {
            prop_assert_eq!(refused.decision, Decision::Noop(NoopReason::Disabled));
        }
        prop_assert!(refused.rejected.is_none() && before.rejected.is_none());
        if !facts.thread.superseded {
            prop_assert_eq!(before.decision, Decision::Proceed(ProceedReason::Disabled));
        }
    }

    #[test]
    fn i12_the_order_of_readings_does_not_matter(facts in any_facts(), turn in 0_usize..14) {
        let mut turned = facts.clone();
        turned.readings.reverse();
        let by = turn.min(turned.readings.len());
        turned.readings.rotate_left(by);
        for (a, b) in both(&facts, now()).iter().zip(&both(&turned, now())) {
            prop_assert_eq!(a, b);
        }
    }

    // I13, with one of each reason that does not depend on other entries.
    #[test]
    fn i13_an_ineligible_entry_changes_nothing(facts in any_facts(), at in 0_usize..7) {
        let mut more = facts.clone();
        let at = at.min(more.chain.len());
        more.chain.insert(at, Selection::new("ghost", Some("opus")));
        for (a, b) in both(&facts, now()).iter().zip(&both(&more, now())) {
            prop_assert_eq!(kind(a), kind(b));
            prop_assert_eq!(named(&facts, a), named(&more, b));
            let ghost = b.rejected.iter().flatten().find(|rejection| rejection.position == at);
            prop_assert!(b.rejected.is_none() || ghost.map(|ghost| ghost.reason) == Some(RejectReason::Unknown));
        }
    }

    #[test]
    fn i14_more_room_on_the_target_never_makes_the_work_wait(facts in any_facts(), share in 0.0_f64..1.0) {
        for (at, verdict) in both(&facts, now()).iter().enumerate() {
            let Some(chosen) = target(&facts, verdict) else { continue };
            let mut roomier = facts.clone();
            let head = facts.groups.head(&chosen.subscription);
            let is_targets = |reading: &Reading| facts.groups.head(&reading.subscription) == head;
            // A refusal stays as full as it is, and would contradict the copies that move.
            if facts.readings.iter().any(|reading| is_targets(reading) && reading.status == WindowStatus::Rejected) {
                continue;
            }
            for reading in &mut roomier.readings {
                if is_targets(reading) {
                    // All copies move together: rosier copies alone would contradict the others.
                    reading.used_pct = reading.used_pct.map(|used| used * share);
                }
            }
            let again = &both(&roomier, now())[at];
            // Perhaps with another of its models, which now fits as well.
            let heads = target(&roomier, again).map(|target| roomier.groups.head(&target.subscription));
            prop_assert_eq!(heads, Some(head));
        }
    }

    #[test]
    fn every_entry_is_either_taken_or_told_why_not(facts in any_facts()) {
        for verdict in both(&facts, now()) {
            let rejected = verdict.rejected.as_deref().unwrap_or_default();
            prop_assert!(rejected.is_sorted_by_key(|rejection| rejection.position));
            if let Decision::Switch(_, position) = verdict.decision {
                prop_assert!(position < facts.chain.len());
                prop_assert!(rejected.iter().all(|rejection| rejection.position != position));
            }
            if verdict.decision == Decision::Proceed(ProceedReason::NoCandidate) {
                prop_assert_eq!(rejected.len(), facts.chain.len());
            }
        }
    }
}
