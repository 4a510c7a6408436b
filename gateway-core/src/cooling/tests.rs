use FailureKind::{
    Auth, BadRequest, Billing, ContextOverflow, Crashed, Overloaded, RateLimit, Timeout, Transport,
    UpstreamRateLimit,
};
use FailureScope::{Account, AccountModel, Burst, NetworkEdge, Request, UpstreamShared};
use proptest::prelude::*;

use super::*;

const NOW: i64 = 1_789_981_200;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + seconds).unwrap()
}

fn failure(kind: FailureKind, scope: FailureScope, wait: Option<i64>) -> Failure {
    Failure::new(kind, scope, "x").retry_at(wait.map(after))
}

fn trouble(failure: &Failure) -> Trouble<'_> {
    Trouble {
        failure,
        left_traces: false,
        retries: 0,
        others_failed: false,
        others_left: true,
        took: SignedDuration::from_secs(1),
        time_left: SignedDuration::from_mins(30),
    }
}

/// When the same route is asked again, in milliseconds: between these; `None` = the walk goes on.
fn again(trouble: &Trouble<'_>) -> Option<(i64, i64)> {
    let waits: Vec<i64> = (0..500)
        .filter_map(|seed| match what_now(trouble, seed, now()) {
            WhatNow::Again(at) => Some(at.as_millisecond() - now().as_millisecond()),
            WhatNow::On => None,
        })
        .collect();
    Some((*waits.iter().min()?, *waits.iter().max()?))
}

#[test]
fn each_kind_of_failure_has_its_manner() {
    let exactly = |seconds: i64| Some((seconds * 1000, seconds * 1000));
    // (rule, kind, scope, stated wait, the route is asked again after)
    let rows = [
        (
            "a burst keeps its stated wait",
            RateLimit,
            Burst,
            Some(7),
            exactly(7),
        ),
        (
            "a burst of a minute is sat out",
            RateLimit,
            Burst,
            Some(60),
            exactly(60),
        ),
        (
            "a longer one gives way to a free route",
            RateLimit,
            Burst,
            Some(61),
            None,
        ),
        (
            "a stated wait that has passed is none",
            RateLimit,
            Burst,
            Some(-5),
            Some((2_500, 5_000)),
        ),
        (
            "a bare 429 is asked once more",
            RateLimit,
            Burst,
            None,
            Some((2_500, 5_000)),
        ),
        (
            "so is one of unknown scope",
            RateLimit,
            Request,
            None,
            Some((2_500, 5_000)),
        ),
        ("a quota is not sat out", RateLimit, Account, Some(7), None),
        ("nor one without a reset", RateLimit, Account, None, None),
        ("nor one of the model", RateLimit, AccountModel, None, None),
        (
            "money does not come by waiting",
            Billing,
            Account,
            Some(7),
            None,
        ),
        (
            "an overload gets one short look",
            Overloaded,
            UpstreamShared,
            None,
            Some((1_000, 2_000)),
        ),
        (
            "or the wait it states",
            Overloaded,
            UpstreamShared,
            Some(20),
            exactly(20),
        ),
        (
            "a long one goes on",
            Overloaded,
            UpstreamShared,
            Some(120),
            None,
        ),
        (
            "so does a shared pool",
            UpstreamRateLimit,
            UpstreamShared,
            None,
            Some((1_000, 2_000)),
        ),
        (
            "a broken connection is tried again",
            Transport,
            Request,
            None,
            Some((500, 1_000)),
        ),
        (
            "so is a route that is not reached",
            Transport,
            NetworkEdge,
            None,
            Some((500, 1_000)),
        ),
        ("a wall is not", RateLimit, NetworkEdge, None, None),
        (
            "a silent one has taken long enough",
            Timeout,
            Request,
            None,
            None,
        ),
        ("a login is not tried again", Auth, Account, None, None),
        (
            "nor a program that does not run",
            Crashed,
            Account,
            None,
            None,
        ),
        (
            "nor a request that is wrong",
            BadRequest,
            Request,
            None,
            None,
        ),
        (
            "nor one that does not fit",
            ContextOverflow,
            Request,
            None,
            None,
        ),
    ];
    for (rule, kind, scope, wait, want) in rows {
        let failure = failure(kind, scope, wait);
        let got = again(&trouble(&failure));
        match (got, want) {
            (Some((low, high)), Some((at_least, at_most))) => {
                assert!(low >= at_least && high <= at_most, "{rule}: {low}..{high}");
                let spread = at_most - at_least;
                assert!(
                    high - low >= spread * 9 / 10,
                    "{rule}: {low}..{high} is no spread"
                );
            }
            (got, want) => assert_eq!(got, want, "{rule}"),
        }
    }
}

#[test]
fn what_was_shown_or_started_is_never_run_again() {
    for (kind, scope) in [
        (RateLimit, Burst),
        (Overloaded, UpstreamShared),
        (Transport, Request),
        (Transport, NetworkEdge),
        (UpstreamRateLimit, UpstreamShared),
    ] {
        let failure = failure(kind, scope, None);
        let left = Trouble {
            left_traces: true,
            ..trouble(&failure)
        };
        assert_eq!(again(&left), None, "{kind:?}");
    }
}

#[test]
fn a_route_is_asked_again_a_bounded_number_of_times() {
    let rows = [
        (failure(RateLimit, Burst, Some(3)), 2),
        (failure(RateLimit, Burst, None), 1),
        (failure(Overloaded, UpstreamShared, None), 1),
        (failure(Overloaded, UpstreamShared, Some(3)), 1),
        (failure(UpstreamRateLimit, UpstreamShared, None), 1),
        (failure(Transport, Request, None), 1),
    ];
    for (failure, times) in rows {
        let asked = (0..10)
            .take_while(|retries| {
                let retries = *retries;
                let trouble = Trouble {
                    retries,
                    ..trouble(&failure)
                };
                again(&trouble).is_some()
            })
            .count();
        assert_eq!(asked, times, "{failure:?}");
    }
}

#[test]
fn without_another_route_a_burst_is_sat_out_to_its_end() {
    let alone = |wait| {
        let failure = failure(RateLimit, Burst, Some(wait));
        let trouble = Trouble {
            others_left: false,
            ..trouble(&failure)
        };
        again(&trouble)
    };
    assert_eq!(alone(299), Some((299_000, 299_000)));
    assert_eq!(alone(301), None, "that is a quota");
}

#[test]
fn nobody_waits_beyond_the_turns_end() {
    let failure = failure(RateLimit, Burst, Some(50));
    let within = |seconds| {
        let trouble = Trouble {
            time_left: SignedDuration::from_secs(seconds),
            ..trouble(&failure)
        };
        again(&trouble).is_some()
    };
    assert_eq!((within(50), within(49)), (true, false));
}

#[test]
fn an_attempt_that_took_long_has_tried_enough() {
    for (kind, scope) in [(Transport, Request), (Overloaded, UpstreamShared)] {
        let failure = failure(kind, scope, None);
        let trouble = Trouble {
            took: SignedDuration::from_secs(31),
            ..trouble(&failure)
        };
        assert_eq!(again(&trouble), None, "{kind:?}");
    }
}

#[test]
fn a_dead_network_costs_one_second_look_and_no_more() {
    let failure = failure(Transport, NetworkEdge, None);
    let later = Trouble {
        others_failed: true,
        ..trouble(&failure)
    };
    assert_eq!(again(&later), None);
}

#[test]
fn each_failure_teaches_later_turns_its_own() {
    let minute = |reach| Lesson::Cools(reach, after(60));
    let rows = [
        (
            RateLimit,
            Burst,
            Some(90),
            Lesson::Cools(Reach::Account, after(90)),
        ),
        (RateLimit, Burst, None, minute(Reach::Account)),
        (
            RateLimit,
            Account,
            None,
            Lesson::Cools(Reach::Account, after(300)),
        ),
        (
            RateLimit,
            AccountModel,
            None,
            Lesson::Cools(Reach::Model, after(300)),
        ),
        (RateLimit, Account, Some(3_600), Lesson::Nothing), // a mark of the registry
        (Billing, Account, None, Lesson::Unfunded(Reach::Account)),
        (Billing, Account, Some(3_600), Lesson::Nothing),
        (UpstreamRateLimit, UpstreamShared, None, Lesson::Nothing),
        (UpstreamRateLimit, UpstreamShared, Some(9), Lesson::Nothing),
        (Overloaded, UpstreamShared, None, Lesson::Nothing),
        (Transport, Request, None, Lesson::Nothing),
        (Transport, NetworkEdge, None, Lesson::Nothing),
        (RateLimit, NetworkEdge, None, Lesson::Nothing), // the wall in front, not the account
        (Timeout, Request, None, Lesson::Nothing),
        (Auth, Account, None, Lesson::LoginRefused),
        (Auth, AccountModel, None, Lesson::Nothing),
        (Crashed, Account, None, Lesson::Nothing),
    ];
    for (kind, scope, wait, want) in rows {
        let got = lesson(&failure(kind, scope.clone(), wait), now());
        assert_eq!(got, want, "{kind:?} {scope:?} {wait:?}");
    }
}

fn sub() -> SubscriptionId {
    SubscriptionId::new("a")
}

#[test]
fn what_fails_while_it_cools_does_not_cool_longer() {
    let mut coolings = Coolings::default();
    for second in 0..60 {
        let lesson = Lesson::Cools(Reach::Account, after(second + 60));
        coolings.learn(&sub(), "m", lesson, after(second));
        assert!(coolings.is_cooling(&sub(), "m", after(second)));
    }
    assert!(!coolings.is_cooling(&sub(), "m", after(60)));
}

#[test]
fn a_model_cools_alone_and_an_account_with_all_of_its_models() {
    let mut coolings = Coolings::default();
    coolings.learn(&sub(), "m", Lesson::Cools(Reach::Model, after(60)), now());
    assert!(coolings.is_cooling(&sub(), "m", now()));
    assert!(!coolings.is_cooling(&sub(), "n", now()));
    coolings.learn(&sub(), "m", Lesson::Cools(Reach::Account, after(60)), now());
    assert!(coolings.is_cooling(&sub(), "n", now()));
    coolings.served(&sub(), "n");
    assert!(!coolings.is_cooling(&sub(), "n", now()));
    assert!(
        coolings.is_cooling(&sub(), "m", now()),
        "another model was served, this one was not"
    );
}

#[test]
fn money_comes_back_by_being_served_and_by_nothing_else() {
    let mut coolings = Coolings::default();
    coolings.learn(&sub(), "m", Lesson::Unfunded(Reach::Account), now());
    assert!(coolings.set_aside(&sub(), "m", after(599)));
    assert!(
        !coolings.set_aside(&sub(), "m", after(600)),
        "due: one turn asks"
    );
    assert!(
        coolings.set_aside(&sub(), "m", after(600)),
        "and no other beside it"
    );
    coolings.learn(&sub(), "m", Lesson::Unfunded(Reach::Account), after(601));
    assert!(coolings.set_aside(&sub(), "m", after(1_199)));
    assert!(!coolings.set_aside(&sub(), "m", after(1_200)));
    coolings.learn(
        &sub(),
        "m",
        Lesson::Cools(Reach::Account, after(9_000)),
        after(1_201),
    );
    assert!(coolings.is_cooling(&sub(), "m", after(1_201)));
    coolings.served(&sub(), "m");
    assert_eq!(coolings, Coolings::default());
}

proptest! {
    /// No guess is longer than a minute, no stated wait is shortened, and nothing lies before now.
    #[test]
    fn waits_are_sane(kind in 0usize..4, wait in proptest::option::of(-10i64..1_000_000), seed: u64, retries in 0u32..4, alone: bool) {
        let kinds = [RateLimit, Overloaded, Transport, UpstreamRateLimit];
        let failure = failure(kinds[kind], Burst, wait);
        let trouble = Trouble { retries, others_left: !alone, ..trouble(&failure) };
        if let WhatNow::Again(at) = what_now(&trouble, seed, now()) {
            match wait.filter(|wait| *wait > 0) {
                Some(wait) => prop_assert_eq!(at, after(wait)),
                None => prop_assert!(at > now() && at <= after(60)),
            }
        }
    }
}
