//! Platforms translate: their own events to [`Inbound`](gateway_core::message::Inbound), our
//! [`ReplyOp`](gateway_core::message::ReplyOp)s to their calls. Nothing here decides anything.

pub mod activity;
pub mod adapter;
pub mod attachments;
pub mod board;
pub mod buttons;
pub mod chat;
pub mod console;
pub mod dedupe;
pub mod escape;
pub mod outbox;
pub mod recording;
pub mod split;
pub mod stream;
pub mod wire;

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{ReplyOp, ReplyTarget};

/// What a platform can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest message in characters; `None` = no bound.
    pub message_chars: Option<usize>,
    /// Whether a sent message can be edited.
    pub edits: bool,
    /// The shortest time between two edits of one message.
    pub edit_interval: Duration,
    /// Whether an answer can be shown to one person only.
    pub private_replies: bool,
}

/// Proof that something was shown: the platform's id of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt(pub String);

/// Why something could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The place is gone or forbidden; trying again cannot help.
    #[error("cannot write to {place}: {why}")]
    Gone { place: String, why: String },
    /// Trying again later may help.
    #[error("{platform} did not take the message: {source}")]
    Transient {
        platform: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// A place people talk. `turn` ties ops of one turn together (one status message, one answer message).
#[async_trait]
pub trait Platform: Send + Sync + 'static {
    /// The platform's name as it stands in [`ReplyTarget::platform`].
    fn name(&self) -> &'static str;

    fn limits(&self) -> Limits;

    /// Whether it can show buttons. Where it cannot, the words of a reply say what to type.
    fn has_buttons(&self) -> bool {
        true
    }

    /// Whether a message, not only a command, can be answered to its sender alone.
    fn whispers(&self) -> bool {
        self.limits().private_replies
    }

    /// Shows one op. Ops of one turn arrive one after the other, in order. `turn` is `None` for command replies.
    async fn deliver(
        &self,
        to: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError>;
}
