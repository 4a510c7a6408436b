//! One chain over the three real programs and an HTTP API, each against its own model API on loopback: Claude and Codex are
//! refused in the middle of a turn, OpenCode answers below what they had said, and the API behind it is never asked. The
//! next turn goes past both without a request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
use jiff::{SignedDuration, Timestamp};
use platforms::recording::Recording;
use providers::claude::{Claude, ClaudeSettings};
use providers::codex::{Codex, CodexSettings};
use providers::loopback::{Loopback, Step, Wire};
use providers::openai_http::{OpenAiHttp, OpenAiSettings};
use providers::opencode::{OpenCode, OpenCodeSettings};
use providers::{Permissions, SharedProvider};
use serde_json::json;
use support::{SURFACE, Shown, baton, shown};

const REQUEST: &str = "restart the jobs named in jobs.txt";

/// What each upstream heard of the model's requests.
struct Upstreams {
    anthropic: Loopback,
    responses: Loopback,
    completions: Loopback,
    last: Loopback,
}

struct World {
    gateway: Gateway,
    surface: Arc<Recording>,
    clock: MovedClock,
    upstreams: Upstreams,
    work: PathBuf,
    _home: tempfile::TempDir,
    said: u64,
}

impl World {
    /// `None` = skipped.
    async fn new() -> Option<Self> {
        let programs = (
            crate::real::claude()?,
            crate::real::codex()?,
            crate::real::opencode()?,
        );
        providers::install_tls();
        let home = tempfile::tempdir().expect("a temporary home");
        let root = home.path().canonicalize().expect("it was just made");
        let work = root.join("work");
        std::fs::create_dir_all(&work).expect("a working directory");
        support::write(&work.join("jobs.txt"), b"job-a\njob-b\n");
        let upstreams = Upstreams {
            anthropic: Loopback::start(Wire::Anthropic).await.expect("a port"),
            responses: Loopback::start(Wire::Responses).await.expect("a port"),
            completions: Loopback::start(Wire::OpenAi).await.expect("a port"),
            last: Loopback::start(Wire::OpenAi).await.expect("a port"),
        };
        let clock = MovedClock::default();
        let surface = Arc::new(Recording::new(SURFACE));
        let settings = settings(&root, &work);
        let store = SqliteStore::open(&settings.root.store_file())
            .await
            .expect("a store in a fresh home");
        let gateway = Gateway::start(Parts {
            settings,
            clock: Arc::new(clock.clone()),
            store: Arc::new(store),
            platforms: vec![surface.clone()],
            providers: providers(programs, &root, &upstreams, &clock),
            executable: baton(),
        })
        .await
        .expect("a gateway starts");
        Some(Self {
            gateway,
            surface,
            clock,
            upstreams,
            work,
            _home: home,
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

    /// A window that has three hours to go.
    fn reset(&self) -> Timestamp {
        self.clock.now() + SignedDuration::from_hours(3)
    }
}

fn providers(
    (claude, codex, opencode): (PathBuf, PathBuf, PathBuf),
    root: &Path,
    upstreams: &Upstreams,
    clock: &MovedClock,
) -> BTreeMap<SubscriptionId, SharedProvider> {
    let now = || {
        let clock = clock.clone();
        Arc::new(move || clock.now()) as Arc<dyn Fn() -> Timestamp + Send + Sync>
    };
    let home = ("HOME".to_owned(), root.join("home").display().to_string());
    let hidden = || vec![root.join("state")];
    let claude = Claude::new(ClaudeSettings {
        binary: Some(claude),
        home: Some(root.join("claude")),
        env: BTreeMap::from([
            home.clone(),
            (
                "ANTHROPIC_BASE_URL".to_owned(),
                upstreams.anthropic.base_url(),
            ),
            ("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned()),
        ]),
        subscription: SubscriptionId::new("claude"),
        hidden: hidden(),
        now: now(),
    });
    let url = upstreams.responses.base_url();
    file(
        &root.join("codex/config.toml"),
        &format!(
            "model_provider = \"mock\"\nchatgpt_base_url = \"{url}/backend-api\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_API_KEY\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
        ),
    );
    let codex = Codex::new(CodexSettings {
        binary: Some(codex),
        home: Some(root.join("codex")),
        env: BTreeMap::from([
            home.clone(),
            ("MOCK_API_KEY".to_owned(), "dummy".to_owned()),
        ]),
        subscription: SubscriptionId::new("codex"),
        billing: Billing::Plan,
        hidden: hidden(),
        now: now(),
    });
    file(
        &root.join("opencode/config/opencode/opencode.json"),
        &json!({"provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Mock",
            "options": {"baseURL": format!("{}/v1", upstreams.completions.base_url()), "apiKey": "dummy"},
            "models": {"mock-model": {"name": "Mock model", "limit": {"context": 200_000, "output": 8_192}}},
        }}})
        .to_string(),
    );
    let opencode = OpenCode::new(OpenCodeSettings {
        binary: Some(opencode),
        home: Some(root.join("opencode")),
        env: BTreeMap::from([home]),
        subscription: SubscriptionId::new("opencode"),
        metered: false,
        hidden: hidden(),
        usage_base: None,
        now: now(),
    });
    let last = OpenAiHttp::new(OpenAiSettings {
        subscription: SubscriptionId::new("api"),
        base_url: upstreams.last.base_url(),
        key: None,
        max_tokens: None,
        client: providers::http::client().expect("a client"),
        now: now(),
    });
    BTreeMap::from([
        (
            SubscriptionId::new("claude"),
            Arc::new(claude) as SharedProvider,
        ),
        (SubscriptionId::new("codex"), Arc::new(codex)),
        (SubscriptionId::new("opencode"), Arc::new(opencode)),
        (SubscriptionId::new("api"), Arc::new(last)),
    ])
}

fn file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    support::write(path, text.as_bytes());
}

fn settings(root: &Path, work: &Path) -> Settings {
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
        chain: vec![
            Route::new("claude", "sonnet"),
            Route::new("codex", "gpt-5.5"),
            Route::new("opencode", "mock/mock-model"),
            Route::new("api", "m"),
        ],
        workdir: work.to_owned(),
        permissions: Some(Permissions::ReadOnly),
        plugins: [("quota".to_owned(), on()), ("handoff".to_owned(), on())].into(),
        attempt_deadline: Duration::from_secs(150),
        silence: Duration::from_secs(120),
    };
    Settings {
        usage_snapshot: root.usage_file(),
        subscriptions: ["claude", "codex", "opencode", "api"]
            .map(subscription)
            .into(),
        profiles: BTreeMap::from([(profile.id.clone(), profile)]),
        plugins: BTreeMap::new(),
        root,
    }
}

/// How many requests of an upstream carry this text in what the model is asked.
fn asked(upstream: &Loopback, text: &str) -> usize {
    let requests = upstream.requests();
    requests
        .iter()
        .filter(|request| request.method == "POST" && request.text.contains(text))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_programs_continue_each_others_turn_and_the_third_answers() {
    let Some(mut world) = World::new().await else {
        return;
    };
    let reset = world.reset();
    world.upstreams.anthropic.script([
        Step::ToolUse {
            text: "First, the list of jobs.".into(),
            name: "Read".into(),
            input: json!({ "file_path": world.work.join("jobs.txt") }),
        },
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at: reset,
        },
    ]);
    world.upstreams.responses.script([
        Step::ToolUse {
            text: "Codex looks at the list too.".into(),
            name: "exec_command".into(),
            input: json!({ "cmd": "cat jobs.txt" }),
        },
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at: reset,
        },
    ]);
    world
        .upstreams
        .completions
        .script([Step::answer("Both jobs run again.")]);

    let turn = world.say(REQUEST).await;
    let answer = turn.answer.clone().unwrap_or_default();
    assert_eq!(
        answer, "First, the list of jobs.\n\nCodex looks at the list too.\n\nBoth jobs run again.",
        "{turn:?}"
    );
    assert_eq!(turn.times_done, 1, "one answer");
    assert_eq!(turn.notices, Vec::<String>::new());
    let line = turn.status.last().expect("a line says why it moved");
    assert!(
        line.starts_with("⚠️ Rate limited")
            && line.ends_with("Answered by opencode/mock/mock-model."),
        "{line}"
    );
    assert_eq!(turn.status.len(), 1, "one status message: {turn:?}");

    // Each next program was told the request once and what the one before it had done.
    assert_eq!(
        asked(&world.upstreams.responses, "First, the list of jobs."),
        2
    );
    let told = asked(&world.upstreams.completions, "Codex looks at the list too.");
    assert_eq!(
        told, 1,
        "what Codex had done reached OpenCode in its one request"
    );
    let last = world.upstreams.completions.requests();
    let last = last
        .iter()
        .rfind(|request| request.method == "POST")
        .expect("OpenCode asked");
    assert_eq!(last.text.matches(REQUEST).count(), 1, "{}", last.text);
    assert!(last.text.contains("job-b"), "the tool's result was carried");
    assert_eq!(world.upstreams.last.count(), 0, "nobody needed the fourth");

    // The next turn knows.
    let (claude, codex) = (
        world.upstreams.anthropic.count(),
        asked(&world.upstreams.responses, ""),
    );
    world
        .upstreams
        .completions
        .script([Step::answer("You are welcome.")]);
    let next = world.say("thanks").await;
    assert_eq!(next.answer.as_deref(), Some("You are welcome."), "{next:?}");
    assert_eq!(world.upstreams.anthropic.count(), claude, "Claude is spent");
    assert_eq!(
        asked(&world.upstreams.responses, ""),
        codex,
        "Codex is spent"
    );
    let line = next
        .status
        .last()
        .expect("a line says what was passed over");
    assert!(line.contains("skipping 2 exhausted subs"), "{line}");
    world.gateway.shutdown().await;
}
