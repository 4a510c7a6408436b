//! Windows are known by their length, not by the slot they stand in: a weekly window may sit in `primary` today and in
//! `secondary` tomorrow, and must stay one window of the registry.

use jiff::Timestamp;

/// The five-hour session.
pub(super) const SESSION: u32 = 300;
pub(super) const DAY: u32 = 1_440;
pub(super) const WEEK: u32 = 10_080;
/// Thirty days, as providers write it.
pub(super) const MONTH: u32 = 43_200;

/// The registry's id of an account-wide window of this length; `None` = no usual length.
pub(super) fn id(minutes: u32) -> Option<&'static str> {
    match minutes {
        299..=301 => Some("five_hour"),
        1_439..=1_441 => Some("daily"),
        10_079..=10_081 => Some("seven_day"),
        40_320..=44_640 => Some("monthly"),
        _ => None,
    }
}

/// The length a window must at least have, told by its reset: a session cannot reset in four days. `None` = it tells nothing.
pub(super) fn at_least(
    observed_at: Option<Timestamp>,
    resets_at: Option<Timestamp>,
) -> Option<u32> {
    /// Clocks differ, and windows are rounded up to the hour.
    const SLACK_S: i64 = 7_200;
    let left = resets_at?.as_second() - observed_at?.as_second();
    [WEEK, SESSION]
        .into_iter()
        .find(|minutes| left > i64::from(*minutes) * 60 + SLACK_S)
        .map(|shorter| if shorter == WEEK { MONTH } else { WEEK })
}
