//! The app's manifest, from the one command table and the tables of scopes and events. Slack knows no registration at run
//! time: what is not in the manifest does not exist.
//!
//! Bounds: names of apps 35 characters, descriptions 140, long descriptions 174 to 4,000, names of bots 80 of `a-z0-9-_.`,
//! 50 commands (Slack's manifest reference; the typings of `@slack/web-api` 8.2).

use commands::surface::Misfit;
use commands::surface::slack::{BEHIND_BATON, Registration, fit};
use gateway_core::command::CommandSpec;
use platforms::adapter::{Finding, Severity};
use serde_json::{Value, json};

use crate::scopes::{EVENTS, SCOPES};

/// What people see of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct App<'a> {
    /// Of the app and its bot; at most 35 characters.
    pub name: &'a str,
    /// Stands before every command but `/baton`; mostly empty.
    pub prefix: &'a str,
}

impl Default for App<'_> {
    fn default() -> Self {
        Self {
            name: "Baton",
            prefix: "",
        }
    }
}

const NAME_MAX: usize = 35;

/// The manifest as JSON, to paste at api.slack.com/apps > Create New App > From a manifest; and the commands it lists,
/// with those that have no place of their own.
///
/// # Errors
/// Commands that fit in no way; each is named.
pub fn manifest(
    commands: &[&CommandSpec],
    app: App<'_>,
) -> Result<(String, Registration), Vec<Misfit>> {
    let fitted = fit(commands, app.prefix, BEHIND_BATON)?;
    let text = serde_json::to_string_pretty(&json(&fitted, app.name));
    Ok((text.unwrap_or_default(), fitted))
}

fn json(fitted: &Registration, name: &str) -> Value {
    let scopes: Vec<&str> = SCOPES.iter().map(|scope| scope.name).collect();
    let events: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
    let shown: String = name.chars().take(NAME_MAX).collect();
    json!({
        "display_information": {
            "name": shown,
            "description": "The work goes on when a subscription runs out.",
            "background_color": "#2c2d30",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": false,
                "messages_tab_enabled": true,
                "messages_tab_read_only_enabled": false,
            },
            "bot_user": { "display_name": bot_name(&shown), "always_online": true },
            "slash_commands": fitted.commands,
        },
        "oauth_config": { "scopes": { "bot": scopes } },
        "settings": {
            "event_subscriptions": { "bot_events": events },
            "interactivity": { "is_enabled": true },
            "org_deploy_enabled": false,
            "socket_mode_enabled": true,
            "token_rotation_enabled": false,
        },
    })
}

/// A bot's name takes fewer characters than an app's.
fn bot_name(name: &str) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '-',
        })
        .collect();
    match plain.trim_matches('-') {
        "" => "baton".to_owned(),
        plain => plain.to_owned(),
    }
}

/// What the operator has to know of the commands, since no program can register them.
pub(crate) fn registered(commands: &[&CommandSpec], prefix: &str) -> Result<Vec<Finding>, Finding> {
    let fitted = fit(commands, prefix, BEHIND_BATON).map_err(|misfits| {
        let said: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        Finding {
            severity: Severity::Fatal,
            what: format!("Slack cannot take the commands: {}.", said.join("; ")),
            hint: String::new(),
        }
    })?;
    let mut findings = vec![Finding {
        severity: Severity::Fine,
        what: format!(
            "Slack: {} slash commands stand in the manifest; no program can register or look at them.",
            fitted.commands.len()
        ),
        hint: "After an update, compare `baton slack-manifest` with the app's (App Manifest)."
            .to_owned(),
    }];
    findings.extend(fitted.demoted.iter().map(|one| Finding {
        severity: Severity::Fine,
        what: format!("Slack: {one}."),
        hint: String::new(),
    }));
    Ok(findings)
}

#[cfg(test)]
mod tests;
