//! Does the outbox's work over a [`Wire`], in one task per connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

use super::{Done, Next, Outbox, Pace, Report, Request, SlotId, Stage, Work, Worth};
use crate::wire::{Body, Place, Wire, WireError};

/// How long one request may take before its fate counts as unknown.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(20);

/// A handle on a running outbox; clones share it. The task ends when the last handle is gone and nothing is left to do.
#[derive(Debug, Clone)]
pub struct Sender {
    shared: Arc<Shared>,
    _open: Arc<OpenMark>,
}

#[derive(Debug)]
struct Shared {
    outbox: Mutex<Outbox>,
    changed: Notify,
    idle: Notify,
}

/// Its drop tells the task that no handle is left.
#[derive(Debug)]
struct OpenMark(Arc<Shared>, Option<mpsc::Sender<()>>);

impl Drop for OpenMark {
    fn drop(&mut self) {
        self.1 = None; // closed first, so that the task sees it when it wakes
        self.0.changed.notify_one();
    }
}

/// Starts the task. Reports go to `reports`; nobody listening is all right.
pub fn start<W: Wire>(
    wire: Arc<W>,
    pace: Pace,
    prefix: impl Into<String>,
    reports: mpsc::UnboundedSender<Report>,
) -> Sender {
    let shared = Arc::new(Shared {
        outbox: Mutex::new(Outbox::new(pace, prefix)),
        changed: Notify::new(),
        idle: Notify::new(),
    });
    let (open, closed) = mpsc::channel(1);
    tokio::spawn(run(wire, Arc::clone(&shared), closed, reports));
    Sender {
        _open: Arc::new(OpenMark(Arc::clone(&shared), Some(open))),
        shared,
    }
}

impl Sender {
    /// Adds a message behind all others of its place.
    pub fn open(&self, place: Place, worth: Worth, body: Body, stage: Stage) -> SlotId {
        self.change(|outbox, now| outbox.open(place, worth, body, stage, now))
    }

    /// Sets what a slot shows.
    pub fn show(&self, slot: SlotId, body: Body, stage: Stage) {
        self.change(|outbox, now| outbox.show(slot, body, stage, now));
    }

    /// Takes a message away again.
    pub fn remove(&self, slot: SlotId) {
        self.change(|outbox, _| outbox.remove(slot));
    }

    /// Says that no more texts will come for a slot.
    pub fn close(&self, slot: SlotId) {
        self.change(|outbox, _| outbox.close(slot));
    }

    /// Whether nothing is waiting or under way.
    pub fn is_idle(&self) -> bool {
        self.shared.outbox.lock().is_idle()
    }

    /// Waits until nothing is waiting or under way. Texts that come meanwhile count.
    pub async fn drained(&self) {
        loop {
            let waiting = self.shared.idle.notified();
            if self.shared.outbox.lock().is_idle() {
                return;
            }
            waiting.await;
        }
    }

    fn change<T>(&self, act: impl FnOnce(&mut Outbox, Instant) -> T) -> T {
        let out = act(&mut self.shared.outbox.lock(), Instant::now());
        self.shared.changed.notify_one();
        out
    }
}

async fn run<W: Wire>(
    wire: Arc<W>,
    shared: Arc<Shared>,
    mut closed: mpsc::Receiver<()>,
    reports: mpsc::UnboundedSender<Report>,
) {
    let mut under_way: JoinSet<(SlotId, Done)> = JoinSet::new();
    loop {
        let wait = start_all(&wire, &shared, &mut under_way);
        for report in shared.outbox.lock().reports() {
            // The owner may have gone; what was to be shown is shown all the same.
            let _ = reports.send(report);
        }
        if shared.outbox.lock().is_idle() {
            shared.idle.notify_waiters();
            if matches!(
                closed.try_recv(),
                Err(mpsc::error::TryRecvError::Disconnected)
            ) {
                return;
            }
        }
        let due = async {
            match wait {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.changed.notified() => {}
            () = due => {}
            Some(ended) = under_way.join_next(), if !under_way.is_empty() => match ended {
                Ok((slot, result)) => shared.outbox.lock().done(slot, result, Instant::now()),
                Err(fault) => warn!(%fault, "a request ended without a result"),
            },
        }
    }
}

/// Starts everything that may go out now; until when nothing else may.
fn start_all<W: Wire>(
    wire: &Arc<W>,
    shared: &Shared,
    under_way: &mut JoinSet<(SlotId, Done)>,
) -> Option<Instant> {
    loop {
        match shared.outbox.lock().next(Instant::now()) {
            Next::Do(work) => {
                under_way.spawn(attempt(Arc::clone(wire), work));
            }
            Next::Wait(at) => return Some(at),
            Next::Idle => return None,
        }
    }
}

/// One request, bounded in time. In a task of its own, so that an adapter's panic is a failed request.
async fn attempt<W: Wire>(wire: Arc<W>, work: Work) -> (SlotId, Done) {
    let slot = work.slot;
    let request = tokio::spawn(async move { ask(&*wire, work).await });
    let abort = request.abort_handle();
    let result = match timeout(REQUEST_DEADLINE, request).await {
        Ok(Ok(result)) => result,
        Ok(Err(fault)) => Err(WireError::Uncertain(fault.to_string())),
        Err(_) => {
            abort.abort();
            Err(WireError::Uncertain(format!(
                "no answer within {} s",
                REQUEST_DEADLINE.as_secs()
            )))
        }
    };
    (slot, result)
}

async fn ask<W: Wire>(wire: &W, work: Work) -> Done {
    let place = &work.place;
    match work.request {
        Request::Post { body, nonce } => wire.send(place, &body, &nonce).await.map(Some),
        Request::Edit { message, body } => {
            wire.edit(place, &message, &body).await?;
            Ok(None)
        }
        Request::Delete { message } => {
            wire.delete(place, &message).await?;
            Ok(None)
        }
        Request::LookUp { nonce } => wire.find(place, &nonce).await,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use async_trait::async_trait;

    use super::*;
    use crate::wire::{MessageId, Scope};

    /// A channel that limits every third request, loses the answer of every fifth, and hangs on its seventh.
    #[derive(Default)]
    struct Moody {
        state: Mutex<State>,
    }

    #[derive(Default)]
    struct State {
        asked: usize,
        posts: Vec<(String, String)>,
        by_nonce: HashMap<String, usize>,
    }

    impl Moody {
        /// What goes wrong now; `None` = nothing.
        fn mood(&self) -> (usize, Option<WireError>) {
            let mut state = self.state.lock();
            state.asked += 1;
            let limited = WireError::RateLimited {
                after: Some(Duration::from_millis(700)),
                scope: Scope::Channel,
            };
            let fault = (state.asked.is_multiple_of(3)).then_some(limited);
            (state.asked, fault)
        }

        fn texts(&self) -> Vec<String> {
            let state = self.state.lock();
            state.posts.iter().map(|(_, text)| text.clone()).collect()
        }
    }

    #[async_trait]
    impl Wire for Moody {
        async fn send(&self, _: &Place, body: &Body, nonce: &str) -> Result<MessageId, WireError> {
            let (asked, fault) = self.mood();
            if let Some(fault) = fault {
                return Err(fault);
            }
            if asked == 7 {
                std::future::pending::<()>().await;
            }
            let mut state = self.state.lock();
            let next = state.posts.len();
            let at = *state.by_nonce.entry(nonce.to_owned()).or_insert(next);
            if at == next {
                state.posts.push((nonce.to_owned(), body.text.clone()));
            }
            if asked.is_multiple_of(5) {
                return Err(WireError::Uncertain("reset".to_owned()));
            }
            Ok(MessageId(at.to_string()))
        }

        async fn edit(&self, _: &Place, message: &MessageId, body: &Body) -> Result<(), WireError> {
            if let (_, Some(fault)) = self.mood() {
                return Err(fault);
            }
            let at: usize = message.0.parse().expect("an index");
            self.state.lock().posts[at].1.clone_from(&body.text);
            Ok(())
        }

        async fn delete(&self, _: &Place, _: &MessageId) -> Result<(), WireError> {
            panic!("nothing here is deleted")
        }

        async fn find(&self, _: &Place, _: &str) -> Result<Option<MessageId>, WireError> {
            panic!("this platform knows its nonces")
        }
    }

    fn place() -> Place {
        Place {
            channel: "c".to_owned(),
            thread: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everything_arrives_in_order_and_once_and_then_the_task_ends() {
        let wire = Arc::new(Moody::default());
        let (reports, mut told) = mpsc::unbounded_channel();
        let sender = start(Arc::clone(&wire), Pace::DISCORD, "t", reports);
        let slots: Vec<SlotId> = (0..6)
            .map(|n| {
                sender.open(
                    place(),
                    Worth::Must,
                    Body::text(format!("{n}")),
                    Stage::Live,
                )
            })
            .collect();
        for (n, slot) in slots.iter().enumerate() {
            sender.show(*slot, Body::text(format!("{n} done")), Stage::Final);
        }
        sender.drained().await;
        let want: Vec<String> = (0..6).map(|n| format!("{n} done")).collect();
        assert_eq!(wire.texts(), want);
        drop(sender);
        let mut finished = Vec::new();
        while let Some(report) = told.recv().await {
            if let Report::Finished { slot, .. } = report {
                finished.push(slot);
            }
        }
        assert_eq!(finished, slots);
    }

    /// An adapter whose calls panic.
    struct Broken;

    #[async_trait]
    impl Wire for Broken {
        async fn send(&self, _: &Place, _: &Body, _: &str) -> Result<MessageId, WireError> {
            panic!("a fault of ours")
        }
        async fn edit(&self, _: &Place, _: &MessageId, _: &Body) -> Result<(), WireError> {
            panic!("a fault of ours")
        }
        async fn delete(&self, _: &Place, _: &MessageId) -> Result<(), WireError> {
            panic!("a fault of ours")
        }
        async fn find(&self, _: &Place, _: &str) -> Result<Option<MessageId>, WireError> {
            panic!("a fault of ours")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_below_is_a_failed_request_and_is_reported_in_the_end() {
        let (reports, mut told) = mpsc::unbounded_channel();
        let sender = start(Arc::new(Broken), Pace::SLACK, "t", reports);
        sender.open(place(), Worth::Must, Body::text("a"), Stage::Final);
        sender.drained().await;
        assert!(matches!(told.recv().await, Some(Report::Dropped { .. })));
    }
}
