//! The look at everything at start: both tokens, the scopes, the workspace, the channels. Each finding says what to do.

use platforms::adapter::{Finding, Severity};
use platforms::wire::WireError;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::sleep;

use crate::api::refusal::{Refusal, refusal};
use crate::api::{Api, Who};
use crate::scopes::SCOPES;
use crate::settings::SlackSettings;

const BOT: &str = "bot token";
const APP: &str = "app token";

pub(crate) async fn check(
    settings: &SlackSettings,
    api: &Api,
) -> Result<(Who, Vec<Finding>), Finding> {
    right_kind(&settings.bot_token, BOT, "xoxb-")?;
    right_kind(&settings.app_token, APP, "xapp-")?;
    let (who, scopes) = api
        .who()
        .await
        .map_err(|error| stop(refusal("auth.test", BOT, error)))?;
    let mut findings = vec![greeting(&who)];
    findings.extend(missing_scopes(scopes.as_deref())?);
    let open = "apps.connections.open";
    api.socket_address()
        .await
        .map_err(|error| stop(refusal(open, APP, error)))?;
    right_workspace(settings, &who)?;
    for channel in &settings.channels {
        findings.extend(channel_finding(api, channel, &who).await);
    }
    Ok((who, findings))
}

/// Tokens say what they are by their beginning.
fn right_kind(token: &SecretString, what: &str, begins: &str) -> Result<(), Finding> {
    let token = token.expose_secret().trim();
    if token.starts_with(begins) {
        return Ok(());
    }
    let is = match token.split_once('-').map(|(kind, _)| kind) {
        _ if token.is_empty() => "is empty",
        Some("xapp") => "is an app-level token",
        Some("xoxb") => "is a bot token",
        Some("xoxp" | "xoxe") => "is a user's token",
        _ => "does not look like one of Slack's",
    };
    let place = match what {
        APP => "Basic Information > App-Level Tokens",
        _ => "OAuth & Permissions > Bot User OAuth Token",
    };
    Err(fatal(
        format!("Slack's {what} begins with {begins}; the configured one {is}."),
        format!("Copy it from the app's settings: {place}."),
    ))
}

fn greeting(who: &Who) -> Finding {
    Finding {
        severity: Severity::Fine,
        what: format!(
            "Slack: @{} ({}) in {} ({}).",
            who.user, who.user_id, who.team, who.team_id
        ),
        hint: String::new(),
    }
}

fn missing_scopes(granted: Option<&[String]>) -> Result<Vec<Finding>, Finding> {
    let Some(granted) = granted else {
        return Ok(vec![warning(
            "Slack did not say which scopes the bot token has.".to_owned(),
            String::new(),
        )]);
    };
    let mut findings = Vec::new();
    for scope in SCOPES {
        if granted.iter().any(|name| name == scope.name) {
            continue;
        }
        let what = format!(
            "Slack: the bot token lacks the scope {}, needed to {}.",
            scope.name, scope.reason
        );
        let hint = "Add it under OAuth & Permissions and reinstall the app.".to_owned();
        match scope.essential {
            true => return Err(fatal(what, hint)),
            false => findings.push(warning(what, hint)),
        }
    }
    Ok(findings)
}

fn right_workspace(settings: &SlackSettings, who: &Who) -> Result<(), Finding> {
    if who.is_enterprise_install || settings.guilds.is_empty() {
        return Ok(());
    }
    if settings.guilds.contains(&who.team_id) {
        return Ok(());
    }
    Err(fatal(
        format!(
            "The Slack tokens belong to the workspace {} ({}), which is not among the configured ones ({}).",
            who.team,
            who.team_id,
            settings.guilds.join(", ")
        ),
        "Configure this workspace, or use the tokens of the app in the other one.".to_owned(),
    ))
}

#[derive(Deserialize)]
struct Info {
    channel: Channel,
}

#[derive(Deserialize)]
struct Channel {
    #[serde(default)]
    name: String,
    #[serde(default)]
    is_member: bool,
    #[serde(default)]
    is_archived: bool,
    #[serde(default)]
    is_im: bool,
}

/// `None` = the bot is in the channel.
async fn channel_finding(api: &Api, channel: &str, who: &Who) -> Option<Finding> {
    let method = "conversations.info";
    let parameters = [("channel", Some(channel.to_owned()))];
    let mut tries = 0;
    let answer = loop {
        let answer: Result<Info, _> = api.get(method, &parameters).await;
        let refused = match answer {
            Ok(info) => break Ok(info.channel),
            Err(error) => refusal(method, BOT, error),
        };
        match refused {
            // Many channels; the check may take its time.
            Refusal::ForNow(WireError::RateLimited { after, .. }) if tries < 3 => {
                tries += 1;
                sleep(after.unwrap_or(std::time::Duration::from_secs(5))).await;
            }
            other => break Err(other),
        }
    };
    let unclear = |why: String| {
        warning(
            format!("Slack: it is unknown whether the bot is in the channel {channel}: {why}."),
            String::new(),
        )
    };
    match answer {
        Ok(found) if found.is_archived => Some(warning(
            format!(
                "Slack: the channel #{} ({channel}) is archived.",
                found.name
            ),
            "Take it out of the configuration.".to_owned(),
        )),
        Ok(found) if found.is_member || found.is_im => None,
        Ok(found) => Some(warning(
            format!(
                "Slack: the bot is not in the channel #{} ({channel}).",
                found.name
            ),
            format!("Type /invite @{} there.", who.user),
        )),
        Err(Refusal::ForNow(WireError::PlaceGone(_))) => Some(warning(
            format!("Slack: there is no channel {channel} the bot can see."),
            format!(
                "Use its id (channel details, at the bottom), not its name; in a private one type /invite @{} first.",
                who.user
            ),
        )),
        Err(Refusal::ForNow(error)) => Some(unclear(error.to_string())),
        Err(Refusal::ForGood(finding)) => Some(Finding {
            severity: Severity::Warning,
            ..finding
        }),
    }
}

fn stop(refusal: Refusal) -> Finding {
    match refusal {
        Refusal::ForGood(finding) => finding,
        Refusal::ForNow(error) => {
            let why = match error {
                WireError::NotDelivered(why)
                | WireError::Uncertain(why)
                | WireError::Refused(why)
                | WireError::PlaceGone(why) => why,
                other => other.to_string(),
            };
            fatal(
                format!("Slack does not answer as it should: {why}."),
                "Check the network, and api_url if it is set.".to_owned(),
            )
        }
    }
}

fn fatal(what: String, hint: String) -> Finding {
    Finding {
        severity: Severity::Fatal,
        what,
        hint,
    }
}

fn warning(what: String, hint: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        what,
        hint,
    }
}
