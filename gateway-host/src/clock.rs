//! The one door to the time. Decisions never read it; they are handed `now`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Says when the time was moved, for clocks that can be; `None` = it only passes.
    fn moves(&self) -> Option<watch::Receiver<i64>> {
        None
    }
}

/// Waits until the clock shows this instant. A clock that is moved beyond it ends the wait at once.
pub async fn wait_until(clock: &dyn Clock, at: Timestamp) {
    let mut moves = clock.moves();
    loop {
        let left = at.duration_since(clock.now());
        let Ok(left) = Duration::try_from(left) else {
            return; // it has passed
        };
        if left.is_zero() {
            return;
        }
        let moved = async {
            let moved = match &mut moves {
                Some(moves) => moves.changed().await.is_ok(),
                None => false,
            };
            if !moved {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = moved => {}
        }
    }
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
#[derive(Debug, Clone)]
pub struct MovedClock {
    offset_ms: watch::Sender<i64>,
    /// How often somebody began to wait on it.
    waits: watch::Sender<usize>,
}

impl Default for MovedClock {
    fn default() -> Self {
        Self {
            offset_ms: watch::Sender::new(0),
            waits: watch::Sender::new(0),
        }
    }
}

impl MovedClock {
    /// Lets time pass at once.
    pub fn advance(&self, by: SignedDuration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.offset_ms
            .send_modify(|offset| *offset = offset.saturating_add(ms));
    }

    /// Returns once somebody has begun to wait on this clock for the `count`th time.
    pub async fn waits_reach(&self, count: usize) {
        let mut waits = self.waits.subscribe();
        let reached = waits.wait_for(|waits| *waits >= count).await;
        reached.expect("self holds the sender, so the channel is open");
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(*self.offset_ms.borrow());
        SystemClock
            .now()
            .checked_add(offset)
            .unwrap_or(Timestamp::MAX)
    }

    fn moves(&self) -> Option<watch::Receiver<i64>> {
        let moves = self.offset_ms.subscribe();
        self.waits.send_modify(|waits| *waits += 1);
        Some(moves)
    }
}
