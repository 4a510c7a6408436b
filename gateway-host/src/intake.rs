//! The way in: seen before? a command? busy? A command is answered at once; the rest joins its lane's queue. Nothing is
//! acknowledged before it is on disk.

use std::sync::Arc;

use gateway_core::ids::TurnId;
use gateway_core::journal::TurnRow;
use gateway_core::message::{Audience, Content, Inbound, Standing};
use providers::Permissions;
use tracing::{debug, warn};

use crate::delivery;
use crate::effects::Effects;
use crate::sessions::{Sessions, Submitted};
use crate::store::{Lane, StoreError};
use crate::turn::Request;
use crate::{instance, press, slash, turn};

/// The longest request that is stored and sent whole, in bytes.
pub const REQUEST_MAX: usize = 1 << 20;

/// The terminal never delivers a line twice, so it needs no memory of ids.
const NEVER_REDELIVERS: &str = platforms::console::NAME;

/// Takes one message or command. Faults are shown to the sender, never returned.
pub async fn receive(inbound: Inbound, sessions: &Arc<Sessions>, effects: &Arc<Effects>) {
    let target = inbound.target.clone();
    if let Err(fault) = take(inbound, sessions, effects).await {
        warn!(%fault, "a message could not be taken");
        delivery::fault(effects, &target, &fault.to_string()).await;
    }
}

async fn take(
    inbound: Inbound,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    if !is_first(&inbound, effects).await? {
        debug!(id = %inbound.id, "delivered again; answered once is enough");
        return Ok(());
    }
    match inbound.content.clone() {
        Content::Command { name, args } => {
            slash::run(&inbound, &name, &args, sessions, effects).await
        }
        Content::Press { custom_id } => press::run(&inbound, &custom_id, effects).await,
        Content::Text(text) if text.trim().is_empty() => Ok(()),
        Content::Text(text) if text.len() > REQUEST_MAX => {
            let say = format!(
                "This message is {} bytes long; at most {REQUEST_MAX} bytes are taken. Send it in parts, or as a file in the working directory.",
                text.len()
            );
            delivery::reply(effects, &inbound.target, &say, Audience::Asker).await;
            Ok(())
        }
        Content::Text(text) => submit(inbound, text, sessions, effects).await,
    }
}

/// Whether it comes for the first time. What gets a turn is remembered on disk with the turn's first row, so that a
/// message whose gateway died before that is taken when it is delivered again; everything else is remembered here.
async fn is_first(inbound: &Inbound, effects: &Effects) -> Result<bool, StoreError> {
    let (platform, id) = (inbound.target.platform.as_str(), &inbound.id);
    if platform == NEVER_REDELIVERS {
        return Ok(true);
    }
    let known = format!("{platform} {id}");
    let new = effects
        .arrivals
        .lock()
        .first_sight(&[&known], tokio::time::Instant::now());
    match inbound.content {
        _ if !new => Ok(false),
        Content::Text(_) => Ok(!effects.store.was_seen(platform, id).await?),
        Content::Command { .. } | Content::Press { .. } => {
            effects.store.first_sight(platform, id, effects.now()).await
        }
    }
}

async fn submit(
    inbound: Inbound,
    text: String,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    let lane = Lane {
        profile: inbound.profile.clone(),
        session: inbound.session.clone(),
    };
    let permissions = permissions(&inbound, effects);
    let target = inbound.target.clone();
    let request = Request {
        inbound,
        text,
        queued: None,
        permissions,
        resumes: None,
    };
    let Err(mut request) = sessions.start_if_idle(request, effects) else {
        return Ok(());
    };
    request.queued = match write_down(&request, &lane, effects).await {
        Err(StoreError::SeenBefore(_)) => return Ok(()), // another gateway of this root was faster
        row => Some(row?),
    };
    if let Submitted::Queued(ahead) = sessions.submit(*request, effects) {
        let say = match ahead {
            1 => "Queued: it runs when the running turn has ended.".to_owned(),
            _ => format!("Queued behind {ahead} others."),
        };
        delivery::reply(effects, &target, &say, Audience::Asker).await;
    }
    Ok(())
}

/// A message that has to wait is on disk before it is acknowledged.
async fn write_down(
    request: &Request,
    lane: &Lane,
    effects: &Effects,
) -> Result<TurnRow, StoreError> {
    let now = effects.now();
    let session = effects.store.session(lane, now).await?;
    turn::prologue::note_participant(&request.inbound, &session.conversation, effects).await;
    let row = TurnRow {
        turn: TurnId::new(uuid::Uuid::now_v7().to_string()),
        profile: lane.profile.clone(),
        session: lane.session.clone(),
        conversation: session.conversation,
        inbound: request.inbound.id.clone(),
        origin: request.inbound.origin,
        target: request.inbound.target.clone(),
        request: request.text.clone(),
        started_at: now,
        owner: effects.instance.clone(),
        carries: Vec::new(),
    };
    effects.queued.lock().insert(row.turn.clone());
    if let Err(fault) = effects.store.open_turn(&row, &[]).await {
        effects.queued.lock().remove(&row.turn);
        return Err(fault);
    }
    Ok(row)
}

/// The profile's level, else the surface's default; `edit` and `full` only for operators.
pub(crate) fn permissions(inbound: &Inbound, effects: &Effects) -> Permissions {
    let default = if inbound.target.platform == platforms::console::NAME {
        Permissions::ReadOnly
    } else {
        Permissions::None
    };
    let level = effects
        .profile(&inbound.profile)
        .permissions
        .unwrap_or(default);
    if inbound.sender.standing == Standing::Operator {
        level
    } else {
        level.min(Permissions::ReadOnly)
    }
}

/// Seals the turns dead processes left and ends the programs they left running, before anything new is taken.
pub async fn recover(effects: &Effects) -> Result<usize, StoreError> {
    let sealed = turn::recovery::seal_all(effects).await?;
    let root = effects.settings.root.clone();
    match tokio::task::spawn_blocking(move || instance::remove_dead(&root)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => warn!(%error, "the lock files of dead gateways could not be removed"),
        Err(error) => warn!(%error, "what dead gateways left could not be looked through"),
    }
    Ok(sealed)
}
