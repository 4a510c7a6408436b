//! What a cut turn leaves, and how the next one picks it up: previewed without being consumed, carried once, chained.

use gateway_core::event::{CallOutcome, Todo, TodoStatus};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::handoff::HandoffState;
use gateway_core::message::{Content, Origin};
use jiff::SignedDuration;
use providers::scripted::Act;
use serde_json::json;
use support::{World, says};

const CARRIES: &str = "[RESUMED TURN — the previous turn was cut by";

fn refused(kind: FailureKind) -> Act {
    Act::Fail(Failure::new(kind, FailureScope::Account, "refused"))
}

/// A turn cut in the middle of its second tool call.
fn cut_in_a_call() -> Vec<Act> {
    vec![
        Act::text("Looking at the jobs."),
        Act::Todos(vec![
            Todo {
                id: "1".into(),
                content: "list the jobs".into(),
                status: TodoStatus::Completed,
            },
            Todo {
                id: "2".into(),
                content: "restart job-b".into(),
                status: TodoStatus::InProgress,
            },
        ]),
        Act::call("c1", "terminal", &json!({ "command": "jobs" })),
        Act::result("c1", CallOutcome::Completed, "job-a\njob-b"),
        Act::call("c2", "terminal", &json!({ "command": "restart job-b" })),
        refused(FailureKind::RateLimit),
    ]
}

// B36-B42: notice, preview twice, carried once, then nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_turn_is_previewed_twice_and_carried_once() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    let cut = world.say("restart the jobs").await;
    assert_eq!(cut.answer.as_deref(), Some("Looking at the jobs."));
    assert_eq!(
        cut.notices.last().map(String::as_str),
        Some(
            "⛔ Turn cut — rate limit.\n💾 Handoff saved: 2 tool calls, 1 open todo, in-progress text preserved.\n↩️ Send `/resume-handoff` (or just keep talking) to continue from there."
        )
    );
    let preview = world.command("resume-handoff").await;
    assert!(
        preview.contains("- terminal({\"command\":\"restart job-b\"}) [NEVER COMPLETED]"),
        "{preview}"
    );
    assert!(
        preview.contains("job-a") && preview.contains("[in_progress] restart job-b"),
        "{preview}"
    );
    assert_eq!(
        world.command("resume_handoff").await,
        preview,
        "a preview consumes nothing"
    );
    world.sub("a").play(says("Done."));
    world.say("go on").await;
    world.sub("a").play(says("Bye."));
    world.say("thanks").await;
    let prompts = world.sub("a").prompts();
    let carried: Vec<bool> = prompts
        .iter()
        .map(|prompt| prompt.contains(CARRIES))
        .collect();
    assert_eq!(carried, [false, true, false]);
    assert!(
        prompts[1].starts_with("go on\n\n")
            && prompts[1].contains("Original request: restart the jobs"),
        "{}",
        prompts[1]
    );
    assert!(prompts[1].contains("A call marked NEVER COMPLETED may have run"));
    assert_eq!(
        world.command("resume-handoff").await,
        "No saved handoff for this chat."
    );
}

// 5B.2: every abnormal end seals.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_bad_end_is_sealed() {
    let mut world = World::builder().plan("a").build().await;
    for kind in [
        FailureKind::RateLimit,
        FailureKind::Billing,
        FailureKind::UpstreamRateLimit,
        FailureKind::Overloaded,
        FailureKind::Timeout,
        FailureKind::Transport,
        FailureKind::Auth,
        FailureKind::ContextOverflow,
        FailureKind::ContentFilter,
        FailureKind::BadRequest,
        FailureKind::Crashed,
    ] {
        world.command("new").await;
        world.sub("a").play(vec![Act::text("Half."), refused(kind)]);
        let shown = world.say("do it").await;
        assert!(
            shown.notices.iter().any(|notice| notice.contains(
                "💾 Handoff saved: 0 tool calls, 0 open todos, in-progress text preserved."
            )),
            "{kind:?}: {shown:?}"
        );
        // Nothing but a new login lets a refused one be tried again.
        let lockouts = gateway_host::cooling::lockout::Lockouts::of(&world.settings.root);
        let locked_out = lockouts.clear(&"a".into());
        assert_eq!(locked_out, kind == FailureKind::Auth, "{kind:?}");
        world.sub("a").play(says("ok"));
        world.say("next").await;
        assert!(
            world.sub("a").prompts()[1].contains("Original request: do it"),
            "{kind:?}"
        );
    }
}

// B15, B28 of the notices: nothing but the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_before_any_text_saves_the_request_and_does_not_claim_text() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![refused(FailureKind::RateLimit)]);
    let shown = world.say("hello").await;
    assert!(
        shown
            .notices
            .iter()
            .any(|n| n.contains("💾 Handoff saved: 0 tool calls, 0 open todos.\n")),
        "{shown:?}"
    );
}

// B50: a second cut chains.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_cut_loses_nothing_of_the_first() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    world.sub("a").play(vec![
        Act::call("c3", "terminal", &json!({ "command": "status job-b" })),
        refused(FailureKind::RateLimit),
    ]);
    world.say("and tell me how it went").await;
    let preview = world.command("resume-handoff").await;
    for part in [
        "restart the jobs",
        "and tell me how it went",
        "restart job-b",
        "status job-b",
        "job-a",
    ] {
        assert!(preview.contains(part), "{part} is lost:\n{preview}");
    }
    world.sub("a").play(says("fine"));
    world.say("again").await;
    let answered = world.sub("a").prompts().pop().expect("a prompt");
    assert!(answered.contains("status job-b"), "{answered}");
    world.sub("a").play(says("bye"));
    world.say("thanks").await;
    assert!(
        !world
            .sub("a")
            .prompts()
            .pop()
            .expect("a prompt")
            .contains(CARRIES)
    );
}

// B45: a new conversation starts with nothing.
#[tokio::test(flavor = "multi_thread")]
async fn new_discards_the_pending_handoff_and_says_so() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    let said = world.command("new").await;
    assert!(said.to_lowercase().contains("handoff"), "{said}");
    world.sub("a").play(says("hello"));
    world.say("hi").await;
    assert!(
        !world
            .sub("a")
            .prompts()
            .pop()
            .expect("a prompt")
            .contains(CARRIES)
    );
    assert_eq!(
        world.command("resume-handoff").await,
        "No saved handoff for this chat."
    );
}

// 5B.13: only a human turn carries it.
#[tokio::test(flavor = "multi_thread")]
async fn a_synthetic_turn_does_not_carry_it() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    world.sub("a").play(says("tick"));
    let inbound = world.inbound(Content::Text("heartbeat".into()), Origin::Synthetic);
    world.gateway().receive(inbound).await;
    world.gateway().idle().await;
    world.sub("a").play(says("done"));
    world.say("go on").await;
    let carried: Vec<bool> = world
        .sub("a")
        .prompts()
        .iter()
        .map(|prompt| prompt.contains(CARRIES))
        .collect();
    assert_eq!(carried, [false, false, true]);
}

// B24 and PRODUCT: valid for a day at least; expired is said as such.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_handoff_is_called_expired_and_not_carried() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    world.pass(SignedDuration::from_hours(25));
    let said = world.command("resume-handoff").await;
    assert!(said.starts_with("The saved handoff expired at "), "{said}");
    world.sub("a").play(says("hello"));
    world.say("hi").await;
    assert!(
        !world
            .sub("a")
            .prompts()
            .pop()
            .expect("a prompt")
            .contains(CARRIES)
    );
}

// 5B.19: a week's wall outlives a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_lives_as_long_as_the_wall_it_waits_behind() {
    let mut world = World::builder().plan("a").build().await;
    let week = SignedDuration::from_hours(150);
    let failure = Failure::new(FailureKind::RateLimit, FailureScope::Account, "weekly")
        .retry_at(Some(world.now() + week));
    world
        .sub("a")
        .play(vec![Act::text("Half."), Act::Fail(failure)]);
    world.say("do it").await;
    world.pass(week + SignedDuration::from_mins(10));
    world.sub("a").play(says("done"));
    world.say("go on").await;
    assert!(world.sub("a").prompts()[1].contains("Original request: do it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_turn_is_sealed_quietly() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![
        Act::text("Working"),
        Act::call("c1", "terminal", &json!({})),
        Act::WaitForStop,
    ]);
    world.send("a long job").await;
    world
        .surface
        .wait_for(|record| {
            record
                .turns()
                .first()
                .is_some_and(|turn| record.of(turn).count() > 1)
        })
        .await;
    world.command("stop").await;
    world.gateway().idle().await;
    let preview = world.command("resume-handoff").await;
    assert!(
        preview.starts_with("[STOPPED BY YOU: shown only, will not be injected.]"),
        "{preview}"
    );
    assert!(preview.contains("a long job"));
    world.sub("a").play(says("hello"));
    let shown = world.say("hi").await;
    assert_eq!(shown.answer.as_deref(), Some("hello"));
    assert!(!world.sub("a").prompts()[1].contains(CARRIES));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_handoff_plugin_nothing_is_sealed_and_the_command_says_so() {
    let mut world = World::builder().plan("a").without("handoff").build().await;
    world.sub("a").play(cut_in_a_call());
    let shown = world.say("restart the jobs").await;
    assert!(
        !shown
            .notices
            .iter()
            .any(|notice| notice.contains("Handoff saved")),
        "{shown:?}"
    );
    assert!(!shown.notices.is_empty(), "the cut itself is said");
    assert_eq!(
        world.command("resume-handoff").await,
        "Handoffs are switched off for this profile."
    );
    assert!(world.store.handoffs().await.expect("readable").is_empty());
}

// 5B.14: secrets reach neither the store nor a preview.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_arguments_and_results_are_redacted_before_they_are_stored() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let (half, rest) = token.split_at(10);
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![
        Act::text("The token is "),
        Act::text(half),
        Act::text(rest),
        Act::text(" as you see."),
        Act::call(
            "c1",
            "terminal",
            &json!({ "command": format!("curl -H 'Authorization: Bearer {token}'") }),
        ),
        Act::result("c1", CallOutcome::Failed, format!("bad token {token}")),
        refused(FailureKind::RateLimit),
    ]);
    world.say("use my token").await;
    let stored = world.store.handoffs().await.expect("readable");
    let text = serde_json::to_string(&stored).expect("json");
    assert!(!text.contains(&token), "{text}");
    let journal = world
        .store
        .journal(&stored[0].handoff.turn)
        .await
        .expect("readable");
    assert!(
        !serde_json::to_string(&journal)
            .expect("json")
            .contains(&token)
    );
    assert!(!world.command("resume-handoff").await.contains(&token));
}

// The plain file for people mirrors the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_handoff_stands_as_a_private_file_until_it_is_answered() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    let folder = world.home.path().join("state/turn-handoff");
    let files = || -> Vec<_> {
        let list = std::fs::read_dir(&folder)
            .expect("the folder")
            .filter_map(Result::ok)
            .map(|entry| entry.path());
        list.filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .collect()
    };
    let sealed = files();
    assert_eq!(sealed.len(), 1);
    assert_eq!(
        std::fs::metadata(&sealed[0])
            .expect("there")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert_eq!(
        std::fs::metadata(&folder)
            .expect("there")
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    world.sub("a").play(says("done"));
    world.say("go on").await;
    assert!(files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_says_claimed_while_a_turn_carries_it() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(cut_in_a_call());
    world.say("restart the jobs").await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    world
        .sub("a")
        .play(vec![Act::text("Hm"), Act::Wait(go_on.clone()), Act::Answer]);
    world.send("go on").await;
    world.sub("a").prompts_reach(2).await;
    assert_eq!(
        world.command("resume-handoff").await,
        "The saved handoff is in use by the running turn."
    );
    go_on.notify_one();
    world.gateway().idle().await;
    let states: Vec<_> = world
        .store
        .handoffs_of(&lane())
        .await
        .expect("readable")
        .iter()
        .map(|h| h.state)
        .collect();
    assert_eq!(states, [HandoffState::Acked]);
}

fn lane() -> gateway_host::store::Lane {
    gateway_host::store::Lane {
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
    }
}
