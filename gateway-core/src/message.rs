//! What platforms and the host say to each other. A platform only translates: its own types never come this far.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{InboundId, ProfileId, SessionKey};

/// Who stands behind a message. Only a human turn may carry a saved handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person wrote it.
    Human,
    /// The gateway or a timer made it (heartbeat, sweep, follow-up).
    Synthetic,
}

/// What a sender may do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// An allowed person.
    Member,
    /// An operator of the profile; on the console, the local user.
    Operator,
}

/// The person or program that sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's stable id of the sender.
    pub id: String,
    /// The name shown to people.
    pub name: String,
    pub standing: Standing,
}

/// Where a reply goes: platform, channel and thread as one opaque address that travels with the [`Inbound`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReplyTarget {
    /// The platform's name, for example `console`.
    pub platform: String,
    /// The platform's own address of the place; only the platform reads it.
    pub address: String,
}

/// One message or command arriving from a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    pub id: InboundId,
    pub profile: ProfileId,
    pub session: SessionKey,
    pub sender: Sender,
    pub origin: Origin,
    pub target: ReplyTarget,
    pub received_at: Timestamp,
    pub content: Content,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Something for the model.
    Text(String),
    /// A slash command without its slash, and the rest of the line.
    Command { name: String, args: String },
    /// A press of a button, by the `custom_id` the button was sent with.
    Press { custom_id: String },
}

/// Who sees the answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    Everyone,
    /// Only the person who asked.
    Asker,
}

/// One thing to show. Ops of one turn arrive in order; the slot says which message of the turn is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOp {
    /// The turn's one status message; a later one of the same turn edits the first.
    Status { text: String },
    /// The answer so far. `delta` is what is new since the last op, `text` the whole; `done` is sent exactly once.
    /// `replaced` is true when text already shown was withdrawn by the provider and `text` must replace it.
    Answer {
        text: String,
        delta: String,
        replaced: bool,
        done: bool,
    },
    /// The turn's one tool-activity message, edited in place; whole text.
    Tools { text: String },
    /// A message of its own in the gateway's voice (a cut notice, a closing line, "stopped").
    Notice { text: String },
    /// The answer of a command or a press; the buttons stand under the last message of it.
    Reply {
        text: String,
        audience: Audience,
        buttons: Vec<Button>,
    },
    /// Ends a press: takes the buttons off the message that was pressed. `text` replaces what it says; `None` = it stays.
    Settle { text: Option<String> },
}

/// A button under a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    pub label: String,
    /// What the platform sends back when it is pressed: 1 to 100 characters.
    pub custom_id: String,
}
