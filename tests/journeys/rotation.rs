//! A full session: it is retired once, its successor knows what was said, and nothing is lost on the way.

use std::sync::Arc;

use gateway_core::bridge::rotation::Reason;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ConversationId, SubscriptionId};
use gateway_host::store::fault::Method;
use gateway_host::turn::rotation::base;
use providers::scripted::{Act, Scripted, SeenAttempt};
use support::{World, says};
use tokio::sync::Notify;

fn full() -> Vec<Act> {
    vec![overflow()]
}

fn overflow() -> Act {
    Act::Fail(Failure::new(
        FailureKind::ContextOverflow,
        FailureScope::Session,
        "Prompt is too long",
    ))
}

async fn generation(world: &World, conversation: &ConversationId) -> u32 {
    let base = base(conversation).to_string();
    let subscription = SubscriptionId::new("one");
    world.store.generation(&base, &subscription).await.unwrap()
}

fn last(provider: &Scripted) -> SeenAttempt {
    provider.attempts().pop().unwrap()
}

/// Cases 15, 19, 25 and 53.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_session_is_retired_and_the_conversation_goes_on() {
    let mut world = World::builder().plan("one").build().await;
    world.sub("one").play(says("A watcher on the folder."));
    world.say("How do I notice a change?").await;
    let first = last(world.sub("one"));
    world.sub("one").play(full());
    world.sub("one").play(says("Yes, as I said."));
    let shown = world.say("Also with an atomic save?").await;
    assert_eq!(shown.answer.as_deref(), Some("Yes, as I said."));
    assert_eq!(
        (shown.times_done, shown.status.len(), shown.notices.len()),
        (1, 0, 0)
    );

    let attempts = world.sub("one").attempts();
    assert_eq!(attempts.len(), 3);
    let (resumed, created) = (&attempts[1], &attempts[2]);
    assert!(resumed.session.is_some() && created.session.is_none());
    assert_eq!(resumed.prompt, "Also with an atomic save?");
    assert_eq!(resumed.title, first.title);
    assert_eq!(created.title, format!("{}-g1", first.title));
    assert!(created.history.is_empty());
    let told = &created.prompt;
    assert!(
        told.contains("[user]\nHow do I notice a change?\n\n[assistant]\nA watcher on the folder."),
        "{told}"
    );
    assert!(
        told.ends_with("[user]\nAlso with an atomic save?"),
        "{told}"
    );

    // The next request goes straight to the successor, after a restart too.
    world.restart().await;
    world.sub("one").play(says("Third."));
    world.say("And on a network drive?").await;
    let next = last(world.sub("one"));
    assert_eq!(next.prompt, "And on a network drive?");
    assert_eq!(next.title, created.title);
    assert!(next.session.is_some() && next.session != resumed.session);
    let retired = world.store.retired_sessions(&first.title).await.unwrap();
    assert_eq!(retired.len(), 1);
    assert_eq!(
        (retired[0].generation, retired[0].reason),
        (0, Reason::Overflow)
    );
    assert_eq!(Some(&retired[0].session), resumed.session.as_ref());
}

/// Case 26: what does not fit a new session either moves no further generation, however often it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fits_nowhere_does_not_go_through_generations() {
    let mut world = World::builder().plan("one").build().await;
    world.say("Hello").await;
    let conversation = last(world.sub("one")).conversation;
    world.sub("one").play(full());
    world.sub("one").play(full());
    let shown = world.say("far too much").await;
    assert_eq!(shown.answer, None);
    assert_eq!(world.sub("one").attempts().len(), 3);
    assert_eq!(generation(&world, &conversation).await, 1);
    for asked in 1..=3 {
        world.sub("one").play(full());
        world.say("far too much").await;
        assert_eq!(world.sub("one").attempts().len(), 3 + asked);
        assert_eq!(generation(&world, &conversation).await, 1);
    }
    // What fits is answered by the generation that was opened then.
    world.sub("one").play(says("Fine."));
    world.say("short").await;
    assert_eq!(
        last(world.sub("one")).title,
        format!("{}-g1", base(&conversation))
    );
    assert_eq!(generation(&world, &conversation).await, 1);
}

/// Case 24: a route that keeps no sessions has none to retire. Cases 14 and 23: no other failure retires.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_overflow_of_a_resumed_session_retires() {
    let mut world = World::builder().plan("one").build().await;
    world.say("Hello").await;
    let conversation = last(world.sub("one")).conversation;
    for kind in [
        FailureKind::RateLimit,
        FailureKind::Overloaded,
        FailureKind::Timeout,
        FailureKind::Auth,
    ] {
        let failure = Failure::new(kind, FailureScope::Account, "no");
        world.sub("one").play([Act::Fail(failure)]);
        world.say("again").await;
        assert_eq!(generation(&world, &conversation).await, 0, "{kind:?}");
    }
}

/// Cases 27 and 52: the retirement is on disk before the successor is asked, so a turn that ends there has still done it.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_stopped_in_the_successor_has_still_rotated() {
    let mut world = World::builder().plan("one").build().await;
    world.say("Hello").await;
    let conversation = last(world.sub("one")).conversation;
    world.sub("one").play(full());
    world
        .sub("one")
        .play([Act::Wait(Arc::new(Notify::new())), Act::Answer]);
    world.send("more").await;
    world.sub("one").prompts_reach(3).await;
    assert_eq!(generation(&world, &conversation).await, 1);
    world.restart().await;
    world.sub("one").play(says("Here."));
    world.say("go on").await;
    let next = last(world.sub("one"));
    assert_eq!(next.title, format!("{}-g1", base(&conversation)));
    assert_eq!(generation(&world, &conversation).await, 1);
}

/// A retirement that cannot be written is no retirement: the successor is not asked, and the person is told.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_durable_retirement_no_successor_is_asked() {
    let mut world = World::builder().plan("one").build().await;
    world.say("Hello").await;
    let conversation = last(world.sub("one")).conversation;
    world.sub("one").play(full());
    world.faults.fail(&[Method::RetireSession]);
    world.say("more").await;
    assert_eq!(world.sub("one").attempts().len(), 2);
    world.faults.heal();
    assert_eq!(generation(&world, &conversation).await, 0);
    world.sub("one").play(full());
    world.sub("one").play(says("Now."));
    let shown = world.say("once more").await;
    assert_eq!(shown.answer.as_deref(), Some("Now."));
    assert_eq!(generation(&world, &conversation).await, 1);
}

/// Case 16: every full session opens the next generation, none is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn four_full_sessions_are_four_generations() {
    let mut world = World::builder().plan("one").build().await;
    world.say("Hello").await;
    let conversation = last(world.sub("one")).conversation;
    for n in 1..=4 {
        world.sub("one").play(full());
        world.sub("one").play(says("on"));
        world.say("more").await;
        assert_eq!(
            last(world.sub("one")).title,
            format!("{}-g{n}", base(&conversation))
        );
    }
}
