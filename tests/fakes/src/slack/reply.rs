//! `response_url`: five posts within 30 minutes, the only way to change an ephemeral answer.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::hand;
use super::model::At;
use super::world::{BOT_USER, Draft, World};
use crate::clock::between;

const USES: u32 = 5;
const LIVES: Duration = Duration::from_secs(30 * 60);

pub(crate) struct ResponseUrl {
    pub(crate) channel: String,
    pub(crate) user: String,
    pub(crate) created: Timestamp,
    pub(crate) uses: u32,
    /// The message the button was on. `None` = a command.
    pub(crate) on: Option<At>,
    /// What this url posted, oldest first.
    pub(crate) posted: Vec<At>,
}

/// Makes a url for a command or a click.
pub(crate) fn make(world: &mut World, channel: &str, user: &str, on: Option<At>) -> String {
    let id = world.next_id('R');
    let url = format!("{}/response/{id}", world.base);
    let made = ResponseUrl {
        channel: channel.to_owned(),
        user: user.to_owned(),
        created: world.now(),
        uses: 0,
        on,
        posted: Vec::new(),
    };
    world.response_urls.insert(id, made);
    url
}

/// No `markdown_text`: Slack answers `no_text` to it (github.com/vercel/chat/pull/440).
const KNOWN: [&str; 9] = [
    "text",
    "blocks",
    "response_type",
    "replace_original",
    "delete_original",
    "thread_ts",
    "mrkdwn",
    "unfurl_links",
    "unfurl_media",
];

/// Returns status, answer and broken rules.
pub(crate) fn respond(
    world: &mut World,
    id: &str,
    body: &Map<String, Value>,
) -> (u16, Value, Vec<String>) {
    let now = world.now();
    let failed = |error: &str| (404, json!({ "ok": false, "error": error }), Vec::new());
    let Some(url) = world.response_urls.get_mut(id) else {
        return failed("invalid_url");
    };
    if between(url.created, now) > LIVES {
        return failed("expired_url");
    }
    if url.uses >= USES {
        return failed("used_url");
    }
    url.uses += 1;
    let (channel, user, on) = (url.channel.clone(), url.user.clone(), url.on.clone());
    let mut broken = hand::check_message(body);
    let unknown = body.keys().filter(|key| !KNOWN.contains(&key.as_str()));
    broken.extend(unknown.map(|key| format!("{key}: unknown key")));
    if !broken.is_empty() {
        return (
            400,
            json!({ "ok": false, "error": "invalid_blocks" }),
            broken,
        );
    }
    let is = |key: &str| body.get(key) == Some(&json!(true));
    let draft = Draft::read(body);
    match on.filter(|_| is("delete_original") || is("replace_original")) {
        Some(original) if is("delete_original") => world.delete(&original),
        // It replaces the whole message: without blocks the old ones go.
        Some(original) => {
            let blocks = Some(draft.blocks.unwrap_or_else(|| json!([])));
            world.edit(&original, Draft { blocks, ..draft });
        }
        None if draft.is_empty() => {
            return (500, json!({ "ok": false, "error": "no_text" }), Vec::new());
        }
        None => {
            let public = body
                .get("response_type")
                .is_some_and(|kind| kind == "in_channel");
            let only_for = (!public).then_some(user);
            let at = world.post(&channel, BOT_USER, Draft { only_for, ..draft });
            if let Some(url) = world.response_urls.get_mut(id) {
                url.posted.push(at.clone());
                // From now on "the original" is what the command answered first.
                url.on.get_or_insert(at);
            }
        }
    }
    (200, json!({ "ok": true }), Vec::new())
}
