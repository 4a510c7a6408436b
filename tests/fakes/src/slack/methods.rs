//! The Web API methods the fake serves: login, scope, limit and the parameters Slack's old file does not know.
//!
//! A method that is not here is a violation.

use std::time::Duration;

use crate::limits::Rate;

/// Which token a method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Bot,
    App,
}

pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) login: Login,
    /// Any of these is enough; empty = none needed.
    pub(crate) scopes: &'static [&'static str],
    pub(crate) rate: Rate,
    /// Parameters beside those of the file; a `!` in front = required.
    pub(crate) parameters: &'static [&'static str],
}

const MINUTE: Duration = Duration::from_secs(60);
const TIER_2: Rate = Rate::new(20, MINUTE);
const TIER_3: Rate = Rate::new(50, MINUTE);
const TIER_4: Rate = Rate::new(100, MINUTE);
/// Counted for each channel.
pub(crate) const POSTING: Rate = Rate::new(1, Duration::from_secs(1));
const WRITE: &[&str] = &["chat:write"];
const READ: &[&str] = &["channels:read", "groups:read", "im:read", "mpim:read"];
const HISTORY: &[&str] = &[
    "channels:history",
    "groups:history",
    "im:history",
    "mpim:history",
];

const fn bot(
    name: &'static str,
    scopes: &'static [&'static str],
    rate: Rate,
    parameters: &'static [&'static str],
) -> Method {
    Method {
        name,
        login: Login::Bot,
        scopes,
        rate,
        parameters,
    }
}

/// Sorted by name, as Slack's list is.
pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "apps.connections.open",
        login: Login::App,
        scopes: &["connections:write"],
        rate: TIER_4,
        parameters: &[],
    },
    bot(
        "assistant.threads.setStatus",
        &["assistant:write", "chat:write"],
        Rate::new(600, MINUTE),
        &["!channel_id", "!thread_ts", "!status", "loading_messages"],
    ),
    bot("auth.test", &[], Rate::new(600, MINUTE), &[]),
    bot(
        "chat.appendStream",
        WRITE,
        TIER_4,
        &["!channel", "!ts", "markdown_text", "chunks"],
    ),
    bot("chat.delete", WRITE, TIER_3, &[]),
    bot("chat.postEphemeral", WRITE, TIER_4, &["markdown_text"]),
    bot(
        "chat.postMessage",
        WRITE,
        POSTING,
        &["markdown_text", "metadata"],
    ),
    bot(
        "chat.startStream",
        WRITE,
        TIER_2,
        &[
            "!channel",
            "!thread_ts",
            "markdown_text",
            "chunks",
            "recipient_user_id",
            "recipient_team_id",
        ],
    ),
    bot(
        "chat.stopStream",
        WRITE,
        TIER_2,
        &[
            "!channel",
            "!ts",
            "markdown_text",
            "chunks",
            "blocks",
            "metadata",
        ],
    ),
    bot(
        "chat.update",
        WRITE,
        TIER_3,
        &["markdown_text", "metadata", "reply_broadcast", "file_ids"],
    ),
    bot(
        "conversations.history",
        HISTORY,
        TIER_3,
        &["include_all_metadata"],
    ),
    bot("conversations.info", READ, TIER_3, &[]),
    bot(
        "conversations.open",
        &["im:write", "mpim:write"],
        TIER_3,
        &["prevent_creation"],
    ),
    bot(
        "conversations.replies",
        HISTORY,
        TIER_3,
        &["include_all_metadata"],
    ),
    bot(
        "files.completeUploadExternal",
        &["files:write"],
        TIER_4,
        &[
            "!files",
            "channel_id",
            "channels",
            "thread_ts",
            "initial_comment",
            "blocks",
        ],
    ),
    bot(
        "files.getUploadURLExternal",
        &["files:write"],
        TIER_4,
        &["!filename", "!length", "alt_txt", "snippet_type"],
    ),
    bot("reactions.add", &["reactions:write"], TIER_3, &[]),
    bot("reactions.remove", &["reactions:write"], TIER_2, &[]),
    bot("users.info", &["users:read"], TIER_4, &[]),
];

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// What the app was granted unless a test takes some away.
pub(crate) const SCOPES: &[&str] = &[
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",
];
