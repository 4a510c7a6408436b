//! The same route once more: how often this turn has asked it, and the wait before it asks again. Whether it does is
//! decided in [`gateway_core::cooling`]; a stop ends the wait, and what is longer than a moment is shown.

use gateway_core::cooling::{Trouble, WhatNow, what_now};
use gateway_core::failure::Failure;
use gateway_core::notice;
use gateway_core::walk::Walk;
use jiff::{SignedDuration, Timestamp};
use tracing::info;

use super::Turn;
use crate::clock;
use crate::effects::Effects;

/// A wait shorter than this is not worth a line.
const A_MOMENT: SignedDuration = SignedDuration::from_secs(3);

/// What a turn remembers of asking routes again.
#[derive(Debug, Default)]
pub struct Pace {
    position: Option<usize>,
    retries: u32,
    began: Option<Timestamp>,
    /// Waited so far, on all routes.
    waited: SignedDuration,
}

impl Pace {
    /// An attempt begins.
    pub fn begins(&mut self, position: usize, now: Timestamp) {
        if self.position == Some(position) {
            self.retries += 1;
        } else {
            (self.position, self.retries) = (Some(position), 0);
        }
        self.began = Some(now);
    }

    /// What was asked was another session: the next attempt on this route is its first.
    pub fn forget(&mut self) {
        self.position = None;
    }
}

/// When the route that just failed is asked again; `None` = the walk goes on.
pub fn again(turn: &Turn, walk: &Walk, failure: &Failure, effects: &Effects) -> Option<Timestamp> {
    let now = effects.now();
    let allowed = SignedDuration::try_from(turn.profile.attempt_deadline);
    let trouble = Trouble {
        failure,
        left_traces: turn.journal.attempt_has_effects(),
        retries: turn.pace.retries,
        others_failed: walk.any_failed(),
        others_left: walk.others_left(),
        took: turn
            .pace
            .began
            .map_or(SignedDuration::ZERO, |began| now.duration_since(began)),
        time_left: allowed
            .unwrap_or(SignedDuration::MAX)
            .saturating_sub(turn.pace.waited),
    };
    let seed = u64::try_from(uuid::Uuid::new_v4().as_u128() >> 64).unwrap_or_default();
    match what_now(&trouble, seed, now) {
        WhatNow::Again(at) => {
            info!(turn = %turn.row.turn, kind = ?failure.kind, detail = %failure.detail, until = %at, "attempt failed; the same route is asked again");
            Some(at)
        }
        WhatNow::On => None,
    }
}

/// Waits for that instant, or until the turn is asked to stop.
pub async fn wait(turn: &mut Turn, position: usize, at: Timestamp, effects: &Effects) {
    let now = effects.now();
    let wait = at.duration_since(now);
    turn.pace.waited = turn.pace.waited.saturating_add(wait);
    let subscription = turn
        .route(position)
        .map(|route| route.subscription.as_str().to_owned())
        .unwrap_or_default();
    let shown = if wait >= A_MOMENT {
        let line = notice::waiting_line(&subscription, at, now);
        Some(turn.voice.tool(None, line).await)
    } else {
        None
    };
    let (stop, shutdown) = (turn.stop.stop.clone(), turn.stop.shutdown.clone());
    tokio::select! {
        () = clock::wait_until(&*effects.clock, at) => {}
        () = stop.stopped() => return,
        () = shutdown.stopped() => return,
    }
    if let Some(line) = shown {
        let over = notice::waited_line(&subscription);
        turn.voice.tool(Some(line), over).await;
    }
}
