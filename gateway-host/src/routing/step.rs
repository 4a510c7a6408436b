//! One step: the row is read, the facts are gathered, the machine decides, and the new state is written together with its
//! audit rows and promises. Only what was written is then carried out. Whoever lost a race decides again on what is true now.

use gateway_core::switch::Rejection;
use gateway_core::switch::facts::Facts;
use gateway_core::switch::machine::{
    self, Audit, AuditKind, Banner, Effect, Event, Machine, Place,
};
use jiff::Timestamp;

use super::facts::{Subject, gather};
use crate::effects::Effects;
use crate::store::StoreError;
use crate::store::routing::{AuditRow, Promise, Replay, RoutingRow, RoutingStep, Seat};

/// How often a step is tried anew when others write at the same time. Each loss means that somebody else's step was kept.
const ROUNDS: usize = 256;

/// A step that was kept.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub row: RoutingRow,
    pub effects: Vec<Effect>,
    pub facts: Facts,
    pub at: Timestamp,
}

impl Told {
    /// The banner of the step in words; `None` = it has none.
    pub(super) fn banner(&self) -> Option<String> {
        let banner = self.effects.iter().find_map(|effect| match effect {
            Effect::Banner(banner) => Some(banner),
            _ => None,
        })?;
        let mut facts = self.facts.clone();
        facts
            .thread
            .auto_switches
            .clone_from(&self.row.machine.switches);
        let zone = jiff::tz::TimeZone::system();
        let place = &self.row.machine.place;
        Some(gateway_core::banner::text(
            banner,
            &self.rejected(),
            place,
            &facts,
            &zone,
            self.at,
        ))
    }

    /// Who was considered and not taken.
    pub(super) fn rejected(&self) -> Vec<Rejection> {
        let of = |effect: &Effect| match effect {
            Effect::Audit(audit) => audit.rejected.clone(),
            _ => Vec::new(),
        };
        self.effects.iter().flat_map(of).collect()
    }
}

/// Tells the machine of a conversation one event. `first` = what it runs on if routing never looked at it before.
pub(super) async fn tell(
    seat: &Seat,
    subject: &Subject<'_>,
    first: &Place,
    event: &Event,
    effects: &Effects,
) -> Result<Told, StoreError> {
    for _ in 0..ROUNDS {
        let known = effects.store.routing(subject.conversation).await?;
        let known = known.unwrap_or_else(|| RoutingRow {
            conversation: subject.conversation.clone(),
            revision: 0,
            machine: Machine::new(subject.conversation.as_str(), first.clone()),
            seat: seat.clone(),
            owner: effects.instance.clone(),
        });
        let (facts, promises_seen) = gather(subject, &known.machine.place, effects).await?;
        let now = effects.now();
        let (machine, done) = machine::step(&known.machine, event, &facts, now);
        let row = RoutingRow {
            machine,
            seat: seat.clone(),
            owner: effects.instance.clone(),
            ..known.clone()
        };
        if row.machine == known.machine && done.is_empty() {
            return Ok(Told {
                row: known,
                effects: done,
                facts,
                at: now,
            });
        }
        let step = RoutingStep {
            audit: audit(&known, &row, event, &done, &facts, now),
            reserve: reserved(&done, now),
            promises_seen,
            release: freed(&done, false),
            begun: freed(&done, true),
            at: now,
            row,
        };
        if effects.store.record_step(&step).await? {
            let row = RoutingRow {
                revision: known.revision + 1,
                ..step.row
            };
            return Ok(Told {
                row,
                effects: done,
                facts,
                at: now,
            });
        }
    }
    Err(StoreError::Write(
        "this conversation's routing was changed again and again meanwhile".to_owned(),
    ))
}

/// One row per audited thing; a turn that simply starts leaves one as well, so that every turn can be asked "why there?".
fn audit(
    before: &RoutingRow,
    after: &RoutingRow,
    event: &Event,
    done: &[Effect],
    facts: &Facts,
    at: Timestamp,
) -> Vec<AuditRow> {
    let started = matches!(event, Event::TurnRequested { .. })
        && done
            .iter()
            .any(|effect| matches!(effect, Effect::StartTurn { .. }));
    let plain = started.then(|| Audit {
        kind: AuditKind::Decided,
        episode: None,
        attempt: 0,
        rejected: Vec::new(),
    });
    let audited = done.iter().filter_map(|effect| match effect {
        Effect::Audit(audit) => Some(audit.clone()),
        _ => None,
    });
    plain
        .into_iter()
        .chain(audited)
        .map(|audit| AuditRow {
            seq: 0,
            at,
            conversation: after.conversation.clone(),
            turn: after.seat.pending.clone(),
            kind: audit.kind,
            episode: audit.episode,
            attempt: audit.attempt,
            replay: Replay {
                machine: before.machine.clone(),
                event: event.clone(),
                facts: facts.clone(),
            },
        })
        .collect()
}

fn reserved(done: &[Effect], at: Timestamp) -> Vec<Promise> {
    let promise = |effect: &Effect| match effect {
        Effect::Reserve { id, on, pct } => Some(Promise {
            id: id.clone(),
            subscription: on.clone(),
            pct: *pct,
            at,
            begun_at: None,
        }),
        _ => None,
    };
    done.iter().filter_map(promise).collect()
}

/// What a step frees: room of a switch that arrived is being burnt now, room of any other is free again.
fn freed(done: &[Effect], wanted_arrived: bool) -> Vec<String> {
    let arrived = done
        .iter()
        .any(|effect| matches!(effect, Effect::Banner(Banner::Continued { .. })));
    let id = |effect: &Effect| match effect {
        Effect::Release { id } => Some(id.clone()),
        _ => None,
    };
    match arrived == wanted_arrived {
        true => done.iter().filter_map(id).collect(),
        false => Vec::new(),
    }
}
