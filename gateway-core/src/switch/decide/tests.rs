//! Rows beside the contract's cases: the places where two rules meet.

use jiff::Timestamp;

use super::*;
use crate::switch::facts::Burn;
use crate::switch::testing::{HOUR_S, at, base, now, reading, refused};
use crate::usage::{Reading, ReadingSource};

fn after_refusal(facts: &Facts, report: &LimitReport) -> Decision {
    limit_failure(facts, LimitClass::UsageLimit, report, now()).decision
}

fn waits_until(
    reading: impl IntoIterator<Item = Reading>,
    report: &LimitReport,
) -> Option<Timestamp> {
    let mut facts = base();
    facts.chain.clear();
    facts.readings = reading.into_iter().collect();
    match after_refusal(&facts, report) {
        Decision::Wait(_, until) => until,
        Decision::Hold(HoldReason::ResetUnknown) => None,
        other => panic!("{other:?}"),
    }
}

fn session(used: f64, resets_in: Option<i64>, age: i64) -> Reading {
    Reading {
        resets_at: resets_in.map(at),
        observed_at: Some(at(-age)),
        ..reading("claude", "five_hour", used)
    }
}

fn week(used: f64, resets_in: Option<i64>) -> Reading {
    Reading {
        resets_at: resets_in.map(at),
        ..reading("claude", "seven_day", used)
    }
}

fn unnamed(resets_in: Option<i64>) -> LimitReport {
    LimitReport {
        window: None,
        resets_at: resets_in.map(at),
        ..refused()
    }
}

fn named(resets_in: Option<i64>) -> LimitReport {
    LimitReport {
        resets_at: resets_in.map(at),
        ..refused()
    }
}

#[test]
fn n13_until_when_a_refusal_holds() {
    let (hour, day) = (HOUR_S, 24 * HOUR_S);
    #[rustfmt::skip]
    let rows = [
        ("the report's reset outranks the reading's", vec![session(100.0, Some(2 * hour), 60)], named(Some(3 * hour)), Some(3 * hour)),
        ("unless it has passed", vec![session(100.0, Some(2 * hour), 60)], named(Some(-1)), Some(2 * hour)),
        ("or is now", vec![session(100.0, Some(2 * hour), 60)], named(Some(0)), Some(2 * hour)),
        ("or is not to be believed", vec![session(100.0, Some(2 * hour), 60)], named(Some(367 * day)), Some(2 * hour)),
        ("an old reading's reset still counts", vec![session(20.0, Some(2 * hour), 9_000)], named(None), Some(2 * hour)),
        ("a passed one does not", vec![session(100.0, Some(-5), 60)], named(None), None),
        ("the fullest fresh copy speaks, not the newest", vec![session(99.0, Some(2 * hour), 90), session(10.0, Some(4 * hour), 5)], named(None), Some(2 * hour)),
        ("of equally full ones the newest", vec![session(99.0, Some(2 * hour), 90), session(99.0, Some(4 * hour), 5)], named(None), Some(4 * hour)),
        ("another full window holds longer", vec![session(50.0, Some(2 * hour), 60), week(100.0, Some(3 * day))], named(None), Some(3 * day)),
        ("a full window without a reset: unknown", vec![session(50.0, Some(2 * hour), 60), week(100.0, None)], named(None), None),
        ("nothing known but the report", vec![], named(Some(2 * hour)), Some(2 * hour)),
        ("unnamed, one is full", vec![session(100.0, Some(2 * hour), 60), week(70.0, Some(3 * day))], unnamed(None), Some(2 * hour)),
        ("unnamed, none is full: the fullest", vec![session(60.0, Some(2 * hour), 60), week(70.0, Some(3 * day))], unnamed(None), Some(3 * day)),
        ("unnamed, the report's reset speaks for the only one", vec![session(100.0, Some(5 * hour), 60)], unnamed(Some(2 * hour)), Some(2 * hour)),
        ("unnamed, two are full: the later one", vec![session(100.0, Some(2 * hour), 60), week(100.0, Some(3 * day))], unnamed(Some(hour)), Some(3 * day)),
        ("unnamed, two are full, one without a reset", vec![session(100.0, None, 60), week(100.0, Some(3 * day))], unnamed(Some(2 * hour)), Some(3 * day)),
        ("unnamed, only stale readings", vec![session(100.0, Some(2 * hour), 601)], unnamed(None), None),
        ("nothing known at all", vec![], unnamed(None), None),
    ];
    for (name, readings, report, want) in rows {
        assert_eq!(waits_until(readings, &report), want.map(at), "{name}");
    }
}

#[test]
fn n14_what_is_nearly_gone_decides_about_moving_not_about_waiting() {
    let day = 24 * HOUR_S;
    #[rustfmt::skip]
    let rows = [
        ("nearly gone", 95.0, Some(4 * day), true),
        ("not quite", 94.9, Some(4 * day), false),
        ("nearly gone, nobody knows until when", 96.0, None, true),
        ("nearly gone, back in minutes as well", 96.0, Some(590), false),
    ];
    for (name, used, resets_in, moves) in rows {
        let mut facts = base();
        facts.readings[0] = session(100.0, Some(300), 60);
        facts.readings.push(week(used, resets_in));
        let want = match moves {
            true => Decision::Switch(SwitchReason::Exhausted, 0),
            false => Decision::Wait(WaitReason::ResetImminent, Some(at(300))),
        };
        assert_eq!(after_refusal(&facts, &refused()), want, "{name}");
        facts.chain.clear();
        let reason = if moves {
            WaitReason::NoCandidate
        } else {
            WaitReason::ResetImminent
        };
        assert_eq!(
            after_refusal(&facts, &refused()),
            Decision::Wait(reason, Some(at(300))),
            "{name}"
        );
    }
}

#[test]
fn before_a_turn_a_prediction_yields_where_a_fact_does_not() {
    let predicted = |change: &dyn Fn(&mut Facts)| {
        let mut facts = base();
        facts.readings[0].used_pct = Some(84.0);
        facts.burn = vec![Burn {
            subscription: "claude".into(),
            window: "five_hour".to_owned(),
            samples: vec![Some(7.0); 3],
        }];
        change(&mut facts);
        before_turn(&facts, now()).decision
    };
    let switch = Decision::Switch(SwitchReason::Predicted, 0);
    assert_eq!(predicted(&|_| ()), switch);
    let undone = |ago: i64| predicted(&|facts| facts.thread.undone_at = Some(at(-ago)));
    assert_eq!(
        undone(24 * HOUR_S - 1),
        Decision::Proceed(ProceedReason::Undone)
    );
    assert_eq!(undone(24 * HOUR_S), switch);
    let restarted = predicted(&|facts| facts.restarted_at = Some(at(-59)));
    assert_eq!(restarted, Decision::Proceed(ProceedReason::NoFreshReading));
    assert_eq!(
        predicted(&|facts| facts.restarted_at = Some(at(-60))),
        switch
    );
    let soon = predicted(&|facts| facts.readings[0].resets_at = Some(at(600)));
    assert_eq!(soon, Decision::Proceed(ProceedReason::ResetImminent));
    let unknown = predicted(&|facts| facts.readings[0].resets_at = None);
    assert_eq!(unknown, switch, "nobody knows that it is near");
    let hard = predicted(&|facts| {
        facts.burn.clear();
        facts.readings[0].used_pct = Some(97.0);
    });
    assert_eq!(hard, Decision::Switch(SwitchReason::HardGuard, 0));
    let mixed = predicted(&|facts| facts.readings.push(week(98.0, Some(HOUR_S))));
    assert_eq!(mixed, switch, "one of the two had samples");
    let mark = predicted(&|facts| {
        facts.readings[0].status = WindowStatus::Rejected;
        facts.readings[0].source = ReadingSource::Failure;
        facts.readings[0].observed_at = Some(at(-9_000));
        facts.restarted_at = Some(at(-60));
        facts.thread.undone_at = Some(now());
    });
    assert_eq!(
        mark,
        Decision::Switch(SwitchReason::Exhausted, 0),
        "a mark survives age and restart"
    );
}

#[test]
fn in_the_middle_of_a_turn_the_first_question_that_answers_answers() {
    let answer = |change: &dyn Fn(&mut Facts, &mut LimitReport)| {
        let (mut facts, mut report) = (base(), refused());
        change(&mut facts, &mut report);
        mid_turn(&facts, &report, now()).decision
    };
    assert_eq!(answer(&|_, _| ()), Decision::Interrupt);
    let completed_and_paused = answer(&|facts, report| {
        report.turn_completed = true;
        facts.thread.status = ThreadStatus::Paused;
    });
    assert_eq!(
        completed_and_paused,
        Decision::Noop(NoopReason::TurnCompleted)
    );
    let interrupted = |ms| answer(&move |facts, _| facts.thread.interrupting_ms = Some(ms));
    assert_eq!(
        interrupted(30_000),
        Decision::Noop(NoopReason::Interrupting)
    );
    assert_eq!(
        interrupted(30_001),
        Decision::Hold(HoldReason::NoInterruptAck)
    );
    let spend = answer(&|_, report| report.window = Some("overage".to_owned()));
    assert_eq!(spend, Decision::Noop(NoopReason::NotApplicable));
    let unknown_window = answer(&|_, report| report.window = Some("lunar".to_owned()));
    assert_eq!(unknown_window, Decision::Interrupt);
    let served = answer(&|_, report| {
        report.status = WindowStatus::Warning;
        report.used_pct = Some(100.0);
    });
    assert_eq!(
        served,
        Decision::MarkGuard,
        "a warning at 100 is a served turn"
    );
    let overage = answer(&|facts, report| {
        report.overage_offered = true;
        facts.settings.overage_allowed = true;
        facts.thread.approval_pending = true;
    });
    assert_eq!(overage, Decision::Noop(NoopReason::Overage));
}
