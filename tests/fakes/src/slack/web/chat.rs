//! `chat.*`: post, update, ephemeral, delete, stream.

use serde_json::{Value, json};

use super::super::model::At;
use super::super::payload;
use super::super::world::{BOT_USER, Draft, World};
use super::{Done, Parameters, text};

pub(super) fn route(world: &mut World, name: &str, parameters: &Parameters) -> Done {
    let channel = find_channel(world, text(parameters, "channel"))?;
    let mut draft = Draft::read(parameters);
    match name {
        "chat.postMessage" => {
            if draft.is_empty() {
                return Err("no_text");
            }
            check_thread(world, &channel, &draft)?;
            let at = world.post(&channel, BOT_USER, draft);
            Ok(json!({ "ok": true, "channel": channel, "ts": at.ts, "message": shown(world, &at) }))
        }
        "chat.postEphemeral" => {
            if draft.is_empty() {
                return Err("no_text");
            }
            let user = text(parameters, "user").to_owned();
            if !world.users.contains_key(&user) {
                return Err("user_not_in_channel");
            }
            draft.only_for = Some(user);
            let at = world.post(&channel, BOT_USER, draft);
            Ok(json!({ "ok": true, "message_ts": at.ts }))
        }
        "chat.update" => {
            let at = own(
                world,
                &channel,
                text(parameters, "ts"),
                "cant_update_message",
            )?;
            if draft.is_empty() {
                return Err("no_text");
            }
            let said = draft.text.clone().unwrap_or_default();
            world.edit(&at, draft);
            let message = json!({ "type": "message", "user": BOT_USER, "text": said });
            Ok(
                json!({ "ok": true, "channel": channel, "ts": at.ts, "text": said, "message": message }),
            )
        }
        "chat.delete" => {
            let at = own(
                world,
                &channel,
                text(parameters, "ts"),
                "cant_delete_message",
            )?;
            world.delete(&at);
            Ok(json!({ "ok": true, "channel": channel, "ts": at.ts }))
        }
        "chat.startStream" => {
            draft.streaming = true;
            draft.markdown = true;
            check_thread(world, &channel, &draft)?;
            let at = world.post(&channel, BOT_USER, draft);
            Ok(json!({ "ok": true, "channel": channel, "ts": at.ts }))
        }
        _ => stream(world, name, parameters, &channel, draft),
    }
}

fn stream(
    world: &mut World,
    name: &str,
    parameters: &Parameters,
    channel: &str,
    draft: Draft,
) -> Done {
    let at = own(world, channel, text(parameters, "ts"), "message_not_found")?;
    if !world.messages[&at].streaming {
        return Err("message_not_in_streaming_state");
    }
    let more = draft.text.unwrap_or_default();
    if name == "chat.appendStream" && more.is_empty() {
        return Err("no_text");
    }
    let whole = format!("{}{more}", world.messages[&at].text);
    world.edit(
        &at,
        Draft {
            text: Some(whole),
            markdown: true,
            blocks: draft.blocks,
            ..Draft::default()
        },
    );
    if name == "chat.stopStream"
        && let Some(message) = world.messages.get_mut(&at)
    {
        message.streaming = false;
    }
    Ok(json!({ "ok": true, "channel": channel, "ts": at.ts }))
}

fn shown(world: &World, at: &At) -> Value {
    payload::message(world, &world.messages[at])
}

/// A user id posts into the DM with that person.
pub(super) fn find_channel(world: &World, id: &str) -> Result<String, &'static str> {
    if let Some(channel) = world.channels.get(id) {
        return if channel.joined {
            Ok(channel.id.clone())
        } else {
            Err("not_in_channel")
        };
    }
    let dm = world
        .channels
        .values()
        .find(|channel| channel.dm_with.as_deref() == Some(id));
    dm.map(|channel| channel.id.clone())
        .ok_or("channel_not_found")
}

fn check_thread(world: &World, channel: &str, draft: &Draft) -> Result<(), &'static str> {
    let Some(root) = &draft.thread_ts else {
        return Ok(());
    };
    match world.find(channel, root) {
        // Replies name the root, never another reply.
        Some(message)
            if message.thread_ts.as_ref().is_none_or(|of| of == root)
                && message.only_for.is_none() =>
        {
            Ok(())
        }
        _ => Err("thread_not_found"),
    }
}

fn own(world: &World, channel: &str, ts: &str, refused: &'static str) -> Result<At, &'static str> {
    // An ephemeral message is not stored: nobody can update it with a token.
    let message = world
        .find(channel, ts)
        .filter(|message| message.only_for.is_none())
        .ok_or("message_not_found")?;
    if message.user == BOT_USER {
        Ok(message.at.clone())
    } else {
        Err(refused)
    }
}
