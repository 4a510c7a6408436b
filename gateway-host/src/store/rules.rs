//! The decisions every implementation shares: legal moves of a handoff, which reading wins, how long things are kept.
//! Pure; no I/O. The invariant: two implementations that follow this table answer the same.

use gateway_core::handoff::{Handoff, HandoffState, PAYLOAD_VERSION};
use gateway_core::usage::{Reading, merge};
use jiff::Timestamp;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Ended handoffs and ended turns are kept this long, in milliseconds.
pub(super) const KEEP_ENDED_MS: i64 = 30 * DAY_MS;
/// Corrupt handoffs are kept this long for somebody to look at, in milliseconds.
pub(super) const KEEP_CORRUPT_MS: i64 = 7 * DAY_MS;
/// Ids of messages already seen, in milliseconds; no platform delivers again after that.
pub(super) const KEEP_INBOUND_MS: i64 = 7 * DAY_MS;
/// The journal and the request of an answered turn, in milliseconds; the history keeps the exchange itself.
pub(super) const KEEP_ANSWERED_TEXT_MS: i64 = 3 * DAY_MS;

/// Buttons after they expired, in milliseconds: so long a stale one says precisely why.
pub(super) const KEEP_ACTIONS_MS: i64 = 7 * DAY_MS;
/// Earlier conversations that are listed.
pub(super) const EARLIER_MAX: u32 = 100;

/// Whether a handoff may be moved by hand from one state to another. Claims are made by `open_turn` alone.
pub(super) fn may_move(from: HandoffState, to: HandoffState) -> bool {
    use HandoffState::{Acked, Armed, Chained, Claimed, Corrupt, Discarded, Expired, Stopped};
    match from {
        Armed => matches!(to, Discarded | Expired | Chained | Corrupt),
        Claimed => matches!(to, Armed | Acked | Chained | Corrupt),
        Stopped => matches!(to, Discarded | Corrupt),
        Acked | Discarded | Chained | Expired | Corrupt => false,
    }
}

/// Whether a handoff in this state is over: it is purged some time after a sweep first saw it so.
pub(super) fn is_over(state: HandoffState) -> bool {
    !matches!(state, HandoffState::Armed | HandoffState::Claimed)
}

/// How long a handoff in this state is kept after it was over, in milliseconds.
pub(super) fn keep_ms(state: HandoffState) -> i64 {
    match state {
        HandoffState::Corrupt => KEEP_CORRUPT_MS,
        _ => KEEP_ENDED_MS,
    }
}

/// Whether the list of every live handoff leaves this state out.
pub(super) fn is_settled(state: HandoffState) -> bool {
    matches!(
        state,
        HandoffState::Acked | HandoffState::Chained | HandoffState::Discarded
    )
}

/// Whether `new` replaces `old` in the registry: it counts at least as much. What is stamped ahead of the clock gives way
/// to anything sane, or a clock that was set back would keep fresh refusals out for as long as it had been ahead.
pub(super) fn replaces(old: &Reading, new: &Reading, now: Timestamp) -> bool {
    merge::compare(new, old, now).is_ge()
}

/// Whether this version can read the payload.
pub(super) fn is_readable(handoff: &Handoff) -> bool {
    handoff.version <= PAYLOAD_VERSION
}

/// The instant as stores keep it: whole milliseconds.
pub(super) fn in_ms(at: Timestamp) -> Timestamp {
    from_ms(at.as_millisecond())
}

/// The instant of a stored number; one outside the calendar is a damaged row and reads as its edge.
pub(super) fn from_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_stays_over() {
        use HandoffState::*;
        let all = [
            Armed, Claimed, Acked, Stopped, Discarded, Chained, Expired, Corrupt,
        ];
        for from in [Acked, Discarded, Chained, Expired, Corrupt] {
            assert!(all.iter().all(|to| !may_move(from, *to)), "{from:?}");
        }
        assert!(all.iter().all(|from| !may_move(*from, Claimed)));
        assert!(!may_move(Stopped, Armed));
        assert!(may_move(Claimed, Armed));
    }
}
