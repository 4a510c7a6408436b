//! Trouble with the disk: said clearly, nothing overwritten, nothing sent that could not be kept.

use std::process::{Output, Stdio};

use gateway_core::message::ReplyOp;
use gateway_host::store::fault::{Method, WRITES};
use providers::scripted::Act;
use serde_json::json;
use support::gateway::Rig;
use support::{World, says};

/// Runs `baton chat` without any input.
fn chat(rig: &Rig) -> Output {
    rig.command()
        .stdin(Stdio::null())
        .output()
        .expect("baton runs; is it built?")
}

/// Whether any notice holds this.
fn is_said(world: &World, words: &str) -> bool {
    let record = world.surface.record();
    let said = |op: &ReplyOp| match op {
        ReplyOp::Reply { text, .. } | ReplyOp::Notice { text } => text.contains(words),
        _ => false,
    };
    record.delivered.iter().any(|one| said(&one.op))
}

#[test]
fn a_damaged_store_is_named_with_a_way_out_and_left_as_it_is() {
    let rig = Rig::new(&json!([]));
    let damaged = b"this was a database once ".repeat(400);
    std::fs::create_dir(rig.root().join("state")).expect("a folder");
    support::write(&rig.store_file(), &damaged);
    let output = chat(&rig);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let file = rig.store_file().display().to_string();
    assert!(
        said.contains(&format!("cannot open the store {file}"))
            && said.contains(&format!("mv {file}")),
        "{said}"
    );
    assert_eq!(
        std::fs::read(rig.store_file()).expect("still there"),
        damaged
    );
    assert!(rig.evidence().is_empty());
}

#[test]
fn a_state_folder_that_is_none_is_named_with_a_hint() {
    let rig = Rig::new(&json!([]));
    let state = rig.root().join("state");
    support::write(&state, b"not a folder");
    let output = chat(&rig);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&state.display().to_string()) && said.contains("state folder"),
        "{said}"
    );
    assert_eq!(std::fs::read(&state).expect("still there"), b"not a folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_nothing_is_sent_and_the_gateway_serves_on() {
    let mut world = World::builder().plan("a").build().await;
    world.faults.fail(WRITES);
    world.sub("a").play(says("too early"));
    world.say("hello").await;
    assert!(is_said(&world, "the disk is full"), "the person is told");
    assert!(world.sub("a").prompts().is_empty(), "nothing was sent");
    world.faults.heal();
    assert_eq!(
        world.say("again").await.answer.as_deref(),
        Some("too early")
    );
    assert_eq!(world.sub("a").prompts(), ["again"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_in_the_middle_stops_the_attempt_and_is_said() {
    let mut world = World::builder().plan("a").build().await;
    world.faults.fail(&[Method::Append]);
    world.sub("a").play(vec![
        Act::text("Half. "),
        Act::call("c1", "terminal", &json!({})),
        Act::WaitForStop,
    ]);
    world.say("hello").await;
    assert!(is_said(&world, "the disk is full"), "the person is told");
    world.faults.heal();
    world.sub("a").play(says("here"));
    assert_eq!(world.say("again").await.answer.as_deref(), Some("here"));
}
