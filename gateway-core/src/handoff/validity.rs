//! Whether a stored handoff still counts, now. The store moves states when it sweeps; this answers between two sweeps.

use jiff::{SignedDuration, Timestamp};

use super::{Handoff, HandoffState, PAYLOAD_VERSION, StoredHandoff};

/// How long a handoff lives at least.
pub const MIN_LIFE: SignedDuration = SignedDuration::from_hours(24);
/// How long after the soonest known reset it still lives.
pub const AFTER_RESET: SignedDuration = SignedDuration::from_hours(1);
/// How long it lives at most.
pub const MAX_LIFE: SignedDuration = SignedDuration::from_hours(8 * 24);
/// How far ahead of the clock a handoff may claim to be made: clocks are set back, but not by a year.
pub const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(1);

/// When a handoff made now expires.
pub fn expires_at(created_at: Timestamp, next_reset: Option<Timestamp>) -> Timestamp {
    let least = later(created_at, MIN_LIFE);
    let wanted = next_reset.map_or(least, |reset| later(reset, AFTER_RESET).max(least));
    wanted.min(later(created_at, MAX_LIFE))
}

impl Handoff {
    /// Whether this payload can be trusted at all: a version we know and a time of making that has come.
    pub fn is_sound(&self, now: Timestamp) -> bool {
        self.version <= PAYLOAD_VERSION && self.created_at <= later(now, MAX_AHEAD)
    }

    /// Whether its time is over; the last instant itself still counts.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now > self.expires_at.min(later(self.created_at, MAX_LIFE))
    }
}

impl StoredHandoff {
    /// The state as it is now: what waits but is not sound is corrupt, what waits too long is expired. Other states stay.
    pub fn standing(&self, now: Timestamp) -> HandoffState {
        match self.state {
            HandoffState::Armed | HandoffState::Stopped if !self.handoff.is_sound(now) => {
                HandoffState::Corrupt
            }
            HandoffState::Armed | HandoffState::Stopped if self.handoff.is_expired(now) => {
                HandoffState::Expired
            }
            state => state,
        }
    }
}

/// Saturates at the end of time.
fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
