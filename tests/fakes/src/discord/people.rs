//! People: what they type and press.

use serde_json::{Value, json};

use super::FakeDiscord;
use super::asking::{command_data, interact, registered};
use super::ids::{ChannelId, GuildId, MessageId, RoleId, UserId};
use super::model::{Channel, ChannelKind, File, Role, User};
use super::payload;
use super::rest::dm_with;
use super::world::Draft;

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

    /// Takes permission bits (see [`super::permission`]) from the bot in a channel.
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
