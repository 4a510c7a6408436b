//! The real OpenCode against a model API on loopback. A server takes seconds to start, so each test plays several scenes
//! on one.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod attempt;
mod chat;
mod opencode;
mod real;

use std::time::Duration;

use attempt::Turn;
use chat::Reply;
use gateway_core::event::{CallOutcome, Event, TodoStatus, TokenUsage};
use gateway_core::failure::{FailureKind, FailureScope};
use gateway_core::turn::AttemptEnd;
use opencode::world::{World, machine_time};
use providers::{Exchange, Health, Permissions, Provider as _};
use serde_json::json;
use tokio::sync::oneshot;

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
    let outcomes = tools.calls();
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
    let (kind, scope, at, detail) = limited.verdict();
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
    assert_eq!(long.verdict().0, FailureKind::ContextOverflow);

    // A login that does not hold.
    world.mock.clear();
    world.mock.reply([Reply::error(
        401,
        &json!({"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}),
    )]);
    let (kind, scope, ..) = world.turn("key", |_| {}).await.verdict();
    assert_eq!((kind, scope), (FailureKind::Auth, FailureScope::Account));

    // A page instead of an answer has no end by itself.
    world.mock.clear();
    world.mock.reply((0..200).map(|_| Reply::Html));
    let page = world.turn("page", |_| {}).await;
    let (kind, scope, _, detail) = page.verdict();
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
    let (kind, scope, _, detail) = refused.verdict();
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
        let (kind, _, _, detail) = refused.verdict();
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
    let rest = Turn::of(handle).await;
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
    let died = Turn::of(handle).await;
    let (kind, _, _, detail) = died.verdict();
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
    assert_eq!(silent.verdict().0, FailureKind::Timeout);

    // Without the word nothing is sent.
    world.mock.clear();
    let (word, go) = oneshot::channel();
    drop(word);
    let unsent = world.start("never", |request| request.go = go);
    assert_eq!(Turn::of(unsent).await.end, AttemptEnd::Stopped);
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
