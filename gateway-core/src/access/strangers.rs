//! What somebody unknown is told: one line, once a day, and nothing that costs anything.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// The line. It names nobody and promises nothing.
pub const STRANGER_LINE: &str = "Sorry, I only answer people this gateway's operator has named.";

const ONCE_PER: SignedDuration = SignedDuration::from_hours(24);

/// The most people that are remembered; beyond it new ones are told nothing, so that a crowd makes no noise.
const CAPACITY: usize = 10_000;

/// Who was told, and when. In memory: a restart may say it once more.
#[derive(Debug, Default)]
pub struct Strangers {
    told: HashMap<String, Timestamp>,
}

impl Strangers {
    /// Whether a person may be told now; if so, notes it. `person` must be unique over platforms.
    pub fn may_tell(&mut self, person: &str, now: Timestamp) -> bool {
        let is_recent = |told: &Timestamp| now.duration_since(*told) < ONCE_PER;
        if self.told.get(person).is_some_and(is_recent) {
            return false;
        }
        if self.told.len() >= CAPACITY {
            self.told.retain(|_, told| is_recent(told));
        }
        if self.told.len() >= CAPACITY {
            return false;
        }
        self.told.insert(person.to_owned(), now);
        true
    }
}
