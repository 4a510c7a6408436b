//! Epoch numbers of any unit, and the bounds of belief.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The furthest future an instant may lie in and still be believed: a year's allowance is the longest there is.
pub const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 366);
/// Numbers below this are seconds to wait, not an epoch.
pub(in crate::failure) const SMALLEST_EPOCH: f64 = 1e8;

/// Reads a number: epoch in s, ms, µs or ns by its size, a small one as seconds from now. `None` for anything implausible,
/// zero and the past included.
pub(in crate::failure) fn instant(number: f64, now: Timestamp) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let seconds = match number {
        small if small < SMALLEST_EPOCH => {
            return after(Duration::try_from_secs_f64(small).ok()?, now);
        }
        seconds if seconds < 1e11 => seconds,
        millis if millis < 1e14 => millis / 1e3,
        micros if micros < 1e17 => micros / 1e6,
        nanos => nanos / 1e9,
    };
    let since_epoch = SignedDuration::try_from_secs_f64(seconds).ok()?;
    plausible(Timestamp::from_duration(since_epoch).ok()?, now)
}

pub(in crate::failure) fn after(wait: Duration, now: Timestamp) -> Option<Timestamp> {
    let wait = SignedDuration::try_from(wait).ok()?;
    plausible(now.checked_add(wait).ok()?, now)
}

/// An instant that can be a reset: neither past nor absurdly far. Providers ask it of every reset a field states, so that
/// nobody is told to wait until yesterday.
pub fn plausible(at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let ahead = at.duration_since(now);
    (ahead > SignedDuration::ZERO && ahead < HORIZON).then_some(at)
}
