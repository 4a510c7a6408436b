//! A Slack workspace on loopback: Web API, Socket Mode, and the people who use it.
//!
//! Start it with [`FakeSlack::start`] or [`FakeSlack::builder`] and point the app at [`FakeSlack::api`]; the address of a
//! socket comes from `apps.connections.open`. Then act as people ([`FakeSlack::say`], [`FakeSlack::slash`],
//! [`FakeSlack::click`]) and wait for what a person would see.

mod fault;
mod hand;
mod mentions;
mod methods;
mod model;
mod payload;
mod people;
mod recorder;
mod reply;
mod script;
mod socket;
mod watch;
mod web;
mod world;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch as watching;
use tokio::task::JoinHandle;

pub use fault::Fault;
pub use model::{At, Button, Channel, File, Message, Pings, User};
pub use people::{Asked, NotPossible, Said};
pub use recorder::{Requested, Status};
pub use socket::Envelope;

use crate::clock::MovedClock;
use crate::violations::Violations;
use socket::Hub;
use world::World;

/// The tokens it accepts. Not real ones.
pub const BOT_TOKEN: &str = "xoxb-fake-token";
pub const APP_TOKEN: &str = "xapp-fake-token";

/// A running fake. Dropping it stops it and fails the test if rules were broken.
pub struct FakeSlack {
    shared: Arc<Shared>,
    base: String,
    tasks: Vec<JoinHandle<()>>,
}

/// What the tasks share. Lock order: world, then hub.
pub(crate) struct Shared {
    pub(crate) world: Mutex<World>,
    pub(crate) hub: Mutex<Hub>,
    pub(crate) faults: fault::Faults,
    pub(crate) violations: Violations,
    pub(crate) changes: watching::Sender<()>,
    this: std::sync::Weak<Shared>,
}

impl Shared {
    /// Hands the world's new events to the sockets and wakes who waits.
    pub(crate) fn flush(&self) {
        {
            let mut world = self.world.lock();
            let (events, now) = (std::mem::take(&mut world.events), world.now());
            let mut hub = self.hub.lock();
            for event in events {
                for sentence in crate::spec::check_event(&event) {
                    self.violations
                        .add(format!("the fake's own event: {sentence}"));
                }
                let envelope = hub.send("events_api", &event, 0, now);
                if let Some(shared) = self.this.upgrade() {
                    tokio::spawn(socket::deliver_event(shared, event, envelope));
                }
            }
        }
        self.changed();
    }

    pub(crate) fn changed(&self) {
        self.changes.send_replace(());
    }
}

/// Settings of a [`FakeSlack`]; the defaults are Slack's.
pub struct Builder {
    clock: MovedClock,
    limit_speed: f64,
    missing_scopes: Vec<String>,
}

impl Builder {
    pub fn clock(mut self, clock: MovedClock) -> Self {
        self.clock = clock;
        self
    }

    /// 20.0 = rate limit windows pass 20 times faster. Nothing else does; `Retry-After` stays at least 1.
    pub fn limit_speed(mut self, speed: f64) -> Self {
        self.limit_speed = speed;
        self
    }

    /// The app was installed without this scope: methods that need it answer `missing_scope`.
    pub fn without_scope(mut self, scope: &str) -> Self {
        self.missing_scopes.push(scope.to_owned());
        self
    }

    pub async fn start(self) -> FakeSlack {
        let web = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let sockets = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let base = format!(
            "http://{}",
            web.local_addr().expect("a bound listener has an address")
        );
        let link = format!(
            "ws://{}",
            sockets
                .local_addr()
                .expect("a bound listener has an address")
        );
        let mut world = World::new(self.clock, base.clone(), link, self.limit_speed);
        world
            .scopes
            .retain(|scope| !self.missing_scopes.contains(scope));
        let bot = User {
            id: world::BOT_USER.to_owned(),
            name: "baton".to_owned(),
            bot: true,
        };
        world.users.insert(bot.id.clone(), bot);
        let shared = Arc::new_cyclic(|this| Shared {
            world: Mutex::new(world),
            hub: Mutex::new(Hub::default()),
            faults: fault::Faults::default(),
            violations: Violations::default(),
            changes: watching::channel(()).0,
            this: this.clone(),
        });
        let router = web::router(Arc::clone(&shared));
        let tasks = vec![
            tokio::spawn(async move {
                axum::serve(web, router)
                    .await
                    .expect("axum serves until aborted");
            }),
            tokio::spawn(socket::serve(sockets, Arc::clone(&shared))),
        ];
        let fake = FakeSlack {
            shared,
            base,
            tasks,
        };
        fake.channel("general", true);
        fake
    }
}

impl FakeSlack {
    /// Starts a workspace with one channel, all scopes and real limits.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> Builder {
        Builder {
            clock: MovedClock::default(),
            limit_speed: 1.0,
            missing_scopes: Vec::new(),
        }
    }

    /// `http://127.0.0.1:P/api`, without a slash at the end: what stands for `https://slack.com/api`.
    pub fn api(&self) -> String {
        format!("{}/api", self.base)
    }

    /// Moves it to pass 3 s, a redelivery or 30 min at once.
    pub fn clock(&self) -> MovedClock {
        self.shared.world.lock().clock.clone()
    }

    /// Rules broken so far; taking them out makes the drop pass.
    pub fn violations(&self) -> &Violations {
        &self.shared.violations
    }

    /// Fails unless every call and answer kept the rules and every scripted fault was met.
    pub fn assert_clean(&self) {
        self.shared.violations.assert_clean("Slack");
        assert_eq!(
            self.shared.faults.left(),
            0,
            "scripted faults that no call met"
        );
    }
}

impl Drop for FakeSlack {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.hub.lock().to_all(|| socket::Push::Reset);
        self.shared.violations.assert_clean_at_drop("Slack");
    }
}
