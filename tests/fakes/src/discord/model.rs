//! What is on the fake Discord, as a person in front of it would name it.

use jiff::Timestamp;
use serde_json::Value;

use super::ids::{ChannelId, GuildId, MessageId, RoleId, UserId};

/// A person or a bot.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub bot: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Guild {
    pub(crate) id: GuildId,
    pub(crate) name: String,
    pub(crate) owner: UserId,
    pub(crate) members: Vec<(UserId, Vec<RoleId>)>,
    pub(crate) roles: Vec<Role>,
}

#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) id: RoleId,
    pub(crate) name: String,
    pub(crate) permissions: u64,
    pub(crate) mentionable: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) name: String,
    pub(crate) kind: ChannelKind,
    /// Bits taken from the bot in this channel (a permission overwrite for its member).
    pub(crate) denied: u64,
    pub(crate) last_message: Option<MessageId>,
    pub(crate) created: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChannelKind {
    Text {
        guild: GuildId,
    },
    Thread {
        guild: GuildId,
        parent: ChannelId,
        owner: UserId,
        archived: bool,
        /// In minutes.
        archives_after: u64,
    },
    Dm {
        with: UserId,
    },
}

impl Channel {
    /// `None` = a DM.
    pub(crate) fn guild(&self) -> Option<GuildId> {
        match self.kind {
            ChannelKind::Text { guild } | ChannelKind::Thread { guild, .. } => Some(guild),
            ChannelKind::Dm { .. } => None,
        }
    }
}

/// A message as it stands now, with what it was before.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: MessageId,
    pub channel: ChannelId,
    pub author: UserId,
    /// The current text.
    pub text: String,
    /// Texts it had before, oldest first.
    pub earlier: Vec<String>,
    /// Raw component rows.
    pub components: Value,
    pub embeds: Value,
    pub files: Vec<File>,
    /// `Some` = ephemeral: only this person sees it.
    pub only_for: Option<UserId>,
    /// Who was notified, edits included.
    pub pings: Pings,
    /// `None` = the request named none, so the platform's defaults held. The last request's value.
    pub allowed_mentions: Option<Value>,
    pub reply_to: Option<MessageId>,
    /// "… is thinking": a deferred answer without text yet.
    pub loading: bool,
    pub deleted: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    /// The thread that starts here.
    pub thread: Option<ChannelId>,
    pub(crate) nonce: Option<Value>,
    pub(crate) flags: u64,
    /// Sent through an interaction's token; carries its id and the asker.
    pub(crate) from_interaction: Option<(u64, UserId, u8)>,
    pub(crate) edits_when_old: u32,
}

impl Message {
    /// The buttons on it now, row by row.
    pub fn buttons(&self) -> Vec<Button> {
        let rows = self.components.as_array().into_iter().flatten();
        rows.flat_map(|row| row["components"].as_array().into_iter().flatten())
            .filter(|component| component["type"] == 2)
            .map(|component| Button {
                label: component["label"].as_str().unwrap_or_default().to_owned(),
                custom_id: component["custom_id"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                disabled: component["disabled"].as_bool().unwrap_or_default(),
            })
            .collect()
    }
}

/// A button a person can press.
#[derive(Clone, Debug, PartialEq)]
pub struct Button {
    pub label: String,
    /// Empty = a link.
    pub custom_id: String,
    pub disabled: bool,
}

/// A file on a message, either way.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub id: u64,
    pub name: String,
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
}

/// Who got a notification from a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pings {
    /// `@everyone` or `@here`.
    pub everyone: bool,
    pub users: Vec<UserId>,
    pub roles: Vec<RoleId>,
}

impl Pings {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.everyone |= other.everyone;
        for user in other.users {
            if !self.users.contains(&user) {
                self.users.push(user);
            }
        }
        for role in other.roles {
            if !self.roles.contains(&role) {
                self.roles.push(role);
            }
        }
    }
}

/// Permission bits the fake knows.
pub mod permission {
    pub const VIEW_CHANNEL: u64 = 1 << 10;
    pub const SEND_MESSAGES: u64 = 1 << 11;
    pub const EMBED_LINKS: u64 = 1 << 14;
    pub const ATTACH_FILES: u64 = 1 << 15;
    pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
    pub const MENTION_EVERYONE: u64 = 1 << 17;
    pub const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
    pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;
    /// What the bot has unless a test takes some away.
    pub const BOT_DEFAULT: u64 = VIEW_CHANNEL
        | SEND_MESSAGES
        | EMBED_LINKS
        | ATTACH_FILES
        | READ_MESSAGE_HISTORY
        | MENTION_EVERYONE
        | CREATE_PUBLIC_THREADS
        | SEND_MESSAGES_IN_THREADS;
}
