//! Journal rows to payload.
//!
//! The journal of a turn holds every attempt of it; the payload tells them as one story: what was asked, what was said,
//! which calls were made and how each ended, what is still to do. Handoffs the turn carried are merged in, so that a
//! second cut loses nothing of the first. Nothing here fails: what is missing is left empty.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::redact::Redactor;
use super::{CallRecord, Handoff, PAYLOAD_VERSION, cut, merge::merge, think, validity};
use crate::event::{CallOutcome, Todo};
use crate::ids::HandoffId;
use crate::journal::{JournalEntry, TurnRow};
use crate::route::Route;

/// Stands between the requests of turns that were cut in a row.
pub const LATER_REQUEST: &str = "\n\n[Sent after that turn was cut:]\n";

/// Characters kept of a call's arguments, of its result and of a todo.
pub const PREVIEW: usize = 500;
/// Characters kept of one turn's progress, from its end.
pub const PROGRESS: usize = 4_000;
/// Characters kept of the progress of turns cut in a row, from its end; more than any budget can show.
const CHAINED_PROGRESS: usize = 24_000;
/// Characters kept of a tool's name.
const NAME: usize = 200;
/// Calls kept; the oldest finished ones go first, unfinished ones never.
const CALLS: usize = 500;

/// Everything known at a cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    pub id: &'a HandoffId,
    pub turn: &'a TurnRow,
    pub entries: &'a [JournalEntry],
    /// Handoffs the turn had claimed, oldest first: a second cut merges them.
    pub carried: &'a [Handoff],
    pub reason: &'a str,
    pub next_reset: Option<Timestamp>,
    pub now: Timestamp,
}

/// Builds the handoff of a cut turn; `None` = nothing worth saving.
pub fn assemble(cut: &Cut<'_>) -> Option<Handoff> {
    if cut.turn.session.as_str().is_empty() {
        return None; // nobody could ever ask for it again
    }
    let mut remains = Remains::default();
    for carried in cut.carried {
        remains.carry(carried);
    }
    remains.add(&cut.turn.request, Replay::of(cut.entries));
    if remains.is_nothing() {
        return None;
    }
    Some(Handoff {
        version: PAYLOAD_VERSION,
        id: cut.id.clone(),
        turn: cut.turn.turn.clone(),
        profile: cut.turn.profile.clone(),
        session: cut.turn.session.clone(),
        conversation: cut.turn.conversation.clone(),
        created_at: cut.now,
        expires_at: validity::expires_at(cut.now, cut.next_reset),
        reason: cut.reason.to_owned(),
        route: remains.route,
        request: remains.request,
        request_id: cut.turn.inbound.clone(),
        progress: remains.progress,
        calls: bounded(remains.calls),
        open_todos: remains.todos,
        next_reset: cut.next_reset,
        earlier_cuts: remains.earlier_cuts,
    })
}

/// What is left of one turn after another, oldest first.
#[derive(Default)]
struct Remains {
    request: String,
    progress: String,
    calls: Vec<CallRecord>,
    todos: Vec<Todo>,
    route: Option<Route>,
    earlier_cuts: u32,
}

impl Remains {
    fn carry(&mut self, earlier: &Handoff) {
        self.ask(&earlier.request);
        self.report(&earlier.progress);
        self.calls.extend(earlier.calls.iter().cloned());
        self.todos.extend(earlier.open_todos.iter().cloned());
        self.earlier_cuts = self
            .earlier_cuts
            .saturating_add(earlier.earlier_cuts)
            .saturating_add(1);
    }

    fn add(&mut self, request: &str, turn: Replay) {
        self.ask(request);
        self.report(&cut::tail(&turn.progress(), PROGRESS));
        self.calls.extend(turn.calls);
        self.replace_todos(turn.todos);
        self.route = turn.route;
    }

    /// A request sent again word for word is the same request.
    fn ask(&mut self, request: &str) {
        if request.trim().is_empty() || self.request == request {
            return;
        }
        if self.request.is_empty() {
            self.request = request.to_owned();
        } else if !self.request.ends_with(&format!("{LATER_REQUEST}{request}")) {
            self.request.push_str(LATER_REQUEST);
            self.request.push_str(request);
        }
    }

    fn report(&mut self, progress: &str) {
        self.progress = cut::tail(&merge(&self.progress, progress), CHAINED_PROGRESS);
    }

    /// The newest list rules what it names; a new CLI session may never have heard of the others, so they stay open.
    fn replace_todos(&mut self, newest: Vec<Todo>) {
        self.todos.retain(|old| {
            newest
                .iter()
                .all(|new| new.content.trim() != old.content.trim())
        });
        self.todos
            .extend(newest.into_iter().filter(|todo| todo.status.is_open()));
    }

    fn is_nothing(&self) -> bool {
        self.request.is_empty()
            && self.progress.is_empty()
            && self.calls.is_empty()
            && self.todos.is_empty()
    }
}

/// The journal of one turn, folded entry by entry.
#[derive(Default)]
struct Replay {
    route: Option<Route>,
    /// Text of the attempts that are over.
    told: String,
    /// Text blocks of the current attempt by number.
    blocks: BTreeMap<u32, String>,
    calls: Vec<CallRecord>,
    /// Where the calls of the current attempt begin: ids are only unique within one.
    first_call: usize,
    /// The last list reported, cut; closed ones included.
    todos: Vec<Todo>,
}

impl Replay {
    fn of(entries: &[JournalEntry]) -> Self {
        let mut replay = Self::default();
        for entry in entries {
            replay.fold(entry);
        }
        replay
    }

    fn fold(&mut self, entry: &JournalEntry) {
        match entry {
            JournalEntry::Attempt { route, .. } => self.begin(route),
            JournalEntry::Text { block, text } => {
                self.blocks.entry(*block).or_default().push_str(text);
            }
            JournalEntry::Retract { from_block } => {
                self.blocks.split_off(from_block);
            }
            JournalEntry::ToolCall {
                id,
                name,
                arguments,
            } => self.call(id, name, arguments),
            JournalEntry::ToolResult { id, outcome, text } => self.result(id, *outcome, text),
            JournalEntry::Todos { todos } => self.todos = todos.iter().map(preview_todo).collect(),
            JournalEntry::Session { .. }
            | JournalEntry::Failed { .. }
            | JournalEntry::Stopped { .. } => {}
        }
    }

    fn begin(&mut self, route: &Route) {
        self.told = self.progress();
        self.blocks.clear();
        self.first_call = self.calls.len();
        self.route = Some(route.clone());
    }

    /// The same call reported again before its result is the same call, with more of its arguments.
    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let name = cut::head(&cut::one_line(name), NAME);
        let arguments = preview(arguments);
        match self.latest(id) {
            Some(known)
                if known.outcome == CallOutcome::Unknown
                    && known.result.is_none()
                    && known.name == name =>
            {
                known.arguments = arguments;
            }
            _ => self.calls.push(CallRecord {
                id: id.to_owned(),
                name,
                arguments,
                outcome: CallOutcome::Unknown,
                result: None,
            }),
        }
    }

    fn result(&mut self, id: &str, outcome: CallOutcome, text: &str) {
        if let Some(call) = self.latest(id) {
            call.outcome = outcome;
            call.result = (!text.is_empty()).then(|| preview(text));
        }
    }

    /// The latest call of the current attempt with this id. A call without an id is never found again.
    fn latest(&mut self, id: &str) -> Option<&mut CallRecord> {
        let current = self.calls.get_mut(self.first_call..)?;
        current
            .iter_mut()
            .rev()
            .find(|call| !id.is_empty() && call.id == id)
    }

    /// The visible text of all attempts so far, without reasoning and without what two attempts both said.
    fn progress(&self) -> String {
        let blocks: Vec<&str> = self
            .blocks
            .values()
            .map(|block| block.trim())
            .filter(|block| !block.is_empty())
            .collect();
        let visible = think::strip(&blocks.join("\n\n"));
        merge(&self.told, &Redactor::shapes().redact(&visible))
    }
}

/// Bodies are redacted piece by piece on their way into the journal; a secret split over two pieces shows only here.
fn preview(text: &str) -> String {
    cut::head(&Redactor::shapes().redact(text), PREVIEW)
}

fn preview_todo(todo: &Todo) -> Todo {
    Todo {
        content: preview(&todo.content),
        ..todo.clone()
    }
}

/// Drops the oldest finished calls beyond [`CALLS`].
fn bounded(mut calls: Vec<CallRecord>) -> Vec<CallRecord> {
    let mut excess = calls.len().saturating_sub(CALLS);
    calls.retain(|call| {
        let dropped = excess > 0 && call.outcome != CallOutcome::Unknown;
        excess -= usize::from(dropped);
        !dropped
    });
    calls
}
