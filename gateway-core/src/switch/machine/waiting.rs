//! Timers and resets: what ends a wait, and what makes it longer.

use jiff::Timestamp;

use super::step::{Step, after};
use super::{AuditKind, BACKOFF_MS, Banner, Cause, Effect, Episode, State};
use crate::ids::TurnId;
use crate::switch::decide::{HoldReason, WaitReason};
use crate::switch::eligibility::Rejection;
use crate::switch::recovery::{self, Recovery, Waiting};

impl Step<'_> {
    pub(super) fn wait(
        &mut self,
        episode: Episode,
        reason: WaitReason,
        until: Option<Timestamp>,
        rejected: Vec<Rejection>,
    ) {
        self.audit(AuditKind::Waited, &episode, rejected);
        let banner = Banner::Waiting { reason, until };
        self.effects.push(Effect::Banner(banner));
        self.arm(episode, until, 0);
    }

    pub(super) fn arm(&mut self, episode: Episode, until: Option<Timestamp>, looks: u32) {
        let wake_at = match until {
            Some(until) => self.with_jitter(until),
            None => after(self.now, backoff_ms(looks)),
        };
        self.effects.push(Effect::WakeAt(wake_at));
        self.machine.state = State::WaitingReset {
            episode,
            until,
            wake_at,
            looks,
        };
    }

    pub(super) fn hold(&mut self, episode: Episode, reason: HoldReason, rejected: Vec<Rejection>) {
        self.audit(AuditKind::Held, &episode, rejected);
        self.effects.push(Effect::Banner(Banner::Held(reason)));
        self.look_later(episode, reason, 0);
    }

    /// A hold for want of a reset looks again from time to time; one that waits for a person does not.
    pub(super) fn look_later(&mut self, episode: Episode, reason: HoldReason, looks: u32) {
        let looks_again = matches!(reason, HoldReason::ResetUnknown | HoldReason::Cap);
        let wake_at = looks_again.then(|| after(self.now, backoff_ms(looks)));
        self.effects.extend(wake_at.map(Effect::WakeAt));
        self.machine.state = State::Held {
            episode,
            reason,
            wake_at,
            looks,
        };
    }

    pub(super) fn tick(&mut self) {
        match self.machine.state.clone() {
            State::Draining { episode, since }
                if self.is_over(since, self.world.settings.drain_ms) =>
            {
                match self.world.thread.approval_pending {
                    true => self.hold(episode, HoldReason::ApprovalPending, Vec::new()),
                    false => self.abort_tool(episode),
                }
            }
            State::Interrupting { episode, since }
                if self.is_over(since, self.world.settings.interrupt_ack_ms) =>
            {
                self.hold(episode, HoldReason::NoInterruptAck, Vec::new());
            }
            State::WaitingReset { wake_at, .. } if wake_at <= self.now => self.look_again(),
            State::Held {
                wake_at: Some(wake_at),
                ..
            } if wake_at <= self.now => self.look_again(),
            _ => {}
        }
    }

    /// A reset may have come early or moved; one that has just passed is left to the thread's own wake-up.
    pub(super) fn new_reading(&mut self) {
        match &self.machine.state {
            State::WaitingReset { until, .. } if until.is_none_or(|until| until > self.now) => {
                self.look_again();
            }
            State::Held {
                wake_at: Some(_), ..
            } => self.look_again(),
            _ => {}
        }
    }

    pub(super) fn look_again(&mut self) {
        let (episode, until, looks, held) = match self.machine.state.clone() {
            State::WaitingReset {
                episode,
                until,
                looks,
                ..
            } => (episode, until, looks, None),
            State::Held {
                episode,
                reason,
                looks,
                ..
            } => (episode, None, looks, Some(reason)),
            _ => return,
        };
        let waiting = Waiting {
            subscription: Some(self.machine.place.subscription.clone()),
            until,
        };
        match recovery::look_again(&self.facts(), Some(&waiting), self.now) {
            Recovery::Resume => self.resume(&episode),
            Recovery::StillExhausted(moved) if Some(moved) != until => {
                self.arm(episode, Some(moved), looks);
            }
            Recovery::Cancel(_) => self.cancel(),
            _ => match held {
                Some(reason) if self.is_due() => {
                    self.look_later(episode, reason, looks.saturating_add(1))
                }
                None if self.is_due() => {
                    let later = until.filter(|until| *until > self.now);
                    self.arm(episode, later, looks.saturating_add(1));
                }
                _ => {}
            },
        }
    }

    // WaitingReset | Held -> Normal
    pub(super) fn resume(&mut self, episode: &Episode) {
        self.audit(AuditKind::Resumed, episode, Vec::new());
        self.machine.state = State::Normal;
        if self.machine.running {
            // It waited in place; the provider goes on by itself.
            return;
        }
        match (&episode.cause, episode.run.clone()) {
            (Cause::BeforeTurn, Some(run)) => self.start(run),
            _ => {
                let run = TurnId::new(format!("quota-resume:{}:{}", episode.id, episode.attempt));
                self.machine.run = Some(run.clone());
                self.machine.running = true;
                let on = self.machine.place.clone();
                self.effects.push(Effect::Resume { run, on });
            }
        }
    }

    pub(super) fn cancel(&mut self) {
        self.leave();
        self.back_to_normal();
    }
}

fn backoff_ms(looks: u32) -> i64 {
    let looks = usize::try_from(looks).unwrap_or(usize::MAX);
    let [.., last] = BACKOFF_MS;
    BACKOFF_MS.get(looks).copied().unwrap_or(last)
}
