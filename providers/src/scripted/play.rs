//! One scripted attempt, act by act.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::event::{Event, TokenUsage};
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::{Answer, AttemptEnd};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::{Act, Inner};
use crate::http::pace::{Interrupt, Pace};
use crate::{AttemptRequest, Exchange, Stop};

pub(super) async fn run(
    inner: Arc<Inner>,
    place: usize,
    script: Vec<Act>,
    mut request: AttemptRequest,
    events: mpsc::Sender<Event>,
    stop: Stop,
) -> AttemptEnd {
    let mut pace = Pace::start(request.limits, stop);
    match pace.go(&mut request.go).await {
        Ok(()) => inner.mark_sent(place),
        Err(interrupt) => return interrupt.end(),
    }
    let attempt = Attempt {
        session: inner.session_for(&request),
        inner: &inner,
        request: &request,
        events,
        pace,
        blocks: vec![String::new()],
        usage: TokenUsage::default(),
        ignoring_stop: None,
        stop_obeyed_at: None,
    };
    match attempt.play(script).await {
        Ok(end) | Err(end) => end,
    }
}

impl Inner {
    /// The resumed session if its transcript exists, else a new one; `None` if this provider keeps none.
    fn session_for(&self, request: &AttemptRequest) -> Option<Session> {
        if !self.keeps_sessions {
            return None;
        }
        let stored = request
            .session
            .clone()
            .filter(|id| self.transcripts.exists(id));
        Some(match stored {
            Some(id) => Session { id, resumed: true },
            None => Session {
                id: ProviderSessionId::new(uuid::Uuid::new_v4().to_string()),
                resumed: false,
            },
        })
    }
}

struct Session {
    id: ProviderSessionId,
    resumed: bool,
}

struct Attempt<'a> {
    inner: &'a Inner,
    request: &'a AttemptRequest,
    session: Option<Session>,
    events: mpsc::Sender<Event>,
    pace: Pace,
    /// The visible text, by block.
    blocks: Vec<String>,
    usage: TokenUsage,
    /// How long a stop is ignored; `None` = not at all.
    ignoring_stop: Option<Duration>,
    /// Set when an ignored stop was first noticed.
    stop_obeyed_at: Option<Instant>,
}

/// The end that interrupts a script.
type Played<T> = Result<T, AttemptEnd>;

impl Attempt<'_> {
    async fn play(mut self, mut script: Vec<Act>) -> Played<AttemptEnd> {
        // A script may name the session first; else it is the resumed or a new one.
        if let Some(Act::Session(id)) = script.first() {
            let resumed = self.session.as_ref().is_some_and(|session| session.resumed);
            self.session = Some(Session {
                id: id.clone(),
                resumed,
            });
            script.remove(0);
        }
        self.open_session().await?;
        for act in script {
            if let Some(end) = self.act(act).await? {
                return Ok(end);
            }
        }
        Ok(self.answer())
    }

    async fn open_session(&mut self) -> Played<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let id = session.id.clone();
        let told = match session.resumed {
            true => unseen(&self.request.history, self.request.unseen),
            false => &self.request.history,
        };
        for exchange in told {
            self.note("user", &exchange.request)?;
            self.note("assistant", &exchange.answer)?;
        }
        self.note("user", &self.request.prompt)?;
        self.emit(Event::Session { id }).await
    }

    /// Plays one act; `Some` = the attempt is over.
    async fn act(&mut self, act: Act) -> Played<Option<AttemptEnd>> {
        match act {
            Act::Session(id) => {
                self.session = Some(Session {
                    id: id.clone(),
                    resumed: false,
                });
                self.note("user", &self.request.prompt)?;
                self.emit(Event::Session { id }).await?;
            }
            Act::Text(delta) => self.say(delta).await?,
            Act::NewBlock => self.blocks.push(String::new()),
            Act::Retract { from_block } => self.retract(from_block).await?,
            Act::ToolCall {
                id,
                name,
                arguments,
            } => {
                self.note("tool_use", &format!("{name} {arguments}"))?;
                let call = Event::ToolCall {
                    id,
                    name,
                    arguments,
                };
                self.emit(call).await?;
            }
            Act::ToolResult { id, outcome, text } => {
                self.note("tool_result", &text)?;
                self.emit(Event::ToolResult { id, outcome, text }).await?;
            }
            Act::Todos(todos) => self.emit(Event::Todos(todos)).await?,
            Act::Usage(usage) => {
                self.usage = usage;
                self.emit(Event::Usage(usage)).await?;
            }
            Act::Limit(reading) => self.emit(Event::Limit(reading)).await?,
            Act::Activity(what) => self.emit(Event::Activity { what }).await?,
            Act::Wait(notify) => self.bounded(notify.notified()).await?,
            Act::WaitForStop => self.bounded(std::future::pending()).await?,
            Act::IgnoreStop(time) => self.ignoring_stop = Some(time),
            Act::Fetch { base_url, client } => self.fetch(&base_url, &client).await?,
            Act::Fail(failure) => return Ok(Some(AttemptEnd::Failed(failure))),
            Act::Answer => return Ok(Some(self.answer())),
            // Not a panic: no hook runs and nothing is printed, but the end is never sent.
            Act::Crash => std::panic::resume_unwind(Box::new("a scripted crash")),
        }
        Ok(None)
    }

    async fn say(&mut self, delta: String) -> Played<()> {
        self.note("assistant", &delta)?;
        if let Some(block) = self.blocks.last_mut() {
            block.push_str(&delta);
        }
        let block = u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX);
        self.emit(Event::Text { block, delta }).await
    }

    async fn retract(&mut self, from_block: u32) -> Played<()> {
        let from = usize::try_from(from_block).unwrap_or(usize::MAX);
        for block in self.blocks.iter_mut().skip(from) {
            block.clear();
        }
        self.blocks.push(String::new());
        self.emit(Event::Retract { from_block }).await
    }

    async fn fetch(&mut self, base_url: &str, client: &reqwest::Client) -> Played<()> {
        let url = format!("{}/v1/messages", base_url.trim_end_matches('/'));
        let body = json!({
            "model": self.request.model,
            "max_tokens": 1024,
            "messages": [{"role": "user", "content": self.request.prompt}],
        });
        let asked = async {
            let sent = client.post(url).json(&body).send().await?;
            let status = sent.status();
            Ok::<_, reqwest::Error>((status, sent.headers().clone(), sent.bytes().await?))
        };
        let (status, headers, bytes) = match self.bounded(asked).await? {
            Ok(answer) => answer,
            Err(error) => return Err(failed(FailureKind::Transport, &error.to_string())),
        };
        let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        match body.pointer("/content/0/text").and_then(Value::as_str) {
            Some(text) if status.is_success() => self.say(text.to_owned()).await,
            _ => Err(refused(status, &headers, &body)),
        }
    }

    fn answer(&self) -> AttemptEnd {
        AttemptEnd::Answered(Answer {
            text: self.blocks.concat(),
            usage: self.usage,
        })
    }

    async fn emit(&mut self, event: Event) -> Played<()> {
        let events = self.events.clone();
        // A dropped receiver is a dropped handle: the stop that comes with it ends the attempt.
        let _ = self
            .bounded(async move { events.send(event).await })
            .await?;
        self.pace.heard();
        Ok(())
    }

    /// Waits within deadline, silence limit and stop.
    async fn bounded<T>(&mut self, work: impl Future<Output = T>) -> Played<T> {
        let interrupt = {
            let mut work = std::pin::pin!(work);
            match self.pace.bounded(&mut work).await {
                Ok(done) => return Ok(done),
                Err(Interrupt::Stopped) => {
                    let ignoring = self.ignoring_stop.unwrap_or_default();
                    let until = *self
                        .stop_obeyed_at
                        .get_or_insert_with(|| Instant::now() + ignoring);
                    match timeout_at(until, &mut work).await {
                        Ok(done) if !ignoring.is_zero() => return Ok(done),
                        _ => Interrupt::Stopped,
                    }
                }
                Err(interrupt) => interrupt,
            }
        };
        Err(interrupt.end())
    }

    fn note(&self, role: &str, text: &str) -> Played<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let noted = self.inner.transcripts.append(&session.id, role, text);
        noted.map_err(|error| failed(FailureKind::Crashed, &format!("transcript: {error}")))
    }
}

fn unseen(history: &[Exchange], count: usize) -> &[Exchange] {
    let from = history.len().saturating_sub(count);
    history.get(from..).unwrap_or_default()
}

fn failed(kind: FailureKind, detail: &str) -> AttemptEnd {
    AttemptEnd::Failed(Failure::new(kind, FailureScope::Request, detail))
}

/// The failure of a server that did not give a text.
fn refused(
    status: reqwest::StatusCode,
    headers: &reqwest::header::HeaderMap,
    body: &Value,
) -> AttemptEnd {
    let message = body
        .pointer("/error/message")
        .and_then(Value::as_str)
        .unwrap_or("no text");
    let kind = match status.as_u16() {
        429 => FailureKind::RateLimit,
        402 => FailureKind::Billing,
        401 | 403 => FailureKind::Auth,
        529 | 503 => FailureKind::Overloaded,
        400 | 404 => FailureKind::BadRequest,
        _ => FailureKind::Transport,
    };
    let reset = headers.get("anthropic-ratelimit-unified-reset");
    let reset = reset.and_then(|value| value.to_str().ok()?.parse().ok());
    let reset = reset.and_then(|second| jiff::Timestamp::from_second(second).ok());
    let failure = Failure::new(kind, FailureScope::Account, message).retry_at(reset);
    AttemptEnd::Failed(failure)
}
