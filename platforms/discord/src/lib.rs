//! Discord as a chat platform: translation between its gateway and REST interface and ours. No type of the client library
//! leaves this crate. Facts about Discord are of its documentation of August 2026 unless another source is named.
//!
//! One value of [`Discord`] is one bot token. It is an [`Adapter`]: `check` once, then `register` and `listen`; as a
//! [`Surface`] it becomes a platform with `platforms::chat::Chat::start(discord, STYLE, prefix)`. Whoever runs it has
//! installed a rustls provider before.
//!
//! What always holds:
//! - Nothing that can hold a text is sent without `allowed_mentions: {parse: []}` ([`body`]).
//! - One call of the wire is one request, tried once ([`rest`]).
//! - Commands and presses are acknowledged before anything else is done with them ([`acknowledge`]).
//! - What was meant for one person never appears where others read ([`reply`]).
//! - Nothing is dialled but what the settings name, or Discord ([`settings`], [`gateway`]).

mod acknowledge;
mod address;
mod asked;
mod back_fill;
mod body;
mod check;
mod event;
mod fetch;
mod finding;
#[cfg(feature = "foreign")]
pub mod foreign;
mod gateway;
mod inbound;
mod listen;
mod look_up;
mod outbound;
mod permission;
mod pulse;
mod refusal;
mod register;
mod reply;
mod rest;
mod rooms;
mod settings;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::command::CommandSpec;
use gateway_core::message::Audience;
use parking_lot::Mutex;
use platforms::adapter::{Adapter, File, Finding, Health, Heard};
use platforms::board::ToolsShown;
use platforms::chat::{Style, Surface};
use platforms::dedupe::Dedupe;
use platforms::escape::Shape;
use platforms::outbox::Pace;
use platforms::stream::Flow;
use platforms::wire::{Body, MessageId, Place, Wire, WireError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use asked::AskedBook;
use inbound::Me;
use pulse::Pulse;
use rest::Rest;
use rooms::Rooms;
pub use settings::{CommandScope, Detour, DiscordSettings, SettingsError};

/// The platform's name in addresses and reply targets.
pub const NAME: &str = "discord";

/// Discord's numbers. Typing is shown for 10 s and renewed a little sooner.
pub const STYLE: Style = Style {
    shape: Shape::DISCORD,
    flow: Flow {
        first_after: Duration::from_secs(1),
        interval: Duration::from_millis(1_300),
        messages_max: 5,
    },
    pace: Pace::DISCORD,
    activity_every: Duration::from_secs(8),
};

/// One bot.
pub struct Discord(Arc<Core>);

/// What the parts share.
struct Core {
    settings: DiscordSettings,
    rest: Rest,
    /// Known once [`Adapter::check`] has succeeded.
    me: Mutex<Option<Me>>,
    /// Who sees the answer of which command, as registered.
    audiences: Mutex<HashMap<String, Audience>>,
    asked: Mutex<AskedBook>,
    rooms: Mutex<Rooms>,
    /// Ids of messages and interactions that were heard.
    seen: Mutex<Dedupe>,
    pulse: Pulse,
}

impl Discord {
    /// A bot that does nothing yet. Dials nobody.
    pub fn new(settings: DiscordSettings) -> Result<Self, SettingsError> {
        settings::check(&settings)?;
        let core = Core {
            rest: Rest::new(&settings)?,
            settings,
            me: Mutex::default(),
            audiences: Mutex::default(),
            asked: Mutex::default(),
            rooms: Mutex::default(),
            seen: Mutex::default(),
            pulse: Pulse::default(),
        };
        Ok(Self(Arc::new(core)))
    }

    /// How long nothing could be heard when the connection was lost last; `None` = it never was, or it is now.
    pub fn last_recovery(&self) -> Option<Duration> {
        self.0.pulse.last_recovery()
    }
}

impl Core {
    fn me(&self) -> Option<Me> {
        self.me.lock().clone()
    }

    /// Who sees the answer of a command, by the table's name of it. Unknown ones are answered privately: the safe side.
    fn audience(&self, command: &str) -> Audience {
        let registered = self.audiences.lock().get(command).copied();
        let built_in = || commands::find(command).map(|command| command.spec.audience);
        registered.or_else(built_in).unwrap_or(Audience::Asker)
    }
}

#[async_trait]
impl Wire for Discord {
    async fn send(&self, place: &Place, body: &Body, nonce: &str) -> Result<MessageId, WireError> {
        self.0.send(place, body, nonce).await
    }

    async fn edit(&self, place: &Place, message: &MessageId, body: &Body) -> Result<(), WireError> {
        self.0.edit(place, message, body).await
    }

    async fn delete(&self, place: &Place, message: &MessageId) -> Result<(), WireError> {
        self.0.delete(place, message).await
    }

    async fn find(&self, place: &Place, nonce: &str) -> Result<Option<MessageId>, WireError> {
        self.0.find(place, nonce).await
    }
}

#[async_trait]
impl Surface for Discord {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place(&self, address: &str) -> Option<Place> {
        let address = address::Address::decode(address)?;
        Some(Place {
            channel: address.channel.to_string(),
            thread: None,
        })
    }

    fn tools_shown(&self, place: &Place) -> ToolsShown {
        let channel = settings::snowflake(&place.channel);
        let direct = channel.is_some_and(|channel| self.0.rooms.lock().is_direct(channel));
        match direct || self.0.settings.tools_in_channels {
            true => ToolsShown::Yes,
            false => ToolsShown::No,
        }
    }

    async fn reply(
        &self,
        address: &str,
        bodies: Vec<Body>,
        audience: Audience,
    ) -> Result<MessageId, WireError> {
        self.0.reply(address, bodies, audience).await
    }

    async fn settle(&self, address: &str, text: Option<&str>) -> Result<(), WireError> {
        self.0.settle(address, text).await
    }

    async fn activity(&self, place: &Place) -> Result<(), WireError> {
        self.0.activity(place).await
    }
}

#[async_trait]
impl Adapter for Discord {
    async fn check(&self) -> Result<Vec<Finding>, Finding> {
        self.0.check().await
    }

    async fn register(&self, commands: &[&CommandSpec]) -> Result<Vec<Finding>, Finding> {
        self.0.register(commands).await
    }

    async fn listen(
        &self,
        heard: mpsc::Sender<Heard>,
        stop: CancellationToken,
    ) -> Result<(), Finding> {
        listen::listen(Arc::clone(&self.0), heard, stop).await
    }

    async fn fetch(&self, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError> {
        self.0.fetch(file, max_bytes).await
    }

    fn health(&self) -> Health {
        self.0.pulse.health()
    }
}
