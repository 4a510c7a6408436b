//! What an adapter does for the shared layer: send, edit, delete, and say precisely how it went. Everything above (order,
//! pace, retries, streaming) is the same on every platform; everything below is translation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
pub use gateway_core::message::Button;

/// A place messages go to. Rate limits count per `channel`; order is kept per place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The platform's id of the channel. On Discord a thread is a channel of its own, so it stands here.
    pub channel: String,
    /// Slack: the `ts` of the thread's root message. `None` = the channel itself, and always on Discord.
    pub thread: Option<String>,
}

/// The platform's id of a message (Discord: a snowflake; Slack: the `ts`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageId(pub String);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one message shows. Text is ready to send: cut to size and disarmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    pub text: String,
    pub buttons: Vec<Button>,
    pub file: Option<Arc<OutFile>>,
}

impl Body {
    /// A message of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// A file that goes out.
#[derive(Debug, PartialEq, Eq)]
pub struct OutFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Writes to a platform. Each call is one request, tried once: retries belong to the [outbox](crate::outbox).
#[async_trait]
pub trait Wire: Send + Sync + 'static {
    /// Posts a message. `nonce` (at most 25 characters) is the same for every try of one message; platforms that can
    /// use it to recognise a repeated post do.
    async fn send(&self, place: &Place, body: &Body, nonce: &str) -> Result<MessageId, WireError>;

    /// Replaces a message.
    async fn edit(&self, place: &Place, message: &MessageId, body: &Body) -> Result<(), WireError>;

    async fn delete(&self, place: &Place, message: &MessageId) -> Result<(), WireError>;

    /// Looks for a message by the nonce it was sent with; `None` = it is not there. Only asked under
    /// [`Uncertain::LookUp`](crate::outbox::Uncertain).
    async fn find(&self, place: &Place, nonce: &str) -> Result<Option<MessageId>, WireError>;
}

/// Why a request did not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// 429. `after` = what the platform asks for; `None` = it did not say.
    #[error("rate limited")]
    RateLimited {
        after: Option<Duration>,
        scope: Scope,
    },
    /// The text is longer than this platform takes (Discord 50035 on `content`, Slack `msg_too_long`,
    /// `msg_blocks_too_long`).
    #[error("the message is too long")]
    TooLong,
    /// Discord 30046: edits of messages older than an hour are used up. Slack `edit_window_closed`.
    #[error("the message is too old to be edited")]
    EditTooOld,
    /// Somebody deleted the message (Discord 10008, Slack `message_not_found`).
    #[error("the message is gone")]
    MessageGone,
    /// The channel is gone, archived or closed to us; nothing will ever arrive there.
    #[error("the place cannot be written to: {0}")]
    PlaceGone(String),
    /// This one message is refused, for ever. Never repeated: Discord bans for 10,000 invalid requests in 10 minutes.
    #[error("the message was refused: {0}")]
    Refused(String),
    /// It did not arrive; later it may (no connection, 5xx before the request was taken).
    #[error("not delivered: {0}")]
    NotDelivered(String),
    /// It may have arrived: the connection broke or time ran out after the request was written.
    #[error("unknown whether delivered: {0}")]
    Uncertain(String),
}

/// How far a rate limit reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This channel (Discord's buckets; Slack's one message a second and channel).
    Channel,
    /// This kind of request everywhere (Slack's tiers).
    Kind,
    /// Every request (Discord's global limit).
    Everything,
}
