//! What a program that waits for a turn is told at its end, and what it has said beside its words.

use std::fmt;

use gateway_core::bridge::Message;
use gateway_core::event::TokenUsage;
use gateway_core::failure::Failure;
use gateway_core::route::Route;
use gateway_core::turn::Outcome;
use gateway_core::walk::GiveUp;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Turn;

/// A program's side of a turn. When the turn ends without a report (a fault of ours), the receiver sees the sender go.
pub struct Ask {
    /// What the program told the model to be; sent to sessions that are new, and to routes that keep none.
    pub instructions: Vec<Message>,
    /// Whether the turn's words are a person's, without a label before them.
    pub bare: bool,
    report: Mutex<Option<oneshot::Sender<TurnReport>>>,
}

impl Ask {
    /// An ask and where its report comes.
    pub fn new(instructions: Vec<Message>, bare: bool) -> (Self, oneshot::Receiver<TurnReport>) {
        let (sender, receiver) = oneshot::channel();
        let ask = Self {
            instructions,
            bare,
            report: Mutex::new(Some(sender)),
        };
        (ask, receiver)
    }

    pub(super) fn tell(&self, report: TurnReport) {
        if let Some(sender) = self.report.lock().take() {
            let _ = sender.send(report); // nobody waits any more
        }
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask(…)")
    }
}

/// How a turn ended, in the values decisions were made with.
#[derive(Debug, Clone)]
pub struct TurnReport {
    pub outcome: Outcome,
    /// The last failure the walk went on from, or ended with; `None` = there was none.
    pub failure: Option<Failure>,
    /// Why the walk gave up; `None` = it did not.
    pub gave_up: Option<GiveUp>,
    /// The route of the last attempt; `None` = there was no attempt, and nothing reached a provider.
    pub route: Option<Route>,
    pub usage: TokenUsage,
    /// Everything that was shown of the answer.
    pub text: String,
    /// The title of the session behind the last attempt, and its generation.
    pub title: String,
    pub generation: u32,
    /// Whether a full session was retired, or its successor joined, in this turn.
    pub rotated: bool,
}

impl TurnReport {
    /// The report of a turn about to end; the outcome is put in when it is known.
    pub(super) fn of(turn: &Turn, usage: TokenUsage, gave_up: Option<GiveUp>) -> Self {
        Self {
            outcome: Outcome::Stopped,
            failure: turn.failure.clone(),
            gave_up,
            route: turn.journal.route().cloned(),
            usage,
            text: turn.voice.whole(),
            title: turn.rotation.title(),
            generation: turn.rotation.generation(),
            rotated: turn.rotation.swap().is_some(),
        }
    }
}
