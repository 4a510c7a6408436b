//! What a turn costs beside its provider: the seal on disk, the way from a message to the provider's start, and the start
//! of a gateway with both plugins.

mod stage;

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use gateway_core::event::CallOutcome;
use gateway_core::handoff::{CallRecord, Handoff, HandoffState, PAYLOAD_VERSION};
use gateway_core::ids::{ConversationId, HandoffId, InboundId, SessionKey, TurnId};
use gateway_core::journal::{TurnRow, TurnStatus};
use gateway_core::message::{Origin, ReplyTarget};
use gateway_core::route::Route;
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::store::{Carried, Store, TurnClose};

/// Closes an open turn with a handoff of an ordinary size; on disk when it returns.
fn seal(c: &mut Criterion) {
    let runtime = stage::runtime();
    let home = tempfile::tempdir().expect("a temporary home");
    let store = runtime
        .block_on(SqliteStore::open(home.path().join("state/baton.db")))
        .expect("a store in a fresh home");
    let mut number = 0_u64;
    c.bench_function("handoff seal, durable on disk", |b| {
        b.iter_custom(|rounds| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    number += 1;
                    let row = row(number);
                    assert!(store.open_turn(&row, &[]).await.expect("writable"));
                    let close = close(&row, number);
                    let start = Instant::now();
                    assert!(store.close_turn(&close).await.expect("writable"));
                    spent += start.elapsed();
                }
                spent
            })
        });
    });
}

/// From `Gateway::receive` to the provider's start, and to the moment its prompt may leave (the first row is on disk).
fn own_time(c: &mut Criterion) {
    let runtime = stage::runtime();
    let mut group = c.benchmark_group("message to provider");
    for (name, surface) in [
        ("console", platforms::console::NAME),
        ("chat platform", "bench"),
    ] {
        let home = tempfile::tempdir().expect("a temporary home");
        let settings = stage::settings(home.path(), 21);
        let (_, readings) = stage::chain(21);
        stage::publish(&settings, &readings);
        let provider = stage::AtOnce::default();
        let gateway = runtime.block_on(stage::gateway(&settings, surface, &provider));
        let mut number = 0;
        let mut measure = |rounds: u64, until: fn(stage::Marks) -> Instant| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    number += 1;
                    let inbound = stage::inbound(surface, 0, number);
                    let start = Instant::now();
                    gateway.receive(inbound).await;
                    gateway.idle().await;
                    spent += until(provider.marks()) - start;
                }
                spent
            })
        };
        group.bench_function(format!("{name}, provider started"), |b| {
            b.iter_custom(|rounds| measure(rounds, |marks| marks.started));
        });
        group.bench_function(format!("{name}, prompt may leave"), |b| {
            b.iter_custom(|rounds| measure(rounds, |marks| marks.sent));
        });
        runtime.block_on(gateway.shutdown());
    }
}

/// A fresh home: the store is made, both plugins are found, probed in a child process and loaded, nothing is left open.
fn ready(c: &mut Criterion) {
    let runtime = stage::runtime();
    let mut group = c.benchmark_group("start to ready");
    group.sample_size(20);
    group.bench_function("fresh home, both plugins", |b| {
        b.iter_custom(|rounds| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    let home = tempfile::tempdir().expect("a temporary home");
                    let settings = stage::settings(home.path(), 21);
                    let provider = stage::AtOnce::default();
                    let start = Instant::now();
                    let gateway = stage::gateway(&settings, "bench", &provider).await;
                    spent += start.elapsed();
                    gateway.shutdown().await;
                }
                spent
            })
        });
    });
    group.bench_function("second start, both plugins", |b| {
        let home = tempfile::tempdir().expect("a temporary home");
        let settings = stage::settings(home.path(), 21);
        let provider = stage::AtOnce::default();
        let again = async || {
            let start = Instant::now();
            let gateway = stage::gateway(&settings, "bench", &provider).await;
            let spent = start.elapsed();
            gateway.shutdown().await;
            spent
        };
        runtime.block_on(again());
        b.iter_custom(|rounds| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    spent += again().await;
                }
                spent
            })
        });
    });
}

fn row(number: u64) -> TurnRow {
    TurnRow {
        turn: TurnId::new(format!("turn-{number}")),
        profile: stage::profile(),
        session: SessionKey::new("agent:main:bench:0"),
        conversation: ConversationId::new("conversation"),
        inbound: InboundId::new(format!("message-{number}")),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: "bench".into(),
            address: "0".into(),
        },
        request: "Find out why the nightly job fails and mend it.".into(),
        started_at: stage::now(),
        owner: "bench".into(),
        carries: Vec::new(),
    }
}

fn close(row: &TurnRow, number: u64) -> TurnClose {
    let call = |at| CallRecord {
        id: format!("call-{at}"),
        name: "terminal".into(),
        arguments: "{\"command\":\"systemctl status nightly\"}".into(),
        outcome: CallOutcome::Completed,
        result: Some("active (running) since Monday\n".repeat(10)),
    };
    let handoff = Handoff {
        version: PAYLOAD_VERSION,
        id: HandoffId::new(format!("handoff-{number}")),
        turn: row.turn.clone(),
        profile: row.profile.clone(),
        session: row.session.clone(),
        conversation: row.conversation.clone(),
        created_at: row.started_at,
        expires_at: row.started_at + jiff::SignedDuration::from_hours(24),
        reason: "rate limit".into(),
        route: Some(Route::new("sub-0", "opus")),
        request: row.request.clone(),
        request_id: row.inbound.clone(),
        progress: "The job fails since the disk is full. ".repeat(40),
        calls: (0..10).map(call).collect(),
        open_todos: Vec::new(),
        next_reset: None,
        earlier_cuts: 0,
    };
    TurnClose {
        turn: row.turn.clone(),
        status: TurnStatus::Cut,
        at: row.started_at,
        seal: Some((handoff, HandoffState::Armed)),
        carried: Carried::Released,
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3));
    targets = seal, own_time, ready
}
criterion_main!(benches);
