//! The one door to the time. Decisions never read it; they are handed `now`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The machine's clock moved by an offset that can be changed: the demo and tests let days pass.
#[derive(Debug, Clone, Default)]
pub struct MovedClock {
    offset_ms: Arc<AtomicI64>,
}

impl MovedClock {
    /// Lets time pass at once.
    pub fn advance(&self, by: SignedDuration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.offset_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(self.offset_ms.load(Ordering::SeqCst));
        SystemClock
            .now()
            .checked_add(offset)
            .unwrap_or(Timestamp::MAX)
    }
}
