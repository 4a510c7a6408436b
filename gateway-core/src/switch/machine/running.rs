//! A turn from its request to its end, and what a limit in the middle of it leads to.

use super::step::Step;
use super::{AuditKind, Cause, Effect, Episode, RunEnd, State};
use crate::ids::TurnId;
use crate::switch::decide::{self, Decision, HoldReason};
use crate::switch::eligibility::Rejection;
use crate::switch::facts::{LimitClass, LimitReport};
use crate::usage::blocking;

impl Step<'_> {
    // Normal | Guarded | Continued | WaitingReset | Held -> Normal | Deciding. A person's own message ends every wait.
    pub(super) fn turn_requested(&mut self, run: &TurnId) {
        let same = self.machine.run.as_ref() == Some(run);
        if self.machine.running || same {
            return;
        }
        self.leave();
        if let Some(home) = self.machine.home.take() {
            self.machine.place = home;
        }
        self.machine.run = Some(run.clone());
        let calm = !matches!(self.machine.state, State::Paused | State::Closed);
        let facts = self.facts();
        match decide::before_turn(&facts, self.now).decision {
            Decision::Proceed(_) | Decision::Noop(_) => self.start(run.clone()),
            _ if calm => {
                let episode = self.episode(Cause::BeforeTurn, None);
                self.decide_soon(episode);
            }
            _ => self.start(run.clone()),
        }
    }

    pub(super) fn start(&mut self, run: TurnId) {
        self.machine.running = true;
        self.machine.run = Some(run.clone());
        if !matches!(self.machine.state, State::Paused | State::Closed) {
            self.machine.state = State::Normal;
        }
        let on = self.machine.place.clone();
        self.effects.push(Effect::StartTurn { run, on });
    }

    // Normal | Guarded | Continued | Verifying -> Guarded | WaitingReset | Held | Draining | Interrupting
    pub(super) fn limit_reported(&mut self, report: &LimitReport) {
        let mut tried = Vec::new();
        match self.machine.state.clone() {
            State::Normal | State::Guarded | State::Continued => {}
            State::Verifying {
                episode,
                to,
                reason,
            } if blocking::refuses(report.status, report.used_pct) => {
                self.arrive(&episode, &to, reason);
                tried = episode.tried;
            }
            _ => return,
        }
        let verdict = decide::mid_turn(&self.facts(), report, self.now);
        let cause = Cause::Refused {
            class: LimitClass::UsageLimit,
            report: report.clone(),
        };
        match verdict.decision {
            Decision::MarkGuard => {
                if matches!(self.machine.state, State::Normal | State::Continued) {
                    self.machine.state = State::Guarded;
                }
            }
            Decision::Noop(_) | Decision::Proceed(_) | Decision::Switch(..) => {}
            decision => {
                let mut episode = self.episode(cause, Some(report));
                episode.tried.extend(tried);
                self.stop_for(episode, decision, verdict.rejected.unwrap_or_default());
            }
        }
    }

    /// Brings a running turn to a boundary, or lets it wait where it is.
    pub(super) fn stop_for(
        &mut self,
        episode: Episode,
        decision: Decision,
        rejected: Vec<Rejection>,
    ) {
        match decision {
            Decision::Drain => {
                self.audit(AuditKind::Drained, &episode, rejected);
                self.wake_in(self.world.settings.drain_ms);
                let since = self.now;
                self.machine.state = State::Draining { episode, since };
            }
            Decision::Abort => self.abort_tool(episode),
            Decision::Wait(reason, until) => self.wait(episode, reason, until, rejected),
            Decision::Hold(reason) => self.hold(episode, reason, rejected),
            _ => self.interrupt(episode),
        }
    }

    pub(super) fn interrupt(&mut self, episode: Episode) {
        if let Some(run) = self.machine.run.clone() {
            self.effects.push(Effect::Interrupt { run });
        }
        self.wake_in(self.world.settings.interrupt_ack_ms);
        let since = self.now;
        self.machine.state = State::Interrupting { episode, since };
    }

    pub(super) fn abort_tool(&mut self, episode: Episode) {
        if let Some(run) = self.machine.run.clone() {
            self.effects.push(Effect::AbortTool { run });
        }
        self.audit(AuditKind::AbortedTool, &episode, Vec::new());
        self.interrupt(episode);
    }

    // Draining -> Interrupting; Held for an approval -> whatever is open now.
    pub(super) fn boundary_reached(&mut self) {
        let episode = match &self.machine.state {
            State::Draining { episode, .. } => episode.clone(),
            State::Held {
                episode,
                reason: HoldReason::ApprovalPending,
                ..
            } => episode.clone(),
            _ => return,
        };
        let thread = &self.world.thread;
        if thread.approval_pending {
            return;
        }
        if thread.tool_in_flight_ms.is_none() && !thread.children_running {
            self.interrupt(episode);
        } else if matches!(self.machine.state, State::Held { .. }) {
            self.stop_for(episode, Decision::Drain, Vec::new());
        }
    }

    // Interrupting | Held without an ack -> Deciding
    pub(super) fn interrupted(&mut self) {
        let episode = match &self.machine.state {
            State::Interrupting { episode, .. } => episode.clone(),
            State::Held {
                episode,
                reason: HoldReason::NoInterruptAck,
                ..
            } => episode.clone(),
            _ => return,
        };
        self.machine.running = false;
        self.decide_soon(episode);
    }

    pub(super) fn turn_ended(&mut self, end: &RunEnd) {
        self.machine.running = false;
        let state = self.machine.state.clone();
        let refused = match end {
            RunEnd::Failed { class, report } => Some(Cause::Refused {
                class: *class,
                report: report.clone(),
            }),
            RunEnd::Answered | RunEnd::Stopped => None,
        };
        match (state, refused) {
            (State::Paused | State::Closed, _) => {}
            (
                State::Verifying {
                    mut episode,
                    to,
                    reason,
                },
                Some(cause),
            ) => {
                // The new place was out as well. It counts, and it is tried.
                self.arrive(&episode, &to, reason);
                episode.tried.push(to.subscription);
                episode.cause = cause;
                self.decide_soon(episode);
            }
            (
                State::Verifying {
                    episode,
                    to,
                    reason,
                },
                None,
            ) => {
                self.arrive(&episode, &to, reason);
            }
            (
                State::Interrupting { episode, .. }
                | State::Held {
                    episode,
                    reason: HoldReason::NoInterruptAck,
                    ..
                },
                cause,
            ) if *end != RunEnd::Answered => {
                let cause = cause.unwrap_or_else(|| episode.cause.clone());
                self.decide_soon(Episode { cause, ..episode });
            }
            (state, Some(cause)) => {
                let Cause::Refused { report, .. } = &cause else {
                    return;
                };
                let known = state.episode().cloned();
                let report = report.clone();
                let episode = known.map(|known| Episode {
                    cause: cause.clone(),
                    ..known
                });
                let episode = episode.unwrap_or_else(|| self.episode(cause, Some(&report)));
                self.leave();
                self.decide_soon(episode);
            }
            (State::Guarded, None) => {}
            (_, None) => {
                self.leave();
                self.machine.state = State::Normal;
            }
        }
    }
}
