//! Earlier conversations are picked up with everything they had, and saved handoffs are seen and dropped by those they
//! belong to.

use std::sync::Arc;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::message::{Content, Origin, Standing};
use providers::scripted::Act;
use support::{World, says};
use tokio::sync::Notify;

fn cut() -> Vec<Act> {
    let refused = Failure::new(FailureKind::RateLimit, FailureScope::Account, "refused");
    vec![Act::text("Half."), Act::Fail(refused)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_picked_up_goes_on_in_its_own_session() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("one"));
    world.say("first of the old one").await;
    world.command("new").await;
    world.sub("a").play(says("two"));
    world.say("first of the new one").await;
    world.restart().await;

    let list = world.command("resume").await;
    assert!(
        list.contains("1. “first of the old one”: 1 exchange"),
        "{list}"
    );
    assert!(
        !list.contains("new one"),
        "the current one is not listed: {list}"
    );
    let said = world.command("resume 1").await;
    assert!(
        said.starts_with("Back in conversation 1, “first of the old one”"),
        "{said}"
    );
    world.sub("a").play(says("three"));
    world.say("second of the old one").await;

    let seen = world.sub("a").attempts();
    let asked: Vec<_> = seen.iter().map(|one| one.prompt.as_str()).collect();
    assert_eq!(asked.len(), 3);
    assert_eq!(seen[0].conversation, seen[2].conversation);
    assert_ne!(seen[0].conversation, seen[1].conversation);
    assert_eq!(seen[0].session, None);
    assert!(
        seen[2].session.is_some(),
        "it resumes the session of the first turn"
    );
    let history: Vec<&str> = seen[2]
        .history
        .iter()
        .map(|one| one.request.as_str())
        .collect();
    assert_eq!(history, ["first of the old one"]);
    // And the other way round.
    let list = world.command("resume").await;
    assert!(list.contains("2. “first of the new one”"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_stays_with_its_own_conversation() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("one"));
    world.say("hello").await;
    world.command("new").await;
    world.sub("a").play(cut());
    world.say("count the files").await;
    assert!(
        world
            .command("resume-handoff")
            .await
            .contains("count the files")
    );

    let said = world.command("resume 1").await;
    assert!(said.contains("keeps its saved handoff"), "{said}");
    assert_eq!(
        world.command("resume-handoff").await,
        "No saved handoff for this chat."
    );
    world.sub("a").play(says("fine"));
    world.say("how are you").await;
    // Not even a new conversation here reaches it.
    assert_eq!(world.command("new").await, "New conversation.");

    let list = world.command("resume").await;
    assert!(list.contains("a saved handoff waits"), "{list}");
    let said = world.command("resume 2").await;
    assert!(said.contains("the next message carries it"), "{said}");
    assert!(
        world
            .command("resume_handoff")
            .await
            .contains("count the files")
    );
    world.sub("a").play(says("12 files"));
    world.say("go on").await;
    let carried: Vec<bool> = world
        .sub("a")
        .prompts()
        .iter()
        .map(|prompt| prompt.contains("[RESUMED TURN"))
        .collect();
    assert_eq!(carried, [false, false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_picked_up_under_a_running_turn() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("one"));
    world.say("hello").await;
    world.command("new").await;
    let go_on = Arc::new(Notify::new());
    world.sub("a").play(vec![
        Act::text("two"),
        Act::Wait(go_on.clone()),
        Act::Answer,
    ]);
    world.send("take your time").await;
    world.sub("a").prompts_reach(2).await;
    let said = world.command("resume 1").await;
    assert_eq!(
        said,
        "A turn is running here. /stop it first, then /resume."
    );
    go_on.notify_one();
    world.gateway().idle().await;
    let said = world.command("resume 1").await;
    assert!(said.starts_with("Back in conversation 1"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_the_first_words_is_not_shown() {
    let mut world = World::builder().plan("a").build().await;
    world.sub("a").play(says("ok"));
    world
        .say("use sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA please")
        .await;
    world.command("new").await;
    let list = world.command("resume").await;
    assert!(
        list.contains("1. “use ") && !list.contains("AAAAAAAA"),
        "{list}"
    );
}

/// A command of somebody else on the same lane or another one.
async fn command_of(world: &mut World, who: &str, lane: &str, line: &str) -> String {
    let (name, args) = line.split_once(' ').unwrap_or((line, ""));
    let content = Content::Command {
        name: name.into(),
        args: args.into(),
    };
    let mut inbound = world.inbound(content, Origin::Human);
    inbound.sender.id = who.into();
    inbound.sender.standing = if who == "olga" {
        Standing::Operator
    } else {
        Standing::Member
    };
    inbound.session = lane.into();
    let before = world.surface.record().replies().len();
    world.gateway().receive(inbound).await;
    let record = world.surface.record();
    let replies = record.replies();
    assert_eq!(replies.len(), before + 1, "{line}");
    replies.last().expect("an answer").0.to_owned()
}

async fn cut_of(world: &mut World, who: &str, lane: &str, text: &str) {
    world.sub("a").play(cut());
    let mut inbound = world.inbound(Content::Text(text.into()), Origin::Human);
    inbound.sender.id = who.into();
    inbound.sender.standing = Standing::Member;
    inbound.session = lane.into();
    world.gateway().receive(inbound).await;
    world.gateway().idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_and_drop_their_own_handoffs_and_operators_everyones() {
    let mut world = World::builder().plan("a").build().await;
    cut_of(&mut world, "ann", "lane-of-ann", "the words of ann").await;
    cut_of(&mut world, "bob", "lane-of-bob", "the words of bob").await;
    world.restart().await;

    // From wherever she asks, Ann sees hers and not Bob's.
    let anns = command_of(&mut world, "ann", "elsewhere", "handoffs").await;
    assert!(
        anns.contains("the words of ann") && !anns.contains("bob"),
        "{anns}"
    );
    let all = command_of(&mut world, "olga", "elsewhere", "handoffs").await;
    assert_eq!(all.lines().count(), 2, "{all}");
    let carl = command_of(&mut world, "carl", "lane-of-bob", "handoffs").await;
    assert_eq!(carl, "No saved handoffs of yours.");

    let key = |list: &str, whose: &str| -> String {
        let line = list
            .lines()
            .find(|line| line.contains(whose))
            .expect("it is listed");
        line.split(':').next().expect("a key").to_owned()
    };
    let bobs = key(&all, "bob");
    for who in ["ann", "carl"] {
        let line = format!("handoffs discard {bobs}");
        let refused = command_of(&mut world, who, "lane-of-bob", &line).await;
        assert!(refused.contains("no saved handoff"), "{who}: {refused}");
    }
    let said = command_of(
        &mut world,
        "ann",
        "elsewhere",
        &format!("handoffs discard {}", key(&anns, "ann")),
    )
    .await;
    assert!(said.starts_with("Dropped: the handoff of"), "{said}");
    let line = format!("handoffs discard {bobs}");
    let dropped = command_of(&mut world, "olga", "elsewhere", &line).await;
    assert!(dropped.starts_with("Dropped"), "{dropped}");
    let none = command_of(&mut world, "olga", "elsewhere", "handoffs").await;
    assert_eq!(none, "No saved handoffs in this profile.");
    // What was dropped is not carried.
    world.sub("a").play(says("hello"));
    let mut inbound = world.inbound(Content::Text("go on".into()), Origin::Human);
    inbound.session = "lane-of-bob".into();
    world.gateway().receive(inbound).await;
    world.gateway().idle().await;
    let prompts = world.sub("a").prompts();
    assert_eq!(prompts.last().map(String::as_str), Some("go on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_shown_to_operators_only() {
    let mut world = World::builder().plan("a").build().await;
    let shown = command_of(&mut world, "olga", "lane", "plugins").await;
    assert!(
        shown.contains("quota ") && shown.contains(": active"),
        "{shown}"
    );
    let refused = command_of(&mut world, "ann", "lane", "plugins").await;
    assert_eq!(refused, "/plugins is for operators only.");
}
