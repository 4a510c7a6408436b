//! One chain over the three real programs and an HTTP API, each against its own model API on loopback: Claude and Codex are
//! refused in the middle of a turn, OpenCode answers below what they had said, and the API behind it is never asked. The
//! next turn goes past both without a request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::SubscriptionId;
use gateway_core::route::Billing;
use gateway_host::clock::{Clock, MovedClock};
use jiff::{SignedDuration, Timestamp};
use providers::Permissions;
use providers::codex::{Codex, CodexSettings};
use providers::loopback::{Loopback, Step, Wire};
use providers::openai_http::{OpenAiHttp, OpenAiSettings};
use providers::opencode::{OpenCode, OpenCodeSettings};
use serde_json::json;
use support::World;

use crate::real_claude::claude;

const REQUEST: &str = "restart the jobs named in jobs.txt";

/// What each upstream heard of the model's requests.
struct Upstreams {
    anthropic: Loopback,
    responses: Loopback,
    completions: Loopback,
    last: Loopback,
}

/// `None` = skipped.
async fn world() -> Option<(World, Upstreams)> {
    let (claude_program, codex_program, opencode_program) = (
        crate::real::claude()?,
        crate::real::codex()?,
        crate::real::opencode()?,
    );
    let upstreams = Upstreams {
        anthropic: Loopback::start(Wire::Anthropic).await.expect("a port"),
        responses: Loopback::start(Wire::Responses).await.expect("a port"),
        completions: Loopback::start(Wire::OpenAi).await.expect("a port"),
        last: Loopback::start(Wire::OpenAi).await.expect("a port"),
    };
    let anthropic = upstreams.anthropic.base_url();
    let responses = upstreams.responses.base_url();
    let completions = upstreams.completions.base_url();
    let last = upstreams.last.base_url();
    let world = World::builder()
        .served_by("claude", move |root, clock| {
            support::write(&root.join("work/jobs.txt"), b"job-a\njob-b\n");
            Arc::new(claude(claude_program, root, anthropic, clock))
        })
        .served_by("codex", move |root, clock| {
            Arc::new(codex(codex_program, root, &responses, clock))
        })
        .served_by("opencode", move |root, clock| {
            Arc::new(opencode(opencode_program, root, &completions, clock))
        })
        .served_by("api", move |_, clock| Arc::new(api(last, clock)))
        .chain(&[
            "claude/sonnet",
            "codex/gpt-5.5",
            "opencode/mock/mock-model",
            "api/m",
        ])
        .workdir("work")
        .permissions(Permissions::ReadOnly)
        .limits(Duration::from_secs(150), Duration::from_secs(120))
        .build()
        .await;
    Some((world, upstreams))
}

fn now(clock: &MovedClock) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    let clock = clock.clone();
    Arc::new(move || clock.now())
}

fn home(root: &Path) -> (String, String) {
    ("HOME".to_owned(), root.join("home").display().to_string())
}

fn codex(binary: PathBuf, root: &Path, api: &str, clock: &MovedClock) -> Codex {
    file(
        &root.join("codex/config.toml"),
        &format!(
            "model_provider = \"mock\"\nchatgpt_base_url = \"{api}/backend-api\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"{api}/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_API_KEY\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
        ),
    );
    Codex::new(CodexSettings {
        binary: Some(binary),
        home: Some(root.join("codex")),
        env: BTreeMap::from([home(root), ("MOCK_API_KEY".to_owned(), "dummy".to_owned())]),
        subscription: SubscriptionId::new("codex"),
        billing: Billing::Plan,
        hidden: vec![root.join("state")],
        now: now(clock),
    })
}

fn opencode(binary: PathBuf, root: &Path, api: &str, clock: &MovedClock) -> OpenCode {
    file(
        &root.join("opencode/config/opencode/opencode.json"),
        &json!({"provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Mock",
            "options": {"baseURL": format!("{api}/v1"), "apiKey": "dummy"},
            "models": {"mock-model": {"name": "Mock model", "limit": {"context": 200_000, "output": 8_192}}},
        }}})
        .to_string(),
    );
    OpenCode::new(OpenCodeSettings {
        binary: Some(binary),
        home: Some(root.join("opencode")),
        env: BTreeMap::from([home(root)]),
        subscription: SubscriptionId::new("opencode"),
        metered: false,
        hidden: vec![root.join("state")],
        usage_base: None,
        now: now(clock),
    })
}

fn api(base_url: String, clock: &MovedClock) -> OpenAiHttp {
    OpenAiHttp::new(OpenAiSettings {
        subscription: SubscriptionId::new("api"),
        base_url,
        key: None,
        max_tokens: None,
        client: providers::http::client().expect("a client"),
        now: now(clock),
    })
}

fn file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    support::write(path, text.as_bytes());
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
    let Some((mut world, upstreams)) = world().await else {
        return;
    };
    let reset = world.now() + SignedDuration::from_hours(3);
    upstreams.anthropic.script([
        Step::ToolUse {
            text: "First, the list of jobs.".into(),
            name: "Read".into(),
            input: json!({ "file_path": world.home.path().join("work/jobs.txt") }),
        },
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at: reset,
        },
    ]);
    upstreams.responses.script([
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
    upstreams
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
    assert_eq!(asked(&upstreams.responses, "First, the list of jobs."), 2);
    let told = asked(&upstreams.completions, "Codex looks at the list too.");
    assert_eq!(
        told, 1,
        "what Codex had done reached OpenCode in its one request"
    );
    let last = upstreams.completions.requests();
    let last = last
        .iter()
        .rfind(|request| request.method == "POST")
        .expect("OpenCode asked");
    assert_eq!(last.text.matches(REQUEST).count(), 1, "{}", last.text);
    assert!(last.text.contains("job-b"), "the tool's result was carried");
    assert_eq!(upstreams.last.count(), 0, "nobody needed the fourth");

    // The next turn knows.
    let (claude, codex) = (upstreams.anthropic.count(), asked(&upstreams.responses, ""));
    upstreams
        .completions
        .script([Step::answer("You are welcome.")]);
    let next = world.say("thanks").await;
    assert_eq!(next.answer.as_deref(), Some("You are welcome."), "{next:?}");
    assert_eq!(upstreams.anthropic.count(), claude, "Claude is spent");
    assert_eq!(asked(&upstreams.responses, ""), codex, "Codex is spent");
    let line = next
        .status
        .last()
        .expect("a line says what was passed over");
    assert!(line.contains("skipping 2 exhausted subs"), "{line}");
    world.stop().await;
}
