//! JSON shapes: of answers (checked against the OpenAPI file) and of gateway events (from the documentation and from
//! what serenity 0.12 and twilight 0.18 decode).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ids::{GuildId, UserId};
use super::model::{Channel, ChannelKind, File, Guild, Message, Role, User};
use super::world::World;

/// As Discord writes times.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

pub(crate) fn user(user: &User) -> Value {
    json!({
        "id": user.id.to_string(), "username": user.name, "discriminator": if user.bot { "0001" } else { "0" },
        "global_name": null, "avatar": null, "bot": user.bot, "public_flags": 0, "flags": 0, "primary_guild": null,
    })
}

/// The bot about itself: `GET /users/@me` and READY.
pub(crate) fn me(bot: &User) -> Value {
    let mut me = user(bot);
    let more = json!({ "mfa_enabled": false, "locale": "en-US", "verified": true, "email": null });
    extend(&mut me, more);
    me
}

pub(crate) fn member(world: &World, guild: GuildId, who: UserId) -> Value {
    let guild = &world.guilds[&guild];
    let roles = guild
        .members
        .iter()
        .find(|(user, _)| *user == who)
        .map(|(_, roles)| roles.clone())
        .unwrap_or_default();
    json!({
        "user": user(&world.users[&who]), "nick": null, "avatar": null, "banner": null,
        "roles": roles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "joined_at": time(world.opened), "premium_since": null, "communication_disabled_until": null,
        "deaf": false, "mute": false, "pending": false, "flags": 0,
    })
}

pub(crate) fn role(role: &Role) -> Value {
    json!({
        "id": role.id.to_string(), "name": role.name, "permissions": role.permissions.to_string(),
        "position": 0, "color": 0, "colors": { "primary_color": 0, "secondary_color": null, "tertiary_color": null },
        "hoist": false, "managed": false, "mentionable": role.mentionable, "icon": null, "unicode_emoji": null, "flags": 0,
    })
}

pub(crate) fn channel(world: &World, channel: &Channel) -> Value {
    let last = channel.last_message.map(|id| id.to_string());
    match &channel.kind {
        ChannelKind::Text { guild } => {
            let mut overwrites = Vec::new();
            if channel.denied != 0 {
                overwrites.push(json!({
                    "id": world.bot.to_string(), "type": 1, "allow": "0", "deny": channel.denied.to_string(),
                }));
            }
            json!({
                "id": channel.id.to_string(), "type": 0, "guild_id": guild.to_string(), "name": channel.name,
                "position": 0, "flags": 0, "topic": null, "nsfw": false, "parent_id": null, "rate_limit_per_user": 0,
                "last_message_id": last, "permission_overwrites": overwrites,
            })
        }
        ChannelKind::Thread {
            guild,
            parent,
            owner,
            archived,
            archives_after,
        } => {
            let count = world
                .messages
                .values()
                .filter(|message| message.channel == channel.id)
                .count();
            json!({
                "id": channel.id.to_string(), "type": 11, "guild_id": guild.to_string(), "name": channel.name,
                "flags": 0, "parent_id": parent.to_string(), "owner_id": owner.to_string(), "last_message_id": last,
                "rate_limit_per_user": 0, "message_count": count, "member_count": 1, "total_message_sent": count,
                "thread_metadata": {
                    "archived": archived, "auto_archive_duration": archives_after, "locked": false,
                    "archive_timestamp": time(channel.created), "create_timestamp": time(channel.created),
                },
            })
        }
        ChannelKind::Dm { with } => json!({
            "id": channel.id.to_string(), "type": 1, "flags": 0, "last_message_id": last,
            "recipients": [user(&world.users[with])],
        }),
    }
}

pub(crate) fn attachment(world: &World, message: &Message, file: &File) -> Value {
    let url = format!(
        "{}/attachments/{}/{}/{}",
        world.base, message.channel, file.id, file.name
    );
    let mut shown = json!({
        "id": file.id.to_string(), "filename": file.name, "size": file.bytes.len(), "url": url, "proxy_url": url,
    });
    if let Some(kind) = &file.content_type {
        shown["content_type"] = json!(kind);
    }
    shown
}

/// A message as REST answers it.
pub(crate) fn message(world: &World, message: &Message) -> Value {
    let mentioned = message
        .pings
        .users
        .iter()
        .filter_map(|id| world.users.get(id));
    let files: Vec<Value> = message
        .files
        .iter()
        .map(|file| attachment(world, message, file))
        .collect();
    let flags = message.flags
        | if message.only_for.is_some() { 64 } else { 0 }
        | if message.loading { 128 } else { 0 };
    let kind = match (&message.from_interaction, message.reply_to) {
        (Some((_, _, 2)), _) => 20,
        (_, Some(_)) => 19,
        _ => 0,
    };
    let mut shown = json!({
        "id": message.id.to_string(), "type": kind, "channel_id": message.channel.to_string(),
        "author": user(&world.users[&message.author]), "content": message.text,
        "timestamp": time(message.created_at), "edited_timestamp": message.edited_at.map(time),
        "mentions": mentioned.map(user).collect::<Vec<_>>(),
        "mention_roles": message.pings.roles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "mention_everyone": message.pings.everyone, "attachments": files, "embeds": message.embeds,
        "components": answered_components(&message.components), "flags": flags, "pinned": false, "tts": false,
    });
    if let Some(nonce) = &message.nonce {
        shown["nonce"] = nonce.clone();
    }
    if let Some((interaction, asker, _)) = message.from_interaction {
        shown["application_id"] = json!(world.application.to_string());
        shown["webhook_id"] = json!(world.application.to_string());
        let _ = (interaction, asker);
    }
    if let Some(answered) = message.reply_to {
        shown["message_reference"] = json!({
            "type": 0, "channel_id": message.channel.to_string(), "message_id": answered.to_string(),
        });
        // The message it answers comes with it, without what that one answered; null = deleted.
        let answered = world.messages.get(&answered).filter(|known| !known.deleted);
        shown["referenced_message"] = answered.map_or(Value::Null, |known| {
            let alone = Message {
                reply_to: None,
                ..known.clone()
            };
            self::message(world, &alone)
        });
    }
    if let Some(thread) = message.thread.and_then(|id| world.channels.get(&id)) {
        shown["thread"] = channel(world, thread);
    }
    shown
}

/// Components come back with an `id` each and without the nulls of the request.
fn answered_components(rows: &Value) -> Value {
    let mut next = 0;
    let mut shown = rows.clone();
    for row in shown.as_array_mut().into_iter().flatten() {
        number(row, &mut next);
        for component in row
            .get_mut("components")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            number(component, &mut next);
        }
    }
    shown
}

fn number(component: &mut Value, next: &mut u64) {
    *next += 1;
    if let Some(object) = component.as_object_mut() {
        object.retain(|_, value| !value.is_null());
        object.insert("id".into(), json!(next));
    }
}

/// A message as the gateway tells it: with the guild and the author's member.
pub(crate) fn message_event(world: &World, shown: &Message) -> Value {
    let mut event = message(world, shown);
    let channel = &world.channels[&shown.channel];
    if let Some(guild) = channel.guild() {
        event["guild_id"] = json!(guild.to_string());
        event["member"] = without_user(member(world, guild, shown.author));
        for mentioned in event["mentions"].as_array_mut().into_iter().flatten() {
            let who: UserId = mentioned["id"]
                .as_str()
                .unwrap_or_default()
                .parse()
                .expect("written above");
            mentioned["member"] = without_user(member(world, guild, who));
        }
    }
    event
}

fn without_user(mut member: Value) -> Value {
    if let Some(object) = member.as_object_mut() {
        object.remove("user");
    }
    member
}

/// GUILD_CREATE.
pub(crate) fn guild_event(world: &World, guild: &Guild) -> Value {
    let mut channels = Vec::new();
    let mut threads = Vec::new();
    for known in world
        .channels
        .values()
        .filter(|known| known.guild() == Some(guild.id))
    {
        match known.kind {
            ChannelKind::Thread {
                archived: false, ..
            } => threads.push(channel(world, known)),
            ChannelKind::Text { .. } => channels.push(channel(world, known)),
            _ => {}
        }
    }
    let members: Vec<Value> = guild
        .members
        .iter()
        .map(|(who, _)| member(world, guild.id, *who))
        .collect();
    let mut event = guild_object(guild);
    let more = json!({
        "joined_at": time(world.opened), "large": false, "unavailable": false, "member_count": members.len(),
        "members": members, "channels": channels, "threads": threads, "voice_states": [], "presences": [],
        "stage_instances": [], "guild_scheduled_events": [], "soundboard_sounds": [],
    });
    extend(&mut event, more);
    event
}

/// A guild as REST answers it, as far as the file requires.
pub(crate) fn guild_object(guild: &Guild) -> Value {
    json!({
        "id": guild.id.to_string(), "name": guild.name, "icon": null, "description": null, "home_header": null,
        "splash": null, "discovery_splash": null, "features": [], "banner": null,
        "owner_id": guild.owner.to_string(), "application_id": null, "region": "deprecated",
        "afk_channel_id": null, "afk_timeout": 300, "system_channel_id": null, "system_channel_flags": 0,
        "widget_enabled": false, "widget_channel_id": null, "verification_level": 0,
        "roles": guild.roles.iter().map(role).collect::<Vec<_>>(), "default_message_notifications": 0,
        "mfa_level": 0, "explicit_content_filter": 0, "max_presences": null, "max_members": 500_000,
        "max_stage_video_channel_users": 50, "max_video_channel_users": 25, "vanity_url_code": null,
        "premium_tier": 0, "premium_subscription_count": 0, "preferred_locale": "en-US",
        "rules_channel_id": null, "safety_alerts_channel_id": null, "public_updates_channel_id": null,
        "premium_progress_bar_enabled": false, "nsfw": false, "nsfw_level": 0, "emojis": [], "stickers": [],
        "incidents_data": null,
    })
}

pub(crate) fn extend(target: &mut Value, more: Value) {
    if let (Some(target), Value::Object(more)) = (target.as_object_mut(), more) {
        target.extend(more);
    }
}
