//! How the connection is, and what it has been through: counted where it happens, read by the host.

use std::time::Duration;

use parking_lot::Mutex;
use platforms::adapter::Health;
use tokio::time::Instant;
use tracing::info;

#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    live: bool,
    last_sign: Option<Instant>,
    /// Since when nothing can be heard.
    deaf_since: Option<Instant>,
    last_recovery: Option<Duration>,
    began: u64,
    resumed: u64,
    back_filled: u64,
    gaps: u64,
    unreadable: u64,
}

impl Pulse {
    /// Something came.
    pub(crate) fn sign(&self) {
        self.0.lock().last_sign = Some(Instant::now());
    }

    /// READY: a session began, the first or another one.
    pub(crate) fn began(&self) {
        let mut state = self.0.lock();
        if state.began > 0 {
            state.gaps += 1;
        }
        state.began += 1;
        state.recovered();
    }

    /// RESUMED.
    pub(crate) fn resumed(&self) {
        let mut state = self.0.lock();
        state.resumed += 1;
        state.recovered();
    }

    /// The connection ended. A `silent` one was deaf since its last sign of life.
    pub(crate) fn lost(&self, silent: bool) {
        let mut state = self.0.lock();
        if std::mem::take(&mut state.live) {
            let last_sign = state.last_sign.filter(|_| silent);
            state.deaf_since = Some(last_sign.unwrap_or_else(Instant::now));
        }
    }

    pub(crate) fn unreadable(&self) {
        self.0.lock().unreadable += 1;
    }

    pub(crate) fn back_filled(&self) {
        self.0.lock().back_filled += 1;
    }

    /// A command or press that can no longer be answered.
    pub(crate) fn gap(&self) {
        self.0.lock().gaps += 1;
    }

    /// How long nothing could be heard at the last loss; `None` = none was lost, or it is lost now.
    pub(crate) fn last_recovery(&self) -> Option<Duration> {
        self.0.lock().last_recovery
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.0.lock();
        Health {
            connections: u32::from(state.live),
            silent_for: state.last_sign.map(|sign| sign.elapsed()),
            resumed: state.resumed,
            begun_anew: state.began.saturating_sub(1),
            back_filled: state.back_filled,
            gaps: state.gaps,
            unreadable: state.unreadable,
        }
    }
}

impl State {
    fn recovered(&mut self) {
        self.live = true;
        if let Some(since) = self.deaf_since.take() {
            let deaf = since.elapsed();
            self.last_recovery = Some(deaf);
            info!(seconds = deaf.as_secs_f64(), "Discord is heard again");
        }
    }
}
