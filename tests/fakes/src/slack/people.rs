//! People: what they type and press.

use super::FakeSlack;
use super::model::{At, Channel, File, User};
use super::socket::send_once;
use super::web::dm_with;
use super::world::Draft;
use super::{payload, reply};

/// A message a person writes.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub text: String,
    /// The root of the thread. `None` = in the channel.
    pub thread_ts: Option<String>,
    /// Name, type, bytes.
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
    pub envelope: String,
    pub response_url: String,
}

/// Why a person could not do that.
#[derive(Clone, Debug, PartialEq)]
pub enum NotPossible {
    /// The app's manifest has no such command.
    NoSuchCommand,
    /// The message is gone or not visible to this person.
    NoSuchMessage,
    NoSuchButton,
}

impl FakeSlack {
    /// The channel there is from the start, with the app in it.
    pub fn general(&self) -> String {
        let world = self.shared.world.lock();
        world
            .channels
            .values()
            .find(|channel| channel.name == "general")
            .expect("made at the start")
            .id
            .clone()
    }

    /// Adds a channel. Not `joined` = the app was not invited.
    pub fn channel(&self, name: &str, joined: bool) -> String {
        let mut world = self.shared.world.lock();
        let id = world.next_id('C');
        world.channels.insert(
            id.clone(),
            Channel {
                id: id.clone(),
                name: name.to_owned(),
                dm_with: None,
                joined,
            },
        );
        id
    }

    pub fn person(&self, name: &str) -> String {
        self.add(name, false)
    }

    /// Somebody else's bot.
    pub fn other_bot(&self, name: &str) -> String {
        self.add(name, true)
    }

    fn add(&self, name: &str, bot: bool) -> String {
        let mut world = self.shared.world.lock();
        let id = world.next_id('U');
        world.users.insert(
            id.clone(),
            User {
                id: id.clone(),
                name: name.to_owned(),
                bot,
            },
        );
        id
    }

    /// The direct messages between the app and a person.
    pub fn dm(&self, user: &str) -> String {
        dm_with(&mut self.shared.world.lock(), user)
    }

    /// A person writes. A mention is `<@U…>`, see [`Self::mention`].
    pub fn say(&self, channel: &str, user: &str, said: impl Into<Said>) -> At {
        let said = said.into();
        let at = {
            let mut world = self.shared.world.lock();
            let files = said.files.into_iter().map(|(name, mimetype, bytes)| File {
                id: world.next_id('F'),
                name,
                mimetype,
                bytes,
            });
            let files = files.collect();
            let draft = Draft {
                text: Some(said.text),
                thread_ts: said.thread_ts,
                files,
                ..Draft::default()
            };
            world.post(channel, user, draft)
        };
        self.shared.flush();
        at
    }

    /// `<@U…>` of the app's bot user.
    pub fn mention(&self) -> String {
        format!("<@{}>", super::world::BOT_USER)
    }

    /// A person edits their message.
    pub fn correct(&self, at: &At, text: &str) {
        self.shared.world.lock().edit(
            at,
            Draft {
                text: Some(text.to_owned()),
                ..Draft::default()
            },
        );
        self.shared.flush();
    }

    pub fn remove(&self, at: &At) {
        self.shared.world.lock().delete(at);
        self.shared.flush();
    }

    /// Only these slash commands exist, as the app's manifest says. Any does until this is called.
    pub fn install_commands(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.shared.world.lock().commands = Some(names);
    }

    /// A person uses a slash command: `/usage`, then its text.
    ///
    /// # Errors
    /// [`NotPossible::NoSuchCommand`].
    pub fn slash(
        &self,
        channel: &str,
        user: &str,
        name: &str,
        text: &str,
    ) -> Result<Asked, NotPossible> {
        let asked = {
            let mut world = self.shared.world.lock();
            if world
                .commands
                .as_ref()
                .is_some_and(|known| !known.iter().any(|known| known == name))
            {
                return Err(NotPossible::NoSuchCommand);
            }
            let response_url = reply::make(&mut world, channel, user, None);
            let trigger = world.next_id('t');
            let payload = payload::command(
                &world.channels[channel],
                &world.users[user],
                name,
                text,
                &response_url,
                &trigger,
            );
            let envelope = send_once(&self.shared, &world, "slash_commands", &payload);
            Asked {
                envelope,
                response_url,
            }
        };
        self.shared.changed();
        Ok(asked)
    }

    /// A person presses a button.
    ///
    /// # Errors
    /// [`NotPossible`] when there is none for them.
    pub fn click(&self, user: &str, at: &At, action_id: &str) -> Result<Asked, NotPossible> {
        let asked = {
            let mut world = self.shared.world.lock();
            let on = world
                .messages
                .get(at)
                .filter(|on| !on.deleted && on.only_for.as_deref().is_none_or(|who| who == user));
            let on = on.cloned().ok_or(NotPossible::NoSuchMessage)?;
            if !on
                .buttons()
                .iter()
                .any(|button| button.action_id == action_id)
            {
                return Err(NotPossible::NoSuchButton);
            }
            let response_url = reply::make(&mut world, &at.channel, user, Some(at.clone()));
            let trigger = world.next_id('t');
            let payload = payload::click(
                &world,
                &world.users[user],
                &on,
                action_id,
                &response_url,
                &trigger,
            );
            let envelope = send_once(&self.shared, &world, "interactive", &payload);
            Asked {
                envelope,
                response_url,
            }
        };
        self.shared.changed();
        Ok(asked)
    }
}
