//! One turn on the server: a lease, a session with its rules, the word, the prompt, events until it is over.
//!
//! The prompt's own call answers when the turn is over; events only show its progress. At the end the stored messages
//! are read once, so that nothing an event stream lost is lost here. A stop aborts the session and waits for it; a
//! server that does not obey is ended.

use std::time::Duration;

use gateway_core::event::Event;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::turn::{Answer, AttemptEnd};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::OpenCode;
use super::api::CallError;
use super::hub::News;
use super::ready::{Ready, crashed, prepare, unanswered};
use super::stream::Stream;
use crate::http::pace::{Interrupt, Pace};
use crate::{AttemptRequest, Stop};

/// How long an aborted turn may take to be over; 1.18.33 answers at once (`serve-abort`).
const OBEY: Duration = Duration::from_secs(8);
/// How long one small call may take.
const CALL: Duration = Duration::from_secs(30);
/// How long the stored messages are waited for at the end of a turn.
const STORED: Duration = Duration::from_secs(10);
/// How long the last events of a turn are waited for once its call is answered.
const LATE: Duration = Duration::from_secs(2);
/// How often a turn is looked for whose call was lost.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the attempt.
pub(super) async fn run(
    opencode: OpenCode,
    mut request: AttemptRequest,
    events: mpsc::Sender<Event>,
    stop: Stop,
) -> AttemptEnd {
    let mut pace = Pace::start(request.limits, stop.clone());
    // Before the word nothing is sent, so whatever ends the wait leaves nothing behind.
    let ready = match pace.bounded(prepare(&opencode, &request)).await {
        Ok(Ok(ready)) => ready,
        Ok(Err(failure)) => return AttemptEnd::Failed(failure),
        Err(interrupt) => return interrupt.end(),
    };
    if let Err(interrupt) = pace.go(&mut request.go).await {
        return interrupt.end();
    }
    let turn = Turn {
        opencode: &opencode,
        request: &request,
        events: &events,
        stream: Stream::after(&ready.known),
        pace,
        ready,
    };
    turn.run().await
}

/// What happened next.
enum Next {
    News(News),
    Over(Result<Value, CallError>),
    Dead,
}

struct Turn<'a> {
    opencode: &'a OpenCode,
    request: &'a AttemptRequest,
    events: &'a mpsc::Sender<Event>,
    stream: Stream,
    pace: Pace,
    ready: Ready,
}

impl Turn<'_> {
    async fn run(mut self) -> AttemptEnd {
        let session = self.ready.session.clone();
        self.report(vec![Event::Session {
            id: session.clone(),
        }])
        .await;
        let server = self.ready.lease.server.clone();
        let workdir = self.ready.workdir.clone();
        let body = self.ready.prompt(self.request);
        let call = server.api.prompt(&session, &workdir, &body);
        tokio::pin!(call);
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    Some(news) = self.ready.ear.next() => Next::News(news),
                    reply = &mut call => Next::Over(reply),
                    () = server.dead.cancelled() => Next::Dead,
                }
            };
            match self.pace.bounded(next).await {
                Ok(Next::News(news)) => {
                    self.pace.heard();
                    self.hear(news).await;
                    if let Some(failure) = self.stream.verdict().cloned() {
                        self.give_up(Some(call.as_mut())).await;
                        return AttemptEnd::Failed(failure);
                    }
                }
                Ok(Next::Over(Ok(reply))) => return self.over(&reply).await,
                Ok(Next::Over(Err(CallError::Lost(_)))) if !server.dead.is_cancelled() => {
                    return self.without_call().await;
                }
                Ok(Next::Over(Err(CallError::Lost(_))) | Next::Dead) => return self.died().await,
                Ok(Next::Over(Err(error))) => return AttemptEnd::Failed(unanswered(&error)),
                Err(interrupt) => {
                    self.give_up(Some(call.as_mut())).await;
                    return end_of(interrupt, self.request);
                }
            }
        }
    }

    async fn hear(&mut self, news: News) {
        let now = (self.opencode.0.settings.now)();
        match news {
            News::Event(event) => {
                let events = self.stream.push(&event, now);
                self.report(events).await;
            }
            News::Gap => {
                self.stream.tear();
                self.catch_up().await;
                self.stream.tear();
                self.catch_up_todos().await;
            }
            News::Alive => {}
        }
    }

    /// Reads what is stored; returns the turn's last message of the model.
    async fn catch_up(&mut self) -> Option<Value> {
        let api = &self.ready.lease.server.api;
        let stored = timeout(STORED, api.messages(&self.ready.session)).await;
        let messages = stored.ok()?.ok()?;
        let last = self
            .ready
            .known
            .last()
            .and_then(|known| known.pointer("/info/id"));
        let from = last.and_then(|last| {
            let mut ids = messages.iter().map(|message| message.pointer("/info/id"));
            ids.rposition(|id| id == Some(last))
        });
        let fresh = messages.get(from.map_or(0, |at| at + 1)..);
        let fresh = fresh.unwrap_or_default().to_vec();
        let events = self.stream.take_stored(&fresh);
        self.report(events).await;
        let infos = fresh.iter().rev().filter_map(|message| message.get("info"));
        infos
            .filter(|info| info.get("role").and_then(Value::as_str) == Some("assistant"))
            .find(|_| true)
            .cloned()
    }

    /// A list of an earlier turn is not this turn's news: it is only told if it is not empty.
    async fn catch_up_todos(&mut self) {
        let api = &self.ready.lease.server.api;
        let stored = timeout(STORED, api.todos(&self.ready.session)).await;
        if let Ok(Ok(list)) = stored
            && list.as_array().is_some_and(|list| !list.is_empty())
        {
            let events = self.stream.take_todos(Some(&list));
            self.report(events).await;
        }
    }

    async fn over(mut self, reply: &Value) -> AttemptEnd {
        // The reply overtakes the last events: they come on another connection.
        let late = sleep(LATE);
        tokio::pin!(late);
        while !self.stream.is_idle() {
            let news = tokio::select! {
                Some(news) = self.ready.ear.next() => news,
                () = &mut late => break,
                else => break,
            };
            self.hear(news).await;
        }
        while let Some(news) = self.ready.ear.waiting() {
            self.hear(news).await;
        }
        if self.catch_up().await.is_none() {
            let events = self.stream.take_stored(std::slice::from_ref(reply));
            self.report(events).await;
        }
        self.end(reply.get("info").unwrap_or(&Value::Null))
    }

    fn end(&self, last: &Value) -> AttemptEnd {
        let ended: Result<Answer, Failure> =
            self.stream.end(last, (self.opencode.0.settings.now)());
        match ended {
            Ok(answer) => AttemptEnd::Answered(answer),
            Err(failure) => AttemptEnd::Failed(failure),
        }
    }

    /// The call broke and the server lives: the turn goes on there and is waited for.
    async fn without_call(mut self) -> AttemptEnd {
        let server = self.ready.lease.server.clone();
        let (session, workdir) = (self.ready.session.clone(), self.ready.workdir.clone());
        loop {
            let look = async {
                tokio::select! {
                    biased;
                    () = server.dead.cancelled() => None,
                    busy = async { sleep(LOOK).await; server.api.is_busy(&session, &workdir).await } => Some(busy),
                }
            };
            match self.pace.bounded(look).await {
                Ok(Some(Ok(true))) => {
                    while let Some(news) = self.ready.ear.waiting() {
                        self.pace.heard();
                        self.hear(news).await;
                    }
                }
                Ok(Some(Ok(false))) => {
                    return match self.catch_up().await {
                        Some(last) => self.end(&last),
                        None => AttemptEnd::Failed(crashed("opencode lost the turn".into())),
                    };
                }
                Ok(Some(Err(error))) => return AttemptEnd::Failed(unanswered(&error)),
                Ok(None) => return self.died().await,
                Err(interrupt) => {
                    self.give_up(None::<std::future::Pending<()>>).await;
                    return end_of(interrupt, self.request);
                }
            }
        }
    }

    async fn died(mut self) -> AttemptEnd {
        let server = self.ready.lease.server.clone();
        let _ = timeout(OBEY, server.dead.cancelled()).await; // it tells how it ended then
        while let Some(news) = self.ready.ear.waiting() {
            self.hear(news).await;
        }
        let words = server.last_words();
        AttemptEnd::Failed(crashed(format!(
            "opencode serve ended in the middle of the turn: {words}"
        )))
    }

    /// Aborts the session and waits until its turn is over; what still comes is reported, it is part of what was done.
    /// A server that does not obey is ended: nothing may go on that nobody sees.
    async fn give_up<T>(&mut self, call: Option<impl Future<Output = T> + Unpin>) {
        let server = self.ready.lease.server.clone();
        let (session, workdir) = (self.ready.session.clone(), self.ready.workdir.clone());
        let aborted = async {
            server.api.abort(&session, &workdir).await?;
            match call {
                Some(call) => drop(call.await),
                None => {
                    while server.api.is_busy(&session, &workdir).await? {
                        sleep(LOOK).await;
                    }
                }
            }
            Ok::<(), CallError>(())
        };
        let obeyed = tokio::select! {
            obeyed = timeout(OBEY, aborted) => matches!(obeyed, Ok(Ok(()))),
            () = server.dead.cancelled() => true,
        };
        let now = (self.opencode.0.settings.now)();
        let mut late = Vec::new();
        while let Some(news) = self.ready.ear.waiting() {
            if let News::Event(event) = news {
                late.extend(self.stream.push(&event, now));
            }
        }
        for event in late {
            let _ = self.events.try_send(event); // full or closed: the stop is what matters now
        }
        if !obeyed {
            tracing::warn!("opencode did not abort a turn; its server is ended");
            server.end().await;
        }
    }

    /// A stop must get through even if nobody takes the events.
    async fn report(&self, events: Vec<Event>) {
        for event in events {
            let sent = self.pace.bounded(self.events.send(event)).await;
            if sent.is_err() {
                return; // the next wait meets the same end
            }
        }
    }
}

fn end_of(interrupt: Interrupt, request: &AttemptRequest) -> AttemptEnd {
    let words = |words: &str, limit: Duration| {
        AttemptEnd::Failed(Failure::new(
            FailureKind::Timeout,
            FailureScope::Request,
            format!("{words} {} s", limit.as_secs()),
        ))
    };
    match interrupt {
        Interrupt::Stopped => AttemptEnd::Stopped,
        Interrupt::Silence => words("opencode said nothing for", request.limits.silence),
        Interrupt::Deadline => words("opencode had no answer within", request.limits.deadline),
    }
}

/// How long any of the small calls may take, for those outside of a turn.
pub(super) async fn within<T>(call: impl Future<Output = T>) -> Option<T> {
    timeout(CALL, call).await.ok()
}
