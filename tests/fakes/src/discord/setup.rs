//! What a fake starts with.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::gateway::{self, Hub};
use super::ids::{ChannelId, GuildId, RoleId, Snowflakes, UserId};
use super::model::{Channel, ChannelKind, Guild, Role, User, permission};
use super::world::World;
use super::{BOT, FakeDiscord, Shared, TOKEN, fault, rest};
use crate::clock::MovedClock;
use crate::limits::Limits;
use crate::tls::Front;
use crate::violations::Violations;

/// Settings of a [`FakeDiscord`]; the defaults are Discord's.
pub struct Builder {
    token: String,
    clock: MovedClock,
    limit_speed: f64,
    heartbeat: Duration,
    message_content: bool,
    tls: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            token: TOKEN.to_owned(),
            clock: MovedClock::default(),
            limit_speed: 1.0,
            heartbeat: Duration::from_millis(41_250),
            message_content: true,
            tls: false,
        }
    }
}

impl Builder {
    /// The bot token that is accepted.
    pub fn token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    pub fn clock(mut self, clock: MovedClock) -> Self {
        self.clock = clock;
        self
    }

    /// 20.0 = rate limit windows pass 20 times faster. Nothing else does.
    pub fn limit_speed(mut self, speed: f64) -> Self {
        self.limit_speed = speed;
        self
    }

    /// HELLO's interval; 41.25 s by default. Short ones make zombies show sooner.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval;
        self
    }

    /// The operator forgot to switch the message content intent on: asking for it closes with 4014.
    pub fn without_message_content(mut self) -> Self {
        self.message_content = false;
        self
    }

    /// Serves REST over TLS as `discord.com` too.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    pub async fn start(self) -> FakeDiscord {
        let web = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let sockets = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let address = web.local_addr().expect("a bound listener has an address");
        let gateway = sockets
            .local_addr()
            .expect("a bound listener has an address");
        let tls = self.tls;
        let heartbeat = self.heartbeat;
        let world = self.world(format!("http://{address}"), format!("ws://{gateway}"));
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            hub: Mutex::new(Hub::new(heartbeat)),
            faults: fault::Faults::default(),
            violations: Violations::default(),
            changes: tokio::sync::watch::channel(()).0,
        });
        let router = rest::router(Arc::clone(&shared));
        let front = if tls {
            Some(Front::start("discord.com", router.clone()).await)
        } else {
            None
        };
        let tasks = vec![
            tokio::spawn(async move {
                axum::serve(web, router)
                    .await
                    .expect("axum serves until aborted");
            }),
            tokio::spawn(gateway::serve(sockets, Arc::clone(&shared))),
        ];
        FakeDiscord {
            shared,
            address,
            tls: front,
            tasks,
        }
    }

    fn world(self, base: String, gateway: String) -> World {
        let opened = self.clock.now();
        let mut ids = Snowflakes::new();
        let mut next = || ids.next(opened);
        let (bot, application) = (BOT, BOT);
        let guild = GuildId(next());
        let channel = ChannelId(next());
        // An owner may everything, and bots own no servers.
        let owner = UserId(next());
        let everyone = Role {
            id: RoleId(guild.0),
            name: "@everyone".to_owned(),
            permissions: permission::BOT_DEFAULT,
            mentionable: false,
        };
        let guild = Guild {
            id: guild,
            name: "workshop".to_owned(),
            owner,
            members: vec![(bot, Vec::new()), (owner, Vec::new())],
            roles: vec![everyone],
        };
        let general = Channel {
            id: channel,
            name: "general".to_owned(),
            kind: ChannelKind::Text { guild: guild.id },
            denied: 0,
            last_message: None,
            created: opened,
        };
        World {
            clock: self.clock,
            opened,
            base,
            gateway,
            ids,
            token: self.token,
            bot,
            application,
            message_content: self.message_content,
            users: BTreeMap::from([
                (bot, user(bot, "baton", true)),
                (owner, user(owner, "founder", false)),
            ]),
            guilds: BTreeMap::from([(guild.id, guild)]),
            channels: BTreeMap::from([(channel, general)]),
            messages: BTreeMap::new(),
            commands: BTreeMap::new(),
            creates: Vec::new(),
            interactions: HashMap::new(),
            typing: Vec::new(),
            requests: Vec::new(),
            limits: Limits::new(self.limit_speed),
            events: Vec::new(),
        }
    }
}

fn user(id: UserId, name: &str, bot: bool) -> User {
    User {
        id,
        name: name.to_owned(),
        bot,
    }
}
