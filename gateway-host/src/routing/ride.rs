//! A turn under routing. Its request is decided before anything is sent; a limit in its middle brings it to a boundary
//! (`running`); a refusal moves it, or it waits.
//!
//! The person's turn stays one turn: what was shown stays, the next route gets the request and what happened so far.

use std::collections::HashSet;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::{ConversationId, TurnId};
use gateway_core::switch::facts::{LimitClass, LimitReport};
use gateway_core::switch::machine::{Effect, Event, Place, RunEnd, State};
use gateway_core::turn::AttemptEnd;
use gateway_core::usage::WindowStatus;
use gateway_core::usage::probe::Occasion;
use gateway_core::walk::Step;
use jiff::Timestamp;

use super::burn::Start;
use super::facts::{Subject, candidates};
use super::place_of;
use super::running::arrived;
use super::step::{Told, tell};
use crate::config::ProfileSettings;
use crate::effects::Effects;
use crate::store::StoreError;
use crate::store::routing::Seat;
use crate::turn::Turn;

/// What a turn under routing carries.
#[derive(Debug)]
pub struct Rider {
    pub seat: Seat,
    /// The run whose events count: the turn's own name, or that of its continuation.
    pub(super) run: TurnId,
    /// A switch that has not said anything yet.
    pub(super) starting: Option<(String, u32)>,
    /// The limit that had the attempt stopped.
    pub(super) stopped_for: Option<LimitReport>,
    pub(super) draining: bool,
    pub(super) open_tools: HashSet<String>,
    /// When the machine wants to be told that time has passed.
    pub wake: Option<Timestamp>,
    pub(super) start: Option<Start>,
}

/// Where a turn goes.
#[derive(Debug, PartialEq)]
pub enum Next {
    Try(usize),
    /// It is closed, and goes on by itself; the sentence for the person, and until when.
    Park(String, Option<Timestamp>),
    /// Routing has nothing to say: the walk goes on.
    Walk,
}

impl Rider {
    /// Whether a limit had the running attempt stopped.
    pub fn has_stopped(&self) -> bool {
        self.stopped_for.is_some()
    }
}

/// Whether routing decides in this conversation: it is on, and the person has not paused it.
pub async fn speaks(
    profile: &ProfileSettings,
    conversation: &ConversationId,
    effects: &Effects,
) -> Result<bool, StoreError> {
    if !profile.routing.settings.enabled {
        return Ok(false);
    }
    let row = effects.store.routing(conversation).await?;
    Ok(row.is_none_or(|row| row.machine.state != State::Paused))
}

/// Opens the ride of a turn.
pub async fn begin(
    turn: &mut Turn,
    resumes: Option<&TurnId>,
    effects: &Effects,
) -> Result<Next, StoreError> {
    if !turn.routed {
        return Ok(Next::Walk);
    }
    let seat = Seat {
        profile: turn.row.profile.clone(),
        session: turn.row.session.clone(),
        target: turn.row.target.clone(),
        permissions: turn.permissions,
        pending: Some(turn.row.turn.clone()),
    };
    turn.rider = Some(Rider {
        seat,
        run: resumes.unwrap_or(&turn.row.turn).clone(),
        starting: None,
        stopped_for: None,
        draining: false,
        open_tools: HashSet::new(),
        wake: None,
        start: None,
    });
    if let Some(run) = resumes {
        return resumed(turn, run, effects).await;
    }
    tidy(turn, effects).await?;
    freshen(turn, effects).await?;
    let run = turn.row.turn.clone();
    let told = say(turn, &Event::TurnRequested { run }, effects).await?;
    carry_out(turn, told, effects).await
}

/// The run was begun by a step outside of any turn: the end of a wait, or a switch that a restart takes up.
async fn resumed(turn: &mut Turn, run: &TurnId, effects: &Effects) -> Result<Next, StoreError> {
    let row = effects.store.routing(&turn.conversation).await?;
    let Some(machine) = row
        .map(|row| row.machine)
        .filter(|machine| machine.run.as_ref() == Some(run))
    else {
        return Ok(Next::Walk); // the person went another way meanwhile
    };
    let place = match &machine.state {
        State::Switching { episode, to, .. } => {
            if let Some(rider) = &mut turn.rider {
                rider.starting = Some((episode.id.clone(), episode.attempt));
            }
            to
        }
        _ if machine.running => &machine.place,
        _ => return Ok(Next::Walk),
    };
    Ok(position_of(turn, place).map_or(Next::Walk, Next::Try))
}

/// Ends a run that nobody ends any more (its turn could not be kept), and goes back to the chain from a place that is in it
/// no longer. Turns of one lane never overlap, so whatever runs here is a leftover; unless another gateway runs it.
async fn tidy(turn: &Turn, effects: &Effects) -> Result<(), StoreError> {
    let Some(row) = effects.store.routing(&turn.conversation).await? else {
        return Ok(());
    };
    let machine = row.machine;
    if let Some(run) = machine.run.filter(|_| machine.running && !turn.shared) {
        say(turn, &Event::GivenUp { run }, effects).await?;
    }
    if position_of(turn, &machine.place).is_none() {
        let place = first_place(turn);
        say(turn, &Event::Selected { place }, effects).await?;
    }
    Ok(())
}

/// A stale source never triggers; it is asked for the next turn, and nobody waits for it.
async fn freshen(turn: &Turn, effects: &Effects) -> Result<(), StoreError> {
    let row = effects.store.routing(&turn.conversation).await?;
    let place = row.map_or_else(|| first_place(turn), |row| row.machine.place);
    let probes = std::sync::Arc::clone(&effects.probes);
    tokio::spawn(async move { probes.ask([place.subscription], Occasion::Demand).await });
    Ok(())
}

/// What a conversation runs on that routing never looked at: the person's choice, else the chain's head.
fn first_place(turn: &Turn) -> Place {
    let head = turn.chain.entries.first();
    head.map_or_else(
        || Place {
            subscription: gateway_core::ids::SubscriptionId::new("(no route)"),
            model: None,
        },
        |entry| place_of(&entry.route),
    )
}

fn position_of(turn: &Turn, place: &Place) -> Option<usize> {
    let mut entries = turn.chain.entries.iter();
    entries.position(|entry| place_of(&entry.route) == *place)
}

pub(super) async fn say(turn: &Turn, event: &Event, effects: &Effects) -> Result<Told, StoreError> {
    let Some(rider) = &turn.rider else {
        return Err(StoreError::Write(
            "the turn is not under routing".to_owned(),
        ));
    };
    let subject = Subject {
        profile: &turn.profile,
        conversation: &turn.conversation,
        permissions: turn.permissions,
        request: Some(&turn.row.request),
        tool_open: !rider.open_tools.is_empty(),
    };
    tell(&rider.seat, &subject, &first_place(turn), event, effects).await
}

/// Carries out what a step asked for, and what follows from it, until the turn goes somewhere.
async fn carry_out(turn: &mut Turn, told: Told, effects: &Effects) -> Result<Next, StoreError> {
    let mut told = told;
    loop {
        let mut check = None;
        let mut next = Next::Walk;
        for effect in &told.effects {
            match effect {
                Effect::StartTurn { run, on } | Effect::Resume { run, on } => {
                    set_run(turn, run);
                    next = position_of(turn, on).map_or(Next::Walk, Next::Try);
                }
                Effect::Switch { run, to, .. } => {
                    set_run(turn, run);
                    next = match position_of(turn, to) {
                        Some(position) => Next::Try(position),
                        None => Next::Walk,
                    };
                }
                Effect::Check { episode } => check = Some(episode.clone()),
                Effect::WakeAt(at) => set_wake(turn, Some(*at)),
                Effect::CancelWake => set_wake(turn, None),
                _ => {}
            }
        }
        let state = &told.row.machine.state;
        if let (State::Switching { episode, .. }, Some(rider)) = (state, &mut turn.rider) {
            rider.starting = Some((episode.id.clone(), episode.attempt));
        }
        if let Some(episode) = check {
            look_around(turn, effects).await;
            told = say(turn, &Event::Checked { episode }, effects).await?;
            continue;
        }
        let parked = !told.row.machine.running
            && matches!(state, State::WaitingReset { .. } | State::Held { .. });
        if parked {
            let until = match state {
                State::WaitingReset { until, .. } => *until,
                _ => None,
            };
            return Ok(Next::Park(told.banner().unwrap_or_default(), until));
        }
        return Ok(next);
    }
}

/// Looks at candidates whose readings are not fresh, once, all at the same time and not for long.
async fn look_around(turn: &Turn, effects: &Effects) {
    let all = candidates(&turn.profile);
    let all = all.into_iter().map(|route| route.subscription);
    effects.probes.ask(all, Occasion::Demand).await;
}

fn set_run(turn: &mut Turn, run: &TurnId) {
    if let Some(rider) = &mut turn.rider {
        rider.run = run.clone();
    }
}

pub(super) fn set_wake(turn: &mut Turn, at: Option<Timestamp>) {
    if let Some(rider) = &mut turn.rider {
        rider.wake = at;
    }
}

// === after an attempt ===

/// What a failure means to routing.
fn class_of(failure: &Failure) -> LimitClass {
    let whole = matches!(
        failure.scope,
        FailureScope::Account | FailureScope::AccountModel
    );
    match failure.kind {
        FailureKind::RateLimit if whole => LimitClass::UsageLimit,
        FailureKind::Billing => LimitClass::Billing,
        _ => LimitClass::NotQuota,
    }
}

/// Tells the machine how the attempt ended, and where the turn goes.
pub async fn attempt_ended(
    turn: &mut Turn,
    end: &AttemptEnd,
    effects: &Effects,
) -> Result<Next, StoreError> {
    let Some(rider) = &mut turn.rider else {
        return Ok(Next::Walk);
    };
    let (run, stopped_for) = (rider.run.clone(), rider.stopped_for.take());
    if let Some(start) = rider.start.take() {
        start.end(effects).await;
    }
    match end {
        AttemptEnd::Answered(_) => {
            arrived(turn, effects).await?;
            let end = RunEnd::Answered;
            say(turn, &Event::TurnEnded { run, end }, effects).await?;
            Ok(Next::Walk)
        }
        AttemptEnd::Stopped if turn.stop.stop.is_stopped() => {
            say(turn, &Event::GivenUp { run }, effects).await?;
            Ok(Next::Walk)
        }
        AttemptEnd::Stopped => Ok(Next::Walk), // the gateway ends: the next start goes on from here
        AttemptEnd::Failed(_) if stopped_for.is_some() => {
            let end = RunEnd::Stopped;
            let told = say(turn, &Event::TurnEnded { run, end }, effects).await?;
            carry_out(turn, told, effects).await
        }
        AttemptEnd::Failed(failure) => match class_of(failure) {
            LimitClass::NotQuota => not_about_quota(turn, effects).await,
            class => {
                arrived(turn, effects).await?;
                let report = LimitReport {
                    window: failure.window.clone(),
                    status: WindowStatus::Rejected,
                    resets_at: failure.retry_at,
                    ..LimitReport::default()
                };
                let end = RunEnd::Failed { class, report };
                let told = say(turn, &Event::TurnEnded { run, end }, effects).await?;
                carry_out(turn, told, effects).await
            }
        },
    }
}

/// A start that failed looks for the next candidate; anything later is the walk's.
async fn not_about_quota(turn: &mut Turn, effects: &Effects) -> Result<Next, StoreError> {
    let Some((episode, attempt)) = turn.rider.as_mut().and_then(|rider| rider.starting.take())
    else {
        return Ok(Next::Walk);
    };
    let told = say(turn, &Event::SwitchFailed { episode, attempt }, effects).await?;
    carry_out(turn, told, effects).await
}

/// The walk tries another route, or has given up.
pub async fn walked(turn: &Turn, step: &Step, effects: &Effects) -> Result<(), StoreError> {
    let Some(rider) = &turn.rider else {
        return Ok(());
    };
    let run = rider.run.clone();
    let event = match step {
        Step::Try(position) => match turn.route(*position) {
            Some(route) => Event::Walked {
                run,
                place: place_of(route),
            },
            None => return Ok(()),
        },
        Step::Done(_) => return Ok(()),
        Step::GiveUp(_) => Event::GivenUp { run },
    };
    say(turn, &event, effects).await.map(drop)
}

/// The person stopped the turn between two attempts; the end of the gateway is no such word.
pub async fn given_up(turn: &Turn, effects: &Effects) -> Result<(), StoreError> {
    let Some(rider) = &turn.rider else {
        return Ok(());
    };
    if turn.stop.stop.is_stopped() {
        let run = rider.run.clone();
        say(turn, &Event::GivenUp { run }, effects).await?;
    }
    Ok(())
}
