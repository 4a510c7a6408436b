//! The product from outside, in one process: a gateway with real plugins and a real store over scripted providers, a
//! recording chat surface and a clock that is moved by hand.

#[allow(
    clippy::indexing_slicing,
    reason = "helpers of tests: a missing place is a failed test"
)]
pub mod chat;
pub mod gateway;
pub mod served;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::{InboundId, ProfileId, SessionKey, SubscriptionId, TurnId};
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use gateway_core::route::{Billing, Route};
use gateway_host::clock::{Clock, MovedClock};
use gateway_host::config::{
    DEFAULT_PROFILE, PluginUse, ProfileSettings, ProviderSettings, RootPath, Settings,
    SubscriptionSettings,
};
use gateway_host::http::{HttpPlatform, Listen, Options, Server, ServerError};
use gateway_host::routing::RoutingSettings;
use gateway_host::store::Store;
use gateway_host::store::fault::FaultyStore;
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::{Gateway, Parts};
use jiff::{SignedDuration, Timestamp};
use platforms::recording::{Record, Recording};
use providers::scripted::{Act, Scripted};
use providers::{Permissions, SharedProvider};
use serde_json::json;

/// The recording surface's name.
pub const SURFACE: &str = "recording";

/// The program under test, beside the test executable; both are built by the same cargo command.
pub fn baton() -> PathBuf {
    target_folder().join("baton")
}

/// `target/<profile>`.
pub fn target_folder() -> PathBuf {
    let here = std::env::current_exe().expect("a test knows its own file");
    let deps = here.parent().expect("a test executable lies in a folder");
    deps.parent()
        .expect("test executables lie in target/<profile>/deps")
        .to_owned()
}

/// Makes a provider once the home folder and the clock are there.
type Make = Box<dyn FnOnce(&Path, &MovedClock) -> SharedProvider>;

/// A world to be.
pub struct Builder {
    subscriptions: Vec<(String, Billing)>,
    given: Vec<(String, Make)>,
    workdir: Option<String>,
    chain: Option<Vec<String>>,
    plugins: Vec<(String, PluginUse)>,
    permissions: Option<Permissions>,
    deadline: Duration,
    silence: Duration,
    routing: RoutingSettings,
}

impl Default for Builder {
    fn default() -> Self {
        let on = || PluginUse {
            order: 0,
            enabled: true,
            required: true,
            budget_ms: BTreeMap::new(),
            config: json!({}),
        };
        Self {
            subscriptions: Vec::new(),
            given: Vec::new(),
            workdir: None,
            chain: None,
            plugins: vec![("quota".into(), on()), ("handoff".into(), on())],
            permissions: None,
            deadline: Duration::from_secs(60),
            silence: Duration::from_secs(60),
            routing: RoutingSettings::default(),
        }
    }
}

impl Builder {
    /// Adds a subscription of a plan; the chain is `name/m` in this order unless set.
    pub fn plan(mut self, name: &str) -> Self {
        self.subscriptions.push((name.into(), Billing::Plan));
        self
    }

    /// Adds a metered one.
    pub fn metered(mut self, name: &str) -> Self {
        self.subscriptions.push((name.into(), Billing::Metered));
        self
    }

    /// Adds a subscription of a plan that a real program or API serves.
    pub fn served_by(
        mut self,
        name: &str,
        make: impl FnOnce(&Path, &MovedClock) -> SharedProvider + 'static,
    ) -> Self {
        self.given.push((name.into(), Box::new(make)));
        self.plan(name)
    }

    /// Works in this folder of the home instead of the home itself.
    pub fn workdir(mut self, folder: &str) -> Self {
        self.workdir = Some(folder.into());
        self
    }

    /// Sets the chain.
    pub fn chain(mut self, routes: &[&str]) -> Self {
        self.chain = Some(routes.iter().map(|route| (*route).into()).collect());
        self
    }

    /// Switches a plugin off.
    pub fn without(mut self, plugin: &str) -> Self {
        for (name, usage) in &mut self.plugins {
            if name == plugin {
                usage.enabled = false;
                usage.required = false;
            }
        }
        self
    }

    /// What the agent may do, in place of the surface's default.
    pub fn permissions(mut self, level: Permissions) -> Self {
        self.permissions = Some(level);
        self
    }

    /// Under routing, with these settings switched on.
    pub fn routed(mut self, mut routing: RoutingSettings) -> Self {
        routing.settings.enabled = true;
        self.routing = routing;
        self
    }

    /// The attempt's bounds.
    pub fn limits(mut self, deadline: Duration, silence: Duration) -> Self {
        (self.deadline, self.silence) = (deadline, silence);
        self
    }

    /// Starts everything.
    pub async fn build(mut self) -> World {
        providers::install_tls();
        let home = tempfile::tempdir().expect("a temporary home");
        let clock = MovedClock::default();
        if let Some(folder) = &self.workdir {
            std::fs::create_dir_all(home.path().join(folder)).expect("a working directory");
        }
        let given: BTreeMap<_, _> = std::mem::take(&mut self.given)
            .into_iter()
            .map(|(name, make)| (SubscriptionId::new(name), make(home.path(), &clock)))
            .collect();
        let scripted: BTreeMap<_, _> = self
            .subscriptions
            .iter()
            .filter(|(name, _)| !given.contains_key(&SubscriptionId::new(name)))
            .map(|(name, _)| {
                (
                    name.clone(),
                    Scripted::in_folder(home.path().join("transcripts").join(name)),
                )
            })
            .collect();
        let settings = self.settings(home.path());
        let surface = Arc::new(Recording::new(SURFACE));
        let http = Arc::new(HttpPlatform::new());
        let (gateway, faults) = start(&settings, &clock, &surface, &http, &scripted, &given).await;
        World {
            gateway: Some(gateway),
            store: faults.clone(),
            faults,
            settings,
            clock,
            surface,
            http,
            scripted,
            given,
            home,
            said: 0,
        }
    }

    fn settings(&self, home: &Path) -> Settings {
        let root = RootPath(home.to_owned());
        let subscription = |(name, billing): &(String, Billing)| {
            let id = SubscriptionId::new(name);
            let settings = SubscriptionSettings {
                id: id.clone(),
                slug: id.clone(),
                billing: *billing,
                provider: ProviderSettings::Scripted,
            };
            (id, settings)
        };
        let chain = self.chain.clone().unwrap_or_else(|| {
            self.subscriptions
                .iter()
                .map(|(name, _)| format!("{name}/m"))
                .collect()
        });
        let profile = ProfileSettings {
            id: ProfileId::new(DEFAULT_PROFILE),
            home: root.profile(&ProfileId::new(DEFAULT_PROFILE)),
            chain: chain
                .iter()
                .map(|route| route.parse::<Route>().expect("a route"))
                .collect(),
            workdir: match &self.workdir {
                Some(folder) => home.join(folder),
                None => home.to_owned(),
            },
            permissions: self.permissions,
            plugins: self.plugins.iter().cloned().collect(),
            chat: BTreeMap::new(),
            attempt_deadline: self.deadline,
            silence: self.silence,
            routing: self.routing.clone(),
        };
        Settings {
            usage_snapshot: root.usage_file(),
            subscriptions: self.subscriptions.iter().map(subscription).collect(),
            profiles: BTreeMap::from([(profile.id.clone(), profile)]),
            plugins: BTreeMap::new(),
            root,
        }
    }
}

async fn start(
    settings: &Settings,
    clock: &MovedClock,
    surface: &Arc<Recording>,
    http: &Arc<HttpPlatform>,
    scripted: &BTreeMap<String, Scripted>,
    given: &BTreeMap<SubscriptionId, SharedProvider>,
) -> (Gateway, Arc<FaultyStore>) {
    let store = SqliteStore::open(&settings.root.store_file())
        .await
        .expect("a store in a fresh home");
    let store = Arc::new(FaultyStore::new(Arc::new(store)));
    let shared = |(name, provider): (&String, &Scripted)| {
        (
            SubscriptionId::new(name),
            Arc::new(provider.clone()) as SharedProvider,
        )
    };
    let gateway = Gateway::start(Parts {
        settings: settings.clone(),
        clock: Arc::new(clock.clone()),
        store: store.clone(),
        platforms: vec![surface.clone(), http.clone()],
        providers: scripted.iter().map(shared).chain(given.clone()).collect(),
        executable: baton(),
    })
    .await
    .expect("a gateway starts");
    (gateway, store)
}

/// A gateway and everything around it.
pub struct World {
    gateway: Option<Gateway>,
    pub store: Arc<dyn Store>,
    /// The same store: makes it fail.
    pub faults: Arc<FaultyStore>,
    pub settings: Settings,
    pub clock: MovedClock,
    pub surface: Arc<Recording>,
    http: Arc<HttpPlatform>,
    scripted: BTreeMap<String, Scripted>,
    given: BTreeMap<SubscriptionId, SharedProvider>,
    pub home: tempfile::TempDir,
    said: u64,
}

/// What one message led to.
#[derive(Debug, Clone)]
pub struct Shown {
    pub turn: Option<TurnId>,
    pub status: Vec<String>,
    pub answer: Option<String>,
    pub notices: Vec<String>,
    pub times_done: usize,
}

impl World {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The scripted provider behind a subscription.
    pub fn sub(&self, name: &str) -> &Scripted {
        self.scripted
            .get(name)
            .unwrap_or_else(|| panic!("no subscription {name}"))
    }

    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("the gateway runs")
    }

    /// Serves programs on a port of loopback, or wherever else.
    pub async fn serve(&self, listen: Listen, options: Options) -> Server {
        Server::start(listen, self.gateway(), self.http.clone(), options)
            .await
            .expect("the surface listens")
    }

    /// The same where it may fail.
    pub async fn try_serve(&self, listen: Listen) -> Result<Server, ServerError> {
        Server::start(
            listen,
            self.gateway(),
            self.http.clone(),
            Options::default(),
        )
        .await
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn pass(&self, time: SignedDuration) {
        self.clock.advance(time);
    }

    /// Says something and waits until no turn runs.
    pub async fn say(&mut self, text: &str) -> Shown {
        let before = self.surface.record().turns();
        self.send(text).await;
        self.gateway().idle().await;
        let record = self.surface.record();
        let turn = record
            .turns()
            .into_iter()
            .rfind(|turn| !before.contains(turn)); // what an earlier turn left may be said first
        shown(&record, turn)
    }

    /// Says something and does not wait for its end.
    pub async fn send(&mut self, text: &str) {
        let inbound = self.inbound(Content::Text(text.into()), Origin::Human);
        self.gateway().receive(inbound).await;
    }

    /// Runs a command; returns its answer.
    pub async fn command(&mut self, line: &str) -> String {
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        let before = self.surface.record().replies().len();
        let inbound = self.inbound(
            Content::Command {
                name: name.into(),
                args: args.into(),
            },
            Origin::Human,
        );
        self.gateway().receive(inbound).await;
        let record = self
            .surface
            .wait_for(|record| record.replies().len() > before)
            .await;
        record
            .replies()
            .get(before)
            .map(|(text, _)| (*text).to_owned())
            .unwrap_or_default()
    }

    /// A message as it would arrive.
    pub fn inbound(&mut self, content: Content, origin: Origin) -> Inbound {
        self.said += 1;
        Inbound {
            id: InboundId::new(format!("{}-{}", self.said, uuid::Uuid::new_v4())),
            profile: ProfileId::new(DEFAULT_PROFILE),
            session: SessionKey::new("agent:main:recording:chat"),
            sender: Sender {
                id: "ann".into(),
                name: "Ann".into(),
                standing: Standing::Operator,
            },
            origin,
            target: ReplyTarget {
                platform: SURFACE.into(),
                address: "chat".into(),
            },
            received_at: self.clock.now(),
            content,
        }
    }

    /// Publishes `usage.json` as another gateway would: these are spent until then.
    pub fn publish_spent(&self, spent: &[(&str, SignedDuration)]) {
        let now = self.now();
        let account = |(slug, until): &(&str, SignedDuration)| {
            json!({ "provider_slug": slug, "observed_at": now.to_string(), "windows": [
                { "key": "seven_day", "pct": 100, "status": "rejected", "resets_at": (now + *until).to_string() },
            ]})
        };
        let accounts: Vec<_> = spent.iter().map(account).collect();
        let text = json!({ "schema": 6, "providers": [{ "id": "claude", "accounts": accounts }] })
            .to_string();
        let file = &self.settings.usage_snapshot;
        std::fs::create_dir_all(file.parent().expect("it lies below the root")).expect("a folder");
        let beside = file.with_extension("new");
        write(&beside, text.as_bytes());
        std::fs::rename(&beside, file).expect("an atomic save");
    }

    /// Stops the gateway in order and starts another on the same home.
    pub async fn restart(&mut self) {
        self.stop().await;
        let (gateway, faults) = start(
            &self.settings,
            &self.clock,
            &self.surface,
            &self.http,
            &self.scripted,
            &self.given,
        )
        .await;
        (self.gateway, self.store, self.faults) = (Some(gateway), faults.clone(), faults);
    }

    /// Stops the gateway in order.
    pub async fn stop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown().await;
        }
    }
}

/// A script that says this and is done.
pub fn says(text: &str) -> Vec<Act> {
    vec![Act::text(text), Act::Answer]
}

/// What a turn showed.
pub fn shown(record: &Record, turn: Option<TurnId>) -> Shown {
    let owned = |texts: Vec<&str>| texts.into_iter().map(ToOwned::to_owned).collect();
    match &turn {
        None => Shown {
            turn,
            status: Vec::new(),
            answer: None,
            notices: Vec::new(),
            times_done: 0,
        },
        Some(id) => Shown {
            status: owned(record.status_lines(id)),
            answer: record.answer(id).map(ToOwned::to_owned),
            notices: owned(record.notices(id)),
            times_done: record.times_done(id),
            turn: turn.clone(),
        },
    }
}

/// Writes a file of a test.
#[expect(clippy::disallowed_methods, reason = "a test's own file, not state")]
pub fn write(file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}
