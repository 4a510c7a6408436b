//! A cut: the journal becomes a document to seal and the notice that says so. Whatever does not come across whole is an
//! error, never a smaller document: the gateway then seals from its own journal.

use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::handoff::{Handoff, render};
use gateway_core::ids::HandoffId;
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::message::{Origin, ReplyTarget};
use jiff::Timestamp;
use plugin_api::prelude::*;

/// The document and its notice; no opinion if the turn left nothing worth saving.
pub(crate) fn advice(context: &TerminalContext<'_>) -> Answer<TerminalAdvice> {
    let id = HandoffId::new(context.handoff.as_str());
    let carried = carried(context)?;
    let row = row(context, &carried)?;
    let entries = entries(context)?;
    let cut = Cut {
        id: &id,
        turn: &row,
        entries: &entries,
        carried: &carried,
        reason: context.reason.as_str(),
        next_reset: match context.next_reset_ms.into_option() {
            Some(ms) => Some(instant(ms)?),
            None => None,
        },
        now: instant(context.turn.now_ms)?,
    };
    let Some(handoff) = assemble(&cut) else {
        return none();
    };
    let notice = render::notice(&handoff)
        .lines()
        .map(str::to_owned)
        .collect();
    let seal = serde_json::to_string(&handoff).map_err(|error| error.to_string())?;
    Ok(Some(TerminalAdvice {
        seal: Some(seal),
        notice,
        append: None,
    }))
}

fn carried(context: &TerminalContext<'_>) -> Result<Vec<Handoff>, String> {
    let documents = context.carried.iter().map(|document| {
        serde_json::from_str(&document.json).map_err(|error| {
            format!(
                "the carried handoff {} cannot be read: {error}",
                document.id
            )
        })
    });
    documents.collect()
}

fn entries(context: &TerminalContext<'_>) -> Result<Vec<JournalEntry>, String> {
    let entries = context.journal.iter().map(|record| {
        record
            .entry()
            .ok_or_else(|| format!("a journal record of an unknown kind ({})", record.kind.0))
    });
    entries.collect()
}

fn row(context: &TerminalContext<'_>, carried: &[Handoff]) -> Result<TurnRow, String> {
    let (turn, request) = (&context.turn, &context.request);
    Ok(TurnRow {
        turn: turn.turn.as_str().into(),
        profile: turn.profile.as_str().into(),
        session: turn.session.as_str().into(),
        conversation: turn.conversation.as_str().into(),
        inbound: request.inbound.as_str().into(),
        origin: turn.origin.known().unwrap_or(Origin::Synthetic),
        target: ReplyTarget {
            platform: request.platform.as_str().to_owned(),
            address: request.address.as_str().to_owned(),
        },
        request: request.text.as_str().to_owned(),
        started_at: instant(request.started_at_ms)?,
        owner: request.owner.as_str().to_owned(),
        carries: carried.iter().map(|handoff| handoff.id.clone()).collect(),
    })
}

fn instant(ms: i64) -> Result<Timestamp, String> {
    Timestamp::from_millisecond(ms).map_err(|error| error.to_string())
}
