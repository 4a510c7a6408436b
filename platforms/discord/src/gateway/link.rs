//! One connection to the gateway, from HELLO to its end. Pure: frames and `now` come in, what to do comes out.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::time::Instant;

use crate::event::{Event, Token};

/// How long the gateway may take to say HELLO, and to answer IDENTIFY or RESUME.
const GREETING_DEADLINE: Duration = Duration::from_secs(20);
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

/// Heartbeats go out at least this often, whatever the gateway asks for (41.25 s): a connection that only looks alive is
/// found out within [`BEAT_AT_MOST`] + [`ACK_DEADLINE`].
const BEAT_AT_MOST: Duration = Duration::from_secs(15);

/// How long a heartbeat may stay without its acknowledgement. Discord's take a fraction of a second.
const ACK_DEADLINE: Duration = Duration::from_secs(10);

/// What can be gone on with on another connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Where Discord wants it resumed; `None` = where it began.
    pub(crate) resume_url: Option<String>,
    /// Of the last event.
    pub(crate) sequence: u64,
}

/// What the bot says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) token: Token,
    pub(crate) intents: u64,
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Act {
    Nothing,
    Send(String),
    /// Boxed, as most acts are small.
    Tell(Box<Event>),
    /// Something came that cannot be read; what, without its text.
    Unreadable(String),
    /// The connection ends; whether its session goes on.
    Leave(Leave),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Asked for by the gateway, with the session kept.
    AskedToResume,
    /// The session is invalid.
    AskedToBeginAnew,
    /// Nothing came for too long.
    Silent,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    identity: Identity,
    session: Option<Session>,
    phase: Phase,
    /// When the phase has to be over.
    deadline: Option<Instant>,
    beat: Option<Beat>,
    /// 0.0 to 1.0: the first heartbeat's share of the interval, so that many clients do not beat together.
    jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Identifying,
    Resuming,
    Live,
}

#[derive(Debug)]
struct Beat {
    every: Duration,
    next: Instant,
    /// When the acknowledgement of the last one is overdue; `None` = it came.
    ack_until: Option<Instant>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    op: u8,
    #[serde(borrow, default)]
    d: Option<&'a RawValue>,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default)]
    t: Option<&'a str>,
}

#[derive(Deserialize)]
struct Hello {
    /// In milliseconds.
    heartbeat_interval: u64,
}

impl Link {
    /// A connection that was just opened. With a session it will be resumed.
    pub(crate) fn new(
        identity: Identity,
        session: Option<Session>,
        jitter: f64,
        now: Instant,
    ) -> Self {
        Self {
            identity,
            session,
            phase: Phase::Greeting,
            deadline: Some(now + GREETING_DEADLINE),
            beat: None,
            jitter: jitter.clamp(0.0, 1.0),
        }
    }

    /// Whether events flow: READY or RESUMED has come.
    pub(crate) fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// What can be resumed after this connection.
    pub(crate) fn into_session(self) -> Option<Session> {
        self.session
    }

    /// Takes one frame.
    pub(crate) fn hear(&mut self, text: &str, now: Instant) -> Act {
        let frame = match serde_json::from_str::<Frame<'_>>(text) {
            Ok(frame) => frame,
            Err(error) => return Act::Unreadable(format!("a frame: {error}")),
        };
        let data = frame.d.map_or("null", RawValue::get);
        match frame.op {
            0 => self.event(frame.t.unwrap_or_default(), data, frame.s),
            1 => self.heartbeat(now),
            7 => Act::Leave(Leave::AskedToResume),
            9 if data.trim() == "true" => Act::Leave(Leave::AskedToResume),
            9 => {
                self.session = None;
                Act::Leave(Leave::AskedToBeginAnew)
            }
            10 => match serde_json::from_str::<Hello>(data) {
                Ok(hello) => self.hello(&hello, now),
                Err(error) => Act::Unreadable(format!("HELLO: {error}")),
            },
            11 => {
                if let Some(beat) = &mut self.beat {
                    beat.ack_until = None;
                }
                Act::Nothing
            }
            _ => Act::Nothing,
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let beat = self.beat.as_ref();
        let dues = [
            self.deadline,
            beat.map(|beat| beat.next),
            beat.and_then(|beat| beat.ack_until),
        ];
        dues.into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Instant) -> Act {
        let overdue = |until: Option<Instant>| until.is_some_and(|until| now >= until);
        let ack_until = self.beat.as_ref().and_then(|beat| beat.ack_until);
        if overdue(self.deadline) || overdue(ack_until) {
            return Act::Leave(Leave::Silent);
        }
        match &self.beat {
            Some(beat) if now >= beat.next => self.heartbeat(now),
            _ => Act::Nothing,
        }
    }

    fn hello(&mut self, hello: &Hello, now: Instant) -> Act {
        let every = Duration::from_millis(hello.heartbeat_interval.max(100)).min(BEAT_AT_MOST);
        self.beat = Some(Beat {
            every,
            next: now + every.mul_f64(self.jitter),
            ack_until: None,
        });
        if self.phase != Phase::Greeting {
            return Act::Nothing;
        }
        self.deadline = Some(now + ANSWER_DEADLINE);
        let Identity {
            token: Token(token),
            intents,
        } = &self.identity;
        let said = match &self.session {
            Some(session) => {
                self.phase = Phase::Resuming;
                let Session { id, sequence, .. } = session;
                json!({ "op": 6, "d": { "token": token, "session_id": id, "seq": sequence } })
            }
            None => {
                self.phase = Phase::Identifying;
                let properties =
                    json!({ "os": std::env::consts::OS, "browser": "baton", "device": "baton" });
                json!({ "op": 2, "d": {
                    "token": token, "intents": intents, "properties": properties, "compress": false, "shard": [0, 1],
                }})
            }
        };
        Act::Send(said.to_string())
    }

    fn heartbeat(&mut self, now: Instant) -> Act {
        let sequence = self.session.as_ref().map(|session| session.sequence);
        if let Some(beat) = &mut self.beat {
            beat.next = now + beat.every;
            let within = beat.every.min(ACK_DEADLINE);
            beat.ack_until = beat.ack_until.or(Some(now + within));
        }
        Act::Send(json!({ "op": 1, "d": sequence }).to_string())
    }

    fn event(&mut self, name: &str, data: &str, sequence: Option<u64>) -> Act {
        let read = Event::read(name, data);
        if let Some(Ok(Event::Ready(ready))) = &read {
            self.session = Some(Session {
                id: ready.session_id.clone(),
                resume_url: ready.resume_gateway_url.clone(),
                sequence: 0,
            });
        }
        if matches!(&read, Some(Ok(Event::Ready(_) | Event::Resumed))) {
            self.phase = Phase::Live;
            self.deadline = None;
        }
        if let (Some(session), Some(sequence)) = (&mut self.session, sequence) {
            session.sequence = session.sequence.max(sequence);
        }
        match read {
            Some(Ok(event)) => Act::Tell(Box::new(event)),
            Some(Err(error)) => Act::Unreadable(format!("{name}: {error}")),
            None => Act::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
