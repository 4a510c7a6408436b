//! From a turn that is over to where the thread goes on: the decision, the switch, and what its outcome makes of it.

use jiff::Timestamp;

use super::step::{Step, selection, switch_id};
use super::{AuditKind, Banner, Cause, Effect, Episode, MAX_ATTEMPTS, Place, State};
use crate::ids::TurnId;
use crate::switch::decide::{self, Decision, HoldReason, NoopReason, SwitchReason, Verdict};
use crate::switch::eligibility::Rejection;
use crate::switch::facts::{Facts, Selection};
use crate::switch::recovery::{self, SwitchBack};
use crate::switch::{Board, caps};

impl Step<'_> {
    // === decisions ===

    pub(super) fn decide_soon(&mut self, episode: Episode) {
        let id = episode.id.clone();
        self.effects.push(Effect::Check { episode: id });
        self.machine.state = State::Deciding { episode };
    }

    // Deciding -> Switching | WaitingReset | Held | Normal
    pub(super) fn checked(&mut self) {
        let State::Deciding { episode } = self.machine.state.clone() else {
            return;
        };
        let mut facts = self.facts();
        if episode.failed_starts >= MAX_ATTEMPTS {
            facts.chain.clear();
        }
        let verdict = match &episode.cause {
            Cause::BeforeTurn => decide::before_turn(&facts, self.now),
            Cause::Refused { class, report } => {
                decide::limit_failure(&facts, *class, report, self.now)
            }
        };
        let Verdict { decision, rejected } = verdict;
        let rejected = rejected.unwrap_or_default();
        match decision {
            Decision::Switch(reason, position) => match facts.chain.get(position) {
                Some(entry) => self.begin_switch(episode, entry, reason, rejected, &facts),
                None => self.hold(episode, HoldReason::ResetUnknown, rejected),
            },
            Decision::Wait(reason, until) => self.wait(episode, reason, until, rejected),
            Decision::Hold(reason) => self.hold(episode, reason, rejected),
            Decision::Drain | Decision::Abort | Decision::Interrupt => {
                self.hold(episode, HoldReason::NoInterruptAck, rejected);
            }
            Decision::Proceed(_) | Decision::MarkGuard | Decision::Noop(_) => {
                self.carry_on(&episode, decision);
            }
        }
    }

    /// The episode needs nothing: the parked turn runs, an ended one stays ended.
    pub(super) fn carry_on(&mut self, episode: &Episode, decision: Decision) {
        self.machine.state = State::Normal;
        let parked = episode.cause == Cause::BeforeTurn;
        let superseded = decision == Decision::Noop(NoopReason::Superseded);
        if let Some(run) = episode.run.clone().filter(|_| parked && !superseded) {
            self.start(run);
        }
    }

    pub(super) fn begin_switch(
        &mut self,
        mut episode: Episode,
        entry: &Selection,
        reason: SwitchReason,
        rejected: Vec<Rejection>,
        facts: &Facts,
    ) {
        episode.attempt += 1;
        let to = Place {
            subscription: entry.subscription.clone(),
            model: entry.model.clone(),
        };
        let id = switch_id(&episode);
        self.effects.push(Effect::Reserve {
            id: id.clone(),
            on: to.subscription.clone(),
            pct: expected_burn(facts, entry, self.now),
        });
        let run = TurnId::new(format!("quota-continue:{}:{}", episode.id, episode.attempt));
        self.effects.push(Effect::Switch {
            id,
            run: run.clone(),
            from: self.machine.place.clone(),
            to: to.clone(),
            reason,
        });
        self.audit(AuditKind::Decided, &episode, rejected);
        self.machine.run = Some(run);
        self.machine.state = State::Switching {
            episode,
            to,
            reason,
        };
    }

    // === switches ===

    // Switching -> Verifying
    pub(super) fn switch_accepted(&mut self) {
        if let State::Switching {
            episode,
            to,
            reason,
        } = self.machine.state.clone()
        {
            self.machine.running = true;
            self.machine.state = State::Verifying {
                episode,
                to,
                reason,
            };
        }
    }

    // Switching -> Deciding. A start that failed does not use up the cap.
    pub(super) fn switch_failed(&mut self) {
        if let State::Switching {
            mut episode, to, ..
        } = self.machine.state.clone()
        {
            self.release(&episode);
            self.audit(AuditKind::StartFailed, &episode, Vec::new());
            episode.failed_starts += 1;
            episode.tried.push(to.subscription);
            self.decide_soon(episode);
        }
    }

    // Verifying -> Continued
    pub(super) fn first_output(&mut self) {
        if let State::Verifying {
            episode,
            to,
            reason,
        } = self.machine.state.clone()
        {
            self.arrive(&episode, &to, reason);
        }
    }

    pub(super) fn arrive(&mut self, episode: &Episode, to: &Place, reason: SwitchReason) {
        let from = std::mem::replace(&mut self.machine.place, to.clone());
        let now = self.now;
        let counts = |at: &Timestamp| caps::counted(&[*at], now) > 0;
        self.machine.switches.retain(counts);
        self.machine.switches.push(now);
        self.release(episode);
        self.audit(AuditKind::Switched, episode, Vec::new());
        self.effects.push(Effect::Banner(Banner::Continued {
            from: from.clone(),
            to: to.clone(),
            reason,
        }));
        self.machine.origin = Some(from);
        self.machine.home = None;
        self.machine.state = State::Continued;
    }

    pub(super) fn switch_back(&mut self, command: &str) {
        let known = self.machine.last_undo.as_deref() == Some(command);
        let Some(origin) = self.machine.origin.clone().filter(|_| !known) else {
            return;
        };
        if self.machine.running {
            return;
        }
        let facts = self.facts();
        let target = selection(&facts, &origin);
        let SwitchBack::Switch { still_limited } =
            recovery::switch_back(&facts, &target, false, self.now)
        else {
            return;
        };
        self.leave();
        self.machine.last_undo = Some(command.to_owned());
        self.machine.undone_at = Some(self.now);
        self.machine.origin = None;
        self.machine.place = origin.clone();
        self.machine.home = None;
        self.own_doing(AuditKind::Undone);
        let banner = Banner::SwitchedBack {
            to: origin,
            still_limited,
        };
        self.effects.push(Effect::Banner(banner));
        self.back_to_normal();
    }
}

/// What the turn is expected to burn on its new place: the most over its windows.
fn expected_burn(facts: &Facts, entry: &Selection, now: Timestamp) -> f64 {
    let board = Board::new(facts, now);
    let own = board.looks(entry).into_iter();
    let own = own.filter_map(|look| board.expected_burn(&entry.subscription, look.window));
    let most = own.reduce(f64::max).or(facts.expected_burn_pct);
    most.unwrap_or(0.0).max(0.0)
}
