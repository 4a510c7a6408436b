//! Slash commands. Slack names neither their message nor their thread, so they belong to the channel.

use commands::surface::{BATON, slack::behind_baton};
use serde::Deserialize;

use super::*;
use crate::text::plain;

#[derive(Deserialize)]
struct Command {
    command: String,
    #[serde(default)]
    text: String,
    user_id: String,
    user_name: Option<String>,
    channel_id: String,
    channel_name: Option<String>,
    team_id: Option<String>,
    response_url: String,
    trigger_id: String,
}

pub(super) fn take(payload: &str, prefix: &str) -> Read {
    let typed: Command = serde_json::from_str(payload).map_err(|error| error.to_string())?;
    let channel = id("channel_id", &typed.channel_id)?;
    let user = id("user_id", &typed.user_id)?;
    let key = id("trigger_id", &typed.trigger_id)?;
    let text = plain(&typed.text);
    let (name, args) = meant(&typed.command, &text, prefix);
    let direct = is_direct(&channel) || typed.channel_name.as_deref() == Some("directmessage");
    let address = Address::Command {
        channel: channel.clone(),
        user: user.clone(),
        key: key.clone(),
    };
    let response = Response {
        url: typed.response_url,
        pressed: None,
    };
    Ok(Some(Fresh {
        ids: vec![format!("trigger {key}")],
        heard: Heard {
            id: InboundId::new(key.clone()),
            speaker: person(&user, typed.user_name),
            spot: spot(&channel, typed.team_id.as_deref(), direct),
            called: true,
            conversation: channel,
            address: address.to_string(),
            content: Content::Command {
                name: name.to_owned(),
                args: args.trim().to_owned(),
            },
        },
        response: Some((key, response)),
    }))
}

/// The command that is meant and its argument: `/baton usage` is `/usage`, and so is `/b-usage` with the prefix `b-`.
fn meant<'a>(command: &'a str, text: &'a str, prefix: &str) -> (&'a str, &'a str) {
    let typed = command.trim_start_matches('/');
    let (name, args) = match typed == BATON {
        true => behind_baton(text),
        false => (typed, text),
    };
    let bare = name.strip_prefix(prefix).filter(|name| !name.is_empty());
    (bare.unwrap_or(name), args)
}
