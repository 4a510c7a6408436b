//! One step of routing, durable on disk with its audit row and the facts of 21 routes in it: what a turn pays before it
//! may go on. The pure step beside it shows how much of that is the disk.

use criterion::{Criterion, criterion_group, criterion_main};
use gateway_core::ids::{ConversationId, ProfileId, SessionKey, SubscriptionId, TurnId};
use gateway_core::message::ReplyTarget;
use gateway_core::switch::facts::{Facts, LoginState, Selection};
use gateway_core::switch::machine::{self, AuditKind, Event, Machine, Place};
use gateway_core::usage::identity::{Login, QuotaGroups};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use gateway_host::store::routing::{AuditRow, Replay, RoutingRow, RoutingStep, RoutingStore, Seat};
use gateway_host::store::sqlite::SqliteStore;
use jiff::{SignedDuration, Timestamp};
use providers::Permissions;

const ROUTES: usize = 21;

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("an instant")
}

fn facts() -> Facts {
    let name = |at: usize| SubscriptionId::new(format!("sub-{at:02}"));
    let login = |at: usize| LoginState {
        login: Login {
            id: name(at),
            upstream: Some(format!("company-{at}")),
            account_id: Some(format!("account-{at}")),
            fingerprint: None,
            email: None,
            plan: None,
            metered: false,
        },
        provider: "claude".to_owned(),
        enabled: true,
        installed: true,
        authenticated: true,
        available: true,
        hub: false,
        lacks: Vec::new(),
        last_start_failed_at: None,
    };
    let reading = |at: usize| Reading {
        subscription: name(at),
        window: "five_hour".to_owned(),
        scope: None,
        used_pct: Some(40.0),
        status: WindowStatus::Allowed,
        resets_at: Some(now() + SignedDuration::from_hours(3)),
        duration_mins: Some(300),
        observed_at: Some(now()),
        source: ReadingSource::Probe,
    };
    let logins: Vec<LoginState> = (0..ROUTES).map(login).collect();
    let all: Vec<Login> = logins.iter().map(|state| state.login.clone()).collect();
    let mut facts = Facts {
        source: Some(Selection::new("sub-00", Some("opus"))),
        chain: (0..ROUTES)
            .map(|at| Selection::new(name(at).as_str(), Some("opus")))
            .collect(),
        groups: QuotaGroups::of(&all),
        readings: (0..ROUTES).map(reading).collect(),
        logins,
        ..Facts::default()
    };
    facts.settings.enabled = true;
    facts
}

fn row(number: u64) -> RoutingRow {
    let name = format!("conversation-{number}");
    let place = Place {
        subscription: "sub-00".into(),
        model: Some("opus".to_owned()),
    };
    RoutingRow {
        conversation: ConversationId::new(&name),
        revision: 0,
        machine: Machine::new(name, place),
        seat: Seat {
            profile: ProfileId::new("default"),
            session: SessionKey::new("agent:main:bench:chat"),
            target: ReplyTarget {
                platform: "bench".to_owned(),
                address: "chat".to_owned(),
            },
            permissions: Permissions::None,
            pending: Some(TurnId::new("turn")),
        },
        owner: "bench".to_owned(),
    }
}

fn event() -> Event {
    Event::TurnRequested {
        run: TurnId::new("turn"),
    }
}

fn durable(row: RoutingRow, facts: &Facts) -> RoutingStep {
    let (machine, _) = machine::step(&row.machine, &event(), facts, now());
    let audit = AuditRow {
        seq: 0,
        at: now(),
        conversation: row.conversation.clone(),
        turn: row.seat.pending.clone(),
        kind: AuditKind::Decided,
        episode: None,
        attempt: 0,
        replay: Replay {
            machine: row.machine.clone(),
            event: event(),
            facts: facts.clone(),
        },
    };
    RoutingStep {
        row: RoutingRow { machine, ..row },
        audit: vec![audit],
        reserve: Vec::new(),
        promises_seen: 0,
        release: Vec::new(),
        begun: Vec::new(),
        at: now(),
    }
}

fn steps(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let home = tempfile::tempdir().expect("a temporary home");
    let store = runtime
        .block_on(SqliteStore::open(home.path().join("baton.db")))
        .expect("a store");
    let facts = facts();
    let mut number = 0;
    let mut group = c.benchmark_group("step of routing");
    group.bench_function("decided", |bench| {
        let machine = row(0).machine;
        bench.iter(|| machine::step(&machine, &event(), &facts, now()));
    });
    group.bench_function("decided and durable", |bench| {
        bench.iter(|| {
            number += 1;
            let step = durable(row(number), &facts);
            let kept = runtime.block_on(store.record_step(&step));
            assert!(kept.expect("the disk takes it"));
        });
    });
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
