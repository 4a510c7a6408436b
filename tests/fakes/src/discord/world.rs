//! Everything the fake Discord knows, behind one lock; changes append the gateway events they cause.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ids::{ChannelId, GuildId, MessageId, Snowflakes, UserId};
use super::interaction::Interaction;
use super::mentions::{self, Defaults};
use super::model::{Channel, ChannelKind, File, Guild, Message, Pings, User, permission};
use super::payload;
use super::recorder::Requested;
use super::refusal::Refusal;
use crate::clock::{MovedClock, between};
use crate::limits::Limits;

pub(crate) struct World {
    pub(crate) clock: MovedClock,
    /// When the fake was started.
    pub(crate) opened: Timestamp,
    /// `http://127.0.0.1:P`.
    pub(crate) base: String,
    pub(crate) gateway: String,
    pub(crate) ids: Snowflakes,
    pub(crate) token: String,
    pub(crate) bot: UserId,
    pub(crate) application: UserId,
    /// The privileged intent is switched on in the developer portal.
    pub(crate) message_content: bool,
    pub(crate) users: BTreeMap<UserId, User>,
    pub(crate) guilds: BTreeMap<GuildId, Guild>,
    pub(crate) channels: BTreeMap<ChannelId, Channel>,
    pub(crate) messages: BTreeMap<MessageId, Message>,
    /// `None` = the global scope.
    pub(crate) commands: BTreeMap<Option<GuildId>, Vec<Value>>,
    /// When each command was created, by scope: 200 a day.
    pub(crate) creates: Vec<(Option<GuildId>, Timestamp)>,
    /// By token.
    pub(crate) interactions: HashMap<String, Interaction>,
    pub(crate) typing: Vec<(ChannelId, Timestamp)>,
    pub(crate) requests: Vec<Requested>,
    pub(crate) limits: Limits,
    /// Events not yet handed to the gateway.
    pub(crate) events: Vec<Event>,
}

/// A gateway event to be.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) payload: Value,
    /// Decides which intent it needs. `None` = sent to every session.
    pub(crate) intent: Option<u64>,
    /// Whether its text is hidden without the message content intent.
    pub(crate) censored: bool,
}

/// What a request says about a message; `None` = not mentioned.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) text: Option<String>,
    pub(crate) components: Option<Value>,
    pub(crate) embeds: Option<Value>,
    pub(crate) allowed_mentions: Option<Value>,
    pub(crate) files: Vec<File>,
    pub(crate) flags: u64,
    pub(crate) nonce: Option<Value>,
    pub(crate) enforce_nonce: bool,
    pub(crate) reply_to: Option<MessageId>,
    pub(crate) only_for: Option<UserId>,
    pub(crate) from_interaction: Option<(u64, UserId, u8)>,
    pub(crate) loading: bool,
}

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        let now = self.now();
        self.ids.next(now)
    }

    pub(crate) fn channel(&self, id: ChannelId) -> Result<&Channel, Refusal> {
        self.channels.get(&id).ok_or_else(Refusal::unknown_channel)
    }

    /// What the bot may do in a channel; a thread takes its parent's.
    pub(crate) fn permissions(&self, id: ChannelId) -> u64 {
        let Some(channel) = self.channels.get(&id) else {
            return 0;
        };
        match &channel.kind {
            ChannelKind::Thread { parent, .. } => self.permissions(*parent) & !channel.denied,
            _ => permission::BOT_DEFAULT & !channel.denied,
        }
    }

    /// Refuses unless the bot has `bit` in the channel.
    pub(crate) fn allow(&self, id: ChannelId, bit: u64) -> Result<(), Refusal> {
        let has = self.permissions(id);
        if has & permission::VIEW_CHANNEL == 0 {
            return Err(Refusal::missing_access());
        }
        if has & bit == 0 {
            Err(Refusal::missing_permissions())
        } else {
            Ok(())
        }
    }

    /// A message the bot token can reach: ephemeral and deleted ones are not.
    pub(crate) fn reachable(&self, channel: ChannelId, id: MessageId) -> Result<&Message, Refusal> {
        let message = self.messages.get(&id);
        message
            .filter(|message| {
                message.channel == channel && !message.deleted && message.only_for.is_none()
            })
            .ok_or_else(Refusal::unknown_message)
    }

    /// Puts a message into a channel.
    pub(crate) fn post(&mut self, channel: ChannelId, author: UserId, draft: Draft) -> MessageId {
        let id = MessageId(self.next_id());
        let now = self.now();
        let defaults = defaults_of(&draft);
        let text = draft.text.unwrap_or_default();
        let replied = draft
            .reply_to
            .and_then(|answered| Some(self.messages.get(&answered)?.author));
        let pings = if draft.only_for.is_some() {
            Pings::default()
        } else {
            mentions::pings(&text, draft.allowed_mentions.as_ref(), defaults, replied)
        };
        let message = Message {
            id,
            channel,
            author,
            text,
            earlier: Vec::new(),
            components: draft
                .components
                .filter(|rows| !rows.is_null())
                .unwrap_or_else(|| json!([])),
            embeds: draft
                .embeds
                .filter(|embeds| !embeds.is_null())
                .unwrap_or_else(|| json!([])),
            files: draft.files,
            only_for: draft.only_for,
            pings,
            allowed_mentions: draft.allowed_mentions,
            reply_to: draft.reply_to,
            loading: draft.loading,
            deleted: false,
            created_at: now,
            edited_at: None,
            thread: None,
            nonce: draft.nonce,
            flags: draft.flags & !64,
            from_interaction: draft.from_interaction,
            edits_when_old: 0,
        };
        self.messages.insert(id, message);
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.last_message = Some(id);
        }
        self.tell_message("MESSAGE_CREATE", id);
        id
    }

    /// Changes a message as a person then sees it; what the draft does not mention stays.
    pub(crate) fn edit(&mut self, id: MessageId, draft: Draft) {
        let now = self.now();
        let defaults = defaults_of(&draft);
        let Some(message) = self.messages.get_mut(&id) else {
            return;
        };
        if let Some(text) = draft.text {
            if message.only_for.is_none() {
                let defaults = if message.from_interaction.is_some() {
                    Defaults::Interaction
                } else {
                    defaults
                };
                message.pings.merge(mentions::pings(
                    &text,
                    draft.allowed_mentions.as_ref(),
                    defaults,
                    None,
                ));
            }
            let before = std::mem::replace(&mut message.text, text);
            if !message.loading {
                message.earlier.push(before);
            }
        }
        message.allowed_mentions = draft.allowed_mentions;
        for (field, value) in [
            (&mut message.components, draft.components),
            (&mut message.embeds, draft.embeds),
        ] {
            match value {
                Some(Value::Null) => *field = json!([]),
                Some(value) => *field = value,
                None => {}
            }
        }
        message.files.extend(draft.files);
        message.loading = false;
        message.edited_at = Some(now);
        self.tell_message("MESSAGE_UPDATE", id);
    }

    pub(crate) fn delete(&mut self, id: MessageId) {
        let Some(message) = self.messages.get_mut(&id) else {
            return;
        };
        message.deleted = true;
        let (channel, hidden) = (message.channel, message.only_for.is_some());
        if !hidden {
            let payload = json!({ "id": id.to_string(), "channel_id": channel.to_string(), "guild_id": self.guild_of(channel) });
            self.tell(
                "MESSAGE_DELETE",
                without_nulls(payload),
                self.message_intent(channel),
            );
        }
    }

    /// Opens a thread: its own channel below `parent`.
    pub(crate) fn open_thread(
        &mut self,
        id: ChannelId,
        parent: ChannelId,
        guild: GuildId,
        name: &str,
        archives_after: u64,
    ) {
        let now = self.now();
        let owner = self.bot;
        let kind = ChannelKind::Thread {
            guild,
            parent,
            owner,
            archived: false,
            archives_after,
        };
        let thread = Channel {
            id,
            name: name.to_owned(),
            kind,
            denied: 0,
            last_message: None,
            created: now,
        };
        self.channels.insert(id, thread);
        let mut payload = payload::channel(self, &self.channels[&id]);
        payload["newly_created"] = json!(true);
        self.tell("THREAD_CREATE", payload, Some(1));
    }

    pub(crate) fn tell_message(&mut self, name: &str, id: MessageId) {
        let message = &self.messages[&id];
        // Ephemeral messages reach nobody's gateway but the asker's client.
        if message.only_for.is_some() {
            return;
        }
        let (payload, channel) = (payload::message_event(self, message), message.channel);
        let own = message.author == self.bot || message.pings.users.contains(&self.bot);
        let dm = self.channels[&channel].guild().is_none();
        let intent = self.message_intent(channel);
        self.events.push(Event {
            name: name.to_owned(),
            payload,
            intent,
            censored: !own && !dm,
        });
    }

    pub(crate) fn tell(&mut self, name: &str, payload: Value, intent: Option<u64>) {
        self.events.push(Event {
            name: name.to_owned(),
            payload,
            intent,
            censored: false,
        });
    }

    pub(crate) fn message_intent(&self, channel: ChannelId) -> Option<u64> {
        let dm = self
            .channels
            .get(&channel)
            .is_some_and(|channel| channel.guild().is_none());
        Some(if dm { 1 << 12 } else { 1 << 9 })
    }

    pub(crate) fn guild_of(&self, channel: ChannelId) -> Option<String> {
        Some(self.channels.get(&channel)?.guild()?.to_string())
    }

    /// Whether a message is older than an hour: its edits have a harder limit.
    pub(crate) fn is_old(&self, message: &Message) -> bool {
        between(message.created_at, self.now()).as_secs() > 3600
    }
}

fn defaults_of(draft: &Draft) -> Defaults {
    if draft.from_interaction.is_some() {
        Defaults::Interaction
    } else {
        Defaults::Message
    }
}

pub(crate) fn without_nulls(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    value
}
