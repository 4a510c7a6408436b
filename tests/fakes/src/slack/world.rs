//! Everything the fake workspace knows, behind one lock; changes append the events they cause.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::mentions;
use super::model::{At, Channel, File, Message, Pings, User};
use super::payload;
use super::recorder::{Requested, Status};
use super::reply::ResponseUrl;
use crate::clock::MovedClock;
use crate::limits::Limits;

pub(crate) const TEAM: &str = "T0BATON01";
pub(crate) const APP: &str = "A0BATON01";
pub(crate) const BOT_USER: &str = "U0BATON01";
pub(crate) const BOT: &str = "B0BATON01";

pub(crate) struct World {
    pub(crate) clock: MovedClock,
    /// `http://127.0.0.1:P`.
    pub(crate) base: String,
    /// `ws://127.0.0.1:P`.
    pub(crate) sockets: String,
    pub(crate) bot_token: String,
    pub(crate) app_token: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) messages: BTreeMap<At, Message>,
    /// Names of the slash commands in the app's manifest; `None` = any.
    pub(crate) commands: Option<Vec<String>>,
    /// Uploaded, not yet completed: by file id.
    pub(crate) uploads: HashMap<String, Upload>,
    pub(crate) response_urls: HashMap<String, ResponseUrl>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) requests: Vec<Requested>,
    pub(crate) limits: Limits,
    /// Events not yet handed to the sockets.
    pub(crate) events: Vec<Value>,
    last_ts: i64,
    counter: u64,
}

pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) length: usize,
    pub(crate) bytes: Option<Vec<u8>>,
}

/// What a request says about a message.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) text: Option<String>,
    pub(crate) markdown: bool,
    pub(crate) blocks: Option<Value>,
    pub(crate) thread_ts: Option<String>,
    pub(crate) only_for: Option<String>,
    pub(crate) linked: bool,
    pub(crate) files: Vec<File>,
    pub(crate) metadata: Value,
    pub(crate) streaming: bool,
}

impl Draft {
    /// Reads `text` or `markdown_text`, `blocks` and what decides about mentions.
    pub(crate) fn read(parameters: &Map<String, Value>) -> Self {
        let text = |key: &str| {
            parameters
                .get(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let is = |key: &str| {
            parameters
                .get(key)
                .is_some_and(|value| *value == true || *value == "true" || *value == "1")
        };
        let markdown = text("markdown_text").is_some();
        Self {
            text: text("markdown_text").or_else(|| text("text")),
            markdown,
            blocks: parameters.get("blocks").cloned(),
            thread_ts: text("thread_ts"),
            linked: is("link_names") || text("parse").as_deref() == Some("full"),
            metadata: parameters.get("metadata").cloned().unwrap_or_default(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let no_blocks = self
            .blocks
            .as_ref()
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty);
        self.text.as_deref().is_none_or(str::is_empty) && no_blocks && self.files.is_empty()
    }
}

impl World {
    pub(crate) fn new(clock: MovedClock, base: String, sockets: String, limit_speed: f64) -> Self {
        Self {
            clock,
            base,
            sockets,
            bot_token: super::BOT_TOKEN.to_owned(),
            app_token: super::APP_TOKEN.to_owned(),
            scopes: super::methods::SCOPES
                .iter()
                .map(|scope| (*scope).to_owned())
                .collect(),
            users: BTreeMap::new(),
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            commands: None,
            uploads: HashMap::new(),
            response_urls: HashMap::new(),
            statuses: Vec::new(),
            requests: Vec::new(),
            limits: Limits::new(limit_speed),
            events: Vec::new(),
            last_ts: 0,
            counter: 0,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A fresh id such as `C000000A1`.
    pub(crate) fn next_id(&mut self, letter: char) -> String {
        self.counter += 1;
        format!("{letter}{:08}", self.counter)
    }

    /// A message timestamp: seconds and microseconds, never twice.
    pub(crate) fn next_ts(&mut self) -> String {
        self.last_ts = self.now().as_microsecond().max(self.last_ts + 1);
        ts(self.last_ts)
    }

    /// Puts a message into a channel.
    pub(crate) fn post(&mut self, channel: &str, user: &str, draft: Draft) -> At {
        let at = At {
            channel: channel.to_owned(),
            ts: self.next_ts(),
        };
        let text = draft.text.unwrap_or_default();
        let blocks = self.with_ids(draft.blocks.unwrap_or_else(|| json!([])));
        let pings = if draft.only_for.is_some() {
            Pings::default()
        } else {
            mentions::pings(&text, &blocks, draft.linked)
        };
        let message = Message {
            at: at.clone(),
            user: user.to_owned(),
            text,
            markdown: draft.markdown,
            earlier: Vec::new(),
            blocks,
            thread_ts: draft.thread_ts,
            only_for: draft.only_for,
            pings,
            files: draft.files,
            reactions: Vec::new(),
            metadata: draft.metadata,
            streaming: draft.streaming,
            deleted: false,
            created_at: self.now(),
            edited_at: None,
        };
        self.messages.insert(at.clone(), message);
        self.tell_message(&at);
        at
    }

    /// Changes a message; what the draft does not mention stays.
    pub(crate) fn edit(&mut self, at: &At, draft: Draft) {
        let now = self.now();
        let blocks = draft.blocks.map(|blocks| self.with_ids(blocks));
        let Some(message) = self.messages.get_mut(at) else {
            return;
        };
        if let Some(text) = draft.text {
            message
                .earlier
                .push(std::mem::replace(&mut message.text, text));
            message.markdown = draft.markdown;
        }
        if let Some(blocks) = blocks {
            message.blocks = blocks;
        }
        if message.only_for.is_none() {
            message.pings.merge(mentions::pings(
                &message.text,
                &message.blocks,
                draft.linked,
            ));
        }
        message.edited_at = Some(now);
        let event = payload::changed(self, at);
        self.tell(event);
    }

    pub(crate) fn delete(&mut self, at: &At) {
        if let Some(message) = self.messages.get_mut(at) {
            message.deleted = true;
            let event = payload::deleted(self, at);
            self.tell(event);
        }
    }

    /// Tells the app about a message; a mention comes as `app_mention` too.
    pub(crate) fn tell_message(&mut self, at: &At) {
        let message = &self.messages[at];
        if message.only_for.is_some() {
            return;
        }
        let mentions = message.pings.users.iter().any(|user| user == BOT_USER);
        let own = message.user == BOT_USER;
        let dm = self.channels[&at.channel].dm_with.is_some();
        let event = payload::message_event(self, message);
        if mentions && !own && !dm {
            let mut mention = event.clone();
            mention["type"] = json!("app_mention");
            if let Some(mention) = mention.as_object_mut() {
                mention.remove("channel_type");
            }
            self.tell(mention);
        }
        self.tell(event);
    }

    /// Wraps an event for delivery, unless the app was not invited.
    pub(crate) fn tell(&mut self, event: Value) {
        let channel = event["channel"].as_str().unwrap_or_default();
        if self
            .channels
            .get(channel)
            .is_some_and(|channel| !channel.joined)
        {
            return;
        }
        let id = self.next_id('E');
        let wrapped = payload::wrapped(&format!("Ev{id}"), self.now().as_second(), event);
        self.events.push(wrapped);
    }

    pub(crate) fn find(&self, channel: &str, ts: &str) -> Option<&Message> {
        let at = At {
            channel: channel.to_owned(),
            ts: ts.to_owned(),
        };
        self.messages.get(&at).filter(|message| !message.deleted)
    }

    /// Slack gives blocks and actions that came without an id one of its own.
    fn with_ids(&mut self, mut blocks: Value) -> Value {
        for block in blocks.as_array_mut().into_iter().flatten() {
            if block["block_id"].is_null() {
                block["block_id"] = json!(self.next_id('b'));
            }
            for element in block
                .get_mut("elements")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if element["type"] == "button" && element["action_id"].is_null() {
                    element["action_id"] = json!(self.next_id('a'));
                }
            }
        }
        blocks
    }
}

/// `microseconds` as Slack writes them.
pub(crate) fn ts(microseconds: i64) -> String {
    format!(
        "{}.{:06}",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    )
}
