//! Turns of one thread wait for each other: a second `turn/start` would be mixed into the running turn (0.171).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Who runs in which thread.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Lanes {
    /// Waits until the thread is free and holds it.
    pub(super) async fn enter(&self, thread: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lane = {
            let mut lanes = self.0.lock();
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            lanes.entry(thread.to_owned()).or_default().clone()
        };
        lane.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_of_one_thread_wait_for_each_other_and_others_do_not() {
        let lanes = Lanes::default();
        let first = lanes.enter("a").await;
        drop(lanes.enter("b").await);
        let mut second = Box::pin(lanes.enter("a"));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        drop(lanes.enter("c").await);
        assert!(
            lanes.0.lock().len() <= 1,
            "lanes nobody waits in are forgotten"
        );
    }
}
