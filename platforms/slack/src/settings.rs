//! What an operator decides about Slack.

use secrecy::SecretString;

/// One app in one workspace.
#[derive(Debug, Clone)]
pub struct SlackSettings {
    /// `xapp-…`, with the scope `connections:write`.
    pub app_token: SecretString,
    /// `xoxb-…`.
    pub bot_token: SecretString,
    /// Where the Web API is, without a slash at its end; `None` = `https://slack.com/api`. Sockets are where
    /// `apps.connections.open` says.
    pub api_url: Option<String>,
    /// Workspaces (`T…`) the profiles of this token serve; empty = any.
    pub guilds: Vec<String>,
    /// Channels (`C…`, `G…`) the profiles of this token serve; empty = any the bot is in.
    pub channels: Vec<String>,
    /// Stands before the name of every slash command but `/baton`, as in the manifest; mostly empty.
    pub prefix: String,
}

impl SlackSettings {
    /// Settings with nothing but the tokens.
    pub fn new(app_token: impl Into<SecretString>, bot_token: impl Into<SecretString>) -> Self {
        Self {
            app_token: app_token.into(),
            bot_token: bot_token.into(),
            api_url: None,
            guilds: Vec::new(),
            channels: Vec::new(),
            prefix: String::new(),
        }
    }
}
