//! What is in the fake workspace.

use jiff::Timestamp;
use serde_json::Value;

/// A person or a bot user.
#[derive(Clone, Debug)]
pub struct User {
    pub id: String,
    pub name: String,
    pub bot: bool,
}

/// A channel (`C…`) or the direct messages with a person (`D…`).
#[derive(Clone, Debug)]
pub struct Channel {
    pub id: String,
    pub name: String,
    /// `Some` = direct messages with this person.
    pub dm_with: Option<String>,
    /// The app was invited; else `not_in_channel`.
    pub joined: bool,
}

/// Where a message is: channel and timestamp name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    pub channel: String,
    pub ts: String,
}

/// A message as it stands now, with what it was before.
#[derive(Clone, Debug)]
pub struct Message {
    pub at: At,
    pub user: String,
    /// `text` or `markdown_text` as sent, escapes included.
    pub text: String,
    /// The text came as `markdown_text`.
    pub markdown: bool,
    pub earlier: Vec<String>,
    pub blocks: Value,
    pub thread_ts: Option<String>,
    /// `Some` = ephemeral.
    pub only_for: Option<String>,
    pub pings: Pings,
    pub files: Vec<File>,
    pub reactions: Vec<String>,
    pub metadata: Value,
    /// Between `chat.startStream` and `chat.stopStream`.
    pub streaming: bool,
    pub deleted: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
}

impl Message {
    /// The buttons on it now: action id, label, value, block id.
    pub fn buttons(&self) -> Vec<Button> {
        let blocks = self.blocks.as_array().into_iter().flatten();
        let mut found = Vec::new();
        for block in blocks {
            let elements = block["elements"]
                .as_array()
                .into_iter()
                .flatten()
                .chain([&block["accessory"]]);
            for element in elements.filter(|element| element["type"] == "button") {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                found.push(Button {
                    action_id: text(&element["action_id"]),
                    label: text(&element["text"]["text"]),
                    value: text(&element["value"]),
                    block_id: text(&block["block_id"]),
                });
            }
        }
        found
    }
}

/// A button a person can press.
#[derive(Clone, Debug, PartialEq)]
pub struct Button {
    pub action_id: String,
    pub label: String,
    pub value: String,
    pub block_id: String,
}

/// A file, either way.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub id: String,
    pub name: String,
    pub mimetype: String,
    pub bytes: Vec<u8>,
}

/// Who got a notification from a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pings {
    /// `<!channel>`, `<!here>`, `<!everyone>`.
    pub channel: bool,
    pub users: Vec<String>,
    /// User groups.
    pub groups: Vec<String>,
}

impl Pings {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.channel |= other.channel;
        self.users.extend(
            other
                .users
                .into_iter()
                .filter(|user| !self.users.contains(user))
                .collect::<Vec<_>>(),
        );
        self.groups.extend(other.groups);
    }
}
