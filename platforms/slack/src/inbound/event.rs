//! Messages. `message` and `app_mention` both arrive for one mention, in either order, so both are read the same way.

use serde::Deserialize;
use serde_json::Value;

use platforms::adapter::File;

use super::*;
use crate::text::{mentions, spoken};

#[derive(Deserialize)]
struct Callback {
    event_id: String,
    team_id: Option<String>,
    event: Event,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    channel: Option<Value>,
    channel_type: Option<String>,
    user: Option<Value>,
    bot_id: Option<String>,
    username: Option<String>,
    text: Option<String>,
    ts: Option<String>,
    thread_ts: Option<String>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    files: Vec<Value>,
}

/// Subtypes that are somebody speaking; every other one is a notice, an edit or a deletion.
const SPOKEN: [&str; 4] = [
    "file_share",
    "thread_broadcast",
    "me_message",
    "bot_message",
];

pub(super) fn take(payload: &str, who: &Who) -> Read {
    let callback: Callback = serde_json::from_str(payload).map_err(|error| error.to_string())?;
    let event = callback.event;
    let is_message = matches!(event.kind.as_str(), "message" | "app_mention");
    let is_spoken = event
        .subtype
        .as_deref()
        .is_none_or(|kind| SPOKEN.contains(&kind));
    if !is_message || !is_spoken || event.hidden {
        return Ok(None);
    }
    let text_of = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let channel = id("channel", &text_of(&event.channel))?;
    let ts = id("ts", event.ts.as_deref().unwrap_or_default())?;
    let (user, bot) = (text_of(&event.user), event.bot_id.unwrap_or_default());
    if user == who.user_id || (!bot.is_empty() && bot == who.bot_id) {
        return Ok(None);
    }
    let mut speaker = person(
        &id("user", if user.is_empty() { &bot } else { &user })?,
        event.username,
    );
    if !bot.is_empty() || event.subtype.as_deref() == Some("bot_message") {
        speaker.kind = SpeakerKind::Bot;
    }
    let thread = match event.thread_ts {
        Some(root) if root != ts => Some(id("thread_ts", &root)?),
        _ => None,
    };
    let text = event.text.unwrap_or_default();
    let direct = event.channel_type.as_deref() == Some("im") || is_direct(&channel);
    let place = Place { channel, thread };
    let said = format!("{}/{ts}", place.channel);
    Ok(Some(Fresh {
        ids: vec![callback.event_id, said.clone()],
        heard: Heard {
            id: InboundId::new(said),
            called: direct || event.kind == "app_mention" || mentions(&text, &who.user_id),
            spot: spot(&place.channel, callback.team_id.as_deref(), direct),
            conversation: conversation(&place),
            address: Address::Message {
                place,
                user: speaker.id.clone(),
            }
            .to_string(),
            content: Content::Text {
                text: spoken(&text, &who.user_id),
                files: event.files.iter().filter_map(file).collect(),
            },
            speaker,
        },
        response: None,
    }))
}

/// A file as Slack announces it; `None` = a tombstone of one that is gone.
fn file(value: &Value) -> Option<File> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    if matches!(text("mode"), "tombstone" | "hidden_by_limit") {
        return None;
    }
    let first = |keys: [&str; 2]| {
        let known = keys.iter().map(|key| text(key));
        known
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    Some(File {
        name: first(["name", "title"]),
        size: value
            .get("size")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        media_type: Some(text("mimetype").to_owned()).filter(|kind| !kind.is_empty()),
        source: first(["url_private_download", "url_private"]),
    })
}
