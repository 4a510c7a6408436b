//! JSON shapes: answers (checked against Slack's file where it covers them) and events.

use serde_json::{Map, Value, json};

use super::model::{At, Channel, File, Message, User};
use super::world::{APP, BOT, BOT_USER, TEAM, World};

/// A message as the Web API answers it and events carry it.
pub(crate) fn message(world: &World, shown: &Message) -> Value {
    let mut value = json!({
        "type": "message", "ts": shown.at.ts, "user": shown.user, "text": shown.text, "team": TEAM,
    });
    if shown.user == BOT_USER {
        value["bot_id"] = json!(BOT);
    }
    if shown
        .blocks
        .as_array()
        .is_some_and(|blocks| !blocks.is_empty())
    {
        value["blocks"] = shown.blocks.clone();
    }
    if let Some(root) = &shown.thread_ts {
        value["thread_ts"] = json!(root);
        if let Some(root) = world.find(&shown.at.channel, root) {
            value["parent_user_id"] = json!(root.user);
        }
    }
    if !shown.files.is_empty() {
        value["files"] = shown.files.iter().map(|one| file(world, one)).collect();
    }
    value
}

pub(crate) fn file(world: &World, file: &File) -> Value {
    let url = format!("{}/files/{}/{}", world.base, file.id, file.name);
    json!({
        "id": file.id, "name": file.name, "title": file.name, "mimetype": file.mimetype, "size": file.bytes.len(),
        "mode": "hosted", "is_external": false, "url_private": url, "url_private_download": url,
    })
}

pub(crate) fn message_event(world: &World, shown: &Message) -> Value {
    let mut event = message(world, shown);
    let channel = &world.channels[&shown.at.channel];
    event["channel"] = json!(channel.id);
    event["channel_type"] = json!(kind(channel));
    event["event_ts"] = json!(shown.at.ts);
    // Slack sends these with answers too, but its file of 2021 has them nowhere.
    if shown.edited_at.is_some() {
        event["edited"] = json!({ "user": shown.user, "ts": shown.at.ts });
    }
    if shown.user == BOT_USER {
        event["app_id"] = json!(APP);
    } else {
        event["client_msg_id"] = json!(format!("msg-{}", shown.at.ts));
    }
    if !shown.files.is_empty() {
        event["subtype"] = json!("file_share");
    }
    event
}

fn kind(channel: &Channel) -> &'static str {
    if channel.dm_with.is_some() {
        "im"
    } else {
        "channel"
    }
}

pub(crate) fn changed(world: &mut World, at: &At) -> Value {
    let ts = world.next_ts();
    let shown = &world.messages[at];
    let mut previous = message(world, shown);
    previous["text"] = json!(shown.earlier.last().unwrap_or(&shown.text));
    json!({
        "type": "message", "subtype": "message_changed", "hidden": true, "channel": at.channel, "ts": ts, "event_ts": ts,
        "channel_type": kind(&world.channels[&at.channel]), "message": message(world, shown),
        "previous_message": previous,
    })
}

pub(crate) fn deleted(world: &mut World, at: &At) -> Value {
    let ts = world.next_ts();
    let shown = &world.messages[at];
    json!({
        "type": "message", "subtype": "message_deleted", "hidden": true, "channel": at.channel, "ts": ts, "event_ts": ts,
        "deleted_ts": at.ts, "channel_type": kind(&world.channels[&at.channel]),
        "previous_message": message(world, shown),
    })
}

/// The `event_callback` wrapper.
pub(crate) fn wrapped(event_id: &str, event_time: i64, event: Value) -> Value {
    json!({
        "token": "verification-token", "team_id": TEAM, "api_app_id": APP, "event": event, "type": "event_callback",
        "event_id": event_id, "event_time": event_time, "is_ext_shared_channel": false,
        "authorizations": [{
            "enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true, "is_enterprise_install": false,
        }],
        "event_context": format!("4-{event_id}"),
    })
}

/// A slash command's payload, as slack_sdk's own test suite has it.
pub(crate) fn command(
    channel: &Channel,
    user: &User,
    name: &str,
    text: &str,
    url: &str,
    trigger: &str,
) -> Value {
    let shown = if channel.dm_with.is_some() {
        "directmessage"
    } else {
        channel.name.as_str()
    };
    json!({
        "token": "verification-token", "team_id": TEAM, "team_domain": "workshop", "channel_id": channel.id,
        "channel_name": shown, "user_id": user.id, "user_name": user.name, "command": name, "text": text,
        "api_app_id": APP, "is_enterprise_install": "false", "response_url": url, "trigger_id": trigger,
    })
}

/// A click's payload.
pub(crate) fn click(
    world: &World,
    user: &User,
    on: &Message,
    action_id: &str,
    url: &str,
    trigger: &str,
) -> Value {
    let channel = &world.channels[&on.at.channel];
    let button = on
        .buttons()
        .into_iter()
        .find(|button| button.action_id == action_id)
        .expect("checked by the caller");
    let ephemeral = on.only_for.is_some();
    let mut container = json!({
        "type": "message", "message_ts": on.at.ts, "channel_id": channel.id, "is_ephemeral": ephemeral,
    });
    if let Some(root) = &on.thread_ts {
        container["thread_ts"] = json!(root);
    }
    let mut payload = json!({
        "type": "block_actions", "user": { "id": user.id, "username": user.name, "name": user.name, "team_id": TEAM },
        "api_app_id": APP, "token": "verification-token", "container": container, "trigger_id": trigger,
        "team": { "id": TEAM, "domain": "workshop" }, "enterprise": null, "is_enterprise_install": false,
        "channel": { "id": channel.id, "name": channel.name }, "state": { "values": {} }, "response_url": url,
        "actions": [{
            "action_id": button.action_id, "block_id": button.block_id, "value": button.value, "type": "button",
            "text": { "type": "plain_text", "text": button.label, "emoji": true }, "action_ts": on.at.ts,
        }],
    });
    if !ephemeral {
        payload["message"] = message(world, on);
    }
    payload
}

/// `conversations.info`, as far as the file requires.
pub(crate) fn channel(world: &World, channel: &Channel) -> Value {
    let created = world.now().as_second();
    if let Some(with) = &channel.dm_with {
        return json!({
            "id": channel.id, "created": created, "is_im": true, "is_org_shared": false, "user": with,
            "is_user_deleted": false, "priority": 0,
        });
    }
    let topic = json!({ "value": "", "creator": "", "last_set": 0 });
    json!({
        "id": channel.id, "name": channel.name, "name_normalized": channel.name, "created": created,
        "creator": BOT_USER, "is_archived": false, "is_channel": true, "is_general": false, "is_group": false,
        "is_im": false, "is_member": channel.joined, "is_mpim": false, "is_org_shared": false, "is_private": false,
        "is_shared": false, "is_ext_shared": false, "is_pending_ext_shared": false, "unlinked": 0,
        "pending_shared": [], "pending_connected_team_ids": [], "parent_conversation": null, "previous_names": [],
        "shared_team_ids": [TEAM], "topic": topic, "purpose": topic,
    })
}

pub(crate) fn user(user: &User) -> Value {
    let profile = json!({
        "avatar_hash": "0", "display_name": user.name, "display_name_normalized": user.name, "fields": {},
        "image_24": "", "image_32": "", "image_48": "", "image_72": "", "image_192": "", "image_512": "",
        "phone": "", "real_name": user.name, "real_name_normalized": user.name, "skype": "", "status_emoji": "",
        "status_text": "", "title": "", "team": TEAM,
    });
    let mut shown = Map::from_iter([
        ("id".to_owned(), json!(user.id)),
        ("team_id".to_owned(), json!(TEAM)),
        ("name".to_owned(), json!(user.name)),
        ("profile".to_owned(), profile),
    ]);
    for (key, value) in [
        ("is_bot", user.bot),
        ("deleted", false),
        ("is_app_user", false),
    ] {
        shown.insert(key.to_owned(), json!(value));
    }
    shown.insert("updated".to_owned(), json!(0));
    Value::Object(shown)
}
