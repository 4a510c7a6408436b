//! The person's own word: another route, a pause, taking the last switch back. It outranks whatever routing had in mind.

use commands::RoutingView;
use gateway_core::banner;
use gateway_core::ids::TurnId;
use gateway_core::message::Inbound;
use gateway_core::switch::caps;
use gateway_core::switch::machine::{Effect, Event, State};

use super::facts::Subject;
use super::place_of;
use super::step::{Told, tell};
use crate::effects::Effects;
use crate::store::routing::Seat;
use crate::store::{Lane, StoreError};

/// What commands are told of routing; `None` = it is off for the profile.
pub async fn view(
    lane: &Lane,
    conversation: &gateway_core::ids::ConversationId,
    effects: &Effects,
) -> Result<Option<RoutingView>, StoreError> {
    let profile = effects.profile(&lane.profile);
    let settings = &profile.routing.settings;
    if !settings.enabled {
        return Ok(None);
    }
    let mut view = RoutingView {
        switches: (0, settings.cap_thread),
        ..RoutingView::default()
    };
    let Some(row) = effects.store.routing(conversation).await? else {
        return Ok(Some(view));
    };
    let machine = &row.machine;
    view.paused = machine.state == State::Paused;
    view.came_from = machine.origin.as_ref().map(banner::named);
    view.switches.0 = caps::counted(&machine.switches, effects.now());
    if matches!(
        machine.state,
        State::WaitingReset { .. } | State::Held { .. }
    ) {
        view.waits_for = Some(banner::named(&machine.place));
        view.until = row.wake_at();
    }
    Ok(Some(view))
}

/// The person chose a route with `/model`, or went back to the chain.
pub async fn chose(lane: &Lane, inbound: &Inbound, effects: &Effects) -> Result<(), StoreError> {
    let session = effects.store.session(lane, effects.now()).await?;
    let profile = effects.profile(&lane.profile);
    let route = session.chosen.as_ref().or(profile.chain.first());
    let Some(place) = route.map(place_of) else {
        return Ok(());
    };
    say(lane, inbound, &Event::Selected { place }, effects)
        .await
        .map(drop)
}

/// `/pause` and `/pause off`.
pub async fn pause(
    on: bool,
    lane: &Lane,
    inbound: &Inbound,
    effects: &Effects,
) -> Result<(), StoreError> {
    say(lane, inbound, &Event::Paused(on), effects)
        .await
        .map(drop)
}

/// Takes the last automatic switch back; the sentence to show. The same press delivered twice counts once.
pub async fn switch_back(
    lane: &Lane,
    inbound: &Inbound,
    effects: &Effects,
) -> Result<String, StoreError> {
    let command = inbound.id.as_str().to_owned();
    let Some(told) = say(lane, inbound, &Event::SwitchBack { command }, effects).await? else {
        return Ok(NOTHING_TO_TAKE_BACK.to_owned());
    };
    let done = told
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::Banner(_)));
    Ok(match done {
        true => told.banner().unwrap_or_default(),
        false => NOTHING_TO_TAKE_BACK.to_owned(),
    })
}

const NOTHING_TO_TAKE_BACK: &str = "There is no automatic switch to take back here.";

/// `None` = routing is off for the profile.
async fn say(
    lane: &Lane,
    inbound: &Inbound,
    event: &Event,
    effects: &Effects,
) -> Result<Option<Told>, StoreError> {
    let profile = effects.profile(&lane.profile);
    if !profile.routing.settings.enabled {
        return Ok(None);
    }
    let session = effects.store.session(lane, effects.now()).await?;
    let known = effects.store.routing(&session.conversation).await?;
    let seat = known.map_or_else(|| seat_of(inbound, effects), |row| row.seat);
    let Some(head) = profile.chain.first() else {
        return Ok(None);
    };
    let subject = Subject {
        profile: &profile,
        conversation: &session.conversation,
        permissions: seat.permissions,
        request: None,
        tool_open: false,
    };
    tell(&seat, &subject, &place_of(head), event, effects)
        .await
        .map(Some)
}

fn seat_of(inbound: &Inbound, effects: &Effects) -> Seat {
    Seat {
        profile: inbound.profile.clone(),
        session: inbound.session.clone(),
        target: inbound.target.clone(),
        permissions: crate::intake::permissions(inbound, effects),
        pending: None::<TurnId>,
    }
}
