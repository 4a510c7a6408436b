//! `baton demo --scene routing`: three subscriptions, a limit in the middle of a tool, a turn that would not fit, and a
//! reset that is waited for. The agents play a CLI with tools; their text comes from loopback servers, which count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gateway_core::event::CallOutcome;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::message::Content;
use gateway_core::route::{Billing, Route};
use gateway_core::switch::facts::Burn;
use gateway_core::switch::machine::AuditKind;
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::SignedDuration;
use providers::SharedProvider;
use providers::loopback::{Loopback, Step, Wire};
use providers::scripted::{Act, Scripted};
use serde_json::json;
use tokio::sync::Notify;

use super::Options;
use super::stage::Stage;
use super::world::inbound;
use crate::clock::{Clock, MovedClock};
use crate::config::{
    DEFAULT_PROFILE, PluginUse, ProfileSettings, ProviderSettings, RootPath, Settings,
    SubscriptionSettings,
};
use crate::routing::{RoutingSettings, resume};
use crate::store::Lane;
use crate::store::sqlite::SqliteStore;
use crate::{Gateway, Parts};

const CLAUDE: &str = "claude-work";
const CODEX: &str = "gpt-plus";
const WINDOW: &str = "five_hour";
const RESET_AFTER: SignedDuration = SignedDuration::from_hours(3);

/// One subscription: what plays it, and the server that counts.
struct Sub {
    agent: Scripted,
    server: Loopback,
}

struct World {
    gateway: Gateway,
    clock: MovedClock,
    subs: BTreeMap<&'static str, Sub>,
    http: reqwest::Client,
    _home: tempfile::TempDir,
}

/// Plays the story; what was measured comes last.
pub(super) async fn play(options: &Options, stage: &Stage) -> anyhow::Result<()> {
    let world = World::build(options, stage.clone()).await?;
    let played = story(&world, stage).await;
    let counters = world.counters(stage).await;
    world.gateway.shutdown().await;
    played?;
    stage.close_with(&counters?);
    Ok(())
}

async fn story(world: &World, stage: &Stage) -> anyhow::Result<()> {
    limit_in_a_tool(world, stage).await?;
    would_not_fit(world, stage).await?;
    waits_and_goes_on(world, stage).await
}

async fn limit_in_a_tool(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(
            1,
            "a limit in the middle of a tool: it ends, then the work moves",
        )
        .await;
    world.knows(&[(CLAUDE, 61.0), (CODEX, 20.0)]).await;
    let claude = world.sub(CLAUDE)?;
    claude
        .server
        .enqueue(Step::answer("I will run the tests first."));
    let tool_ends = Arc::new(Notify::new());
    tool_ends.notify_one();
    claude.agent.play([
        world.fetch(claude),
        Act::call("t1", "terminal", &json!({ "command": "cargo test" })),
        Act::Limit(world.reading(CLAUDE, 100.0, WindowStatus::Rejected)),
        Act::Wait(tool_ends),
        Act::result("t1", CallOutcome::Completed, "1 failed: parse::empty_input"),
        Act::WaitForStop,
    ]);
    let codex = world.sub(CODEX)?;
    codex.server.enqueue(Step::answer(
        "The tests had run once: parse::empty_input fails. The parser never looked at an empty line; it does now, and they pass.",
    ));
    codex.agent.play([world.fetch(codex)]);
    world.say(stage, "Make the tests pass.").await;
    stage
        .aside("Claude was stopped only after its tool had ended")
        .await;
    world.knows(&[(CLAUDE, 12.0)]).await;
    world.say(stage, "/switch-back").await;
    Ok(())
}

async fn would_not_fit(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(2, "a turn that would not fit moves before it starts")
        .await;
    world.pass(SignedDuration::from_hours(25)); // an undone switch holds for a day
    world.knows(&[(CLAUDE, 84.0), (CODEX, 30.0)]).await;
    world.burns(CLAUDE, 7.0).await?;
    let codex = world.sub(CODEX)?;
    codex
        .server
        .enqueue(Step::answer("Done: the parser has a fuzz test."));
    codex.agent.play([world.fetch(codex)]);
    world.say(stage, "Add a fuzz test.").await;
    Ok(())
}

async fn waits_and_goes_on(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(
            3,
            "nobody has confirmed room: it waits, and goes on by itself",
        )
        .await;
    world.pass(SignedDuration::from_mins(20)); // what is known of Claude is old now
    world.knows(&[(CODEX, 50.0)]).await;
    let codex = world.sub(CODEX)?;
    codex.server.enqueue(Step::answer("Writing the changelog."));
    let limit = Failure::new(
        FailureKind::RateLimit,
        FailureScope::Account,
        "5-hour limit",
    );
    let until = Some(world.clock.now() + RESET_AFTER);
    codex.agent.play([
        world.fetch(codex),
        Act::Fail(limit.retry_at(until).window(Some(WINDOW.to_owned()))),
    ]);
    world.say(stage, "And a changelog entry.").await;
    stage.aside("three hours pass; nobody types anything").await;
    codex
        .server
        .enqueue(Step::answer("Continued: the entry is in CHANGELOG.md."));
    codex.agent.play([world.fetch(codex)]);
    world.pass(RESET_AFTER + SignedDuration::from_mins(2));
    resume::sweep(world.gateway.sessions(), world.gateway.effects()).await;
    world.gateway.idle().await;
    Ok(())
}

impl World {
    async fn build(options: &Options, stage: Stage) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new()
            .prefix("baton-demo-")
            .tempdir()
            .context("cannot make a temporary home")?;
        let mut subs = BTreeMap::new();
        for name in [CLAUDE, CODEX] {
            let sub = Sub {
                agent: Scripted::new(),
                server: Loopback::start(Wire::Anthropic)
                    .await
                    .context("cannot open a port on loopback")?,
            };
            subs.insert(name, sub);
        }
        let settings = settings(home.path());
        let clock = MovedClock::default();
        let store = SqliteStore::open(&settings.root.store_file()).await?;
        let shared = |(name, sub): (&&str, &Sub)| {
            let provider: SharedProvider = Arc::new(sub.agent.clone());
            (SubscriptionId::new(name), provider)
        };
        let gateway = Gateway::start(Parts {
            settings,
            clock: Arc::new(clock.clone()),
            store: Arc::new(store),
            platforms: vec![Arc::new(stage)],
            providers: subs.iter().map(shared).collect(),
            executable: options.executable.clone(),
        })
        .await?;
        Ok(Self {
            gateway,
            clock,
            subs,
            http: providers::http::client()?,
            _home: home,
        })
    }

    fn sub(&self, name: &str) -> anyhow::Result<&Sub> {
        self.subs.get(name).context("no such subscription")
    }

    fn fetch(&self, sub: &Sub) -> Act {
        Act::Fetch {
            base_url: sub.server.base_url(),
            client: self.http.clone(),
        }
    }

    fn pass(&self, time: SignedDuration) {
        self.clock.advance(time);
    }

    async fn say(&self, stage: &Stage, text: &str) {
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

    fn reading(&self, name: &str, used: f64, status: WindowStatus) -> Reading {
        let now = self.clock.now();
        Reading {
            subscription: name.into(),
            window: WINDOW.to_owned(),
            scope: None,
            used_pct: Some(used),
            status,
            resets_at: Some(now + RESET_AFTER),
            duration_mins: Some(300),
            observed_at: Some(now),
            source: ReadingSource::Event,
        }
    }

    /// The subscriptions' own surfaces tell how full they are.
    async fn knows(&self, levels: &[(&str, f64)]) {
        let level = |(name, used): &(&str, f64)| self.reading(name, *used, WindowStatus::Allowed);
        let readings = levels.iter().map(level).collect();
        let registry = &self.gateway.effects().registry;
        registry.learn(readings, self.clock.now()).await;
    }

    async fn burns(&self, name: &str, each: f64) -> anyhow::Result<()> {
        let burn = Burn {
            subscription: name.into(),
            window: WINDOW.to_owned(),
            samples: vec![Some(each); 3],
        };
        Ok(self.gateway.effects().store.put_burn(&[burn]).await?)
    }

    async fn counters(&self, stage: &Stage) -> anyhow::Result<serde_json::Value> {
        let store = &self.gateway.effects().store;
        let example = inbound(Content::Text(String::new()), self.clock.now());
        let lane = Lane {
            profile: example.profile,
            session: example.session,
        };
        let session = store.session(&lane, self.clock.now()).await?;
        let audit = store.audit_of(&session.conversation).await?;
        let count = |kind| audit.iter().filter(|row| row.kind == kind).count();
        let requests = |name: &str| self.subs.get(name).map_or(0, |sub| sub.server.count());
        let prompts: Vec<String> = self
            .subs
            .values()
            .flat_map(|sub| sub.agent.prompts())
            .collect();
        let carrying = |text: &str| {
            prompts
                .iter()
                .filter(|prompt| prompt.contains(text))
                .count()
        };
        Ok(json!({
            "requests_total": requests(CLAUDE) + requests(CODEX),
            "requests_claude": requests(CLAUDE),
            "requests_codex": requests(CODEX),
            "switches": count(AuditKind::Switched),
            "drained": count(AuditKind::Drained),
            "undone": count(AuditKind::Undone),
            "waited": count(AuditKind::Waited),
            "resumed": count(AuditKind::Resumed),
            "note_carried": carrying("1 failed: parse::empty_input"),
            "status_lines": stage.status_lines(),
            "answers": stage.answers(),
        }))
    }
}

fn settings(home: &std::path::Path) -> Settings {
    let root = RootPath(home.to_owned());
    let subscription = |name: &&str| {
        let id = SubscriptionId::new(name);
        let settings = SubscriptionSettings {
            id: id.clone(),
            slug: id.clone(),
            billing: Billing::Plan,
            provider: ProviderSettings::Scripted,
        };
        (id, settings)
    };
    let on = || PluginUse {
        enabled: true,
        required: true,
        budget_ms: BTreeMap::new(),
        config: json!({}),
        order: 0,
    };
    let mut routing = RoutingSettings::default();
    routing.settings.enabled = true;
    let id = ProfileId::new(DEFAULT_PROFILE);
    let profile = ProfileSettings {
        home: root.profile(&id),
        id: id.clone(),
        chain: vec![Route::new(CLAUDE, "opus"), Route::new(CODEX, "gpt-6.1-sol")],
        workdir: home.to_owned(),
        permissions: None,
        chat: BTreeMap::new(),
        plugins: BTreeMap::from([("quota".to_owned(), on()), ("handoff".to_owned(), on())]),
        attempt_deadline: Duration::from_secs(60),
        silence: Duration::from_secs(30),
        routing,
    };
    Settings {
        usage_snapshot: root.usage_file(),
        subscriptions: [CLAUDE, CODEX].iter().map(subscription).collect(),
        profiles: BTreeMap::from([(id, profile)]),
        plugins: BTreeMap::new(),
        root,
    }
}
