//! The chat platforms of a profile, resolved.

use gateway_core::access::AccessRules;
use providers::Permissions;

use super::secret::SecretRef;

/// A platform that `baton run` serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChatKind {
    Discord,
    Slack,
}

impl ChatKind {
    /// Every one there is.
    pub const ALL: [Self; 2] = [Self::Discord, Self::Slack];

    /// Its section in a profile, and its name in reply targets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discord => "discord",
            Self::Slack => "slack",
        }
    }

    /// The platform of this name; `None` = another surface.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// `[profiles.P.discord]` or `[profiles.P.slack]`.
#[derive(Debug, Clone)]
pub struct ChatSettings {
    pub account: Account,
    pub access: AccessRules,
    /// The level of turns from here; `edit` and `full` hold for operators only.
    pub permissions: Permissions,
    /// Whether tool activity is shown.
    pub show_tools: bool,
    /// Stands before every command's name; mostly empty.
    pub command_prefix: String,
}

/// The bot, and where its platform is. Profiles with the same bot are served over one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    Discord {
        token: SecretRef,
        /// `None` = Discord's own; likewise below.
        api_base: Option<String>,
        gateway_url: Option<String>,
        /// Whether commands are registered in the listed servers instead of everywhere.
        guild_commands: bool,
    },
    Slack {
        app_token: SecretRef,
        bot_token: SecretRef,
        api_url: Option<String>,
    },
}

impl Account {
    /// The secret that says which bot it is.
    pub fn bot(&self) -> &SecretRef {
        match self {
            Self::Discord { token, .. } => token,
            Self::Slack { bot_token, .. } => bot_token,
        }
    }

    /// Every secret of it.
    pub fn secrets(&self) -> Vec<&SecretRef> {
        match self {
            Self::Discord { token, .. } => vec![token],
            Self::Slack {
                app_token,
                bot_token,
                ..
            } => vec![app_token, bot_token],
        }
    }
}
