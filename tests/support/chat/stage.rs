//! The gateway's side: a home, scripted subscriptions, a clock, and the gateway served as `baton run` serves it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::access::AccessRules;
use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_host::Parts;
use gateway_host::clock::{Clock, MovedClock};
use gateway_host::config::{Account, ChatKind, ChatSettings, DEFAULT_PROFILE, SecretRef, Settings};
use gateway_host::front::serve::{End, Said, Say, Service, serve};
use gateway_host::front::{Bot, connect};
use gateway_host::store::sqlite::SqliteStore;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use providers::scripted::Scripted;
use providers::{Permissions, SharedProvider};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::PATIENCE;
use crate::{Builder, baton, write};

/// A home with scripted subscriptions, and the gateway that runs on it.
pub struct Stage {
    pub settings: Settings,
    pub clock: MovedClock,
    scripted: BTreeMap<String, Scripted>,
    given: BTreeMap<SubscriptionId, SharedProvider>,
    said: Arc<Mutex<Vec<String>>>,
    running: Option<Running>,
    home: tempfile::TempDir,
}

struct Running {
    stops: mpsc::Sender<()>,
    task: JoinHandle<anyhow::Result<End>>,
}

impl Stage {
    /// A home with scripted subscriptions of plans, the chain in this order; no gateway runs yet.
    pub fn new(subscriptions: &[&str]) -> Self {
        let builder = Builder::default();
        let builder = subscriptions
            .iter()
            .fold(builder, |all, name| all.plan(name));
        providers::install_tls();
        let home = tempfile::tempdir().expect("a temporary home");
        let scripted = builder.subscriptions.iter().map(|(name, _)| {
            let folder = home.path().join("transcripts").join(name);
            (name.clone(), Scripted::in_folder(folder))
        });
        Self {
            scripted: scripted.collect(),
            settings: builder.settings(home.path()),
            clock: MovedClock::default(),
            given: BTreeMap::new(),
            said: Arc::default(),
            running: None,
            home,
        }
    }

    /// The scripted provider behind a subscription.
    pub fn sub(&self, name: &str) -> &Scripted {
        self.scripted
            .get(name)
            .unwrap_or_else(|| panic!("no subscription {name}"))
    }

    /// Puts another provider behind a subscription.
    pub fn serve_by(&mut self, name: &str, provider: SharedProvider) {
        self.given.insert(SubscriptionId::new(name), provider);
    }

    /// Every subscription, by name.
    pub fn subs(&self) -> impl Iterator<Item = (&String, &Scripted)> {
        self.scripted.iter()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn pass(&self, time: SignedDuration) {
        self.clock.advance(time);
    }

    /// What `baton run` would have printed.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().clone()
    }

    /// A file of this text, as a secret.
    pub fn secret(&self, name: &str, text: &str) -> SecretRef {
        let file = self.home.path().join(name);
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600);
        let mut opened = opened.open(&file).expect("a file of the test");
        std::io::Write::write_all(&mut opened, text.as_bytes()).expect("it is written");
        SecretRef::File(file)
    }

    /// Gives the profile its section of a platform.
    pub fn section(&mut self, kind: ChatKind, account: Account, access: AccessRules) {
        let chat = ChatSettings {
            account,
            access,
            permissions: Permissions::None,
            show_tools: false,
            command_prefix: String::new(),
        };
        let profile = self.settings.profiles.get_mut(&profile());
        profile.expect("the one profile").chat.insert(kind, chat);
    }

    /// The bot of the profile's section.
    pub fn account(&self, kind: ChatKind) -> &Account {
        let profile = self.settings.profiles.get(&profile());
        let chat = profile.and_then(|profile| profile.chat.get(&kind));
        &chat.expect("it has the section").account
    }

    /// The parts of a gateway on this home, without platforms.
    pub async fn parts(&self) -> Parts {
        let store = SqliteStore::open(&self.settings.root.store_file()).await;
        let shared = |(name, provider): (&String, &Scripted)| {
            let provider: SharedProvider = Arc::new(provider.clone());
            (SubscriptionId::new(name), provider)
        };
        Parts {
            settings: self.settings.clone(),
            clock: Arc::new(self.clock.clone()),
            store: Arc::new(store.expect("a store")),
            platforms: Vec::new(),
            providers: self
                .scripted
                .iter()
                .map(shared)
                .chain(self.given.clone())
                .collect(),
            executable: baton(),
        }
    }

    /// Serves the profile's sections; returns when every bot hears.
    pub async fn run(&mut self) {
        let bots = connect::bots(&self.settings, &BTreeSet::from([profile()]));
        let bots = bots.unwrap_or_else(|unfit| panic!("no bots: {unfit:?}"));
        self.run_bots(bots).await;
    }

    /// Serves these bots; returns when each of them hears.
    pub async fn run_bots(&mut self, bots: Vec<Bot>) {
        let (ready_in, mut ready) = mpsc::unbounded_channel();
        let said = Arc::clone(&self.said);
        let say: Say = Arc::new(move |what| {
            said.lock().push(what.to_string());
            if matches!(what, Said::Ready { .. }) {
                let _ = ready_in.send(()); // nobody waits any more
            }
        });
        let (stops, stopped) = mpsc::channel(2);
        let count = bots.len();
        let service = Service {
            parts: self.parts().await,
            bots,
            drain: Duration::from_secs(30),
            pair: false,
            say,
        };
        let mut task = tokio::spawn(serve(service, stopped));
        for _ in 0..count {
            tokio::select! {
                ready = tokio::time::timeout(PATIENCE, ready.recv()) => {
                    ready.unwrap_or_else(|_| panic!("nobody is ready: {:?}", self.said()));
                }
                ended = &mut task => panic!("it ended: {ended:?}, having said {:?}", self.said()),
            }
        }
        self.running = Some(Running { stops, task });
    }

    /// Tells the gateway to stop, and waits until it has.
    pub async fn stop(&mut self) {
        let Some(Running { stops, task }) = self.running.take() else {
            return;
        };
        stops.send(()).await.expect("it runs");
        let ended = tokio::time::timeout(PATIENCE, task).await;
        let ended = ended.expect("it ends in time").expect("no panic");
        assert_eq!(ended.expect("it could serve"), End::Stopped);
    }

    /// Publishes `usage.json` as another gateway would: these are spent for so long.
    pub fn publish_spent(&self, spent: &[(String, SignedDuration)]) {
        publish_spent(&self.settings.usage_snapshot, self.now(), spent);
    }
}

/// The one profile.
pub fn profile() -> ProfileId {
    ProfileId::new(DEFAULT_PROFILE)
}

/// Writes a registry by which these are spent for so long, the way any publisher of it does.
pub fn publish_spent(file: &std::path::Path, now: Timestamp, spent: &[(String, SignedDuration)]) {
    let account = |(slug, time): &(String, SignedDuration)| {
        json!({ "provider_slug": slug, "observed_at": now.to_string(), "windows": [
            { "key": "seven_day", "pct": 100, "status": "rejected", "resets_at": (now + *time).to_string() },
        ]})
    };
    let accounts: Vec<_> = spent.iter().map(account).collect();
    let document = json!({ "schema": 6, "providers": [{ "id": "claude", "accounts": accounts }] });
    std::fs::create_dir_all(file.parent().expect("it lies below the root")).expect("a folder");
    let beside = file.with_extension("new");
    write(&beside, document.to_string().as_bytes());
    std::fs::rename(&beside, file).expect("an atomic save");
}

/// Names as a set.
pub fn set(names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    names.into_iter().collect()
}
