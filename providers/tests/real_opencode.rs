//! The real OpenCode against a model API on loopback. A server takes seconds to start, so each test plays several scenes
//! on one.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod chat;
mod real;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chat::{Mock, Reply};
use gateway_core::event::{CallOutcome, Event, TodoStatus, TokenUsage};
use gateway_core::failure::{AttemptLimits, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use providers::opencode::{OpenCode, OpenCodeSettings};
use providers::{AttemptHandle, AttemptRequest, Exchange, Health, Permissions, Provider};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// As much of ripgrep as the program's two searches use.
const RG: &str = r#"#!/bin/sh
for argument in "$@"; do
  case "$argument" in
    --files) exec find . -type f ;;
    -*) ;;
    .) ;;
    *) pattern=$argument ;;
  esac
done
grep -rHn -e "$pattern" . | while IFS=: read -r file line text; do
  printf '{"type":"match","data":{"path":{"text":"%s"},"lines":{"text":"%s\\n"},"line_number":%s,"absolute_offset":0,"submatches":[]}}\n' "$file" "$text" "$line"
done
"#;

/// One login, one working directory, one model API.
struct World {
    mock: Mock,
    folder: tempfile::TempDir,
    opencode: OpenCode,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program under test reads the machine's clock"
)]
fn machine_time() -> Timestamp {
    Timestamp::now()
}

impl World {
    /// `None` = skipped.
    async fn new() -> Option<Self> {
        let binary = real::opencode()?;
        let mock = Mock::start().await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let opencode = OpenCode::new(OpenCodeSettings {
            binary: Some(binary),
            home: Some(root.join("login")),
            env: BTreeMap::from([
                (
                    "HOME".to_owned(),
                    root.join("home").to_str().unwrap().to_owned(),
                ),
                ("CANARY".to_owned(), "canary-environment".to_owned()),
            ]),
            subscription: "opencode-test".into(),
            metered: false,
            hidden: vec![root.join("work/gateway")],
            usage_base: None,
            now: Arc::new(machine_time),
        });
        let world = Self {
            mock,
            folder,
            opencode,
        };
        world.furnish();
        Some(world)
    }

    /// Providers that must count, settings that must not, files that must be readable and files that must not.
    fn furnish(&self) {
        let models = json!({
            "mock-model": {"name": "Mock", "limit": {"context": 200_000, "output": 8_192}},
            "gpt-5-mock": {"name": "Mock", "limit": {"context": 200_000, "output": 8_192}},
        });
        let provider = |url: &str| {
            json!({
                "npm": "@ai-sdk/openai-compatible", "name": "Mock",
                "options": {"baseURL": url, "apiKey": "dummy"}, "models": models,
            })
        };
        let touch = |name: &str| json!(["touch", self.path(name)]);
        let config = json!({
            "provider": {
                "mock": provider(&self.mock.url()),
                "nowhere": provider("http://127.0.0.1:9/v1"),
                "far": provider("https://api.example.invalid/v1"),
            },
            "enabled_providers": ["mock", "nowhere", "far"],
            "small_model": "far/mock-model",
            "permission": {"*": "allow", "bash": "allow"},
            "instructions": [self.path("outside.txt")],
            "mcp": {"evil": {"type": "local", "command": touch("mcp-ran"), "enabled": true}},
        });
        self.write("login/config/opencode/opencode.json", &config.to_string());
        self.write("login/config/opencode/AGENTS.md", "kanary-global");
        self.write("login/secret.txt", "canary-login");
        // Without an `rg` the program would download one.
        self.write("login/cache/opencode/bin/rg", RG);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path("login/cache/opencode/bin/rg"), executable).unwrap();
        self.write("home/x.txt", "canary-home");
        self.write("home/.claude/CLAUDE.md", "kanary-claude");
        self.write(
            "home/.opencode/opencode.json",
            &json!({"instructions": [self.path("outside.txt")]}).to_string(),
        );
        self.write("outside.txt", "canary-outside");
        self.write("outside/o.txt", "canary-outside-folder");
        self.write("work/in.txt", "inside the working directory");
        self.write("work/gateway/baton.db", "canary-database");
        self.write("work/AGENTS.md", "kanary-project");
        self.write(
            "work/opencode.json",
            &json!({"permission": {"*": "allow"}, "instructions": [self.path("outside.txt")]})
                .to_string(),
        );
        self.write("work/.opencode/plugin/evil.js", "kanary-plugin");
        for (target, link) in [
            ("outside.txt", "work/link.txt"),
            ("outside", "work/folder"),
            ("nowhere.txt", "work/dangling.txt"),
        ] {
            std::os::unix::fs::symlink(self.path(target), self.path(link)).unwrap();
        }
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

    fn start(&self, prompt: &str, change: impl FnOnce(&mut AttemptRequest)) -> AttemptHandle {
        let (word, go) = oneshot::channel();
        let mut request = AttemptRequest {
            attempt: "attempt".into(),
            conversation: "conversation".into(),
            model: "mock/mock-model".into(),
            session: None,
            title: "--a title".to_owned(),
            prompt: prompt.to_owned(),
            history: Vec::new(),
            unseen: 0,
            workdir: self.path("work"),
            permissions: Permissions::None,
            limits: AttemptLimits {
                deadline: Duration::from_secs(180),
                silence: Duration::from_secs(120),
            },
            go,
        };
        change(&mut request);
        let _ = word.send(()); // a scene without a word has its own
        self.opencode.start(request)
    }

    async fn turn(&self, prompt: &str, change: impl FnOnce(&mut AttemptRequest)) -> Turn {
        self.start_heard(self.start(prompt, change)).await
    }

    async fn start_heard(&self, mut handle: AttemptHandle) -> Turn {
        let mut events = Vec::new();
        while let Some(event) = handle.events.recv().await {
            events.push(event);
        }
        Turn {
            events,
            end: handle.end.await.unwrap(),
        }
    }

    /// Nothing that must stay secret went to the model, and no setting of the person or the project counted.
    fn assert_no_canary(&self) {
        for request in self.mock.requests() {
            let sent = request.to_string();
            for canary in ["canary-", "kanary-"] {
                let found = sent
                    .find(canary)
                    .map(|at| sent.get(at.saturating_sub(300)..at + 30));
                assert_eq!(found, None, "a canary reached the model");
            }
        }
        assert!(!self.path("mcp-ran").exists(), "an MCP server ran");
    }
}

struct Turn {
    events: Vec<Event>,
    end: AttemptEnd,
}

impl Turn {
    fn session(&self) -> ProviderSessionId {
        let session = |event: &Event| match event {
            Event::Session { id } => Some(id.clone()),
            _ => None,
        };
        let found = self.events.iter().find_map(session);
        found.unwrap_or_else(|| panic!("no session: {:?}", self.end))
    }

    fn answer(&self) -> &str {
        match &self.end {
            AttemptEnd::Answered(answer) => &answer.text,
            other => panic!("expected an answer, got {other:?} after {:?}", self.events),
        }
    }

    fn failure(&self) -> (FailureKind, FailureScope, Option<Timestamp>, &str) {
        match &self.end {
            AttemptEnd::Failed(failure) => (
                failure.kind,
                failure.scope.clone(),
                failure.retry_at,
                &failure.detail,
            ),
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    /// The text as a person sees it: deltas shown, retracted blocks gone.
    fn seen(&self) -> String {
        let mut blocks: Vec<String> = Vec::new();
        for event in &self.events {
            match event {
                Event::Text { block, delta } => {
                    let at = *block as usize;
                    blocks.resize(blocks.len().max(at + 1), String::new());
                    blocks[at].push_str(delta);
                }
                Event::Retract { from_block } => blocks.truncate(*from_block as usize),
                _ => {}
            }
        }
        blocks.join("\n\n")
    }

    /// The outcomes of all calls, in the order of the calls, with the tool's name.
    fn outcomes(&self) -> Vec<(String, CallOutcome, String)> {
        let result_of = |call: &str| {
            self.events.iter().find_map(|event| match event {
                Event::ToolResult { id, outcome, text } if id == call => {
                    Some((*outcome, text.clone()))
                }
                _ => None,
            })
        };
        let calls = self.events.iter().filter_map(|event| match event {
            Event::ToolCall { id, name, .. } => Some((id, name)),
            _ => None,
        });
        calls
            .map(|(id, name)| {
                let (outcome, text) = result_of(id).expect("the call has a result");
                (name.clone(), outcome, text)
            })
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_turns_sessions_tools_and_todos() {
    let Some(world) = World::new().await else {
        return;
    };
    assert_eq!(
        world.opencode.health().await,
        Health::Ready {
            version: Some("1.18.33".to_owned())
        }
    );

    // An answered turn: streamed, counted, without tools, and one request (no title is asked of anybody).
    world.mock.reply([Reply::Text(vec!["Hello ", "there."])]);
    let first = world
        .turn("marker-one hi @/outside.txt @in.txt", |_| {})
        .await;
    assert_eq!(first.answer(), "Hello there.");
    assert_eq!(first.seen(), "Hello there.");
    let usage = first.events.iter().rev().find_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    assert_eq!(
        usage,
        Some(TokenUsage {
            input: Some(60),
            output: Some(30),
            cache_read: Some(40),
            cache_write: Some(0)
        })
    );
    let requests = world.mock.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let tools = requests[0]["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(tools, 0, "{}", requests[0]["tools"]);
    world.assert_no_canary();
    let session = first.session();

    // The session is known by its id, and what it holds can be looked up.
    assert_eq!(
        world.opencode.session_holds(&session, "marker-one").await,
        Some(true)
    );
    assert_eq!(
        world.opencode.session_holds(&session, "marker-two").await,
        Some(false)
    );
    assert_eq!(
        world.opencode.session_holds(&"ses_none".into(), "x").await,
        None
    );

    // Resumed: the history is there, and what was answered elsewhere is told before the prompt.
    world.mock.clear();
    world.mock.reply([Reply::Text(vec!["Again."])]);
    let exchange = |request: &str| Exchange {
        request: request.to_owned(),
        answer: "elsewhere-answer".to_owned(),
    };
    let second = world
        .turn("second", |request| {
            request.session = Some(session.clone());
            request.history = vec![exchange("seen-already"), exchange("elsewhere")];
            request.unseen = 1;
        })
        .await;
    assert_eq!(second.answer(), "Again.");
    assert_eq!(second.session(), session);
    let sent = world.mock.requests()[0].to_string();
    for held in ["marker-one", "Hello there.", "elsewhere-answer", "second"] {
        assert!(sent.contains(held), "{held}");
    }
    assert!(!sent.contains("seen-already"));

    // A session that is gone is opened anew, with the whole conversation.
    world.mock.clear();
    world.mock.reply([Reply::Text(vec!["New."])]);
    let third = world
        .turn("third", |request| {
            request.session = Some("ses_gone".into());
            request.history = vec![exchange("seen-already")];
        })
        .await;
    assert_eq!(third.answer(), "New.");
    assert_ne!(third.session(), session);
    assert!(
        world.mock.requests()[0]
            .to_string()
            .contains("seen-already")
    );

    // Tools and todos.
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![
            (
                "bash",
                json!({"command": "echo from-bash", "description": "say"}),
            ),
            ("bash", json!({"command": "exit 3", "description": "fail"})),
        ]),
        Reply::Tools(vec![(
            "todowrite",
            json!({"todos": [
                {"content": "look", "status": "completed", "priority": "high"},
                {"content": "write", "status": "in_progress", "priority": "low"},
            ]}),
        )]),
        Reply::Text(vec!["Done."]),
    ]);
    let tools = world
        .turn("work", |request| {
            request.session = Some(session.clone());
            request.permissions = Permissions::Full;
        })
        .await;
    assert_eq!(tools.answer(), "Done.");
    let outcomes = tools.outcomes();
    let shown: Vec<_> = outcomes
        .iter()
        .map(|(name, outcome, _)| (name.as_str(), *outcome))
        .collect();
    assert_eq!(
        shown,
        [
            ("bash", CallOutcome::Completed),
            ("bash", CallOutcome::Failed),
            ("todowrite", CallOutcome::Completed),
        ]
    );
    assert!(outcomes[0].2.contains("from-bash"));
    let todos = tools.events.iter().find_map(|event| match event {
        Event::Todos(todos) => Some(todos.clone()),
        _ => None,
    });
    let todos = todos.expect("todos were told");
    assert_eq!(todos[0].status, TodoStatus::Completed);
    assert_eq!(
        (todos[1].content.as_str(), todos[1].status),
        ("write", TodoStatus::InProgress)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_failures_are_told_apart() {
    let Some(world) = World::new().await else {
        return;
    };
    // A spent plan: no waiting, and its own reset.
    let spent = json!({"type": "GoUsageLimitError", "message": "Weekly usage limit reached. Resets in 19hr"});
    let body = json!({"type": "error", "error": spent, "metadata": {"limitName": "weekly"}});
    world.mock.reply([Reply::Status(
        429,
        vec![("retry-after", "68400".to_owned())],
        body.to_string(),
    )]);
    let before = machine_time();
    let limited = world.turn("limited", |_| {}).await;
    let (kind, scope, at, detail) = limited.failure();
    assert_eq!(
        (kind, scope),
        (FailureKind::RateLimit, FailureScope::Account),
        "{detail}"
    );
    let wait = at
        .expect("the reset was stated")
        .duration_since(before)
        .as_secs();
    assert!((68_390..68_490).contains(&wait), "{wait}");
    let AttemptEnd::Failed(failure) = &limited.end else {
        unreachable!()
    };
    assert_eq!(failure.window.as_deref(), Some("go_weekly"));
    let session = limited.session();
    assert_eq!(world.mock.requests().len(), 1);

    // The same session answers afterwards.
    world.mock.clear();
    world.mock.reply([Reply::Text(vec!["Back."])]);
    let back = world
        .turn("again", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!(back.answer(), "Back.");
    assert_eq!(back.session(), session);

    // Short waits are the program's own.
    world.mock.reply([
        Reply::Status(
            429,
            vec![("retry-after", "1".to_owned())],
            json!({"error": {"message": "Rate limit reached for requests", "type": "requests"}})
                .to_string(),
        ),
        Reply::Text(vec!["Waited."]),
    ]);
    assert_eq!(world.turn("burst", |_| {}).await.answer(), "Waited.");

    // A stream cut in the middle: nothing is shown twice.
    world.mock.reply([
        Reply::Cut(vec!["Half ", "of it"]),
        Reply::Text(vec!["Half ", "of it ", "and the rest."]),
    ]);
    let cut = world.turn("cut", |_| {}).await;
    assert_eq!(cut.answer(), "Half of it and the rest.");
    assert_eq!(cut.seen(), "Half of it and the rest.");
    assert!(
        cut.events.contains(&Event::Retract { from_block: 0 }),
        "{:?}",
        cut.events
    );

    // An overflow, also after the program's own try to compact.
    world.mock.clear();
    let overflow = || {
        Reply::error(
            400,
            &json!({"message": "This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}),
        )
    };
    world.mock.reply([overflow(), overflow(), overflow()]);
    let long = world.turn("long", |_| {}).await;
    assert_eq!(long.failure().0, FailureKind::ContextOverflow);

    // A login that does not hold.
    world.mock.clear();
    world.mock.reply([Reply::error(
        401,
        &json!({"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}),
    )]);
    let (kind, scope, ..) = world.turn("key", |_| {}).await.failure();
    assert_eq!((kind, scope), (FailureKind::Auth, FailureScope::Account));

    // A page instead of an answer has no end by itself.
    world.mock.clear();
    world.mock.reply((0..200).map(|_| Reply::Html));
    let page = world.turn("page", |_| {}).await;
    let (kind, scope, _, detail) = page.failure();
    assert_eq!(
        (kind, scope),
        (FailureKind::Transport, FailureScope::NetworkEdge),
        "{detail}"
    );
    assert!(world.mock.requests().len() < 30);

    // Nobody listens there.
    world.mock.clear();
    let refused = world
        .turn("refused", |request| {
            request.model = "nowhere/mock-model".into()
        })
        .await;
    let (kind, scope, _, detail) = refused.failure();
    assert_eq!(
        (kind, scope),
        (FailureKind::Transport, FailureScope::NetworkEdge),
        "{detail}"
    );

    // What would bill per token, what is not known, what is no model: refused by name before anything is sent.
    for (model, words) in [
        ("far/mock-model", "billing = \"metered\""),
        ("unknown/mock-model", "\"unknown\""),
        ("mock/unknown", "no model \"unknown\""),
        ("mock-model", "provider/model"),
    ] {
        let refused = world
            .turn("bill", |request| request.model = model.into())
            .await;
        let (kind, _, _, detail) = refused.failure();
        assert_eq!(kind, FailureKind::BadRequest);
        assert!(detail.contains(words), "{model}: {detail}");
    }
    assert!(world.mock.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_stops_and_deaths_leave_a_working_subscription() {
    let Some(world) = World::new().await else {
        return;
    };
    // A stop in the middle of an answer: what was seen stays, the session goes on.
    world.mock.reply([Reply::Hanging(vec!["Some ", "words "])]);
    let mut handle = world.start("stop me", |_| {});
    let mut events = Vec::new();
    while let Some(event) = handle.events.recv().await {
        let seen = matches!(&event, Event::Text { delta, .. } if delta.contains("words"));
        events.push(event);
        if seen {
            handle.stop.stop();
        }
    }
    let stopped = Turn {
        events,
        end: handle.end.await.unwrap(),
    };
    assert_eq!(stopped.end, AttemptEnd::Stopped);
    assert_eq!(stopped.seen(), "Some words ");
    let session = stopped.session();
    world.mock.clear();
    world.mock.reply([Reply::Text(vec!["Going on."])]);
    let next = world
        .turn("go on", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!(next.answer(), "Going on.");
    assert_eq!(next.session(), session);
    assert!(world.mock.requests()[0].to_string().contains("Some words"));

    // A tool that runs is stopped with its turn.
    world.mock.clear();
    let pid_file = world.path("work/pid");
    let command = format!("echo $$ > {}; sleep 300", pid_file.display());
    world.mock.reply([Reply::Tools(vec![(
        "bash",
        json!({"command": command, "description": "wait"}),
    )])]);
    let mut handle = world.start("run", |request| request.permissions = Permissions::Full);
    while let Some(event) = handle.events.recv().await {
        if matches!(event, Event::ToolCall { .. }) {
            break;
        }
    }
    let pid = pid_of(&pid_file).await;
    handle.stop.stop();
    let rest = world.start_heard(handle).await;
    assert_eq!(rest.end, AttemptEnd::Stopped);
    gone(pid).await;

    // Two turns at once on one server do not disturb each other.
    world.mock.clear();
    world
        .mock
        .reply([Reply::Text(vec!["Same."]), Reply::Text(vec!["Same."])]);
    let (one, two) = tokio::join!(world.turn("one", |_| {}), world.turn("two", |_| {}));
    assert_eq!(
        (one.seen(), two.seen()),
        ("Same.".to_owned(), "Same.".to_owned())
    );
    assert_ne!(one.session(), two.session());

    // The server dies in the middle of a turn, with a tool running: the tool goes with it, the next turn has a new one.
    world.mock.clear();
    std::fs::remove_file(&pid_file).unwrap();
    world.mock.reply([Reply::Tools(vec![(
        "bash",
        json!({"command": command, "description": "wait"}),
    )])]);
    let handle = world.start("die", |request| request.permissions = Permissions::Full);
    let tool = pid_of(&pid_file).await;
    kill(parent_of(tool));
    let died = world.start_heard(handle).await;
    let (kind, _, _, detail) = died.failure();
    assert_eq!(kind, FailureKind::Crashed, "{detail}");
    gone(tool).await;
    world.mock.clear();
    world.mock.reply([Reply::Text(vec!["Alive."])]);
    let alive = world
        .turn("live", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!(alive.answer(), "Alive.");
    assert_eq!(alive.session(), session);

    // Silence is bounded by us.
    world.mock.clear();
    world.mock.reply([Reply::Hanging(vec!["Then nothing"])]);
    let silent = world
        .turn("silence", |request| {
            request.limits.silence = Duration::from_secs(8)
        })
        .await;
    assert_eq!(silent.failure().0, FailureKind::Timeout);

    // Without the word nothing is sent.
    world.mock.clear();
    let (word, go) = oneshot::channel();
    drop(word);
    let unsent = world.start("never", |request| request.go = go);
    assert_eq!(world.start_heard(unsent).await.end, AttemptEnd::Stopped);
    assert!(world.mock.requests().is_empty());
}

async fn pid_of(file: &std::path::Path) -> i32 {
    for _ in 0..600 {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let (true, Ok(pid)) = (text.ends_with('\n'), text.trim().parse()) {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the tool did not start");
}

async fn gone(pid: i32) {
    for _ in 0..100 {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the tool still runs");
}

/// The server that started this tool.
fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit_once(") ").unwrap().1;
    after.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Every way out of the working directory a model might try.
fn attempts(world: &World) -> Vec<(&'static str, Value)> {
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    vec![
        ("read", json!({"filePath": path("outside.txt")})),
        ("read", json!({"filePath": "../outside.txt"})),
        ("read", json!({"filePath": path("work/link.txt")})),
        ("read", json!({"filePath": path("work/folder/o.txt")})),
        ("read", json!({"filePath": path("work/folder")})),
        ("read", json!({"filePath": path("work/gateway/baton.db")})),
        ("read", json!({"filePath": path("login/secret.txt")})),
        ("read", json!({"filePath": path("home/x.txt")})),
        ("read", json!({"filePath": "/proc/self/environ"})),
        (
            "grep",
            json!({"pattern": "canary", "path": path("outside")}),
        ),
        (
            "grep",
            json!({"pattern": "canary", "path": path("work/folder")}),
        ),
        (
            "grep",
            json!({"pattern": "canary", "path": path("work/link.txt")}),
        ),
        ("grep", json!({"pattern": "canary.database"})),
        ("glob", json!({"pattern": "**/*", "path": path("login")})),
        (
            "bash",
            json!({"command": "env; cat ../outside.txt", "description": "look"}),
        ),
        (
            "webfetch",
            json!({"url": "http://127.0.0.1:9/", "format": "text"}),
        ),
        (
            "task",
            json!({"description": "d", "prompt": "p", "subagent_type": "general"}),
        ),
        ("skill", json!({"name": "x"})),
    ]
}

fn writes(world: &World) -> Vec<(&'static str, Value)> {
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    vec![
        (
            "write",
            json!({"filePath": path("new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/dangling.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/folder/new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/gateway/new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/.git/hooks/pre-commit"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/.opencode/plugin/x.js"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/opencode.json"), "content": "x"}),
        ),
        (
            "edit",
            json!({"filePath": path("outside.txt"), "oldString": "canary", "newString": "x"}),
        ),
        (
            "edit",
            json!({"filePath": path("work/link.txt"), "oldString": "canary", "newString": "x"}),
        ),
    ]
}

async fn nothing_gets_through(
    world: &World,
    level: Permissions,
    model: &str,
    calls: Vec<(&'static str, Value)>,
) -> Turn {
    world.mock.clear();
    // One call per request: the third equal tool in a row must not end the turn either.
    let count = calls.len();
    world
        .mock
        .reply(calls.into_iter().map(|call| Reply::Tools(vec![call])));
    world.mock.reply([Reply::Text(vec!["Nothing."])]);
    let turn = world
        .turn("try", |request| {
            request.permissions = level;
            request.model = model.into();
        })
        .await;
    assert_eq!(turn.answer(), "Nothing.", "{level:?}");
    let outcomes = turn.outcomes();
    assert_eq!(outcomes.len(), count, "{outcomes:?}");
    for (name, outcome, text) in &outcomes {
        assert!(
            matches!(outcome, CallOutcome::Denied | CallOutcome::Failed),
            "{level:?} {name} {outcome:?} {text}"
        );
    }
    world.assert_no_canary();
    turn
}

fn offered(world: &World) -> Vec<String> {
    let requests = world.mock.requests();
    let tools = requests[0]["tools"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_permissions_hold() {
    let Some(world) = World::new().await else {
        return;
    };
    let all = || [attempts(&world), writes(&world)].concat();

    nothing_gets_through(&world, Permissions::None, "mock/mock-model", all()).await;
    assert_eq!(offered(&world), Vec::<String>::new());

    nothing_gets_through(&world, Permissions::ReadOnly, "mock/mock-model", all()).await;
    assert_eq!(
        offered(&world),
        ["read", "todowrite"],
        "links lead out: nothing is searched"
    );

    nothing_gets_through(&world, Permissions::Edit, "mock/mock-model", all()).await;
    assert_eq!(offered(&world), ["edit", "read", "todowrite", "write"]);

    // The other editing tool, which this family of models gets instead.
    let patch = |file: &str| {
        let text = format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
        ("apply_patch", json!({"patchText": text}))
    };
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    let patches = vec![
        patch(&path("new.txt")),
        patch("../new.txt"),
        patch("folder/new.txt"),
        patch("dangling.txt"),
        patch("gateway/new.txt"),
        patch(".git/hooks/pre-commit"),
    ];
    nothing_gets_through(&world, Permissions::Edit, "mock/gpt-5-mock", patches).await;
    assert_eq!(offered(&world), ["apply_patch", "read", "todowrite"]);
    for made in [
        "new.txt",
        "nowhere.txt",
        "outside/new.txt",
        "work/gateway/new.txt",
        "work/.git",
    ] {
        assert!(!world.path(made).exists(), "{made}");
    }
    assert_eq!(
        std::fs::read_to_string(world.path("outside.txt")).unwrap(),
        "canary-outside"
    );

    // What is allowed works, also below a repository and in a directory without links.
    world.write("plain/sub/in.txt", "inside words");
    world.write("plain/above.txt", "canary-above");
    std::fs::create_dir_all(world.path("plain/.git")).unwrap();
    world.write("plain/.git/HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(world.path("plain/.git").join(folder)).unwrap();
    }
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![("read", json!({"filePath": "in.txt"}))]),
        Reply::Tools(vec![("read", json!({"filePath": path("plain/above.txt")}))]),
        Reply::Tools(vec![(
            "grep",
            json!({"pattern": "canary", "path": path("plain")}),
        )]),
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/sub/new.txt"), "content": "written"}),
        )]),
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/new.txt"), "content": "x"}),
        )]),
        Reply::Text(vec!["Done."]),
    ]);
    let edited = world
        .turn("edit", |request| {
            request.permissions = Permissions::Edit;
            request.workdir = world.path("plain/sub");
        })
        .await;
    assert_eq!(edited.answer(), "Done.");
    let outcomes: Vec<CallOutcome> = edited
        .outcomes()
        .iter()
        .map(|(_, outcome, _)| *outcome)
        .collect();
    assert_eq!(outcomes[0], CallOutcome::Completed);
    assert_eq!(outcomes[1], CallOutcome::Denied, "{:?}", edited.outcomes());
    assert_eq!(outcomes[3], CallOutcome::Completed);
    assert_eq!(outcomes[4], CallOutcome::Denied);
    assert!(world.path("plain/sub/new.txt").exists() && !world.path("plain/new.txt").exists());
    world.assert_no_canary();

    // The same session at a lower level has lost what it had.
    let session = edited.session();
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/sub/more.txt"), "content": "x"}),
        )]),
        Reply::Text(vec!["No."]),
    ]);
    let lowered = world
        .turn("lower", |request| {
            request.session = Some(session.clone());
            request.workdir = world.path("plain/sub");
        })
        .await;
    assert_eq!(lowered.answer(), "No.");
    assert_eq!(lowered.session(), session);
    assert!(!world.path("plain/sub/more.txt").exists());
    assert_eq!(offered(&world), Vec::<String>::new());

    // Without links or hidden folders a search works.
    world.write("clean/a.txt", "needle");
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![
            ("grep", json!({"pattern": "needle"})),
            ("glob", json!({"pattern": "*.txt"})),
        ]),
        Reply::Tools(vec![(
            "grep",
            json!({"pattern": "canary", "path": path("outside")}),
        )]),
        Reply::Text(vec!["Found."]),
    ]);
    let searched = world
        .turn("search", |request| {
            request.permissions = Permissions::ReadOnly;
            request.workdir = world.path("clean");
        })
        .await;
    assert_eq!(searched.answer(), "Found.");
    let outcomes = searched.outcomes();
    assert!(
        outcomes[0].2.contains("a.txt") && outcomes[1].2.contains("a.txt"),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[2].1, CallOutcome::Denied);
    world.assert_no_canary();
}
