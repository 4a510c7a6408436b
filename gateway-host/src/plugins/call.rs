//! One instance of a plugin on a thread of its own. Calls never overlap; decisions go before events; every decision has
//! a budget, and a late answer is no opinion. A panicked instance is dropped and made anew; three panics or three late
//! answers in ten minutes, or half a minute stuck, switch it off until the next start. A thread cannot be killed, so a
//! stuck one is left behind: it holds up neither a turn nor the process's exit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi_stable::std_types::{ROption, RResult};
use parking_lot::{Condvar, Mutex};
use plugin_api::event::{TurnEvent, TurnEvent_NE};
use plugin_api::plugin::{ErrorKind, PluginBox, PluginError, Reply};
use tokio::sync::oneshot;

use super::facts::{DisabledBecause, State};

const EVENT_QUEUE: usize = 256;
/// Text of one turn is merged this long before it crosses.
const TEXT_MERGE: Duration = Duration::from_millis(50);
const TEXT_BYTES: usize = 64 * 1024;
const EVENT_BUDGET: Duration = Duration::from_secs(1);
const STUCK: Duration = Duration::from_secs(30);
const STRIKES: usize = 3;
const STRIKE_WINDOW: Duration = Duration::from_secs(600);
const CREATE_BUDGET: Duration = Duration::from_secs(5);

/// Makes an instance: at the start and after each panic.
pub(crate) type Make = Box<dyn Fn() -> Result<PluginBox, PluginError> + Send>;

/// A running plugin instance; dropping it tells its thread to end.
pub(crate) struct Instance {
    shared: Arc<Shared>,
    /// Resolves when the thread is gone.
    ended: oneshot::Receiver<()>,
}

/// What came of a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked<A> {
    Advice(A),
    NoOpinion,
    /// Switched off, busy, late, in error: as if the plugin were not there.
    Absent,
}

/// How an instance fares.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) state: State,
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) dropped_events: u64,
    pub(crate) last_error: Option<String>,
}

impl Instance {
    /// Starts the thread and waits until the instance is made.
    pub(crate) async fn start(name: &str, make: Make) -> Result<Self, PluginError> {
        let shared = Arc::new(Shared::default());
        let (made_tx, made_rx) = oneshot::channel();
        let (ended_tx, ended) = oneshot::channel();
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("plugin-{name}"))
            .spawn(move || {
                run(&for_thread, &make, made_tx);
                let _ = ended_tx.send(());
            });
        let failed = |message: String| PluginError {
            kind: ErrorKind::Failed,
            path: "".into(),
            message: message.into(),
        };
        thread.map_err(|error| failed(format!("no thread for it: {error}")))?;
        let instance = Self { shared, ended };
        match tokio::time::timeout(CREATE_BUDGET, made_rx).await {
            Ok(Ok(Ok(()))) => Ok(instance),
            Ok(Ok(Err(error))) => Err(error),
            Ok(Err(_)) => Err(failed("its thread ended while it started".into())),
            Err(_) => Err(failed(format!(
                "did not start within {} s",
                CREATE_BUDGET.as_secs()
            ))),
        }
    }

    /// Asks one question within its budget.
    pub(crate) async fn ask<W, A>(
        &self,
        budget: Duration,
        call: impl FnOnce(&mut PluginBox) -> Reply<W> + Send + 'static,
    ) -> Asked<A>
    where
        W: 'static,
        A: From<W> + Send + 'static,
    {
        let (answer_tx, answer) = oneshot::channel();
        let job: Job = Box::new(move |plugin| {
            let (ran, reply) = match call(plugin) {
                RResult::ROk(ROption::RSome(said)) => (Ran::Fine, Asked::Advice(A::from(said))),
                RResult::ROk(ROption::RNone) => (Ran::Fine, Asked::NoOpinion),
                RResult::RErr(error) => (Ran::of(&error), Asked::Absent),
            };
            let _ = answer_tx.send(reply);
            ran
        });
        let Some(id) = self.shared.enqueue(job, budget, Instant::now()) else {
            return Asked::Absent;
        };
        match tokio::time::timeout(budget, answer).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(_)) => Asked::Absent,
            Err(_) => {
                self.shared.gave_up(id, Instant::now());
                Asked::Absent
            }
        }
    }

    /// Hands over an event without waiting.
    pub(crate) fn observe(&self, event: TurnEvent) {
        self.shared.observe(event, Instant::now());
    }

    /// How the instance fares now.
    pub(crate) fn health(&self) -> Health {
        self.shared.health(Instant::now())
    }

    /// Tells the thread to end and waits at most `limit` for it.
    pub(crate) async fn stop(mut self, limit: Duration) {
        self.shared.stop();
        let _ = tokio::time::timeout(limit, &mut self.ended).await;
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

type Job = Box<dyn FnOnce(&mut PluginBox) -> Ran + Send>;

/// How a call ended, for the instance's health.
enum Ran {
    Fine,
    Failed(String),
    Panicked(String),
}

impl Ran {
    fn of(error: &PluginError) -> Self {
        match error.kind {
            ErrorKind::Panic => Self::Panicked(error.message.to_string()),
            _ => Self::Failed(error.message.to_string()),
        }
    }
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    wake: Condvar,
}

#[derive(Default)]
struct Inner {
    decisions: VecDeque<Decision>,
    events: VecDeque<Waiting>,
    running: Option<Running>,
    next_id: u64,
    stopping: bool,
    disabled: Option<DisabledBecause>,
    panics: Strikes,
    lates: Strikes,
    calls: u64,
    failures: u64,
    dropped_events: u64,
    last_error: Option<String>,
}

struct Decision {
    id: u64,
    budget: Duration,
    job: Job,
}

struct Waiting {
    event: TurnEvent,
    not_before: Instant,
}

struct Running {
    id: u64,
    since: Instant,
    budget: Duration,
    /// Its lateness has been counted.
    struck: bool,
}

/// Bad things that happened lately.
#[derive(Default)]
struct Strikes(Vec<Instant>);

impl Strikes {
    /// Counts one more; whether that is one too many.
    fn out(&mut self, now: Instant) -> bool {
        self.0
            .retain(|at| now.saturating_duration_since(*at) < STRIKE_WINDOW);
        self.0.push(now);
        self.0.len() >= STRIKES
    }
}

impl Inner {
    /// Counts what has become overdue since the last look.
    fn settle(&mut self, now: Instant) {
        let Some(running) = &mut self.running else {
            return;
        };
        let took = now.saturating_duration_since(running.since);
        if took >= running.budget && !running.struck {
            running.struck = true;
            self.late(now);
        }
        if took >= STUCK {
            self.disable(DisabledBecause::Slow);
        }
    }

    fn late(&mut self, now: Instant) {
        self.failures += 1;
        self.last_error = Some("did not answer within its budget".into());
        if self.lates.out(now) {
            self.disable(DisabledBecause::Slow);
        }
    }

    fn disable(&mut self, because: DisabledBecause) {
        self.disabled.get_or_insert(because);
        self.decisions.clear();
        self.events.clear();
    }

    fn busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.struck)
    }
}

impl Shared {
    /// The question's number, or `None` if it cannot be asked now.
    fn enqueue(&self, job: Job, budget: Duration, now: Instant) -> Option<u64> {
        let mut inner = self.inner.lock();
        inner.settle(now);
        if inner.stopping || inner.disabled.is_some() || inner.busy() {
            return None;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.decisions.push_back(Decision { id, budget, job });
        self.wake.notify_one();
        Some(id)
    }

    /// The asker waits no longer. A question still queued is withdrawn without a strike: something else kept the thread.
    fn gave_up(&self, id: u64, now: Instant) {
        let mut inner = self.inner.lock();
        inner.decisions.retain(|decision| decision.id != id);
        if let Some(running) = &mut inner.running
            && running.id == id
            && !running.struck
        {
            running.struck = true;
            inner.late(now);
        }
        inner.settle(now);
    }

    fn observe(&self, event: TurnEvent, now: Instant) {
        let mut inner = self.inner.lock();
        inner.settle(now);
        if inner.stopping || inner.disabled.is_some() {
            return;
        }
        if let Some(last) = inner.events.back_mut()
            && merged(&mut last.event, &event)
        {
            return;
        }
        if inner.events.len() >= EVENT_QUEUE {
            inner.events.pop_front();
            inner.dropped_events += 1;
        }
        let wait = matches!(event, TurnEvent::Text { .. });
        let not_before = if wait { now + TEXT_MERGE } else { now };
        inner.events.push_back(Waiting { event, not_before });
        self.wake.notify_one();
    }

    fn health(&self, now: Instant) -> Health {
        let mut inner = self.inner.lock();
        inner.settle(now);
        let state = match inner.disabled {
            Some(because) => State::Disabled(because),
            None if inner.busy() => State::Busy,
            None => State::Active,
        };
        Health {
            state,
            calls: inner.calls,
            failures: inner.failures,
            dropped_events: inner.dropped_events,
            last_error: inner.last_error.clone(),
        }
    }

    fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.stopping = true;
        inner.decisions.clear();
        inner.events.clear();
        self.wake.notify_one();
    }

    /// Waits for work; `None` = the thread ends.
    fn next(&self) -> Option<Job> {
        let mut inner = self.inner.lock();
        loop {
            if inner.stopping || inner.disabled.is_some() {
                return None;
            }
            let now = Instant::now();
            if let Some(decision) = inner.decisions.pop_front() {
                begin(&mut inner, decision.id, decision.budget, now);
                return Some(decision.job);
            }
            match inner.events.front().map(|event| event.not_before) {
                Some(at) if at <= now => {
                    let Some(waiting) = inner.events.pop_front() else {
                        continue;
                    };
                    let id = inner.next_id;
                    inner.next_id += 1;
                    begin(&mut inner, id, EVENT_BUDGET, now);
                    return Some(event_job(waiting.event));
                }
                Some(at) => {
                    self.wake.wait_until(&mut inner, at);
                }
                None => self.wake.wait(&mut inner),
            }
        }
    }

    /// Books the end of a call; whether the instance must be made anew.
    fn finished(&self, ran: Ran) -> bool {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        inner.settle(now);
        inner.running = None;
        match ran {
            Ran::Fine => false,
            Ran::Failed(message) => {
                inner.failures += 1;
                inner.last_error = Some(message);
                false
            }
            Ran::Panicked(message) => {
                inner.failures += 1;
                inner.last_error = Some(format!("panic: {message}"));
                if inner.panics.out(now) {
                    inner.disable(DisabledBecause::Panics);
                }
                true
            }
        }
    }

    fn could_not_recreate(&self, error: &PluginError) {
        let mut inner = self.inner.lock();
        inner.last_error = Some(error.message.to_string());
        inner.disable(DisabledBecause::Panics);
    }
}

fn begin(inner: &mut Inner, id: u64, budget: Duration, now: Instant) {
    inner.calls += 1;
    inner.running = Some(Running {
        id,
        since: now,
        budget,
        struck: false,
    });
}

fn event_job(event: TurnEvent) -> Job {
    Box::new(
        move |plugin| match plugin.on_event(&TurnEvent_NE::new(event)) {
            RResult::ROk(()) => Ran::Fine,
            RResult::RErr(error) => Ran::of(&error),
        },
    )
}

/// Appends text of the same turn to the event waiting before it.
fn merged(last: &mut TurnEvent, new: &TurnEvent) -> bool {
    match (last, new) {
        (
            TurnEvent::Text { turn, text },
            TurnEvent::Text {
                turn: same,
                text: more,
            },
        ) if turn == same && text.len() + more.len() <= TEXT_BYTES => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

/// The thread.
fn run(shared: &Shared, make: &Make, made: oneshot::Sender<Result<(), PluginError>>) {
    let mut plugin = match make() {
        Ok(plugin) => plugin,
        Err(error) => {
            let _ = made.send(Err(error));
            return;
        }
    };
    if made.send(Ok(())).is_err() {
        return; // nobody waits any more
    }
    while let Some(job) = shared.next() {
        let ran = job(&mut plugin);
        if shared.finished(ran) {
            // It may be inconsistent after a panic: a fresh one takes its place.
            drop(plugin);
            plugin = match make() {
                Ok(fresh) => fresh,
                Err(error) => return shared.could_not_recreate(&error),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_strikes_in_ten_minutes_are_out_and_old_ones_are_forgotten() {
        let start = Instant::now();
        let minutes = |count: u64| start + Duration::from_secs(count * 60);
        let mut strikes = Strikes::default();
        assert!(!strikes.out(minutes(0)));
        assert!(!strikes.out(minutes(9)));
        assert!(!strikes.out(minutes(11)), "the first is forgotten");
        assert!(strikes.out(minutes(12)));
    }

    #[test]
    fn events_beyond_the_queue_drop_the_oldest_and_are_counted() {
        let shared = Shared::default();
        let now = Instant::now();
        for index in 0..300 {
            let turn = format!("turn-{index}").into();
            let text = "x".into();
            shared.observe(TurnEvent::Text { turn, text }, now);
        }
        let health = shared.health(now);
        assert_eq!(health.dropped_events, 300 - EVENT_QUEUE as u64);
        let inner = shared.inner.lock();
        let TurnEvent::Text { turn, .. } = &inner.events[0].event else {
            panic!("not a text");
        };
        assert_eq!(turn.as_str(), "turn-44");
    }

    #[test]
    fn text_of_one_turn_is_merged_while_it_waits() {
        let shared = Shared::default();
        let now = Instant::now();
        for text in ["one ", "two"] {
            let turn = "t".into();
            let text = text.into();
            shared.observe(TurnEvent::Text { turn, text }, now);
        }
        let inner = shared.inner.lock();
        assert_eq!(inner.events.len(), 1);
        let TurnEvent::Text { text, .. } = &inner.events[0].event else {
            panic!("not a text");
        };
        assert_eq!(text.as_str(), "one two");
    }

    #[test]
    fn stuck_for_half_a_minute_is_off() {
        let shared = Shared::default();
        let now = Instant::now();
        begin(&mut shared.inner.lock(), 0, Duration::from_millis(50), now);
        assert_eq!(shared.health(now).state, State::Active);
        assert_eq!(
            shared.health(now + Duration::from_millis(50)).state,
            State::Busy
        );
        assert_eq!(
            shared.health(now + STUCK).state,
            State::Disabled(DisabledBecause::Slow)
        );
    }

    #[test]
    fn a_question_withdrawn_from_the_queue_is_no_strike() {
        let shared = Shared::default();
        let now = Instant::now();
        let id = shared
            .enqueue(Box::new(|_| Ran::Fine), Duration::from_millis(1), now)
            .unwrap();
        shared.gave_up(id, now + Duration::from_secs(1));
        assert_eq!(shared.health(now).failures, 0);
        assert!(shared.inner.lock().decisions.is_empty());
    }
}
