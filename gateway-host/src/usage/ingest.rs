//! What running turns hear of their windows, on its way to the store and to `usage.json`. One writer task per registry takes
//! everything that came in within a tenth of a second as one transaction; a refusal goes at once and takes the rest along.
//!
//! Invariants:
//! * hearing never waits: a turn that streams is not held up by a disk;
//! * of each window only the newest reading waits, so the queue is as long as there are windows and never longer than
//!   [`MOST_WINDOWS`]; when it is full a refusal takes the place of a reading that is none;
//! * a refusal that the store did not take is kept and offered again with the next batch, and decides here meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::usage::merge;
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::publish;
use super::registry::Ledger;
use crate::config::RootPath;

/// How long readings are gathered before they are written.
const GATHER: Duration = Duration::from_millis(100);
/// `usage.json` is written at most this often, unless a refusal is among what is new.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);
/// Windows that may wait at once. A subscription has about four; names come from outside, so there is an end to them.
const MOST_WINDOWS: usize = 50_000;

/// One window of one subscription.
type Place = (String, String, Option<WindowScope>);

fn place(reading: &Reading) -> Place {
    (
        reading.subscription.key().to_owned(),
        reading.window.clone(),
        reading.scope.clone(),
    )
}

/// Whether others must know of it at once: the provider itself says that the window is spent.
fn is_refusal(reading: &Reading) -> bool {
    reading.status == WindowStatus::Rejected
}

/// What waits to be written.
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    /// Something waits.
    some: Notify,
    /// Something waits that must not.
    urgent: Notify,
    /// How many calls of [`Inbox::put`] are written and, if urgent, published.
    done: watch::Receiver<u64>,
    /// Refusals the store did not take.
    unstored: Mutex<Vec<Reading>>,
}

#[derive(Default)]
struct Waiting {
    newest: HashMap<Place, Reading>,
    /// The latest time anybody named since the last batch: not since the start, or a clock that was ahead for a moment
    /// would stay so.
    now: Timestamp,
    puts: u64,
    urgent: bool,
    closed: bool,
    /// Readings that found no place since the last batch.
    turned_away: u64,
}

impl Inbox {
    /// An inbox, and what its writer needs to say how far it has come.
    pub(super) fn new() -> (Arc<Self>, watch::Sender<u64>) {
        let (done_in, done) = watch::channel(0);
        let inbox = Self {
            waiting: Mutex::default(),
            some: Notify::new(),
            urgent: Notify::new(),
            done,
            unstored: Mutex::default(),
        };
        (Arc::new(inbox), done_in)
    }

    /// Takes readings in; returns the number of this call, for [`Inbox::written`].
    pub(super) fn put(&self, readings: Vec<Reading>, urgent: bool, now: Timestamp) -> u64 {
        let mut waiting = self.waiting.lock();
        waiting.now = match waiting.newest.is_empty() {
            true => now,
            false => waiting.now.max(now),
        };
        waiting.puts += 1;
        for reading in readings {
            waiting.urgent |= is_refusal(&reading);
            waiting.add(reading, now);
        }
        waiting.urgent |= urgent;
        if waiting.urgent {
            self.urgent.notify_one();
        }
        self.some.notify_one();
        waiting.puts
    }

    /// Everything that was put so far, without waiting for the tenth of a second. `None` = nothing waits.
    pub(super) fn hurry(&self) -> Option<u64> {
        let mut waiting = self.waiting.lock();
        if *self.done.borrow() == waiting.puts {
            return None;
        }
        waiting.urgent = true;
        self.urgent.notify_one();
        self.some.notify_one();
        Some(waiting.puts)
    }

    /// Waits until a call of [`Inbox::put`] is written, or the writer is gone.
    pub(super) async fn written(&self, put: u64) {
        let mut done = self.done.clone();
        let _ = done.wait_for(|done| *done >= put).await; // the writer is gone: the process ends
    }

    /// Refusals that are known here and not in the store.
    pub(super) fn unstored(&self) -> Vec<Reading> {
        self.unstored.lock().clone()
    }

    /// The last batch goes out and the writer ends.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.urgent.notify_one();
        self.some.notify_one();
    }

    fn take(&self) -> Batch {
        let mut waiting = self.waiting.lock();
        if waiting.turned_away > 0 {
            tracing::warn!(
                readings = waiting.turned_away,
                "more windows than can be kept were heard of; some readings are lost"
            );
        }
        waiting.turned_away = 0;
        Batch {
            readings: std::mem::take(&mut waiting.newest).into_values().collect(),
            now: waiting.now,
            puts: waiting.puts,
            urgent: std::mem::take(&mut waiting.urgent),
            closed: waiting.closed,
        }
    }
}

impl Waiting {
    fn add(&mut self, reading: Reading, now: Timestamp) {
        let full = self.newest.len() >= MOST_WINDOWS;
        match self.newest.entry(place(&reading)) {
            Entry::Occupied(mut held) => {
                if merge::compare(&reading, held.get(), now).is_ge() {
                    held.insert(reading);
                }
            }
            Entry::Vacant(free) if !full => drop(free.insert(reading)),
            Entry::Vacant(_) => {
                self.turned_away += 1;
                if is_refusal(&reading) {
                    let other = self.newest.iter().find(|(_, other)| !is_refusal(other));
                    if let Some(other) = other.map(|(place, _)| place.clone()) {
                        self.newest.remove(&other);
                        self.newest.insert(place(&reading), reading);
                    }
                }
            }
        }
    }
}

/// What goes out at once.
struct Batch {
    readings: Vec<Reading>,
    now: Timestamp,
    puts: u64,
    urgent: bool,
    closed: bool,
}

/// The one that writes.
pub(super) struct Writer {
    pub(super) inbox: Arc<Inbox>,
    pub(super) done: watch::Sender<u64>,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) root: RootPath,
}

impl Writer {
    /// Writes until the inbox is closed.
    pub(super) async fn run(self) {
        let mut unpublished: HashMap<Place, Reading> = HashMap::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                () = self.inbox.some.notified() => {
                    tokio::select! {
                        () = sleep(GATHER) => {}
                        () = self.inbox.urgent.notified() => {}
                    }
                }
                () = sleep_until(due), if !unpublished.is_empty() => {}
            }
            let batch = self.inbox.take();
            self.store(&batch).await;
            for reading in batch.readings {
                unpublished.insert(place(&reading), reading);
            }
            let publish = batch.urgent || batch.closed || Instant::now() >= due;
            if publish && !unpublished.is_empty() {
                let readings = std::mem::take(&mut unpublished).into_values().collect();
                publish_all(&self.root, readings, batch.now).await;
                due = Instant::now() + PUBLISH_EVERY;
            }
            self.done.send_replace(batch.puts);
            if batch.closed {
                return;
            }
        }
    }

    async fn store(&self, batch: &Batch) {
        let mut readings = self.inbox.unstored();
        readings.extend(batch.readings.iter().cloned());
        if readings.is_empty() {
            return;
        }
        let stored = self.ledger.put(&readings, batch.now).await;
        let mut unstored = self.inbox.unstored.lock();
        unstored.clear();
        if let Err(why) = stored {
            tracing::warn!(%why, "usage readings were not stored");
            let refusals =
                |reading: &Reading| is_refusal(reading) || reading.source == ReadingSource::Failure;
            readings.retain(refusals);
            *unstored = merge::newest(readings, batch.now);
            unstored.truncate(MOST_WINDOWS);
        }
    }
}

async fn publish_all(root: &RootPath, readings: Vec<Reading>, now: Timestamp) {
    let root = root.clone();
    let published =
        tokio::task::spawn_blocking(move || publish::publish(&root, &readings, now)).await;
    match published {
        Ok(Ok(_)) => {}
        Ok(Err(why)) => tracing::warn!(%why, "usage readings were not published"),
        Err(why) => tracing::warn!(%why, "publishing usage readings broke off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset_s: i64) -> Timestamp {
        Timestamp::from_second(1_789_981_200 + offset_s).unwrap()
    }

    fn reading(slug: &str, window: &str, used: f64, status: WindowStatus) -> Reading {
        Reading {
            subscription: slug.into(),
            window: window.to_owned(),
            scope: None,
            used_pct: Some(used),
            status,
            resets_at: Some(at(3_600)),
            duration_mins: None,
            observed_at: Some(at(0)),
            source: ReadingSource::Event,
        }
    }

    #[test]
    fn of_each_window_only_the_newest_waits() {
        let (inbox, _done) = Inbox::new();
        for used in 0..1_000 {
            let mut reading = reading("s", "five_hour", f64::from(used), WindowStatus::Allowed);
            reading.observed_at = Some(at(i64::from(used % 7)));
            inbox.put(vec![reading], false, at(10));
        }
        let batch = inbox.take();
        assert_eq!(batch.readings.len(), 1);
        assert_eq!(
            batch.readings[0].used_pct,
            Some(993.0),
            "the fullest of the newest second"
        );
        assert_eq!((batch.puts, batch.urgent), (1_000, false));
    }

    #[test]
    fn a_clock_set_back_is_followed_with_the_next_batch() {
        let (inbox, _done) = Inbox::new();
        let one = |slug: &str| vec![reading(slug, "five_hour", 1.0, WindowStatus::Allowed)];
        inbox.put(one("a"), false, at(3_600));
        inbox.put(one("b"), false, at(0));
        assert_eq!(inbox.take().now, at(3_600), "one batch has one time");
        inbox.put(one("a"), false, at(1));
        assert_eq!(inbox.take().now, at(1));
        assert_eq!(inbox.take().now, at(1), "an empty batch has the last one");
    }

    #[test]
    fn a_full_inbox_still_takes_a_refusal() {
        let (inbox, _done) = Inbox::new();
        let windows = (0..MOST_WINDOWS + 5)
            .map(|n| reading("s", &format!("w{n}"), 1.0, WindowStatus::Allowed))
            .collect();
        inbox.put(windows, false, at(0));
        inbox.put(
            vec![reading("t", "five_hour", 100.0, WindowStatus::Rejected)],
            false,
            at(0),
        );
        let batch = inbox.take();
        assert_eq!(batch.readings.len(), MOST_WINDOWS);
        assert!(batch.urgent && batch.readings.iter().any(is_refusal));
    }
}
