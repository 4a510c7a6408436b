//! The life of one thread under routing (section 3.1 of the contract): its states, what may happen to it, and what is then
//! to be done. Pure: [`step`] takes the machine as it was stored, one event and the facts, and returns what to store and the
//! effects, which belong into the same transaction as the new state.
//!
//! What holds at every step: one turn writes at a time; nothing moves while a tool is open that was not stopped on purpose; an
//! event of an older run changes nothing; the same event twice is the same as once. Ids of switches and continuations are made
//! of the episode and the attempt, so whoever acts on an effect twice acts once.

mod deciding;
mod running;
mod step;
mod waiting;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::decide::{HoldReason, SwitchReason, WaitReason};
use super::eligibility::Rejection;
use super::facts::{LimitClass, LimitReport};
use crate::ids::{SubscriptionId, TurnId};

pub use step::{episode_id, jitter_ms, step};

/// After so many starts that failed an episode looks no further.
pub const MAX_ATTEMPTS: u32 = 3;
/// How long to wait before looking again while no reset is known, in milliseconds; the last one repeats.
pub const BACKOFF_MS: [i64; 4] = [300_000, 900_000, 1_800_000, 3_600_000];

/// A thread as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The thread's own name: part of every id, and of when it wakes.
    pub thread: String,
    /// What it runs on.
    pub place: Place,
    /// Where it belongs while a walk for another reason than quota has a turn run elsewhere; it goes back with the next one.
    #[serde(default)]
    pub home: Option<Place>,
    /// Where the last automatic switch came from; *Switch back* goes there.
    pub origin: Option<Place>,
    /// The run whose events count.
    pub run: Option<TurnId>,
    /// A turn may still be writing.
    pub running: bool,
    pub state: State,
    /// Its automatic switches.
    pub switches: Vec<Timestamp>,
    pub undone_at: Option<Timestamp>,
    /// The last command that took a switch back: a second client saying so changes nothing.
    pub last_undo: Option<String>,
}

/// A model on a subscription, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub subscription: SubscriptionId,
    pub model: Option<String>,
}

/// Where a thread stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Normal,
    /// A limit was warned of: look before the next turn.
    Guarded,
    /// A limit was reported while a tool was open; it may end until the timer is over.
    Draining {
        episode: Episode,
        since: Timestamp,
    },
    /// The turn is being stopped.
    Interrupting {
        episode: Episode,
        since: Timestamp,
    },
    /// The turn is over. The checkpoint and the looks at stale candidates are on their way.
    Deciding {
        episode: Episode,
    },
    /// The next place is being started.
    Switching {
        episode: Episode,
        to: Place,
        reason: SwitchReason,
    },
    /// It was started, but has said nothing yet.
    Verifying {
        episode: Episode,
        to: Place,
        reason: SwitchReason,
    },
    /// It runs on the place the last switch chose.
    Continued,
    /// It goes on here by itself. `wake_at` is the reset with the thread's jitter, or the next look.
    WaitingReset {
        episode: Episode,
        until: Option<Timestamp>,
        wake_at: Timestamp,
        looks: u32,
    },
    /// A person must decide, or nobody knows until when.
    Held {
        episode: Episode,
        reason: HoldReason,
        wake_at: Option<Timestamp>,
        looks: u32,
    },
    /// As if routing were off.
    Paused,
    /// Archived or settled.
    Closed,
}

/// One limit and everything done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub id: String,
    /// The run it began in; before a turn, the one that waits.
    pub run: Option<TurnId>,
    pub cause: Cause,
    /// Switches begun in it.
    pub attempt: u32,
    /// Starts that failed in it.
    pub failed_starts: u32,
    /// Subscriptions that are spent for it.
    pub tried: Vec<SubscriptionId>,
}

/// What began an episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The next turn would not fit; its run waits.
    BeforeTurn,
    /// A provider refused.
    Refused {
        class: LimitClass,
        report: LimitReport,
    },
}

/// What may happen to a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A person's message is next. Only while nothing runs: sessions are serial.
    TurnRequested {
        run: TurnId,
    },
    /// The provider reported a limit while the turn runs.
    LimitReported {
        run: TurnId,
        report: LimitReport,
    },
    /// A tool, a child or a question to the person ended; the facts tell what is still open.
    BoundaryReached {
        run: TurnId,
    },
    InterruptAcked {
        run: TurnId,
    },
    TurnEnded {
        run: TurnId,
        end: RunEnd,
    },
    /// The checkpoint is taken and stale candidates were looked at.
    Checked {
        episode: String,
    },
    SwitchAccepted {
        episode: String,
        attempt: u32,
    },
    SwitchFailed {
        episode: String,
        attempt: u32,
    },
    /// The new place answers.
    FirstOutput {
        run: TurnId,
    },
    /// The walk tries the turn elsewhere, for another reason than quota.
    Walked {
        run: TurnId,
        place: Place,
    },
    /// The person stopped the turn, or its work will not go on by itself: nothing that was begun for it is carried on.
    GivenUp {
        run: TurnId,
    },
    /// A timer may be due.
    Tick,
    /// The registry knows something new.
    NewReading,
    /// The person chose another place.
    Selected {
        place: Place,
    },
    SwitchBack {
        command: String,
    },
    Paused(bool),
    Archived,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    Answered,
    /// By our interrupt if one was sent, else by the person.
    Stopped,
    Failed {
        class: LimitClass,
        report: LimitReport,
    },
}

/// What is to be done, in the transaction that stores the new state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    StartTurn {
        run: TurnId,
        on: Place,
    },
    /// Through the provider's own control channel.
    Interrupt {
        run: TurnId,
    },
    /// Stop the open tool; its outcome is unknown and is never replayed.
    AbortTool {
        run: TurnId,
    },
    /// Take a checkpoint and look at stale candidates, then say [`Event::Checked`].
    Check {
        episode: String,
    },
    /// Promise room on the new place, so that a herd does not oversubscribe it.
    Reserve {
        id: String,
        on: SubscriptionId,
        pct: f64,
    },
    Release {
        id: String,
    },
    /// Whatever the switch has started so far is stopped; it comes too late.
    CancelSwitch {
        id: String,
    },
    /// Hand over and start the continuation.
    Switch {
        id: String,
        run: TurnId,
        from: Place,
        to: Place,
        reason: SwitchReason,
    },
    /// Continue where it stopped; once per id.
    Resume {
        run: TurnId,
        on: Place,
    },
    WakeAt(Timestamp),
    CancelWake,
    Banner(Banner),
    Audit(Audit),
}

/// What the person is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Banner {
    Continued {
        from: Place,
        to: Place,
        reason: SwitchReason,
    },
    Waiting {
        reason: WaitReason,
        until: Option<Timestamp>,
    },
    Held(HoldReason),
    SwitchedBack {
        to: Place,
        still_limited: bool,
    },
}

/// A row of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    pub kind: AuditKind,
    /// `None` = the person's own doing, outside of any episode.
    pub episode: Option<String>,
    pub attempt: u32,
    pub rejected: Vec<Rejection>,
}

/// What a row of the audit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    Decided,
    Switched,
    StartFailed,
    Waited,
    Resumed,
    Held,
    Drained,
    AbortedTool,
    Cancelled,
    Undone,
    Paused,
}

impl AuditKind {
    /// Its word in the audit.
    pub fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Switched => "switched",
            Self::StartFailed => "start_failed",
            Self::Waited => "waited",
            Self::Resumed => "resumed",
            Self::Held => "held",
            Self::Drained => "drained",
            Self::AbortedTool => "aborted_tool",
            Self::Cancelled => "cancelled",
            Self::Undone => "undone",
            Self::Paused => "paused",
        }
    }
}

impl Machine {
    /// A thread that has done nothing yet.
    pub fn new(thread: impl Into<String>, place: Place) -> Self {
        Self {
            thread: thread.into(),
            place,
            home: None,
            origin: None,
            run: None,
            running: false,
            state: State::Normal,
            switches: Vec::new(),
            undone_at: None,
            last_undo: None,
        }
    }
}

impl State {
    /// The episode it is in.
    pub fn episode(&self) -> Option<&Episode> {
        match self {
            Self::Draining { episode, .. }
            | Self::Interrupting { episode, .. }
            | Self::Deciding { episode }
            | Self::Switching { episode, .. }
            | Self::Verifying { episode, .. }
            | Self::WaitingReset { episode, .. }
            | Self::Held { episode, .. } => Some(episode),
            Self::Normal | Self::Guarded | Self::Continued | Self::Paused | Self::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests;
