//! What the gateway tells, as far as it is read. Only what is used can make an event unreadable: serenity's own types want
//! every field of every component, and drop a person's message because of an embed of somebody else's bot.
//!
//! Shapes are those of Discord's pages on gateway events, messages, interactions and channels; ids are decimal texts.

use serde::Deserialize;
use serde_json::Value;

/// An event that matters here.
#[derive(Debug)]
pub(crate) enum Event {
    Ready(Ready),
    Resumed,
    Guild(Box<GuildCreate>),
    GuildGone(Gone),
    /// Of channels and threads, created and changed.
    Channel(Channel),
    ChannelGone(Gone),
    Threads(ThreadList),
    Message(Box<Message>),
    Interaction(Box<Interaction>),
}

impl Event {
    /// Reads an event by its name; `None` = none that matters.
    pub(crate) fn read(name: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match name {
            "READY" => of(data, Self::Ready),
            "RESUMED" => Ok(Self::Resumed),
            "GUILD_CREATE" => of(data, |guild| Self::Guild(Box::new(guild))),
            "GUILD_DELETE" => of(data, Self::GuildGone),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                of(data, Self::Channel)
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => of(data, Self::ChannelGone),
            "THREAD_LIST_SYNC" => of(data, Self::Threads),
            "MESSAGE_CREATE" => of(data, |message| Self::Message(Box::new(message))),
            "INTERACTION_CREATE" => of(data, |asked| Self::Interaction(Box::new(asked))),
            _ => return None,
        })
    }
}

fn of<'a, T: Deserialize<'a>>(
    data: &'a str,
    into: impl FnOnce(T) -> Event,
) -> Result<Event, serde_json::Error> {
    serde_json::from_str(data).map(into)
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) resume_gateway_url: Option<String>,
}

/// Something of which only the id is known.
#[derive(Debug, Deserialize)]
pub(crate) struct Gone {
    pub(crate) id: String,
    /// Of a server: away for now, not left.
    #[serde(default)]
    pub(crate) unavailable: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GuildCreate {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) channels: Vec<Channel>,
    /// Those that are active and visible to the bot.
    #[serde(default)]
    pub(crate) threads: Vec<Channel>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ThreadList {
    pub(crate) guild_id: String,
    #[serde(default)]
    pub(crate) threads: Vec<Channel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Channel {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    #[serde(default)]
    pub(crate) guild_id: Option<String>,
    /// Of a thread, the channel it hangs on; of a channel, its category.
    #[serde(default)]
    pub(crate) parent_id: Option<String>,
    #[serde(default)]
    pub(crate) last_message_id: Option<String>,
}

impl Channel {
    /// What a message without a server says about where it stands.
    pub(crate) fn direct(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: 1,
            guild_id: None,
            parent_id: None,
            last_message_id: None,
        }
    }

    /// Announcement, public and private threads.
    pub(crate) fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }

    /// Direct messages of two and of several.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.kind, 1 | 3)
    }

    /// Whether messages are written in it: not a category, a forum, a directory.
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self.kind, 0..=3 | 5 | 10..=13)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) username: String,
    #[serde(default)]
    pub(crate) global_name: Option<String>,
    #[serde(default)]
    pub(crate) bot: bool,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Member {
    /// Absent beside a message, whose author says it.
    #[serde(default)]
    pub(crate) user: Option<User>,
    #[serde(default)]
    pub(crate) nick: Option<String>,
    #[serde(default)]
    pub(crate) roles: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) channel_id: String,
    /// Absent in direct messages, and in everything REST answers.
    #[serde(default)]
    pub(crate) guild_id: Option<String>,
    pub(crate) author: User,
    #[serde(default)]
    pub(crate) member: Option<Member>,
    #[serde(default)]
    pub(crate) content: String,
    #[serde(rename = "type", default)]
    pub(crate) kind: u8,
    #[serde(default)]
    pub(crate) webhook_id: Option<String>,
    #[serde(default)]
    pub(crate) mentions: Vec<Mention>,
    #[serde(default)]
    pub(crate) attachments: Vec<Attachment>,
    /// The message it answers; `null` = deleted.
    #[serde(default)]
    pub(crate) referenced_message: Option<Box<Referenced>>,
    #[serde(default)]
    pub(crate) nonce: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Mention {
    pub(crate) id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Referenced {
    pub(crate) author: Mention,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Attachment {
    pub(crate) filename: String,
    #[serde(default)]
    pub(crate) size: u64,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) content_type: Option<String>,
}

/// What answers an interaction; a secret for as long as it lives, so it is never shown.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Token(pub(crate) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Interaction {
    pub(crate) id: String,
    pub(crate) token: Token,
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    #[serde(default)]
    pub(crate) data: Option<AskedData>,
    #[serde(default)]
    pub(crate) guild_id: Option<String>,
    pub(crate) channel_id: String,
    #[serde(default)]
    pub(crate) channel: Option<Channel>,
    /// In servers.
    #[serde(default)]
    pub(crate) member: Option<Member>,
    /// In direct messages.
    #[serde(default)]
    pub(crate) user: Option<User>,
    /// Of a press: the message of the button.
    #[serde(default)]
    pub(crate) message: Option<Mention>,
}

/// Kinds of interactions.
impl Interaction {
    pub(crate) const COMMAND: u8 = 2;
    pub(crate) const COMPONENT: u8 = 3;
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct AskedData {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) options: Vec<GivenOption>,
    #[serde(default)]
    pub(crate) custom_id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GivenOption {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) value: Value,
}
