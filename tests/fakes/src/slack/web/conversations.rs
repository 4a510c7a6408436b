//! Looking around: login, channels, threads, people, reactions, the assistant's status.

use serde_json::{Value, json};

use super::super::model::{Channel, Message};
use super::super::payload;
use super::super::recorder::Status;
use super::super::world::{BOT, BOT_USER, TEAM, World};
use super::chat::find_channel;
use super::{Done, Parameters, text};

pub(super) fn route(world: &mut World, name: &str, parameters: &Parameters) -> Done {
    match name {
        "auth.test" => Ok(json!({
            "ok": true, "url": "https://workshop.slack.com/", "team": "Workshop", "user": "baton", "team_id": TEAM,
            "user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": false,
        })),
        "users.info" => {
            let user = world
                .users
                .get(text(parameters, "user"))
                .ok_or("user_not_found")?;
            Ok(json!({ "ok": true, "user": payload::user(user) }))
        }
        "conversations.info" => {
            let channel = world
                .channels
                .get(text(parameters, "channel"))
                .ok_or("channel_not_found")?;
            Ok(json!({ "ok": true, "channel": payload::channel(world, channel) }))
        }
        "conversations.open" => {
            let user = text(parameters, "users").to_owned();
            if !world.users.contains_key(&user) {
                return Err("user_not_found");
            }
            Ok(json!({ "ok": true, "channel": { "id": dm_with(world, &user) } }))
        }
        "conversations.history" => {
            let channel = find_channel(world, text(parameters, "channel"))?;
            let mut found = matching(world, parameters, &channel, |message| {
                message
                    .thread_ts
                    .as_ref()
                    .is_none_or(|root| *root == message.at.ts)
            });
            found.reverse();
            let mut answer = page(world, parameters, found);
            answer["pin_count"] = json!(0);
            answer["channel_actions_count"] = json!(0);
            answer["channel_actions_ts"] = Value::Null;
            Ok(answer)
        }
        "conversations.replies" => {
            let channel = find_channel(world, text(parameters, "channel"))?;
            let root = text(parameters, "ts");
            world.find(&channel, root).ok_or("thread_not_found")?;
            let found = matching(world, parameters, &channel, |message| {
                message.at.ts == root || message.thread_ts.as_deref() == Some(root)
            });
            Ok(page(world, parameters, found))
        }
        "assistant.threads.setStatus" => {
            let channel = find_channel(world, text(parameters, "channel_id"))?;
            let (thread_ts, text) = (
                text(parameters, "thread_ts").to_owned(),
                text(parameters, "status").to_owned(),
            );
            world.statuses.push(Status {
                channel,
                thread_ts,
                text,
            });
            Ok(json!({ "ok": true }))
        }
        _ => react(world, name, parameters),
    }
}

fn react(world: &mut World, name: &str, parameters: &Parameters) -> Done {
    let channel = find_channel(world, text(parameters, "channel"))?;
    let at = world
        .find(&channel, text(parameters, "timestamp"))
        .ok_or("message_not_found")?
        .at
        .clone();
    let emoji = text(parameters, "name").to_owned();
    let message = world.messages.get_mut(&at).ok_or("message_not_found")?;
    let there = message.reactions.contains(&emoji);
    match (name, there) {
        ("reactions.add", true) => return Err("already_reacted"),
        ("reactions.add", false) => message.reactions.push(emoji),
        (_, false) => return Err("no_reaction"),
        (_, true) => message.reactions.retain(|known| *known != emoji),
    }
    Ok(json!({ "ok": true }))
}

/// Oldest first; `oldest` and `latest` are outside unless `inclusive`.
fn matching<'a>(
    world: &'a World,
    parameters: &Parameters,
    channel: &str,
    is: impl Fn(&Message) -> bool,
) -> Vec<&'a Message> {
    let (oldest, latest) = (text(parameters, "oldest"), text(parameters, "latest"));
    let inclusive = flag(parameters, "inclusive");
    let visible = world.messages.values().filter(|message| {
        let ts = message.at.ts.as_str();
        let after = oldest.is_empty() || ts > oldest || (inclusive && ts == oldest);
        let before = latest.is_empty() || ts < latest || (inclusive && ts == latest);
        message.at.channel == channel
            && !message.deleted
            && message.only_for.is_none()
            && after
            && before
            && is(message)
    });
    visible.collect()
}

fn flag(parameters: &Parameters, key: &str) -> bool {
    parameters
        .get(key)
        .is_some_and(|value| *value == true || *value == "true" || *value == "1")
}

fn page(world: &World, parameters: &Parameters, mut found: Vec<&Message>) -> Value {
    let limit = parameters
        .get("limit")
        .and_then(|limit| limit.as_u64().or_else(|| limit.as_str()?.parse().ok()));
    let limit = usize::try_from(limit.unwrap_or(100)).unwrap_or(100);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let with_metadata = flag(parameters, "include_all_metadata");
    let messages: Vec<Value> = found
        .into_iter()
        .map(|message| {
            let mut shown = payload::message(world, message);
            if with_metadata && !message.metadata.is_null() {
                shown["metadata"] = message.metadata.clone();
            }
            shown
        })
        .collect();
    json!({ "ok": true, "messages": messages, "has_more": has_more })
}

/// The direct messages with a person; there is one channel each.
pub(crate) fn dm_with(world: &mut World, user: &str) -> String {
    let known = world
        .channels
        .values()
        .find(|channel| channel.dm_with.as_deref() == Some(user));
    if let Some(channel) = known {
        return channel.id.clone();
    }
    let id = world.next_id('D');
    let channel = Channel {
        id: id.clone(),
        name: "directmessage".to_owned(),
        dm_with: Some(user.to_owned()),
        joined: true,
    };
    world.channels.insert(id.clone(), channel);
    id
}
