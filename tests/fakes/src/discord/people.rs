//! People: what they type and press.

use serde_json::{Map, Value, json};

use super::FakeDiscord;
use super::ids::{ChannelId, GuildId, MessageId, RoleId, UserId};
use super::interaction::Interaction;
use super::model::{Channel, ChannelKind, File, Role, User, permission};
use super::payload;
use super::rest::dm_with;
use super::world::{Draft, World};

/// A message a person writes.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub text: String,
    pub reply_to: Option<MessageId>,
    /// Name, content type, bytes.
    pub files: Vec<(String, String, Vec<u8>)>,
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// A command or click that was sent; ask the fake what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub id: u64,
    pub token: String,
}

/// Why a person could not do that: their client would not offer it.
#[derive(Clone, Debug, PartialEq)]
pub enum NotPossible {
    /// No such command is registered where the person is.
    NoSuchCommand,
    /// Registered globally and for the guild: the client lists it twice.
    ListedTwice,
    /// An option the command does not have, or a required one left out.
    Option(String),
    /// The message is gone or not visible to this person.
    NoSuchMessage,
    /// No such button on it now, or disabled.
    NoSuchButton,
}

impl FakeDiscord {
    /// The first guild.
    pub fn guild(&self) -> GuildId {
        *self
            .shared
            .world
            .lock()
            .guilds
            .keys()
            .next()
            .expect("there is one from the start")
    }

    /// The first guild's first channel.
    pub fn general(&self) -> ChannelId {
        *self
            .shared
            .world
            .lock()
            .channels
            .keys()
            .next()
            .expect("there is one from the start")
    }

    /// The bot's own account.
    pub fn bot(&self) -> UserId {
        self.shared.world.lock().bot
    }

    pub fn application(&self) -> u64 {
        self.shared.world.lock().application.0
    }

    /// Adds a person to the first guild.
    pub fn person(&self, name: &str) -> UserId {
        self.add_user(name, false)
    }

    /// Adds somebody else's bot to the first guild.
    pub fn other_bot(&self, name: &str) -> UserId {
        self.add_user(name, true)
    }

    fn add_user(&self, name: &str, bot: bool) -> UserId {
        let mut world = self.shared.world.lock();
        let id = UserId(world.next_id());
        world.users.insert(
            id,
            User {
                id,
                name: name.to_owned(),
                bot,
            },
        );
        let guild = world
            .guilds
            .values_mut()
            .next()
            .expect("there is one from the start");
        guild.members.push((id, Vec::new()));
        id
    }

    /// Adds a role to the first guild.
    pub fn role(&self, name: &str) -> RoleId {
        let mut world = self.shared.world.lock();
        let id = RoleId(world.next_id());
        let guild = world
            .guilds
            .values_mut()
            .next()
            .expect("there is one from the start");
        guild.roles.push(Role {
            id,
            name: name.to_owned(),
            permissions: 0,
            mentionable: true,
        });
        id
    }

    /// Adds a text channel to the first guild.
    pub fn channel(&self, name: &str) -> ChannelId {
        let guild = self.guild();
        let id = {
            let mut world = self.shared.world.lock();
            let (id, created) = (ChannelId(world.next_id()), world.now());
            let kind = ChannelKind::Text { guild };
            let channel = Channel {
                id,
                name: name.to_owned(),
                kind,
                denied: 0,
                last_message: None,
                created,
            };
            let shown = payload::channel(&world, &channel);
            world.channels.insert(id, channel);
            world.tell("CHANNEL_CREATE", shown, Some(1));
            id
        };
        self.shared.flush();
        id
    }

    /// The DM between the bot and a person.
    pub fn dm(&self, with: UserId) -> ChannelId {
        dm_with(&mut self.shared.world.lock(), with)
    }

    /// Opens a thread at a message, as the person in front of it could.
    pub fn thread(&self, at: MessageId, name: &str) -> ChannelId {
        let id = ChannelId(at.0);
        {
            let mut world = self.shared.world.lock();
            let parent = world.messages[&at].channel;
            let guild = world.channels[&parent]
                .guild()
                .expect("DMs have no threads");
            world.open_thread(id, parent, guild, name, 1440);
            if let Some(message) = world.messages.get_mut(&at) {
                message.thread = Some(id);
            }
        }
        self.shared.flush();
        id
    }

    /// Archives a thread: sends into it are refused with 50083.
    pub fn archive(&self, thread: ChannelId) {
        let mut world = self.shared.world.lock();
        let channel = world.channels.get_mut(&thread).expect("the thread exists");
        if let ChannelKind::Thread { archived, .. } = &mut channel.kind {
            *archived = true;
        }
    }

    /// Takes permission bits (see [`permission`]) from the bot in a channel.
    pub fn deny(&self, channel: ChannelId, bits: u64) {
        let mut world = self.shared.world.lock();
        world
            .channels
            .get_mut(&channel)
            .expect("the channel exists")
            .denied |= bits;
    }

    /// A person writes.
    pub fn say(&self, channel: ChannelId, user: UserId, said: impl Into<Said>) -> MessageId {
        let said = said.into();
        let id = {
            let mut world = self.shared.world.lock();
            let files = said.files.into_iter().map(|(name, kind, bytes)| File {
                id: world.next_id(),
                name,
                content_type: Some(kind),
                bytes,
            });
            let files = files.collect();
            let draft = Draft {
                text: Some(said.text),
                files,
                reply_to: said.reply_to,
                ..Draft::default()
            };
            world.post(channel, user, draft)
        };
        self.shared.flush();
        id
    }

    /// A person edits their message.
    pub fn correct(&self, message: MessageId, text: &str) {
        self.shared.world.lock().edit(
            message,
            Draft {
                text: Some(text.to_owned()),
                ..Draft::default()
            },
        );
        self.shared.flush();
    }

    /// A person or moderator deletes a message.
    pub fn remove(&self, message: MessageId) {
        self.shared.world.lock().delete(message);
        self.shared.flush();
    }

    /// A person uses a slash command, with options by name.
    ///
    /// # Errors
    /// [`NotPossible`] when their client would not offer it.
    pub fn slash(
        &self,
        channel: ChannelId,
        user: UserId,
        name: &str,
        options: &[(&str, Value)],
    ) -> Result<Asked, NotPossible> {
        let asked = {
            let mut world = self.shared.world.lock();
            let command = registered(&world, channel, name)?.clone();
            let data = command_data(&world, channel, &command, options)?;
            interact(&mut world, channel, user, 2, data, None)
        };
        self.shared.flush();
        Ok(asked)
    }

    /// A person presses a button.
    ///
    /// # Errors
    /// [`NotPossible`] when there is none for them.
    pub fn click(
        &self,
        user: UserId,
        message: MessageId,
        custom_id: &str,
    ) -> Result<Asked, NotPossible> {
        let asked = {
            let mut world = self.shared.world.lock();
            let on = world
                .messages
                .get(&message)
                .filter(|on| !on.deleted && on.only_for.is_none_or(|who| who == user));
            let on = on.ok_or(NotPossible::NoSuchMessage)?;
            if !on
                .buttons()
                .iter()
                .any(|button| button.custom_id == custom_id && !button.disabled)
            {
                return Err(NotPossible::NoSuchButton);
            }
            let channel = on.channel;
            let data = json!({ "custom_id": custom_id, "component_type": 2, "id": 2 });
            interact(&mut world, channel, user, 3, data, Some(message))
        };
        self.shared.flush();
        Ok(asked)
    }
}

fn registered<'a>(
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

fn command_data(
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
fn interact(
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
