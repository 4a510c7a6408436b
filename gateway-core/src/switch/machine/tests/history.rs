//! What holds over any history of events, with a restart after each and each delivered twice.

use std::collections::HashSet;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::switch::caps;
use crate::switch::facts::Selection;
use crate::switch::testing::{login, reading, regroup};
use crate::usage::{ReadingSource, WindowStatus};

/// The outside, as far as writers go: which run may be writing, and which switch is being started.
#[derive(Default)]
struct Outside {
    live: Option<TurnId>,
    starting: Option<TurnId>,
    ids: HashSet<String>,
    switches: Vec<Timestamp>,
}

impl Outside {
    /// Carries out what a step asked for, and checks that it may be asked for.
    fn act(&mut self, before: &Machine, effects: &[Effect], now: Timestamp) {
        for effect in effects {
            match effect {
                Effect::CancelSwitch { .. } => self.starting = None,
                Effect::StartTurn { run, .. } | Effect::Resume { run, .. } => {
                    assert!(
                        self.live.is_none() && self.starting.is_none(),
                        "I4: two writers"
                    );
                    self.live = Some(run.clone());
                }
                Effect::Switch {
                    id, run, from, to, ..
                } => {
                    assert!(
                        self.live.is_none() && self.starting.is_none(),
                        "I3, I4: {before:?}"
                    );
                    assert_ne!(from.subscription, to.subscription, "I2");
                    assert!(self.ids.insert(id.clone()), "I8: one switch per id");
                    self.starting = Some(run.clone());
                }
                Effect::Banner(Banner::Continued { .. }) => {
                    let row = |effect: &Effect| {
                        matches!(
                            effect,
                            Effect::Audit(Audit {
                                kind: AuditKind::Switched,
                                ..
                            })
                        )
                    };
                    assert!(effects.iter().any(row), "I10");
                    self.switches.push(now);
                    assert!(caps::counted(&self.switches, now) <= 3, "I5");
                }
                _ => {}
            }
        }
    }
}

fn any_world() -> impl Strategy<Value = Facts> {
    let level = || prop::sample::select(vec![10.0, 50.0, 98.0, 100.0]);
    let reset = || prop::sample::select(vec![None, Some(120), Some(3 * HOUR_S)]);
    (
        prop::array::uniform3((level(), reset())),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(windows, tool, approval)| {
            let mut facts = base();
            facts.logins.push(login("second", "claude"));
            facts.chain.push(Selection::new("second", Some("opus")));
            facts.chain.push(Selection::new("claude", Some("opus")));
            facts.thread.tool_in_flight_ms = tool.then_some(0);
            facts.thread.approval_pending = approval;
            facts.readings = ["claude", "codex", "second"]
                .into_iter()
                .zip(windows)
                .map(|(id, (used, resets_in))| {
                    let mut reading = reading(id, "five_hour", used);
                    reading.resets_at = resets_in.map(at);
                    reading.source = ReadingSource::Event;
                    reading
                })
                .collect();
            regroup(facts)
        })
}

fn awaits_ack(machine: &Machine) -> bool {
    matches!(
        machine.state,
        State::Interrupting { .. }
            | State::Held {
                reason: HoldReason::NoInterruptAck,
                ..
            }
    )
}

/// The event a history's number means now.
fn event(
    kind: u8,
    count: usize,
    machine: &Machine,
    outside: &Outside,
    old: &[Event],
) -> Option<Event> {
    let (episode, attempt) = machine
        .state
        .episode()
        .map(|episode| (episode.id.clone(), episode.attempt))
        .unwrap_or_default();
    let live = outside.live.clone();
    Some(match kind {
        0..=2 if live.is_none() && outside.starting.is_none() => Event::TurnRequested {
            run: run(&format!("r{count}")),
        },
        3 => Event::LimitReported {
            run: live?,
            report: refused(),
        },
        4 | 5 => Event::TurnEnded {
            run: live?,
            end: failed(),
        },
        6 => Event::TurnEnded {
            run: live?,
            end: RunEnd::Answered,
        },
        7 => Event::TurnEnded {
            run: live?,
            end: RunEnd::Stopped,
        },
        8 if awaits_ack(machine) => Event::InterruptAcked { run: live? },
        8 => Event::TurnEnded {
            run: live?,
            end: RunEnd::Stopped,
        },
        9..=12 => Event::Checked { episode },
        13..=15 => {
            outside.starting.as_ref()?;
            Event::SwitchAccepted { episode, attempt }
        }
        16 => {
            outside.starting.as_ref()?;
            Event::SwitchFailed { episode, attempt }
        }
        17 | 18 => Event::FirstOutput { run: live? },
        19 => Event::BoundaryReached { run: live? },
        20 | 21 => Event::NewReading,
        22 => Event::SwitchBack {
            command: format!("u{count}"),
        },
        23 => Event::Paused(count.is_multiple_of(2)),
        24 => Event::Selected {
            place: place("codex", "gpt"),
        },
        25 | 26 => old.get(count * 7 % old.len().max(1))?.clone(),
        27 => Event::LimitReported {
            run: live?,
            report: LimitReport {
                status: WindowStatus::Warning,
                ..refused()
            },
        },
        _ => Event::Tick,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    // I2 to I5, I8, I10: over any history, with a restart after every event and every event delivered twice.
    #[test]
    fn whatever_happens_one_writer_one_switch_per_id_and_no_more_than_the_cap(
        history in prop::collection::vec((0_u8..32, 0_i64..200, any_world()), 1..50),
    ) {
        let mut machine = machine();
        let mut outside = Outside::default();
        let mut old: Vec<Event> = Vec::new();
        let mut clock = 0;
        for (count, (kind, passes, world)) in history.into_iter().enumerate() {
            clock += passes;
            let Some(event) = event(kind, count, &machine, &outside, &old) else { continue };
            match &event {
                Event::TurnEnded { run, .. } | Event::InterruptAcked { run } if outside.live.as_ref() == Some(run) => outside.live = None,
                Event::SwitchAccepted { .. } => {
                    let is_current = machine.state.episode().is_some_and(|episode| matches!(&event, Event::SwitchAccepted { episode: id, attempt } if episode.id == *id && episode.attempt == *attempt));
                    if is_current && outside.starting.is_some() { outside.live = outside.starting.take(); }
                }
                Event::SwitchFailed { .. } => {
                    let is_current = machine.state.episode().is_some_and(|episode| matches!(&event, Event::SwitchFailed { episode: id, attempt } if episode.id == *id && episode.attempt == *attempt));
                    if is_current { outside.starting = None; }
                }
                _ => {}
            }
            let (next, effects) = step(&machine, &event, &world, at(clock));
            outside.act(&machine, &effects, at(clock));
            let stored = serde_json::to_string(&next).unwrap();
            let restarted: Machine = serde_json::from_str(&stored).unwrap();
            prop_assert_eq!(&restarted, &next);
            let (twice, again) = step(&restarted, &event, &world, at(clock));
            prop_assert_eq!(&twice, &next, "{:?} twice", event);
            prop_assert!(again.is_empty(), "{:?} twice: {:?}", event, again);
            prop_assert_eq!(next.running, outside.live.is_some(), "{:?}", next);
            machine = next;
            old.push(event);
        }
    }

    // I9: with routing off a thread does nothing but run its turns.
    #[test]
    fn i9_off_nothing_is_ever_switched_waited_for_or_shown(history in prop::collection::vec((0_u8..32, any_world()), 1..40)) {
        let mut machine = machine();
        let mut outside = Outside::default();
        for (count, (kind, mut world)) in history.into_iter().enumerate() {
            world.settings.enabled = false;
            let Some(event) = event(kind, count, &machine, &outside, &[]) else { continue };
            if let Event::TurnEnded { .. } | Event::InterruptAcked { .. } = event { outside.live = None; }
            if let Event::InterruptAcked { .. } | Event::Paused(_) = event { continue }
            let (next, effects) = step(&machine, &event, &world, now());
            outside.act(&machine, &effects, now());
            prop_assert!(effects.iter().all(|effect| matches!(effect, Effect::StartTurn { .. } | Effect::Check { .. })), "{effects:?}");
            machine = next;
        }
    }
}
