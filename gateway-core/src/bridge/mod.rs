//! Conversations that programs hold over the OpenAI API, and the provider sessions behind them: which conversation a
//! request belongs to ([`address`]), what of it the session has not seen ([`lineage`]), what is sent ([`prompt`]), and when
//! a full session is retired for a successor ([`rotation`], [`recap`]).
//!
//! Not here: who answers (the chain's business), and what is kept (the store's). Two rules hold throughout:
//! * identity is a keyed digest, never a name: no caller can choose a title, and no two spaces of titles meet;
//! * everything a client says reaches the model once: what was not seen is sent, and where that cannot be told, a new
//!   session is told everything.

pub mod address;
pub mod digest;
pub mod lineage;
pub mod prompt;
pub mod recap;
pub mod rotation;
pub mod title;
pub mod watermark;

use serde::{Deserialize, Serialize};

/// One message of a request, its content flattened to text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// As the client wrote it: `system`, `developer`, `user`, `assistant`, or a role of its own.
    pub role: String,
    pub text: String,
}

impl Message {
    /// Builds a message.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            text: text.into(),
        }
    }

    /// Whether it is an instruction to the model and no part of the dialogue.
    pub fn is_instruction(&self) -> bool {
        matches!(self.role.as_str(), "system" | "developer")
    }

    /// Whether the model is said to have written it.
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }
}

/// The instructions a transcript begins with, and the dialogue after them.
pub fn split(transcript: &[Message]) -> (&[Message], &[Message]) {
    let lead = transcript
        .iter()
        .position(|message| !message.is_instruction())
        .unwrap_or(transcript.len());
    transcript.split_at(lead)
}
