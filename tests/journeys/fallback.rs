//! The walk: what is skipped, what is tried, what is said.

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use jiff::SignedDuration;
use providers::scripted::Act;
use support::{World, says};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn limited(world: &World, kind: FailureKind, reset: Option<SignedDuration>) -> Vec<Act> {
    let at = reset.map(|reset| world.now() + reset);
    vec![Act::Fail(
        Failure::new(kind, FailureScope::Account, "refused")
            .retry_at(at)
            .window(Some("five_hour".into())),
    )]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_turn_says_nothing_but_the_answer() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(says("four"));
    let shown = world.say("two and two?").await;
    assert_eq!(shown.answer.as_deref(), Some("four"));
    assert_eq!(
        (shown.status.len(), shown.notices.len(), shown.times_done),
        (0, 0, 1)
    );
    assert!(world.sub("b").attempts().is_empty());
}

// A26, A33: one line for the whole turn, at once, with the number of subscriptions known to be spent.
#[tokio::test(flavor = "multi_thread")]
async fn of_21_subscriptions_17_spent_ones_are_never_asked() {
    let names: Vec<String> = (1..=21).map(|n| format!("sub-{n:02}")).collect();
    let mut builder = World::builder();
    for name in &names {
        builder = builder.plan(name);
    }
    let mut world = builder.build().await;
    let spent: Vec<(&str, SignedDuration)> = names[1..18]
        .iter()
        .map(|name| (name.as_str(), HOUR * 24))
        .collect();
    world.publish_spent(&spent);
    world
        .sub("sub-01")
        .play(limited(&world, FailureKind::RateLimit, Some(HOUR)));
    for name in ["sub-19", "sub-20"] {
        world
            .sub(name)
            .play(limited(&world, FailureKind::RateLimit, Some(HOUR)));
    }
    world.sub("sub-21").play(says("here"));
    let shown = world.say("hello").await;
    assert_eq!(shown.answer.as_deref(), Some("here"));
    assert_eq!(
        shown.status,
        [
            "⚠️ Rate limited — skipping 17 exhausted subs (quota registry) and switching to fallback provider... Answered by sub-21/m."
        ]
    );
    for (name, _) in &spent {
        assert!(world.sub(name).attempts().is_empty(), "{name} was asked");
    }
}

// 5A.2: the head is checked with the same evidence as the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_known_to_be_spent_is_not_asked_and_said_once() {
    let mut world = World::builder().plan("a").plan("b").plan("c").build().await;
    world.publish_spent(&[("a", HOUR * 5), ("b", HOUR * 5)]);
    world.sub("c").play(says("yes"));
    let shown = world.say("hello").await;
    assert_eq!(
        shown.status,
        [
            "⚠️ Quota known to be spent — skipping 2 exhausted subs (quota registry) and using c/m... Answered by c/m."
        ]
    );
    assert!(world.sub("a").attempts().is_empty() && world.sub("b").attempts().is_empty());
}

// A37: the next turn starts at the head again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_subscription_is_used_on_the_next_turn() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, Some(HOUR)));
    world.sub("b").play(says("one"));
    world.say("1").await;
    world.pass(HOUR * 2);
    world.sub("a").play(says("two"));
    let shown = world.say("2").await;
    assert_eq!(shown.answer.as_deref(), Some("two"));
    assert!(shown.status.is_empty());
}

// 5A.3: what one turn learns, the next one knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_remembered_until_its_reset() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, Some(HOUR)));
    world.sub("b").play(says("one"));
    world.sub("b").play(says("two"));
    world.say("1").await;
    world.say("2").await;
    assert_eq!(world.sub("a").attempts().len(), 1);
    world.restart().await;
    world.sub("b").play(says("three"));
    world.say("3").await;
    assert_eq!(
        world.sub("a").attempts().len(),
        1,
        "the refusal survives a restart"
    );
}

// A35: the gate is about quota; a timeout walks the chain as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_not_about_quota_tries_what_the_registry_calls_spent() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.publish_spent(&[("b", HOUR * 24)]);
    world
        .sub("a")
        .play(limited(&world, FailureKind::Timeout, None));
    world.sub("b").play(says("still here"));
    let shown = world.say("hello").await;
    assert_eq!(shown.answer.as_deref(), Some("still here"));
    assert_eq!(shown.status.len(), 1);
}

// A42: a skip holds for the whole turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_subscription_stays_skipped_whatever_comes_later() {
    let mut world = World::builder()
        .plan("a")
        .plan("b")
        .plan("c")
        .plan("d")
        .build()
        .await;
    world.publish_spent(&[("b", HOUR * 24), ("d", HOUR * 24)]);
    world
        .sub("a")
        .play(limited(&world, FailureKind::Billing, None));
    world
        .sub("c")
        .play(limited(&world, FailureKind::Timeout, None));
    let shown = world.say("hello").await;
    assert!(world.sub("b").attempts().is_empty() && world.sub("d").attempts().is_empty());
    assert_eq!(
        shown.status,
        [
            "⚠️ Billing or credits exhausted — skipping 2 exhausted subs (quota registry) and switching to fallback provider..."
        ]
    );
    assert!(shown.answer.is_none());
}

// A29, A44
#[tokio::test(flavor = "multi_thread")]
async fn a_wholly_spent_tail_ends_the_turn_with_the_soonest_reset() {
    let mut world = World::builder().plan("a").plan("b").plan("c").build().await;
    world.publish_spent(&[("b", HOUR * 72), ("c", HOUR * 6)]);
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, None));
    let shown = world.say("hello").await;
    assert!(
        shown.notices[0].ends_with("\n\nEvery fallback subscription is quota-exhausted per the usage registry; the soonest resets in 6h."),
        "{shown:?}"
    );
    assert!(world.sub("b").attempts().is_empty() && world.sub("c").attempts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_tried_to_its_end_names_the_soonest_stated_reset() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, Some(HOUR * 3)));
    world
        .sub("b")
        .play(limited(&world, FailureKind::RateLimit, Some(HOUR * 2)));
    let shown = world.say("hello").await;
    assert!(
        shown.notices[0].ends_with(
            "Every subscription in the chain is out of quota; the soonest resets in 2h."
        ),
        "{shown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metered_entry_behind_a_spent_plan_gets_no_request_and_the_turn_is_sealed() {
    let mut world = World::builder()
        .plan("claude")
        .metered("fireworks")
        .build()
        .await;
    world.publish_spent(&[("claude", HOUR * 5)]);
    let shown = world.say("do it").await;
    assert!(
        world.sub("fireworks").attempts().is_empty() && world.sub("claude").attempts().is_empty()
    );
    assert!(shown.answer.is_none());
    assert!(
        shown
            .notices
            .iter()
            .any(|notice| notice.contains("Handoff saved")),
        "{shown:?}"
    );
    assert!(
        shown.notices[0].contains("the soonest resets in 5h."),
        "{shown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metered_entry_that_comes_first_is_used() {
    let mut world = World::builder()
        .metered("fireworks")
        .plan("claude")
        .build()
        .await;
    world.sub("fireworks").play(says("paid"));
    assert_eq!(world.say("hello").await.answer.as_deref(), Some("paid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_quota_plugin_there_is_no_gate() {
    let mut world = World::builder()
        .plan("a")
        .plan("b")
        .plan("c")
        .without("quota")
        .build()
        .await;
    world.publish_spent(&[("b", HOUR * 24)]);
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, None));
    world.sub("b").play(says("tried"));
    let shown = world.say("hello").await;
    assert_eq!(shown.answer.as_deref(), Some("tried"));
    assert_eq!(shown.status.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_stream_stays_shown_and_the_next_route_continues_below_it() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    let mut script = vec![Act::text("First half.")];
    script.extend(limited(&world, FailureKind::Transport, None));
    world.sub("a").play(script);
    world.sub("b").play(says("Second half."));
    let shown = world.say("tell me all").await;
    assert_eq!(shown.answer.as_deref(), Some("First half.\n\nSecond half."));
    let prompt = &world.sub("b").prompts()[0];
    assert!(
        prompt.contains("tell me all")
            && prompt.contains("First half.")
            && prompt.contains("Continue from here."),
        "{prompt}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_has_shown_nothing_hands_the_plain_request_on() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world
        .sub("a")
        .play(limited(&world, FailureKind::RateLimit, None));
    world.sub("b").play(says("ok"));
    world.say("plain words").await;
    assert_eq!(world.sub("b").prompts(), ["plain words"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_missed_an_exchange_is_told_how_many() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(says("one"));
    world.say("1").await;
    world
        .sub("a")
        .play(limited(&world, FailureKind::Timeout, None));
    world.sub("b").play(says("two"));
    world.say("2").await;
    world.sub("a").play(says("three"));
    world.say("3").await;
    let last = world.sub("a").attempts().pop().expect("three attempts");
    assert!(last.session.is_some());
    assert_eq!((last.history.len(), last.unseen), (2, 1));
}
