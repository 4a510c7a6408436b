//! One turn: a server, a thread, the word, the prompt, and what comes until the turn is over.
//!
//! The thread is closed on every way out, before the end is returned: only that ends the commands a turn left running
//! (an interrupt does not, 0.171). A stop asks by protocol first, which keeps the partial answer in the thread; a server
//! that does not obey is killed, and every turn on it with it.

use std::path::Path;
use std::time::Duration;

use gateway_core::event::Event;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::AttemptEnd;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::failure::{gave_up_waiting, one_line};
use super::open::{self, NotOpen, Thread};
use super::server::{CallError, Notice, Server};
use super::stream::{Stream, TurnEnd};
use super::{Codex, Running, command, sessions};
use crate::earlier::unseen;
use crate::http::pace::{Interrupt, Pace};
use crate::{AttemptRequest, Stop};

/// How long the program may go on reconnecting without anything new. By itself it never gives up on a connection that is
/// refused (`conn-refused`).
const RECONNECTING: Duration = Duration::from_secs(20);
/// How long a stop by protocol may take; 0.171 obeys within 0.1 s.
const POLITE: Duration = Duration::from_secs(3);
/// How long closing a thread may take; 10 ms in 0.171, commands included.
const CLOSING: Duration = Duration::from_secs(2);

/// Runs the attempt.
pub(super) async fn run(
    codex: Codex,
    mut request: AttemptRequest,
    events: mpsc::Sender<Event>,
    stop: Stop,
) -> AttemptEnd {
    let mut pace = Pace::start(request.limits, stop.clone());
    let settings = codex.settings();
    let workdir = match open::usable_workdir(settings, &request.workdir, request.permissions) {
        Ok(workdir) => workdir,
        Err(words) => return refused(words),
    };
    let lane = request.session.as_ref().and_then(sessions::id);
    let mut alone = match lane {
        Some(id) => match pace.bounded(codex.lanes().enter(&id.to_string())).await {
            Ok(guard) => Some(guard),
            Err(interrupt) => return end_of(interrupt),
        },
        None => None,
    };
    let opening = prepare(&codex, &workdir, &request);
    let (running, thread) = match pace.bounded(opening).await {
        Ok(Ok(ready)) => ready,
        Ok(Err(failure)) => return AttemptEnd::Failed(failure),
        Err(interrupt) => return end_of(interrupt),
    };
    // A new thread is known to others as soon as its session is told; a replaced one frees the lane of the old.
    if lane.is_none_or(|id| id.to_string() != thread.id) {
        alone = Some(codex.lanes().enter(&thread.id).await);
    }
    let mut turn = Turn {
        server: running.server,
        stream: Stream::new(settings.subscription.clone(), TimeZone::system()),
        now: settings.now.clone(),
        thread,
        events,
        stop,
        heard: pace.life(),
    };
    if let Err(interrupt) = pace.go(&mut request.go).await {
        turn.close().await; // nothing was sent
        return end_of(interrupt);
    }
    turn.heard = pace.life();
    let why = turn.converse(&request, &pace).await;
    let end = turn.finish(why).await;
    drop(alone);
    end
}

/// A server and an open thread; a server that dies before anything is sent is replaced once.
async fn prepare(
    codex: &Codex,
    workdir: &Path,
    request: &AttemptRequest,
) -> Result<(Running, Thread), Failure> {
    let settings = codex.settings();
    let program = settings.program().map_err(crashed)?;
    let mut words = String::new();
    for _ in 0..2 {
        let running = codex.server().await.map_err(crashed)?;
        if let Some(refusal) = codex.unwanted_bill(&running).await {
            running.server.kill().await; // the next attempt asks anew who is logged in
            return Err(Failure::new(
                FailureKind::Auth,
                FailureScope::Account,
                one_line(&refusal),
            ));
        }
        match open::open(&running.server, settings, &program, workdir, request).await {
            Ok(thread) => return Ok((running, thread)),
            Err(NotOpen::Failed(failure)) => return Err(failure),
            Err(NotOpen::Gone(last)) => words = last,
        }
    }
    Err(crashed(words))
}

fn crashed(words: String) -> Failure {
    Failure::new(
        FailureKind::Crashed,
        FailureScope::Request,
        one_line(&words),
    )
}

fn refused(words: String) -> AttemptEnd {
    AttemptEnd::Failed(Failure::new(
        FailureKind::BadRequest,
        FailureScope::Account,
        words,
    ))
}

fn end_of(interrupt: Interrupt) -> AttemptEnd {
    match interrupt.end() {
        AttemptEnd::Failed(failure) => AttemptEnd::Failed(Failure {
            detail: format!("codex: {}", failure.detail),
            ..failure
        }),
        other => other,
    }
}

/// Why reading stopped.
enum Why {
    Over,
    /// The program is gone.
    Gone,
    /// It does not take the prompt.
    Refused(CallError),
    Interrupted(Interrupt),
    /// It only reconnects.
    Reconnecting(Failure),
}

struct Turn {
    server: Server,
    thread: Thread,
    stream: Stream,
    now: std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>,
    events: mpsc::Sender<Event>,
    stop: Stop,
    heard: crate::http::pace::Life,
}

impl Turn {
    async fn converse(&mut self, request: &AttemptRequest, pace: &Pace) -> Why {
        let context = unseen(request, self.thread.resumed);
        let params = command::turn(
            &self.thread.id,
            request.permissions,
            context.as_deref(),
            &request.prompt,
        );
        let server = self.server.clone();
        match pace.bounded(server.call("turn/start", params)).await {
            Ok(Ok(_)) => {}
            Ok(Err(CallError::Gone(_))) => return Why::Gone,
            Ok(Err(refused)) => return Why::Refused(refused),
            Err(interrupt) => return Why::Interrupted(interrupt),
        }
        let session = Event::Session {
            id: ProviderSessionId::new(self.thread.id.clone()),
        };
        self.report(session).await;
        self.read(pace).await
    }

    async fn read(&mut self, pace: &Pace) -> Why {
        let mut give_up: Option<Instant> = None;
        loop {
            let patience = give_up.unwrap_or_else(Instant::now);
            let notices = &mut self.thread.notices;
            let heard = pace.bounded(async {
                tokio::select! {
                    biased;
                    notice = notices.next() => Some(notice),
                    () = sleep_until(patience), if give_up.is_some() => None,
                }
            });
            match heard.await {
                Err(interrupt) => return Why::Interrupted(interrupt),
                Ok(Some(None)) => return Why::Gone,
                Ok(Some(Some(notice))) => self.take(&notice).await,
                Ok(None) => {
                    let trouble = self.stream.retrying().cloned().unwrap_or_default();
                    return Why::Reconnecting(gave_up_waiting(&trouble, RECONNECTING.as_secs()));
                }
            }
            if self.stream.end().is_some() {
                return Why::Over;
            }
            // Retries are signs of life, but only for so long.
            give_up = self
                .stream
                .retrying()
                .map(|_| give_up.unwrap_or_else(|| Instant::now() + RECONNECTING));
        }
    }

    async fn take(&mut self, notice: &Notice) {
        // What is said to everybody (limits of another turn) is no sign of life of this one.
        if notice.params.get("threadId").is_some() {
            self.heard.heard();
        }
        let now = (self.now)();
        for event in self.stream.push(&notice.method, &notice.params, now) {
            self.report(event).await;
        }
    }

    /// A stop must get through even if nobody takes the events.
    async fn report(&self, event: Event) {
        tokio::select! {
            biased;
            sent = self.events.send(event) => drop(sent), // nobody listens: the stop follows at once
            () = self.stop.stopped() => {}
        }
    }

    async fn finish(mut self, why: Why) -> AttemptEnd {
        match &why {
            Why::Over | Why::Refused(_) => self.close().await,
            Why::Gone => {}
            Why::Interrupted(_) | Why::Reconnecting(_) => {
                if timeout(POLITE, self.interrupt()).await.is_ok() {
                    self.close().await;
                } else {
                    tracing::warn!("codex app-server did not stop a turn; it is killed");
                    self.server.kill().await;
                }
            }
        }
        match why {
            Why::Over => self.over(),
            Why::Gone => AttemptEnd::Failed(crashed(self.server.last_words().await)),
            Why::Refused(error) => {
                let words = format!("codex does not take the prompt: {}", error.words());
                AttemptEnd::Failed(Failure::new(
                    FailureKind::BadRequest,
                    FailureScope::Request,
                    words,
                ))
            }
            Why::Interrupted(interrupt) => end_of(interrupt),
            Why::Reconnecting(failure) => AttemptEnd::Failed(failure),
        }
    }

    fn over(&self) -> AttemptEnd {
        match self.stream.end() {
            Some(TurnEnd::Answered(answer)) => AttemptEnd::Answered(answer.clone()),
            Some(TurnEnd::Failed(failure)) => AttemptEnd::Failed(failure.clone()),
            Some(TurnEnd::Interrupted) => {
                AttemptEnd::Failed(crashed("codex was interrupted by somebody else".to_owned()))
            }
            None => AttemptEnd::Failed(crashed("codex ended a turn without a word".to_owned())),
        }
    }

    /// Asks for the end of the turn and waits for it. What still comes is reported: it is part of what was done.
    async fn interrupt(&mut self) {
        let mut asked = false;
        while self.stream.end().is_none() {
            if let (false, Some(turn)) = (asked, self.stream.turn()) {
                asked = true;
                let params = json!({"threadId": self.thread.id, "turnId": turn});
                let server = self.server.clone();
                // The answer comes with the end of the turn, which is what is waited for.
                tokio::spawn(async move { server.call("turn/interrupt", params).await });
            }
            let Some(notice) = self.thread.notices.next().await else {
                return;
            };
            let now = (self.now)();
            for event in self.stream.push(&notice.method, &notice.params, now) {
                let _ = self.events.try_send(event); // full or closed: the stop is what matters now
            }
        }
    }

    /// Lets the program unload the thread, and waits until it has: by then no command of it runs any more.
    async fn close(&mut self) {
        let params = json!({"threadId": self.thread.id});
        let closed = async {
            if self
                .server
                .call("thread/unsubscribe", params)
                .await
                .is_err()
            {
                return;
            }
            while let Some(notice) = self.thread.notices.next().await {
                if notice.method == "thread/closed" {
                    return;
                }
            }
        };
        if timeout(CLOSING, closed).await.is_err() {
            tracing::warn!("codex app-server did not close a thread");
        }
    }
}
