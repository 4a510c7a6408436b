//! The three moments at which a conversation may move by itself: a turn ended in a refusal ([`limit_failure`]), a limit is
//! reported while one runs ([`mid_turn`]), the next one would not fit ([`before_turn`]). Each is a list of questions; the
//! first that answers, answers.
//!
//! A refusal or a full window is a fact and may wait, move or spend within the person's limits. A prediction is a guess: it
//! may only move, for free, to a place with clearly more room; everything else lets the turn run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::caps::{self, CAP_PERIOD_MS};
use super::eligibility::{Candidates, Purpose, Rejection};
use super::evidence::Board;
use super::facts::{Facts, LimitClass, LimitReport, Selection, ThreadStatus};
use super::look::Look;
use super::wait::{self, Outage, Spent};
use crate::usage::WindowStatus;
use crate::usage::blocking::{self, TOLERANCE};
use crate::usage::burn::{is_above, projected};

/// What to do with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Run it where it is.
    Proceed(ProceedReason),
    /// Continue on the chain's entry at this position.
    Switch(SwitchReason, usize),
    /// Continue here at this instant: the raw reset, without jitter. `None` = a wait whose end is found by looking again.
    Wait(WaitReason, Option<Timestamp>),
    /// A person must decide, or nobody knows until when.
    Hold(HoldReason),
    /// Let the open tool end, then decide.
    Drain,
    /// The drain timer is over: stop the tool, its outcome is unknown.
    Abort,
    /// Stop the turn at once, then decide.
    Interrupt,
    /// Look before the next turn.
    MarkGuard,
    Noop(NoopReason),
}

/// Why a turn runs where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProceedReason {
    WithinBudget,
    NoFreshReading,
    /// At worst the turn waits some minutes.
    ResetImminent,
    Cap,
    NoCandidate,
    /// The person took the last switch back.
    Undone,
    Disabled,
    Inactive(ThreadStatus),
}

/// Why the work moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    Exhausted,
    Predicted,
    /// Nearly full, and no samples to predict with.
    HardGuard,
}

/// Why the work waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    ResetImminent,
    NoCandidate,
    Cap,
    CheaperThanPaid,
    /// Routing is off; the thread resumes at the reset as it would without it.
    ResetRecovery,
}

/// Why the work is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    ResetUnknown,
    Cap,
    ApprovalPending,
    /// The old turn may still be writing: never start a second one beside it.
    NoInterruptAck,
}

/// Why nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoopReason {
    NotQuota,
    Superseded,
    Inactive(ThreadStatus),
    Disabled,
    Allowed,
    Overage,
    NotApplicable,
    TurnCompleted,
    Interrupting,
}

/// A decision with everybody who was considered for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// The chain's entries that were not eligible; `None` = no candidate was looked at.
    pub rejected: Option<Vec<Rejection>>,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            rejected: None,
        }
    }
}

/// Decides after a turn ended in a failure.
pub fn limit_failure(
    facts: &Facts,
    class: LimitClass,
    report: &LimitReport,
    now: Timestamp,
) -> Verdict {
    if let Some(reason) = out_of_hands(facts) {
        return Decision::Noop(reason).into();
    }
    if class == LimitClass::NotQuota {
        return Decision::Noop(NoopReason::NotQuota).into();
    }
    let board = Board::new(facts, now);
    let outage = outage_of(&board, report);
    if !facts.settings.enabled {
        return match facts.settings.auto_resume {
            true => wait_or_hold(WaitReason::ResetRecovery, HoldReason::ResetUnknown, outage),
            false => Decision::Noop(NoopReason::Disabled),
        }
        .into();
    }
    if outage.ends_within(facts.settings.wait_within_ms, &board) {
        return Decision::Wait(WaitReason::ResetImminent, outage.until).into();
    }
    match at_a_boundary(facts) {
        Err(not_yet) => not_yet.into(),
        Ok(()) => move_or_wait(&board, outage),
    }
}

/// Decides on a limit reported while a turn runs.
pub fn mid_turn(facts: &Facts, report: &LimitReport, now: Timestamp) -> Verdict {
    if facts.thread.superseded {
        return Decision::Noop(NoopReason::Superseded).into();
    }
    if report.turn_completed {
        return Decision::Noop(NoopReason::TurnCompleted).into();
    }
    if let Some(reason) = out_of_hands(facts) {
        return Decision::Noop(reason).into();
    }
    let settings = &facts.settings;
    if !settings.enabled {
        return Decision::Noop(NoopReason::Disabled).into();
    }
    if let Some(waited) = facts.thread.interrupting_ms {
        return match waited > settings.interrupt_ack_ms {
            true => Decision::Hold(HoldReason::NoInterruptAck),
            false => Decision::Noop(NoopReason::Interrupting),
        }
        .into();
    }
    let concerned = |source| wait::concerns(report, source);
    if !facts.source.as_ref().is_none_or(concerned) {
        return Decision::Noop(NoopReason::NotApplicable).into();
    }
    if !blocking::refuses(report.status, report.used_pct) {
        return match report.status {
            WindowStatus::Warning => Decision::MarkGuard,
            _ => Decision::Noop(NoopReason::Allowed),
        }
        .into();
    }
    if report.overage_offered && settings.overage_allowed {
        return Decision::Noop(NoopReason::Overage).into();
    }
    let board = Board::new(facts, now);
    let outage = outage_of(&board, report);
    if outage.ends_within(settings.wait_within_ms, &board) {
        return Decision::Wait(WaitReason::ResetImminent, outage.until).into();
    }
    match at_a_boundary(facts) {
        Err(not_yet) => not_yet.into(),
        Ok(()) => Decision::Interrupt.into(),
    }
}

/// Decides before a turn starts.
pub fn before_turn(facts: &Facts, now: Timestamp) -> Verdict {
    let thread = &facts.thread;
    if thread.superseded {
        return Decision::Noop(NoopReason::Superseded).into();
    }
    if thread.status != ThreadStatus::Active {
        return Decision::Proceed(ProceedReason::Inactive(thread.status)).into();
    }
    if !facts.settings.enabled {
        return Decision::Proceed(ProceedReason::Disabled).into();
    }
    let board = Board::new(facts, now);
    let looks = facts.source.as_ref().map(|source| board.looks(source));
    let mut usable = looks.unwrap_or_default();
    usable.retain(Look::is_usable);
    let nearly_gone = facts.settings.weekly_nearly_gone_pct;
    let spent: Vec<_> = usable.iter().filter(|look| look.exhausted).collect();
    if !spent.is_empty() {
        let spent: Vec<Spent<'_>> = spent.into_iter().map(Spent::from).collect();
        let outage = Outage::of(&spent, &usable, nearly_gone);
        return match outage.ends_within(facts.settings.wait_within_ms, &board) {
            true => Decision::Wait(WaitReason::ResetImminent, outage.until).into(),
            false => move_or_wait(&board, outage),
        };
    }
    predict(&board, &usable)
}

/// Whether the next turn fits, and what if it does not. `usable` windows have room now.
fn predict(board: &Board<'_>, usable: &[Look<'_>]) -> Verdict {
    let facts = board.facts;
    let settings = &facts.settings;
    let Some(fullest) = usable.iter().map(Look::fullness).reduce(f64::max) else {
        return Decision::Proceed(ProceedReason::NoFreshReading).into();
    };
    let tripped: Vec<_> = usable
        .iter()
        .filter_map(|look| Some((look, trips(board, look)?)))
        .collect();
    if tripped.is_empty() {
        return Decision::Proceed(ProceedReason::WithinBudget).into();
    }
    if is_undone(board) {
        return Decision::Proceed(ProceedReason::Undone).into();
    }
    let spent: Vec<_> = tripped.iter().map(|(look, _)| Spent::from(*look)).collect();
    let outage = Outage::of(&spent, usable, settings.weekly_nearly_gone_pct);
    if outage.ends_within(settings.wait_within_ms, board) {
        return Decision::Proceed(ProceedReason::ResetImminent).into();
    }
    if caps::is_used_up(facts, board.now) {
        return Decision::Proceed(ProceedReason::Cap).into();
    }
    let purpose = Purpose::Prediction {
        source_level: fullest,
    };
    let candidates = Candidates::of(board, purpose);
    let predicted = tripped
        .iter()
        .any(|(_, reason)| *reason == SwitchReason::Predicted);
    let decision = match candidates.eligible.first() {
        None => Decision::Proceed(ProceedReason::NoCandidate),
        Some(best) if predicted => Decision::Switch(SwitchReason::Predicted, *best),
        Some(best) => Decision::Switch(SwitchReason::HardGuard, *best),
    };
    Verdict {
        decision,
        rejected: Some(candidates.rejected),
    }
}

/// Whether a window would not bear the next turn, and how that is known.
fn trips(board: &Board<'_>, look: &Look<'_>) -> Option<SwitchReason> {
    let guard = &board.facts.settings.guard;
    let source = board.facts.source.as_ref()?;
    let level = look.level?;
    match board.expected_burn(&source.subscription, look.window) {
        Some(expected) => {
            let after = projected(level, expected, guard.safety);
            is_above(after, 100.0 - guard.margin_pct).then_some(SwitchReason::Predicted)
        }
        None => (level >= guard.hard_pct - TOLERANCE).then_some(SwitchReason::HardGuard),
    }
}

/// The person took a switch back within a day: their word stands against a guess, though not against a real limit.
fn is_undone(board: &Board<'_>) -> bool {
    let undone = board.facts.thread.undone_at;
    undone.is_some_and(|at| board.age_ms(at) < CAP_PERIOD_MS)
}

/// The source is out and nothing is running: somebody else takes the work, or it waits.
fn move_or_wait(board: &Board<'_>, outage: Outage) -> Verdict {
    let settings = &board.facts.settings;
    if caps::is_used_up(board.facts, board.now) {
        return wait_or_hold(WaitReason::Cap, HoldReason::Cap, outage).into();
    }
    let candidates = Candidates::of(board, Purpose::Need);
    let decision = match candidates.eligible.first() {
        None => wait_or_hold(WaitReason::NoCandidate, HoldReason::ResetUnknown, outage),
        Some(best)
            if is_paid(board, *best) && outage.ends_within(settings.paid_wait_within_ms, board) =>
        {
            Decision::Wait(WaitReason::CheaperThanPaid, outage.until)
        }
        Some(best) => Decision::Switch(SwitchReason::Exhausted, *best),
    };
    Verdict {
        decision,
        rejected: Some(candidates.rejected),
    }
}

/// Whether the chain's entry costs money.
pub(super) fn is_paid(board: &Board<'_>, position: usize) -> bool {
    let entry: Option<&Selection> = board.facts.chain.get(position);
    let state = entry.and_then(|entry| board.login(&entry.subscription));
    state.is_some_and(|state| state.login.metered)
}

fn wait_or_hold(wait: WaitReason, hold: HoldReason, outage: Outage) -> Decision {
    match outage.until {
        Some(until) => Decision::Wait(wait, Some(until)),
        None => Decision::Hold(hold),
    }
}

/// A newer run, or a thread the person has put aside.
fn out_of_hands(facts: &Facts) -> Option<NoopReason> {
    match facts.thread.status {
        _ if facts.thread.superseded => Some(NoopReason::Superseded),
        ThreadStatus::Active => None,
        status => Some(NoopReason::Inactive(status)),
    }
}

/// Nothing is open: no question to the person, no tool, no child. The drain timer runs from the report of the limit.
fn at_a_boundary(facts: &Facts) -> Result<(), Decision> {
    let thread = &facts.thread;
    if thread.approval_pending {
        return Err(Decision::Hold(HoldReason::ApprovalPending));
    }
    match thread.tool_in_flight_ms {
        Some(open) if open > facts.settings.drain_ms => Err(Decision::Abort),
        Some(_) => Err(Decision::Drain),
        None if thread.children_running => Err(Decision::Drain),
        None => Ok(()),
    }
}

fn outage_of(board: &Board<'_>, report: &LimitReport) -> Outage {
    match &board.facts.source {
        Some(source) => wait::after_refusal(board, source, report),
        None => wait::reported(board, report),
    }
}

#[cfg(test)]
mod tests;
