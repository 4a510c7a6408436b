//! What the benches share: a chain with known evidence, settings over it, and a provider that answers at once and notes
//! when it was started.

#![allow(dead_code, reason = "each bench uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gateway_core::event::{Event, TokenUsage};
use gateway_core::ids::{InboundId, ProfileId, SessionKey, SubscriptionId, TurnId};
use gateway_core::message::{Content, Inbound, Origin, ReplyOp, ReplyTarget, Sender, Standing};
use gateway_core::route::{Billing, Chain, ChainEntry, Route};
use gateway_core::turn::{Answer, AttemptEnd};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use gateway_host::clock::{Clock, SystemClock};
use gateway_host::config::{
    DEFAULT_PROFILE, PluginUse, ProfileSettings, ProviderSettings, RootPath, Settings,
    SubscriptionSettings,
};
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::{Gateway, Parts};
use jiff::{SignedDuration, Timestamp};
use platforms::{DeliveryError, Limits, Platform, Receipt};
use providers::{AttemptHandle, AttemptRequest, Health, Provider, SharedProvider};
use serde_json::json;
use tokio::sync::watch;

/// The built gateway, beside which its two plugins lie.
pub(crate) fn baton() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_baton"))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

pub(crate) fn profile() -> ProfileId {
    ProfileId::new(DEFAULT_PROFILE)
}

/// All entries but the last four are known to be spent (17 of 21).
pub(crate) fn chain(entries: usize) -> (Chain, Vec<Reading>) {
    let spent = entries.saturating_sub(4);
    let readings = (0..entries).flat_map(|at| readings(at, at < spent));
    let entry = |at| ChainEntry {
        route: Route::new(format!("sub-{at}").as_str(), "opus"),
        slug: slug(at),
        billing: Billing::Plan,
        group: None,
    };
    let chain = Chain {
        entries: (0..entries).map(entry).collect(),
    };
    (chain, readings.collect())
}

fn slug(at: usize) -> SubscriptionId {
    SubscriptionId::new(format!("sub-{at}"))
}

/// Two windows each, as a real subscription has.
fn readings(at: usize, spent: bool) -> [Reading; 2] {
    let observed = now();
    ["five_hour", "seven_day"].map(|window| Reading {
        subscription: slug(at),
        window: window.to_owned(),
        scope: None,
        used_pct: Some(if spent { 100.0 } else { 10.0 }),
        status: if spent {
            WindowStatus::Rejected
        } else {
            WindowStatus::Allowed
        },
        resets_at: Some(observed + SignedDuration::from_hours(48)),
        duration_mins: None,
        observed_at: Some(observed),
        source: ReadingSource::Probe,
    })
}

/// The same evidence as another gateway would publish it.
pub(crate) fn publish(settings: &Settings, readings: &[Reading]) {
    let accounts: Vec<_> = readings
        .chunks(2)
        .map(|of_one| {
            let windows: Vec<_> = of_one.iter().map(|reading| json!({
                "key": reading.window,
                "pct": reading.used_pct,
                "status": if reading.status == WindowStatus::Rejected { "rejected" } else { "allowed" },
                "resets_at": reading.resets_at.map(|at| at.to_string()),
            })).collect();
            let slug = of_one.first().map(|reading| reading.subscription.as_str().to_owned());
            json!({ "provider_slug": slug, "observed_at": now().to_string(), "windows": windows })
        })
        .collect();
    let text = json!({ "schema": 6, "providers": [{ "id": "claude", "accounts": accounts }] });
    let file = &settings.usage_snapshot;
    std::fs::create_dir_all(file.parent().expect("it lies below the root")).expect("a folder");
    let beside = file.with_extension("new");
    write(&beside, &text.to_string());
    std::fs::rename(&beside, file).expect("an atomic save");
}

#[expect(clippy::disallowed_methods, reason = "a bench's own file, not state")]
pub(crate) fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a writable folder");
}

/// Settings over a chain that long, with both plugins.
pub(crate) fn settings(home: &Path, entries: usize) -> Settings {
    let root = RootPath(home.to_owned());
    let (chain, _) = chain(entries);
    let subscription = |entry: &ChainEntry| {
        let id = entry.route.subscription.clone();
        let settings = SubscriptionSettings {
            id: id.clone(),
            slug: entry.slug.clone(),
            billing: Billing::Plan,
            provider: ProviderSettings::Scripted,
        };
        (id, settings)
    };
    let plugin = |name: &str| {
        let usage = PluginUse {
            order: 0,
            enabled: true,
            required: true,
            budget_ms: BTreeMap::new(),
            config: json!({}),
        };
        (name.to_owned(), usage)
    };
    let profile = ProfileSettings {
        id: profile(),
        home: root.profile(&profile()),
        chain: chain
            .entries
            .iter()
            .map(|entry| entry.route.clone())
            .collect(),
        workdir: home.to_owned(),
        permissions: None,
        plugins: BTreeMap::from([plugin("quota"), plugin("handoff")]),
        chat: BTreeMap::new(),
        attempt_deadline: Duration::from_secs(60),
        silence: Duration::from_secs(60),
        routing: Default::default(),
    };
    Settings {
        usage_snapshot: root.usage_file(),
        subscriptions: chain.entries.iter().map(subscription).collect(),
        profiles: BTreeMap::from([(profile.id.clone(), profile)]),
        plugins: BTreeMap::new(),
        root,
    }
}

/// A gateway over a store on disk, ready to take messages of `surface`.
pub(crate) async fn gateway(
    settings: &Settings,
    surface: &'static str,
    provider: &AtOnce,
) -> Gateway {
    let store = SqliteStore::open(&settings.root.store_file())
        .await
        .expect("a store in a fresh home");
    let shared: SharedProvider = Arc::new(provider.clone());
    let providers = settings
        .subscriptions
        .keys()
        .map(|id| (id.clone(), Arc::clone(&shared)));
    Gateway::start(Parts {
        settings: settings.clone(),
        clock: Arc::new(SystemClock),
        store: Arc::new(store),
        platforms: vec![Arc::new(Nowhere(surface))],
        providers: providers.collect(),
        executable: baton(),
    })
    .await
    .expect("a gateway starts")
}

pub(crate) fn inbound(surface: &str, lane: usize, number: u64) -> Inbound {
    Inbound {
        id: InboundId::new(format!("{lane}-{number}")),
        profile: profile(),
        session: SessionKey::new(format!("agent:main:{surface}:{lane}")),
        sender: Sender {
            id: "ann".into(),
            name: "Ann".into(),
            standing: Standing::Operator,
        },
        origin: Origin::Human,
        target: ReplyTarget {
            platform: surface.into(),
            address: lane.to_string(),
        },
        received_at: now(),
        content: Content::Text("What does this function do, and is it safe to call twice?".into()),
    }
}

/// Shows nothing and remembers nothing.
struct Nowhere(&'static str);

#[async_trait]
impl Platform for Nowhere {
    fn name(&self) -> &'static str {
        self.0
    }

    fn limits(&self) -> Limits {
        Limits {
            message_chars: None,
            edits: true,
            edit_interval: Duration::ZERO,
            private_replies: true,
        }
    }

    async fn deliver(
        &self,
        _to: &ReplyTarget,
        _turn: Option<&TurnId>,
        _op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        Ok(Receipt(String::new()))
    }
}

/// Answers at once and keeps no sessions; notes when it was started and when it might send.
#[derive(Clone)]
pub(crate) struct AtOnce(Arc<watch::Sender<Option<Marks>>>);

#[derive(Clone, Copy)]
pub(crate) struct Marks {
    pub(crate) started: Instant,
    pub(crate) sent: Instant,
}

impl Default for AtOnce {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl AtOnce {
    /// When the newest attempt was started and when its prompt might leave.
    pub(crate) fn marks(&self) -> Marks {
        self.0.borrow().expect("an attempt was made")
    }
}

#[async_trait]
impl Provider for AtOnce {
    fn start(&self, mut request: AttemptRequest) -> AttemptHandle {
        let started = Instant::now();
        let marks = Arc::clone(&self.0);
        AttemptHandle::spawn(move |events, _| async move {
            if (&mut request.go).await.is_err() {
                return AttemptEnd::Stopped;
            }
            let sent = Instant::now();
            marks.send_replace(Some(Marks { started, sent }));
            let text = "It reads the file once and can be called again.".to_owned();
            let delta = text.clone();
            let _ = events.send(Event::Text { block: 0, delta }).await; // the host may be gone
            AttemptEnd::Answered(Answer {
                text,
                usage: TokenUsage::default(),
            })
        })
    }

    fn keeps_sessions(&self) -> bool {
        false
    }

    async fn health(&self) -> Health {
        Health::Ready { version: None }
    }
}
