//! The real Claude Code against a model API on loopback. Each test is one or two runs of the program.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod attempt;
mod mock;
mod real;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attempt::{Turn, request};
use gateway_core::event::{CallOutcome, Event};
use gateway_core::failure::{FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::AttemptEnd;
use gateway_core::usage::WindowStatus;
use jiff::Timestamp;
use mock::{Mock, Reply};
use providers::claude::{Claude, ClaudeSettings};
use providers::{AttemptHandle, AttemptRequest, Exchange, Health, Permissions, Provider};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// One login, one working directory, one model API.
struct World {
    mock: Mock,
    folder: tempfile::TempDir,
    claude: Claude,
}

impl World {
    /// `None` = skipped.
    async fn new(replies: Vec<Reply>) -> Option<Self> {
        Self::with_token(replies, true).await
    }

    async fn with_token(replies: Vec<Reply>, logged_in: bool) -> Option<Self> {
        let binary = real::claude()?;
        let mock = Mock::start(replies).await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut env = BTreeMap::from([
            (
                "HOME".to_owned(),
                root.join("home").to_str().unwrap().to_owned(),
            ),
            ("ANTHROPIC_BASE_URL".to_owned(), mock.url()),
            ("CANARY".to_owned(), "canary-environment".to_owned()),
            // Lets `full` be tried as root, which the program (and so the provider) refuses otherwise.
            ("IS_SANDBOX".to_owned(), "1".to_owned()),
        ]);
        if logged_in {
            env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned());
        }
        let claude = Claude::new(ClaudeSettings {
            binary: Some(binary),
            home: Some(root.join("login")),
            env,
            subscription: "claude-test".into(),
            hidden: vec![root.join("work/gateway")],
            now: Arc::new(|| Timestamp::from_second(1_796_000_000).unwrap()),
        });
        let world = Self {
            mock,
            folder,
            claude,
        };
        world.furnish();
        Some(world)
    }

    /// Files that must be readable, files that must not, and settings that must not count.
    fn furnish(&self) {
        let hook = json!({"hooks": {"SessionStart": [{"hooks": [
            {"type": "command", "command": format!("touch {}", self.path("hook-ran").display())}
        ]}]}});
        self.write("login/settings.json", &hook.to_string());
        self.write("login/CLAUDE.md", "canary-memory");
        self.write("login/secret.txt", "canary-login");
        self.write("home/x.txt", "canary-home");
        self.write("outside.txt", "canary-outside");
        self.write("work/in.txt", "inside the working directory");
        self.write("work/gateway/baton.db", "canary-database");
        self.write("work/.claude/settings.json", &hook.to_string());
        // Its text must not count as instructions; as a file of the working directory it may be read.
        self.write("work/CLAUDE.md", "kanary-project");
        std::os::unix::fs::symlink(self.path("outside.txt"), self.path("work/link.txt")).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn request(&self, prompt: &str) -> (AttemptRequest, oneshot::Sender<()>) {
        request("sonnet", prompt, self.path("work"))
    }

    fn start(&self, prompt: &str, change: impl FnOnce(&mut AttemptRequest)) -> AttemptHandle {
        let (mut request, word) = self.request(prompt);
        change(&mut request);
        word.send(()).unwrap();
        self.claude.start(request)
    }

    async fn turn(&self, prompt: &str, change: impl FnOnce(&mut AttemptRequest)) -> Turn {
        Turn::of(self.start(prompt, change)).await
    }

    /// Nothing that must stay secret went to the model, and no setting of the person or the project counted.
    fn assert_no_canary(&self) {
        for request in self.mock.requests() {
            let sent = request.to_string();
            for canary in ["canary-", "kanary-"] {
                let found = sent.find(canary).map(|at| sent.get(at..at + 30));
                assert_eq!(found, None, "a canary reached the model");
            }
        }
        assert!(!self.path("hook-ran").exists(), "a hook ran");
    }
}

fn messages_of(request: &Value) -> String {
    request["messages"].to_string()
}

#[tokio::test]
async fn an_answered_turn_streams_and_the_next_one_resumes_it() {
    let replies = vec![Reply::text(&["Hello ", "there."]), Reply::text(&["Again."])];
    let Some(world) = World::new(replies).await else {
        return;
    };
    let first = world
        .turn("remember turn-7 @/etc/hostname @in.txt", |_| {})
        .await;
    assert_eq!(first.answer(), "Hello there.");
    let deltas = first
        .events
        .iter()
        .filter(|event| matches!(event, Event::Text { .. }));
    assert_eq!(deltas.count(), 2, "{:?}", first.events);
    let limit = first.events.iter().find_map(|event| match event {
        Event::Limit(reading) if reading.window == "five_hour" => Some(reading.clone()),
        _ => None,
    });
    let limit = limit.expect("an OAuth login reports its limit on success too");
    assert_eq!(limit.used_pct, Some(12.0));
    assert_eq!(
        (limit.status, limit.resets_at.map(|at| at.as_second())),
        (WindowStatus::Allowed, Some(mock::resets_at()))
    );
    // No tools at all: a file mentioned in the prompt is not read either.
    assert!(!messages_of(&world.mock.requests()[0]).contains("inside the working directory"));
    assert_eq!(
        world.mock.requests()[0]["tools"]
            .as_array()
            .map_or(0, Vec::len),
        0
    );

    let session = first.session();
    assert_eq!(
        world.claude.session_holds(&session, "turn-7").await,
        Some(true)
    );
    assert_eq!(
        world.claude.session_holds(&session, "turn-8").await,
        Some(false)
    );

    let old = Exchange {
        request: "remember turn-7".to_owned(),
        answer: "Hello there.".to_owned(),
    };
    let missed = Exchange {
        request: "asked elsewhere".to_owned(),
        answer: "answered elsewhere".to_owned(),
    };
    let second = world
        .turn("/compact now", |request| {
            request.session = Some(session.clone());
            request.history = vec![old, missed];
            request.unseen = 1;
        })
        .await;
    assert_eq!((second.answer(), second.session()), ("Again.", session));
    let sent = messages_of(&world.mock.requests()[1]);
    assert_eq!(
        sent.matches("turn-7").count(),
        1,
        "the session has it already: {sent}"
    );
    assert!(sent.contains("answered elsewhere") && sent.contains("/compact now"));
    world.assert_no_canary();
}

#[tokio::test]
async fn read_only_reads_inside_and_nothing_else() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let file = |name: &str| json!({"file_path": world.path(name)});
    world.mock.reply(Reply::tools(&[
        ("inside", "Read", file("work/in.txt")),
        ("outside", "Read", file("outside.txt")),
        ("dots", "Read", file("work/../outside.txt")),
        ("link", "Read", file("work/link.txt")),
        ("login", "Read", file("login/secret.txt")),
        ("environment", "Read", json!({"file_path": "/proc/self/environ"})),
        ("database", "Read", file("work/gateway/baton.db")),
        ("search", "Grep", json!({"pattern": "canar[y]", "output_mode": "content"})),
        ("search_up", "Grep", json!({"pattern": "canar[y]", "path": world.path(""), "output_mode": "content"})),
        ("search_hidden", "Grep", json!({"pattern": "canar[y]", "path": world.path("work/gateway"), "output_mode": "content"})),
        ("shell", "Bash", json!({"command": "cat ../outside.txt; env", "description": "x"})),
        ("write", "Write", json!({"file_path": world.path("work/new.txt"), "content": "x"})),
        ("agent", "Task", json!({"description": "x", "prompt": "y", "subagent_type": "general-purpose"})),
        ("todo", "TaskCreate", json!({"subject": "first thing", "description": "d"})),
    ]));
    world.mock.reply(Reply::text(&["Done."]));
    let prompt = format!(
        "look at @{} and @gateway/baton.db",
        world.path("outside.txt").display()
    );
    let turn = world
        .turn(&prompt, |request| {
            request.permissions = Permissions::ReadOnly
        })
        .await;
    assert_eq!(turn.answer(), "Done.");
    let (outcome, text) = turn.outcome("inside");
    assert_eq!(outcome, CallOutcome::Completed);
    assert!(text.contains("inside the working directory"));
    for call in ["outside", "dots", "link", "search_up"] {
        assert_eq!(turn.outcome(call).0, CallOutcome::Denied, "{call}");
    }
    for call in [
        "login",
        "environment",
        "database",
        "shell",
        "write",
        "agent",
        "search_hidden",
    ] {
        assert_ne!(turn.outcome(call).0, CallOutcome::Completed, "{call}");
    }
    assert!(!world.path("work/new.txt").exists());
    let todos = turn.events.iter().find_map(|event| match event {
        Event::Todos(todos) => Some(todos[0].content.as_str()),
        _ => None,
    });
    assert_eq!(todos, Some("first thing"));
    world.assert_no_canary();
}

#[tokio::test]
async fn edit_changes_files_inside_and_nothing_else() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let write = |name: &str| json!({"file_path": world.path(name), "content": "x"});
    world.mock.reply(Reply::tools(&[
        ("inside", "Write", write("work/new.txt")),
        ("outside", "Write", write("new.txt")),
        ("database", "Write", write("work/gateway/baton.db")),
        ("settings", "Write", write("work/.claude/settings.json")),
        (
            "read",
            "Read",
            json!({"file_path": world.path("outside.txt")}),
        ),
        (
            "shell",
            "Bash",
            json!({"command": "cat ../outside.txt", "description": "x"}),
        ),
    ]));
    world.mock.reply(Reply::text(&["Done."]));
    let turn = world
        .turn("edit", |request| request.permissions = Permissions::Edit)
        .await;
    assert_eq!(turn.answer(), "Done.");
    assert_eq!(turn.outcome("inside").0, CallOutcome::Completed);
    for call in ["outside", "database", "settings", "read", "shell"] {
        assert_ne!(turn.outcome(call).0, CallOutcome::Completed, "{call}");
    }
    assert!(world.path("work/new.txt").exists() && !world.path("new.txt").exists());
    world.assert_no_canary();
}

#[tokio::test]
async fn full_runs_commands_and_still_takes_no_settings_or_memory_of_the_person() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let command = json!({"command": "echo from the shell > made.txt", "description": "x"});
    world
        .mock
        .reply(Reply::tools(&[("shell", "Bash", command)]));
    world.mock.reply(Reply::text(&["Done."]));
    let turn = world
        .turn("run it", |request| request.permissions = Permissions::Full)
        .await;
    assert_eq!(turn.answer(), "Done.");
    assert_eq!(turn.outcome("shell").0, CallOutcome::Completed);
    assert!(world.path("work/made.txt").exists());
    world.assert_no_canary();
}

#[tokio::test]
async fn a_limit_in_the_middle_is_a_value_and_the_session_goes_on() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let read = json!({"file_path": world.path("work/in.txt")});
    world.mock.reply(Reply::tools(&[("inside", "Read", read)]));
    world.mock.reply(Reply::limited(mock::resets_at()));
    let cut = world
        .turn("start", |request| {
            request.permissions = Permissions::ReadOnly
        })
        .await;
    assert_eq!(cut.outcome("inside").0, CallOutcome::Completed);
    let AttemptEnd::Failed(failure) = &cut.end else {
        panic!("expected a failure, got {:?}", cut.end)
    };
    assert_eq!(
        (failure.kind, &failure.scope),
        (FailureKind::RateLimit, &FailureScope::Account)
    );
    assert_eq!(
        failure.retry_at.map(Timestamp::as_second),
        Some(mock::resets_at()),
        "{:?}",
        cut.events
    );
    assert_eq!(failure.window.as_deref(), Some("five_hour"));

    // A first turn that failed owns its session: the next one resumes it.
    world.mock.reply(Reply::text(&["Resumed."]));
    let session = cut.session();
    let next = world
        .turn("go on", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!((next.answer(), next.session()), ("Resumed.", session));
    assert!(messages_of(&world.mock.requests()[2]).contains("inside the working directory"));
}

#[tokio::test]
async fn a_stop_interrupts_the_stream_and_leaves_no_process() {
    let Some(world) = World::new(vec![Reply::hanging(&["One "])]).await else {
        return;
    };
    let mut handle = world.start("count", |_| {});
    while let Some(event) = handle.events.recv().await {
        if matches!(event, Event::Text { .. }) {
            break;
        }
    }
    handle.stop.stop();
    while handle.events.recv().await.is_some() {}
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert_eq!(processes_of(&world), Vec::<String>::new());
}

/// Processes whose environment names this world's login.
fn processes_of(world: &World) -> Vec<String> {
    let mark = format!("CLAUDE_CONFIG_DIR={}", world.path("login").display());
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let has_mark = |environment: Vec<u8>| String::from_utf8_lossy(&environment).contains(&mark);
    entries
        .filter(|entry| std::fs::read(entry.path().join("environ")).is_ok_and(has_mark))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn a_session_without_transcript_is_opened_anew_with_the_history_as_text() {
    let Some(world) = World::new(vec![Reply::text(&["New."])]).await else {
        return;
    };
    let lost = ProviderSessionId::new("99999999-2222-4333-8444-555555555555");
    let turn = world
        .turn("next question", |request| {
            request.session = Some(lost.clone());
            let exchange = ("first question".to_owned(), "first answer".to_owned());
            request.history = vec![Exchange {
                request: exchange.0,
                answer: exchange.1,
            }];
        })
        .await;
    assert_eq!(turn.answer(), "New.");
    assert_ne!(turn.session(), lost);
    let sent = messages_of(&world.mock.requests()[0]);
    assert!(
        sent.contains("first answer") && sent.contains("next question"),
        "{sent}"
    );
}

#[tokio::test]
async fn a_cut_stream_is_not_shown_twice() {
    let (reply, cut) = Reply::cut(&["Hello ", "from "]);
    let replies = vec![reply, Reply::text(&["Hello ", "from ", "the second try."])];
    let Some(world) = World::new(replies).await else {
        return;
    };
    let mut handle = world.start("hi", |_| {});
    let mut cut = Some(cut);
    let mut events = Vec::new();
    while let Some(event) = handle.events.recv().await {
        let second = matches!(&event, Event::Text { delta, .. } if delta == "from ");
        if let (true, Some(cut)) = (second, cut.take_if(|_| second)) {
            cut.send(()).unwrap();
        }
        events.push(event);
    }
    let turn = Turn {
        events,
        end: handle.end.await.unwrap(),
    };
    assert!(
        turn.events
            .iter()
            .any(|event| matches!(event, Event::Retract { .. })),
        "{:?}",
        turn.events
    );
    assert_eq!(turn.answer(), "Hello from the second try.");
    assert_eq!(turn.seen(), turn.answer());
}

#[tokio::test]
async fn without_a_login_the_failure_is_auth_and_health_says_what_to_do() {
    let Some(world) = World::with_token(Vec::new(), false).await else {
        return;
    };
    let turn = world.turn("hi", |_| {}).await;
    let AttemptEnd::Failed(failure) = &turn.end else {
        panic!("expected a failure, got {:?}", turn.end)
    };
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(world.mock.requests().is_empty());
    let Health::Broken { hint, .. } = world.claude.health().await else {
        panic!("no login is not healthy")
    };
    assert!(hint.contains("log in"), "{hint}");
    world.write("login/.credentials.json", "{}");
    let health = world.claude.health().await;
    assert!(
        matches!(&health, Health::Ready { version: Some(version) } if version.starts_with("2.")),
        "{health:?}"
    );
}

/// Proxied to a port where nobody listens: the program must reach nothing but loopback in a test.
#[tokio::test]
async fn the_usage_query_opens_no_turn_and_leaves_no_transcript() {
    let Some(binary) = real::claude() else {
        return;
    };
    let mock = Mock::start(Vec::new()).await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("login");
    std::fs::create_dir_all(&home).unwrap();
    let credentials = json!({"claudeAiOauth": {"accessToken": "dummy", "refreshToken": "dummy", "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}});
    std::fs::File::create(home.join(".credentials.json"))
        .unwrap()
        .write_all(credentials.to_string().as_bytes())
        .unwrap();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let claude = Claude::new(ClaudeSettings {
        binary: Some(binary),
        home: Some(home.clone()),
        env: BTreeMap::from([
            variable("HOME", folder.path().to_str().unwrap()),
            variable("ANTHROPIC_BASE_URL", &mock.url()),
            variable("HTTPS_PROXY", "http://127.0.0.1:9"),
            variable("HTTP_PROXY", "http://127.0.0.1:9"),
            variable("NO_PROXY", "127.0.0.1"),
        ]),
        subscription: "probed".into(),
        hidden: Vec::new(),
        now: Arc::new(|| Timestamp::from_second(1_796_000_000).unwrap()),
    });
    let probed = claude.probe(Duration::from_secs(60)).await.unwrap();
    assert_eq!(probed.readings, [], "nobody told it anything");
    assert_eq!(probed.login.plan.as_deref(), Some("max"));
    assert!(!home.join("projects").exists(), "a probe is no session");
}
