//! A Discord on loopback: REST, gateway, and the people who use it.
//!
//! Start it with [`FakeDiscord::start`] or [`FakeDiscord::builder`], point the bot at [`FakeDiscord::base`] (REST) and let
//! it ask for the gateway's address there. Then act as people ([`FakeDiscord::say`], [`FakeDiscord::slash`],
//! [`FakeDiscord::click`]) and wait for what a person would see.

mod asking;
mod fault;
mod gateway;
mod ids;
mod interaction;
mod mentions;
mod model;
mod payload;
mod people;
mod recorder;
mod refusal;
mod rest;
mod script;
mod setup;
mod watch;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch as watching;
use tokio::task::JoinHandle;

pub use fault::Fault;
pub use gateway::{GatewayEvent, GatewayNote};
pub use ids::{ChannelId, GuildId, MessageId, RoleId, UserId};
pub use interaction::{Callback, FirstAnswer, Interaction};
pub use model::{Button, File, Message, Pings, User, permission};
pub use people::{Asked, NotPossible, Said};
pub use recorder::Requested;
pub use setup::Builder;

use crate::clock::MovedClock;
use crate::tls::Front;
use crate::violations::Violations;
use gateway::{GatewayEvent as Noted, Hub};
use world::World;

/// The bot token it accepts unless told another. As with real ones its first part is the bot's id: serenity reads it there.
pub const TOKEN: &str = "MTAwMDAwMDAwMDAwMDAwMDAwMQ.fake.token";
/// The id in [`TOKEN`]; the application's too.
const BOT: UserId = UserId(1_000_000_000_000_000_001);

/// A running fake. Dropping it stops it and fails the test if rules were broken.
pub struct FakeDiscord {
    shared: Arc<Shared>,
    address: SocketAddr,
    tls: Option<Front>,
    tasks: Vec<JoinHandle<()>>,
}

/// What the tasks share. Lock order: world, then hub.
pub(crate) struct Shared {
    pub(crate) world: Mutex<World>,
    pub(crate) hub: Mutex<Hub>,
    pub(crate) faults: fault::Faults,
    pub(crate) violations: Violations,
    changes: watching::Sender<()>,
}

impl Shared {
    /// Hands the world's new events to the gateway and wakes who waits.
    pub(crate) fn flush(&self) {
        {
            let mut world = self.world.lock();
            let events = std::mem::take(&mut world.events);
            // Both locks are held so that two flushes keep the order of their events.
            self.hub.lock().dispatch(events);
        }
        self.changed();
    }

    pub(crate) fn changed(&self) {
        self.changes.send_replace(());
    }

    pub(crate) fn note(&self, what: Noted) {
        let at = self.world.lock().now();
        self.hub.lock().note(at, what);
        self.changed();
    }
}

impl FakeDiscord {
    /// Starts with one guild of one text channel, the message content intent allowed and real limits.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `http://127.0.0.1:P`: what stands for `https://discord.com`; the API lies below `/api/v10`.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `127.0.0.1:P`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where `discord.com` should resolve to. Needs [`Builder::tls`].
    pub fn tls_address(&self) -> SocketAddr {
        self.front().address
    }

    /// PEM of the authority to trust. Needs [`Builder::tls`].
    pub fn tls_authority(&self) -> &str {
        &self.front().authority
    }

    fn front(&self) -> &Front {
        self.tls.as_ref().expect("the fake was built with tls()")
    }

    /// `ws://127.0.0.1:P`: what `GET /gateway` answers.
    pub fn gateway_url(&self) -> String {
        self.shared.world.lock().gateway.clone()
    }

    pub fn token(&self) -> String {
        self.shared.world.lock().token.clone()
    }

    /// Moves it to pass 3 s, 15 min or an hour at once.
    pub fn clock(&self) -> MovedClock {
        self.shared.world.lock().clock.clone()
    }

    /// Rules broken so far; taking them out makes the drop pass.
    pub fn violations(&self) -> &Violations {
        &self.shared.violations
    }

    /// Fails unless every request and answer kept the rules and every scripted fault was met.
    pub fn assert_clean(&self) {
        self.shared.violations.assert_clean("Discord");
        assert_eq!(
            self.shared.faults.left(),
            0,
            "scripted faults that no request met"
        );
    }
}

impl Drop for FakeDiscord {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.hub.lock().to_all(|| gateway::Push::Reset);
        self.shared.violations.assert_clean_at_drop("Discord");
    }
}
