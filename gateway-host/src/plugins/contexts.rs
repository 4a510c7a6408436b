//! Plain facts to the borrowed contexts of a call, on the plugin's thread. What costs something is converted here, at the
//! hook that needs it; the chain and its windows are lent as they are.

use abi_stable::std_types::{RSlice, RString, RVec};
use commands::surface::discord::ARGUMENT;
use gateway_core::event::{CallOutcome, Event};
use gateway_core::handoff::Handoff;
use gateway_core::ids::TurnId;
use jiff::Timestamp;
use plugin_api::command::{CommandAnswer, Invocation};
use plugin_api::context::TurnView;
use plugin_api::event::TurnEvent;
use plugin_api::plugin::{PluginBox, Reply};
use plugin_api::prologue::{PrologueAnswer, PrologueContext};
use plugin_api::records::{DocumentRecord, DocumentState, JournalRecord, TodoRecord, WindowRecord};
use plugin_api::terminal::{RequestView, TerminalAnswer, TerminalContext};
use plugin_api::walk::{WalkAnswer, WalkContext};

use super::facts::{CommandFacts, PrologueFacts, TerminalFacts, TurnFacts, WalkFacts};

fn view(turn: &TurnFacts) -> TurnView<'_> {
    TurnView {
        turn: turn.turn.as_str().into(),
        profile: turn.profile.as_str().into(),
        session: turn.session.as_str().into(),
        conversation: turn.conversation.as_str().into(),
        origin: turn.origin.into(),
        now_ms: turn.now.as_millisecond(),
        routes: RSlice::from_slice(&turn.sheet.routes),
        windows: RSlice::from_slice(&turn.sheet.windows),
        attrs: RSlice::EMPTY,
    }
}

pub(super) fn prologue(plugin: &mut PluginBox, facts: &PrologueFacts) -> Reply<PrologueAnswer> {
    let documents: Vec<DocumentRecord> = facts.documents.iter().map(DocumentRecord::from).collect();
    plugin.prologue(&PrologueContext {
        turn: view(&facts.turn),
        documents: RSlice::from_slice(&documents),
    })
}

pub(super) fn before_walk(plugin: &mut PluginBox, facts: &WalkFacts) -> Reply<WalkAnswer> {
    let memo: Vec<u32> = facts
        .memo
        .iter()
        .map(|position| narrow(*position))
        .collect();
    plugin.before_walk(&WalkContext {
        turn: view(&facts.turn),
        failed: narrow(facts.failed),
        reason: facts.reason.into(),
        cursor: narrow(facts.cursor),
        already_gated: facts.already_gated,
        line_shown: facts.line_shown,
        memo: RSlice::from_slice(&memo),
    })
}

pub(super) fn on_terminal(plugin: &mut PluginBox, facts: &TerminalFacts) -> Reply<TerminalAnswer> {
    let journal: Vec<JournalRecord> = facts.entries.iter().map(JournalRecord::from).collect();
    let carried: Vec<DocumentRecord> = facts.carried.iter().map(carried_record).collect();
    let row = &facts.row;
    plugin.on_terminal(&TerminalContext {
        turn: view(&facts.turn),
        request: RequestView {
            inbound: row.inbound.as_str().into(),
            platform: row.target.platform.as_str().into(),
            address: row.target.address.as_str().into(),
            text: row.request.as_str().into(),
            started_at_ms: row.started_at.as_millisecond(),
            owner: row.owner.as_str().into(),
        },
        journal: RSlice::from_slice(&journal),
        carried: RSlice::from_slice(&carried),
        reason: facts.reason.as_str().into(),
        next_reset_ms: facts.next_reset.map(Timestamp::as_millisecond).into(),
        handoff: facts.handoff.as_str().into(),
    })
}

/// The rest of the line is one option, under the name it has on platforms with options.
pub(super) fn on_command(plugin: &mut PluginBox, facts: &CommandFacts) -> Reply<CommandAnswer> {
    let documents: Vec<DocumentRecord> = facts.documents.iter().map(DocumentRecord::from).collect();
    let options = serde_json::json!({ ARGUMENT: facts.argument }).to_string();
    plugin.on_command(&Invocation {
        name: facts.name.as_str().into(),
        options: options.as_str().into(),
        profile: facts.profile.as_str().into(),
        session: facts.session.as_str().into(),
        user: facts.user.as_str().into(),
        channel: facts.target.address.as_str().into(),
        now_ms: facts.now.as_millisecond(),
        documents: RSlice::from_slice(&documents),
        attrs: RSlice::EMPTY,
    })
}

fn carried_record(handoff: &Handoff) -> DocumentRecord {
    DocumentRecord {
        id: handoff.id.as_str().into(),
        state: DocumentState::Claimed,
        // A struct of texts and numbers always serialises.
        json: serde_json::to_string(handoff).unwrap_or_default().into(),
    }
}

/// The event as plugins see it; `None` = not one they are told.
pub(super) fn turn_event(turn: &TurnId, event: &Event) -> Option<TurnEvent> {
    let turn: RString = turn.as_str().into();
    Some(match event {
        Event::Text { delta, .. } => TurnEvent::Text {
            turn,
            text: delta.as_str().into(),
        },
        Event::ToolCall { id, name, .. } => TurnEvent::ToolStarted {
            turn,
            id: id.as_str().into(),
            name: name.as_str().into(),
        },
        Event::ToolResult { id, outcome, .. } => finished(turn, id, *outcome),
        Event::Todos(todos) => TurnEvent::Todos {
            turn,
            todos: todos.iter().map(TodoRecord::from).collect::<RVec<_>>(),
        },
        Event::Usage(usage) => TurnEvent::Usage {
            turn,
            input: usage.input.into(),
            output: usage.output.into(),
            cache_read: usage.cache_read.into(),
            cache_write: usage.cache_write.into(),
        },
        Event::Limit(reading) => TurnEvent::Limit {
            turn,
            slug: reading.subscription.key().into(),
            window: WindowRecord::from(reading),
        },
        Event::Session { .. } | Event::Retract { .. } | Event::Activity { .. } => return None,
    })
}

fn finished(turn: RString, id: &str, outcome: CallOutcome) -> TurnEvent {
    TurnEvent::ToolFinished {
        turn,
        id: id.into(),
        outcome: outcome.into(),
    }
}

fn narrow(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
