//! Deliveries of one thing are taken once. Platforms deliver at least once: Slack repeats an envelope that was not
//! acknowledged at once, after one minute and after five, and sends both `app_mention` and `message` for one mention;
//! Discord replays events after a resume. Hence one thing may go by several ids, for example a Slack event id and
//! channel + ts, and any of them gives it away.
//!
//! In memory and bounded: what must survive a restart is the store's `first_sight`, by the one lasting id.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

/// A memory of ids.
#[derive(Debug)]
pub struct Dedupe {
    /// The most ids that are kept; the ones unseen for longest go first.
    capacity: usize,
    /// How long an id is kept after it was last seen.
    keep: Duration,
    by_id: HashMap<String, u64>,
    by_age: BTreeMap<u64, (String, Instant)>,
    next: u64,
}

impl Default for Dedupe {
    /// Twice Slack's last repeat, and room for the busiest of workspaces.
    fn default() -> Self {
        Self::new(20_000, Duration::from_secs(10 * 60))
    }
}

impl Dedupe {
    /// Keeps at most `capacity` ids (at least 1), each for `keep` after it was last seen.
    pub fn new(capacity: usize, keep: Duration) -> Self {
        Self {
            capacity: capacity.max(1),
            keep,
            by_id: HashMap::new(),
            by_age: BTreeMap::new(),
            next: 0,
        }
    }

    /// Whether a delivery is new: none of its `ids` was seen. All of them are remembered, so that a third delivery which
    /// shares an id only with the second is known too. Empty ids say nothing; a delivery without any is always new.
    pub fn first_sight(&mut self, ids: &[&str], now: Instant) -> bool {
        self.forget_old(now);
        let mut new = true;
        for id in ids.iter().filter(|id| !id.is_empty()) {
            new &= !self.remember(id, now);
        }
        while self.by_age.len() > self.capacity {
            self.forget_oldest();
        }
        new
    }

    /// Puts an id at the young end; whether it was known.
    fn remember(&mut self, id: &str, now: Instant) -> bool {
        let stamp = self.next;
        self.next += 1;
        let before = self.by_id.insert(id.to_owned(), stamp);
        if let Some(before) = before {
            self.by_age.remove(&before);
        }
        self.by_age.insert(stamp, (id.to_owned(), now));
        before.is_some()
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((_, (_, seen))) = self.by_age.first_key_value() {
            if now.saturating_duration_since(*seen) < self.keep {
                return;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, (id, _))) = self.by_age.pop_first() {
            self.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEEP: Duration = Duration::from_secs(600);

    #[test]
    fn any_shared_id_gives_a_delivery_away() {
        let (mut seen, now) = (Dedupe::default(), Instant::now());
        assert!(seen.first_sight(&["Ev1", "C1:17.1"], now));
        assert!(
            !seen.first_sight(&["Ev2", "C1:17.1"], now),
            "the same message as another event"
        );
        assert!(
            !seen.first_sight(&["Ev2"], now),
            "known from its second delivery"
        );
        assert!(seen.first_sight(&["Ev3", "C2:17.1"], now));
        assert!(seen.first_sight(&["", ""], now) && seen.first_sight(&[], now));
    }

    #[test]
    fn an_id_is_kept_from_its_last_sight_on() {
        let (mut seen, start) = (Dedupe::new(10, KEEP), Instant::now());
        assert!(seen.first_sight(&["a"], start));
        assert!(!seen.first_sight(&["a"], start + KEEP - Duration::from_secs(1)));
        assert!(!seen.first_sight(&["a"], start + KEEP));
        assert!(seen.first_sight(&["a"], start + KEEP * 2));
    }

    #[test]
    fn the_memory_is_bounded_and_drops_the_oldest() {
        let (mut seen, now) = (Dedupe::new(3, KEEP), Instant::now());
        for id in ["a", "b", "c", "a", "d"] {
            seen.first_sight(&[id], now);
        }
        assert!(!seen.first_sight(&["a"], now));
        assert!(seen.first_sight(&["b"], now));
        assert!(seen.by_id.len() <= 3 && seen.by_age.len() <= 3);
    }

    proptest! {
        #[test]
        fn within_bounds_each_id_is_new_exactly_once(ids in prop::collection::vec("[a-f]", 0..60)) {
            let (mut seen, now) = (Dedupe::new(6, KEEP), Instant::now());
            let mut known = std::collections::HashSet::new();
            for id in &ids {
                prop_assert_eq!(seen.first_sight(&[id], now), known.insert(id.clone()));
                prop_assert_eq!(seen.by_id.len(), seen.by_age.len());
            }
        }
    }
}
