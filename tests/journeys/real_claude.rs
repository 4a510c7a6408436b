//! The real Claude Code through the whole gateway, its model API on loopback: a turn cut by the plan's limit in the middle
//! of a tool call is sealed, and the next turn, on another subscription, carries it once.
//!
//! What the provider does by itself is tested in `providers/tests/real_claude.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{InboundId, ProfileId, SessionKey, SubscriptionId};
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use gateway_core::route::{Billing, Route};
use gateway_host::clock::{Clock, MovedClock};
use gateway_host::config::{
    DEFAULT_PROFILE, PluginUse, ProfileSettings, ProviderSettings, RootPath, Settings,
    SubscriptionSettings,
};
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::{Gateway, Parts};
use jiff::SignedDuration;
use platforms::recording::Recording;
use providers::claude::{Claude, ClaudeSettings};
use providers::loopback::{Loopback, Step, Wire};
use providers::scripted::{Act, Scripted};
use providers::{Permissions, SharedProvider};
use serde_json::json;
use support::{SURFACE, Shown, baton, shown};

const CARRIES: &str = "[RESUMED TURN — the previous turn was cut by";

/// A gateway whose first route is the real program and whose second is a script.
struct World {
    gateway: Gateway,
    surface: Arc<Recording>,
    clock: MovedClock,
    api: Loopback,
    spare: Scripted,
    home: tempfile::TempDir,
    said: u64,
}

impl World {
    /// `None` = skipped.
    async fn new() -> Option<Self> {
        let binary = crate::real::claude()?;
        providers::install_tls();
        let home = tempfile::tempdir().expect("a temporary home");
        let root = home.path().canonicalize().expect("it was just made");
        std::fs::create_dir_all(root.join("work")).expect("a working directory");
        support::write(&root.join("work/jobs.txt"), b"job-a\njob-b\n");
        let api = Loopback::start(Wire::Anthropic).await.expect("a port");
        let clock = MovedClock::default();
        let surface = Arc::new(Recording::new(SURFACE));
        let spare = Scripted::in_folder(root.join("transcripts"));
        let claude = claude(binary, &root, &api, &clock);
        let settings = settings(&root);
        let store = SqliteStore::open(&settings.root.store_file())
            .await
            .expect("a store in a fresh home");
        let gateway = Gateway::start(Parts {
            settings,
            clock: Arc::new(clock.clone()),
            store: Arc::new(store),
            platforms: vec![surface.clone()],
            providers: BTreeMap::from([
                (
                    SubscriptionId::new("claude"),
                    Arc::new(claude) as SharedProvider,
                ),
                (
                    SubscriptionId::new("spare"),
                    Arc::new(spare.clone()) as SharedProvider,
                ),
            ]),
            executable: baton(),
        })
        .await
        .expect("a gateway starts");
        Some(Self {
            gateway,
            surface,
            clock,
            api,
            spare,
            home,
            said: 0,
        })
    }

    async fn say(&mut self, text: &str) -> Shown {
        self.said += 1;
        let before = self.surface.record().turns();
        let inbound = Inbound {
            id: InboundId::new(format!("message-{}", self.said)),
            profile: ProfileId::new(DEFAULT_PROFILE),
            session: SessionKey::new("agent:main:recording:chat"),
            sender: Sender {
                id: "ann".into(),
                name: "Ann".into(),
                standing: Standing::Operator,
            },
            origin: Origin::Human,
            target: ReplyTarget {
                platform: SURFACE.into(),
                address: "chat".into(),
            },
            received_at: self.clock.now(),
            content: Content::Text(text.into()),
        };
        self.gateway.receive(inbound).await;
        self.gateway.idle().await;
        let record = self.surface.record();
        let turn = record
            .turns()
            .into_iter()
            .find(|turn| !before.contains(turn));
        shown(&record, turn)
    }
}

fn claude(binary: PathBuf, root: &Path, api: &Loopback, clock: &MovedClock) -> Claude {
    let clock = clock.clone();
    Claude::new(ClaudeSettings {
        binary: Some(binary),
        home: Some(root.join("login")),
        env: BTreeMap::from([
            ("HOME".to_owned(), root.join("home").display().to_string()),
            ("ANTHROPIC_BASE_URL".to_owned(), api.base_url()),
            ("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned()),
        ]),
        subscription: SubscriptionId::new("claude"),
        hidden: vec![root.join("state")],
        now: Arc::new(move || clock.now()),
    })
}

fn settings(root: &Path) -> Settings {
    let root = RootPath(root.to_owned());
    let subscription = |name: &str| {
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
    };
    let profile = ProfileSettings {
        id: ProfileId::new(DEFAULT_PROFILE),
        home: root.profile(&ProfileId::new(DEFAULT_PROFILE)),
        chain: vec![Route::new("claude", "sonnet"), Route::new("spare", "m")],
        workdir: root.0.join("work"),
        permissions: Some(Permissions::ReadOnly),
        plugins: [("quota".to_owned(), on()), ("handoff".to_owned(), on())].into(),
        attempt_deadline: Duration::from_secs(100),
        silence: Duration::from_secs(60),
    };
    Settings {
        usage_snapshot: root.usage_file(),
        subscriptions: ["claude", "spare"].map(subscription).into(),
        profiles: BTreeMap::from([(profile.id.clone(), profile)]),
        plugins: BTreeMap::new(),
        root,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_the_middle_of_a_tool_call_is_carried_once_by_another_subscription() {
    let Some(mut world) = World::new().await else {
        return;
    };
    let file = world
        .home
        .path()
        .canonicalize()
        .expect("it exists")
        .join("work/jobs.txt");
    world.api.script([
        Step::ToolUse {
            text: "Looking at the jobs.".into(),
            name: "Read".into(),
            input: json!({ "file_path": file }),
        },
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at: world.clock.now() + SignedDuration::from_hours(2),
        },
    ]);
    world.spare.play(vec![Act::Fail(Failure::new(
        FailureKind::RateLimit,
        FailureScope::Account,
        "refused",
    ))]);
    let cut = world.say("restart the jobs").await;
    let notice = cut.notices.last().expect("a cut turn says so");
    assert!(
        notice.contains("Turn cut") && notice.contains("1 tool call"),
        "{notice}"
    );
    assert_eq!(cut.times_done, 1);

    let asked = world.api.count();
    world.spare.play(vec![Act::text("Done."), Act::Answer]);
    assert_eq!(world.say("go on").await.answer.as_deref(), Some("Done."));
    world.spare.play(vec![Act::text("Bye."), Act::Answer]);
    assert_eq!(world.say("thanks").await.answer.as_deref(), Some("Bye."));
    assert_eq!(
        world.api.count(),
        asked,
        "the spent plan is not asked again before its reset"
    );

    let prompts = world.spare.prompts();
    let carried: Vec<bool> = prompts
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(|prompt| prompt.contains(CARRIES))
        .collect();
    assert_eq!(carried, [true, false]);
    let carrying = prompts
        .iter()
        .find(|prompt| prompt.contains(CARRIES))
        .expect("one carries it");
    assert!(
        carrying.contains("job-b") && carrying.contains("restart the jobs"),
        "{carrying}"
    );
    world.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_real_program_arrives_and_the_next_turn_resumes_its_session() {
    let Some(mut world) = World::new().await else {
        return;
    };
    world
        .api
        .script([Step::answer("Hello there."), Step::answer("Hello again.")]);
    assert_eq!(
        world.say("hi").await.answer.as_deref(),
        Some("Hello there.")
    );
    assert_eq!(
        world.say("and now?").await.answer.as_deref(),
        Some("Hello again.")
    );
    let requests = world.api.requests();
    let last = requests
        .iter()
        .rfind(|request| request.method == "POST")
        .expect("two turns were asked");
    assert_eq!(
        last.text.matches("Hello there.").count(),
        1,
        "the session has the first turn once"
    );
    world.gateway.shutdown().await;
}
