//! Which parts of a payload fit, and in what words. Priorities: unfinished calls, newest progress, todos, then finished
//! calls and their results, newest first. What is left out is counted, never silently gone.

use super::{CallOutcome, CallRecord, Handoff, Todo, cut};

/// Bytes kept free for headings, blank lines and the two lines that count what was left out.
const HEADINGS: usize = 512;

/// Unfinished calls are shown with as many characters of their arguments as lets all of them fit.
const ARGUMENTS: [usize; 3] = [500, 100, 0];

/// The sections between request and tail, empty ones left out; together with their separators at most `bytes` long.
pub(super) fn sections(handoff: &Handoff, bytes: usize) -> Vec<String> {
    let mut left = bytes.saturating_sub(HEADINGS);
    let mut lines: Vec<Option<String>> = vec![None; handoff.calls.len()];
    unfinished(&handoff.calls, &mut lines, &mut left);
    let progress = progress(&handoff.progress, &mut left);
    let todos = todos(&handoff.open_todos, &mut left);
    finished(&handoff.calls, &mut lines, &mut left);
    [
        section("Work already reported:", progress.into_iter().collect()),
        section("Tool calls issued this turn:", calls(lines)),
        section("Still open:", todos),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn section(heading: &str, lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{heading}\n{}", lines.join("\n")))
}

fn unfinished(calls: &[CallRecord], lines: &mut [Option<String>], left: &mut usize) {
    let open = |call: &CallRecord| call.outcome == CallOutcome::Unknown;
    let fits = |arguments: &usize| {
        let all: usize = calls
            .iter()
            .filter(|call| open(call))
            .map(|call| full(call, *arguments).len() + 1)
            .sum();
        all <= *left
    };
    let arguments = ARGUMENTS.into_iter().find(fits).unwrap_or(0);
    for (call, line) in calls.iter().zip(lines).rev().filter(|(call, _)| open(call)) {
        *line = take(full(call, arguments), left);
    }
}

fn progress(text: &str, left: &mut usize) -> Option<String> {
    let kept = cut::tail_within(&plain(text), left.saturating_sub(1));
    if kept.is_empty() {
        None
    } else {
        take(kept, left)
    }
}

fn todos(todos: &[Todo], left: &mut usize) -> Vec<String> {
    let mut lines: Vec<String> = todos
        .iter()
        .map_while(|todo| take(todo_line(todo), left))
        .collect();
    if lines.len() < todos.len() {
        lines.push(format!("- … {} more left out", todos.len() - lines.len()));
    }
    lines
}

/// A finished call without its result still says what must not be done again.
fn finished(calls: &[CallRecord], lines: &mut [Option<String>], left: &mut usize) {
    let done = |call: &CallRecord| call.outcome != CallOutcome::Unknown;
    for (call, line) in calls.iter().zip(lines).rev().filter(|(call, _)| done(call)) {
        *line = take(full(call, super::assemble::PREVIEW), left)
            .or_else(|| take(issued(call, super::assemble::PREVIEW), left));
    }
}

/// Calls in issue order, with a line that counts those that did not fit.
fn calls(lines: Vec<Option<String>>) -> Vec<String> {
    let left_out = lines.iter().filter(|line| line.is_none()).count();
    let counted = (left_out > 0).then(|| format!("- … {left_out} more left out"));
    counted
        .into_iter()
        .chain(lines.into_iter().flatten())
        .collect()
}

fn full(call: &CallRecord, arguments: usize) -> String {
    let issued = issued(call, arguments);
    match &call.result {
        Some(result) => format!("{issued}\n  result: {}", nested(result)),
        None => issued,
    }
}

fn issued(call: &CallRecord, arguments: usize) -> String {
    // What was cut once keeps its marker: the count in it is the true one.
    let shown = match arguments {
        super::assemble::PREVIEW => call.arguments.clone(),
        0 => "…".to_owned(),
        shorter => cut::head(&call.arguments, shorter),
    };
    format!(
        "- {}({}) [{}]",
        plain(&call.name),
        nested(&shown),
        outcome_word(call.outcome)
    )
}

fn todo_line(todo: &Todo) -> String {
    format!("- [{}] {}", todo.status.word(), nested(&todo.content))
}

fn outcome_word(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Completed => "completed",
        CallOutcome::Failed => "failed",
        CallOutcome::Denied => "denied",
        CallOutcome::Cancelled => "cancelled",
        CallOutcome::Unknown => "NEVER COMPLETED",
    }
}

/// Further lines stand deeper than the list, so that no tool result can pass for a line of ours.
fn nested(text: &str) -> String {
    plain(text).replace('\n', "\n    ")
}

/// The placeholder's own character cannot come from anywhere but us.
fn plain(text: &str) -> String {
    text.replace('\u{1}', "\u{fffd}")
}

/// Takes `text` and the line end after it from what is left, if it fits.
fn take(text: String, left: &mut usize) -> Option<String> {
    *left = left.checked_sub(text.len() + 1)?;
    Some(text)
}
