//! Rows of the chat platforms.

use std::collections::BTreeSet;

use serde_json::json;

use super::Table;
use crate::config::document::KeyPath;
use crate::config::{Account, ChatSettings};

impl Table<'_> {
    pub(super) fn chat(&mut self, section: &KeyPath, chat: &ChatSettings) {
        let address = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        let guilds = match &chat.account {
            Account::Discord {
                token,
                api_base,
                gateway_url,
                guild_commands,
            } => {
                self.secret_of(section, "token", token);
                let scope = if *guild_commands { "guild" } else { "global" };
                self.row(section, "commands", json!(scope));
                self.some(section, "api_base", address(api_base));
                self.some(section, "gateway_url", address(gateway_url));
                self.list(section, "roles", &chat.access.roles);
                "guilds"
            }
            Account::Slack {
                app_token,
                bot_token,
                api_url,
            } => {
                self.secret_of(section, "app_token", app_token);
                self.secret_of(section, "bot_token", bot_token);
                self.some(section, "api_url", address(api_url));
                "workspaces"
            }
        };
        let access = &chat.access;
        self.list(section, guilds, &access.guilds);
        self.list(section, "channels", &access.channels);
        self.list(section, "users", &access.users);
        self.list(section, "operators", &access.operators);
        let everyone = json!(access.everyone_in_channels);
        self.row(section, "everyone_in_channels", everyone);
        self.list(section, "bots", &access.bots);
        self.row(section, "bot_depth", json!(access.bot_depth));
        self.row(section, "permissions", json!(chat.permissions));
        self.row(section, "show_tools", json!(chat.show_tools));
        self.row(section, "command_prefix", json!(chat.command_prefix));
    }

    fn list(&mut self, section: &KeyPath, name: &str, ids: &BTreeSet<String>) {
        self.row(section, name, json!(ids));
    }
}
