//! The bot about itself, its guilds and its commands.

use serde_json::{Value, json};

use super::{Call, Done};
use crate::clock::between;
use crate::discord::ids::GuildId;
use crate::discord::model::permission;
use crate::discord::payload;
use crate::discord::refusal::Refusal;
use crate::discord::world::World;

/// Command kinds and how many a scope takes.
const CAPS: [(u64, usize); 3] = [(1, 100), (2, 15), (3, 15)];
const CREATES_A_DAY: usize = 200;

pub(super) fn route(world: &mut World, call: &Call) -> Result<Done, Refusal> {
    let parts = call.parts();
    let application = |id: &str| {
        if id == world.application.to_string() {
            Ok(())
        } else {
            Err(Refusal::new(
                403,
                20012,
                "You are not authorized to perform this action on this application",
            ))
        }
    };
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["gateway"]) => Ok((200, Some(json!({ "url": world.gateway })))),
        ("GET", ["gateway", "bot"]) => Ok((200, Some(gateway_bot(world)))),
        ("GET", ["users", "@me"]) => Ok((200, Some(payload::me(&world.users[&world.bot])))),
        ("GET", ["users", "@me", "guilds"]) => Ok((200, Some(my_guilds(world)))),
        ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
            Ok((200, Some(application_object(world))))
        }
        ("GET", ["guilds", guild]) => {
            Ok((200, Some(payload::guild_object(find_guild(world, guild)?))))
        }
        ("GET", ["guilds", guild, "roles"]) => {
            let roles = find_guild(world, guild)?.roles.iter().map(payload::role);
            Ok((200, Some(roles.collect())))
        }
        ("GET", ["guilds", guild, "channels"]) => {
            let guild = find_guild(world, guild)?.id;
            let channels = world.channels.values().filter(|channel| {
                channel.guild() == Some(guild)
                    && matches!(
                        channel.kind,
                        crate::discord::model::ChannelKind::Text { .. }
                    )
            });
            Ok((
                200,
                Some(
                    channels
                        .map(|channel| payload::channel(world, channel))
                        .collect(),
                ),
            ))
        }
        ("GET", ["guilds", guild, "members", user]) => {
            let guild = find_guild(world, guild)?;
            let user = user.parse().map_err(|_| Refusal::not_found())?;
            let is_member = guild.members.iter().any(|(known, _)| *known == user);
            let unknown = Refusal::new(404, 10007, "Unknown Member");
            if is_member {
                Ok((200, Some(payload::member(world, guild.id, user))))
            } else {
                Err(unknown)
            }
        }
        (_, ["applications", id, "commands", rest @ ..]) => {
            application(id)?;
            commands(world, call, None, rest)
        }
        (_, ["applications", id, "guilds", guild, "commands", rest @ ..]) => {
            application(id)?;
            let guild = find_guild(world, guild)
                .map_err(|_| Refusal::missing_access())?
                .id;
            commands(world, call, Some(guild), rest)
        }
        _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
}

fn find_guild<'a>(world: &'a World, id: &str) -> Result<&'a crate::discord::model::Guild, Refusal> {
    let id: GuildId = id.parse().map_err(|_| Refusal::unknown_guild())?;
    world.guilds.get(&id).ok_or_else(Refusal::unknown_guild)
}

fn gateway_bot(world: &World) -> Value {
    json!({
        "url": world.gateway, "shards": 1,
        "session_start_limit": { "total": 1000, "remaining": 999, "reset_after": 86_400_000, "max_concurrency": 1 },
    })
}

fn my_guilds(world: &World) -> Value {
    let guild = |guild: &crate::discord::model::Guild| {
        json!({
            "id": guild.id.to_string(), "name": guild.name, "icon": null, "banner": null, "owner": false,
            "permissions": permission::BOT_DEFAULT.to_string(), "features": [],
        })
    };
    world.guilds.values().map(guild).collect()
}

/// The application's flags say whether the message content intent is switched on (bit 19: limited, below 100 guilds).
pub(crate) fn application_flags(world: &World) -> u64 {
    if world.message_content { 1 << 19 } else { 0 }
}

fn application_object(world: &World) -> Value {
    let flags = application_flags(world);
    json!({
        "id": world.application.to_string(), "name": "baton", "icon": null, "description": "", "type": null,
        "bot": payload::user(&world.users[&world.bot]), "bot_public": true, "bot_require_code_grant": false,
        "verify_key": "00", "flags": flags, "flags_new": flags.to_string(), "redirect_uris": [],
        "interactions_endpoint_url": null, "role_connections_verification_url": null,
        "owner": payload::user(&world.users[&world.bot]), "approximate_guild_count": world.guilds.len(),
        "approximate_user_install_count": 0, "approximate_user_authorization_count": 0, "explicit_content_filter": 0,
        "team": null, "eligible_oauth2_scopes": [],
    })
}

fn commands(
    world: &mut World,
    call: &Call,
    scope: Option<GuildId>,
    rest: &[&str],
) -> Result<Done, Refusal> {
    let known = world.commands.entry(scope).or_default();
    let find = |known: &[Value], id: &str| {
        known
            .iter()
            .position(|command| command["id"] == id)
            .ok_or_else(Refusal::unknown_command)
    };
    match (call.method.as_str(), rest) {
        ("GET", []) => Ok((200, Some(Value::Array(known.clone())))),
        ("GET", [id]) => Ok((200, Some(known[find(known, id)?].clone()))),
        ("DELETE", [id]) => {
            let at = find(known, id)?;
            known.remove(at);
            Ok((204, None))
        }
        ("PUT", []) => {
            let wanted = call.body().as_array().cloned().unwrap_or_default();
            let before = std::mem::take(known);
            let stored = store(world, scope, &before, &wanted, Vec::new());
            if stored.is_err() {
                world.commands.insert(scope, before);
            }
            Ok((200, Some(Value::Array(stored?))))
        }
        ("POST", []) => {
            let before = known.clone();
            let wanted = call.body().clone();
            let existed = before.iter().any(|command| same(command, &wanted));
            let others = before
                .iter()
                .filter(|command| !same(command, &wanted))
                .cloned()
                .collect();
            let stored = store(world, scope, &before, std::slice::from_ref(&wanted), others)?;
            let command = stored
                .iter()
                .find(|command| same(command, &wanted))
                .cloned();
            Ok((if existed { 200 } else { 201 }, command))
        }
        ("PATCH", [id]) => {
            let at = find(known, id)?;
            payload::extend(&mut known[at], call.body().clone());
            Ok((200, Some(known[at].clone())))
        }
        _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
}

/// Writes `wanted` beside `kept` into a scope; a command that was there keeps its id.
fn store(
    world: &mut World,
    scope: Option<GuildId>,
    before: &[Value],
    wanted: &[Value],
    kept: Vec<Value>,
) -> Result<Vec<Value>, Refusal> {
    let now = world.now();
    world
        .creates
        .retain(|(_, at)| between(*at, now).as_secs() < 86_400);
    let fresh = wanted
        .iter()
        .filter(|command| !before.iter().any(|known| same(known, command)))
        .count();
    if world
        .creates
        .iter()
        .filter(|(known, _)| *known == scope)
        .count()
        + fresh
        > CREATES_A_DAY
    {
        return Err(Refusal::too_many_creates());
    }
    let mut commands = kept;
    for command in wanted {
        let id = before
            .iter()
            .find(|known| same(known, command))
            .map(|known| known["id"].clone());
        let id = id.unwrap_or_else(|| json!(world.next_id().to_string()));
        let version = world.next_id().to_string();
        commands.push(shown(world, scope, command, id, &version));
    }
    for (kind, cap) in CAPS {
        if commands
            .iter()
            .filter(|command| command["type"] == kind)
            .count()
            > cap
        {
            return Err(Refusal::too_many_commands());
        }
    }
    world
        .creates
        .extend(std::iter::repeat_n((scope, now), fresh));
    world.commands.insert(scope, commands.clone());
    Ok(commands)
}

fn same(one: &Value, other: &Value) -> bool {
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(1);
    one["name"] == other["name"] && kind(one) == kind(other)
}

/// A command as Discord answers it: no nulls of the request echoed, defaults filled in.
fn shown(world: &World, scope: Option<GuildId>, wanted: &Value, id: Value, version: &str) -> Value {
    let mut command = json!({
        "id": id, "application_id": world.application.to_string(), "version": version,
        "default_member_permissions": null, "type": 1, "description": "", "nsfw": false,
    });
    if let Some(guild) = scope {
        command["guild_id"] = json!(guild.to_string());
    } else {
        payload::extend(
            &mut command,
            json!({ "contexts": null, "integration_types": [0], "dm_permission": true }),
        );
    }
    payload::extend(&mut command, without_nulls(wanted));
    command
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(key, value)| (key.clone(), without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
