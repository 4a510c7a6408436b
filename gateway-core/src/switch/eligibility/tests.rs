//! Rows beside the contract's cases: edges of the tests, and that each names the right reason.

use super::*;
use crate::spend::{Spent, Usd};
use crate::switch::facts::{Burn, Class, Facts, Reservation};
use crate::switch::testing::{HOUR_S, at, base, login, now, reading, regroup};
use crate::usage::Reading;
use crate::usage::{ReadingSource, WindowStatus};

fn judged(change: impl FnOnce(&mut Facts)) -> Result<(), RejectReason> {
    judged_for(Purpose::Need, change)
}

fn judged_for(purpose: Purpose, change: impl FnOnce(&mut Facts)) -> Result<(), RejectReason> {
    let mut facts = base();
    change(&mut facts);
    let facts = regroup(facts);
    let candidates = Candidates::of(&Board::new(&facts, now()), purpose);
    match candidates.rejected.first() {
        Some(rejection) => Err(rejection.reason),
        None => Ok(()),
    }
}

/// Every failing test at once; each row mends the first one, and the next is named.
#[test]
fn the_first_failing_test_names_the_reason() {
    use RejectReason::{
        Ambiguous, ContextTooSmall, Cooling, Disabled, Exhausted, Headroom, IdentityUnknown,
        NotInstalled, Privilege, Stale, Unauthenticated, Unavailable, WindowRolled,
    };
    let mut facts = base();
    facts.thread.requires = vec!["plan_mode".to_owned()];
    facts.thread.request_tokens = Some(127_489);
    let state = &mut facts.logins[1];
    state.login.upstream = None;
    state.login.account_id = None;
    (state.enabled, state.installed) = (false, false);
    (state.authenticated, state.available) = (false, false);
    state.lacks = vec![" Plan_Mode ".to_owned()];
    state.last_start_failed_at = Some(at(-599));
    facts.readings = vec![
        Reading {
            used_pct: None,
            ..reading("codex", "vague", 0.0)
        },
        Reading {
            observed_at: Some(at(-601)),
            ..reading("codex", "old", 1.0)
        },
        Reading {
            resets_at: Some(at(0)),
            ..reading("codex", "rolled", 1.0)
        },
        reading("codex", "out", 100.0),
        reading("codex", "full", 95.1),
    ];
    type Mend = (RejectReason, fn(&mut Facts));
    let mends: [Mend; 13] = [
        (Disabled, |facts| facts.logins[1].enabled = true),
        (NotInstalled, |facts| facts.logins[1].installed = true),
        (Unauthenticated, |facts| {
            facts.logins[1].authenticated = true
        }),
        (Unavailable, |facts| facts.logins[1].available = true),
        (IdentityUnknown, |facts| {
            facts.logins[1].login.account_id = Some("other".to_owned())
        }),
        (Cooling, |facts| {
            facts.logins[1].last_start_failed_at = Some(at(-600))
        }),
        (Privilege, |facts| facts.thread.requires.clear()),
        (ContextTooSmall, |facts| {
            facts.thread.request_tokens = Some(127_488)
        }),
        (Ambiguous, |facts| drop(facts.readings.remove(0))),
        (Stale, |facts| drop(facts.readings.remove(0))),
        (WindowRolled, |facts| drop(facts.readings.remove(0))),
        (Exhausted, |facts| drop(facts.readings.remove(0))),
        (Headroom, |facts| facts.readings[0].used_pct = Some(95.0)),
    ];
    for (want, mend) in mends {
        assert_eq!(judged(|f| *f = facts.clone()), Err(want));
        mend(&mut facts);
    }
    assert_eq!(judged(|f| *f = facts), Ok(()));
}

#[test]
fn headroom_counts_what_is_promised_and_expected() {
    let with = |used: f64, reserved: f64, expected: Option<f64>, samples: &[f64], class: Class| {
        judged(|facts| {
            facts.readings[1].used_pct = Some(used);
            facts.expected_burn_pct = expected;
            facts.class = class;
            let promise = |age: i64, pct| Reservation {
                subscription: "CODEX".into(),
                pct,
                at: Some(at(-age)),
            };
            facts.reservations = vec![promise(3_600, reserved), promise(3_601, 50.0)];
            facts.burn = vec![Burn {
                subscription: "codex".into(),
                window: "primary".to_owned(),
                samples: samples.iter().map(|sample| Some(*sample)).collect(),
            }];
        })
    };
    use Class::{Background, Interactive};
    #[rustfmt::skip]
    let rows = [
        ("exactly at the limit", 95.0, 0.0, None, &[][..], Interactive, true),
        ("promised room counts", 90.0, 5.1, None, &[], Interactive, false),
        ("with the safety factor", 90.0, 0.0, Some(4.0), &[], Interactive, true),
        ("above it", 90.0, 0.0, Some(4.1), &[], Interactive, false),
        ("own samples outrank the estimate", 90.0, 0.0, Some(40.0), &[1.0, 1.0], Interactive, true),
        ("one sample does not", 90.0, 0.0, Some(40.0), &[1.0], Interactive, false),
        ("background keeps more", 85.1, 0.0, None, &[], Background, false),
        ("and no more than that", 85.0, 0.0, None, &[], Background, true),
    ];
    for (name, used, reserved, expected, samples, class, fits) in rows {
        let want = if fits {
            Ok(())
        } else {
            Err(RejectReason::Headroom)
        };
        assert_eq!(
            with(used, reserved, expected, samples, class),
            want,
            "{name}"
        );
    }
}

#[test]
fn n24_without_a_reset_only_young_and_low_readings_admit() {
    use RejectReason::{Exhausted, Headroom, Stale};
    #[rustfmt::skip]
    let rows = [
        (95.0, 120, Ok(())),
        (95.0, 121, Err(Stale)),
        (95.1, 60, Err(Headroom)),
        (100.0, 60, Err(Exhausted)),
    ];
    for (used, age, want) in rows {
        let got = judged(|facts| {
            facts.settings.reserve_interactive_pct = 0.0;
            facts.readings[1].used_pct = Some(used);
            facts.readings[1].observed_at = Some(at(-age));
            facts.readings[1].resets_at = None;
        });
        assert_eq!(got, want, "{used} {age}");
    }
}

#[test]
fn n11_only_two_fresh_readings_of_the_running_cycle_contradict_each_other() {
    #[rustfmt::skip]
    let rows = [
        ("another cycle, far apart", 61, 20.1, 30, true),
        ("one cycle", 60, 50.0, 30, false),
        ("near each other", 9_000, 20.0, 30, false),
        ("one of them is old", 9_000, 50.0, 601, false),
    ];
    for (name, apart, points, age, contradicts) in rows {
        let got = judged(|facts| {
            facts.readings[1].observed_at = Some(at(-20));
            facts.readings.push(Reading {
                resets_at: Some(at(3 * HOUR_S + apart)),
                observed_at: Some(at(-age)),
                ..reading("codex", "primary", 40.0 + points)
            });
        });
        let want = if contradicts {
            Err(RejectReason::Ambiguous)
        } else {
            Ok(())
        };
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn n12_a_refusal_is_proof_until_its_reset_or_something_newer() {
    use RejectReason::{Exhausted, Stale};
    let refusal = |age: i64, resets_in: Option<i64>, newer: Option<i64>| {
        judged(|facts| {
            facts.restarted_at = Some(at(-700));
            facts.readings = vec![Reading {
                status: WindowStatus::Rejected,
                source: ReadingSource::Failure,
                observed_at: Some(at(-age)),
                resets_at: resets_in.map(at),
                ..reading("codex", "primary", 99.0)
            }];
            facts.readings.extend(newer.map(|age| Reading {
                observed_at: Some(at(-age)),
                ..reading("codex", "primary", 5.0)
            }));
        })
    };
    assert_eq!(refusal(9_000, Some(60), None), Err(Exhausted));
    assert_eq!(refusal(9_000, Some(0), None), Err(Stale));
    assert_eq!(refusal(9_000, None, None), Err(Stale));
    assert_eq!(
        refusal(-61, Some(60), None),
        Err(Stale),
        "a broken clock proves nothing"
    );
    assert_eq!(refusal(9_000, Some(60), Some(60)), Ok(()));
    assert_eq!(
        refusal(9_000, Some(60), Some(800)),
        Err(Stale),
        "replaced, but by an old one"
    );
}

#[test]
fn a_paid_entry_needs_money_and_no_proof() {
    use RejectReason::{Exhausted, PaidNotAllowed, SpendCap};
    let paid = |change: &dyn Fn(&mut Facts)| {
        judged(|facts| {
            facts.logins.push(login("prepaid", "api"));
            facts.chain = vec![Selection {
                price: Usd::from_dollars(0.4),
                ..Selection::new("prepaid", None)
            }];
            facts.settings.paid.enabled = true;
            change(facts);
        })
    };
    assert_eq!(paid(&|_| ()), Ok(()));
    assert_eq!(
        paid(&|facts| facts.settings.paid.enabled = false),
        Err(PaidNotAllowed)
    );
    assert_eq!(paid(&|facts| facts.chain[0].price = None), Err(SpendCap));
    let spent = |dollars| Spent {
        day: Usd::from_dollars(dollars).unwrap(),
        thread: Usd::ZERO,
    };
    assert_eq!(paid(&|facts| facts.spent = spent(4.6)), Ok(()));
    assert_eq!(paid(&|facts| facts.spent = spent(4.600_001)), Err(SpendCap));
    let seen = |used: f64, age: i64| {
        paid(&move |facts| {
            let seen = reading("prepaid", "credit", used);
            facts.readings.push(Reading {
                observed_at: Some(at(-age)),
                ..seen
            });
        })
    };
    assert_eq!(seen(99.0, 60), Ok(()), "no reserve");
    assert_eq!(seen(100.0, 60), Err(Exhausted));
    assert_eq!(seen(100.0, 601), Ok(()), "an old reading is no proof");
}

#[test]
fn n17_a_prediction_moves_only_to_clearly_more_room_and_never_for_money() {
    let purpose = Purpose::Prediction { source_level: 92.0 };
    let at_level = |used| judged_for(purpose, |facts| facts.readings[1].used_pct = Some(used));
    assert_eq!(at_level(82.0), Ok(()));
    assert_eq!(at_level(82.1), Err(RejectReason::Hysteresis));
    let reserved = judged_for(purpose, |facts| {
        facts.readings[1].used_pct = Some(80.0);
        facts.reservations = vec![Reservation {
            subscription: "codex".into(),
            pct: 3.0,
            at: None,
        }];
    });
    assert_eq!(reserved, Err(RejectReason::Hysteresis));
    let paid = judged_for(purpose, |facts| {
        facts.logins[1].login.metered = true;
        facts.settings.paid.enabled = true;
        facts.chain[0].price = Some(Usd::ZERO);
    });
    assert_eq!(paid, Err(RejectReason::PaidNotAllowed));
}

#[test]
fn tiers_come_before_the_chain_order_and_money_comes_last() {
    let mut facts = base();
    facts.settings.paid.enabled = true;
    facts.logins.extend([
        login("prepaid", "api"),
        login("go", "opencode-go"),
        login("peer", "claude"),
        login("twin", "claude"),
    ]);
    for id in ["go", "peer", "twin"] {
        facts.readings.push(reading(id, "five_hour", 10.0));
    }
    facts.chain = ["prepaid", "go", "codex", "peer", "twin"]
        .into_iter()
        .map(|id| Selection {
            price: Some(Usd::ZERO),
            native_resume: id == "twin",
            ..Selection::new(id, Some("Opus "))
        })
        .collect();
    let mut facts = regroup(facts);
    let order = |facts: &Facts| Candidates::of(&Board::new(facts, now()), Purpose::Need).eligible;
    assert_eq!(order(&facts), [4, 3, 2, 1, 0]);
    facts.settings.order = ChainOrder::Absolute;
    assert_eq!(order(&facts), [0, 1, 2, 3, 4]);
    facts.chain.push(facts.chain[2].clone());
    let judged = Candidates::of(&Board::new(&facts, now()), Purpose::Need);
    assert_eq!(judged.rejected[0].reason, RejectReason::Duplicate);
    assert_eq!(judged.rejected[0].position, 5);
}
