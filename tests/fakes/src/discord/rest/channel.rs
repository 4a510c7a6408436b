//! Channels: look, typing, threads, DMs.

use serde_json::json;

use super::{Call, Done};
use crate::discord::ids::{ChannelId, MessageId, UserId};
use crate::discord::model::{Channel, ChannelKind, permission};
use crate::discord::payload;
use crate::discord::refusal::Refusal;
use crate::discord::world::World;

pub(super) fn route(world: &mut World, call: &Call) -> Result<Done, Refusal> {
    let parts = call.parts();
    if parts.as_slice() == ["users", "@me", "channels"] {
        return open_dm(world, call);
    }
    let id: ChannelId = parts[1].parse().map_err(|_| Refusal::unknown_channel())?;
    world.channel(id)?;
    match (call.method.as_str(), &parts[2..]) {
        ("GET", []) => {
            world.allow(id, permission::VIEW_CHANNEL)?;
            Ok((200, Some(payload::channel(world, &world.channels[&id]))))
        }
        ("PATCH", []) => change(world, call, id),
        ("POST", ["typing"]) => {
            world.allow(id, permission::SEND_MESSAGES)?;
            let now = world.now();
            world.typing.push((id, now));
            Ok((204, None))
        }
        ("POST", ["threads"]) => {
            let thread = ChannelId(world.next_id());
            start_thread(world, call, id, thread)
        }
        ("POST", ["messages", message, "threads"]) => {
            let message: MessageId = message.parse().map_err(|_| Refusal::unknown_message())?;
            world.reachable(id, message)?;
            if world.messages[&message].thread.is_some() {
                return Err(Refusal::thread_exists());
            }
            // A thread opened from a message has that message's id.
            let done = start_thread(world, call, id, ChannelId(message.0))?;
            if let Some(start) = world.messages.get_mut(&message) {
                start.thread = Some(ChannelId(message.0));
            }
            Ok(done)
        }
        _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
}

fn start_thread(
    world: &mut World,
    call: &Call,
    parent: ChannelId,
    thread: ChannelId,
) -> Result<Done, Refusal> {
    world.allow(parent, permission::CREATE_PUBLIC_THREADS)?;
    let ChannelKind::Text { guild } = world.channel(parent)?.kind else {
        return Err(Refusal::new(
            400,
            50024,
            "Cannot execute action on this channel type",
        ));
    };
    let name = call.body()["name"].as_str().unwrap_or_default().to_owned();
    let minutes = call.body()["auto_archive_duration"]
        .as_u64()
        .unwrap_or(1440);
    world.open_thread(thread, parent, guild, &name, minutes);
    Ok((201, Some(payload::channel(world, &world.channels[&thread]))))
}

fn change(world: &mut World, call: &Call, id: ChannelId) -> Result<Done, Refusal> {
    let body = call.body();
    let channel = world
        .channels
        .get_mut(&id)
        .ok_or_else(Refusal::unknown_channel)?;
    if let Some(name) = body["name"].as_str() {
        name.clone_into(&mut channel.name);
    }
    if let (ChannelKind::Thread { archived, .. }, Some(wanted)) =
        (&mut channel.kind, body["archived"].as_bool())
    {
        *archived = wanted;
    }
    let shown = payload::channel(world, &world.channels[&id]);
    let is_thread = matches!(world.channels[&id].kind, ChannelKind::Thread { .. });
    world.tell(
        if is_thread {
            "THREAD_UPDATE"
        } else {
            "CHANNEL_UPDATE"
        },
        shown.clone(),
        Some(1),
    );
    Ok((200, Some(shown)))
}

fn open_dm(world: &mut World, call: &Call) -> Result<Done, Refusal> {
    let with = call.body()["recipient_id"]
        .as_str()
        .and_then(|id| id.parse::<UserId>().ok());
    let with = with
        .filter(|id| world.users.contains_key(id))
        .ok_or_else(|| Refusal::new(404, 10013, "Unknown User"))?;
    let id = dm_with(world, with);
    let mut shown = payload::channel(world, &world.channels[&id]);
    if shown["last_message_id"].is_null() {
        shown["last_message_id"] = json!(null);
    }
    Ok((200, Some(shown)))
}

/// The DM channel with a person; there is one each.
pub(crate) fn dm_with(world: &mut World, with: UserId) -> ChannelId {
    let known = world
        .channels
        .values()
        .find(|channel| channel.kind == ChannelKind::Dm { with });
    if let Some(channel) = known {
        return channel.id;
    }
    let id = ChannelId(world.next_id());
    let created = world.now();
    let kind = ChannelKind::Dm { with };
    world.channels.insert(
        id,
        Channel {
            id,
            name: String::new(),
            kind,
            denied: 0,
            last_message: None,
            created,
        },
    );
    id
}
