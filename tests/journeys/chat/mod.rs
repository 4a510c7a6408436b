//! Discord, Slack and the console, each with the real gateway behind it: one suite for all of them, whole scenes, the
//! program from its start to SIGTERM, and many conversations at once.

mod conformance;
mod load;
mod process;
mod rows;
mod scenes;

use gateway_core::event::{CallOutcome, Todo, TodoStatus};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use jiff::Timestamp;
use providers::scripted::Act;
use serde_json::json;
use support::chat::{ChatUnderTest, Shown, Spot};

/// Stands in every request that carries a handoff.
const CARRIES: &str = "[RESUMED TURN";

/// The account's window is used up.
fn spent(until: Option<Timestamp>) -> Act {
    let failure = Failure::new(FailureKind::RateLimit, FailureScope::Account, "refused");
    Act::Fail(failure.retry_at(until).window(Some("five_hour".into())))
}

/// A turn that is cut in the middle of its second tool call.
fn cut_in_a_call(until: Option<Timestamp>) -> Vec<Act> {
    let todo = |id: &str, content: &str, status| Todo {
        id: id.into(),
        content: content.into(),
        status,
    };
    vec![
        Act::text("Looking at the jobs."),
        Act::Todos(vec![
            todo("1", "list the jobs", TodoStatus::Completed),
            todo("2", "restart job-b", TodoStatus::InProgress),
        ]),
        Act::call("c1", "terminal", &json!({ "command": "jobs" })),
        Act::result("c1", CallOutcome::Completed, "job-a\njob-b"),
        Act::call("c2", "terminal", &json!({ "command": "restart job-b" })),
        spent(until),
    ]
}

/// What the bot has said to everybody there.
fn texts<C: ChatUnderTest>(chat: &C, spot: Spot) -> Vec<String> {
    chat.public(spot)
        .into_iter()
        .map(|one: Shown| one.text)
        .collect()
}

/// How often `what` stands in what the bot has said to everybody there.
fn count<C: ChatUnderTest>(chat: &C, spot: Spot, what: &str) -> usize {
    texts(chat, spot)
        .iter()
        .map(|text| text.matches(what).count())
        .sum()
}
