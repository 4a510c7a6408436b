//! What a chat adapter does beside [`Surface`]: it checks its rights, registers the commands, listens, and says what it
//! heard as the platform said it. It judges nothing: who may speak, what was heard before and which profile answers is
//! for the host.
//!
//! Everything that has to be acknowledged (Discord's interactions, Slack's envelopes) is acknowledged before it is handed
//! on, so that no work of ours can make a platform wait.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::command::CommandSpec;
use gateway_core::ids::InboundId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::chat::Surface;
use crate::wire::WireError;

/// A connection to a chat platform with one bot token.
#[async_trait]
pub trait Adapter: Surface {
    /// Looks at the token, the scopes, the intents and the rights in the configured places, and learns who the bot is.
    /// `Err` = it cannot serve. Must have succeeded before [`register`](Self::register) and [`listen`](Self::listen).
    async fn check(&self) -> Result<Vec<Finding>, Finding>;

    /// Makes the commands known to the platform, where a program can (Discord); compares first, so that nothing is written
    /// that stands there already. Says what was done, and what could not be.
    async fn register(&self, commands: &[&CommandSpec]) -> Result<Vec<Finding>, Finding>;

    /// Listens until `stop`, and survives lost connections. `Err` = the platform refused for good. Ends within seconds of
    /// `stop`, whatever the platform does.
    async fn listen(
        &self,
        heard: mpsc::Sender<Heard>,
        stop: CancellationToken,
    ) -> Result<(), Finding>;

    /// Downloads a file that came with a message, at most `max_bytes` of it; a longer one is [`WireError::TooLong`].
    async fn fetch(&self, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError>;

    /// How the connection is.
    fn health(&self) -> Health;
}

/// Something the operator should know, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// What, and which one.
    pub what: String,
    /// What to do; empty = nothing.
    pub hint: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// It serves, but something will not work.
    Warning,
    /// It cannot serve.
    Fatal,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.hint.is_empty() {
            write!(f, " {}", self.hint)?;
        }
        Ok(())
    }
}

/// One thing that was sent to the bot or in its hearing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The platform's lasting id of it, unique on the platform: of the message, the interaction; on Slack channel and `ts`.
    pub id: InboundId,
    pub speaker: Speaker,
    pub spot: Spot,
    /// Whether it named the bot: a mention, a command, a press. Always true in a direct conversation.
    pub called: bool,
    /// The platform's part of the session key: what tells one conversation from every other of this bot. A thread has its
    /// own.
    pub conversation: String,
    /// Where the answer goes; only the adapter reads it.
    pub address: String,
    pub content: Content,
}

/// Who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// The platform's id.
    pub id: String,
    /// The name people see.
    pub name: String,
    /// Their roles in this place; empty where the platform tells none.
    pub roles: Vec<String>,
    pub kind: SpeakerKind,
}

/// What sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeakerKind {
    Person,
    /// Another bot, or a webhook.
    Bot,
    Ourselves,
}

/// Where it was sent, by the platform's ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    Direct {
        channel: String,
    },
    Channel {
        /// The Discord server or Slack workspace; `None` = the platform did not say.
        guild: Option<String>,
        channel: String,
        /// Discord: the channel a thread hangs on, where the thread is a channel of its own. `None` = it is no thread, or
        /// the platform's threads are no channels.
        parent: Option<String>,
    },
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A message, without the mention of the bot it began with.
    Text { text: String, files: Vec<File> },
    /// A slash command without its slash, and the rest of the line.
    Command { name: String, args: String },
    /// A button; it is acknowledged already, and waits for [`Surface::settle`].
    Press { custom_id: String },
}

/// A file that came with a message, as the platform announces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub name: String,
    /// In bytes.
    pub size: u64,
    pub media_type: Option<String>,
    /// What [`Adapter::fetch`] needs; only the adapter reads it.
    pub source: String,
}

/// How a connection is, and what it has been through since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Connections that can hear now.
    pub connections: u32,
    /// Since the last sign of life of the platform; `None` = none yet.
    pub silent_for: Option<Duration>,
    /// Connections that were lost and went on where they had stopped.
    pub resumed: u64,
    /// Connections that were lost and began anew.
    pub begun_anew: u64,
    /// Messages of a gap that were fetched afterwards.
    pub back_filled: u64,
    /// Gaps in which commands and presses may have been lost; nothing can fetch those.
    pub gaps: u64,
    /// Events of the platform that could not be read.
    pub unreadable: u64,
}
