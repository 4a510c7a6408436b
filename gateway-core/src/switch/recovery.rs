//! What ends a wait, and what a person takes back: [`look_again`] at a thread that may be waiting, [`switch_back`] on the
//! person's word.

use jiff::Timestamp;

use super::eligibility::{RejectReason, usable};
use super::evidence::Board;
use super::facts::{Facts, Selection, ThreadStatus};
use super::look::Look;
use super::wait;
use crate::ids::SubscriptionId;

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// `None` = not recorded, and then it waits for the selected one.
    pub subscription: Option<SubscriptionId>,
    /// The raw reset; `None` = unknown.
    pub until: Option<Timestamp>,
}

/// What becomes of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It is over without a turn: the person went another way.
    Cancel(CancelReason),
    /// Nothing to do.
    Paused,
    NotWaiting,
    /// The provider still refuses, until then.
    StillExhausted(Timestamp),
    /// Not yet.
    Armed(Timestamp),
    /// Nobody knows until when.
    Hold,
    /// The wait is over.
    Resume,
}

/// Why a wait is over without a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelReason {
    SelectionChanged,
    Superseded,
    Archived,
    Settled,
}

/// Looks at a thread again: at its time, after a new reading, after a restart.
pub fn look_again(facts: &Facts, waiting: Option<&Waiting>, now: Timestamp) -> Recovery {
    match facts.thread.status {
        _ if facts.thread.superseded => return Recovery::Cancel(CancelReason::Superseded),
        ThreadStatus::Archived => return Recovery::Cancel(CancelReason::Archived),
        ThreadStatus::Settled => return Recovery::Cancel(CancelReason::Settled),
        ThreadStatus::Paused => return Recovery::Paused,
        ThreadStatus::Active => {}
    }
    let Some(waiting) = waiting else {
        return Recovery::NotWaiting;
    };
    let selected = facts.source.as_ref().map(|source| &source.subscription);
    if let (Some(awaited), Some(selected)) = (&waiting.subscription, selected)
        && awaited != selected
    {
        return Recovery::Cancel(CancelReason::SelectionChanged);
    }
    let board = Board::new(facts, now);
    let looks = facts.source.as_ref().map(|source| board.looks(source));
    let looks = looks.unwrap_or_default();
    let mut out = looks.iter().filter(|look| is_out(look)).peekable();
    if out.peek().is_some() {
        let until = wait::latest(out.map(|look| look.resets_at));
        return until.map_or(Recovery::Hold, Recovery::StillExhausted);
    }
    match waiting.until {
        Some(until) if until <= now => Recovery::Resume,
        _ if has_room(&looks) => Recovery::Resume,
        Some(until) => Recovery::Armed(until),
        None => Recovery::Hold,
    }
}

fn is_out(look: &Look<'_>) -> bool {
    look.is_usable() && look.exhausted
}

/// The reset came early: every window has been looked at since, or its cycle has ended, and none is vague.
fn has_room(looks: &[Look<'_>]) -> bool {
    let known = |look: &Look<'_>| (look.fresh || look.rolled) && !look.is_vague();
    !looks.is_empty() && looks.iter().all(known)
}

/// The answer to a person who takes a switch back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchBack {
    /// Another client said so already.
    Duplicate,
    Refuse(RejectReason),
    /// Their word counts, even if the subscription is still out: then they are warned, and it waits.
    Switch {
        still_limited: bool,
    },
}

/// Decides about going back to `target`. Quota is no reason to refuse a person; a login that cannot start is.
pub fn switch_back(
    facts: &Facts,
    target: &Selection,
    duplicate: bool,
    now: Timestamp,
) -> SwitchBack {
    if duplicate {
        return SwitchBack::Duplicate;
    }
    let board = Board::new(facts, now);
    match usable(&board, &target.subscription) {
        Err(reason) => SwitchBack::Refuse(reason),
        Ok(_) => SwitchBack::Switch {
            still_limited: board.looks(target).iter().any(is_out),
        },
    }
}
