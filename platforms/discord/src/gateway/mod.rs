//! The connection to Discord's gateway, kept up through whatever happens to it.
//!
//! The socket is ours and not serenity's, whose shard runner (0.12.5) hands events on in tasks of their own, so out of order;
//! drops a session whose heartbeats stay unanswered, with everything it would have replayed; resumes at the wrong address;
//! goes round in circles after close codes 4010 to 4012; falls back to the real gateway if a look-up fails; and cannot be
//! stopped while it reconnects. What is left of such a runner once each of these is mended is this file.
//!
//! What always holds: an event is handed on once and in order; a session goes on after every fault that does not end it,
//! silence included; IDENTIFYs keep their distance; nothing but the given address and the session's own is ever dialled.

mod close;
mod link;
mod pause;

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use platforms::adapter::Finding;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::event::Event;
use crate::pulse::Pulse;
use close::After;
pub(crate) use close::MESSAGE_CONTENT_HINT;
pub(crate) use link::Identity;
use link::{Act, Leave, Link, Session};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const CONNECT_DEADLINE: Duration = Duration::from_secs(15);
const CLOSE_DEADLINE: Duration = Duration::from_millis(500);

/// A GUILD_CREATE of a large server has some megabytes.
const FRAME_MAX: usize = 128 << 20;

/// Leaves a session alive; 1000 and 1001 would end it.
const COMING_BACK: u16 = 4000;
const GOING_AWAY: u16 = 1000;

/// Where to connect.
pub(crate) struct Addresses<'a> {
    pub(crate) main: String,
    /// Whether a session's own address may be dialled.
    pub(crate) may_resume_at: &'a (dyn Fn(&str) -> bool + Sync),
}

/// Listens until `stop`, telling each event once. `Err` = the gateway refused for good.
pub(crate) async fn run(
    addresses: &Addresses<'_>,
    identity: &Identity,
    pulse: &Pulse,
    stop: &CancellationToken,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<(), Finding> {
    let mut line = Line {
        addresses,
        identity,
        pulse,
        session: None,
        failures: 0,
        identified_at: None,
    };
    loop {
        let lived = tokio::select! {
            lived = line.connection(stop, tell) => lived,
            () = stop.cancelled() => return Ok(()),
        };
        let wait = match lived {
            Lived::Stopped => return Ok(()),
            Lived::Refused(finding) => return Err(finding),
            Lived::Again { wait } => wait,
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// What became of one connection.
enum Lived {
    Stopped,
    Refused(Finding),
    Again { wait: Duration },
}

/// How it ended.
enum Ending {
    Stopped,
    /// By the gateway's word or for want of one.
    Left(Leave),
    /// By its close frame, or without one.
    Closed(Option<u16>),
    Broken(String),
}

/// All connections, one after the other.
struct Line<'a> {
    addresses: &'a Addresses<'a>,
    identity: &'a Identity,
    pulse: &'a Pulse,
    session: Option<Session>,
    /// Connections in a row that never came to life.
    failures: u32,
    identified_at: Option<Instant>,
}

impl Line<'_> {
    async fn connection(
        &mut self,
        stop: &CancellationToken,
        tell: &mut (dyn FnMut(Event) + Send),
    ) -> Lived {
        if self.failures >= pause::ANEW_AFTER {
            self.session = None;
        }
        if self.session.is_none() {
            self.keep_distance().await;
        }
        let address = self.address();
        let socket = match connect(&address).await {
            Ok(socket) => socket,
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                warn!(%why, failures = self.failures, "no connection to Discord's gateway");
                return self.again();
            }
        };
        let now = Instant::now();
        let session = self.session.take();
        if session.is_none() {
            self.identified_at = Some(now);
        }
        let mut link = Link::new(self.identity.clone(), session, pause::share(), now);
        let ending = self.converse(socket, &mut link, stop, tell).await;
        self.pulse
            .lost(matches!(ending, Ending::Left(Leave::Silent)));
        self.failures = match link.is_live() {
            true => 0,
            false => self.failures.saturating_add(1),
        };
        self.session = link.into_session();
        self.judge(ending)
    }

    fn judge(&mut self, ending: Ending) -> Lived {
        let after = match ending {
            Ending::Stopped => return Lived::Stopped,
            Ending::Left(Leave::AskedToBeginAnew) => {
                info!("Discord's gateway ended the session");
                let again = pause::before_next(self.failures.saturating_sub(1), pause::share());
                let wait = again.max(pause::before_new_session(pause::share()));
                return Lived::Again { wait };
            }
            Ending::Left(leave) => {
                info!(?leave, "leaving a connection to Discord's gateway");
                After::Resume
            }
            Ending::Closed(code) => {
                info!(?code, "Discord's gateway closed the connection");
                close::after(code)
            }
            Ending::Broken(why) => {
                info!(%why, "the connection to Discord's gateway broke");
                After::Resume
            }
        };
        match after {
            After::Never(finding) => return Lived::Refused(finding),
            After::Anew => self.session = None,
            After::Resume => {}
        }
        self.again()
    }

    fn again(&self) -> Lived {
        Lived::Again {
            wait: pause::before_next(self.failures, pause::share()),
        }
    }

    async fn keep_distance(&self) {
        if let Some(last) = self.identified_at {
            sleep_until(last + pause::IDENTIFY_EVERY).await;
        }
    }

    fn address(&self) -> String {
        let own = self
            .session
            .as_ref()
            .and_then(|session| session.resume_url.as_deref());
        let usable = |url: &&str| {
            self.failures < pause::MAIN_ADDRESS_AFTER && (self.addresses.may_resume_at)(url)
        };
        own.filter(usable)
            .unwrap_or(&self.addresses.main)
            .to_owned()
    }

    async fn converse(
        &self,
        mut socket: Socket,
        link: &mut Link,
        stop: &CancellationToken,
        tell: &mut (dyn FnMut(Event) + Send),
    ) -> Ending {
        loop {
            let due = link.due();
            let act = tokio::select! {
                () = stop.cancelled() => {
                    leave(&mut socket, GOING_AWAY).await;
                    return Ending::Stopped;
                }
                frame = socket.next() => match frame {
                    Some(Ok(Message::Text(text))) => {
                        self.pulse.sign();
                        link.hear(text.as_str(), Instant::now())
                    }
                    Some(Ok(Message::Close(frame))) => {
                        return Ending::Closed(frame.map(|frame| frame.code.into()));
                    }
                    // Binary frames are compressed ones, which we did not ask for; pings answer themselves.
                    Some(Ok(_)) => Act::Nothing,
                    Some(Err(error)) => return Ending::Broken(error.to_string()),
                    None => return Ending::Broken("it ended".to_owned()),
                },
                () = until(due) => link.tick(Instant::now()),
            };
            match act {
                Act::Nothing => {}
                Act::Send(text) => {
                    let sent = timeout(CONNECT_DEADLINE, socket.send(Message::text(text))).await;
                    match sent {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return Ending::Broken(error.to_string()),
                        Err(_) => return Ending::Left(Leave::Silent),
                    }
                }
                Act::Tell(event) => {
                    match &*event {
                        Event::Ready(_) => self.pulse.began(),
                        Event::Resumed => self.pulse.resumed(),
                        _ => {}
                    }
                    tell(*event);
                }
                Act::Unreadable(what) => {
                    self.pulse.unreadable();
                    warn!(%what, "Discord's gateway sent something that cannot be read");
                }
                Act::Leave(why) => {
                    leave(&mut socket, COMING_BACK).await;
                    return Ending::Left(why);
                }
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn connect(address: &str) -> Result<Socket, String> {
    let url = with_version(address);
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_MAX))
        .max_frame_size(Some(FRAME_MAX));
    debug!(%url, "connecting to Discord's gateway");
    match timeout(
        CONNECT_DEADLINE,
        connect_async_with_config(url, Some(config), true),
    )
    .await
    {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", CONNECT_DEADLINE.as_secs())),
    }
}

fn with_version(address: &str) -> String {
    match address.split_once("://") {
        // A path is needed before the query: `wss://host?v=10` is no address for every server.
        Some((_, rest)) if !rest.contains('/') => format!("{address}/?v=10&encoding=json"),
        _ => format!("{address}?v=10&encoding=json"),
    }
}

/// Says goodbye, if there is somebody to hear it.
async fn leave(socket: &mut Socket, code: u16) {
    let frame = CloseFrame {
        code: code.into(),
        reason: "".into(),
    };
    // What a gateway that is gone answers does not matter.
    let _ = timeout(CLOSE_DEADLINE, socket.close(Some(frame))).await;
}
