//! The bounds of one attempt: its deadline, the longest silence, and the person's stop.

use gateway_core::failure::{AttemptLimits, Failure, FailureKind, FailureScope};
use gateway_core::turn::AttemptEnd;
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
    silent_at: Instant,
    stop: Stop,
}

impl Pace {
    /// Starts the clocks.
    pub(crate) fn start(limits: AttemptLimits, stop: Stop) -> Self {
        let now = Instant::now();
        Self {
            limits,
            deadline: now + limits.deadline,
            silent_at: now + limits.silence,
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
    pub(crate) fn heard(&mut self) {
        self.silent_at = Instant::now() + self.limits.silence;
    }

    /// Waits for `work` within the limits. A stop wins over work that is ready at the same moment.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(Interrupt::Stopped),
            done = work => Ok(done),
            () = sleep_until(self.deadline) => Err(Interrupt::Deadline),
            () = sleep_until(self.silent_at) => Err(Interrupt::Silence),
        }
    }
}
