//! Payload to injected context, preview, notice and lists.
//!
//! The injected context has one place for the verbatim request ([`REQUEST_PLACEHOLDER`]), because only the host may see and
//! send it whole; everything else fits into [`BUDGET`] bytes, whatever the payload holds.

mod budget;

use jiff::Timestamp;

use super::redact::Redactor;
use super::{CallRecord, Handoff, HandoffState, StoredHandoff, assemble, cut, name};
use crate::event::{CallOutcome, Todo};

/// Stands in an injected context where the host fills in the verbatim request.
pub const REQUEST_PLACEHOLDER: &str = "\u{1}request\u{1}";

/// Bytes of an injected context, the request not counted.
pub const BUDGET: usize = 24 * 1024;

/// Characters a preview shows of each request.
pub const REQUEST_PREVIEW: usize = 2_000;

/// `/resume-handoff` when there is nothing.
pub const NONE: &str = "No saved handoff for this chat.";
/// `/resume-handoff` while a turn carries the handoff.
pub const CLAIMED: &str = "The saved handoff is in use by the running turn.";
/// `/resume-handoff` where the profile has the plugin switched off; the caller knows.
pub const PLUGIN_OFF: &str = "Handoffs are switched off for this profile.";
/// Heads the preview of a turn the person stopped.
pub const STOPPED_HEAD: &str = "[STOPPED BY YOU: shown only, will not be injected.]";

const TAIL: &str = "Continue from here. Do not redo completed tool calls. A call marked NEVER COMPLETED may have run: \
                    look at its effect first, repeat it only if it left none.";

/// Characters of a reason in a sentence.
const REASON: usize = 300;

/// The injected context with [`REQUEST_PLACEHOLDER`] in place of the request; within the byte budget. A payload with
/// nothing in it renders to nothing.
pub fn context(handoff: &Handoff) -> String {
    context_within(handoff, BUDGET)
}

/// The same within so many bytes, the request not counted.
pub fn context_within(handoff: &Handoff, bytes: usize) -> String {
    if is_empty(handoff) {
        return String::new();
    }
    let reason = reason(handoff, "a provider failure");
    let head = format!(
        "[RESUMED TURN — the previous turn was cut by {reason}. This is what was in flight at the cut.]"
    );
    let mut sections = vec![head];
    if !handoff.request.is_empty() {
        sections.push(format!("Original request: {REQUEST_PLACEHOLDER}"));
    }
    sections.extend(budget::sections(handoff, bytes.saturating_sub(FRAME)));
    sections.push(TAIL.to_owned());
    sections.join("\n\n")
}

/// Bytes kept free for the head with the longest reason, the request's line, the tail and the blank lines.
const FRAME: usize = 2_048;

/// Puts the verbatim request into a context; a context without a place for it is returned as it is.
pub fn fill(context: &str, request: &str) -> String {
    context.replacen(REQUEST_PLACEHOLDER, request, 1)
}

/// The three-line notice.
pub fn notice(handoff: &Handoff) -> String {
    let counts = counts(handoff);
    let progress = if handoff.progress.is_empty() {
        ""
    } else {
        ", in-progress text preserved"
    };
    format!(
        "⛔ Turn cut — {}.\n💾 Handoff saved: {counts}{progress}.\n↩️ Send `/resume-handoff` (or just keep talking) to continue from there.",
        reason(handoff, "an unrecoverable provider failure"),
    )
}

/// The answer of `/resume-handoff` over the conversation's handoffs, newest first; consumes nothing. `limit` = characters of one message.
///
/// Known shapes of secrets are redacted here; secrets only the host knows by value are redacted by handing in
/// [`Redactor::handoff`]'s copies. Where handoffs are switched off the answer is [`PLUGIN_OFF`] instead.
pub fn resume_reply(stored: &[StoredHandoff], now: Timestamp, limit: Option<usize>) -> String {
    let text = resume_text(stored, now);
    match limit {
        Some(limit) => cut::message(&text, limit),
        None => text,
    }
}

/// What waits to be injected comes first, then what a turn holds; else the newest one decides, and one that has done its
/// work or was dropped counts as none.
fn resume_text(stored: &[StoredHandoff], now: Timestamp) -> String {
    let standing = |wanted| stored.iter().filter(move |one| one.standing(now) == wanted);
    let waiting: Vec<String> = standing(HandoffState::Armed)
        .rev()
        .map(|one| preview(&one.handoff))
        .collect();
    if !waiting.is_empty() {
        return waiting.join("\n\n");
    }
    if standing(HandoffState::Claimed).next().is_some() {
        return CLAIMED.to_owned();
    }
    let newest = stored.iter().find(|one| one.state != HandoffState::Chained);
    newest.map_or_else(|| NONE.to_owned(), |one| past(one, now))
}

fn past(stored: &StoredHandoff, now: Timestamp) -> String {
    match stored.standing(now) {
        HandoffState::Stopped => format!("{STOPPED_HEAD}\n\n{}", preview(&stored.handoff)),
        HandoffState::Expired => {
            format!(
                "The saved handoff expired at {}.",
                clock(stored.handoff.expires_at)
            )
        }
        HandoffState::Corrupt => format!(
            "The saved handoff is damaged ({}.corrupt); nothing was injected.",
            name::file_name(&stored.handoff.session)
        ),
        _ => NONE.to_owned(),
    }
}

/// The injected context as people see it: redacted, each request cut.
pub fn preview(handoff: &Handoff) -> String {
    let shown = Redactor::shapes().handoff(handoff);
    let requests: Vec<String> = shown
        .request
        .split(assemble::LATER_REQUEST)
        .map(|request| cut::head(request, REQUEST_PREVIEW))
        .collect();
    fill(&context(&shown), &requests.join(assemble::LATER_REQUEST))
}

/// One line per handoff for `baton handoff list`, in the order given.
pub fn list(stored: &[StoredHandoff], now: Timestamp) -> String {
    if stored.is_empty() {
        return "No saved handoffs.".to_owned();
    }
    stored
        .iter()
        .map(|one| summary(one, now))
        .collect::<Vec<_>>()
        .join("\n")
}

/// One handoff whole, as people may see it, for `baton handoff show`.
pub fn show(stored: &StoredHandoff, now: Timestamp) -> String {
    format!("{}\n\n{}", summary(stored, now), preview(&stored.handoff))
        .trim_end()
        .to_owned()
}

fn summary(stored: &StoredHandoff, now: Timestamp) -> String {
    let handoff = &stored.handoff;
    format!(
        "{}  {}  {}, cut by {}  made {}, valid to {}",
        cut::one_line(handoff.session.as_str()),
        state_word(stored.standing(now)),
        counts(handoff),
        Redactor::shapes().redact(&reason(handoff, "a provider failure")),
        clock(handoff.created_at),
        clock(handoff.expires_at),
    )
}

fn state_word(state: HandoffState) -> &'static str {
    match state {
        HandoffState::Armed => "waiting",
        HandoffState::Claimed => "in use",
        HandoffState::Acked => "done",
        HandoffState::Stopped => "stopped by you",
        HandoffState::Discarded => "discarded",
        HandoffState::Chained => "merged into a newer one",
        HandoffState::Expired => "expired",
        HandoffState::Corrupt => "damaged",
    }
}

fn counts(handoff: &Handoff) -> String {
    format!(
        "{}, {}",
        counted(handoff.calls.len(), "tool call"),
        counted(handoff.open_todos.len(), "open todo")
    )
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn reason(handoff: &Handoff, default: &str) -> String {
    let reason = cut::one_line(&handoff.reason);
    if reason.is_empty() {
        default.to_owned()
    } else {
        cut::head(&reason, REASON)
    }
}

fn is_empty(handoff: &Handoff) -> bool {
    handoff.request.is_empty()
        && handoff.progress.is_empty()
        && handoff.calls.is_empty()
        && handoff.open_todos.is_empty()
}

fn clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
