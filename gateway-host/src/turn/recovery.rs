//! What a dead process left: its open turns are taken over and sealed from their journals, at the start and before the
//! next turn of the same lane. A request that had not begun is sealed just the same: nothing acknowledged is lost.

use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::handoff::{Handoff, HandoffState, render};
use gateway_core::ids::HandoffId;
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use jiff::Timestamp;
use tracing::{info, warn};

use super::terminal::HANDOFF_PLUGIN;
use crate::delivery::Voice;
use crate::effects::Effects;
use crate::instance;
use crate::store::{Carried, Lane, StoreError, TurnClose};

/// The reason of a turn whose gateway died under it.
const REASON: &str = "a restart of the gateway";

/// Seals every open turn of a dead owner; returns how many.
pub async fn seal_all(effects: &Effects) -> Result<usize, StoreError> {
    let mut sealed = 0;
    for row in effects.store.open_turns().await? {
        if !instance::is_alive(&effects.settings.root, &row.owner) && seal(&row, effects).await? {
            sealed += 1;
        }
    }
    Ok(sealed)
}

/// The same for one lane; cheap when there is nothing. `idle` = no turn of this process runs on the lane, so that an open
/// turn of our own that does not wait in a queue is one whose end could not be written: it is sealed now. Returns whether
/// another living gateway runs a turn on the lane.
pub async fn seal_left_on(lane: &Lane, idle: bool, effects: &Effects) -> Result<bool, StoreError> {
    let mut shared = false;
    for row in effects.store.open_turns().await? {
        let here = row.profile == lane.profile && row.session == lane.session;
        let left = if row.owner == effects.instance {
            idle && !effects.queued.lock().contains(&row.turn)
        } else {
            !instance::is_alive(&effects.settings.root, &row.owner)
        };
        if here && left {
            seal(&row, effects).await?;
        }
        shared |= here && !left && row.owner != effects.instance;
    }
    Ok(shared)
}

async fn seal(row: &TurnRow, effects: &Effects) -> Result<bool, StoreError> {
    if !effects
        .store
        .adopt_turn(&row.turn, &row.owner, &effects.instance)
        .await?
    {
        return Ok(false); // another process was faster
    }
    end_leftovers(row.owner.clone()).await; // before its journal is read for the last time
    let entries = effects.store.journal(&row.turn).await?;
    let mut carried = Vec::new();
    for id in &row.carries {
        match effects.store.handoff(id).await? {
            Some(stored) => carried.push(stored.handoff),
            None => {
                warn!(turn = %row.turn, handoff = %id, "a claimed handoff is gone from the store")
            }
        }
    }
    let id = HandoffId::new(uuid::Uuid::now_v7().to_string());
    let handoff = if effects.plugins.enabled(&row.profile, HANDOFF_PLUGIN) {
        assemble(&Cut {
            id: &id,
            turn: row,
            entries: &entries,
            carried: &carried,
            reason: reason(&entries),
            next_reset: stated_reset(&entries),
            now: effects.now(),
        })
    } else {
        None
    };
    let stopped = matches!(entries.last(), Some(JournalEntry::Stopped { .. }));
    let told = handoff.as_ref().map_or_else(
        || format!("⛔ Turn cut — {}.", reason(&entries)),
        render::notice,
    );
    let state = if stopped {
        HandoffState::Stopped
    } else {
        HandoffState::Armed
    };
    let close = TurnClose {
        turn: row.turn.clone(),
        status: match handoff {
            _ if stopped => TurnStatus::Stopped,
            Some(_) => TurnStatus::Cut,
            None => TurnStatus::Failed,
        },
        at: effects.now(),
        carried: if handoff.is_some() {
            Carried::Chained
        } else {
            Carried::Released
        },
        seal: handoff.map(|handoff| (effects.redactor.remains(handoff), state)),
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    };
    let closed = effects.store.close_turn(&close).await?;
    info!(turn = %row.turn, "sealed a turn that a dead gateway left open");
    effects
        .mirror(&Lane {
            profile: row.profile.clone(),
            session: row.session.clone(),
        })
        .await;
    if closed && !stopped {
        let voice = Voice::new(effects, row.target.clone(), row.turn.clone());
        voice.notice(&told).await;
    }
    Ok(closed)
}

/// Nothing of the dead gateway's turn may go on working beside the next one.
async fn end_leftovers(owner: String) {
    if let Err(error) = tokio::task::spawn_blocking(move || instance::leftovers::end(&owner)).await
    {
        warn!(%error, "what a dead gateway left running could not be looked through");
    }
}

fn reason(entries: &[JournalEntry]) -> &'static str {
    match entries.last() {
        Some(JournalEntry::Failed { failure, .. }) => failure.kind.reason(),
        _ => REASON,
    }
}

fn stated_reset(entries: &[JournalEntry]) -> Option<Timestamp> {
    let stated = |entry: &JournalEntry| match entry {
        JournalEntry::Failed { failure, .. } => failure.retry_at,
        _ => None,
    };
    entries.iter().filter_map(stated).min()
}

/// A handoff's own turn without the earlier ones it merged; `None` = its journal is gone.
pub async fn reassemble_alone(
    handoff: &Handoff,
    effects: &Effects,
) -> Result<Option<Handoff>, StoreError> {
    let entries = effects.store.journal(&handoff.turn).await?;
    let Some(row) = effects.store.turn(&handoff.turn).await? else {
        return Ok(None);
    };
    Ok(assemble(&Cut {
        id: &handoff.id,
        turn: &row,
        entries: &entries,
        carried: &[],
        reason: &handoff.reason,
        next_reset: handoff.next_reset,
        now: handoff.created_at,
    }))
}
