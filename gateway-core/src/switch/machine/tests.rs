mod history;

use std::collections::HashSet;

use super::*;
use crate::switch::facts::{Facts, Reservation};
use crate::switch::testing::{HOUR_S, at, base, now, refused};

fn place(id: &str, model: &str) -> Place {
    Place {
        subscription: id.into(),
        model: Some(model.to_owned()),
    }
}

fn machine() -> Machine {
    Machine::new("thread", place("claude", "opus"))
}

/// Takes the events in turn; returns the machine and all effects.
fn play(machine: Machine, world: &Facts, events: &[(i64, Event)]) -> (Machine, Vec<Effect>) {
    let mut all = Vec::new();
    let mut machine = machine;
    for (seconds, event) in events {
        let (next, effects) = step(&machine, event, world, at(*seconds));
        machine = next;
        all.extend(effects);
    }
    (machine, all)
}

fn run(id: &str) -> TurnId {
    TurnId::new(id)
}

fn failed() -> RunEnd {
    RunEnd::Failed {
        class: LimitClass::UsageLimit,
        report: refused(),
    }
}

fn room() -> Facts {
    let mut facts = base();
    facts.readings[0].used_pct = Some(50.0);
    facts
}

/// A thread whose turn `a` runs on Claude.
fn started(world: &Facts) -> Machine {
    let (machine, effects) = play(
        machine(),
        world,
        &[(0, Event::TurnRequested { run: run("a") })],
    );
    assert_eq!(
        effects,
        [Effect::StartTurn {
            run: run("a"),
            on: place("claude", "opus")
        }]
    );
    machine
}

fn episode_of(machine: &Machine) -> (String, u32) {
    let episode = machine.state.episode().unwrap();
    (episode.id.clone(), episode.attempt)
}

/// Refused, decided and switched to Codex, which has not said anything yet.
fn verifying() -> Machine {
    let (machine, _) = play(
        started(&room()),
        &base(),
        &[(
            0,
            Event::TurnEnded {
                run: run("a"),
                end: failed(),
            },
        )],
    );
    let (episode, _) = episode_of(&machine);
    let (machine, effects) = play(machine, &base(), &[(1, Event::Checked { episode })]);
    assert!(
        matches!(machine.state, State::Switching { .. }),
        "{machine:?}"
    );
    let switch = effects.iter().find_map(|effect| match effect {
        Effect::Switch { id, run, to, .. } => Some((id.clone(), run.clone(), to.clone())),
        _ => None,
    });
    let (episode, attempt) = episode_of(&machine);
    assert_eq!(
        switch.unwrap(),
        (
            format!("quota-switch:{episode}:1"),
            run(&format!("quota-continue:{episode}:1")),
            place("codex", "gpt")
        )
    );
    play(
        machine,
        &base(),
        &[(2, Event::SwitchAccepted { episode, attempt })],
    )
    .0
}

#[test]
fn a_refused_turn_goes_on_elsewhere_and_counts_when_it_answers() {
    let machine = verifying();
    assert_eq!(machine.switches, []);
    let continuation = machine.run.clone().unwrap();
    let (machine, effects) = play(
        machine,
        &base(),
        &[(3, Event::FirstOutput { run: continuation })],
    );
    assert_eq!(machine.state, State::Continued);
    assert_eq!(machine.place, place("codex", "gpt"));
    assert_eq!(machine.origin, Some(place("claude", "opus")));
    assert_eq!(machine.switches, [at(3)]);
    let audit = |effect: &Effect| {
        matches!(
            effect,
            Effect::Audit(Audit {
                kind: AuditKind::Switched,
                ..
            })
        )
    };
    assert_eq!(effects.iter().filter(|effect| audit(effect)).count(), 1);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Release { .. }))
    );
    assert!(effects.contains(&Effect::Banner(Banner::Continued {
        from: place("claude", "opus"),
        to: place("codex", "gpt"),
        reason: SwitchReason::Exhausted,
    })));
}

#[test]
fn a_start_that_fails_costs_no_switch_and_is_not_tried_again() {
    let (machine, _) = play(
        started(&room()),
        &base(),
        &[(
            0,
            Event::TurnEnded {
                run: run("a"),
                end: failed(),
            },
        )],
    );
    let (episode, _) = episode_of(&machine);
    let check = Event::Checked {
        episode: episode.clone(),
    };
    let fail = Event::SwitchFailed {
        episode,
        attempt: 1,
    };
    let (machine, effects) = play(
        machine,
        &base(),
        &[(1, check.clone()), (2, fail), (3, check)],
    );
    assert!(
        matches!(machine.state, State::WaitingReset { .. }),
        "{machine:?}"
    );
    assert_eq!(machine.switches, []);
    let switches = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Switch { .. }));
    assert_eq!(switches.count(), 1);
    let (_, again) = play(machine, &base(), &[(3 * HOUR_S + 91, Event::Tick)]);
    assert!(again.iter().any(
        |effect| matches!(effect, Effect::Resume { on, .. } if *on == place("claude", "opus"))
    ));
}

#[test]
fn a_new_place_that_is_out_as_well_counts_and_is_tried() {
    let machine = verifying();
    let continuation = machine.run.clone().unwrap();
    let mut world = base();
    world.readings[1].used_pct = Some(100.0);
    let ended = Event::TurnEnded {
        run: continuation,
        end: RunEnd::Failed {
            class: LimitClass::UsageLimit,
            report: LimitReport {
                window: None,
                ..refused()
            },
        },
    };
    let (machine, _) = play(machine, &world, &[(3, ended)]);
    assert_eq!(machine.switches, [at(3)]);
    let episode = machine.state.episode().unwrap();
    assert_eq!(episode.tried, ["claude".into(), "codex".into()]);
    let check = Event::Checked {
        episode: episode.id.clone(),
    };
    let (machine, _) = play(machine, &world, &[(4, check)]);
    assert!(
        matches!(machine.state, State::WaitingReset { .. }),
        "{machine:?}"
    );
}

#[test]
fn a_limit_in_the_middle_drains_then_aborts_then_interrupts_then_decides() {
    let mut world = base();
    world.thread.tool_in_flight_ms = Some(0);
    let reported = Event::LimitReported {
        run: run("a"),
        report: refused(),
    };
    let (machine, _) = play(started(&room()), &world, &[(0, reported)]);
    assert!(
        matches!(machine.state, State::Draining { .. }),
        "{machine:?}"
    );
    let (machine, effects) = play(machine, &world, &[(120, Event::Tick)]);
    assert!(effects.is_empty() && matches!(machine.state, State::Draining { .. }));
    let (machine, effects) = play(machine, &world, &[(121, Event::Tick)]);
    assert!(effects.contains(&Effect::AbortTool { run: run("a") }));
    assert!(effects.contains(&Effect::Interrupt { run: run("a") }));
    let (machine, effects) = play(machine, &world, &[(151, Event::Tick)]);
    assert!(effects.is_empty() && machine.running);
    let (held, _) = play(machine.clone(), &world, &[(152, Event::Tick)]);
    assert!(matches!(
        held.state,
        State::Held {
            reason: HoldReason::NoInterruptAck,
            ..
        }
    ));
    let (still, effects) = play(
        held.clone(),
        &world,
        &[(160, Event::TurnRequested { run: run("b") })],
    );
    assert_eq!((&still, effects.len()), (&held, 0), "never a second writer");
    for machine in [machine, held] {
        let (machine, effects) = play(
            machine,
            &world,
            &[(170, Event::InterruptAcked { run: run("a") })],
        );
        assert!(matches!(machine.state, State::Deciding { .. }) && !machine.running);
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::Check { .. }))
        );
    }
}

#[test]
fn a_tool_that_ends_in_time_is_not_aborted() {
    let mut world = base();
    world.thread.tool_in_flight_ms = Some(0);
    let reported = Event::LimitReported {
        run: run("a"),
        report: refused(),
    };
    let (machine, _) = play(started(&room()), &world, &[(0, reported)]);
    let ended = Event::BoundaryReached { run: run("a") };
    let (machine, effects) = play(machine, &world, &[(10, ended.clone())]);
    assert!(effects.is_empty(), "another one is still open");
    world.thread.tool_in_flight_ms = None;
    let (machine, effects) = play(machine, &world, &[(20, ended)]);
    assert!(matches!(machine.state, State::Interrupting { .. }));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::AbortTool { .. }))
    );
}

#[test]
fn a_reset_in_minutes_is_waited_for_in_place() {
    let mut world = base();
    world.readings[0].resets_at = Some(at(300));
    let reported = Event::LimitReported {
        run: run("a"),
        report: refused(),
    };
    let (machine, effects) = play(started(&room()), &world, &[(0, reported)]);
    assert!(matches!(machine.state, State::WaitingReset { .. }) && machine.running);
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Interrupt { .. }))
    );
    let (machine, effects) = play(machine, &world, &[(391, Event::Tick)]);
    assert_eq!(machine.state, State::Normal);
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Resume { .. })),
        "it never stopped"
    );
}

/// Waits for Claude's session in three hours.
fn waiting() -> (Machine, Facts) {
    let mut world = base();
    world.chain.clear();
    let (machine, _) = play(
        started(&room()),
        &world,
        &[(
            0,
            Event::TurnEnded {
                run: run("a"),
                end: failed(),
            },
        )],
    );
    let (episode, _) = episode_of(&machine);
    (
        play(machine, &world, &[(1, Event::Checked { episode })]).0,
        world,
    )
}

#[test]
fn a_wait_ends_once_at_the_reset_with_the_threads_own_jitter() {
    let (machine, world) = waiting();
    let State::WaitingReset { wake_at, .. } = machine.state else {
        panic!("{machine:?}")
    };
    let late = wake_at.as_second() - at(3 * HOUR_S).as_second();
    assert!((30..=90).contains(&late), "{late}");
    let wake = wake_at.as_second() - now().as_second();
    let early = (wake - 1, Event::Tick);
    let (machine, effects) = play(
        machine,
        &world,
        &[early, (3 * HOUR_S + 1, Event::NewReading)],
    );
    assert!(effects.is_empty(), "a herd does not wake at once");
    let (_, effects) = play(
        machine,
        &world,
        &[(wake + 1, Event::Tick), (wake + 2, Event::Tick)],
    );
    let resumes = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Resume { .. }));
    assert_eq!(resumes.count(), 1);
}

#[test]
fn a_moved_reset_is_armed_anew_and_an_early_one_ends_the_wait() {
    let (machine, mut world) = waiting();
    world.readings[0].resets_at = Some(at(4 * HOUR_S));
    let (machine, effects) = play(machine, &world, &[(30, Event::NewReading)]);
    assert!(
        matches!(machine.state, State::WaitingReset { until: Some(until), .. } if until == at(4 * HOUR_S))
    );
    assert!(matches!(effects[..], [Effect::WakeAt(_)]));
    world.readings[0].used_pct = Some(3.0);
    let (machine, effects) = play(machine, &world, &[(60, Event::NewReading)]);
    assert_eq!(machine.state, State::Normal);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Resume { .. }))
    );
}

#[test]
fn the_persons_own_word_ends_a_wait_and_no_wake_up_comes_later() {
    let rows = [
        Event::TurnRequested { run: run("b") },
        Event::Selected {
            place: place("codex", "gpt"),
        },
        Event::Archived,
        Event::Paused(true),
    ];
    for event in rows {
        let (machine, world) = waiting();
        let (machine, effects) = play(machine, &world, &[(10, event.clone())]);
        assert!(effects.contains(&Effect::CancelWake), "{event:?}");
        let (_, effects) = play(
            machine,
            &world,
            &[(5 * HOUR_S, Event::Tick), (5 * HOUR_S, Event::NewReading)],
        );
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::Resume { .. })),
            "{event:?}"
        );
    }
}

#[test]
fn a_hold_for_want_of_a_reset_looks_again_at_growing_intervals() {
    let mut world = base();
    world.chain.clear();
    world.readings[0].resets_at = None;
    let (machine, _) = play(
        started(&room()),
        &world,
        &[(
            0,
            Event::TurnEnded {
                run: run("a"),
                end: failed(),
            },
        )],
    );
    let (episode, _) = episode_of(&machine);
    let (mut machine, _) = play(machine, &world, &[(0, Event::Checked { episode })]);
    let mut waits = Vec::new();
    let mut clock = 0;
    for _ in 0..6 {
        let State::Held {
            wake_at: Some(wake_at),
            ..
        } = machine.state
        else {
            panic!("{machine:?}")
        };
        let next = wake_at.as_second() - now().as_second();
        waits.push((next - clock) / 60);
        clock = next;
        machine = play(machine, &world, &[(clock, Event::Tick)]).0;
    }
    assert_eq!(waits, [5, 15, 30, 60, 60, 60]);
}

#[test]
fn a_turn_predicted_not_to_fit_moves_first_and_runs_if_nobody_can_take_it() {
    let mut world = base();
    world.readings[0].used_pct = Some(98.0);
    let (parked, effects) = play(
        machine(),
        &world,
        &[(0, Event::TurnRequested { run: run("a") })],
    );
    assert!(matches!(parked.state, State::Deciding { .. }));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::StartTurn { .. }))
    );
    let (episode, _) = episode_of(&parked);
    let check = [(1, Event::Checked { episode })];
    let (machine, _) = play(parked.clone(), &world, &check);
    assert!(matches!(
        machine.state,
        State::Switching {
            reason: SwitchReason::HardGuard,
            ..
        }
    ));
    world.readings[1].used_pct = Some(96.0);
    let (machine, effects) = play(parked, &world, &check);
    assert_eq!(machine.state, State::Normal);
    assert_eq!(
        effects,
        [Effect::StartTurn {
            run: run("a"),
            on: place("claude", "opus")
        }]
    );
}

#[test]
fn switching_back_is_once_and_stops_predictions_for_a_day() {
    let machine = verifying();
    let continuation = machine.run.clone().unwrap();
    let (machine, _) = play(
        machine,
        &base(),
        &[
            (
                3,
                Event::FirstOutput {
                    run: continuation.clone(),
                },
            ),
            (
                4,
                Event::TurnEnded {
                    run: continuation,
                    end: RunEnd::Answered,
                },
            ),
        ],
    );
    let undo = Event::SwitchBack {
        command: "u".to_owned(),
    };
    let (machine, effects) = play(machine, &base(), &[(5, undo.clone())]);
    assert_eq!(
        (&machine.place, machine.undone_at),
        (&place("claude", "opus"), Some(at(5)))
    );
    assert_eq!(machine.switches, [at(3)], "the cap is not given back");
    assert!(effects.contains(&Effect::Banner(Banner::SwitchedBack {
        to: place("claude", "opus"),
        still_limited: true,
    })));
    let (again, effects) = play(machine.clone(), &base(), &[(6, undo)]);
    assert_eq!((again, effects.len()), (machine, 0));
}

#[test]
fn events_of_an_older_run_or_episode_change_nothing() {
    let machine = verifying();
    let (episode, attempt) = episode_of(&machine);
    let stale = [
        Event::TurnEnded {
            run: run("a"),
            end: failed(),
        },
        Event::LimitReported {
            run: run("a"),
            report: refused(),
        },
        Event::InterruptAcked { run: run("a") },
        Event::FirstOutput { run: run("a") },
        Event::Checked {
            episode: "other".to_owned(),
        },
        Event::SwitchFailed {
            episode: episode.clone(),
            attempt: attempt + 1,
        },
        Event::SwitchAccepted {
            episode: "other".to_owned(),
            attempt,
        },
        Event::Checked { episode },
    ];
    for event in stale {
        let (after, effects) = play(machine.clone(), &base(), &[(9, event.clone())]);
        assert_eq!((&after, effects.len()), (&machine, 0), "{event:?}");
    }
}

#[test]
fn g10_of_a_herd_of_a_hundred_six_switch_and_the_rest_waits() {
    let mut world = base();
    world.readings[1].used_pct = Some(60.0);
    world.expected_burn_pct = Some(5.0);
    let (mut switched, mut waiting, mut rows) = (0, 0, 0);
    for thread in 0..100 {
        let mut one = started(&room());
        one.thread = format!("thread-{thread}");
        let (one, _) = play(
            one,
            &world,
            &[(
                0,
                Event::TurnEnded {
                    run: run("a"),
                    end: failed(),
                },
            )],
        );
        let (episode, _) = episode_of(&one);
        let (one, effects) = play(one, &world, &[(0, Event::Checked { episode })]);
        rows += effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Audit(_)))
            .count();
        for effect in effects {
            if let Effect::Reserve { on, pct, .. } = effect {
                world.reservations.push(Reservation {
                    subscription: on,
                    pct,
                    at: Some(now()),
                });
            }
        }
        match one.state {
            State::Switching { .. } => switched += 1,
            State::WaitingReset { .. } => waiting += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((switched, waiting, rows), (6, 94, 100));
}

#[test]
fn jitter_is_the_threads_own_and_within_its_bounds() {
    let all: HashSet<_> = (0..200)
        .map(|at| jitter_ms(&format!("t{at}"), (30_000, 90_000)))
        .collect();
    assert!(all.iter().all(|ms| (30_000..=90_000).contains(ms)));
    assert!(all.len() > 150);
    assert_eq!(jitter_ms("t", (5, 5)), 5);
}
