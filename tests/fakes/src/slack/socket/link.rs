//! One websocket: hello, then acks.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::delivery::{ACK_WITHIN, answer_in_ack};
use super::{MOST_SOCKETS, Push, disconnect};
use crate::clock::between;
use crate::slack::Shared;
use crate::slack::world::APP;

pub(super) async fn run(stream: TcpStream, shared: Arc<Shared>) {
    let mut path = String::new();
    #[expect(
        clippy::result_large_err,
        reason = "the callback's type is tungstenite's"
    )]
    let note_path = |request: &Request, response: Response| {
        path = request.uri().to_string();
        Ok(response)
    };
    let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, note_path).await else {
        return;
    };
    let (out, inbox) = unbounded_channel();
    let (link, count) = {
        let mut hub = shared.hub.lock();
        if !hub.redeem(&path) {
            drop(hub);
            shared.violations.add(format!(
                "socket {path}: the ticket was used before or never given"
            ));
            return;
        }
        (hub.open(out), hub.sockets())
    };
    shared.changed();
    talk(socket, inbox, &shared, count).await;
    shared.hub.lock().close(link);
    shared.changed();
}

async fn talk(
    mut socket: WebSocketStream<TcpStream>,
    mut inbox: UnboundedReceiver<Push>,
    shared: &Arc<Shared>,
    count: usize,
) -> Option<()> {
    let hello = json!({
        "type": "hello", "num_connections": count, "connection_info": { "app_id": APP },
        "debug_info": { "host": "applink-0", "build_number": 10, "approximate_connection_time": 18060 },
    });
    socket.send(Message::text(hello.to_string())).await.ok()?;
    if count > MOST_SOCKETS {
        socket
            .send(Message::text(disconnect("too_many_websockets")))
            .await
            .ok()?;
        return socket.close(None).await.ok();
    }
    loop {
        tokio::select! {
            push = inbox.recv() => match push? {
                Push::Text(text) => socket.send(Message::text(text)).await.ok()?,
                Push::Close => {
                    let _ = socket.close(None).await;
                }
                Push::Reset => {
                    let _ = socket.get_ref().set_zero_linger();
                    return None;
                }
                Push::Silence => {
                    silent(socket.get_mut(), &mut inbox).await;
                    return None;
                }
            },
            frame = socket.next() => match frame?.ok()? {
                Message::Text(text) => hear(shared, text.as_str()),
                Message::Close(_) => return None,
                // Pings are answered by tungstenite while the socket is read.
                _ => {}
            },
        }
    }
}

/// Swallows everything, pings too, until the fake ends it or the app leaves.
async fn silent(stream: &mut TcpStream, inbox: &mut UnboundedReceiver<Push>) {
    let mut swallowed = [0; 1024];
    loop {
        tokio::select! {
            push = inbox.recv() => match push {
                None => return,
                Some(Push::Reset) => {
                    let _ = stream.set_zero_linger();
                    return;
                }
                Some(_) => {}
            },
            read = stream.read(&mut swallowed) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
        }
    }
}

fn hear(shared: &Arc<Shared>, text: &str) {
    let Ok(ack) = serde_json::from_str::<Value>(text) else {
        return shared.violations.add(format!("socket: not JSON: {text}"));
    };
    let unknown = ack.as_object().into_iter().flat_map(|object| object.keys());
    for key in unknown.filter(|key| !["envelope_id", "payload"].contains(&key.as_str())) {
        shared
            .violations
            .add(format!("socket: an ack with the unknown key {key}"));
    }
    let id = ack["envelope_id"].as_str().unwrap_or_default();
    let now = shared.world.lock().now();
    let answer = ack
        .get("payload")
        .cloned()
        .filter(|answer| answer.as_object().is_some_and(|keys| !keys.is_empty()));
    let (late, first, command) = {
        let mut hub = shared.hub.lock();
        let Some(envelope) = hub
            .envelopes
            .iter_mut()
            .rev()
            .find(|envelope| envelope.id == id)
        else {
            drop(hub);
            return shared
                .violations
                .add(format!("socket: an ack for the unknown envelope {id:?}"));
        };
        let first = envelope.acked.is_none();
        if first {
            envelope.acked = Some((now, answer.clone().unwrap_or_default()));
        }
        (
            between(envelope.sent_at, now) > ACK_WITHIN,
            first,
            envelope.payload.clone(),
        )
    };
    if let Some(answer) = answer.filter(|_| first && !late) {
        answer_in_ack(shared, &command, &answer);
    }
    shared.flush();
}
