//! The life of one interaction: 3 s to the first answer, then 15 min of edits and follow-ups.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::ids::{ChannelId, MessageId, UserId};
use crate::clock::between;

pub(crate) const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(3);
pub(crate) const TOKEN_LIVES: Duration = Duration::from_secs(15 * 60);

/// A command or a click, as the platform tracks it.
#[derive(Clone, Debug)]
pub struct Interaction {
    pub id: u64,
    pub token: String,
    /// 2 = command, 3 = button.
    pub kind: u8,
    pub channel: ChannelId,
    pub asker: UserId,
    /// The message whose button was pressed.
    pub on: Option<MessageId>,
    pub created_at: Timestamp,
    /// `None` = not answered yet; past 3 s the person reads "interaction failed".
    pub first: Option<FirstAnswer>,
    /// What `@original` means. `None` = nothing yet.
    pub original: Option<MessageId>,
    /// Follow-ups, in order.
    pub followups: Vec<MessageId>,
}

/// The first answer to an interaction.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstAnswer {
    pub kind: Callback,
    /// Since the interaction was created.
    pub after: Duration,
    /// Fixed from here on.
    pub ephemeral: bool,
    /// The request's `data`, e.g. a modal.
    pub data: Value,
}

/// Kinds of first answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    Message,
    DeferredMessage,
    DeferredUpdate,
    Update,
    Autocomplete,
    Modal,
}

impl Callback {
    pub(crate) fn from_wire(kind: u64) -> Option<Self> {
        Some(match kind {
            4 => Self::Message,
            5 => Self::DeferredMessage,
            6 => Self::DeferredUpdate,
            7 => Self::Update,
            8 => Self::Autocomplete,
            9 => Self::Modal,
            _ => return None,
        })
    }
}

impl Interaction {
    pub(crate) fn age(&self, now: Timestamp) -> Duration {
        between(self.created_at, now)
    }

    /// What the person in front of the client reads.
    pub fn failed(&self, now: Timestamp) -> bool {
        self.first.is_none() && self.age(now) > FIRST_ANSWER_WITHIN
    }
}
