//! What a provider may report while an attempt runs. Unknown records of a CLI become nothing; they are never an error.

use serde::{Deserialize, Serialize};

use crate::ids::ProviderSessionId;
use crate::usage::Reading;

/// One report of a running attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The provider's session: its id as the provider told it.
    Session { id: ProviderSessionId },
    /// Visible answer text. `block` grows by one for each content block of the attempt.
    Text { block: u32, delta: String },
    /// The provider abandoned these blocks (a broken stream it will send again): drop their text.
    Retract { from_block: u32 },
    /// A tool call started; `arguments` is JSON text.
    ToolCall {
        id: String,
        name: String,
        arguments: String,
    },
    /// A tool call ended.
    ToolResult {
        id: String,
        outcome: CallOutcome,
        text: String,
    },
    /// The CLI's own todo list or plan, whole, whenever it changes.
    Todos(Vec<Todo>),
    /// Tokens of this attempt so far; the newest replaces the older.
    Usage(TokenUsage),
    /// A limit reading, also on success.
    Limit(Reading),
    /// A sign of life without content (a retry, a compaction, thinking); shown at most as activity.
    Activity { what: String },
}

/// How a tool call ended. `Unknown` is what a cut leaves: the call may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Completed,
    Failed,
    Denied,
    Cancelled,
    Unknown,
}

/// One entry of a CLI's todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
}

/// States of a todo; only the first two are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl TodoStatus {
    /// Whether the work is still to be done.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// The word used in texts: `pending`, `in_progress`, `completed`, `cancelled`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Tokens of one attempt. `None` = the provider did not say, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Uncached input tokens.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
}
