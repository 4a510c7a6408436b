//! The gateway: sessions that outlive their sockets, and what can go wrong on the way.
//!
//! A session keeps every event since its start, so a RESUME replays what the client missed. Faults act on the sockets
//! that are open when they are called, or on the next handshake.

mod link;
mod session;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;

use super::Shared;
use super::world::Event;
use session::Session;

/// All sessions and open sockets.
pub(crate) struct Hub {
    pub(crate) sessions: Vec<Session>,
    links: Vec<Link>,
    next_link: u64,
    pub(crate) faults: GatewayFaults,
    pub(crate) log: Vec<GatewayNote>,
    pub(crate) heartbeat: Duration,
}

/// Faults of coming handshakes and events.
#[derive(Default)]
pub(crate) struct GatewayFaults {
    pub(crate) late_ready: VecDeque<Duration>,
    pub(crate) refused_resumes: u32,
    pub(crate) duplicated_events: u32,
}

/// One open socket.
struct Link {
    id: u64,
    out: UnboundedSender<Push>,
    /// Stopped acking and delivering; the socket stays open.
    zombie: bool,
}

/// What a socket's task is told to do.
#[derive(Debug)]
pub(crate) enum Push {
    Text(String),
    /// `None` = a close frame without code.
    Close(Option<u16>),
    /// RST instead of a goodbye.
    Reset,
}

/// What happened on the gateway, for tests that count.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayNote {
    pub at: Timestamp,
    pub what: GatewayEvent,
}

/// See [`GatewayNote`].
#[derive(Clone, Debug, PartialEq)]
pub enum GatewayEvent {
    /// A socket opened; `path` with query (`/resume…` = the READY's own URL).
    Connected {
        path: String,
    },
    Identified {
        intents: u64,
    },
    /// RESUMED was sent after `replayed` missed events.
    Resumed {
        replayed: usize,
    },
    ResumeRefused,
    Heartbeat,
    /// The socket is gone; `code` as the client gave it.
    Disconnected {
        code: Option<u16>,
    },
}

impl Hub {
    pub(crate) fn new(heartbeat: Duration) -> Self {
        Self {
            sessions: Vec::new(),
            links: Vec::new(),
            next_link: 0,
            faults: GatewayFaults::default(),
            log: Vec::new(),
            heartbeat,
        }
    }

    fn open(&mut self, out: UnboundedSender<Push>) -> u64 {
        self.next_link += 1;
        self.links.push(Link {
            id: self.next_link,
            out,
            zombie: false,
        });
        self.next_link
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: GatewayEvent) {
        self.log.push(GatewayNote { at, what });
    }

    fn close(&mut self, link: u64) {
        self.links.retain(|known| known.id != link);
        for session in &mut self.sessions {
            if session.link == Some(link) {
                session.link = None;
            }
        }
    }

    fn is_zombie(&self, link: u64) -> bool {
        self.links
            .iter()
            .any(|known| known.id == link && known.zombie)
    }

    fn push(&self, link: u64, push: Push) {
        if let Some(known) = self
            .links
            .iter()
            .find(|known| known.id == link && !known.zombie)
        {
            // A socket whose task has ended takes nothing; the session keeps the event.
            let _ = known.out.send(push);
        }
    }

    /// Does the same to every open socket, also to zombies. Returns how many there were.
    pub(crate) fn to_all(&self, push: impl Fn() -> Push) -> usize {
        for link in &self.links {
            let _ = link.out.send(push());
        }
        self.links.len()
    }

    pub(crate) fn make_zombies(&mut self) -> usize {
        for link in &mut self.links {
            link.zombie = true;
        }
        self.links.len()
    }

    /// Sessions whose socket is open and which were told READY.
    pub(crate) fn ready(&self) -> usize {
        self.sessions
            .iter()
            .filter(|session| session.link.is_some_and(|link| !self.is_zombie(link)))
            .count()
    }

    /// Hands events to every session whose intents ask for them.
    pub(crate) fn dispatch(&mut self, events: Vec<Event>) {
        for event in events {
            let mut copies = 1;
            if self.faults.duplicated_events > 0 {
                self.faults.duplicated_events -= 1;
                copies = 2;
            }
            for _ in 0..copies {
                self.dispatch_once(&event);
            }
        }
    }

    fn dispatch_once(&mut self, event: &Event) {
        let mut frames = Vec::new();
        for session in &mut self.sessions {
            if let Some(frame) = session.take(event)
                && let Some(link) = session.link
            {
                frames.push((link, frame));
            }
        }
        for (link, frame) in frames {
            self.push(link, Push::Text(frame));
        }
    }
}

/// Accepts sockets until aborted.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(link::run(stream, Arc::clone(&shared)));
        }
    }
}
