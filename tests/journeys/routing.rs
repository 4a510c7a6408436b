//! Quota-aware continuation: the work moves before and at the wall, visibly, at a safe point, within limits.

use std::sync::Arc;

use gateway_core::event::CallOutcome;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ConversationId, SessionKey, TurnId};
use gateway_core::message::{Content, Origin};
use gateway_core::switch::decide::SwitchReason;
use gateway_core::switch::facts::Burn;
use gateway_core::switch::machine::{AuditKind, Place, State};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use gateway_host::routing::{RoutingSettings, resume, why};
use gateway_host::store::Lane;
use gateway_host::store::routing::RoutingStep;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use providers::scripted::Act;
use serde_json::json;
use support::{World, says, shown};
use tokio::sync::Notify;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn reading(world: &World, name: &str, used: f64, status: WindowStatus) -> Reading {
    Reading {
        subscription: name.into(),
        window: "five_hour".to_owned(),
        scope: None,
        used_pct: Some(used),
        status,
        resets_at: Some(world.now() + HOUR * 3),
        duration_mins: Some(300),
        observed_at: Some(world.now()),
        source: ReadingSource::Event,
    }
}

/// Tells the registry how full subscriptions are, as a probe would.
async fn knows(world: &World, levels: &[(&str, f64)]) {
    let level = |(name, used): &(&str, f64)| reading(world, name, *used, WindowStatus::Allowed);
    let readings = levels.iter().map(level).collect();
    let effects = world.gateway().effects();
    effects.registry.learn(readings, world.now()).await;
}

async fn burns(world: &World, name: &str, each: f64) {
    let burn = Burn {
        subscription: name.into(),
        window: "five_hour".to_owned(),
        samples: vec![Some(each); 3],
    };
    world.store.put_burn(&[burn]).await.unwrap();
}

fn refused(world: &World) -> Act {
    let failure = Failure::new(FailureKind::RateLimit, FailureScope::Account, "limit");
    let until = Some(world.now() + HOUR * 3);
    Act::Fail(failure.retry_at(until).window(Some("five_hour".to_owned())))
}

fn tries(world: &World, name: &str) -> usize {
    world.sub(name).attempts().len()
}

async fn world() -> World {
    let routed = World::builder().routed(RoutingSettings::default());
    routed.plan("a").plan("b").build().await
}

async fn kinds(world: &World, conversation: &str) -> Vec<AuditKind> {
    let id = ConversationId::new(conversation);
    let rows = world.store.audit_of(&id).await.unwrap();
    rows.iter().map(|row| row.kind).collect()
}

async fn conversation(world: &mut World) -> String {
    let inbound = world.inbound(Content::Text(String::new()), Origin::Human);
    let lane = Lane {
        profile: inbound.profile,
        session: inbound.session,
    };
    let session = world.store.session(&lane, world.now()).await.unwrap();
    session.conversation.as_str().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_a_tool_drains_it_then_continues_elsewhere_and_can_be_taken_back() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0), ("b", 20.0)]).await;
    let tool_may_end = Arc::new(Notify::new());
    world.sub("a").play(vec![
        Act::text("Looking."),
        Act::call("c1", "Bash", &json!({ "command": "cargo test" })),
        Act::Limit(reading(&world, "a", 100.0, WindowStatus::Rejected)),
        Act::Wait(Arc::clone(&tool_may_end)),
        Act::result("c1", CallOutcome::Completed, "1 failed: parse::empty"),
        Act::WaitForStop,
    ]);
    world.sub("b").play(says("Fixed."));
    world.send("fix the tests").await;
    let conversation = conversation(&mut world).await;
    // The limit is known while the tool runs: nothing moves before the tool has ended.
    while !kinds(&world, &conversation)
        .await
        .contains(&AuditKind::Drained)
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(tries(&world, "b"), 0);
    tool_may_end.notify_one();
    world.gateway().idle().await;
    let record = world.surface.record();
    let turn = shown(&record, record.turns().pop());
    assert_eq!(
        turn.status,
        ["a hit its 5-hour limit. Continued on b m."],
        "{turn:?}"
    );
    assert_eq!(turn.answer.as_deref(), Some("Looking.\n\nFixed."));
    assert_eq!(turn.notices, [""; 0]);
    assert_eq!(turn.times_done, 1);
    let prompts = world.sub("b").prompts();
    let [prompt] = prompts.as_slice() else {
        panic!("b was asked once: {prompts:?}");
    };
    assert_eq!(prompt.matches("fix the tests").count(), 1);
    assert!(prompt.contains("1 failed: parse::empty"), "{prompt}");
    assert!(!prompt.contains("NEVER COMPLETED:"), "{prompt}");
    assert_eq!(tries(&world, "a"), 1);
    let told = kinds(&world, &conversation).await;
    assert_eq!(
        told,
        [
            AuditKind::Decided,
            AuditKind::Drained,
            AuditKind::Decided,
            AuditKind::Switched
        ]
    );

    let rows = world.store.audit_of_turn(turn.turn.as_ref()).await.unwrap();
    let told: Vec<String> = rows
        .iter()
        .flat_map(|row| why::lines(row, &TimeZone::UTC))
        .collect();
    for line in [
        "  known of a m: five_hour 50%",
        "  → goes on at b m (exhausted)",
        "  → has arrived at b m",
    ] {
        assert!(
            told.iter().any(|one| one.starts_with(line)),
            "{line}: {told:#?}"
        );
    }

    // It stays where it went, until the person takes it back.
    world.sub("b").play(says("Still here."));
    let next = world.say("and now?").await;
    assert_eq!(next.answer.as_deref(), Some("Still here."));
    assert_eq!(next.status, [""; 0]);
    let status = world.command("status").await;
    assert!(
        status.contains(
            "Routing: on; 1 of 3 automatic switches used in 24h; `/switch-back` goes to a m."
        ),
        "{status}"
    );
    knows(&world, &[("a", 10.0)]).await;
    assert_eq!(world.command("switch-back").await, "Switched back to a m.");
    assert_eq!(
        world.command("switch-back").await,
        "There is no automatic switch to take back here."
    );
    world.sub("a").play(says("Back."));
    assert_eq!(world.say("go on").await.answer.as_deref(), Some("Back."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_would_not_fit_moves_first() {
    let mut world = world().await;
    knows(&world, &[("a", 84.0), ("b", 20.0)]).await;
    burns(&world, "a", 7.0).await;
    world.sub("b").play(says("hello"));
    let turn = world.say("a long one").await;
    assert_eq!(turn.answer.as_deref(), Some("hello"));
    assert_eq!(
        turn.status,
        ["a is at 84% of its 5-hour window (about 7% per turn). This turn runs on b m."]
    );
    assert_eq!((tries(&world, "a"), tries(&world, "b")), (0, 1));
    assert_eq!(world.sub("b").prompts(), ["a long one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_fresh_means_waiting_and_going_on_by_itself_once_also_after_a_restart() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0)]).await;
    world
        .sub("a")
        .play(vec![Act::text("Half."), refused(&world)]);
    let turn = world.say("the whole thing").await;
    let [status] = turn.status.as_slice() else {
        panic!("one sentence: {turn:?}");
    };
    assert!(
        status.starts_with("⏳ No account has confirmed room: b has no reading. a resets at "),
        "{status}"
    );
    assert!(
        status.ends_with("Waiting, then continuing here."),
        "{status}"
    );
    assert_eq!(turn.notices, [""; 0]);
    let said = world.command("status").await;
    assert!(said.contains("waits for a m until"), "{said}");
    resume::sweep(world.gateway().sessions(), world.gateway().effects()).await;
    world.gateway().idle().await;
    assert_eq!(tries(&world, "a"), 1);

    world.restart().await;
    world.sub("a").play(says("All of it."));
    world.pass(HOUR * 3 + MINUTE * 2);
    for _ in 0..3 {
        resume::sweep(world.gateway().sessions(), world.gateway().effects()).await;
        world.gateway().idle().await;
    }
    assert_eq!((tries(&world, "a"), tries(&world, "b")), (2, 0));
    let prompt = world.sub("a").prompts().pop().unwrap();
    assert!(prompt.starts_with(resume::CONTINUE), "{prompt}");
    assert_eq!(prompt.matches("the whole thing").count(), 1);
    let record = world.surface.record();
    let last = shown(&record, record.turns().pop());
    assert_eq!(last.answer.as_deref(), Some("All of it."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_a_crash_interrupted_is_begun_again_once() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0)]).await;
    world
        .sub("a")
        .play(vec![Act::text("Half."), refused(&world)]);
    world.say("the whole thing").await;
    let id = ConversationId::new(conversation(&mut world).await);
    // As a process leaves it that dies right after the step: the work is sealed, the switch is decided, nothing is sent.
    let mut row = world.store.routing(&id).await.unwrap().unwrap();
    let State::WaitingReset { mut episode, .. } = row.machine.state.clone() else {
        panic!("{row:?}");
    };
    episode.attempt = 1;
    row.machine.run = Some(TurnId::new(format!("quota-continue:{}:1", episode.id)));
    row.machine.state = State::Switching {
        episode,
        to: Place {
            subscription: "b".into(),
            model: Some("m".to_owned()),
        },
        reason: SwitchReason::Exhausted,
    };
    row.owner = "a process that is gone".to_owned();
    let step = RoutingStep {
        row,
        audit: Vec::new(),
        reserve: Vec::new(),
        promises_seen: 0,
        release: Vec::new(),
        begun: Vec::new(),
        at: world.now(),
    };
    assert!(world.store.record_step(&step).await.unwrap());
    world.sub("b").play(says("All of it."));
    for _ in 0..2 {
        world.restart().await;
        world.gateway().idle().await;
    }
    assert_eq!((tries(&world, "a"), tries(&world, "b")), (1, 1));
    let prompt = world.sub("b").prompts().pop().unwrap();
    assert_eq!(prompt.matches("the whole thing").count(), 1, "{prompt}");
    let record = world.surface.record();
    let last = shown(&record, record.turns().pop());
    assert_eq!(last.answer.as_deref(), Some("All of it."));
    assert!(last.status[0].ends_with("Continued on b m."), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_own_message_ends_the_wait() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0)]).await;
    world.sub("a").play(vec![refused(&world)]);
    world.say("first").await;
    knows(&world, &[("a", 20.0)]).await;
    world.sub("a").play(says("Both."));
    let turn = world.say("never mind, this").await;
    assert_eq!(turn.answer.as_deref(), Some("Both."));
    world.pass(HOUR * 4);
    resume::sweep(world.gateway().sessions(), world.gateway().effects()).await;
    world.gateway().idle().await;
    assert_eq!(tries(&world, "a"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_never_spent_without_an_opt_in() {
    let builder = World::builder().routed(RoutingSettings::default());
    let mut world = builder.plan("a").metered("paid").build().await;
    knows(&world, &[("a", 50.0)]).await;
    world.sub("a").play(vec![refused(&world)]);
    let turn = world.say("hello").await;
    assert!(
        turn.status[0].contains("paid costs money and is not opted in"),
        "{turn:?}"
    );
    assert_eq!(tries(&world, "paid"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_as_if_routing_were_off() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0)]).await;
    world.command("pause").await;
    world.sub("a").play(vec![refused(&world)]);
    world.sub("b").play(says("walked"));
    let turn = world.say("hello").await;
    assert_eq!(turn.answer.as_deref(), Some("walked"));
    assert_eq!(
        turn.status,
        ["⚠️ Rate limited — switching to fallback provider... Answered by b/m."]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_failure_than_quota_is_the_walks_and_the_next_turn_starts_at_home() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0), ("b", 20.0)]).await;
    let auth = Failure::new(FailureKind::Overloaded, FailureScope::AccountModel, "529");
    for _ in 0..6 {
        world.sub("a").play(vec![Act::Fail(auth.clone())]);
    }
    world.sub("b").play(says("walked"));
    let clock = world.clock.clone();
    let passing = tokio::spawn(async move {
        for wait in 1.. {
            clock.waits_reach(wait).await;
            clock.advance(SignedDuration::from_secs(60));
        }
    });
    let turn = world.say("hello").await;
    passing.abort();
    assert_eq!(turn.answer.as_deref(), Some("walked"), "{turn:?}");
    let status = world.command("status").await;
    assert!(status.contains("0 of 3"), "{status}");
}

#[test]
fn the_demo_tells_it_in_half_a_minute_and_counts() {
    let ran = std::process::Command::new(support::baton())
        .args(["demo", "--scene", "routing", "--fast", "--json"])
        .output()
        .unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{out}");
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(
        last,
        json!({
            "requests_total": 5,
            "requests_claude": 1,
            "requests_codex": 4,
            "switches": 2,
            "drained": 1,
            "undone": 1,
            "waited": 1,
            "resumed": 1,
            "note_carried": 1,
            "status_lines": 1,
            "answers": 4,
        }),
        "{out}"
    );
}

// Row G10: 60 + 5(n-1) + 6.25 fits 95 for n = 6 and not for n = 7.
#[tokio::test(flavor = "multi_thread")]
async fn g10_of_a_hundred_threads_six_switch_and_the_others_wait() {
    let mut world = world().await;
    knows(&world, &[("a", 50.0), ("b", 60.0)]).await;
    burns(&world, "b", 5.0).await;
    let refuses = refused(&world);
    world.sub("a").otherwise(move |_| vec![refuses.clone()]);
    world.sub("b").otherwise(|_| says("took it"));
    let mut lanes = Vec::new();
    for thread in 0..100 {
        let mut inbound = world.inbound(Content::Text("go".into()), Origin::Human);
        inbound.session = SessionKey::new(format!("agent:main:recording:{thread}"));
        lanes.push(Lane {
            profile: inbound.profile.clone(),
            session: inbound.session.clone(),
        });
        world.gateway().receive(inbound).await;
    }
    world.gateway().idle().await;
    let (mut switched, mut waited) = (0, 0);
    for lane in &lanes {
        let session = world.store.session(lane, world.now()).await.unwrap();
        let kinds = kinds(&world, session.conversation.as_str()).await;
        let count = |kind| kinds.iter().filter(|one| **one == kind).count();
        assert_eq!(
            count(AuditKind::Switched) + count(AuditKind::Waited),
            1,
            "{kinds:?}"
        );
        switched += count(AuditKind::Switched);
        waited += count(AuditKind::Waited);
    }
    assert_eq!((switched, waited), (6, 94));
    assert_eq!((tries(&world, "a"), tries(&world, "b")), (100, 6));
}
