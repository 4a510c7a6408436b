//! Messages with the bot's token: create, edit, delete, look, list.

use serde_json::{Value, json};

use super::{Call, Done};
use crate::clock::between;
use crate::discord::ids::{ChannelId, MessageId};
use crate::discord::model::{ChannelKind, File, Message, permission};
use crate::discord::payload;
use crate::discord::refusal::Refusal;
use crate::discord::world::{Draft, World};

/// How long a nonce finds the message it made ("a few minutes").
const NONCE_LIVES_SECONDS: u64 = 180;
/// Edits of a message older than an hour before 30046. The number is not published; this one is ours.
const EDITS_WHEN_OLD: u32 = 5;

pub(super) fn route(world: &mut World, call: &Call) -> Result<Done, Refusal> {
    let parts = call.parts();
    let channel: ChannelId = parts[1].parse().map_err(|_| Refusal::unknown_channel())?;
    world.channel(channel)?;
    world.allow(channel, permission::VIEW_CHANNEL)?;
    let message = |text: &str| {
        text.parse::<MessageId>()
            .map_err(|_| Refusal::unknown_message())
    };
    match (call.method.as_str(), &parts[3..]) {
        ("POST", []) => create(world, call, channel),
        ("GET", []) => {
            world.allow(channel, permission::READ_MESSAGE_HISTORY)?;
            Ok((200, Some(list(world, call, channel))))
        }
        ("GET", [id]) => Ok((
            200,
            Some(payload::message(
                world,
                world.reachable(channel, message(id)?)?,
            )),
        )),
        ("PATCH", [id]) => edit(world, call, channel, message(id)?),
        ("DELETE", [id]) => {
            let id = message(id)?;
            if world.reachable(channel, id)?.author != world.bot {
                return Err(Refusal::missing_permissions());
            }
            world.delete(id);
            Ok((204, None))
        }
        ("PUT", [id, "reactions", emoji, "@me"]) => {
            react(world, channel, message(id)?, emoji, "MESSAGE_REACTION_ADD")
        }
        ("DELETE", [id, "reactions", emoji, "@me"]) => react(
            world,
            channel,
            message(id)?,
            emoji,
            "MESSAGE_REACTION_REMOVE",
        ),
        _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
}

fn create(world: &mut World, call: &Call, channel: ChannelId) -> Result<Done, Refusal> {
    let bit = match world.channel(channel)?.kind {
        ChannelKind::Thread { archived: true, .. } => return Err(Refusal::archived_thread()),
        ChannelKind::Thread { .. } => permission::SEND_MESSAGES_IN_THREADS,
        _ => permission::SEND_MESSAGES,
    };
    world.allow(channel, bit)?;
    if !call.files.is_empty() {
        world.allow(channel, permission::ATTACH_FILES)?;
    }
    let draft = draft(world, call, call.body());
    if is_empty(&draft) {
        return Err(Refusal::empty_message());
    }
    if draft.enforce_nonce
        && let Some(known) = same_nonce(world, channel, draft.nonce.as_ref())
    {
        return Ok((200, Some(payload::message(world, known))));
    }
    let id = world.post(channel, world.bot, draft);
    Ok((200, Some(payload::message(world, &world.messages[&id]))))
}

fn same_nonce<'a>(
    world: &'a World,
    channel: ChannelId,
    nonce: Option<&Value>,
) -> Option<&'a Message> {
    let now = world.now();
    let nonce = nonce?;
    world.messages.values().rev().find(|message| {
        message.channel == channel
            && message.author == world.bot
            && message.nonce.as_ref() == Some(nonce)
            && between(message.created_at, now).as_secs() < NONCE_LIVES_SECONDS
    })
}

fn edit(
    world: &mut World,
    call: &Call,
    channel: ChannelId,
    id: MessageId,
) -> Result<Done, Refusal> {
    let message = world.reachable(channel, id)?;
    if message.author != world.bot {
        return Err(Refusal::not_the_author());
    }
    if let ChannelKind::Thread { archived: true, .. } = world.channel(channel)?.kind {
        return Err(Refusal::archived_thread());
    }
    if world.is_old(&world.messages[&id])
        && let Some(message) = world.messages.get_mut(&id)
    {
        message.edits_when_old += 1;
        if message.edits_when_old > EDITS_WHEN_OLD {
            return Err(Refusal::old_message_edits());
        }
    }
    let draft = draft(world, call, call.body());
    world.edit(id, draft);
    Ok((200, Some(payload::message(world, &world.messages[&id]))))
}

/// Newest first; `after` gives the oldest ones past it, still newest first.
fn list(world: &World, call: &Call, channel: ChannelId) -> Value {
    let id = |name| {
        call.query(name)
            .and_then(|text| text.parse::<MessageId>().ok())
    };
    let limit = call
        .query("limit")
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    let visible = world.messages.values().filter(|message| {
        message.channel == channel
            && !message.deleted
            && message.only_for.is_none()
            && !message.loading
    });
    let mut found: Vec<&Message> = match (id("after"), id("before")) {
        (Some(after), _) => visible
            .filter(|message| message.id > after)
            .take(limit)
            .collect(),
        (None, Some(before)) => {
            let mut older: Vec<_> = visible.filter(|message| message.id < before).collect();
            older.split_off(older.len().saturating_sub(limit))
        }
        (None, None) => {
            let mut all: Vec<_> = visible.collect();
            all.split_off(all.len().saturating_sub(limit))
        }
    };
    found.reverse();
    found
        .into_iter()
        .map(|message| payload::message(world, message))
        .collect()
}

fn react(
    world: &mut World,
    channel: ChannelId,
    id: MessageId,
    emoji: &str,
    event: &str,
) -> Result<Done, Refusal> {
    world.reachable(channel, id)?;
    let payload = json!({
        "user_id": world.bot.to_string(), "channel_id": channel.to_string(), "message_id": id.to_string(),
        "guild_id": world.guild_of(channel), "emoji": { "id": null, "name": emoji }, "burst": false, "type": 0,
    });
    world.tell(event, payload, Some(1 << 10));
    Ok((204, None))
}

/// What a body says about a message; its files get their ids.
pub(super) fn draft(world: &mut World, call: &Call, body: &Value) -> Draft {
    let mut files = Vec::new();
    for (index, file) in &call.files {
        let described = body["attachments"].as_array().into_iter().flatten();
        let text = json!(index.to_string());
        let named = described.filter(|entry| entry["id"] == text || entry["id"] == *index);
        let name = named
            .filter_map(|entry| entry["filename"].as_str())
            .next()
            .unwrap_or(&file.name)
            .to_owned();
        files.push(File {
            id: world.next_id(),
            name,
            ..file.clone()
        });
    }
    let given = |key: &str| body.get(key).cloned();
    Draft {
        text: body
            .get("content")
            .map(|text| text.as_str().unwrap_or_default().to_owned()),
        components: given("components"),
        embeds: given("embeds"),
        allowed_mentions: given("allowed_mentions").filter(|value| !value.is_null()),
        files,
        flags: body["flags"].as_u64().unwrap_or_default(),
        nonce: given("nonce").filter(|value| !value.is_null()),
        enforce_nonce: body["enforce_nonce"] == true,
        reply_to: body["message_reference"]["message_id"]
            .as_str()
            .and_then(|id| id.parse().ok()),
        ..Draft::default()
    }
}

pub(super) fn is_empty(draft: &Draft) -> bool {
    let none = |value: &Option<Value>| {
        value
            .as_ref()
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
    };
    draft
        .text
        .as_deref()
        .is_none_or(|text| text.trim().is_empty())
        && draft.files.is_empty()
        && none(&draft.embeds)
        && none(&draft.components)
}
