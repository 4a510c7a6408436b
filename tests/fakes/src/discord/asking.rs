//! Commands and clicks as the client sends them and the gateway tells them.

use serde_json::{Map, Value, json};

use super::ids::{ChannelId, MessageId, UserId};
use super::interaction::Interaction;
use super::model::{Channel, permission};
use super::payload;
use super::people::{Asked, NotPossible};
use super::world::World;

pub(super) fn registered<'a>(
    world: &'a World,
    channel: ChannelId,
    name: &str,
) -> Result<&'a Value, NotPossible> {
    let guild = world.channels.get(&channel).and_then(Channel::guild);
    let scopes = if guild.is_some() {
        vec![None, guild]
    } else {
        vec![None]
    };
    let commands = scopes
        .iter()
        .filter_map(|scope| world.commands.get(scope))
        .flatten();
    let mut found = commands.filter(|command| command["name"] == name);
    let first = found.next().ok_or(NotPossible::NoSuchCommand)?;
    if found.next().is_some() {
        Err(NotPossible::ListedTwice)
    } else {
        Ok(first)
    }
}

pub(super) fn command_data(
    world: &World,
    channel: ChannelId,
    command: &Value,
    options: &[(&str, Value)],
) -> Result<Value, NotPossible> {
    let known = command["options"].as_array().cloned().unwrap_or_default();
    let mut given = Vec::new();
    for (name, value) in options {
        let option = known.iter().find(|option| option["name"] == *name);
        let option = option.ok_or_else(|| NotPossible::Option((*name).to_owned()))?;
        given.push(json!({ "name": name, "type": option["type"], "value": value }));
    }
    let left_out = known.iter().find(|option| {
        option["required"] == true && !options.iter().any(|(name, _)| option["name"] == *name)
    });
    if let Some(option) = left_out {
        return Err(NotPossible::Option(
            option["name"].as_str().unwrap_or_default().to_owned(),
        ));
    }
    let mut data =
        json!({ "id": command["id"], "name": command["name"], "type": 1, "options": given });
    if let Some(guild) = command
        .get("guild_id")
        .filter(|_| world.channels[&channel].guild().is_some())
    {
        data["guild_id"] = guild.clone();
    }
    Ok(data)
}

/// Writes the interaction down and tells the gateway (INTERACTION_CREATE needs no intent).
pub(super) fn interact(
    world: &mut World,
    channel: ChannelId,
    user: UserId,
    kind: u8,
    data: Value,
    on: Option<MessageId>,
) -> Asked {
    let id = world.next_id();
    let token = format!("interaction-token-{id}");
    let created_at = world.now();
    let mut payload = Map::from_iter([
        ("id".to_owned(), json!(id.to_string())),
        (
            "application_id".to_owned(),
            json!(world.application.to_string()),
        ),
        ("type".to_owned(), json!(kind)),
        ("token".to_owned(), json!(token)),
        ("version".to_owned(), json!(1)),
        ("data".to_owned(), data),
        ("channel_id".to_owned(), json!(channel.to_string())),
        ("channel".to_owned(), partial_channel(world, channel)),
        (
            "app_permissions".to_owned(),
            json!(world.permissions(channel).to_string()),
        ),
        ("locale".to_owned(), json!("en-US")),
        ("entitlements".to_owned(), json!([])),
        ("attachment_size_limit".to_owned(), json!(10 * 1024 * 1024)),
    ]);
    let owner = match world.channels[&channel].guild() {
        Some(guild) => {
            let mut member = payload::member(world, guild, user);
            member["permissions"] = json!(permission::BOT_DEFAULT.to_string());
            payload.insert("member".into(), member);
            payload.insert("guild_id".into(), json!(guild.to_string()));
            payload.insert("guild_locale".into(), json!("en-US"));
            payload.insert(
                "guild".into(),
                json!({ "id": guild.to_string(), "locale": "en-US", "features": [] }),
            );
            payload.insert("context".into(), json!(0));
            guild.to_string()
        }
        None => {
            payload.insert("user".into(), payload::user(&world.users[&user]));
            payload.insert("context".into(), json!(1));
            "0".to_owned()
        }
    };
    payload.insert(
        "authorizing_integration_owners".into(),
        json!({ "0": owner }),
    );
    if let Some(on) = on {
        payload.insert(
            "message".into(),
            payload::message(world, &world.messages[&on]),
        );
    }
    let interaction = Interaction {
        id,
        token: token.clone(),
        kind,
        channel,
        asker: user,
        on,
        created_at,
        first: None,
        original: None,
        followups: Vec::new(),
    };
    world.interactions.insert(token.clone(), interaction);
    world.tell("INTERACTION_CREATE", Value::Object(payload), None);
    Asked { id, token }
}

fn partial_channel(world: &World, channel: ChannelId) -> Value {
    let mut shown = payload::channel(world, &world.channels[&channel]);
    if shown.get("guild_id").is_some() {
        shown["permissions"] = json!(world.permissions(channel).to_string());
    }
    shown
}
