//! One socket, from its address to its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval_at, sleep_until, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::pulse::{Hearing, Held};
use super::{Envelope, Pulse, Timing};

/// Why the next socket is to be opened.
#[derive(Debug)]
pub(super) enum Ending {
    /// Slack asked it to leave; it hears on for a while.
    Asked,
    /// `too_many_websockets`.
    Crowded,
    /// `link_disabled`.
    SwitchedOff,
    /// It was open; why it is no more.
    Broke(String),
    /// It never was; `after` = the pause Slack asks for.
    NotOpened { why: String, after: Duration },
}

/// How long writing one frame may take.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What Slack sends, as far as it is read before it is acknowledged.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: String,
    envelope_id: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    reason: Option<String>,
    num_connections: Option<u32>,
}

/// Runs a socket; `ended` hears once when the next one is to be opened. `held` counts it as ours while it lives.
pub(super) async fn run(
    address: String,
    timing: Timing,
    pulse: Arc<Pulse>,
    held: Held,
    envelopes: mpsc::Sender<Envelope>,
    stop: CancellationToken,
    ended: oneshot::Sender<Ending>,
) {
    let _held = held;
    let open_by = Instant::now() + timing.open_within;
    let opened = tokio::select! {
        opened = timeout_at(open_by, connect_async(address.as_str())) => opened,
        () = stop.cancelled() => return,
    };
    let not_opened = |why: String| Ending::NotOpened {
        why,
        after: Duration::ZERO,
    };
    let ending = match opened {
        Ok(Ok((socket, _))) => {
            let link = Link {
                socket,
                timing,
                pulse,
                envelopes,
                ended: Some(ended),
                hearing: None,
                heard_hello: false,
                last: Instant::now(),
                ends_at: open_by,
            };
            return link.live(stop).await;
        }
        Ok(Err(error)) => not_opened(error.to_string()),
        Err(_) => not_opened(format!("no connection within {:?}", timing.open_within)),
    };
    let _ = ended.send(ending);
}

struct Link {
    socket: Socket,
    timing: Timing,
    pulse: Arc<Pulse>,
    envelopes: mpsc::Sender<Envelope>,
    /// `None` = the keeper knows already, and this socket lingers.
    ended: Option<oneshot::Sender<Ending>>,
    hearing: Option<Hearing>,
    heard_hello: bool,
    /// When anything came last.
    last: Instant,
    /// When it is over in any case: without a hello, or at the end of the lingering.
    ends_at: Instant,
}

/// What to do after a frame.
enum After {
    GoOn,
    /// Say goodbye.
    Leave,
    Broke(String),
}

impl Link {
    async fn live(mut self, stop: CancellationToken) {
        let after = self.talk(&stop).await;
        let lingered = self.ended.is_none();
        let was_heard = self.hearing.take().is_some();
        match after {
            After::Broke(why) if !lingered => {
                if was_heard {
                    self.pulse.broke();
                }
                self.tell(Ending::Broke(why));
            }
            After::Broke(_) => {} // Slack ends the socket it asked to leave
            After::GoOn | After::Leave => {
                let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
            }
        }
    }

    async fn talk(&mut self, stop: &CancellationToken) -> After {
        let every = self.timing.ping_every;
        let mut pings = interval_at(Instant::now() + every, every);
        loop {
            let may_end = !self.heard_hello || self.ended.is_none();
            let after = tokio::select! {
                biased;
                () = stop.cancelled() => After::Leave,
                frame = self.socket.next() => self.frame(frame).await,
                _ = pings.tick() => self.ping().await,
                () = sleep_until(self.ends_at), if may_end => match self.heard_hello {
                    true => After::Leave,
                    false => After::Broke("Slack did not say hello".to_owned()),
                },
            };
            match after {
                After::GoOn => {}
                over => return over,
            }
        }
    }

    async fn frame(
        &mut self,
        frame: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
    ) -> After {
        self.last = Instant::now();
        match frame {
            None => After::Broke("Slack closed it".to_owned()),
            Some(Err(error)) => After::Broke(error.to_string()),
            Some(Ok(message)) => {
                self.pulse.sign(self.last);
                match message {
                    Message::Text(text) => self.text(text.as_str()).await,
                    Message::Close(_) => After::Broke("Slack closed it".to_owned()),
                    // Pings are answered by the library while the socket is read.
                    _ => After::GoOn,
                }
            }
        }
    }

    async fn text(&mut self, text: &str) -> After {
        let frame: Frame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => {
                self.pulse.unreadable();
                warn!(%error, "a frame from Slack could not be read");
                return self.acknowledge_unread(text).await;
            }
        };
        match (frame.kind.as_str(), frame.envelope_id) {
            ("hello", _) => {
                self.heard_hello = true;
                self.hearing = Some(self.pulse.hello(frame.num_connections.unwrap_or_default()));
                After::GoOn
            }
            ("disconnect", _) => self.asked_to_leave(frame.reason.as_deref().unwrap_or_default()),
            (_, None) => {
                self.pulse.unreadable();
                warn!(kind = %frame.kind, "a frame from Slack is no envelope");
                After::GoOn
            }
            (kind, Some(id)) => self.envelope(kind, &id, frame.payload).await,
        }
    }

    /// First the place in the queue, then the acknowledgement, then the rest.
    async fn envelope(&mut self, kind: &str, id: &str, payload: Option<&RawValue>) -> After {
        let envelopes = self.envelopes.clone();
        let Ok(place) = envelopes.try_reserve() else {
            self.pulse.refused();
            warn!(kind, "too much is waiting; an envelope was left to Slack");
            return After::GoOn;
        };
        let after = self.acknowledge(id).await;
        if let After::GoOn = after {
            place.send(Envelope {
                kind: kind.to_owned(),
                payload: payload.map_or("null", RawValue::get).to_owned(),
            });
        }
        after
    }

    async fn acknowledge(&mut self, id: &str) -> After {
        let ack = serde_json::json!({ "envelope_id": id });
        self.write(Message::text(ack.to_string())).await
    }

    /// So that Slack does not repeat what nobody here will ever understand.
    async fn acknowledge_unread(&mut self, text: &str) -> After {
        #[derive(Deserialize)]
        struct Named {
            envelope_id: String,
        }
        match serde_json::from_str::<Named>(text) {
            Ok(named) => self.acknowledge(&named.envelope_id).await,
            Err(_) => After::GoOn,
        }
    }

    fn asked_to_leave(&mut self, reason: &str) -> After {
        debug!(reason, "Slack asks a socket to leave");
        self.hearing = None;
        let (ending, after) = match reason {
            "link_disabled" => (Ending::SwitchedOff, After::Leave),
            "too_many_websockets" => (Ending::Crowded, After::Leave),
            _ => (Ending::Asked, After::GoOn),
        };
        if self.ended.is_some() {
            if let After::GoOn = after {
                self.pulse.relieved();
                self.ends_at = Instant::now() + self.timing.linger;
            }
            self.tell(ending);
        }
        after
    }

    async fn ping(&mut self) -> After {
        let silent = self.last.elapsed();
        if silent >= self.timing.silent_after {
            return After::Broke(format!("nothing came for {silent:?}"));
        }
        self.write(Message::Ping(Bytes::new())).await
    }

    async fn write(&mut self, message: Message) -> After {
        match timeout(WRITE_WITHIN, self.socket.send(message)).await {
            Ok(Ok(())) => After::GoOn,
            Ok(Err(error)) => After::Broke(error.to_string()),
            Err(_) => After::Broke("it takes nothing".to_owned()),
        }
    }

    fn tell(&mut self, ending: Ending) {
        if let Some(ended) = self.ended.take() {
            // Nobody there = the keeper is stopping.
            let _ = ended.send(ending);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Error;
    use tokio_tungstenite::tungstenite::error::UrlError;

    use super::*;

    /// Slack's sockets are `wss`, those of the fake are not: that TLS is built in shows here alone.
    #[tokio::test]
    async fn tls_is_built_in() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("wss://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { listener.accept().await.map(drop) });
        let refused = connect_async(address.as_str()).await.unwrap_err();
        assert!(
            !matches!(refused, Error::Url(UrlError::TlsFeatureNotEnabled)),
            "{refused}"
        );
    }
}
