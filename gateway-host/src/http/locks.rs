//! One request at a time per conversation; conversations never wait for one another. A conversation nobody waits for takes
//! no memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::store::Lane;

/// The locks in use.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<Lane, Arc<tokio::sync::Mutex<()>>>>);

/// Holds a conversation.
#[derive(Debug)]
pub(super) struct Held {
    locks: Arc<Locks>,
    lane: Lane,
    held: Option<OwnedMutexGuard<()>>,
}

impl Locks {
    /// Waits for the conversation, in the order of asking.
    pub(super) async fn hold(self: &Arc<Self>, lane: Lane) -> Held {
        let lock = Arc::clone(self.0.lock().entry(lane.clone()).or_default());
        // From here on the entry stays: a waiter that goes away sweeps it like one that held it.
        let mut held = Held {
            locks: Arc::clone(self),
            lane,
            held: None,
        };
        held.held = Some(lock.lock_owned().await);
        held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held = None;
        let mut locks = self.locks.0.lock();
        if locks
            .get(&self.lane)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            locks.remove(&self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use gateway_core::ids::{ProfileId, SessionKey};

    use super::*;

    fn lane(name: &str) -> Lane {
        Lane {
            profile: ProfileId::new("default"),
            session: SessionKey::new(name),
        }
    }

    #[tokio::test]
    async fn cases_29_and_31_one_conversation_waits_and_another_does_not() {
        let locks = Arc::new(Locks::default());
        let first = locks.hold(lane("a")).await;
        let second = locks.hold(lane("a"));
        tokio::pin!(second);
        assert!(second.as_mut().now_or_never().is_none());
        assert!(locks.hold(lane("b")).now_or_never().is_some());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn case_32_nothing_is_left_of_conversations_that_are_over() {
        let locks = Arc::new(Locks::default());
        for n in 0..200 {
            drop(locks.hold(lane(&n.to_string())).await);
        }
        assert!(locks.0.lock().is_empty());
    }

    #[tokio::test]
    async fn case_33_the_lock_stays_for_who_waits_also_if_one_of_them_gives_up() {
        let locks = Arc::new(Locks::default());
        let holder = locks.hold(lane("a")).await;
        let mut waits = Box::pin(locks.hold(lane("a")));
        let mut gives_up = Box::pin(locks.hold(lane("a")));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(gives_up.as_mut().now_or_never().is_none());
        drop(gives_up);
        drop(holder);
        let held = waits.now_or_never().expect("its turn has come");
        assert!(
            locks.hold(lane("a")).now_or_never().is_none(),
            "the same lock is asked for"
        );
        drop(held);
        assert!(locks.0.lock().is_empty());
    }
}
