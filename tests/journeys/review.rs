use gateway_core::failure::{Failure, FailureKind, FailureScope};
use jiff::SignedDuration;
use providers::scripted::Act;
use support::World;

fn says(text: &str) -> Vec<Act> {
    vec![Act::text(text), Act::Answer]
}

#[tokio::test(flavor = "multi_thread")]
async fn same_sub_second_model() {
    let mut world = World::builder()
        .plan("a").plan("b")
        .chain(&["a/opus", "a/sonnet", "b/m"])
        .build().await;
    let at = Some(world.now() + SignedDuration::from_hours(48));
    world.sub("a").play(vec![Act::Fail(
        Failure::new(FailureKind::RateLimit, FailureScope::Account, "refused").retry_at(at).window(Some("seven_day".into())))]);
    world.sub("a").play(says("asked the spent one again"));
    world.sub("b").play(says("b"));
    let shown = world.say("hello").await;
    eprintln!("REVIEW same_sub: {shown:?} attempts on a: {}", world.sub("a").attempts().len());
    assert_eq!(world.sub("a").attempts().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn journal_word_by_word() {
    let mut world = World::builder().plan("a").build().await;
    let mut acts = Vec::new();
    for word in ["Use ", "Authorization: ", "Bearer ", "q7w8e9r0t1y2u3i4o5 ", "or ", "password ", "= ", "\"hunter2hunter2\" ", "or\n", "-----BEGIN ", "PRIVATE ", "KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEF\n", "-----END ", "PRIVATE ", "KEY-----\n", "done "] {
        acts.push(Act::text(word));
    }
    acts.push(Act::Fail(Failure::new(FailureKind::RateLimit, FailureScope::Account, "token ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2 refused")));
    world.sub("a").play(acts);
    let shown = world.say("x").await;
    let stored = world.store.handoffs().await.unwrap();
    let journal = serde_json::to_string(&world.store.journal(&stored[0].handoff.turn).await.unwrap()).unwrap();
    eprintln!("REVIEW journal: {journal}");
    eprintln!("REVIEW handoff: {}", stored[0].handoff.progress);
    eprintln!("REVIEW notices: {:?}", shown.notices);
    for secret in ["q7w8e9r0t1y2u3i4o5", "hunter2hunter2", "MIIEvQIBADAN"] {
        eprintln!("REVIEW in journal {secret}: {}", journal.contains(secret));
    }
    assert!(!shown.notices.iter().any(|n| n.contains("ghp_a1B2")), "shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn mirror_after_stop_then_cut_then_answer() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::text("Working"), Act::WaitForStop]);
    world.send("stopped one").await;
    world.sub("a").prompts_reach(1).await;
    world.command("stop").await;
    world.gateway().idle().await;
    world.pass(SignedDuration::from_secs(5));
    world.sub("a").play(vec![Act::text("Half."), Act::Fail(Failure::new(FailureKind::RateLimit, FailureScope::Account, "r"))]);
    world.say("cut one").await;
    world.pass(SignedDuration::from_secs(5));
    world.sub("a").play(says("done"));
    world.say("go on").await;
    let folder = world.home.path().join("state/turn-handoff");
    let file = std::fs::read_dir(&folder).unwrap().filter_map(Result::ok).map(|e| e.path()).find(|p| p.extension().is_some_and(|e| e == "json")).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    eprintln!("REVIEW mirror: {text}");
    assert!(!text.contains("cut one"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_metered_choice_still_spends() {
    let mut world = World::builder().plan("a").metered("m").chain(&["a/m", "m/k"]).build().await;
    world.command("model m/k").await;
    let profile = world.settings.profiles.values_mut().next().unwrap();
    profile.chain.pop();
    world.restart().await;
    world.sub("a").play(says("a"));
    world.sub("m").play(says("paid"));
    let shown = world.say("hello").await;
    eprintln!("REVIEW metered: {shown:?} m={}", world.sub("m").attempts().len());
    assert_eq!(world.sub("m").attempts().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_between_attempts() {
    let mut world = World::builder().plan("a").plan("b").build().await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    world.sub("a").play(vec![Act::Wait(go_on.clone()), Act::Fail(Failure::new(FailureKind::RateLimit, FailureScope::Account, "r"))]);
    world.sub("b").play(says("answered after stop"));
    world.send("hello").await;
    world.sub("a").prompts_reach(1).await;
    go_on.notify_one();
    world.command("stop").await;
    world.gateway().idle().await;
    let record = world.surface.record();
    let t = record.turns()[0].clone();
    eprintln!("REVIEW stop: status {:?} answer {:?} notices {:?} b={}", record.status_lines(&t), record.answer(&t), record.notices(&t), world.sub("b").attempts().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_only_answer() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::call("c1", "touch", &serde_json::json!({"p": "x"})), Act::result("c1", gateway_core::event::CallOutcome::Completed, "ok"), Act::Answer]);
    let shown = world.say("do").await;
    eprintln!("REVIEW calls only: {shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn own_turn_left_open_by_a_store_fault() {
    use gateway_core::ids::{InboundId, TurnId};
    use gateway_core::journal::TurnRow;
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(vec![Act::text("Half."), Act::Fail(Failure::new(FailureKind::RateLimit, FailureScope::Account, "r"))]);
    world.say("first").await;
    let stored = world.store.handoffs().await.unwrap();
    let claim = (stored[0].handoff.id.clone(), stored[0].revision);
    let lane = gateway_host::store::Lane { profile: "default".into(), session: "agent:main:recording:chat".into() };
    let session = world.store.session(&lane, world.now()).await.unwrap();
    let row = TurnRow { turn: TurnId::new(uuid::Uuid::now_v7().to_string()), profile: lane.profile.clone(), session: lane.session.clone(), conversation: session.conversation, inbound: InboundId::new("x"), origin: gateway_core::message::Origin::Human,
        target: gateway_core::message::ReplyTarget { platform: support::SURFACE.into(), address: "chat".into() }, request: "second".into(), started_at: world.now(), owner: world.gateway().effects().instance.clone(), carries: vec![claim.0.clone()] };
    assert!(world.store.open_turn(&row, &[claim]).await.unwrap());
    eprintln!("REVIEW own: {}", world.command("resume-handoff").await);
    world.sub("a").play(says("ok"));
    world.say("go on").await;
    eprintln!("REVIEW own prompt: {:?}", world.sub("a").prompts().pop());
    eprintln!("REVIEW own after: {}", world.command("resume-handoff").await);
}
