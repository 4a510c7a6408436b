//! The fake's own time: runs like the wall clock and can be moved ahead by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A clock that every rule with a deadline asks: 3 s, 15 min, rate limits, redelivery.
#[derive(Clone)]
pub struct MovedClock(Arc<Inner>);

struct Inner {
    origin: Instant,
    base: Timestamp,
    ahead: Mutex<Duration>,
    moved: watch::Sender<()>,
}

impl Default for MovedClock {
    fn default() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the fake platform is the outside world: its clock starts at the present"
        )]
        let base = Timestamp::now();
        Self::starting_at(base)
    }
}

impl MovedClock {
    /// Returns a clock that shows `base` now.
    pub fn starting_at(base: Timestamp) -> Self {
        Self(Arc::new(Inner {
            origin: Instant::now(),
            base,
            ahead: Mutex::new(Duration::ZERO),
            moved: watch::channel(()).0,
        }))
    }

    /// The time on the platform.
    pub fn now(&self) -> Timestamp {
        let passed = self.0.origin.elapsed() + *self.0.ahead.lock();
        self.0.base + passed
    }

    /// Moves the clock ahead; whatever was due in between happens now.
    pub fn advance(&self, by: Duration) {
        *self.0.ahead.lock() += by;
        self.0.moved.send_replace(());
    }

    /// Returns once the clock shows `due`.
    pub async fn reach(&self, due: Timestamp) {
        let mut moved = self.0.moved.subscribe();
        loop {
            let left = due.duration_since(self.now());
            let Ok(left) = Duration::try_from(left) else {
                return;
            };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                _ = moved.changed() => {}
            }
        }
    }
}

/// Time from `earlier` to `later`; zero when they are the other way round.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}
