//! The demo's world: 21 subscriptions, a loopback server behind each, a published registry, a clock that can be moved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gateway_core::ids::{InboundId, ProfileId, SessionKey, SubscriptionId};
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use gateway_core::route::{Billing, Route};
use jiff::{SignedDuration, Timestamp};
use providers::SharedProvider;
use providers::loopback::{Loopback, Wire};
use providers::scripted::Scripted;
use serde_json::json;

use super::stage::{self, Stage};
use super::{Counters, Options};
use crate::clock::{Clock, MovedClock};
use crate::config::{
    DEFAULT_PROFILE, PluginUse, ProfileSettings, ProviderSettings, RootPath, SecretRef, Settings,
    SubscriptionSettings,
};
use crate::store::sqlite::SqliteStore;
use crate::{Gateway, Parts};

/// How many subscriptions there are.
pub(super) const SUBSCRIPTIONS: usize = 21;

/// The ones the published registry knows to be spent, by number.
pub(super) const SPENT: std::ops::RangeInclusive<usize> = 2..=18;

/// The one that plays a CLI with tools and sessions.
pub(super) const AGENT: usize = 20;

/// The marker that a request carries a handoff.
const CARRIES: &str = "[RESUMED TURN";

/// The gateway with everything around it.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) clock: MovedClock,
    pub(super) agent: Scripted,
    /// One per subscription, in order.
    pub(super) upstreams: Vec<Loopback>,
    pub(super) http: reqwest::Client,
    settings: Settings,
    _home: tempfile::TempDir,
}

impl World {
    pub(super) async fn build(options: &Options, stage: Stage) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new()
            .prefix("baton-demo-")
            .tempdir()
            .context("cannot make a temporary home")?;
        let mut upstreams = Vec::new();
        for _ in 0..SUBSCRIPTIONS {
            upstreams.push(
                Loopback::start(Wire::Anthropic)
                    .await
                    .context("cannot open a port on loopback")?,
            );
        }
        let settings = settings(home.path(), &upstreams)?;
        let clock = MovedClock::default();
        let agent = Scripted::new();
        let shared: SharedProvider = Arc::new(agent.clone());
        let store = SqliteStore::open(&settings.root.store_file()).await?;
        let world_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        publish(&settings, &SPENT.collect::<Vec<_>>(), clock.now())?;
        let gateway = Gateway::start(Parts {
            settings: settings.clone(),
            clock: world_clock,
            store: Arc::new(store),
            platforms: vec![Arc::new(stage)],
            providers: BTreeMap::from([(subscription(AGENT), shared)]),
            executable: options.executable.clone(),
        })
        .await?;
        let http = providers::http::client()?;
        Ok(Self {
            gateway,
            clock,
            agent,
            upstreams,
            http,
            settings,
            _home: home,
        })
    }

    /// Lets the person say something, and waits until it is answered.
    pub(super) async fn say(&self, stage: &Stage, text: &str) {
        stage.person(text).await;
        let content = match text.strip_prefix('/') {
            Some(command) => Content::Command {
                name: command.to_owned(),
                args: String::new(),
            },
            None => Content::Text(text.to_owned()),
        };
        self.gateway
            .receive(inbound(content, self.clock.now()))
            .await;
        self.gateway.idle().await;
    }

    /// Another gateway of the same root publishes that these are spent.
    pub(super) fn publish(&self, spent: &[usize]) -> anyhow::Result<()> {
        publish(&self.settings, spent, self.clock.now())
    }

    /// The demo's time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: SignedDuration) {
        self.clock.advance(time);
    }

    /// The server behind a subscription, by number from 1.
    pub(super) fn upstream(&self, number: usize) -> anyhow::Result<&Loopback> {
        self.upstreams
            .get(number.wrapping_sub(1))
            .context("no such subscription")
    }

    pub(super) fn counters(&self, stage: &Stage) -> Counters {
        let requests: Vec<_> = self.upstreams.iter().map(Loopback::requests).collect();
        let to = |number: usize| requests.get(number - 1).map_or(0, Vec::len);
        Counters {
            requests_total: requests.iter().map(Vec::len).sum(),
            requests_to_exhausted: SPENT.map(to).sum(),
            status_lines: stage.status_lines(),
            handoffs_sealed: stage.notices_with("Handoff saved:"),
            previews: stage.replies_with(CARRIES),
            injections: requests
                .iter()
                .flatten()
                .filter(|request| request.text.contains(CARRIES))
                .count(),
            rotations: 0,
            answers: stage.answers(),
        }
    }

    pub(super) async fn close(self) {
        self.gateway.shutdown().await;
    }
}

/// A subscription's name, by number from 1.
pub(super) fn subscription(number: usize) -> SubscriptionId {
    SubscriptionId::new(format!("sub-{number:02}"))
}

pub(super) fn inbound(content: Content, now: Timestamp) -> Inbound {
    Inbound {
        id: InboundId::new(uuid::Uuid::now_v7().to_string()),
        profile: ProfileId::new(DEFAULT_PROFILE),
        session: SessionKey::new("agent:main:demo:chat"),
        sender: Sender {
            id: "you".into(),
            name: "you".into(),
            standing: Standing::Operator,
        },
        origin: Origin::Human,
        target: ReplyTarget {
            platform: stage::NAME.into(),
            address: "chat".into(),
        },
        received_at: now,
        content,
    }
}

fn settings(home: &std::path::Path, upstreams: &[Loopback]) -> anyhow::Result<Settings> {
    let root = RootPath(home.to_owned());
    let mut subscriptions = BTreeMap::new();
    for (at, upstream) in upstreams.iter().enumerate() {
        let id = subscription(at + 1);
        // A key each: logins with one key would draw on one allowance.
        let key = home.join(format!("{id}-key"));
        write_private(&key, &format!("not-a-real-key-of-{id}\n"))?;
        let provider = if at + 1 == AGENT {
            ProviderSettings::Scripted
        } else {
            ProviderSettings::Anthropic {
                base_url: upstream.base_url(),
                key: SecretRef::File(key),
                max_tokens: 1024,
                price: None,
            }
        };
        let settings = SubscriptionSettings {
            id: id.clone(),
            slug: id.clone(),
            billing: Billing::Plan,
            provider,
        };
        subscriptions.insert(id, settings);
    }
    let chain = subscriptions
        .keys()
        .map(|id| Route::new(id.as_str(), "opus"))
        .collect();
    let on = || PluginUse {
        order: 0,
        enabled: true,
        required: true,
        budget_ms: BTreeMap::new(),
        config: json!({}),
    };
    let profile = ProfileSettings {
        id: ProfileId::new(DEFAULT_PROFILE),
        home: root.profile(&ProfileId::new(DEFAULT_PROFILE)),
        chain,
        workdir: home.to_owned(),
        permissions: None,
        plugins: BTreeMap::from([("quota".to_owned(), on()), ("handoff".to_owned(), on())]),
        chat: BTreeMap::new(),
        attempt_deadline: Duration::from_secs(60),
        silence: Duration::from_secs(30),
        routing: Default::default(),
    };
    Ok(Settings {
        usage_snapshot: root.usage_file(),
        subscriptions,
        profiles: BTreeMap::from([(profile.id.clone(), profile)]),
        plugins: BTreeMap::new(),
        root,
    })
}

/// Writes the registry the way any publisher of it does: whole, in schema 6. The soonest reset is a day away.
fn publish(settings: &Settings, spent: &[usize], now: Timestamp) -> anyhow::Result<()> {
    let account = |number: &usize| {
        let reset = now + SignedDuration::from_hours(24 + i64::try_from(*number).unwrap_or(0));
        json!({
            "key": format!("demo-{number}"),
            "label": format!("demo login {number}"),
            "provider_slug": subscription(*number).as_str(),
            "observed_at": now.to_string(),
            "windows": [
                { "key": "five_hour", "pct": 35, "status": "allowed", "resets_at": reset.to_string() },
                { "key": "seven_day", "pct": 100, "status": "rejected", "resets_at": reset.to_string() },
            ],
        })
    };
    let accounts: Vec<_> = spent.iter().map(account).collect();
    let snapshot = json!({ "schema": 6, "providers": [{ "id": "claude", "accounts": accounts }] });
    let file = settings.root.usage_file();
    write_private(&file, &snapshot.to_string())
}

fn write_private(file: &std::path::Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = file.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut options = atomic_write_file::OpenOptions::new();
    atomic_write_file::unix::OpenOptionsExt::preserve_mode(&mut options, false);
    options.mode(0o600);
    let mut writing = options
        .open(file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    writing.write_all(text.as_bytes())?;
    writing.commit()?;
    Ok(())
}
