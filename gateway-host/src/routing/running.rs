//! While an attempt runs: a limit brings the turn to a boundary. The open tool may end, then the provider's own stop is used;
//! what the drain timer catches is stopped as it is, and its outcome is unknown.

use gateway_core::event::Event as Heard;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::handoff::carriage;
use gateway_core::switch::facts::LimitReport;
use gateway_core::switch::machine::{Cause, Effect, Event, State};
use gateway_core::turn::AttemptEnd;
use gateway_core::usage::{Reading, WindowStatus, blocking};
use jiff::Timestamp;
use providers::Stop;

use super::burn::Start;
use super::ride::{say, set_wake};
use crate::clock;
use crate::effects::Effects;
use crate::store::StoreError;
use crate::turn::Turn;

/// An attempt begins on the route at `position`.
pub async fn attempt_begins(turn: &mut Turn, position: usize, effects: &Effects) {
    let subscription = turn.route(position).map(|route| route.subscription.clone());
    if let (Some(rider), Some(subscription)) = (&mut turn.rider, subscription) {
        rider.stopped_for = None;
        rider.draining = false;
        rider.open_tools.clear();
        rider.wake = None;
        rider.start = Some(Start::now(&subscription, effects).await);
    }
}

/// What the running attempt reports; may ask it to stop.
pub async fn hears(
    turn: &mut Turn,
    event: &Heard,
    stop: &Stop,
    effects: &Effects,
) -> Result<(), StoreError> {
    if turn.rider.is_none() {
        return Ok(());
    }
    match event {
        Heard::Text { .. } => arrived(turn, effects).await,
        Heard::ToolCall { id, .. } => {
            if let Some(rider) = &mut turn.rider {
                rider.open_tools.insert(id.clone());
            }
            arrived(turn, effects).await
        }
        Heard::ToolResult { id, .. } => {
            let Some(rider) = &mut turn.rider else {
                return Ok(());
            };
            rider.open_tools.remove(id);
            if rider.draining && rider.open_tools.is_empty() {
                let run = rider.run.clone();
                return mid_turn(turn, &Event::BoundaryReached { run }, stop, effects).await;
            }
            Ok(())
        }
        Heard::Limit(reading) => limit(turn, reading, stop, effects).await,
        _ => Ok(()),
    }
}

/// The new place answers: the switch counts, and is said.
pub(super) async fn arrived(turn: &mut Turn, effects: &Effects) -> Result<(), StoreError> {
    let Some(rider) = &mut turn.rider else {
        return Ok(());
    };
    let Some((episode, attempt)) = rider.starting.take() else {
        return Ok(());
    };
    let run = rider.run.clone();
    say(turn, &Event::SwitchAccepted { episode, attempt }, effects).await?;
    let told = say(turn, &Event::FirstOutput { run }, effects).await?;
    if let Some(banner) = told.banner() {
        turn.voice.status(&banner).await;
    }
    Ok(())
}

async fn limit(
    turn: &mut Turn,
    reading: &Reading,
    stop: &Stop,
    effects: &Effects,
) -> Result<(), StoreError> {
    let refused = blocking::refuses(reading.status, reading.used_pct);
    if !refused && reading.status != WindowStatus::Warning {
        return Ok(()); // told to the registry; nothing to decide
    }
    arrived(turn, effects).await?;
    let report = LimitReport {
        window: Some(reading.window.clone()).filter(|window| !window.is_empty()),
        scope: reading.scope.clone(),
        status: reading.status,
        used_pct: reading.used_pct,
        resets_at: reading.resets_at,
        duration_mins: reading.duration_mins,
        overage_offered: false,
        turn_completed: false,
    };
    let Some(rider) = &turn.rider else {
        return Ok(());
    };
    let run = rider.run.clone();
    mid_turn(turn, &Event::LimitReported { run, report }, stop, effects).await
}

/// The timer the machine asked for.
pub async fn tick(turn: &mut Turn, stop: &Stop, effects: &Effects) -> Result<(), StoreError> {
    set_wake(turn, None);
    mid_turn(turn, &Event::Tick, stop, effects).await
}

async fn mid_turn(
    turn: &mut Turn,
    event: &Event,
    stop: &Stop,
    effects: &Effects,
) -> Result<(), StoreError> {
    let told = say(turn, event, effects).await?;
    let state = &told.row.machine.state;
    let Some(rider) = &mut turn.rider else {
        return Ok(());
    };
    rider.draining = matches!(state, State::Draining { .. });
    let mut banner = None;
    for effect in &told.effects {
        match effect {
            Effect::Interrupt { .. } => {
                rider.stopped_for = Some(report_of(state));
                stop.stop();
            }
            Effect::WakeAt(at) => rider.wake = Some(*at),
            Effect::CancelWake => rider.wake = None,
            Effect::Banner(_) => banner = told.banner(),
            _ => {}
        }
    }
    if let Some(banner) = banner {
        turn.voice.status(&banner).await;
    }
    Ok(())
}

fn report_of(state: &State) -> LimitReport {
    match state.episode().map(|episode| &episode.cause) {
        Some(Cause::Refused { report, .. }) => report.clone(),
        _ => LimitReport::default(),
    }
}

/// The end as the rest of the turn sees it: an attempt we stopped for a limit was refused.
pub fn end_of(turn: &Turn, end: AttemptEnd) -> AttemptEnd {
    let stopped_for = turn
        .rider
        .as_ref()
        .and_then(|rider| rider.stopped_for.as_ref());
    match (end, stopped_for) {
        (AttemptEnd::Stopped, Some(report)) if !turn.stop.is_asked() => {
            let failure = Failure::new(
                FailureKind::RateLimit,
                FailureScope::Account,
                "the limit was reached; the turn was stopped at a boundary",
            );
            AttemptEnd::Failed(
                failure
                    .retry_at(report.resets_at)
                    .window(report.window.clone()),
            )
        }
        (end, _) => end,
    }
}

/// Waits for the timer the machine asked for; forever without one.
pub async fn wakes(at: Option<Timestamp>, effects: &Effects) {
    match at {
        Some(at) => clock::wait_until(&*effects.clock, at).await,
        None => std::future::pending().await,
    }
}

/// Bytes that what happened so far may take of the next route's window, the request not counted.
pub fn room_for_context(turn: &Turn) -> usize {
    let bytes = u64::try_from(turn.row.request.len()).unwrap_or(u64::MAX);
    let freight = carriage::Freight {
        request_tokens: carriage::tokens_of_bytes(bytes),
        ..carriage::Freight::default()
    };
    let cap = turn.profile.routing.settings.handoff_cap_tokens;
    let tokens = carriage::budget_tokens(&freight, cap);
    usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
}
