//! What goes on by itself: a reset that was waited for, one that came early, and what a dead process left half-decided.
//! Everything due is a row in the store; the sweep is the only timer, so a restart loses none and repeats none. The step
//! that ends a wait is kept by exactly one process, and only that one starts the turn.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::handoff::HandoffState;
use gateway_core::ids::{ConversationId, InboundId, TurnId};
use gateway_core::message::{Content, Inbound, Origin, Sender, Standing};
use gateway_core::switch::machine::{Effect, Event, State};
use gateway_core::usage::probe::Occasion;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use super::facts::{Subject, candidates};
use super::step::{Told, tell};
use crate::effects::Effects;
use crate::instance;
use crate::sessions::Sessions;
use crate::store::routing::RoutingRow;
use crate::store::{Lane, StoreError};
use crate::turn::Request;

/// Between two looks for what is due.
const EVERY: Duration = Duration::from_secs(5);

/// What a turn that goes on by itself says to the provider.
pub const CONTINUE: &str = "Continue where you left off.";

/// Looks every five seconds, until aborted.
pub fn start(sessions: &Arc<Sessions>, effects: &Arc<Effects>) -> JoinHandle<()> {
    let (sessions, effects) = (Arc::downgrade(sessions), Arc::downgrade(effects));
    tokio::spawn(async move {
        let mut due = tokio::time::interval(EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            let (Some(sessions), Some(effects)) = (sessions.upgrade(), effects.upgrade()) else {
                return;
            };
            sweep(&sessions, &effects).await;
        }
    })
}

/// Looks once at every conversation that waits.
pub async fn sweep(sessions: &Arc<Sessions>, effects: &Arc<Effects>) {
    let rows = match effects.store.unsettled_routing().await {
        Ok(rows) => rows,
        Err(fault) => return warn!(%fault, "what waits for a reset cannot be read"),
    };
    let evidence = effects.registry.current(effects.now()).await;
    let news = effects.routing.seen.lock().replace(evidence.revision) != Some(evidence.revision);
    for row in rows {
        let waits = matches!(
            row.machine.state,
            State::WaitingReset { .. } | State::Held { .. }
        );
        if !waits || row.machine.running {
            continue;
        }
        let due = row.wake_at().is_some_and(|at| at <= effects.now());
        let event = match (due, news) {
            (true, _) => Event::Tick,
            (false, true) => Event::NewReading,
            (false, false) => continue,
        };
        if let Err(fault) = wake(&row, &event, sessions, effects).await {
            warn!(%fault, conversation = %row.conversation, "a waiting conversation could not be looked at");
        }
    }
}

async fn wake(
    row: &RoutingRow,
    event: &Event,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    if !is_current(row, effects).await? {
        return give_up(row, effects).await;
    }
    if *event == Event::Tick {
        let place = row.machine.place.subscription.clone();
        effects.probes.ask([place], Occasion::Demand).await;
    }
    let told = say(row, event, effects).await?;
    go_on(&told, sessions, effects).await
}

/// `/new` or `/resume` has left the conversation behind: nothing of it goes on by itself.
async fn is_current(row: &RoutingRow, effects: &Effects) -> Result<bool, StoreError> {
    let lane = lane_of(row);
    let session = effects.store.session(&lane, effects.now()).await?;
    Ok(session.conversation == row.conversation)
}

fn lane_of(row: &RoutingRow) -> Lane {
    Lane {
        profile: row.seat.profile.clone(),
        session: row.seat.session.clone(),
    }
}

/// One step of a conversation outside of any turn.
pub(super) async fn say(
    row: &RoutingRow,
    event: &Event,
    effects: &Effects,
) -> Result<Told, StoreError> {
    let profile = effects.profile(&row.seat.profile);
    let subject = Subject {
        profile: &profile,
        conversation: &row.conversation,
        permissions: row.seat.permissions,
        request: None,
        tool_open: false,
    };
    tell(&row.seat, &subject, &row.machine.place, event, effects).await
}

/// Starts what the step asked for; decides where it only asked for a look around first.
async fn go_on(
    told: &Told,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    let mut told = told.clone();
    loop {
        let mut check = None;
        for effect in &told.effects {
            match effect {
                Effect::StartTurn { run, .. }
                | Effect::Resume { run, .. }
                | Effect::Switch { run, .. } => {
                    start_turn(&told.row, run, sessions, effects).await?
                }
                Effect::Check { episode } => check = Some(episode.clone()),
                _ => {}
            }
        }
        let Some(episode) = check else { return Ok(()) };
        let profile = effects.profile(&told.row.seat.profile);
        let all = candidates(&profile).into_iter();
        let all = all.map(|route| route.subscription);
        effects.probes.ask(all, Occasion::Demand).await;
        told = say(&told.row, &Event::Checked { episode }, effects).await?;
    }
}

/// Starts the turn of a run: it carries the sealed handoff, or where handoffs are off the request that waited.
async fn start_turn(
    row: &RoutingRow,
    run: &TurnId,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    let turn = free_name(row, run, effects).await?;
    let Some(turn) = turn else { return Ok(()) };
    let Some(text) = text(row, effects).await? else {
        say(row, &Event::GivenUp { run: run.clone() }, effects).await?;
        return Ok(());
    };
    info!(conversation = %row.conversation, %run, "goes on by itself");
    let request = Request {
        inbound: inbound(row, &turn, &text, effects),
        text,
        queued: None,
        permissions: row.seat.permissions,
        resumes: Some((turn, run.clone())),
        ask: None,
    };
    if sessions.start_if_idle(request, effects).is_err() {
        // A person was faster: their turn carries what was saved.
        say(row, &Event::GivenUp { run: run.clone() }, effects).await?;
    }
    Ok(())
}

/// The name of the turn of a run; the same after a crash. `None` = it was started already.
async fn free_name(
    row: &RoutingRow,
    run: &TurnId,
    effects: &Effects,
) -> Result<Option<TurnId>, StoreError> {
    if effects.store.turn(run).await?.is_none() {
        return Ok(Some(run.clone()));
    }
    let again = TurnId::new(format!("{run}:{}", row.revision));
    let taken = effects.store.turn(&again).await?.is_some();
    Ok((!taken && row.seat.pending.as_ref() != Some(&again)).then_some(again))
}

async fn text(row: &RoutingRow, effects: &Effects) -> Result<Option<String>, StoreError> {
    let saved = effects.store.handoffs_of(&lane_of(row)).await?;
    let now = effects.now();
    let carried = saved.iter().any(|stored| {
        stored.handoff.conversation == row.conversation
            && stored.standing(now) == HandoffState::Armed
    });
    if carried {
        return Ok(Some(CONTINUE.to_owned()));
    }
    let Some(pending) = &row.seat.pending else {
        return Ok(None);
    };
    let turn = effects.store.turn(pending).await?;
    Ok(turn
        .map(|turn| turn.request)
        .filter(|text| !text.is_empty()))
}

/// The work is the person's: what their turn may carry, this one may.
fn inbound(row: &RoutingRow, turn: &TurnId, text: &str, effects: &Effects) -> Inbound {
    Inbound {
        id: InboundId::new(turn.as_str()),
        profile: row.seat.profile.clone(),
        session: row.seat.session.clone(),
        sender: Sender {
            id: "baton".to_owned(),
            name: "Baton".to_owned(),
            standing: Standing::Member,
        },
        origin: Origin::Human,
        target: row.seat.target.clone(),
        received_at: effects.now(),
        content: Content::Text(text.to_owned()),
    }
}

/// After the turns of dead processes are sealed: ends their runs, and goes on where something was decided or begun.
pub async fn recover(sessions: &Arc<Sessions>, effects: &Arc<Effects>) -> Result<(), StoreError> {
    for row in effects.store.unsettled_routing().await? {
        let dead = row.owner != effects.instance
            && !instance::is_alive(&effects.settings.root, &row.owner);
        if dead
            && effects.profile(&row.seat.profile).routing.settings.enabled
            && let Err(fault) = take_up(&row, sessions, effects).await
        {
            warn!(%fault, conversation = %row.conversation, "a conversation could not be taken up again");
        }
    }
    Ok(())
}

async fn take_up(
    row: &RoutingRow,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    let Some(run) = row.machine.run.clone() else {
        return Ok(());
    };
    let event = match &row.machine.state {
        // A wait is looked at by the sweep, by its time.
        State::WaitingReset { .. } | State::Held { .. } if !row.machine.running => return Ok(()),
        State::Deciding { episode } => Event::Checked {
            episode: episode.id.clone(),
        },
        State::Switching { .. } => return start_turn(row, &run, sessions, effects).await,
        State::Draining { .. } | State::Interrupting { .. } => Event::TurnEnded {
            run,
            end: gateway_core::switch::machine::RunEnd::Stopped,
        },
        _ if is_resumption(&run) && effects.store.turn(&run).await?.is_none() => {
            return start_turn(row, &run, sessions, effects).await;
        }
        // It ran and died with its gateway: it is sealed, and the person has been told.
        _ => Event::GivenUp { run },
    };
    let told = say(row, &event, effects).await?;
    // Draining ends in its own interrupt; nothing runs any more that could answer it.
    let state = &told.row.machine.state;
    if let (State::Deciding { episode }, false) = (state, told.effects.iter().any(is_check)) {
        let episode = episode.id.clone();
        let told = say(&told.row, &Event::Checked { episode }, effects).await?;
        return go_on(&told, sessions, effects).await;
    }
    go_on(&told, sessions, effects).await
}

fn is_check(effect: &Effect) -> bool {
    matches!(effect, Effect::Check { .. })
}

/// Whether the run was begun by the end of a wait, and not by a person's turn.
fn is_resumption(run: &TurnId) -> bool {
    run.as_str().starts_with("quota-resume:")
}

/// The person leaves a conversation behind: nothing of it goes on by itself.
pub async fn leave(conversation: &ConversationId, effects: &Effects) -> Result<(), StoreError> {
    match effects.store.routing(conversation).await? {
        Some(row) => give_up(&row, effects).await,
        None => Ok(()),
    }
}

async fn give_up(row: &RoutingRow, effects: &Effects) -> Result<(), StoreError> {
    if let Some(run) = row.machine.run.clone() {
        say(row, &Event::GivenUp { run }, effects).await?;
    }
    Ok(())
}
