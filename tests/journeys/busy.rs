//! One lane at a time: queueing, stopping, deadlines, commands beside a running turn.

use std::time::Duration;

use gateway_core::message::{Content, Origin};
use providers::Permissions;
use providers::scripted::Act;
use support::{World, says};

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_one_conversation_never_overlap_and_the_second_is_told() {
    let mut world = World::builder().plan("a").build().await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    world.sub("a").play(vec![
        Act::text("one"),
        Act::Wait(go_on.clone()),
        Act::Answer,
    ]);
    world.sub("a").play(says("two"));
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
    assert_eq!(world.sub("a").attempts().len(), 1);
    go_on.notify_one();
    world.gateway().idle().await;
    let record = world.surface.record();
    let answers: Vec<_> = record
        .turns()
        .iter()
        .map(|turn| record.answer(turn).map(ToOwned::to_owned))
        .collect();
    assert_eq!(answers, [Some("one".to_owned()), Some("two".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_twice_is_answered_once() {
    let mut world = World::builder().plan("a").build().await;
    let inbound = world.inbound(Content::Text("hello".into()), Origin::Human);
    world.gateway().receive(inbound.clone()).await;
    world.gateway().receive(inbound).await;
    world.gateway().idle().await;
    assert_eq!(world.sub("a").prompts(), ["hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_the_turn_visibly_and_the_next_one_runs() {
    let mut world = World::builder().plan("a").build().await;
    world
        .sub("a")
        .play(vec![Act::text("Working"), Act::WaitForStop]);
    world.send("long").await;
    world.sub("a").prompts_reach(1).await;
    world.command("stop").await;
    world.gateway().idle().await;
    let record = world.surface.record();
    assert_eq!(record.notices(&record.turns()[0]), ["⏹️ Stopped."]);
    world.sub("a").play(says("fresh"));
    assert_eq!(world.say("again").await.answer.as_deref(), Some("fresh"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_is_given_up_in_time() {
    let limits = (Duration::from_secs(20), Duration::from_millis(200));
    let mut world = World::builder()
        .plan("a")
        .plan("b")
        .limits(limits.0, limits.1)
        .build()
        .await;
    world.sub("a").play(vec![Act::WaitForStop]);
    world.sub("b").play(says("awake"));
    let shown = world.say("hello").await;
    assert_eq!(shown.answer.as_deref(), Some("awake"));
    assert_eq!(shown.status.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_dies_without_a_word_is_a_failure_like_any_other() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(vec![Act::Crash]);
    world.sub("b").play(says("still here"));
    assert_eq!(
        world.say("hello").await.answer.as_deref(),
        Some("still here")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_not_an_answer() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").otherwise(|_| vec![Act::Answer]); // also when it is asked once more
    world.sub("b").play(says("words"));
    assert_eq!(world.say("hello").await.answer.as_deref(), Some("words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_text_is_replaced_not_doubled() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![
        Act::text("Hel"),
        Act::Retract { from_block: 0 },
        Act::NewBlock,
        Act::text("Hello."),
        Act::Answer,
    ]);
    assert_eq!(world.say("hi").await.answer.as_deref(), Some("Hello."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_a_mebibyte_is_refused_by_size_and_nothing_is_sent() {
    let mut world = World::builder().plan("a").build().await;
    world.send(&"x".repeat((1 << 20) + 1)).await;
    let record = world.surface.record();
    assert!(
        record.replies()[0]
            .0
            .contains("1048577 bytes long; at most 1048576 bytes"),
        "{:?}",
        record.replies()
    );
    assert!(world.sub("a").attempts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surface_that_is_not_the_console_gets_no_tools_by_default() {
    let mut world = World::builder().plan("a").build().await;
    world.say("hello").await;
    assert_eq!(world.sub("a").attempts()[0].permissions, Permissions::None);
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_is_for_operators_and_others_read_only() {
    use gateway_core::message::Standing;
    let mut world = World::builder()
        .plan("a")
        .permissions(Permissions::Edit)
        .build()
        .await;
    world.say("by an operator").await;
    let mut inbound = world.inbound(Content::Text("by a member".into()), Origin::Human);
    inbound.sender.standing = Standing::Member;
    world.gateway().receive(inbound).await;
    world.gateway().idle().await;
    let levels: Vec<_> = world
        .sub("a")
        .attempts()
        .iter()
        .map(|attempt| attempt.permissions)
        .collect();
    assert_eq!(levels, [Permissions::Edit, Permissions::ReadOnly]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_route_comes_first_and_auto_gives_the_chain_back() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.command("model b/m").await;
    world.say("one").await;
    assert_eq!(
        (
            world.sub("a").attempts().len(),
            world.sub("b").attempts().len()
        ),
        (0, 1)
    );
    world.command("model auto").await;
    world.say("two").await;
    assert_eq!(
        (
            world.sub("a").attempts().len(),
            world.sub("b").attempts().len()
        ),
        (1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_sent_to_a_route_that_has_not_seen_it() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("four"));
    world.say("two and two?").await;
    world.say("and twice that?").await;
    let second = world.sub("a").attempts().pop().expect("two attempts");
    assert_eq!(second.history.len(), 1);
    assert_eq!(
        (
            second.history[0].request.as_str(),
            second.history[0].answer.as_str()
        ),
        ("two and two?", "four")
    );
    assert_eq!(second.unseen, 0, "its own session has seen it");
    assert!(second.session.is_some());
}
