//! What follows a failure that is not the end of a subscription: bursts, overloads, refused logins, a dead network.

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::SubscriptionId;
use gateway_core::message::ReplyOp;
use gateway_host::cooling::lockout::Lockouts;
use jiff::SignedDuration;
use providers::scripted::Act;
use serde_json::json;
use support::{Shown, World, says};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

fn fails(kind: FailureKind, scope: FailureScope) -> Vec<Act> {
    vec![Act::Fail(Failure::new(kind, scope, "refused"))]
}

fn burst(world: &World, wait: SignedDuration) -> Vec<Act> {
    let failure = Failure::new(FailureKind::RateLimit, FailureScope::Burst, "per minute");
    vec![Act::Fail(failure.retry_at(Some(world.now() + wait)))]
}

/// Says something; each time the turn waits for a route, the clock jumps ahead by this.
async fn say_and_pass(world: &mut World, text: &str, each_wait: SignedDuration) -> Shown {
    let clock = world.clock.clone();
    let passing = tokio::spawn(async move {
        for wait in 1.. {
            clock.waits_reach(wait).await;
            clock.advance(each_wait);
        }
    });
    let shown = world.say(text).await;
    passing.abort();
    shown
}

fn tries(world: &World, names: &[&str]) -> Vec<usize> {
    names
        .iter()
        .map(|name| world.sub(name).attempts().len())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_sat_out_on_the_same_route_and_nobody_hears_of_it() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(burst(&world, SECOND * 20));
    world.sub("a").play(says("here"));
    world.send("plain words").await;
    world
        .surface
        .wait_for(|record| {
            let waits = |op: &ReplyOp| matches!(op, ReplyOp::Tools { text } if text.starts_with("⏳ a is busy; asking again in "));
            record.delivered.iter().any(|one| waits(&one.op))
        })
        .await;
    world.clock.waits_reach(1).await;
    world.pass(SECOND * 18); // a jump short of it ends nothing
    assert_eq!(tries(&world, &["a", "b"]), [1, 0]);
    world.pass(SECOND * 2);
    world.gateway().idle().await;
    let record = world.surface.record();
    let turn = record.turns().pop().unwrap();
    let shown = support::shown(&record, Some(turn));
    assert_eq!(shown.answer.as_deref(), Some("here"));
    assert!(
        shown.status.is_empty() && shown.notices.is_empty(),
        "{shown:?}"
    );
    assert_eq!(tries(&world, &["a", "b"]), [2, 0]);
    assert_eq!(world.sub("a").prompts(), ["plain words", "plain words"]);
    world.sub("a").play(says("again"));
    assert_eq!(world.say("more").await.answer.as_deref(), Some("again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_429_is_asked_once_more_then_cools_for_a_minute() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    for _ in 0..2 {
        let bare = fails(FailureKind::RateLimit, FailureScope::Burst);
        world.sub("a").play(bare);
    }
    world.sub("b").play(says("one"));
    world.sub("b").play(says("two"));
    let shown = say_and_pass(&mut world, "1", SECOND * 6).await;
    assert_eq!(shown.answer.as_deref(), Some("one"));
    assert_eq!(
        shown.status,
        ["⚠️ Rate limited — switching to fallback provider... Answered by b/m."]
    );
    let shown = world.say("2").await;
    assert_eq!(shown.answer.as_deref(), Some("two"));
    assert_eq!(
        shown.status,
        ["⚠️ a was throttled a moment ago — using b/m... Answered by b/m."]
    );
    assert_eq!(tries(&world, &["a", "b"]), [2, 2]);
    world.pass(SECOND * 60);
    world.sub("a").play(says("three"));
    let shown = world.say("3").await;
    assert_eq!(shown.answer.as_deref(), Some("three"));
    assert!(shown.status.is_empty(), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cooling_route_is_asked_when_nobody_else_is_left() {
    let mut world = World::builder().plan("a").build().await;
    for _ in 0..2 {
        let bare = fails(FailureKind::RateLimit, FailureScope::Burst);
        world.sub("a").play(bare);
    }
    let shown = say_and_pass(&mut world, "1", SECOND * 6).await;
    assert!(shown.answer.is_none());
    world.sub("a").play(says("here"));
    assert_eq!(world.say("2").await.answer.as_deref(), Some("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_and_a_broken_connection_get_one_more_look() {
    for (kind, scope) in [
        (FailureKind::Overloaded, FailureScope::UpstreamShared),
        (FailureKind::UpstreamRateLimit, FailureScope::UpstreamShared),
        (FailureKind::Transport, FailureScope::Request),
    ] {
        let mut world = World::builder().plan("a").plan("b").build().await;
        world.sub("a").play(fails(kind, scope.clone()));
        world.sub("a").play(says("one"));
        let shown = say_and_pass(&mut world, "1", SECOND * 2).await;
        assert_eq!(shown.answer.as_deref(), Some("one"), "{kind:?}");
        assert!(shown.status.is_empty(), "{kind:?}: {shown:?}");
        for _ in 0..2 {
            world.sub("a").play(fails(kind, scope.clone()));
        }
        world.sub("b").play(says("two"));
        let shown = say_and_pass(&mut world, "2", SECOND * 2).await;
        assert_eq!(shown.answer.as_deref(), Some("two"), "{kind:?}");
        assert_eq!(tries(&world, &["a", "b"]), [4, 1], "{kind:?}");
        world.sub("a").play(says("three"));
        let shown = world.say("3").await;
        assert_eq!(
            shown.answer.as_deref(),
            Some("three"),
            "{kind:?}: it cools not"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_shown_text_or_started_a_tool_is_never_run_again() {
    let traces = [
        Act::text("Half."),
        Act::call("c1", "terminal", &json!({ "command": "deploy" })),
    ];
    for trace in traces {
        let mut world = World::builder().plan("a").plan("b").build().await;
        let mut script = vec![trace];
        script.extend(burst(&world, SECOND * 2));
        world.sub("a").play(script);
        world.sub("b").play(says("Rest."));
        let shown = world.say("do it").await;
        assert!(shown.answer.unwrap().ends_with("Rest."));
        assert_eq!(tries(&world, &["a", "b"]), [1, 1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_network_is_named_and_holds_nothing_against_anybody() {
    let mut world = World::builder().plan("a").plan("b").plan("c").build().await;
    let dead = || fails(FailureKind::Transport, FailureScope::NetworkEdge);
    for (name, times) in [("a", 2), ("b", 1), ("c", 1)] {
        for _ in 0..times {
            world.sub(name).play(dead());
        }
    }
    let shown = say_and_pass(&mut world, "hello", SECOND).await;
    assert_eq!(tries(&world, &["a", "b", "c"]), [2, 1, 1]);
    assert!(
        shown.notices[0]
            .ends_with("\n\n🔌 No route could be reached: your network seems to be down."),
        "{shown:?}"
    );
    assert!(
        shown
            .notices
            .iter()
            .any(|notice| notice.contains("Handoff saved")),
        "{shown:?}"
    );
    world.sub("a").play(says("back"));
    let shown = world.say("and now?").await;
    assert_eq!(shown.answer.as_deref(), Some("back"));
    assert!(shown.status.is_empty(), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dead_route_is_not_a_dead_network() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    for _ in 0..2 {
        let dead = fails(FailureKind::Transport, FailureScope::NetworkEdge);
        world.sub("a").play(dead);
    }
    world.sub("b").play(says("here"));
    let shown = say_and_pass(&mut world, "hello", SECOND).await;
    assert_eq!(shown.answer.as_deref(), Some("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_login_is_left_out_until_the_operator_acts() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world
        .sub("a")
        .play(fails(FailureKind::Auth, FailureScope::Account));
    world.sub("b").play(says("one"));
    let shown = world.say("1").await;
    assert_eq!(shown.answer.as_deref(), Some("one"));
    assert_eq!(
        shown.status,
        ["⚠️ Authentication failed — switching to fallback provider... Answered by b/m."]
    );
    assert!(shown.notices.is_empty(), "one outcome: {shown:?}");
    let said = "🔒 The login of a was refused, so it is left out from now on. Log in again, then run `baton doctor`.";
    let activity = |world: &World| {
        let record = world.surface.record();
        let says = |op: &ReplyOp| matches!(op, ReplyOp::Tools { text } if text == said);
        record.delivered.iter().filter(|one| says(&one.op)).count()
    };
    assert_eq!(activity(&world), 1);
    let status = world.command("status").await;
    assert!(status.contains("Next turn starts with: b/m."), "{status}");
    let usage = world.command("usage").await;
    assert!(usage.contains("its login is refused, left out"), "{usage}");
    world.pass(SignedDuration::from_hours(24 * 365)); // no time ends it
    world.sub("b").play(says("two"));
    let shown = world.say("2").await;
    assert_eq!(shown.answer.as_deref(), Some("two"));
    assert!(
        shown.status.is_empty() && shown.notices.is_empty(),
        "{shown:?}"
    );
    world.restart().await;
    world.sub("b").play(says("three"));
    let shown = world.say("3").await;
    assert_eq!(
        shown.status,
        ["⚠️ The login of a is refused — using b/m... Answered by b/m."]
    );
    world.sub("b").play(says("four"));
    let shown = world.say("4").await;
    assert!(
        shown.status.is_empty(),
        "said once per conversation: {shown:?}"
    );
    assert_eq!(tries(&world, &["a", "b"]), [1, 4]);
    // As `baton doctor` does where it finds the login ready.
    assert!(Lockouts::of(&world.settings.root).clear(&SubscriptionId::new("a")));
    world.sub("a").play(says("five"));
    assert_eq!(world.say("5").await.answer.as_deref(), Some("five"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_refused_logins_says_what_to_do_and_asks_nobody() {
    let mut world = World::builder().plan("a").build().await;
    let refused = fails(FailureKind::Auth, FailureScope::Account);
    world.sub("a").play(refused);
    let first = world.say("1").await;
    let second = world.say("2").await;
    let words = "🔒 The login of a is refused. Log in again, then run `baton doctor`.";
    assert_eq!(
        first.notices[0],
        format!("❌ Authentication failed on a/m: refused.\n\n{words}")
    );
    assert_eq!(second.notices[0], words);
    assert_eq!(tries(&world, &["a"]), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_without_money_is_asked_now_and_then_until_it_serves() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    let broke = fails(FailureKind::Billing, FailureScope::Account);
    world.sub("a").play(broke);
    world.sub("b").otherwise(|_| says("from b"));
    world.say("1").await;
    world.say("2").await;
    world.pass(SignedDuration::from_mins(9));
    world.say("3").await;
    assert_eq!(tries(&world, &["a", "b"]), [1, 3]);
    world.pass(SignedDuration::from_mins(1));
    world.sub("a").otherwise(|_| says("from a"));
    for text in ["4", "5"] {
        let shown = world.say(text).await;
        assert_eq!(shown.answer.as_deref(), Some("from a"));
        assert!(shown.status.is_empty(), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(burst(&world, SECOND * 50));
    world.send("hello").await;
    world.clock.waits_reach(1).await;
    world.command("stop").await;
    world.gateway().idle().await;
    let record = world.surface.record();
    let turn = record.turns().pop().unwrap();
    assert_eq!(support::shown(&record, Some(turn)).notices, ["⏹️ Stopped."]);
    assert_eq!(tries(&world, &["a", "b"]), [1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_burst_gives_way_to_a_free_route() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    world.sub("a").play(burst(&world, SECOND * 200));
    world.sub("b").play(says("one"));
    world.sub("b").play(says("two"));
    assert_eq!(world.say("1").await.answer.as_deref(), Some("one"));
    world.pass(SECOND * 190);
    assert_eq!(world.say("2").await.answer.as_deref(), Some("two"));
    world.pass(SECOND * 10);
    world.sub("a").play(says("three"));
    assert_eq!(world.say("3").await.answer.as_deref(), Some("three"));
}
