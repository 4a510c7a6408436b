//! Steps, audit, promises and money: what must hold on every store.

use gateway_core::ids::{ConversationId, TurnId};
use gateway_core::spend::{Overspend, SpendCaps, Usd};
use gateway_core::switch::facts::{Burn, Facts, LimitClass, LimitReport, LoginState, Selection};
use gateway_core::switch::machine::{
    AuditKind, Effect, Event, Machine, Place as MachinePlace, RunEnd, State, step,
};
use gateway_core::usage::identity::{Login, QuotaGroups};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::{SignedDuration, Timestamp};
use providers::Permissions;

use super::super::memory::MemoryStore;
use super::super::routing::{AuditRow, Promise, Replay, RoutingRow, RoutingStep, Seat};
use super::Place;
use super::samples::{at, lane};

fn row(name: &str) -> RoutingRow {
    let place = MachinePlace {
        subscription: "claude".into(),
        model: Some("opus".to_owned()),
    };
    let lane = lane(name);
    RoutingRow {
        conversation: ConversationId::new(name),
        revision: 0,
        machine: Machine::new(name, place),
        seat: Seat {
            profile: lane.profile,
            session: lane.session,
            target: gateway_core::message::ReplyTarget {
                platform: "console".to_owned(),
                address: "local".to_owned(),
            },
            permissions: Permissions::ReadOnly,
            pending: None,
        },
        owner: "owner".to_owned(),
    }
}

fn step_of(row: &RoutingRow) -> RoutingStep {
    RoutingStep {
        row: row.clone(),
        audit: Vec::new(),
        reserve: Vec::new(),
        promises_seen: 0,
        release: Vec::new(),
        begun: Vec::new(),
        at: at(0),
    }
}

fn audit(name: &str, turn: &str, kind: AuditKind, at: Timestamp) -> AuditRow {
    let row = row(name);
    AuditRow {
        seq: 0,
        at,
        conversation: row.conversation,
        turn: Some(TurnId::new(turn)),
        kind,
        episode: Some("e".to_owned()),
        attempt: 1,
        replay: Replay {
            machine: row.machine,
            event: Event::Tick,
            facts: world(),
        },
    }
}

fn promise(id: &str) -> Promise {
    Promise {
        id: id.to_owned(),
        subscription: "codex".into(),
        pct: 5.0,
        at: at(0),
        begun_at: None,
    }
}

async fn stored(place: &Place, name: &str) -> RoutingRow {
    let found = place
        .store()
        .await
        .routing(&ConversationId::new(name))
        .await;
    found.unwrap().expect("it was written")
}

pub(super) async fn a_step_is_whole_or_nothing(place: &Place) {
    let first = RoutingStep {
        audit: vec![audit("a", "t1", AuditKind::Waited, at(0))],
        ..step_of(&row("a"))
    };
    assert!(place.store().await.record_step(&first).await.unwrap());
    let known = stored(place, "a").await;
    assert_eq!((known.revision, &known.machine), (1, &first.row.machine));
    // A worker that read before the first step loses, and nothing of its step is there.
    let stale = RoutingStep {
        audit: vec![audit("a", "t1", AuditKind::Switched, at(0))],
        reserve: vec![promise("p")],
        ..step_of(&row("a"))
    };
    assert!(!place.store().await.record_step(&stale).await.unwrap());
    let store = place.store().await;
    assert_eq!(store.audit_of(&known.conversation).await.unwrap().len(), 1);
    assert_eq!(store.promises().await.unwrap().0, []);
    assert_eq!(store.switches_since(at(-1)).await.unwrap(), []);
}

pub(super) async fn room_is_never_promised_on_old_knowledge(place: &Place) {
    let (_, seen) = place.store().await.promises().await.unwrap();
    let reserving = |name: &str, id: &str| RoutingStep {
        reserve: vec![promise(id)],
        promises_seen: seen,
        ..step_of(&row(name))
    };
    let (one, two) = (reserving("a", "p1"), reserving("b", "p2"));
    assert!(place.store().await.record_step(&one).await.unwrap());
    assert!(!place.store().await.record_step(&two).await.unwrap());
    assert_eq!(
        place
            .store()
            .await
            .routing(&two.row.conversation)
            .await
            .unwrap(),
        None
    );
    let (known, seen) = place.store().await.promises().await.unwrap();
    assert_eq!(known, [promise("p1")]);
    let two = RoutingStep {
        promises_seen: seen,
        ..two
    };
    assert!(place.store().await.record_step(&two).await.unwrap());
    let end = RoutingStep {
        release: vec!["p1".to_owned()],
        begun: vec!["p2".to_owned(), "unknown".to_owned()],
        at: at(1),
        ..step_of(&stored(place, "b").await)
    };
    assert!(place.store().await.record_step(&end).await.unwrap());
    let (left, _) = place.store().await.promises().await.unwrap();
    let begun = Promise {
        begun_at: Some(at(1)),
        ..promise("p2")
    };
    assert_eq!(left, [begun]);
}

pub(super) async fn the_audit_is_in_order_and_tells_the_turn(place: &Place) {
    let first = RoutingStep {
        audit: vec![
            audit("a", "t1", AuditKind::Decided, at(0)),
            audit("a", "t1", AuditKind::Switched, at(1)),
        ],
        ..step_of(&row("a"))
    };
    assert!(place.store().await.record_step(&first).await.unwrap());
    let second = RoutingStep {
        audit: vec![audit("b", "t2", AuditKind::Switched, at(2))],
        ..step_of(&row("b"))
    };
    assert!(place.store().await.record_step(&second).await.unwrap());
    let store = place.store().await;
    let all = store.audit_of(&ConversationId::new("a")).await.unwrap();
    let told: Vec<_> = all.iter().map(|row| (row.seq, row.kind)).collect();
    assert_eq!(told, [(1, AuditKind::Decided), (2, AuditKind::Switched)]);
    assert_eq!(all[0].replay, first.audit[0].replay);
    let turn = TurnId::new("t1");
    assert_eq!(store.audit_of_turn(Some(&turn)).await.unwrap(), all);
    let newest = store.audit_of_turn(None).await.unwrap();
    assert_eq!(newest.len(), 1);
    assert_eq!(newest[0].seq, 3);
    assert_eq!(store.switches_since(at(1)).await.unwrap(), [at(1), at(2)]);
    assert_eq!(store.switches_since(at(2)).await.unwrap(), [at(2)]);
}

pub(super) async fn what_is_at_rest_is_not_listed(place: &Place) {
    let mut busy = row("a");
    busy.machine.running = true;
    for row in [&busy, &row("b")] {
        assert!(
            place
                .store()
                .await
                .record_step(&step_of(row))
                .await
                .unwrap()
        );
    }
    let listed = place.store().await.unsettled_routing().await.unwrap();
    let names: Vec<_> = listed.iter().map(|row| row.conversation.as_str()).collect();
    assert_eq!(names, ["a"]);
    let mut over = stored(place, "a").await;
    over.machine.running = false;
    assert!(
        place
            .store()
            .await
            .record_step(&step_of(&over))
            .await
            .unwrap()
    );
    assert_eq!(place.store().await.unsettled_routing().await.unwrap(), []);
}

pub(super) async fn samples_of_burn_are_replaced(place: &Place) {
    let burn = |samples: &[Option<f64>]| Burn {
        subscription: "Claude".into(),
        window: "five_hour".to_owned(),
        samples: samples.to_vec(),
    };
    for samples in [vec![Some(7.0)], vec![Some(7.0), None, Some(2.5)]] {
        let one = burn(&samples);
        place
            .store()
            .await
            .put_burn(std::slice::from_ref(&one))
            .await
            .unwrap();
        assert_eq!(place.store().await.burn().await.unwrap(), [one]);
    }
}

pub(super) async fn money_is_reserved_settled_and_capped(place: &Place) {
    let cents = |cents: u64| Usd::from_micros(cents * 10_000);
    let caps = SpendCaps {
        day: cents(500),
        thread: cents(200),
    };
    let (a, b) = (ConversationId::new("a"), ConversationId::new("b"));
    let reserve = async |attempt: &str, of: &ConversationId, worst, when| {
        let store = place.store().await;
        let done = store.reserve_spend(attempt, of, worst, &caps, when).await;
        done.unwrap()
    };
    assert_eq!(
        reserve("1", &a, Some(cents(150)), at(0)).await,
        Ok(cents(150))
    );
    assert_eq!(
        reserve("1", &a, Some(cents(150)), at(0)).await,
        Ok(cents(150))
    );
    let over = reserve("2", &a, Some(cents(60)), at(0)).await;
    assert_eq!(over, Err(Overspend::Thread));
    assert_eq!(
        reserve("2", &a, None, at(0)).await,
        Err(Overspend::Unpriced)
    );
    for _ in 0..2 {
        let store = place.store().await;
        store
            .settle_spend("1", Some(cents(40)), at(0))
            .await
            .unwrap();
    }
    let spent = place.store().await.spent(&a, at(0)).await.unwrap();
    assert_eq!((spent.day, spent.thread), (cents(40), cents(40)));
    assert_eq!(
        reserve("2", &a, Some(cents(160)), at(0)).await,
        Ok(cents(160))
    );
    assert_eq!(
        reserve("3", &b, Some(cents(200)), at(0)).await,
        Ok(cents(200))
    );
    let c = ConversationId::new("c");
    assert_eq!(
        reserve("4", &c, Some(cents(101)), at(0)).await,
        Err(Overspend::Day)
    );
    // What was never sent is free again; a new day starts from nothing.
    place
        .store()
        .await
        .settle_spend("3", None, at(0))
        .await
        .unwrap();
    assert_eq!(
        place.store().await.spent(&b, at(0)).await.unwrap().day,
        cents(200)
    );
    assert_eq!(
        place.store().await.spent(&a, at(1)).await.unwrap().day,
        Usd::ZERO
    );
}

// === a life, with a restart after every step ===

fn reading(id: &str, used_pct: f64, now: Timestamp) -> Reading {
    Reading {
        subscription: id.into(),
        window: "five_hour".to_owned(),
        scope: None,
        used_pct: Some(used_pct),
        status: WindowStatus::Unknown,
        resets_at: Some(at(0) + SignedDuration::from_hours(3)),
        duration_mins: Some(300),
        observed_at: Some(now),
        source: ReadingSource::Probe,
    }
}

fn world() -> Facts {
    let login = |id: &str| LoginState {
        login: Login {
            id: id.into(),
            upstream: Some(format!("{id}-company")),
            account_id: Some(id.to_owned()),
            fingerprint: None,
            email: None,
            plan: None,
            metered: false,
        },
        provider: id.to_owned(),
        enabled: true,
        installed: true,
        authenticated: true,
        available: true,
        hub: false,
        lacks: Vec::new(),
        last_start_failed_at: None,
    };
    let mut facts = Facts {
        source: Some(Selection::new("claude", Some("opus"))),
        chain: vec![Selection::new("codex", Some("gpt"))],
        logins: vec![login("claude"), login("codex")],
        readings: vec![
            reading("claude", 50.0, at(0)),
            reading("codex", 40.0, at(0)),
        ],
        ..Facts::default()
    };
    facts.settings.enabled = true;
    let logins: Vec<_> = facts
        .logins
        .iter()
        .map(|state| state.login.clone())
        .collect();
    facts.groups = QuotaGroups::of(&logins);
    facts
}

fn refused() -> LimitReport {
    LimitReport {
        window: Some("five_hour".to_owned()),
        status: WindowStatus::Rejected,
        resets_at: Some(at(0) + SignedDuration::from_hours(3)),
        ..LimitReport::default()
    }
}

/// Refused in the middle of a tool, drained, moved, answered, refused there as well, waited and resumed: each step reads
/// the row anew, decides on it, and every event is told twice.
pub(super) async fn a_restart_after_every_step_ends_in_the_same_state(place: &Place) {
    let memory = Place::Memory(std::sync::Arc::new(MemoryStore::new()));
    let here = live(place).await;
    assert_eq!(here, live(&memory).await);
    let (machine, effects) = here;
    assert_eq!(machine.place.subscription.as_str(), "codex");
    assert!(
        machine.running && machine.state == State::Normal,
        "{machine:?}"
    );
    let count = |wanted: fn(&Effect) -> bool| effects.iter().filter(|one| wanted(one)).count();
    assert_eq!(count(|effect| matches!(effect, Effect::Switch { .. })), 1);
    assert_eq!(count(|effect| matches!(effect, Effect::Resume { .. })), 1);
    let audit = place
        .store()
        .await
        .audit_of(&ConversationId::new("a"))
        .await;
    for row in audit.unwrap() {
        let (_, again) = step(
            &row.replay.machine,
            &row.replay.event,
            &row.replay.facts,
            row.at,
        );
        let kinds = again.iter().filter_map(|effect| match effect {
            Effect::Audit(audit) => Some(audit.kind),
            _ => None,
        });
        assert!(kinds.into_iter().any(|kind| kind == row.kind), "{row:?}");
    }
}

async fn live(place: &Place) -> (Machine, Vec<Effect>) {
    let (run, failed) = (TurnId::new("t"), |report| RunEnd::Failed {
        class: LimitClass::UsageLimit,
        report,
    });
    let mut all = Vec::new();
    let mut world = world();
    world.thread.tool_in_flight_ms = Some(0);
    let s = SignedDuration::from_secs;
    tell(
        place,
        Event::TurnRequested { run: run.clone() },
        &world,
        at(0),
        &mut all,
    )
    .await;
    world.readings = vec![
        reading("claude", 100.0, at(0)),
        reading("codex", 40.0, at(0)),
    ];
    let report = refused();
    tell(
        place,
        Event::LimitReported {
            run: run.clone(),
            report,
        },
        &world,
        at(0) + s(1),
        &mut all,
    )
    .await;
    world.thread.tool_in_flight_ms = None;
    tell(
        place,
        Event::BoundaryReached { run: run.clone() },
        &world,
        at(0) + s(2),
        &mut all,
    )
    .await;
    let end = RunEnd::Stopped;
    let row = tell(
        place,
        Event::TurnEnded { run, end },
        &world,
        at(0) + s(3),
        &mut all,
    )
    .await;
    let episode = row.machine.state.episode().unwrap().id.clone();
    let row = tell(
        place,
        Event::Checked {
            episode: episode.clone(),
        },
        &world,
        at(0) + s(4),
        &mut all,
    )
    .await;
    let run = row.machine.run.unwrap();
    tell(
        place,
        Event::SwitchAccepted {
            episode,
            attempt: 1,
        },
        &world,
        at(0) + s(5),
        &mut all,
    )
    .await;
    tell(
        place,
        Event::FirstOutput { run: run.clone() },
        &world,
        at(0) + s(6),
        &mut all,
    )
    .await;
    world.readings = vec![
        reading("claude", 100.0, at(0)),
        reading("codex", 100.0, at(0)),
    ];
    let ended = Event::TurnEnded {
        run,
        end: failed(refused()),
    };
    let row = tell(place, ended, &world, at(0) + s(7), &mut all).await;
    let episode = row.machine.state.episode().unwrap().id.clone();
    let row = tell(
        place,
        Event::Checked { episode },
        &world,
        at(0) + s(8),
        &mut all,
    )
    .await;
    let wake_at = row.wake_at().expect("it waits");
    tell(place, Event::Tick, &world, wake_at - s(1), &mut all).await;
    let row = tell(place, Event::Tick, &world, wake_at, &mut all).await;
    (row.machine, all)
}

/// Reads, steps, writes; then a second worker tells the same.
async fn tell(
    place: &Place,
    event: Event,
    world: &Facts,
    now: Timestamp,
    all: &mut Vec<Effect>,
) -> RoutingRow {
    for _ in 0..2 {
        let known = place
            .store()
            .await
            .routing(&ConversationId::new("a"))
            .await
            .unwrap();
        let known = known.unwrap_or_else(|| row("a"));
        let (machine, effects) = step(&known.machine, &event, world, now);
        let audit = effects.iter().filter_map(|effect| match effect {
            Effect::Audit(one) => Some(AuditRow {
                kind: one.kind,
                replay: Replay {
                    machine: known.machine.clone(),
                    event: event.clone(),
                    facts: world.clone(),
                },
                ..audit("a", "t", one.kind, now)
            }),
            _ => None,
        });
        let step = RoutingStep {
            audit: audit.collect(),
            at: now,
            ..step_of(&RoutingRow { machine, ..known })
        };
        assert!(place.store().await.record_step(&step).await.unwrap());
        all.extend(effects);
    }
    stored(place, "a").await
}
