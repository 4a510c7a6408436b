use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use gateway_core::route::Billing;
use gateway_core::usage::{ReadingSource, WindowStatus};
use jiff::{SignedDuration, Timestamp};
use providers::{AttemptHandle, AttemptRequest, Health, LoginFacts, LoginSubject, Provider};
use tokio::sync::Semaphore;

use super::*;
use crate::config::RootPath;
use crate::store::memory::MemoryStore;

struct SetClock(Mutex<Timestamp>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

/// A subscription whose surface answers this, once it may.
struct Asked {
    answer: Result<f64, ProbeError>,
    count: AtomicUsize,
    may_answer: Semaphore,
    key: &'static str,
}

#[async_trait]
impl Provider for Asked {
    fn start(&self, _request: AttemptRequest) -> AttemptHandle {
        unreachable!("a probe starts no attempt")
    }

    fn keeps_sessions(&self) -> bool {
        false
    }

    async fn probe(&self, _limit: Duration) -> Result<Probed, ProbeError> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let _permit = self.may_answer.acquire().await.unwrap();
        let used = self.answer.clone()?;
        let reading = Reading {
            subscription: "whatever".into(),
            window: "five_hour".into(),
            scope: None,
            used_pct: Some(used),
            status: WindowStatus::Unknown,
            resets_at: Timestamp::from_second(1_789_991_200).ok(),
            duration_mins: None,
            observed_at: None,
            source: ReadingSource::Probe,
        };
        Ok(Probed {
            readings: vec![reading],
            login: self.login().await,
        })
    }

    async fn login(&self) -> LoginFacts {
        LoginFacts {
            upstream: Some("host".into()),
            subject: Some(LoginSubject::new(self.key)),
            ..LoginFacts::default()
        }
    }

    async fn health(&self) -> Health {
        Health::Ready { version: None }
    }
}

struct World {
    _home: tempfile::TempDir,
    settings: Settings,
    clock: Arc<SetClock>,
    store: Arc<dyn Store>,
    asked: BTreeMap<SubscriptionId, Arc<Asked>>,
}

fn settings(root: &Path, names: &[&str]) -> Settings {
    let root = RootPath(root.to_owned());
    let subscription = |name: &&str| {
        let id = SubscriptionId::new(*name);
        let settings = SubscriptionSettings {
            id: id.clone(),
            slug: id.clone(),
            billing: Billing::Plan,
            provider: ProviderSettings::Scripted,
        };
        (id, settings)
    };
    Settings {
        usage_snapshot: root.usage_file(),
        subscriptions: names.iter().map(subscription).collect(),
        profiles: BTreeMap::new(),
        plugins: BTreeMap::new(),
        root,
    }
}

impl World {
    fn new(surfaces: &[(&str, &'static str, Result<f64, ProbeError>)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let names: Vec<&str> = surfaces.iter().map(|(name, ..)| *name).collect();
        let asked = surfaces.iter().map(|(name, key, answer)| {
            let asked = Asked {
                answer: answer.clone(),
                count: AtomicUsize::new(0),
                may_answer: Semaphore::new(100),
                key,
            };
            (SubscriptionId::new(*name), Arc::new(asked))
        });
        Self {
            settings: settings(home.path(), &names),
            clock: Arc::new(SetClock(Mutex::new(
                Timestamp::from_second(1_789_981_200).unwrap(),
            ))),
            store: Arc::new(MemoryStore::new()),
            asked: asked.collect(),
            _home: home,
        }
    }

    /// One process of the root.
    async fn process(&self) -> (Arc<Probes>, Arc<Registry>) {
        let registry = Arc::new(Registry::new(&self.settings, Arc::clone(&self.store)));
        let providers: BTreeMap<_, SharedProvider> = self
            .asked
            .iter()
            .map(|(id, asked)| (id.clone(), Arc::clone(asked) as SharedProvider))
            .collect();
        identity::introduce(&self.settings, &providers, &registry).await;
        let clock: Arc<dyn Clock> = self.clock.clone();
        let probes = Probes::new(&self.settings, &providers, &registry, &self.store, &clock);
        (probes, registry)
    }

    fn count(&self, name: &str) -> usize {
        self.asked[&SubscriptionId::new(name)]
            .count
            .load(Ordering::SeqCst)
    }

    fn later(&self, seconds: i64) {
        let mut now = self.clock.0.lock();
        *now += SignedDuration::from_secs(seconds);
    }
}

#[tokio::test]
async fn logins_of_one_allowance_are_asked_once_however_many_ask() {
    let world = World::new(&[
        ("a", "key", Ok(40.0)),
        ("b", "key", Ok(41.0)),
        ("c", "other", Ok(50.0)),
    ]);
    let (probes, registry) = world.process().await;
    let first = &world.asked[&SubscriptionId::new("a")].may_answer;
    let held = first.acquire_many(100).await.unwrap();
    let all = || ["a", "b", "c"].map(SubscriptionId::new);
    let asking: Vec<_> = (0..10)
        .map(|_| {
            let probes = Arc::clone(&probes);
            tokio::spawn(async move { probes.ask(all(), Occasion::Demand).await })
        })
        .collect();
    while world.count("a") == 0 || world.count("c") == 0 {
        tokio::task::yield_now().await;
    }
    drop(held);
    for asked in asking {
        let told = asked.await.unwrap();
        assert!(
            told.iter().all(|(_, told)| *told == Told::Windows(1)),
            "{told:?}"
        );
    }
    assert_eq!(["a", "b", "c"].map(|name| world.count(name)), [1, 0, 1]);
    let known = registry.current(world.clock.now()).await;
    let used = |name: &str| known.of(&name.into()).next().unwrap().used_pct;
    assert_eq!(
        [used("a"), used("b"), used("c")],
        [Some(40.0), Some(40.0), Some(50.0)]
    );
    assert_eq!(
        probes.ask(all(), Occasion::Demand).await,
        [],
        "all is fresh"
    );
    world.later(601);
    assert_eq!(
        probes.ask(all(), Occasion::Demand).await.len(),
        3,
        "all is stale"
    );
}

#[tokio::test]
async fn what_it_was_told_holds_for_the_next_process_too() {
    let throttled = ProbeError::Throttled {
        retry_after: Some(Duration::ZERO),
    };
    let world = World::new(&[
        ("t", "1", Err(throttled)),
        ("u", "2", Err(ProbeError::Unsupported("no".into()))),
    ]);
    let both = || ["t", "u"].map(SubscriptionId::new);
    let (probes, _registry) = world.process().await;
    probes.ask(both(), Occasion::Demand).await;
    assert_eq!([world.count("t"), world.count("u")], [1, 1]);
    world.later(299);
    let (next, _registry) = world.process().await;
    assert_eq!(
        next.ask(["t"].map(SubscriptionId::new), Occasion::Demand)
            .await,
        []
    );
    world.later(1);
    next.ask(both(), Occasion::Demand).await;
    assert_eq!(
        [world.count("t"), world.count("u")],
        [2, 2],
        "another process may have another program"
    );
    world.later(100_000);
    next.ask(both(), Occasion::Demand).await;
    probes.ask(both(), Occasion::Demand).await;
    assert_eq!(world.count("u"), 2, "never again in these");
}

#[tokio::test]
async fn the_sweep_looks_at_exhausted_ones_and_notices_an_early_reset() {
    let world = World::new(&[("spent", "1", Ok(3.0)), ("free", "2", Ok(3.0))]);
    let (probes, registry) = world.process().await;
    let refused = Reading {
        status: WindowStatus::Rejected,
        ..Reading {
            subscription: "spent".into(),
            window: "five_hour".into(),
            scope: None,
            used_pct: Some(100.0),
            status: WindowStatus::Unknown,
            resets_at: Timestamp::from_second(1_789_991_200).ok(),
            duration_mins: None,
            observed_at: None,
            source: ReadingSource::Event,
        }
    };
    registry.learn(vec![refused], world.clock.now()).await;
    world.later(599);
    probes.sweep().await;
    assert_eq!(
        world.count("spent"),
        0,
        "it was looked at not ten minutes ago"
    );
    world.later(1);
    probes.sweep().await;
    assert_eq!([world.count("spent"), world.count("free")], [1, 0]);
    let known = registry.current(world.clock.now()).await;
    assert_eq!(
        known.of(&"spent".into()).next().unwrap().used_pct,
        Some(3.0)
    );
    probes.sweep().await;
    assert_eq!(world.count("spent"), 1);
}

#[tokio::test]
async fn whoever_asked_may_go_away_and_the_answer_still_arrives() {
    let world = World::new(&[("slow", "1", Ok(7.0))]);
    let (probes, registry) = world.process().await;
    let surface = &world.asked[&SubscriptionId::new("slow")].may_answer;
    let held = surface.acquire_many(100).await.unwrap();
    let asking = tokio::spawn(async move {
        probes
            .ask([SubscriptionId::new("slow")], Occasion::Demand)
            .await
    });
    while world.count("slow") == 0 {
        tokio::task::yield_now().await;
    }
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    drop(held);
    let arrived = async {
        while registry
            .current(world.clock.now())
            .await
            .readings
            .is_empty()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), arrived).await.unwrap();
}

#[tokio::test]
async fn a_probe_that_panicked_stands_in_nobodys_way() {
    let world = World::new(&[("a", "key", Ok(40.0))]);
    let (probes, _registry) = world.process().await;
    let asked = &world.asked[&SubscriptionId::new("a")];
    asked.may_answer.close(); // the probe unwraps it
    for count in 1..=2 {
        let told = probes
            .ask([SubscriptionId::new("a")], Occasion::Demand)
            .await;
        assert!(
            matches!(told.as_slice(), [(_, Told::Failed(_))]),
            "{told:?}"
        );
        assert_eq!(world.count("a"), count);
    }
}
