//! The registry under load: readings heard while turns run, and publishing a thousand subscriptions. Each beside a baseline
//! in the same run: one awaited transaction and publication per reading, as it was before there was a writer; and the
//! mere parsing, writing and syncing of the same file.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use gateway_core::usage::Reading;
use gateway_host::Gateway;
use gateway_host::usage::publish;
use jiff::SignedDuration;

const SUBSCRIPTIONS: usize = 1_000;
const READINGS: usize = 10_000;
const ONE_BY_ONE: usize = 5;
/// Conversations that talk all the time meanwhile.
const LANES: usize = 4;

/// The same windows again and again, each time a little fuller and later, as turns tell them.
fn told(round: u64) -> Vec<Reading> {
    let (_, readings) = stage::chain(SUBSCRIPTIONS);
    let mut told = Vec::with_capacity(READINGS);
    for (number, reading) in readings.iter().cycle().take(READINGS).enumerate() {
        let mut reading = reading.clone();
        reading.status = gateway_core::usage::WindowStatus::Allowed;
        let step = i64::try_from(round * READINGS as u64 + number as u64).unwrap_or(i64::MAX);
        reading.used_pct = Some(step as f64 % 97.0);
        reading.observed_at = reading
            .observed_at
            .map(|at| at - SignedDuration::from_hours(1) + SignedDuration::from_micros(step));
        told.push(reading);
    }
    told
}

fn ingest(c: &mut Criterion) {
    let runtime = stage::runtime();
    let home = tempfile::tempdir().expect("a temporary home");
    let settings = stage::settings(home.path(), 21);
    let provider = stage::AtOnce::default();
    let gateway = Arc::new(runtime.block_on(stage::gateway(&settings, "bench", &provider)));
    let registry = Arc::clone(&gateway.effects().registry);
    let (done, turns) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    for lane in 0..LANES {
        runtime.spawn(talk(
            Arc::clone(&gateway),
            lane,
            Arc::clone(&done),
            Arc::clone(&turns),
        ));
    }
    let mut group = c.benchmark_group("ingest while turns run");
    group.sampling_mode(SamplingMode::Flat);
    let mut round = 0;
    group.throughput(Throughput::Elements(READINGS as u64));
    group.bench_function(
        BenchmarkId::new("heard, stored and published", READINGS),
        |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    round += 1;
                    let told = told(round);
                    spent += runtime.block_on(async {
                        let start = Instant::now();
                        for reading in told {
                            registry.hear(vec![reading], stage::now());
                        }
                        registry.settled().await;
                        start.elapsed()
                    });
                }
                spent
            });
        },
    );
    group.throughput(Throughput::Elements(ONE_BY_ONE as u64));
    group.bench_function(BenchmarkId::new("baseline: one by one", ONE_BY_ONE), |b| {
        b.iter_custom(|rounds| {
            let mut spent = Duration::ZERO;
            for _ in 0..rounds {
                round += 1;
                let told = told(round);
                spent += runtime.block_on(async {
                    let start = Instant::now();
                    for reading in told.into_iter().take(ONE_BY_ONE) {
                        registry.learn(vec![reading], stage::now()).await;
                    }
                    start.elapsed()
                });
            }
            spent
        });
    });
    group.finish();
    done.store(true, Ordering::Relaxed);
    runtime.block_on(gateway.idle());
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns > 0, "turns ran meanwhile");
}

/// One conversation after the other turn, until told to stop.
async fn talk(gateway: Arc<Gateway>, lane: usize, done: Arc<AtomicBool>, turns: Arc<AtomicU64>) {
    for number in 0.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        gateway.receive(stage::inbound("bench", lane, number)).await;
        gateway.idle().await;
        turns.fetch_add(1, Ordering::Relaxed);
    }
}

fn publishing(c: &mut Criterion) {
    let home = tempfile::tempdir().expect("a temporary home");
    let settings = stage::settings(home.path(), 1);
    let mut group = c.benchmark_group("publish");
    group.throughput(Throughput::Elements(SUBSCRIPTIONS as u64));
    let mut round = 0;
    group.bench_function(
        BenchmarkId::new("subscriptions, all changed", SUBSCRIPTIONS),
        |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    round += 1;
                    let mut told = told(round);
                    told.truncate(2 * SUBSCRIPTIONS);
                    let start = Instant::now();
                    let changed = publish::publish(&settings.root, &told, stage::now());
                    spent += start.elapsed();
                    assert!(changed.expect("a writable folder"), "something is written");
                }
                spent
            });
        },
    );
    group.bench_function(
        BenchmarkId::new("baseline: read, write, sync", SUBSCRIPTIONS),
        |b| {
            let file = publish::place(&settings.root);
            let beside = file.with_extension("copy");
            b.iter(|| {
                let text = std::fs::read(&file).expect("it was published");
                let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
                let text = serde_json::to_string_pretty(&document).expect("JSON");
                stage::write(&beside, &text);
                let synced = std::fs::File::open(&beside).and_then(|file| file.sync_all());
                synced.expect("a disk");
            });
        },
    );
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(5));
    targets = ingest, publishing
}
criterion_main!(benches);
