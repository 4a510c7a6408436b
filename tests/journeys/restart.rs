//! A gateway that ends in the middle: in order, or not at all. What was acknowledged is answered, sealed or said to be
//! stopped; what was carried is carried once.

use gateway_core::event::CallOutcome;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ConversationId, InboundId, TurnId};
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::message::{Content, Origin, ReplyTarget};
use gateway_core::route::Route;
use gateway_host::store::Lane;
use gateway_host::store::fault::Method;
use providers::scripted::Act;
use serde_json::json;
use support::{World, says};

const CARRIES: &str = "[RESUMED TURN — the previous turn was cut by";

fn refused() -> Act {
    Act::Fail(Failure::new(
        FailureKind::RateLimit,
        FailureScope::Account,
        "refused",
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_seals_the_running_turn_for_the_next_start() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![
        Act::text("Half."),
        Act::call("c1", "terminal", &json!({ "command": "make" })),
        Act::WaitForStop,
    ]);
    world.send("build it").await;
    world
        .surface
        .wait_for(|record| {
            record
                .turns()
                .first()
                .is_some_and(|turn| record.of(turn).count() > 1)
        })
        .await;
    world.restart().await;
    let notices: Vec<String> = {
        let record = world.surface.record();
        record
            .notices(&record.turns()[0])
            .into_iter()
            .map(ToOwned::to_owned)
            .collect()
    };
    assert!(
        notices
            .iter()
            .any(|n| n.contains("Handoff saved: 1 tool call")),
        "{notices:?}"
    );
    world.sub("a").play(says("built"));
    world.say("go on").await;
    let prompt = &world.sub("a").prompts()[1];
    assert!(
        prompt.contains("build it") && prompt.contains("[NEVER COMPLETED]"),
        "{prompt}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_message_survives_the_end_of_the_gateway() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::WaitForStop]);
    world.send("first").await;
    world.sub("a").prompts_reach(1).await;
    world.send("second").await;
    let record = world
        .surface
        .wait_for(|record| !record.replies().is_empty())
        .await;
    assert_eq!(
        record.replies()[0].0,
        "Queued: it runs when the running turn has ended."
    );
    world.restart().await;
    world.sub("a").play(says("both"));
    world.say("go on").await;
    let prompt = &world.sub("a").prompts()[1];
    assert!(
        prompt.contains("first") && prompt.contains("second"),
        "{prompt}"
    );
}

/// The journal of a turn as a process that died under it leaves it.
async fn leave_open(
    world: &World,
    owner: &str,
    carries: Vec<(gateway_core::ids::HandoffId, i64)>,
) -> TurnId {
    let lane = Lane {
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
    };
    let session = world
        .store
        .session(&lane, world.now())
        .await
        .expect("a session");
    let row = TurnRow {
        turn: TurnId::new(uuid::Uuid::now_v7().to_string()),
        profile: lane.profile,
        session: lane.session,
        conversation: ConversationId::new(session.conversation.as_str()),
        inbound: InboundId::new("left"),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: support::SURFACE.into(),
            address: "chat".into(),
        },
        request: "deploy it".into(),
        started_at: world.now(),
        owner: owner.into(),
        carries: carries.iter().map(|(id, _)| id.clone()).collect(),
    };
    assert!(
        world
            .store
            .open_turn(&row, &carries)
            .await
            .expect("writable")
    );
    let entries = [
        JournalEntry::Attempt {
            attempt: "x".into(),
            route: Route::new("a", "m"),
            at: world.now(),
        },
        JournalEntry::ToolCall {
            id: "c1".into(),
            name: "terminal".into(),
            arguments: "{\"command\":\"deploy\"}".into(),
        },
        JournalEntry::ToolResult {
            id: "c1".into(),
            outcome: CallOutcome::Completed,
            text: "deployed".into(),
        },
        JournalEntry::ToolCall {
            id: "c2".into(),
            name: "terminal".into(),
            arguments: "{\"command\":\"verify\"}".into(),
        },
    ];
    world
        .store
        .append(&row.turn, &entries)
        .await
        .expect("writable");
    row.turn
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_owners_turn_is_sealed_at_the_next_message_and_no_call_is_replayed() {
    let mut world = World::builder().plan("a").build().await;
    leave_open(&world, "00000000-dead-7000-8000-000000000000", vec![]).await;
    world.sub("a").play(says("verified"));
    world.say("go on").await;
    let prompts = world.sub("a").prompts();
    assert_eq!(prompts.len(), 1);
    assert!(
        prompts[0].contains("Original request: deploy it"),
        "{}",
        prompts[0]
    );
    assert!(
        prompts[0].contains("verify\"}) [NEVER COMPLETED]")
            && prompts[0].contains("deploy\"}) [completed]"),
        "{}",
        prompts[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_owners_turn_is_left_alone() {
    let mut world = World::builder().plan("a").build().await;
    let other = gateway_host::instance::Instance::start(&world.settings.root)
        .expect("another process's lock");
    let turn = leave_open(&world, other.id(), vec![]).await;
    world.sub("a").play(says("hello"));
    world.say("hi").await;
    let open = world.store.open_turns().await.expect("readable");
    assert_eq!(
        open.iter().map(|row| row.turn.clone()).collect::<Vec<_>>(),
        [turn]
    );
    assert_eq!(world.sub("a").prompts(), ["hi"]);
}

// A crash between claim and answer, when the session's transcript already holds what was carried.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_was_told_is_not_told_to_it_again() {
    let mut world = World::builder().plan("a").build().await;
    world
        .sub("a")
        .play(vec![Act::text("Half of the first."), refused()]);
    world.say("the very first request").await;
    // The second turn carries it into the session and is killed under it: as on disk after a kill -9.
    world
        .sub("a")
        .play(vec![Act::text("Second begun."), Act::WaitForStop]);
    world.send("and the second").await;
    world.sub("a").prompts_reach(2).await;
    world
        .surface
        .wait_for(|record| {
            record
                .turns()
                .get(1)
                .and_then(|turn| record.answer(turn))
                .is_some()
        })
        .await;
    world.restart().await;
    world.sub("a").play(says("all done"));
    world.say("go on").await;
    let prompts = world.sub("a").prompts();
    let told = prompts
        .iter()
        .filter(|prompt| prompt.contains("the very first request"))
        .count();
    assert_eq!(
        told,
        2,
        "once as a message, once carried:\n{}",
        prompts.join("\n=====\n")
    );
    assert!(prompts[2].contains("and the second"), "{}", prompts[2]);
}

// The same with a transcript that is gone: told again, as the next attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_is_told_everything() {
    let mut world = World::builder().plan("a").build().await;
    world
        .sub("a")
        .play(vec![Act::text("Half of the first."), refused()]);
    world.say("the very first request").await;
    world
        .sub("a")
        .play(vec![Act::text("Second begun."), Act::WaitForStop]);
    world.send("and the second").await;
    world
        .surface
        .wait_for(|record| {
            record
                .turns()
                .get(1)
                .and_then(|turn| record.answer(turn))
                .is_some()
        })
        .await;
    let session = world.sub("a").attempts()[0].session.clone();
    world.restart().await;
    let attempts = world.sub("a").attempts();
    for id in session.iter().chain(
        attempts
            .iter()
            .filter_map(|attempt| attempt.session.as_ref()),
    ) {
        world.sub("a").forget(id);
    }
    world.sub("a").play(says("all done"));
    world.say("go on").await;
    let last = world.sub("a").prompts().pop().expect("a prompt");
    assert!(
        last.contains("the very first request") && last.contains("and the second"),
        "{last}"
    );
    assert!(last.contains(CARRIES));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_of_one_root_never_carry_the_same_handoff() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::text("Half."), refused()]);
    world.say("do it").await;
    let stored = world.store.handoffs().await.expect("readable");
    let claim = (stored[0].handoff.id.clone(), stored[0].revision);
    let other = gateway_host::instance::Instance::start(&world.settings.root)
        .expect("another process's lock");
    leave_open(&world, other.id(), vec![claim]).await;
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
        "The saved handoff is in use by the running turn."
    );
}

/// A platform delivers again what a gateway died under. Until the turn's first row is on disk nothing may say that the
/// message was seen; from then on nothing may take it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_again_is_taken_exactly_if_it_was_not() {
    let mut world = World::builder().plan("a").build().await;
    let message = world.inbound(Content::Text("build it".into()), Origin::Human);
    world.faults.fail(&[Method::OpenTurn]); // all that a process leaves which is killed right before
    world.gateway().receive(message.clone()).await;
    world.gateway().idle().await;
    world.restart().await;
    assert!(world.sub("a").prompts().is_empty(), "no row, no prompt");

    world.sub("a").play(says("built"));
    for _ in 0..2 {
        world.gateway().receive(message.clone()).await;
        world.gateway().idle().await;
    }
    world.restart().await;
    world.gateway().receive(message).await;
    world.gateway().idle().await;
    assert_eq!(world.sub("a").prompts(), ["build it"]);
}

/// A command has no row of its own: it is remembered before it is carried out, so that nothing is done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_delivered_again_is_done_once() {
    let mut world = World::builder().plan("a").build().await;
    let content = Content::Command {
        name: "new".into(),
        args: String::new(),
    };
    let command = world.inbound(content, Origin::Human);
    world.gateway().receive(command.clone()).await;
    world.restart().await;
    world.gateway().receive(command).await;
    assert_eq!(world.surface.record().replies().len(), 1);
}
