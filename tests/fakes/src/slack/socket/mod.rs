//! Socket Mode: open sockets, and envelopes on their way.
//!
//! An event that is not acked within 3 s comes again at once, after 1 min and after 5 min, each time in a new envelope
//! with the same `event_id`. Commands and clicks are sent once; without a socket they are lost.

mod delivery;
mod link;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use delivery::{deliver_event, send_once};

use super::Shared;

/// Sockets an app may have open.
const MOST_SOCKETS: usize = 10;

#[derive(Default)]
pub(crate) struct Hub {
    links: Vec<Link>,
    next: u64,
    tickets: Vec<String>,
    pub(crate) envelopes: Vec<Envelope>,
    /// The next envelopes go to a socket that was told to disconnect.
    pub(crate) late_envelopes: u32,
    /// The next envelopes are sent twice, byte for byte.
    pub(crate) duplicated: u32,
}

struct Link {
    id: u64,
    out: UnboundedSender<Push>,
    /// Told to disconnect: gets no new envelopes while another socket is there.
    leaving: bool,
}

#[derive(Debug)]
pub(crate) enum Push {
    Text(String),
    /// RST instead of a goodbye.
    Reset,
    Close,
    /// Reads and says nothing from now on; the socket stays open.
    Silence,
}

/// One envelope as it was sent.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub id: String,
    /// `events_api`, `slash_commands` or `interactive`.
    pub kind: String,
    pub payload: Value,
    /// 0 = the first time.
    pub attempt: u32,
    pub sent_at: Timestamp,
    /// Which socket, counted from 1. `None` = there was none.
    pub socket: Option<u64>,
    /// When its ack came, and what was in it (`Null` = nothing).
    pub acked: Option<(Timestamp, Value)>,
}

impl Hub {
    /// A one-time address, as `apps.connections.open` answers it.
    pub(crate) fn ticket(&mut self, base: &str) -> String {
        self.next += 1;
        let ticket = format!("ticket-{}", self.next);
        self.tickets.push(ticket.clone());
        format!("{base}/link/?ticket={ticket}&app_id={}", super::world::APP)
    }

    fn redeem(&mut self, path: &str) -> bool {
        let at = self.tickets.iter().position(|ticket| {
            path.contains(&format!("ticket={ticket}&")) || path.ends_with(ticket.as_str())
        });
        at.map(|at| self.tickets.remove(at)).is_some()
    }

    fn open(&mut self, out: UnboundedSender<Push>) -> u64 {
        self.next += 1;
        self.links.push(Link {
            id: self.next,
            out,
            leaving: false,
        });
        self.next
    }

    fn close(&mut self, link: u64) {
        self.links.retain(|known| known.id != link);
    }

    pub(crate) fn sockets(&self) -> usize {
        self.links.len()
    }

    /// Sends an envelope to one socket; they take turns.
    pub(crate) fn send(
        &mut self,
        kind: &str,
        payload: &Value,
        attempt: u32,
        now: Timestamp,
    ) -> String {
        self.next += 1;
        let id = format!("envelope-{}", self.next);
        let mut envelope = json!({
            "envelope_id": id, "type": kind, "payload": payload, "accepts_response_payload": kind != "events_api",
        });
        if kind == "events_api" {
            envelope["retry_attempt"] = json!(attempt);
            envelope["retry_reason"] = json!(if attempt == 0 { "" } else { "timeout" });
        }
        let late = self.late_envelopes > 0;
        self.late_envelopes = self.late_envelopes.saturating_sub(1);
        let preferred = self.links.iter().position(|link| link.leaving == late);
        let at = preferred.or(if self.links.is_empty() { None } else { Some(0) });
        let socket = at.map(|at| {
            // The one that was used goes to the end of the queue.
            let link = self.links.remove(at);
            let _ = link.out.send(Push::Text(envelope.to_string()));
            if self.duplicated > 0 {
                self.duplicated -= 1;
                let _ = link.out.send(Push::Text(envelope.to_string()));
            }
            let number = link.id;
            self.links.push(link);
            number
        });
        self.envelopes.push(Envelope {
            id: id.clone(),
            kind: kind.to_owned(),
            payload: payload.clone(),
            attempt,
            sent_at: now,
            socket,
            acked: None,
        });
        id
    }

    pub(crate) fn envelope(&self, id: &str) -> Option<&Envelope> {
        self.envelopes
            .iter()
            .rev()
            .find(|envelope| envelope.id == id)
    }

    /// Does the same to every open socket. Returns how many there were.
    pub(crate) fn to_all(&self, push: impl Fn() -> Push) -> usize {
        for link in &self.links {
            let _ = link.out.send(push());
        }
        self.links.len()
    }

    /// Tells every open socket to disconnect, with Slack's `reason`.
    pub(crate) fn disconnect(&mut self, reason: &str) -> usize {
        for link in &mut self.links {
            link.leaving = true;
            let _ = link.out.send(Push::Text(disconnect(reason)));
        }
        self.links.len()
    }
}

fn disconnect(reason: &str) -> String {
    json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "applink-0" } })
        .to_string()
}

/// Accepts sockets until aborted.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(link::run(stream, Arc::clone(&shared)));
        }
    }
}
