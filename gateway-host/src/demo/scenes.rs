//! The scenes: what the person says and what happens upstream meanwhile.

use gateway_core::event::{CallOutcome, Todo, TodoStatus};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use jiff::SignedDuration;
use providers::loopback::Step;
use providers::scripted::Act;
use serde_json::json;

use super::stage::Stage;
use super::world::{AGENT, SPENT, World};

/// When the first subscription is back.
const BACK_AFTER: SignedDuration = SignedDuration::from_hours(3);

/// Plays scenes 1 to 4.
pub(super) async fn play(world: &World, stage: &Stage) -> anyhow::Result<()> {
    skipped_on_proof(world, stage).await?;
    cut_in_a_tool_call(world, stage).await?;
    previewed(world, stage).await;
    picked_up(world, stage).await
}

async fn skipped_on_proof(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(
            1,
            "21 subscriptions, 17 of them known to be spent, and the first one hits its limit",
        )
        .await;
    world.upstream(1)?.enqueue(Step::UnifiedRejected {
        window: "five_hour".into(),
        resets_at: world.now() + BACK_AFTER,
    });
    world.upstream(19)?.enqueue(Step::answer(
        "It does: the loader reads the file once at start and never again. A reload needs a watcher on the folder, because an atomic save replaces the file.",
    ));
    world
        .say(
            stage,
            "Does our config loader notice when the file changes?",
        )
        .await;
    Ok(())
}

async fn cut_in_a_tool_call(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(2, "everything is spent, in the middle of a tool call")
        .await;
    stage
        .aside(
            "another gateway of the same root publishes that sub-19 and sub-21 are spent as well",
        )
        .await;
    world.publish(&SPENT.chain([19, 21]).collect::<Vec<_>>())?;
    let server = world.upstream(AGENT)?;
    server.enqueue(Step::answer(
        "I will add the watcher. First the loader as it is, then the tests.",
    ));
    let todo = |id: &str, content: &str, status| Todo {
        id: id.into(),
        content: content.into(),
        status,
    };
    world.agent.play([
        Act::Fetch {
            base_url: server.base_url(),
            client: world.http.clone(),
        },
        Act::Todos(vec![
            todo("1", "read the loader", TodoStatus::Completed),
            todo("2", "add a watcher on the folder", TodoStatus::InProgress),
            todo("3", "a test with an atomic save", TodoStatus::Pending),
        ]),
        Act::call("call-1", "read_file", &json!({ "path": "src/config.rs" })),
        Act::result(
            "call-1",
            CallOutcome::Completed,
            "pub fn load(path: &Path) -> Result<Config> { … }",
        ),
        Act::call(
            "call-2",
            "terminal",
            &json!({ "command": "cargo add notify && cargo test config" }),
        ),
        Act::Fail(
            Failure::new(
                FailureKind::RateLimit,
                FailureScope::Account,
                "You've hit your weekly limit",
            )
            .retry_at(Some(world.now() + SignedDuration::from_hours(50)))
            .window(Some("seven_day".into())),
        ),
    ]);
    world.say(stage, "Then add one, with a test.").await;
    Ok(())
}

async fn previewed(world: &World, stage: &Stage) {
    stage
        .scene(3, "what was saved: a preview, and it stays")
        .await;
    world.say(stage, "/resume-handoff").await;
    world.say(stage, "/resume-handoff").await;
}

async fn picked_up(world: &World, stage: &Stage) -> anyhow::Result<()> {
    stage
        .scene(
            4,
            "three hours later sub-01 is back, and the work goes on where it was cut",
        )
        .await;
    world.pass(BACK_AFTER + SignedDuration::from_mins(5));
    let server = world.upstream(1)?;
    server.enqueue(Step::answer(
        "Picking up at the cut: `cargo add notify` never reported back, so I looked before repeating it. It is in Cargo.toml; the tests had not run. They pass now, and the watcher is in.",
    ));
    server.enqueue(Step::answer("You are welcome."));
    world.say(stage, "Go on.").await;
    world.say(stage, "Thanks!").await;
    Ok(())
}
