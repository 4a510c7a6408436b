//! The bounds of one attempt: its deadline, the longest silence, and the person's stop.

use std::sync::Arc;

use gateway_core::failure::{AttemptLimits, Failure, FailureKind, FailureScope};
use gateway_core::turn::AttemptEnd;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::Stop;

/// What ended a wait before the work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Stopped,
    Deadline,
    Silence,
}

impl Interrupt {
    /// The attempt's end for it.
    pub(crate) fn end(self) -> AttemptEnd {
        let detail = match self {
            Self::Stopped => return AttemptEnd::Stopped,
            Self::Deadline => "no complete answer before the attempt's deadline",
            Self::Silence => "the provider fell silent",
        };
        AttemptEnd::Failed(Failure::new(
            FailureKind::Timeout,
            FailureScope::Request,
            detail,
        ))
    }
}

/// Measures one attempt against its limits.
#[derive(Debug)]
pub(crate) struct Pace {
    limits: AttemptLimits,
    deadline: Instant,
    life: Life,
    stop: Stop,
}

/// The moment silence becomes too long; shared with whoever sees bytes arrive.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    silent_at: Arc<Mutex<Instant>>,
    silence: std::time::Duration,
}

impl Life {
    /// Notes a sign of life.
    pub(crate) fn heard(&self) {
        *self.silent_at.lock() = Instant::now() + self.silence;
    }

    /// Returns when the silence has lasted too long, however often it was broken meanwhile.
    async fn silent(&self) {
        loop {
            let until = *self.silent_at.lock();
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

impl Pace {
    /// Starts the clocks.
    pub(crate) fn start(limits: AttemptLimits, stop: Stop) -> Self {
        let now = Instant::now();
        Self {
            limits,
            deadline: now + limits.deadline,
            life: Life {
                silent_at: Arc::new(Mutex::new(now + limits.silence)),
                silence: limits.silence,
            },
            stop,
        }
    }

    /// Waits for the host's go; dropped without firing, the attempt counts as stopped. The clocks start anew: the time
    /// until the journal is durable is the host's, not the provider's.
    pub(crate) async fn go(&mut self, go: &mut oneshot::Receiver<()>) -> Result<(), Interrupt> {
        let fired = self.bounded(go).await?;
        *self = Self::start(self.limits, self.stop.clone());
        fired.map_err(|_| Interrupt::Stopped)
    }

    /// Notes a sign of life.
    pub(crate) fn heard(&self) {
        self.life.heard();
    }

    /// What notes signs of life while a wait of this pace goes on.
    pub(crate) fn life(&self) -> Life {
        self.life.clone()
    }

    /// Waits for `work` within the limits. A stop wins over work that is ready at the same moment.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(Interrupt::Stopped),
            done = work => Ok(done),
            () = sleep_until(self.deadline) => Err(Interrupt::Deadline),
            () = self.life.silent() => Err(Interrupt::Silence),
        }
    }
}
