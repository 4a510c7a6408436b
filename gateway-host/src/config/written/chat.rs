//! The sections of the chat platforms in a profile.

use providers::Permissions;
use schemars::JsonSchema;
use serde::Deserialize;

/// A Discord bot: who may speak to it where, and what the agent may do for them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct Discord {
    /// The environment variable that holds the bot's token.
    pub token_env: Option<String>,
    /// The file that holds the bot's token; readable by you alone.
    pub token_file: Option<String>,
    /// Servers, by id; empty: any the bot is in.
    pub guilds: Vec<String>,
    /// Channels, by id; threads count as their channel. Empty: any channel of the servers, but only what names the bot.
    pub channels: Vec<String>,
    /// People who may speak, by id.
    pub users: Vec<String>,
    /// Roles whose people may speak, by id; they count in servers, not in direct messages.
    pub roles: Vec<String>,
    /// People who may speak and may do more, by id. While nobody is named, `baton run` offers a pairing code.
    pub operators: Vec<String>,
    /// Everybody in the listed channels may speak; default false.
    pub everyone_in_channels: Option<bool>,
    /// Other bots that are answered when they mention this one, by id.
    pub bots: Vec<String>,
    /// How many messages of bots in a row are answered until a person speaks; default 3.
    pub bot_depth: Option<u64>,
    /// What the agent may do in turns from here; default none. "edit" and "full" hold for operators only, others get
    /// "read-only".
    pub permissions: Option<Permissions>,
    /// Whether a message shows what the agent's tools are doing; default false.
    pub show_tools: Option<bool>,
    /// Where the slash commands are registered: "global" (the default: everywhere, direct messages too) or "guild" (only in
    /// the listed servers, at once).
    pub commands: Option<ScopeName>,
    /// Stands before every command's name, for servers where another bot has the same ones; default none.
    pub command_prefix: Option<String>,
    /// The REST interface, in place of Discord's own: a proxy or a test server.
    pub api_base: Option<String>,
    /// The gateway, in place of the one the REST interface names.
    pub gateway_url: Option<String>,
}

/// Where commands are registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum ScopeName {
    Global,
    Guild,
}

/// A Slack app: who may speak to it where, and what the agent may do for them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct Slack {
    /// The environment variable that holds the app-level token (xapp-…).
    pub app_token_env: Option<String>,
    /// The file that holds the app-level token; readable by you alone.
    pub app_token_file: Option<String>,
    /// The environment variable that holds the bot token (xoxb-…).
    pub bot_token_env: Option<String>,
    /// The file that holds the bot token; readable by you alone.
    pub bot_token_file: Option<String>,
    /// Workspaces, by id (T…); empty: the one the app is installed in.
    pub workspaces: Vec<String>,
    /// Channels, by id (C…, G…). Empty: any channel, but only what names the bot.
    pub channels: Vec<String>,
    /// People who may speak, by id (U…, W…).
    pub users: Vec<String>,
    /// People who may speak and may do more, by id. While nobody is named, `baton run` offers a pairing code.
    pub operators: Vec<String>,
    /// Everybody in the listed channels may speak; default false.
    pub everyone_in_channels: Option<bool>,
    /// Other bots that are answered when they mention this one, by id (U…, B…).
    pub bots: Vec<String>,
    /// How many messages of bots in a row are answered until a person speaks; default 3.
    pub bot_depth: Option<u64>,
    /// What the agent may do in turns from here; default none. "edit" and "full" hold for operators only, others get
    /// "read-only".
    pub permissions: Option<Permissions>,
    /// Whether a message shows what the agent's tools are doing; default false.
    pub show_tools: Option<bool>,
    /// Stands before every command's name in the manifest; default none.
    pub command_prefix: Option<String>,
    /// The Web API, in place of Slack's own: a proxy or a test server.
    pub api_url: Option<String>,
}
