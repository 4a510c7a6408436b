//! The process: assembly and effects. Decisions live in `gateway-core`; here they meet the store, the providers, the
//! plugins and the people. `Gateway::start` is the whole wiring.

pub mod chat;
pub mod cli;
pub mod clock;
pub mod config;
pub mod cooling;
pub mod delivery;
pub mod demo;
pub mod effects;
pub mod front;
pub mod handoffs;
pub mod http;
pub mod instance;
pub mod intake;
pub mod logging;
pub mod plugins;
pub mod press;
pub mod provide;
pub mod routing;
pub mod sessions;
pub mod slash;
pub mod store;
pub mod sweeps;
pub mod turn;
pub mod usage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gateway_core::handoff::redact::Redactor;
use gateway_core::ids::SubscriptionId;
use gateway_core::message::Inbound;
use platforms::Platform;
use providers::SharedProvider;
use tracing::{info, warn};

use clock::Clock;
use config::Settings;
use cooling::Cooling;
use effects::Effects;
use instance::{Instance, InstanceError};
use plugins::PluginSet;
use sessions::Sessions;
use store::{Store, StoreError};
use usage::Registry;
use usage::probes::Probes;

/// What a gateway is made of; tests and the demo bring their own parts.
pub struct Parts {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub platforms: Vec<Arc<dyn Platform>>,
    /// Providers in place of the ones the settings name.
    pub providers: BTreeMap<SubscriptionId, SharedProvider>,
    /// The program that probes plugins in a child process.
    pub executable: PathBuf,
}

/// Why a gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error("{0}")]
    Plugin(String),
    #[error("{0}")]
    Permission(String),
}

/// A running gateway.
pub struct Gateway {
    effects: Arc<Effects>,
    sessions: Arc<Sessions>,
    sweeping: tokio::task::JoinHandle<()>,
    waking: tokio::task::JoinHandle<()>,
    _instance: Instance,
}

impl Gateway {
    /// Wires everything, seals what a dead process left, and is ready.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let Parts {
            settings,
            clock,
            store,
            platforms,
            providers: given,
            executable,
        } = parts;
        let redactor = redactor(&settings);
        let instance = Instance::start(&settings.root)?;
        let providers = provide::all(&settings, &clock, instance.id(), given)?;
        let (plugins, problems) = PluginSet::load(&settings, &executable).await;
        for problem in problems {
            if problem.required {
                return Err(StartError::Plugin(problem.to_string()));
            }
            warn!(%problem, "a plugin is not in use");
        }
        let registry = Arc::new(Registry::new(&settings, Arc::clone(&store)));
        usage::identity::introduce(&settings, &providers, &registry).await;
        let probes = Probes::new(&settings, &providers, &registry, &store, &clock);
        let effects = Arc::new(Effects {
            registry,
            probes,
            cooling: Cooling::new(&settings),
            sheets: turn::prologue::Sheets::default(),
            routing: routing::Routing::new(clock.now()),
            queued: parking_lot::Mutex::default(),
            arrivals: parking_lot::Mutex::default(),
            platforms: platforms
                .into_iter()
                .map(|platform| (platform.name(), platform))
                .collect(),
            instance: instance.id().to_owned(),
            settings,
            clock,
            store,
            plugins,
            providers,
            redactor,
        });
        let sealed = intake::recover(&effects).await?;
        let sweeping = sweeps::start(&effects);
        let sessions = Arc::new(Sessions::default());
        routing::resume::recover(&sessions, &effects).await?;
        let waking = routing::resume::start(&sessions, &effects);
        info!(sealed, instance = %effects.instance, "ready");
        Ok(Self {
            effects,
            sessions,
            sweeping,
            waking,
            _instance: instance,
        })
    }

    /// Takes one message or command from a platform.
    pub async fn receive(&self, inbound: Inbound) {
        intake::receive(inbound, &self.sessions, &self.effects).await;
    }

    /// Waits until no turn runs.
    pub async fn idle(&self) {
        self.sessions.idle().await;
    }

    /// The doors, for commands and tests.
    pub fn effects(&self) -> &Arc<Effects> {
        &self.effects
    }

    /// The lanes, for commands and tests.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Cuts and seals what runs, then ends the plugins. Never hangs on a stuck one.
    pub async fn shutdown(self) {
        self.sweeping.abort();
        self.waking.abort();
        self.sessions.drain().await;
        self.effects.registry.settled().await;
        // Whoever still holds the effects keeps the plugins; they end with the last holder.
        if let Ok(effects) = Arc::try_unwrap(self.effects) {
            effects.plugins.shutdown().await;
        }
    }
}

/// Knows every secret the settings name, so that none is stored or shown.
pub fn redactor(settings: &Settings) -> Redactor {
    use secrecy::ExposeSecret;
    let secrets = settings
        .subscriptions
        .values()
        .filter_map(|subscription| subscription.secret());
    let mut secrets: Vec<String> = secrets
        .map(|secret| secret.expose_secret().to_owned())
        .collect();
    secrets.extend(
        settings
            .subscriptions
            .values()
            .flat_map(|subscription| subscription.written_secrets()),
    );
    let accounts = settings
        .profiles
        .values()
        .flat_map(|profile| profile.chat.values().map(|chat| &chat.account));
    let tokens = accounts
        .flat_map(config::Account::secrets)
        .filter_map(|secret| secret.resolve().ok());
    secrets.extend(tokens.map(|token| token.expose_secret().to_owned()));
    Redactor::new(secrets.iter().map(String::as_str))
}
