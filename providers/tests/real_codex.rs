//! The real Codex against a model API on loopback. Nothing but that API is ever dialled: its address is the only one in
//! the settings of the login.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod attempt;
mod codex;
mod real;

use codex::*;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::event::{CallOutcome, Event, TodoStatus};
use gateway_core::failure::{FailureKind, FailureScope};
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use providers::loopback::{Cut, Step};
use providers::{Exchange, Health, Permissions, ProbeError, Provider};
use serde_json::json;

#[tokio::test]
async fn real_codex_answers_streams_and_resumes() {
    let Some(world) = World::new(vec![
        Step::answer("Hello there."),
        Step::answer("Again."),
        Step::answer("Anew."),
    ])
    .await
    else {
        return;
    };
    let first = world.turn("remember turn-7", |_| {}).await;
    assert_eq!(
        (first.answer(), first.seen().as_str()),
        ("Hello there.", "Hello there.")
    );
    let deltas = first
        .events
        .iter()
        .filter(|event| matches!(event, Event::Text { .. }));
    assert_eq!(deltas.count(), 2, "{:?}", first.events);
    let session = first.session();
    assert_eq!(
        world.codex.session_holds(&session, "turn-7").await,
        Some(true)
    );
    assert_eq!(
        world.codex.session_holds(&session, "turn-8").await,
        Some(false)
    );

    let exchange = |request: &str, answer: &str| Exchange {
        request: request.to_owned(),
        answer: answer.to_owned(),
    };
    let history = vec![
        exchange("remember turn-7", "Hello there."),
        exchange("asked elsewhere", "answered elsewhere"),
    ];
    let told = history.clone();
    let second = world
        .turn("/compact now", |request| {
            request.session = Some(session.clone());
            request.history = told;
            request.unseen = 1;
        })
        .await;
    assert_eq!((second.answer(), second.session()), ("Again.", session));
    let sent = world.asked()[1]["input"].to_string();
    assert_eq!(
        sent.matches("turn-7").count(),
        1,
        "the thread has it already: {sent}"
    );
    assert!(sent.contains("answered elsewhere") && sent.contains("/compact now"));
    let (AttemptEnd::Answered(one), AttemptEnd::Answered(two)) = (&first.end, &second.end) else {
        panic!("{:?} {:?}", first.end, second.end)
    };
    let (one, two) = (one.usage, two.usage);
    assert_eq!(
        two.output,
        Some(2),
        "tokens of the first turn are not counted again: {one:?} {two:?}"
    );

    // A thread that does not exist: a new one, which is told everything.
    let missing = world
        .turn("third", |request| {
            request.session = Some("019a0000-0000-7000-8000-000000000000".into());
            request.history = history;
        })
        .await;
    assert_eq!(missing.answer(), "Anew.");
    assert_ne!(
        missing.session().as_str(),
        "019a0000-0000-7000-8000-000000000000"
    );
    let sent = world.asked()[2]["input"].to_string();
    assert!(sent.contains("turn-7") && sent.contains("answered elsewhere"));
    world.assert_no_canary();
}

#[tokio::test]
async fn real_codex_without_permissions_does_nothing() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    world.api.script([
        burglary(&world),
        patch("p.txt"),
        tool("view_image", json!({"path": "in.txt"})),
        Step::answer("done"),
    ]);
    let turn = world.turn("go", |_| {}).await;
    assert_eq!((turn.answer(), turn.outcomes()), ("done", vec![]));
    assert_eq!(
        tools_of(&world.asked()[0]),
        ["apply_patch"],
        "which has nothing to work in"
    );
    let outputs = world.outputs();
    assert!(outputs[0].contains("unsupported call"), "{outputs:?}");
    assert!(
        outputs[1].contains("No usable execution environment"),
        "{outputs:?}"
    );
    assert!(!outputs.concat().contains("inside the working directory"));
    assert!(!world.path("work/p.txt").exists());
    world.assert_no_canary();
}

#[tokio::test]
async fn real_codex_read_only_reads_inside_and_nothing_else() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    world
        .api
        .script([burglary(&world), patch("p.txt"), Step::answer("done")]);
    let turn = world
        .turn("go", |request| request.permissions = Permissions::ReadOnly)
        .await;
    assert_eq!(turn.answer(), "done");
    let outputs = world.outputs();
    assert!(
        outputs[0].contains("inside the working directory"),
        "{outputs:?}"
    );
    assert!(
        !outputs[0].contains("root:") && !outputs[0].contains("connected-out"),
        "{outputs:?}"
    );
    for file in ["work/written.txt", "outside-written.txt", "work/p.txt"] {
        assert!(!world.path(file).exists(), "{file}");
    }
    let allowed = ["exec_command", "write_stdin", "update_plan", "apply_patch"];
    assert_eq!(tools_of(&world.asked()[0]), allowed);
    world.assert_no_canary();
}

#[tokio::test]
async fn real_codex_edit_writes_inside_and_nowhere_else() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    world.api.script([
        burglary(&world),
        patch("p.txt"),
        patch("../p-outside.txt"),
        patch("gateway/p.txt"),
        Step::answer("done"),
    ]);
    let turn = world
        .turn("go", |request| request.permissions = Permissions::Edit)
        .await;
    assert_eq!(turn.answer(), "done");
    let outputs = world.outputs();
    assert!(
        !outputs[0].contains("root:") && !outputs[0].contains("connected-out"),
        "{outputs:?}"
    );
    assert!(
        world.path("work/written.txt").exists() && world.path("work/p.txt").exists(),
        "{outputs:?}"
    );
    for file in ["outside-written.txt", "p-outside.txt", "work/gateway/p.txt"] {
        assert!(!world.path(file).exists(), "{file}");
    }
    world.assert_no_canary();

    // The same thread with less: nothing of the earlier level is left.
    world
        .api
        .script([command("touch later.txt"), Step::answer("less")]);
    let session = turn.session();
    let less = world
        .turn("again", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!((less.answer(), less.session()), ("less", session));
    assert!(!world.path("work/later.txt").exists());
}

#[tokio::test]
async fn real_codex_full_is_not_confined_and_its_tools_and_plan_are_told() {
    let plan = json!({"plan": [{"step": "one", "status": "completed"}, {"step": "two", "status": "in_progress"}]});
    let steps = vec![
        command("cat ../outside.txt"),
        command("exit 3"),
        tool("update_plan", plan),
        Step::answer("done"),
    ];
    let Some(world) = World::new(steps).await else {
        return;
    };
    let turn = world
        .turn("go", |request| request.permissions = Permissions::Full)
        .await;
    assert_eq!(turn.answer(), "done");
    assert_eq!(
        turn.outcomes(),
        [CallOutcome::Completed, CallOutcome::Failed]
    );
    let shown = turn.events.iter().any(
        |event| matches!(event, Event::ToolResult { text, .. } if text.contains("canary-outside")),
    );
    assert!(shown, "{:?}", turn.events);
    let todos = turn.events.iter().find_map(|event| match event {
        Event::Todos(todos) => Some(todos.clone()),
        _ => None,
    });
    let todos = todos.expect("the plan is reported");
    assert_eq!(
        (todos[1].content.as_str(), todos[1].status),
        ("two", TodoStatus::InProgress)
    );
    assert!(
        !world.path("mcp-ran").exists()
            && !world.path("notify-ran").exists()
            && !world.path("hook-ran").exists()
    );
}

#[tokio::test]
async fn real_codex_stops_and_its_commands_stop_with_it() {
    let steps = vec![
        Step::stall_after("some words that never end", 2),
        Step::answer("after"),
    ];
    let Some(world) = World::new(steps).await else {
        return;
    };
    let mut handle = world.start("go", |_| {});
    while !matches!(handle.events.recv().await.unwrap(), Event::Text { .. }) {}
    handle.stop.stop();
    let stopped = Turn::of(handle).await;
    assert_eq!(stopped.end, AttemptEnd::Stopped);

    let marker = world.path("work/ticks");
    let second = world.turn("again", |_| {}).await;
    assert_eq!(second.answer(), "after");

    world.api.script([command(
        "echo started > ticks; sleep 600; echo late > late.txt",
    )]);
    let mut handle = world.start("sleep", |request| request.permissions = Permissions::Full);
    while !matches!(handle.events.recv().await.unwrap(), Event::ToolCall { .. }) {}
    let written = async {
        while !marker.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written)
        .await
        .unwrap();
    handle.stop.stop();
    assert_eq!(Turn::of(handle).await.end, AttemptEnd::Stopped);
    let work = world.path("work").to_str().unwrap().to_owned();
    assert_eq!(
        running_in(&work),
        Vec::<String>::new(),
        "the command ended with its turn"
    );
}

#[tokio::test]
async fn real_codex_tells_a_usage_limit_with_its_reset() {
    let resets_at = Timestamp::from_second(1_796_012_345).unwrap();
    let limited = Step::UnifiedRejected {
        window: "five_hour".to_owned(),
        resets_at,
    };
    let Some(world) = World::new(vec![limited]).await else {
        return;
    };
    let turn = world.turn("go", |_| {}).await;
    let failure = turn.failure();
    assert_eq!(
        (failure.kind, &failure.scope),
        (FailureKind::RateLimit, &FailureScope::Account)
    );
    assert_eq!(
        (failure.retry_at, failure.window.as_deref()),
        (Some(resets_at), Some("five_hour"))
    );
    let limit = turn.events.iter().find_map(|event| match event {
        Event::Limit(reading) => Some(reading.clone()),
        _ => None,
    });
    assert_eq!(limit.expect("a reading").resets_at, Some(resets_at));
    // The failed prompt is in the thread all the same.
    assert_eq!(
        world.codex.session_holds(&turn.session(), "go").await,
        Some(true)
    );
}

#[tokio::test]
async fn real_codex_failures_are_named() {
    let overflow = json!({"error": {"code": "context_length_exceeded", "message": "too long"}});
    let steps = vec![Step::status(400, &overflow)];
    let Some(world) = World::new(steps).await else {
        return;
    };
    let failure = world.turn("go", |_| {}).await;
    assert_eq!(
        failure.failure().kind,
        FailureKind::ContextOverflow,
        "{failure:?}",
        failure = failure.failure()
    );

    let cut = || Step::cut_after("half of an answer", 2, Cut::Abrupt);
    world.api.script([cut(), cut()]);
    let failed = world.turn("go", |_| {}).await;
    assert_eq!(
        failed.failure().kind,
        FailureKind::Transport,
        "{:?}",
        failed.failure()
    );

    world.api.script([cut(), Step::answer("whole again")]);
    let mended = world.turn("go", |_| {}).await;
    assert_eq!(
        (mended.answer(), mended.seen().as_str()),
        ("whole again", "whole again")
    );

    world.api.script([
        Step::status(401, &json!({"error": {"message": "bad key"}})),
        Step::status(401, &json!({})),
    ]);
    let failed = world.turn("go", |_| {}).await;
    assert_eq!(
        failed.failure().kind,
        FailureKind::Auth,
        "{:?}",
        failed.failure()
    );
}

#[tokio::test]
async fn real_codex_gives_up_on_a_refused_connection() {
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let config = std::fs::read_to_string(world.path("login/config.toml")).unwrap();
    // Nobody listens on the discard port of loopback; the retries of the real settings are left as they are by default.
    let refused = config
        .replace(
            &format!("{}/v1", world.api.base_url()),
            "http://127.0.0.1:9/v1",
        )
        .replace("request_max_retries = 1\nstream_max_retries = 1\n", "");
    world.write("login/config.toml", &refused);
    let turn = world.turn("go", |_| {}).await;
    let failure = turn.failure();
    assert_eq!(
        (failure.kind, &failure.scope),
        (FailureKind::Transport, &FailureScope::NetworkEdge),
        "{failure:?}"
    );
}

#[tokio::test]
async fn real_codex_runs_threads_side_by_side_and_one_thread_in_turn() {
    let notify = Arc::new(tokio::sync::Notify::new());
    let Some(world) = World::new(Vec::new()).await else {
        return;
    };
    let until = notify.clone();
    world.api.otherwise(move |request| {
        let prompt = request.prompt();
        match prompt.as_str() {
            "wait" => Step::Stall {
                text: "waited long".to_owned(),
                deltas: 2,
                after: 1,
                until: Some(until.clone()),
            },
            other => Step::answer(format!("said {other}")),
        }
    });
    let mut slow = world.start("wait", |_| {});
    let session = loop {
        match slow.events.recv().await.unwrap() {
            Event::Session { id } => break id,
            _ => continue,
        }
    };
    while !matches!(slow.events.recv().await.unwrap(), Event::Text { .. }) {}
    // The slow turn runs: another thread is answered meanwhile, and one more turn of its own thread has to wait.
    let next = world.start("next", |request| request.session = Some(session.clone()));
    assert_eq!(world.turn("other", |_| {}).await.answer(), "said other");
    let before = world.asked().len();
    notify.notify_waiters();
    assert_eq!(Turn::of(slow).await.answer(), "waited long");
    let next = Turn::of(next).await;
    assert_eq!((next.answer(), next.session()), ("said next", session));
    assert_eq!((before, world.asked().len()), (2, 3));
}

#[tokio::test]
async fn real_codex_killed_fails_its_turn_and_the_next_one_works() {
    let steps = vec![
        Step::stall_after("words and words", 1),
        Step::answer("alive"),
    ];
    let Some(world) = World::new(steps).await else {
        return;
    };
    let mut handle = world.start("go", |_| {});
    let session = loop {
        match handle.events.recv().await.unwrap() {
            Event::Session { id } => break id,
            _ => continue,
        }
    };
    while !matches!(handle.events.recv().await.unwrap(), Event::Text { .. }) {}
    let login = world.path("login").to_str().unwrap().to_owned();
    for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        let id = process
            .file_name()
            .to_str()
            .and_then(|id| id.parse().ok())
            .and_then(rustix::process::Pid::from_raw);
        if let (Ok(cwd), Some(id)) = (cwd, id)
            && cwd.to_str() == Some(login.as_str())
        {
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        }
    }
    let failed = Turn::of(handle).await;
    assert_eq!(failed.failure().kind, FailureKind::Crashed);
    let next = world
        .turn("again", |request| request.session = Some(session.clone()))
        .await;
    assert_eq!((next.answer(), next.session()), ("alive", session));
}

/// An unsigned token with the claims of a login: account `acc-1`, plan `plus`.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6ImFubkBleGFtcGxlLnRlc3QiLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEiLCJjaGF0Z3B0X3VzZXJfaWQiOiJ1c2VyLTEiLCJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMifX0.x";

#[tokio::test]
async fn real_codex_never_bills_a_key_for_a_plan() {
    let Some(world) = World::with(
        vec![Step::answer("unpaid")],
        LOGIN,
        Some(json!({"OPENAI_API_KEY": "sk-dummy"})),
    )
    .await
    else {
        return;
    };
    let turn = world.turn("go", |_| {}).await;
    assert_eq!(turn.failure().kind, FailureKind::Auth);
    assert!(
        turn.failure().detail.contains("instead of the plan"),
        "{}",
        turn.failure().detail
    );
    assert!(
        matches!(world.codex.health().await, Health::Broken { problem, .. } if problem.contains("API key"))
    );
    assert_eq!(world.api.count(), 0, "nothing was asked of anybody");
    let limits = world.codex.probe(Duration::from_secs(30)).await;
    assert!(
        matches!(limits, Err(ProbeError::Unsupported(_))),
        "{limits:?}"
    );
}

#[tokio::test]
async fn real_codex_with_a_login_answers_and_is_asked_for_its_limits() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program refreshes a login whose file is old by the machine's clock"
    )]
    let now = Timestamp::now();
    let auth = json!({
        "OPENAI_API_KEY": null, "last_refresh": now.to_string(),
        "tokens": {"id_token": TOKEN, "access_token": TOKEN, "refresh_token": "dummy", "account_id": "acc-1"},
    });
    let Some(world) = World::with(vec![Step::answer("paid by the plan")], LOGIN, Some(auth)).await
    else {
        return;
    };
    assert_eq!(
        world.codex.health().await,
        Health::Ready {
            version: Some("0.171.0".to_owned())
        }
    );
    assert_eq!(world.turn("go", |_| {}).await.answer(), "paid by the plan");
    let sent = world.api.requests();
    let model = sent
        .iter()
        .find(|request| request.path.ends_with("/responses"))
        .unwrap();
    assert_eq!(model.header("chatgpt-account-id"), Some("acc-1"));
    let login = world.codex.login().await;
    assert_eq!(
        (login.account_id.as_deref(), login.plan.as_deref()),
        (Some("acc-1"), Some("plus"))
    );
    // The loopback API has no usage endpoint: the probe fails, and says nothing about the quota.
    let limits = world.codex.probe(Duration::from_secs(30)).await;
    assert!(matches!(limits, Err(ProbeError::Failed(_))), "{limits:?}");
}
