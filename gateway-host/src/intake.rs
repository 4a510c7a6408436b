//! The way in: seen before? a command? busy? A command is answered at once; the rest joins its lane's queue. Nothing is
//! acknowledged before it is on disk.

use std::sync::Arc;

use gateway_core::ids::TurnId;
use gateway_core::journal::TurnRow;
use gateway_core::message::{Content, Inbound, Standing};
use providers::Permissions;
use tracing::{debug, warn};

use crate::config::ChatKind;
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
    let is_message = matches!(inbound.content, Content::Text(_));
    if let Err(fault) = take(inbound, sessions, effects).await {
        warn!(%fault, "a message could not be taken");
        let fault = fault.to_string();
        match is_message {
            true => delivery::fault(effects, &target, &fault).await,
            false => delivery::command_fault(effects, &target, &fault).await,
        }
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
            delivery::aside(effects, &inbound.target, &say).await;
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
        ask: None,
    };
    let admitted = match admit(request, &lane, sessions, effects).await {
        Err(StoreError::SeenBefore(_)) => return Ok(()), // another gateway of this root was faster
        admitted => admitted?,
    };
    if let Submitted::Queued(ahead) = admitted {
        let say = match ahead {
            1 => "Queued: it runs when the running turn has ended.".to_owned(),
            _ => format!("Queued behind {ahead} others."),
        };
        delivery::aside(effects, &target, &say).await;
    }
    Ok(())
}

/// Starts the request, or writes it down behind the running turn of its lane.
pub async fn admit(
    request: Request,
    lane: &Lane,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<Submitted, StoreError> {
    let Err(mut request) = sessions.start_if_idle(request, effects) else {
        return Ok(Submitted::Started);
    };
    request.queued = Some(write_down(&request, lane, effects).await?);
    Ok(sessions.submit(*request, effects))
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

/// The level of the profile on this surface; `edit` and `full` only for operators. A chat platform's section has a level
/// of its own, so that one meant for the console never reaches a channel.
pub(crate) fn permissions(inbound: &Inbound, effects: &Effects) -> Permissions {
    let profile = effects.profile(&inbound.profile);
    let platform = inbound.target.platform.as_str();
    let level = match ChatKind::of(platform) {
        Some(kind) => profile.chat.get(&kind).map(|chat| chat.permissions),
        None => profile.permissions,
    };
    let default = match platform {
        platforms::console::NAME => Permissions::ReadOnly,
        _ => Permissions::None,
    };
    let level = level.unwrap_or(default);
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
