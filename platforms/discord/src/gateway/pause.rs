//! How long to wait before the next connection. Pure.

use std::time::Duration;

/// IDENTIFYs of one bot: one in 5 s (Discord's page on the gateway).
pub(crate) const IDENTIFY_EVERY: Duration = Duration::from_secs(5);

/// The longest pause. IDENTIFYs are limited to 1,000 a day as well, which one in two minutes never reaches.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// The pause after `failures` connections in a row that never came to life; `share` (0.0 to 1.0) spreads clients that were
/// all cut off at once. The first attempt of all goes out at once.
pub(crate) fn before_next(failures: u32, share: f64) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let doubled = Duration::from_secs(1) * 2_u32.saturating_pow((failures - 1).min(10));
    doubled
        .min(PAUSE_MAX)
        .mul_f64(0.5 + share.clamp(0.0, 1.0) / 2.0)
}

/// The pause after "your session is invalid": a random one of 1 to 5 s (same page).
pub(crate) fn before_new_session(share: f64) -> Duration {
    Duration::from_secs(1) + Duration::from_secs(4).mul_f64(share.clamp(0.0, 1.0))
}

/// After how many failed attempts in a row to resume the main address is used again, and after how many the session is
/// given up: a dead resume address must not trap the connection.
pub(crate) const MAIN_ADDRESS_AFTER: u32 = 2;
pub(crate) const ANEW_AFTER: u32 = 6;

/// A number in 0.0 to 1.0 that differs from call to call; for spreading, not for secrets.
pub(crate) fn share() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_are_spread_and_end_growing() {
        assert_eq!(before_next(0, 1.0), Duration::ZERO);
        let at_most: Vec<u64> = (1..=10).map(|n| before_next(n, 1.0).as_secs()).collect();
        assert_eq!(at_most, [1, 2, 4, 8, 16, 32, 64, 120, 120, 120]);
        assert_eq!(before_next(3, 0.0), Duration::from_secs(2));
        assert_eq!(before_next(u32::MAX, 1.0), PAUSE_MAX);
        let a_day = 86_400 / before_next(u32::MAX, 0.0).as_secs();
        assert!(
            a_day * 2 / 3 < 1_000,
            "on average, {a_day} at the very most"
        );
        assert!(
            (0..100)
                .map(|_| share())
                .all(|share| (0.0..=1.0).contains(&share))
        );
    }
}
