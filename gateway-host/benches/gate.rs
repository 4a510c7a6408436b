//! The quota gate: the decision alone, through the plugin boundary on the plugin's own thread, and with the evidence it
//! reads, cached and after a change.

mod stage;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gateway_core::ids::{ConversationId, SessionKey, TurnId};
use gateway_core::message::Origin;
use gateway_core::plan::{self, EntryView, GateSettings};
use gateway_core::usage::Reading;
use gateway_host::plugins::PluginSet;
use gateway_host::plugins::facts::{FactSheet, PrologueFacts, TurnFacts};
use gateway_host::store::Store;
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::turn::prologue::Sheets;
use gateway_host::usage::Registry;

const ENTRIES: [usize; 3] = [21, 1_000, 10_000];

/// `gateway-core`'s function over borrowed evidence, as the plugin calls it.
fn alone(c: &mut Criterion) {
    let mut group = c.benchmark_group("gate alone");
    for entries in ENTRIES {
        let (chain, readings) = stage::chain(entries);
        let now_ms = stage::now().as_millisecond();
        group.bench_function(BenchmarkId::from_parameter(entries), |b| {
            b.iter(|| {
                let rows = chain.entries.iter().zip(readings.chunks(2));
                let rows = rows.map(|(entry, windows)| {
                    let view = EntryView {
                        subscription: entry.route.subscription.as_str(),
                        model: entry.route.model.as_str(),
                        counts_as: entry.slug.key(),
                        usable: true,
                    };
                    (view, windows.iter().map(Reading::view))
                });
                black_box(plan::prologue(GateSettings::default(), now_ms, rows))
            });
        });
    }
}

/// The prologue hook of both plugins, each on its own thread, advice merged. 0 = nothing to say: what a call costs.
fn through_the_boundary(c: &mut Criterion) {
    let runtime = stage::runtime();
    let home = tempfile::tempdir().expect("a temporary home");
    let settings = stage::settings(home.path(), 21);
    let (plugins, problems) = runtime.block_on(PluginSet::load(&settings, &stage::baton()));
    assert!(problems.is_empty(), "{problems:?}");
    let mut group = c.benchmark_group("hook through the ABI");
    for entries in [0].into_iter().chain(ENTRIES) {
        let facts = Arc::new(facts(entries));
        let advice = runtime.block_on(plugins.prologue(&stage::profile(), Arc::clone(&facts)));
        assert_eq!(
            advice.skips.len(),
            entries.saturating_sub(4),
            "the plugin answers"
        );
        group.bench_function(BenchmarkId::from_parameter(entries), |b| {
            b.iter_custom(|rounds| {
                let (plugins, facts) = (&plugins, &facts);
                runtime.block_on(async move {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        black_box(plugins.prologue(&stage::profile(), Arc::clone(facts)).await);
                    }
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
    runtime.block_on(plugins.shutdown());
}

/// Evidence from the published snapshot and the store, joined with the chain: unchanged, and after the snapshot changed.
fn evidence(c: &mut Criterion) {
    let runtime = stage::runtime();
    let mut group = c.benchmark_group("evidence for the gate");
    for entries in [21, 1_000] {
        let home = tempfile::tempdir().expect("a temporary home");
        let settings = stage::settings(home.path(), entries);
        let (chain, readings) = stage::chain(entries);
        stage::publish(&settings, &readings);
        let store = runtime.block_on(SqliteStore::open(settings.root.store_file()));
        let store: Arc<dyn Store> = Arc::new(store.expect("a store in a fresh home"));
        let (registry, sheets) = (Registry::new(&settings, store), Sheets::default());
        let usable = vec![true; entries];
        let look = async || {
            let evidence = registry.current(stage::now()).await;
            assert_eq!(evidence.readings.len(), 2 * entries);
            black_box(sheets.of(&stage::profile(), &chain, &usable, &evidence));
        };
        group.bench_function(BenchmarkId::new("snapshot cached", entries), |b| {
            b.iter_custom(|rounds| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        look().await;
                    }
                    start.elapsed()
                })
            });
        });
        group.bench_function(BenchmarkId::new("snapshot changed", entries), |b| {
            b.iter_custom(|rounds| {
                runtime.block_on(async {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        stage::publish(&settings, &readings);
                        let start = Instant::now();
                        look().await;
                        spent += start.elapsed();
                    }
                    spent
                })
            });
        });
    }
}

fn facts(entries: usize) -> PrologueFacts {
    let (chain, readings) = stage::chain(entries);
    let sheet = FactSheet::build(&chain, &vec![true; entries], &readings);
    PrologueFacts {
        turn: TurnFacts {
            turn: TurnId::new("turn"),
            profile: stage::profile(),
            session: SessionKey::new("agent:main:bench:0"),
            conversation: ConversationId::new("conversation"),
            origin: Origin::Human,
            sheet: Arc::new(sheet),
            now: stage::now(),
        },
        documents: Vec::new(),
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).measurement_time(Duration::from_secs(3));
    targets = alone, through_the_boundary, evidence
}
criterion_main!(benches);
