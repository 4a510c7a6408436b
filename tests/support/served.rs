//! `baton run` in this process: the real adapters in front of fake platforms, over scripted providers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_fakes::discord::TOKEN;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN};
use gateway_fakes::{FakeDiscord, FakeSlack};
use gateway_host::Parts;
use gateway_host::clock::MovedClock;
use gateway_host::config::{Environment, RootPath, load};
use gateway_host::front::connect;
use gateway_host::front::serve::{self, End, Said, Service};
use gateway_host::store::sqlite::SqliteStore;
use providers::SharedProvider;
use providers::scripted::{Act, Scripted};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::{baton, write};

/// The longest a test waits for one thing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home with one scripted subscription, `a`, and whatever is served from it.
pub struct Served {
    pub home: tempfile::TempDir,
    /// Answers `echo: <prompt>` unless told otherwise.
    pub sub: Scripted,
    pub clock: MovedClock,
    said: watch::Sender<Vec<Said>>,
    running: Option<(mpsc::Sender<()>, JoinHandle<anyhow::Result<End>>)>,
}

/// How to serve.
#[derive(Debug, Clone, Copy)]
pub struct How {
    pub drain: Duration,
    pub pair: bool,
}

impl Default for How {
    fn default() -> Self {
        Self {
            drain: serve::DRAIN,
            pair: false,
        }
    }
}

/// The keys of a section that is served by this fake.
pub fn discord(fake: &FakeDiscord) -> String {
    format!(
        "token_file = \"discord.token\"\napi_base = \"{}\"\n",
        fake.base()
    )
}

/// The same for Slack.
pub fn slack(fake: &FakeSlack) -> String {
    format!(
        "app_token_file = \"app.token\"\nbot_token_file = \"bot.token\"\napi_url = \"{}\"\n",
        fake.api()
    )
}

impl Served {
    /// A home in which nothing runs. `sections` come after a `[profiles.default]` with its chain.
    pub fn home(sections: &str) -> Self {
        providers::install_tls();
        let home = tempfile::tempdir().expect("a temporary home");
        let secrets = [
            ("discord.token", TOKEN),
            ("app.token", APP_TOKEN),
            ("bot.token", BOT_TOKEN),
        ];
        for (name, secret) in secrets {
            write(&home.path().join(name), secret.as_bytes());
            only_ours(&home.path().join(name));
        }
        let sub = Scripted::in_folder(home.path().join("transcripts"));
        sub.otherwise(|seen| vec![Act::text(format!("echo: {}", seen.prompt)), Act::Answer]);
        let served = Self {
            home,
            sub,
            clock: MovedClock::default(),
            said: watch::Sender::default(),
            running: None,
        };
        served.configure(sections);
        served
    }

    /// Writes the configuration anew.
    pub fn configure(&self, sections: &str) {
        let workdir = self.home.path().display();
        let text = format!(
            "[subscriptions.a]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"a/m\"]\nworkdir = \"{workdir}\"\n{sections}"
        );
        let file = self.root().config_file();
        write(&file, text.as_bytes());
        only_ours(&file);
    }

    /// Starts serving; does not wait for anything.
    pub async fn start(&mut self, how: How) {
        self.said.send_replace(Vec::new());
        let loaded = load(&self.root(), &Environment::of(self.home.path(), &[]));
        let settings = loaded.unwrap_or_else(|error| panic!("{error}")).settings;
        let profiles: BTreeSet<ProfileId> = settings.profiles.keys().cloned().collect();
        let bots = connect::bots(&settings, &profiles).unwrap_or_else(|unfit| panic!("{unfit:?}"));
        let store = SqliteStore::open(settings.root.store_file())
            .await
            .expect("a store");
        let sub: SharedProvider = Arc::new(self.sub.clone());
        let parts = Parts {
            settings,
            clock: Arc::new(self.clock.clone()),
            store: Arc::new(store),
            platforms: Vec::new(),
            providers: BTreeMap::from([(SubscriptionId::new("a"), sub)]),
            executable: baton(),
        };
        let said = self.said.clone();
        let service = Service {
            parts,
            bots,
            drain: how.drain,
            pair: how.pair,
            say: Arc::new(move |one| said.send_modify(|all| all.push(one))),
        };
        let (stop, stops) = mpsc::channel(4);
        let task = tokio::spawn(serve::serve(service, stops));
        self.running = Some((stop, task));
    }

    /// Serves these sections, and waits until every bot can hear.
    pub async fn serving(sections: &str) -> Self {
        let mut served = Self::home(sections);
        served.start(How::default()).await;
        served.ready().await;
        served
    }

    /// Waits until a bot can hear.
    pub async fn ready(&self) {
        self.said(|one| matches!(one, Said::Ready { .. })).await;
    }

    /// Waits until this was told to whoever started it.
    pub async fn said(&self, is: impl Fn(&Said) -> bool) -> Said {
        let mut told = self.said.subscribe();
        let found = told.wait_for(|all| all.iter().any(&is));
        let all = tokio::time::timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("never told; only {:?}", self.all_said()))
            .expect("we hold the sender")
            .clone();
        all.into_iter().find(is).expect("it was there")
    }

    /// Everything told since the start.
    pub fn all_said(&self) -> Vec<Said> {
        self.said.borrow().clone()
    }

    /// Asks to stop, without waiting for it.
    pub async fn ask_to_stop(&self) {
        let (stop, _) = self.running.as_ref().expect("it runs");
        stop.send(()).await.expect("it listens");
    }

    /// Waits until serving has ended.
    pub async fn ended(&mut self) -> End {
        let (_stop, task) = self.running.take().expect("it runs");
        let ended = tokio::time::timeout(PATIENCE, task).await;
        let ended = ended.unwrap_or_else(|_| panic!("it did not end: {:?}", self.all_said()));
        ended
            .expect("no panic")
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Stops in order.
    pub async fn stop(&mut self) -> End {
        self.ask_to_stop().await;
        self.ended().await
    }

    pub fn root(&self) -> RootPath {
        RootPath(self.home.path().to_owned())
    }

    /// A file below the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

fn only_ours(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("our own file");
}
