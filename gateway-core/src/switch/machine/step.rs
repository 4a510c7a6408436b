//! One step of the machine: a match on state and event, each arm a sentence of the contract's table.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::{
    Audit, AuditKind, BACKOFF_MS, Banner, Cause, Effect, Episode, Event, MAX_ATTEMPTS, Machine,
    Place, RunEnd, State,
};
use crate::ids::TurnId;
use crate::switch::decide::{
    self, Decision, HoldReason, NoopReason, SwitchReason, Verdict, WaitReason,
};
use crate::switch::eligibility::Rejection;
use crate::switch::facts::{Facts, LimitClass, LimitReport, Selection, ThreadStatus};
use crate::switch::recovery::{self, Recovery, SwitchBack, Waiting};
use crate::switch::{Board, caps};
use crate::usage::blocking;

/// Takes one event. `world` is everything but the thread's own history, which the machine keeps.
pub fn step(
    machine: &Machine,
    event: &Event,
    world: &Facts,
    now: Timestamp,
) -> (Machine, Vec<Effect>) {
    let mut step = Step {
        machine: machine.clone(),
        world,
        now,
        effects: Vec::new(),
    };
    step.take(event);
    (step.machine, step.effects)
}

/// The name of an episode: the same limit of the same run has the same one, on every machine and after every restart.
pub fn episode_id(machine: &Machine, group: &str, report: Option<&LimitReport>) -> String {
    let mut hash = Sha256::new();
    let window = report.and_then(|report| report.window.as_deref());
    let reset = report.and_then(|report| report.resets_at);
    let run = machine.run.as_ref().map_or("", TurnId::as_str);
    for part in [machine.thread.as_str(), run, group, window.unwrap_or("")] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(reset.map_or(0, Timestamp::as_millisecond).to_be_bytes());
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// How long after a reset this thread wakes: always the same, and spread over all threads.
pub fn jitter_ms(thread: &str, (least, most): (i64, i64)) -> i64 {
    let digest = Sha256::digest(thread.as_bytes());
    let [a, b, ..] = digest.as_slice() else {
        return least;
    };
    let span = most.saturating_sub(least).max(0);
    let share = i64::from(u16::from_be_bytes([*a, *b]));
    least.saturating_add(span.saturating_mul(share) / i64::from(u16::MAX))
}

struct Step<'w> {
    machine: Machine,
    world: &'w Facts,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Step<'_> {
    fn take(&mut self, event: &Event) {
        match event {
            Event::TurnRequested { run } => self.turn_requested(run),
            Event::LimitReported { run, report } if self.is_current(run) => {
                self.limit_reported(report);
            }
            Event::BoundaryReached { run } if self.is_current(run) => self.boundary_reached(),
            Event::InterruptAcked { run } if self.is_current(run) => self.interrupted(),
            Event::TurnEnded { run, end } if self.is_current(run) => self.turn_ended(end),
            Event::Checked { episode } if self.is_in(episode) => self.checked(),
            Event::SwitchAccepted { episode, attempt } if self.is_at(episode, *attempt) => {
                self.switch_accepted();
            }
            Event::SwitchFailed { episode, attempt } if self.is_at(episode, *attempt) => {
                self.switch_failed();
            }
            Event::FirstOutput { run } if self.is_current(run) => self.first_output(),
            Event::Tick => self.tick(),
            Event::NewReading => self.new_reading(),
            Event::Selected { place } => self.selected(place),
            Event::SwitchBack { command } => self.switch_back(command),
            Event::Paused(on) => self.paused(*on),
            Event::Archived => self.close(),
            // An older run, an older episode: somebody else has decided since.
            _ => {}
        }
    }

    fn is_current(&self, run: &TurnId) -> bool {
        self.machine.running && self.machine.run.as_ref() == Some(run)
    }

    fn is_in(&self, id: &str) -> bool {
        let episode = self.machine.state.episode();
        episode.is_some_and(|episode| episode.id == id)
    }

    fn is_at(&self, id: &str, attempt: u32) -> bool {
        let episode = self.machine.state.episode();
        episode.is_some_and(|episode| episode.id == id && episode.attempt == attempt)
    }

    // === turns ===

    // Normal | Guarded | Continued | WaitingReset | Held -> Normal | Deciding. A person's own message ends every wait.
    fn turn_requested(&mut self, run: &TurnId) {
        let same = self.machine.run.as_ref() == Some(run);
        if self.machine.running || same {
            return;
        }
        self.leave();
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

    fn start(&mut self, run: TurnId) {
        self.machine.running = true;
        self.machine.run = Some(run.clone());
        if !matches!(self.machine.state, State::Paused | State::Closed) {
            self.machine.state = State::Normal;
        }
        let on = self.machine.place.clone();
        self.effects.push(Effect::StartTurn { run, on });
    }

    // Normal | Guarded | Continued | Verifying -> Guarded | WaitingReset | Held | Draining | Interrupting
    fn limit_reported(&mut self, report: &LimitReport) {
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
    fn stop_for(&mut self, episode: Episode, decision: Decision, rejected: Vec<Rejection>) {
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

    fn interrupt(&mut self, episode: Episode) {
        if let Some(run) = self.machine.run.clone() {
            self.effects.push(Effect::Interrupt { run });
        }
        self.wake_in(self.world.settings.interrupt_ack_ms);
        let since = self.now;
        self.machine.state = State::Interrupting { episode, since };
    }

    fn abort_tool(&mut self, episode: Episode) {
        if let Some(run) = self.machine.run.clone() {
            self.effects.push(Effect::AbortTool { run });
        }
        self.audit(AuditKind::AbortedTool, &episode, Vec::new());
        self.interrupt(episode);
    }

    // Draining -> Interrupting; Held for an approval -> whatever is open now.
    fn boundary_reached(&mut self) {
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
    fn interrupted(&mut self) {
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

    fn turn_ended(&mut self, end: &RunEnd) {
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

    // === decisions ===

    fn decide_soon(&mut self, episode: Episode) {
        let id = episode.id.clone();
        self.effects.push(Effect::Check { episode: id });
        self.machine.state = State::Deciding { episode };
    }

    // Deciding -> Switching | WaitingReset | Held | Normal
    fn checked(&mut self) {
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
    fn carry_on(&mut self, episode: &Episode, decision: Decision) {
        self.machine.state = State::Normal;
        let parked = episode.cause == Cause::BeforeTurn;
        let superseded = decision == Decision::Noop(NoopReason::Superseded);
        if let Some(run) = episode.run.clone().filter(|_| parked && !superseded) {
            self.start(run);
        }
    }

    fn begin_switch(
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

    fn wait(
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

    fn arm(&mut self, episode: Episode, until: Option<Timestamp>, looks: u32) {
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

    fn hold(&mut self, episode: Episode, reason: HoldReason, rejected: Vec<Rejection>) {
        self.audit(AuditKind::Held, &episode, rejected);
        self.effects.push(Effect::Banner(Banner::Held(reason)));
        self.look_later(episode, reason, 0);
    }

    /// A hold for want of a reset looks again from time to time; one that waits for a person does not.
    fn look_later(&mut self, episode: Episode, reason: HoldReason, looks: u32) {
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

    // === switches ===

    // Switching -> Verifying
    fn switch_accepted(&mut self) {
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
    fn switch_failed(&mut self) {
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
    fn first_output(&mut self) {
        if let State::Verifying {
            episode,
            to,
            reason,
        } = self.machine.state.clone()
        {
            self.arrive(&episode, &to, reason);
        }
    }

    fn arrive(&mut self, episode: &Episode, to: &Place, reason: SwitchReason) {
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
        self.machine.state = State::Continued;
    }

    fn switch_back(&mut self, command: &str) {
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
        self.own_doing(AuditKind::Undone);
        let banner = Banner::SwitchedBack {
            to: origin,
            still_limited,
        };
        self.effects.push(Effect::Banner(banner));
        self.back_to_normal();
    }

    // === waiting ===

    fn tick(&mut self) {
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
    fn new_reading(&mut self) {
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

    fn look_again(&mut self) {
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
    fn resume(&mut self, episode: &Episode) {
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

    fn cancel(&mut self) {
        self.leave();
        self.back_to_normal();
    }

    // === the person's own word ===

    fn selected(&mut self, place: &Place) {
        if *place != self.machine.place && !self.machine.running {
            self.leave();
            self.machine.place = place.clone();
            self.machine.origin = None;
            self.back_to_normal();
        }
    }

    fn paused(&mut self, on: bool) {
        match (on, &self.machine.state) {
            (true, State::Paused | State::Closed) => {}
            (true, _) => {
                self.leave();
                self.own_doing(AuditKind::Paused);
                self.machine.state = State::Paused;
            }
            (false, State::Paused) => self.machine.state = State::Normal,
            (false, _) => {}
        }
    }

    fn close(&mut self) {
        if self.machine.state != State::Closed {
            self.leave();
            self.machine.state = State::Closed;
        }
    }

    /// Ends whatever the current episode had set in motion.
    fn leave(&mut self) {
        let state = self.machine.state.clone();
        match &state {
            State::WaitingReset { episode, .. } | State::Held { episode, .. } => {
                self.effects.push(Effect::CancelWake);
                self.audit(AuditKind::Cancelled, episode, Vec::new());
            }
            State::Switching { episode, .. } => {
                let id = switch_id(episode);
                self.effects.push(Effect::CancelSwitch { id });
                self.release(episode);
                self.audit(AuditKind::Cancelled, episode, Vec::new());
            }
            // It was started: the person's word comes on top of a switch that happened.
            State::Verifying {
                episode,
                to,
                reason,
            } => self.arrive(episode, to, *reason),
            _ => {}
        }
    }

    fn back_to_normal(&mut self) {
        if !matches!(self.machine.state, State::Paused | State::Closed) {
            self.machine.state = State::Normal;
        }
    }

    // === helpers ===

    /// The facts with what the machine itself knows of the thread.
    fn facts(&self) -> Facts {
        let mut facts = self.world.clone();
        facts.source = Some(selection(&facts, &self.machine.place));
        facts
            .thread
            .auto_switches
            .clone_from(&self.machine.switches);
        facts.thread.undone_at = self.machine.undone_at;
        facts.thread.status = match self.machine.state {
            State::Paused => ThreadStatus::Paused,
            State::Closed => ThreadStatus::Archived,
            _ => facts.thread.status,
        };
        let episode = self.machine.state.episode();
        facts.thread.tried = episode.map_or(Vec::new(), |episode| episode.tried.clone());
        if !self.machine.running {
            facts.thread.tool_in_flight_ms = None;
            facts.thread.children_running = false;
            facts.thread.approval_pending = false;
        }
        facts
    }

    fn episode(&self, cause: Cause, report: Option<&LimitReport>) -> Episode {
        let group = self.world.groups.head(&self.machine.place.subscription);
        Episode {
            id: episode_id(&self.machine, group, report),
            run: self.machine.run.clone(),
            cause,
            attempt: 0,
            failed_starts: 0,
            tried: vec![self.machine.place.subscription.clone()],
        }
    }

    fn release(&mut self, episode: &Episode) {
        let id = switch_id(episode);
        self.effects.push(Effect::Release { id });
    }

    fn audit(&mut self, kind: AuditKind, episode: &Episode, rejected: Vec<Rejection>) {
        self.effects.push(Effect::Audit(Audit {
            kind,
            episode: Some(episode.id.clone()),
            attempt: episode.attempt,
            rejected,
        }));
    }

    fn own_doing(&mut self, kind: AuditKind) {
        self.effects.push(Effect::Audit(Audit {
            kind,
            episode: None,
            attempt: 0,
            rejected: Vec::new(),
        }));
    }

    fn wake_in(&mut self, ms: i64) {
        // A timer includes its limit.
        let at = after(self.now, ms.saturating_add(1));
        self.effects.push(Effect::WakeAt(at));
    }

    fn is_over(&self, since: Timestamp, limit_ms: i64) -> bool {
        let open = self
            .now
            .as_millisecond()
            .saturating_sub(since.as_millisecond());
        open > limit_ms
    }

    fn is_due(&self) -> bool {
        match &self.machine.state {
            State::WaitingReset { wake_at, .. } => *wake_at <= self.now,
            State::Held { wake_at, .. } => wake_at.is_some_and(|at| at <= self.now),
            _ => false,
        }
    }

    fn with_jitter(&self, reset: Timestamp) -> Timestamp {
        let range = self.world.settings.reset_jitter_ms;
        after(reset, jitter_ms(&self.machine.thread, range))
    }
}

fn switch_id(episode: &Episode) -> String {
    format!("quota-switch:{}:{}", episode.id, episode.attempt)
}

fn backoff_ms(looks: u32) -> i64 {
    let looks = usize::try_from(looks).unwrap_or(usize::MAX);
    let [.., last] = BACKOFF_MS;
    BACKOFF_MS.get(looks).copied().unwrap_or(last)
}

fn after(at: Timestamp, ms: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(ms))
        .unwrap_or(at)
}

/// A stored place with what the facts know of it.
fn selection(facts: &Facts, place: &Place) -> Selection {
    let mut known = facts.chain.iter().chain(&facts.source);
    let same =
        known.find(|entry| entry.subscription == place.subscription && entry.model == place.model);
    let unknown = || Selection::new(place.subscription.as_str(), place.model.as_deref());
    same.cloned().unwrap_or_else(unknown)
}

/// What the turn is expected to burn on its new place: the most over its windows.
fn expected_burn(facts: &Facts, entry: &Selection, now: Timestamp) -> f64 {
    let board = Board::new(facts, now);
    let own = board.looks(entry).into_iter();
    let own = own.filter_map(|look| board.expected_burn(&entry.subscription, look.window));
    let most = own.reduce(f64::max).or(facts.expected_burn_pct);
    most.unwrap_or(0.0).max(0.0)
}
