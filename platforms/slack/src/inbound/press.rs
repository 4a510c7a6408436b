//! Presses of buttons.

use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::responses::Pressed;

#[derive(Deserialize)]
struct Interaction {
    #[serde(rename = "type")]
    kind: String,
    user: Option<User>,
    team: Option<Team>,
    channel: Option<Named>,
    container: Option<Container>,
    message: Option<Message>,
    response_url: Option<String>,
    trigger_id: Option<String>,
    #[serde(default)]
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    username: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Team {
    id: String,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Container {
    message_ts: Option<String>,
    channel_id: Option<String>,
    thread_ts: Option<String>,
    #[serde(default)]
    is_ephemeral: bool,
}

#[derive(Deserialize)]
struct Message {
    thread_ts: Option<String>,
    #[serde(default)]
    blocks: Vec<Value>,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Action {
    #[serde(default)]
    action_id: String,
    value: Option<String>,
}

pub(super) fn take(payload: &str) -> Read {
    let press: Interaction = serde_json::from_str(payload).map_err(|error| error.to_string())?;
    let (Some(container), Some(action), Some(user)) =
        (press.container, press.actions.first(), press.user)
    else {
        return Ok(None); // a shortcut, a form
    };
    let Some(message) = container
        .message_ts
        .filter(|_| press.kind == "block_actions")
    else {
        return Ok(None); // a button in a form or a home tab
    };
    let channel = press
        .channel
        .map(|channel| channel.id)
        .or(container.channel_id);
    let channel = id("channel", &channel.unwrap_or_default())?;
    let message = id("message_ts", &message)?;
    let key = id("trigger_id", &press.trigger_id.unwrap_or_default())?;
    let name = user.username.or(user.name);
    let user = id("user", &user.id)?;
    let root = container
        .thread_ts
        .or_else(|| press.message.as_ref()?.thread_ts.clone())
        .filter(|root| *root != message);
    let thread = root.map(|root| id("thread_ts", &root)).transpose()?;
    let place = Place { channel, thread };
    let pressed = match press.message {
        Some(shown) if !container.is_ephemeral => Pressed::Blocks {
            blocks: shown.blocks,
            text: shown.text,
        },
        _ => Pressed::Text(action.value.clone().unwrap_or_default()),
    };
    let response = press.response_url.map(|url| {
        let pressed = Some(pressed);
        (key.clone(), Response { url, pressed })
    });
    let team = press.team.map(|team| team.id);
    Ok(Some(Fresh {
        ids: vec![format!("trigger {key}")],
        heard: Heard {
            id: InboundId::new(key.clone()),
            speaker: person(&user, name),
            spot: spot(&place.channel, team.as_deref(), is_direct(&place.channel)),
            called: true,
            conversation: conversation(&place),
            address: Address::Press {
                place,
                user,
                message,
                private: container.is_ephemeral,
                key,
            }
            .to_string(),
            content: Content::Press {
                custom_id: action.action_id.clone(),
            },
        },
        response,
    }))
}
