//! What is known of all sockets together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use platforms::adapter::Health;
use tokio::time::Instant;
use tracing::warn;

/// Counters; each is read alone, so no order between them is needed.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Sockets being opened, open or lingering: what Slack may count as ours.
    held: AtomicU32,
    /// Sockets that said hello and were not asked to leave.
    hearing: AtomicU32,
    /// Sockets Slack counted beyond ours.
    foreign: AtomicU32,
    resumed: AtomicU64,
    begun_anew: AtomicU64,
    gaps: AtomicU64,
    unreadable: AtomicU64,
    last_sign: Mutex<Option<Instant>>,
}

/// A socket that counts as ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Pulse>);

/// A socket that hears until this is dropped.
#[derive(Debug)]
pub(crate) struct Hearing(Arc<Pulse>);

impl Pulse {
    pub(crate) fn opening(self: &Arc<Self>) -> Held {
        self.held.fetch_add(1, Relaxed);
        Held(Arc::clone(self))
    }

    /// A socket said hello; `counted` = the open sockets of the app, as Slack says.
    pub(crate) fn hello(self: &Arc<Self>, counted: u32) -> Hearing {
        self.hearing.fetch_add(1, Relaxed);
        let foreign = counted.saturating_sub(self.held.load(Relaxed));
        let before = self.foreign.swap(foreign, Relaxed);
        if foreign > before {
            warn!(
                foreign,
                "Slack counts sockets of this app that are not ours: another instance takes a share of the events, \
                 or one that ended is still counted. Each app token is for one instance."
            );
        }
        Hearing(Arc::clone(self))
    }

    /// Something came.
    pub(crate) fn sign(&self, now: Instant) {
        *self.last_sign.lock() = Some(now);
    }

    /// A socket was asked to leave and hears on until the next one does.
    pub(crate) fn relieved(&self) {
        self.resumed.fetch_add(1, Relaxed);
    }

    /// A socket that had said hello broke; it hears no more already.
    pub(crate) fn broke(&self) {
        self.gaps.fetch_add(1, Relaxed);
        match self.hearing.load(Relaxed) {
            0 => self.begun_anew.fetch_add(1, Relaxed),
            _ => self.resumed.fetch_add(1, Relaxed),
        };
    }

    /// An envelope found no place in the queue; Slack sends commands and presses only once.
    pub(crate) fn refused(&self) {
        self.gaps.fetch_add(1, Relaxed);
    }

    pub(crate) fn unreadable(&self) {
        self.unreadable.fetch_add(1, Relaxed);
    }

    pub(crate) fn foreign(&self) -> u32 {
        self.foreign.load(Relaxed)
    }

    pub(crate) fn health(&self, now: Instant) -> Health {
        let last = *self.last_sign.lock();
        Health {
            connections: self.hearing.load(Relaxed),
            silent_for: last.map(|last| now.saturating_duration_since(last)),
            resumed: self.resumed.load(Relaxed),
            begun_anew: self.begun_anew.load(Relaxed),
            // Slack repeats events by itself; nothing is fetched.
            back_filled: 0,
            gaps: self.gaps.load(Relaxed),
            unreadable: self.unreadable.load(Relaxed),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Relaxed);
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.hearing.fetch_sub(1, Relaxed);
    }
}
