//! One step of the machine: a match on state and event, each arm a sentence of the contract's table.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::{Audit, AuditKind, Cause, Effect, Episode, Event, Machine, Place, State};
use crate::ids::TurnId;
use crate::switch::eligibility::Rejection;
use crate::switch::facts::{Facts, LimitReport, Selection, ThreadStatus};

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

/// One step in the making.
pub(super) struct Step<'w> {
    pub(super) machine: Machine,
    pub(super) world: &'w Facts,
    pub(super) now: Timestamp,
    pub(super) effects: Vec<Effect>,
}

impl Step<'_> {
    pub(super) fn take(&mut self, event: &Event) {
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
            Event::Walked { run, place } if self.is_current(run) => self.walked(place),
            Event::GivenUp { run } if self.machine.run.as_ref() == Some(run) => self.given_up(),
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

    pub(super) fn is_current(&self, run: &TurnId) -> bool {
        self.machine.running && self.machine.run.as_ref() == Some(run)
    }

    pub(super) fn is_in(&self, id: &str) -> bool {
        let episode = self.machine.state.episode();
        episode.is_some_and(|episode| episode.id == id)
    }

    pub(super) fn is_at(&self, id: &str, attempt: u32) -> bool {
        let episode = self.machine.state.episode();
        episode.is_some_and(|episode| episode.id == id && episode.attempt == attempt)
    }

    // === the person's own word ===

    /// Ends everything that was set in motion for the run.
    pub(super) fn given_up(&mut self) {
        self.leave();
        self.machine.running = false;
        self.back_to_normal();
    }

    /// Another place serves this turn alone.
    pub(super) fn walked(&mut self, place: &Place) {
        let here = matches!(
            self.machine.state,
            State::Normal | State::Guarded | State::Continued
        );
        if here && *place != self.machine.place {
            let left = std::mem::replace(&mut self.machine.place, place.clone());
            let home = self.machine.home.take().unwrap_or(left);
            self.machine.home = (home != *place).then_some(home);
        }
    }

    pub(super) fn selected(&mut self, place: &Place) {
        if *place != self.machine.place && !self.machine.running {
            self.leave();
            self.machine.place = place.clone();
            self.machine.home = None;
            self.machine.origin = None;
            self.back_to_normal();
        }
    }

    pub(super) fn paused(&mut self, on: bool) {
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

    pub(super) fn close(&mut self) {
        if self.machine.state != State::Closed {
            self.leave();
            self.machine.state = State::Closed;
        }
    }

    /// Ends whatever the current episode had set in motion.
    pub(super) fn leave(&mut self) {
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

    pub(super) fn back_to_normal(&mut self) {
        if !matches!(self.machine.state, State::Paused | State::Closed) {
            self.machine.state = State::Normal;
        }
    }

    // === helpers ===

    /// The facts with what the machine itself knows of the thread.
    pub(super) fn facts(&self) -> Facts {
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

    pub(super) fn episode(&self, cause: Cause, report: Option<&LimitReport>) -> Episode {
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

    pub(super) fn release(&mut self, episode: &Episode) {
        let id = switch_id(episode);
        self.effects.push(Effect::Release { id });
    }

    pub(super) fn audit(&mut self, kind: AuditKind, episode: &Episode, rejected: Vec<Rejection>) {
        self.effects.push(Effect::Audit(Audit {
            kind,
            episode: Some(episode.id.clone()),
            attempt: episode.attempt,
            rejected,
        }));
    }

    pub(super) fn own_doing(&mut self, kind: AuditKind) {
        self.effects.push(Effect::Audit(Audit {
            kind,
            episode: None,
            attempt: 0,
            rejected: Vec::new(),
        }));
    }

    pub(super) fn wake_in(&mut self, ms: i64) {
        // A timer includes its limit.
        let at = after(self.now, ms.saturating_add(1));
        self.effects.push(Effect::WakeAt(at));
    }

    pub(super) fn is_over(&self, since: Timestamp, limit_ms: i64) -> bool {
        let open = self
            .now
            .as_millisecond()
            .saturating_sub(since.as_millisecond());
        open > limit_ms
    }

    pub(super) fn is_due(&self) -> bool {
        match &self.machine.state {
            State::WaitingReset { wake_at, .. } => *wake_at <= self.now,
            State::Held { wake_at, .. } => wake_at.is_some_and(|at| at <= self.now),
            _ => false,
        }
    }

    pub(super) fn with_jitter(&self, reset: Timestamp) -> Timestamp {
        let range = self.world.settings.reset_jitter_ms;
        after(reset, jitter_ms(&self.machine.thread, range))
    }
}

pub(super) fn switch_id(episode: &Episode) -> String {
    format!("quota-switch:{}:{}", episode.id, episode.attempt)
}

pub(super) fn after(at: Timestamp, ms: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(ms))
        .unwrap_or(at)
}

/// A stored place with what the facts know of it.
pub(super) fn selection(facts: &Facts, place: &Place) -> Selection {
    let mut known = facts.chain.iter().chain(&facts.source);
    let same =
        known.find(|entry| entry.subscription == place.subscription && entry.model == place.model);
    let unknown = || Selection::new(place.subscription.as_str(), place.model.as_deref());
    same.cloned().unwrap_or_else(unknown)
}
