//! One websocket: HELLO, then whatever the client says.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::session::Session;
use super::{GatewayEvent, Push};
use crate::discord::Shared;
use crate::discord::payload;
use crate::discord::rest::application_flags;

/// Payloads above this close the connection with 4002.
const MAX_PAYLOAD: usize = 4096;
const MESSAGE_CONTENT: u64 = 1 << 15;
/// Bits of intents that exist.
const KNOWN_INTENTS: u64 = ((1 << 17) - 1) | (1 << 20) | (1 << 21) | (1 << 24) | (1 << 25);

pub(super) async fn run(stream: TcpStream, shared: Arc<Shared>) {
    let mut path = String::new();
    #[expect(
        clippy::result_large_err,
        reason = "the callback's type is tungstenite's"
    )]
    let note_path = |request: &Request, response: Response| {
        path = request
            .uri()
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default();
        Ok(response)
    };
    let accepted = tokio_tungstenite::accept_hdr_async(stream, note_path).await;
    let Ok(socket) = accepted else {
        return;
    };
    let (out, inbox) = unbounded_channel();
    let link = shared.hub.lock().open(out.clone());
    check_query(&shared, &path);
    shared.note(GatewayEvent::Connected { path });
    let code = talk(
        socket,
        inbox,
        &Client {
            shared: Arc::clone(&shared),
            link,
            out,
        },
    )
    .await;
    shared.hub.lock().close(link);
    shared.note(GatewayEvent::Disconnected { code });
}

fn check_query(shared: &Shared, path: &str) {
    if !path.contains("v=10") {
        shared.violations.add(format!("gateway {path}: no v=10"));
    }
    if path.contains("compress=") || path.contains("encoding=etf") {
        shared
            .violations
            .add(format!("gateway {path}: the fake speaks plain JSON only"));
    }
}

/// Returns the code the client closed with.
async fn talk(
    mut socket: WebSocketStream<TcpStream>,
    mut inbox: UnboundedReceiver<Push>,
    client: &Client,
) -> Option<u16> {
    let interval = client.shared.hub.lock().heartbeat;
    let hello = json!({ "op": 10, "d": { "heartbeat_interval": interval.as_millis() } });
    socket.send(Message::text(hello.to_string())).await.ok()?;
    let mut closing = false;
    loop {
        tokio::select! {
            push = inbox.recv() => match push? {
                // The session keeps it for a RESUME.
                Push::Text(_) if closing => {}
                Push::Text(text) => socket.send(Message::text(text)).await.ok()?,
                Push::Reset => {
                    let _ = socket.get_ref().set_zero_linger();
                    return None;
                }
                Push::Close(code) => {
                    closing = true;
                    let frame = code.map(|code| CloseFrame { code: code.into(), reason: "".into() });
                    let _ = socket.close(frame).await;
                }
            },
            frame = socket.next() => match frame?.ok()? {
                Message::Text(text) => client.hear(text.as_str()),
                Message::Binary(_) => client.close(4002),
                Message::Close(frame) => return frame.map(|frame| frame.code.into()),
                _ => {}
            },
        }
    }
}

struct Client {
    shared: Arc<Shared>,
    link: u64,
    out: UnboundedSender<Push>,
}

impl Client {
    fn hear(&self, text: &str) {
        if text.len() > MAX_PAYLOAD {
            self.shared.violations.add(format!(
                "gateway: a payload of {} bytes, at most {MAX_PAYLOAD}",
                text.len()
            ));
            return self.close(4002);
        }
        let Ok(frame) = serde_json::from_str::<Value>(text) else {
            return self.close(4002);
        };
        let data = &frame["d"];
        match frame["op"].as_u64() {
            Some(1) => self.heartbeat(data),
            Some(2) => self.identify(data),
            Some(6) => self.resume(data),
            Some(3 | 4 | 8) => {
                if !self.is_identified() {
                    self.close(4003);
                }
            }
            _ => {
                self.shared
                    .violations
                    .add(format!("gateway: unknown opcode in {text}"));
                self.close(4001);
            }
        }
    }

    fn heartbeat(&self, sequence: &Value) {
        self.shared.note(GatewayEvent::Heartbeat);
        let hub = self.shared.hub.lock();
        let sent = hub
            .sessions
            .iter()
            .find(|session| session.link == Some(self.link))
            .map_or(0, |session| session.sequence);
        if sequence.as_u64().is_some_and(|claimed| claimed > sent) {
            self.shared.violations.add(format!(
                "gateway: heartbeat claims sequence {sequence}, {sent} was sent"
            ));
        }
        hub.push(
            self.link,
            Push::Text(json!({ "op": 11, "d": null }).to_string()),
        );
    }

    fn identify(&self, data: &Value) {
        for key in ["token", "intents", "properties"] {
            if data[key].is_null() {
                self.shared
                    .violations
                    .add(format!("gateway: IDENTIFY without {key}"));
                return self.close(4002);
            }
        }
        if self.is_identified() {
            return self.close(4005);
        }
        let intents = data["intents"].as_u64().unwrap_or(u64::MAX);
        {
            let world = self.shared.world.lock();
            if data["token"]
                .as_str()
                .map(|token| token.trim_start_matches("Bot "))
                != Some(&world.token)
            {
                return self.close(4004);
            }
            if intents & !KNOWN_INTENTS != 0 {
                return self.close(4013);
            }
            if intents & MESSAGE_CONTENT != 0 && !world.message_content {
                return self.close(4014);
            }
        }
        self.shared.note(GatewayEvent::Identified { intents });
        let late = self.shared.hub.lock().faults.late_ready.pop_front();
        match late {
            None => ready(&self.shared, self.link, intents, &self.out),
            Some(late) => {
                let (shared, link, out) = (Arc::clone(&self.shared), self.link, self.out.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    ready(&shared, link, intents, &out);
                });
            }
        }
    }

    fn resume(&self, data: &Value) {
        let mut world = self.shared.world.lock();
        let events = std::mem::take(&mut world.events);
        let mut hub = self.shared.hub.lock();
        hub.dispatch(events);
        let refused = hub.faults.refused_resumes > 0;
        if refused {
            hub.faults.refused_resumes -= 1;
        }
        let token = data["token"]
            .as_str()
            .map(|token| token.trim_start_matches("Bot "));
        let sequence = data["seq"].as_u64().unwrap_or(u64::MAX);
        let known = hub
            .sessions
            .iter_mut()
            .find(|session| data["session_id"] == session.id);
        let missed = known
            .filter(|_| !refused && token == Some(&world.token))
            .and_then(|session| {
                let missed = session.missed(sequence)?;
                session.link = Some(self.link);
                let resumed = session.frame("RESUMED", json!({ "_trace": [] }));
                Some((missed, resumed))
            });
        let Some((missed, resumed)) = missed else {
            hub.sessions
                .retain(|session| data["session_id"] != session.id);
            hub.push(
                self.link,
                Push::Text(json!({ "op": 9, "d": false }).to_string()),
            );
            hub.note(world.now(), GatewayEvent::ResumeRefused);
            return;
        };
        let replayed = missed.len();
        hub.note(world.now(), GatewayEvent::Resumed { replayed });
        for frame in missed.into_iter().chain([resumed]) {
            hub.push(self.link, Push::Text(frame));
        }
        drop((hub, world));
        self.shared.changed();
    }

    fn is_identified(&self) -> bool {
        self.shared
            .hub
            .lock()
            .sessions
            .iter()
            .any(|session| session.link == Some(self.link))
    }

    fn close(&self, code: u16) {
        let _ = self.out.send(Push::Close(Some(code)));
    }
}

/// Opens the session: READY, then a GUILD_CREATE for each guild.
fn ready(shared: &Shared, link: u64, intents: u64, out: &UnboundedSender<Push>) {
    let mut world = shared.world.lock();
    let id = format!("session-{}", world.next_id());
    let mut session = Session::new(id.clone(), intents, link);
    let guilds: Vec<Value> = world
        .guilds
        .keys()
        .map(|guild| json!({ "id": guild.to_string(), "unavailable": true }))
        .collect();
    let ready = json!({
        "v": 10, "session_id": id, "resume_gateway_url": format!("{}/resume", world.gateway), "shard": [0, 1],
        "user": payload::me(&world.users[&world.bot]), "guilds": guilds, "session_type": "normal",
        "private_channels": [], "presences": [], "relationships": [], "_trace": [],
        "application": { "id": world.application.to_string(), "flags": application_flags(&world) },
    });
    let mut frames = vec![session.frame("READY", ready)];
    if intents & 1 != 0 {
        for guild in world.guilds.values() {
            frames.push(session.frame("GUILD_CREATE", payload::guild_event(&world, guild)));
        }
    }
    let mut hub = shared.hub.lock();
    // Events from before this session are not its own.
    let earlier = std::mem::take(&mut world.events);
    hub.dispatch(earlier);
    if !hub.links.iter().any(|known| known.id == link) {
        return;
    }
    hub.sessions.push(session);
    for frame in frames {
        let _ = out.send(Push::Text(frame));
    }
    drop((hub, world));
    shared.changed();
}
