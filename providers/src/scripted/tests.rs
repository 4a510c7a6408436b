//! Each act, and the promises every provider keeps.

use gateway_core::event::Event;
use gateway_core::failure::{AttemptLimits, FailureKind, FailureScope};
use gateway_core::turn::AttemptEnd;
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::loopback::{Loopback, Step, Wire};

fn request(prompt: &str) -> (AttemptRequest, oneshot::Sender<()>) {
    let (fire, go) = oneshot::channel();
    let request = AttemptRequest {
        attempt: AttemptId::new("a"),
        conversation: ConversationId::new("c"),
        model: ModelId::new("m"),
        session: None,
        title: String::new(),
        prompt: prompt.to_owned(),
        history: Vec::new(),
        unseen: 0,
        workdir: PathBuf::from("."),
        permissions: Permissions::ReadOnly,
        limits: AttemptLimits {
            deadline: Duration::from_secs(600),
            silence: Duration::from_secs(60),
        },
        go,
    };
    (request, fire)
}

/// Fires go and collects everything.
async fn finish(
    scripted: &Scripted,
    request: (AttemptRequest, oneshot::Sender<()>),
) -> (Vec<Event>, AttemptEnd) {
    let mut handle = scripted.start(request.0);
    request.1.send(()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = handle.events.recv().await {
        events.push(event);
    }
    (events, handle.end.await.unwrap())
}

fn session_of(events: &[Event]) -> ProviderSessionId {
    let found = events.iter().find_map(|event| match event {
        Event::Session { id } => Some(id.clone()),
        _ => None,
    });
    found.unwrap()
}

#[tokio::test]
async fn plays_text_tools_and_an_end_in_order() {
    let scripted = Scripted::new();
    scripted.play([
        Act::Session("s-1".into()),
        Act::text("Look: "),
        Act::call("t1", "Bash", &json!({"command": "ls"})),
        Act::result("t1", CallOutcome::Completed, "a.txt"),
        Act::NewBlock,
        Act::text("one file."),
    ]);
    let (events, end) = finish(&scripted, request("list")).await;
    assert_eq!(
        events,
        [
            Event::Session { id: "s-1".into() },
            Event::Text {
                block: 0,
                delta: "Look: ".into()
            },
            Event::ToolCall {
                id: "t1".into(),
                name: "Bash".into(),
                arguments: r#"{"command":"ls"}"#.into()
            },
            Event::ToolResult {
                id: "t1".into(),
                outcome: CallOutcome::Completed,
                text: "a.txt".into()
            },
            Event::Text {
                block: 1,
                delta: "one file.".into()
            },
        ]
    );
    let AttemptEnd::Answered(answer) = end else {
        panic!("{end:?}")
    };
    assert_eq!(answer.text, "Look: one file.");
    assert_eq!(scripted.prompts(), ["list"]);
}

#[tokio::test]
async fn a_retracted_block_is_not_part_of_the_answer() {
    let scripted = Scripted::without_sessions();
    scripted.play([
        Act::text("half"),
        Act::Retract { from_block: 0 },
        Act::text("whole"),
    ]);
    let (events, end) = finish(&scripted, request("x")).await;
    assert!(events.contains(&Event::Text {
        block: 1,
        delta: "whole".into()
    }));
    let AttemptEnd::Answered(answer) = end else {
        panic!("{end:?}")
    };
    assert_eq!(answer.text, "whole");
}

#[tokio::test]
async fn sessions_on_disk_outlive_the_provider_and_know_what_they_saw() {
    let folder = tempfile::tempdir().unwrap();
    let first = Scripted::in_folder(folder.path());
    let (events, _) = finish(&first, request("marker-one \"quoted\"")).await;
    let session = session_of(&events);

    let second = Scripted::in_folder(folder.path());
    assert_eq!(
        second
            .session_holds(&session, "marker-one \"quoted\"")
            .await,
        Some(true)
    );
    assert_eq!(
        second.session_holds(&session, "marker-two").await,
        Some(false)
    );
    assert_eq!(second.session_holds(&"missing".into(), "x").await, None);
    assert_eq!(second.session_holds(&"../escape".into(), "x").await, None);

    let (mut resumed, fire) = request("marker-two");
    resumed.session = Some(session.clone());
    let (events, _) = finish(&second, (resumed, fire)).await;
    assert_eq!(session_of(&events), session);
    assert_eq!(
        second.session_holds(&session, "marker-two").await,
        Some(true)
    );

    second.forget(&session);
    assert_eq!(second.session_holds(&session, "marker-one").await, None);
    let (mut lost, fire) = request("marker-three");
    lost.session = Some(session.clone());
    let (events, _) = finish(&second, (lost, fire)).await;
    assert_ne!(
        session_of(&events),
        session,
        "a lost session is replaced by a new one"
    );
}

#[tokio::test]
async fn nothing_leaves_before_go_and_a_dropped_go_is_a_stop() {
    let scripted = Scripted::new();
    let (asked, fire) = request("never");
    let handle = scripted.start(asked);
    scripted.attempts_reach(1).await;
    drop(fire);
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(scripted.prompts().is_empty());
    assert!(!scripted.attempts()[0].sent);
}

#[tokio::test]
async fn a_stop_ends_a_wait_and_a_dropped_handle_too() {
    let scripted = Scripted::new();
    scripted.play([Act::WaitForStop]);
    let (asked, fire) = request("x");
    let handle = scripted.start(asked);
    fire.send(()).unwrap();
    scripted.prompts_reach(1).await;
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
}

#[tokio::test]
async fn an_ignored_stop_is_obeyed_late() {
    let scripted = Scripted::new();
    scripted.play([
        Act::IgnoreStop(Duration::from_millis(50)),
        Act::text("busy"),
        Act::WaitForStop,
    ]);
    let (asked, fire) = request("x");
    let mut handle = scripted.start(asked);
    fire.send(()).unwrap();
    while handle.events.recv().await
        != Some(Event::Text {
            block: 0,
            delta: "busy".into(),
        })
    {}
    let asked_at = tokio::time::Instant::now();
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(asked_at.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn silence_and_deadline_end_as_timeouts() {
    let scripted = Scripted::new();
    scripted.otherwise(|_| vec![Act::Wait(Arc::new(Notify::new()))]);
    for (deadline, silence, detail) in [(60_000, 20, "silent"), (20, 60_000, "deadline")] {
        let (mut asked, fire) = request("x");
        asked.limits = AttemptLimits {
            deadline: Duration::from_millis(deadline),
            silence: Duration::from_millis(silence),
        };
        let (_, end) = finish(&scripted, (asked, fire)).await;
        let AttemptEnd::Failed(failure) = end else {
            panic!("{end:?}")
        };
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert!(failure.detail.contains(detail), "{}", failure.detail);
    }
}

#[tokio::test]
async fn failing_and_crashing_are_different_ends() {
    let scripted = Scripted::new();
    let failure = Failure::new(FailureKind::Billing, FailureScope::Account, "no credit");
    scripted.play([Act::text("half"), Act::Fail(failure.clone())]);
    let (_, end) = finish(&scripted, request("x")).await;
    assert_eq!(end, AttemptEnd::Failed(failure));

    scripted.play([Act::Crash]);
    let (asked, fire) = request("x");
    let handle = scripted.start(asked);
    fire.send(()).unwrap();
    assert!(handle.end.await.is_err());
}

#[tokio::test]
async fn text_fetched_from_a_server_is_counted_there() {
    crate::install_tls();
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    let resets_at = jiff::Timestamp::from_second(1_796_001_127).unwrap();
    server.script([
        Step::answer("from the server"),
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at,
        },
    ]);
    let scripted = Scripted::new();
    let fetch = Act::Fetch {
        base_url: server.base_url(),
        client: crate::http::client().unwrap(),
    };
    scripted.otherwise(move |_| vec![fetch.clone()]);

    let (_, end) = finish(&scripted, request("ask")).await;
    let AttemptEnd::Answered(answer) = end else {
        panic!("{end:?}")
    };
    assert_eq!(answer.text, "from the server");
    assert_eq!(server.requests()[0].prompt(), "ask");

    let (_, end) = finish(&scripted, request("ask")).await;
    let AttemptEnd::Failed(failure) = end else {
        panic!("{end:?}")
    };
    assert_eq!(
        (failure.kind, failure.retry_at),
        (FailureKind::RateLimit, Some(resets_at))
    );
    assert_eq!(server.count(), 2);
}
