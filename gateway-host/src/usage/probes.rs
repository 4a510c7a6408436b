//! Asking subscriptions how much is left: when is decided by [`gateway_core::usage::probe`], here it is done. One probe at a
//! time per quota group, groups side by side, each bounded; what is brought goes into the registry like any other reading.
//!
//! Nobody who answers a person's message waits here: the gate decides on what is known. A probe that is too late for the one
//! who asked goes on by itself, and the next one who looks finds what it brought.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use gateway_core::ids::SubscriptionId;
use gateway_core::usage::Reading;
use gateway_core::usage::probe::{Occasion, ProbeEnd, ProbeState, is_due};
use parking_lot::Mutex;
use providers::{ProbeError, Probed, SharedProvider};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Evidence, Registry, identity};
use crate::clock::Clock;
use crate::config::{Program, ProviderSettings, Settings, SubscriptionSettings};
use crate::store::Store;

/// One probe.
const ONE: Duration = Duration::from_secs(5);
/// One probe of `claude`: its program takes seconds to start, and its service about eleven to answer.
const CLAUDE: Duration = Duration::from_secs(15);
/// All that one caller waits for.
pub const OVERALL: Duration = Duration::from_secs(8);

/// What became of one group's probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It answered; how many windows it named.
    Windows(usize),
    /// It has no surface to ask: why.
    Unsupported(String),
    /// It did not tell: why.
    Failed(String),
    /// It is still being asked.
    Late,
}

/// Everything a probe needs of the world.
pub struct Probes {
    settings: Settings,
    providers: BTreeMap<SubscriptionId, SharedProvider>,
    registry: Arc<Registry>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// What is remembered of each group's probes, by the name that stands for it.
    states: Mutex<HashMap<String, ProbeState>>,
    /// The probes under way.
    flights: Mutex<HashMap<String, Flight>>,
}

type Flight = Shared<BoxFuture<'static, Told>>;

impl Probes {
    /// Nothing is asked yet.
    pub fn new(
        settings: &Settings,
        providers: &BTreeMap<SubscriptionId, SharedProvider>,
        registry: &Arc<Registry>,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings: settings.clone(),
            providers: providers.clone(),
            registry: Arc::clone(registry),
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            states: Mutex::default(),
            flights: Mutex::default(),
        })
    }

    /// Asks those of the subscriptions for which it is due, and waits for them, [`OVERALL`] at most. The answer has a line
    /// for each subscription whose group was asked.
    pub async fn ask(
        self: &Arc<Self>,
        subscriptions: impl IntoIterator<Item = SubscriptionId>,
        occasion: Occasion,
    ) -> Vec<(SubscriptionId, Told)> {
        let deadline = Instant::now() + OVERALL;
        let evidence = self.registry.current(self.clock.now()).await;
        let mut asked = Vec::new();
        for id in subscriptions {
            if let Some(flight) = self.flight(&id, occasion, &evidence).await {
                asked.push(async move {
                    let told = timeout_at(deadline, flight).await.unwrap_or(Told::Late);
                    (id, told)
                });
            }
        }
        join_all(asked).await
    }

    /// Every subscription of the settings, for the sweep.
    pub async fn sweep(self: &Arc<Self>) {
        let all = self.settings.subscriptions.keys().cloned();
        for (subscription, told) in self.ask(all, Occasion::Sweep).await {
            tracing::debug!(%subscription, ?told, "an exhausted subscription was looked at");
        }
    }

    /// The probe of a subscription's group: the one under way, or a new one if it is due.
    async fn flight(
        self: &Arc<Self>,
        id: &SubscriptionId,
        occasion: Occasion,
        evidence: &Evidence,
    ) -> Option<Flight> {
        let subscription = self.settings.subscriptions.get(id)?;
        let head = evidence.groups.head(&subscription.slug).to_owned();
        if let Some(flight) = self.flights.lock().get(&head) {
            return Some(flight.clone());
        }
        let state = self.state(&head).await;
        let windows = evidence.of(&subscription.slug).map(Reading::view);
        if !is_due(&state, occasion, windows, self.clock.now()) {
            return None;
        }
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(&head) {
            return Some(flight.clone());
        }
        let members = self.members(&head, evidence);
        let probes = Arc::clone(self);
        let name = head.clone();
        // A task of its own: whoever asked may go away.
        let task = tokio::spawn(async move {
            // However the probe ends: one that panicked must not stand in the way of all later ones.
            let _landed = Landing {
                flights: &probes.flights,
                head: &name,
            };
            probes.probe(&name, members).await
        });
        let flight = task
            .map(|told| told.unwrap_or_else(|why| Told::Failed(why.to_string())))
            .boxed()
            .shared();
        flights.insert(head, flight.clone());
        Some(flight)
    }

    /// The subscriptions of a group that can be asked, in the order of their names.
    fn members(&self, head: &str, evidence: &Evidence) -> Vec<SubscriptionSettings> {
        let all = self.settings.subscriptions.values();
        all.filter(|other| evidence.groups.head(&other.slug) == head)
            .cloned()
            .collect()
    }

    async fn state(&self, head: &str) -> ProbeState {
        if let Some(state) = self.states.lock().get(head) {
            return *state;
        }
        // What another process was told ("not before …") holds for this one as well.
        let stored = self.store.probe_state(head).await.ok().flatten();
        stored.unwrap_or_default()
    }

    /// Asks one member after the other until one has a surface to ask.
    async fn probe(&self, head: &str, members: Vec<SubscriptionSettings>) -> Told {
        let mut told = Told::Unsupported("no provider".to_owned());
        let mut end = ProbeEnd::Unsupported;
        for member in members {
            let Some(provider) = self.providers.get(&member.id) else {
                continue;
            };
            let limit = limit_of(&member);
            let brought = timeout(limit + Duration::from_secs(1), provider.probe(limit)).await;
            let brought = brought.unwrap_or_else(|_| {
                Err(ProbeError::Failed("it did not answer in time".to_owned()))
            });
            (told, end) = self.take(&member, brought).await;
            if end != ProbeEnd::Unsupported {
                break;
            }
        }
        let now = self.clock.now();
        let state = self.state(head).await.after(end, now);
        self.states.lock().insert(head.to_owned(), state);
        if end != ProbeEnd::Unsupported
            && let Err(why) = self.store.put_probe_state(head, &state).await
        {
            tracing::warn!(%why, "when a subscription may be asked again was not stored");
        }
        told
    }

    async fn take(
        &self,
        member: &SubscriptionSettings,
        brought: Result<Probed, ProbeError>,
    ) -> (Told, ProbeEnd) {
        let probed = match brought {
            Ok(probed) => probed,
            Err(ProbeError::Unsupported(why)) => {
                return (Told::Unsupported(why), ProbeEnd::Unsupported);
            }
            Err(ProbeError::Throttled { retry_after }) => {
                let why = ProbeError::Throttled { retry_after }.to_string();
                return (Told::Failed(why), ProbeEnd::Throttled(retry_after));
            }
            Err(ProbeError::Failed(why)) => return (Told::Failed(why), ProbeEnd::Broken),
        };
        let now = self.clock.now();
        self.know(member, &probed).await;
        let count = probed.readings.len();
        let readings = probed.readings.into_iter().map(|reading| Reading {
            subscription: member.slug.clone(),
            ..reading
        });
        self.registry
            .learn_probed(&member.slug, readings.collect(), now)
            .await;
        match count {
            // It answered and was told nothing itself, for example because it asks too often: not again for a while.
            0 => (Told::Windows(0), ProbeEnd::Throttled(None)),
            _ => (Told::Windows(count), ProbeEnd::Answered),
        }
    }

    /// A surface may tell more of the login than its files do.
    async fn know(&self, member: &SubscriptionSettings, probed: &Probed) {
        if probed.login == providers::LoginFacts::default() {
            return;
        }
        let root = self.settings.root.clone();
        let secret = tokio::task::spawn_blocking(move || identity::InstallSecret::of(&root));
        let secret = secret.await.ok().and_then(Result::ok);
        let new = identity::login(&member.slug, member.billing, &probed.login, secret.as_ref());
        let known = self.registry.logins().await;
        let old = known.iter().find(|old| old.id == new.id);
        let renewed = identity::renewed(old, new);
        if old != Some(&renewed) {
            self.registry.introduce(&[renewed]).await;
        }
    }
}

/// Takes a probe off the list of those under way when it is over.
struct Landing<'a> {
    flights: &'a Mutex<HashMap<String, Flight>>,
    head: &'a str,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.flights.lock().remove(self.head);
    }
}

fn limit_of(subscription: &SubscriptionSettings) -> Duration {
    match &subscription.provider {
        ProviderSettings::Cli {
            program: Program::Claude,
            ..
        } => CLAUDE,
        _ => ONE,
    }
}

#[cfg(test)]
mod tests;
