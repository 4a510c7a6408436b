//! Found by reading with bad intent: each of these was wrong once.

use gateway_core::event::CallOutcome;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{InboundId, TurnId};
use gateway_core::journal::TurnRow;
use gateway_core::message::{Origin, ReplyTarget};
use gateway_host::store::Lane;
use jiff::SignedDuration;
use providers::scripted::Act;
use serde_json::json;
use support::{World, says};

fn refused(detail: &str) -> Act {
    Act::Fail(Failure::new(
        FailureKind::RateLimit,
        FailureScope::Account,
        detail,
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_of_the_subscription_just_refused_is_not_asked() {
    let mut world = World::builder()
        .plan("a")
        .plan("b")
        .chain(&["a/opus", "a/sonnet", "b/m"])
        .build()
        .await;
    let reset = Some(world.now() + SignedDuration::from_hours(48));
    let weekly = Failure::new(FailureKind::RateLimit, FailureScope::Account, "refused");
    world.sub("a").play(vec![Act::Fail(
        weekly.retry_at(reset).window(Some("seven_day".into())),
    )]);
    world.sub("b").play(says("b"));
    let shown = world.say("hello").await;
    assert_eq!(shown.answer.as_deref(), Some("b"));
    assert_eq!(world.sub("a").attempts().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_need_the_words_before_them_are_redacted_from_a_stream_too() {
    let mut world = World::builder().plan("a").build().await;
    let words = [
        "Use ",
        "Authorization: ",
        "Bearer ",
        "q7w8e9r0t1y2u3i4o5 ",
        "or ",
        "password ",
        "= ",
        "\"hunter2hunter2\" ",
        "or\n",
        "-----BEGIN ",
        "PRIVATE ",
        "KEY-----\n",
        "MIIEvQIBADANBgkqhkiG9w0BAQEF\n",
        "-----END ",
        "PRIVATE ",
        "KEY-----\n",
        "done ",
    ];
    let mut script: Vec<Act> = words.into_iter().map(Act::text).collect();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    script.push(refused(&format!("token {token} refused")));
    world.sub("a").play(script);
    let shown = world.say("x").await;
    let stored = world.store.handoffs().await.unwrap();
    let journal = world.store.journal(&stored[0].handoff.turn).await.unwrap();
    let journal = serde_json::to_string(&journal).unwrap();
    for secret in [
        "q7w8e9r0t1y2u3i4o5",
        "hunter2hunter2",
        "MIIEvQIBADAN",
        token.as_str(),
    ] {
        assert!(!journal.contains(secret), "{secret} in {journal}");
        assert!(
            !shown.notices.iter().any(|notice| notice.contains(secret)),
            "{secret} in {shown:?}"
        );
    }
    assert!(journal.contains("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plain_file_never_shows_what_is_over() {
    let mut world = World::builder().plan("a").build().await;
    world
        .sub("a")
        .play(vec![Act::text("Working"), Act::WaitForStop]);
    world.send("stopped one").await;
    world.sub("a").prompts_reach(1).await;
    world.command("stop").await;
    world.gateway().idle().await;
    world.pass(SignedDuration::from_secs(5));
    world.sub("a").play(vec![Act::text("Half."), refused("r")]);
    world.say("cut one").await;
    world.pass(SignedDuration::from_secs(5));
    world.sub("a").play(says("done"));
    world.say("go on").await;
    let folder = world.home.path().join("state/turn-handoff");
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    for file in files.filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
        assert!(!std::fs::read_to_string(file).unwrap().contains("cut one"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_metered_route_that_left_the_chain_spends_nothing() {
    let mut world = World::builder()
        .plan("a")
        .metered("m")
        .chain(&["a/m", "m/k"])
        .build()
        .await;
    world.command("model m/k").await;
    world
        .settings
        .profiles
        .values_mut()
        .next()
        .unwrap()
        .chain
        .pop();
    world.restart().await;
    world.sub("a").play(says("a"));
    assert_eq!(world.say("hello").await.answer.as_deref(), Some("a"));
    assert!(world.sub("m").attempts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_between_two_attempts_is_a_stop() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    world.sub("a").play(vec![
        Act::IgnoreStop(std::time::Duration::from_secs(20)),
        Act::Wait(go_on.clone()),
        refused("r"),
    ]);
    world.sub("b").play(says("answered after the stop"));
    world.send("hello").await;
    world.sub("a").prompts_reach(1).await;
    world.command("stop").await;
    go_on.notify_one();
    world.gateway().idle().await;
    let record = world.surface.record();
    let turn = record.turns()[0].clone();
    assert!(record.status_lines(&turn).is_empty() && record.answer(&turn).is_none());
    assert_eq!(record.notices(&turn), ["⏹️ Stopped."]);
    assert!(world.sub("b").attempts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_tool_calls_alone_still_has_a_visible_outcome() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![
        Act::call("c1", "touch", &json!({ "p": "x" })),
        Act::result("c1", CallOutcome::Completed, "ok"),
        Act::Answer,
    ]);
    assert_eq!(
        world.say("do").await.answer.as_deref(),
        Some("(Done; no text came with it.)")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_ours_whose_end_could_not_be_written_is_sealed_by_the_next_one() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::text("Half."), refused("r")]);
    world.say("first").await;
    let stored = world.store.handoffs().await.unwrap();
    let claim = (stored[0].handoff.id.clone(), stored[0].revision);
    let lane = Lane {
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
    };
    let session = world.store.session(&lane, world.now()).await.unwrap();
    let row = TurnRow {
        turn: TurnId::new(uuid::Uuid::now_v7().to_string()),
        profile: lane.profile,
        session: lane.session,
        conversation: session.conversation,
        inbound: InboundId::new("x"),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: support::SURFACE.into(),
            address: "chat".into(),
        },
        request: "second".into(),
        started_at: world.now(),
        owner: world.gateway().effects().instance.clone(),
        carries: vec![claim.0.clone()],
    };
    assert!(world.store.open_turn(&row, &[claim]).await.unwrap());
    world.sub("a").play(says("ok"));
    world.say("go on").await;
    let prompt = world.sub("a").prompts().pop().unwrap();
    assert!(
        prompt.contains("first") && prompt.contains("second"),
        "{prompt}"
    );
    assert_eq!(
        world.command("resume-handoff").await,
        "No saved handoff for this chat."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_living_gateway_is_using_is_not_resumed_beside_it() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("one"));
    world.say("first").await;
    let other = gateway_host::instance::Instance::start(&world.settings.root).unwrap();
    let lane = Lane {
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
    };
    let session = world.store.session(&lane, world.now()).await.unwrap();
    let row = TurnRow {
        turn: TurnId::new(uuid::Uuid::now_v7().to_string()),
        profile: lane.profile,
        session: lane.session,
        conversation: session.conversation,
        inbound: InboundId::new("x"),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: support::SURFACE.into(),
            address: "chat".into(),
        },
        request: "over there".into(),
        started_at: world.now(),
        owner: other.id().into(),
        carries: Vec::new(),
    };
    assert!(world.store.open_turn(&row, &[]).await.unwrap());
    world.sub("a").play(says("two"));
    world.say("second").await;
    let sessions: Vec<_> = world
        .sub("a")
        .attempts()
        .iter()
        .map(|attempt| attempt.session.clone())
        .collect();
    assert_eq!(
        sessions,
        [None, None],
        "the second opens a session of its own"
    );
}
