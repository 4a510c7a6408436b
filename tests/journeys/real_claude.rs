//! The real Claude Code through the whole gateway, its model API on loopback: a turn cut by the plan's limit in the middle
//! of a tool call is sealed, and the next turn, on another subscription, carries it once.
//!
//! What the provider does by itself is tested in `providers/tests/real_claude.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::SubscriptionId;
use gateway_host::clock::{Clock, MovedClock};
use jiff::SignedDuration;
use providers::Permissions;
use providers::claude::{Claude, ClaudeSettings};
use providers::loopback::{Loopback, Step, Wire};
use providers::scripted::Act;
use serde_json::json;
use support::World;

const CARRIES: &str = "[RESUMED TURN — the previous turn was cut by";

/// A gateway whose first route is the real program and whose second is a script; `None` = skipped.
async fn world() -> Option<(World, Loopback)> {
    let binary = crate::real::claude()?;
    let api = Loopback::start(Wire::Anthropic).await.expect("a port");
    let url = api.base_url();
    let world = World::builder()
        .served_by("claude", move |root, clock| {
            support::write(&root.join("work/jobs.txt"), b"job-a\njob-b\n");
            Arc::new(claude(binary, root, url, clock))
        })
        .plan("spare")
        .chain(&["claude/sonnet", "spare/m"])
        .workdir("work")
        .permissions(Permissions::ReadOnly)
        .limits(Duration::from_secs(100), Duration::from_secs(60))
        .build()
        .await;
    Some((world, api))
}

/// The real program with a login of its own below `root`.
pub(crate) fn claude(binary: PathBuf, root: &Path, api: String, clock: &MovedClock) -> Claude {
    let clock = clock.clone();
    Claude::new(ClaudeSettings {
        binary: Some(binary),
        home: Some(root.join("claude")),
        env: BTreeMap::from([
            ("HOME".to_owned(), root.join("home").display().to_string()),
            ("ANTHROPIC_BASE_URL".to_owned(), api),
            ("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned()),
        ]),
        subscription: SubscriptionId::new("claude"),
        hidden: vec![root.join("state")],
        now: Arc::new(move || clock.now()),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_the_middle_of_a_tool_call_is_carried_once_by_another_subscription() {
    let Some((mut world, api)) = world().await else {
        return;
    };
    let file = world.home.path().join("work/jobs.txt");
    api.script([
        Step::ToolUse {
            text: "Looking at the jobs.".into(),
            name: "Read".into(),
            input: json!({ "file_path": file }),
        },
        Step::UnifiedRejected {
            window: "five_hour".into(),
            resets_at: world.now() + SignedDuration::from_hours(2),
        },
    ]);
    world.sub("spare").play(vec![Act::Fail(Failure::new(
        FailureKind::RateLimit,
        FailureScope::Account,
        "refused",
    ))]);
    let cut = world.say("restart the jobs").await;
    let notice = cut.notices.last().expect("a cut turn says so");
    assert!(
        notice.contains("Turn cut") && notice.contains("1 tool call"),
        "{notice}"
    );
    assert_eq!(cut.times_done, 1);

    let asked = api.count();
    world
        .sub("spare")
        .play(vec![Act::text("Done."), Act::Answer]);
    assert_eq!(world.say("go on").await.answer.as_deref(), Some("Done."));
    world
        .sub("spare")
        .play(vec![Act::text("Bye."), Act::Answer]);
    assert_eq!(world.say("thanks").await.answer.as_deref(), Some("Bye."));
    assert_eq!(
        api.count(),
        asked,
        "the spent plan is not asked again before its reset"
    );

    let prompts = world.sub("spare").prompts();
    let carried: Vec<bool> = prompts
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(|prompt| prompt.contains(CARRIES))
        .collect();
    assert_eq!(carried, [true, false]);
    let carrying = prompts
        .iter()
        .find(|prompt| prompt.contains(CARRIES))
        .expect("one carries it");
    assert!(
        carrying.contains("job-b") && carrying.contains("restart the jobs"),
        "{carrying}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_real_program_arrives_and_the_next_turn_resumes_its_session() {
    let Some((mut world, api)) = world().await else {
        return;
    };
    api.script([Step::answer("Hello there."), Step::answer("Hello again.")]);
    assert_eq!(
        world.say("hi").await.answer.as_deref(),
        Some("Hello there.")
    );
    assert_eq!(
        world.say("and now?").await.answer.as_deref(),
        Some("Hello again.")
    );
    let requests = api.requests();
    let last = requests
        .iter()
        .rfind(|request| request.method == "POST")
        .expect("two turns were asked");
    assert_eq!(
        last.text.matches("Hello there.").count(),
        1,
        "the session has the first turn once"
    );
    world.stop().await;
}
