//! May a child start now? The same tests as for a switch, with the reserve of background work, and an answer that is never
//! "failed" for want of quota: a child waits until there is room, up to the longest wait (section 3.6 of the contract).
//!
//! Only the decision; tasks, their queue and their attempts belong to whoever starts children.

use jiff::{SignedDuration, Timestamp};

use super::decide::is_paid;
use super::eligibility::{
    Candidates, Purpose, RejectReason, Rejection, cooling_ends_in, fits_the_work, may_spend, usable,
};
use super::evidence::Board;
use super::facts::Facts;
use super::room::Room;
use super::wait;

/// What is known of the child that wants to start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChildRequest {
    pub waiting_since: Option<Timestamp>,
    pub cancelled: bool,
    /// A task with the same client request id exists.
    pub duplicate: bool,
}

/// Whether and where a child starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Cancelled,
    Duplicate,
    /// Not a lack of capacity: no wait would help.
    Refuse(RejectReason),
    /// On the target, because there is room or because routing is off.
    Admit(AdmitReason),
    /// On the chain's entry at this position; the reason is the target's.
    Fallback(RejectReason, usize),
    /// Until this instant, if one is known.
    Wait(AdmissionWait, Option<Timestamp>),
    /// It has waited as long as a child may.
    Expired,
}

/// Why a child starts on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdmitReason {
    Capacity,
    Disabled,
}

/// Why a child waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdmissionWait {
    /// The target lacks capacity in this way.
    Target(RejectReason),
    /// Only a paid entry is free, and the target soon is.
    CheaperThanPaid,
}

/// An admission with everybody who was considered for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionVerdict {
    pub admission: Admission,
    /// `None` = no candidate was looked at.
    pub rejected: Option<Vec<Rejection>>,
}

impl From<Admission> for AdmissionVerdict {
    fn from(admission: Admission) -> Self {
        Self {
            admission,
            rejected: None,
        }
    }
}

/// Decides about a child whose target is the facts' source.
pub fn admit(facts: &Facts, child: &ChildRequest, now: Timestamp) -> AdmissionVerdict {
    if child.cancelled {
        return Admission::Cancelled.into();
    }
    if child.duplicate {
        return Admission::Duplicate.into();
    }
    let board = Board::new(facts, now);
    let lack = match target(&board) {
        Err(reason) => return Admission::Refuse(reason).into(),
        Ok(_) if !facts.settings.enabled => return Admission::Admit(AdmitReason::Disabled).into(),
        Ok(None) => return Admission::Admit(AdmitReason::Capacity).into(),
        Ok(Some(lack)) => lack,
    };
    let candidates = Candidates::of(&board, Purpose::Need);
    let near = lack
        .until
        .is_some_and(|until| -board.age_ms(until) <= facts.settings.paid_wait_within_ms);
    let waited_out = child
        .waiting_since
        .is_some_and(|since| board.age_ms(since) >= facts.settings.admission_max_wait_ms);
    let admission = match candidates.eligible.first() {
        Some(best) if near && is_paid(&board, *best) => {
            Admission::Wait(AdmissionWait::CheaperThanPaid, lack.until)
        }
        Some(best) => Admission::Fallback(lack.reason, *best),
        None if waited_out => Admission::Expired,
        None => Admission::Wait(AdmissionWait::Target(lack.reason), lack.until),
    };
    AdmissionVerdict {
        admission,
        rejected: Some(candidates.rejected),
    }
}

/// What the target lacks.
struct Lack {
    reason: RejectReason,
    /// When it lacks it no more; `None` = not known.
    until: Option<Timestamp>,
}

/// `Err` = it may not run at all, `Ok(None)` = there is room.
fn target(board: &Board<'_>) -> Result<Option<Lack>, RejectReason> {
    let target = board.facts.source.as_ref().ok_or(RejectReason::Unknown)?;
    let state = usable(board, &target.subscription)?;
    fits_the_work(board, target, state)?;
    may_spend(board, target, state)?;
    let room = Room::of(board, target, state);
    let cooling = cooling_ends_in(board, state).map(|left| {
        let left = SignedDuration::from_millis(left);
        board.now.checked_add(left).unwrap_or(Timestamp::MAX)
    });
    let reason = match (cooling, room.has_any()) {
        (Some(_), _) => RejectReason::Cooling,
        (None, Err(reason)) => reason,
        (None, Ok(())) => return Ok(None),
    };
    let in_the_way = room.resets_in_the_way();
    let until = wait::latest(in_the_way.chain(cooling.map(Some)));
    Ok(Some(Lack { reason, until }))
}

#[cfg(test)]
mod tests;
