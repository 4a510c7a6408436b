//! Spent or not, and until when, for one window. Whether the evidence is fresh enough to act on is the caller's policy;
//! the words "refused" and "until" mean the same for every caller.

use super::WindowStatus;
use crate::plan::{GateSettings, WindowView};

/// Percentages are floats: 99.9999999999 is a hundred.
pub const TOLERANCE: f64 = 1e-9;
/// How far ahead of our clock a stamp may be: two machines never quite agree.
pub const MAX_AHEAD_MS: i64 = 60_000;
/// A reset further away than this is not believed: no window is longer than a year.
pub const MAX_RESET_MS: i64 = 366 * 86_400_000;

/// Reads a provider's status word; trimmed, any case. An unknown word says nothing.
pub fn status(word: &str) -> WindowStatus {
    let word = word.trim();
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    if is("rejected") || is("exhausted") {
        WindowStatus::Rejected
    } else if is("allowed_warning") {
        WindowStatus::Warning
    } else if is("allowed") {
        WindowStatus::Allowed
    } else {
        WindowStatus::Unknown
    }
}

/// Whether a window refuses: an explicit status wins (a warning at 100 % is a served turn), else a hundred or more does.
pub fn refuses(status: WindowStatus, used_pct: Option<f64>) -> bool {
    match status {
        WindowStatus::Rejected => true,
        WindowStatus::Allowed | WindowStatus::Warning => false,
        WindowStatus::Unknown => used_pct.is_some_and(|used| used >= 100.0 - TOLERANCE),
    }
}

/// The instant until which this window blocks, if it does on evidence the gate trusts: refused, observed within the
/// settings' age and not ahead of the clock, with a believable reset beyond the horizon.
pub fn blocked_until_ms(
    window: &WindowView<'_>,
    settings: GateSettings,
    now_ms: i64,
) -> Option<i64> {
    if !refuses(window.status, window.used_pct) {
        return None;
    }
    let age = now_ms.saturating_sub(window.observed_at_ms?);
    let reset = window.resets_at_ms?;
    let left = reset.saturating_sub(now_ms);
    let trusted = age <= settings.max_age_ms && age >= -MAX_AHEAD_MS;
    (trusted && left > settings.horizon_ms && left <= MAX_RESET_MS).then_some(reset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_status_outranks_the_percentage() {
        use WindowStatus::{Allowed, Rejected, Unknown, Warning};
        let rows = [
            (Rejected, Some(12.0), true),
            (Rejected, None, true),
            (Warning, Some(100.0), false),
            (Allowed, Some(101.0), false),
            (Unknown, Some(100.0), true),
            (Unknown, Some(99.999_999_999_9), true),
            (Unknown, Some(99.9), false),
            (Unknown, None, false),
        ];
        for (status, used, want) in rows {
            assert_eq!(refuses(status, used), want, "{status:?} {used:?}");
        }
    }

    #[test]
    fn status_words_are_trimmed_and_folded() {
        assert_eq!(status(" Rejected "), WindowStatus::Rejected);
        assert_eq!(status("EXHAUSTED"), WindowStatus::Rejected);
        assert_eq!(status("Allowed_Warning"), WindowStatus::Warning);
        assert_eq!(status("allowed"), WindowStatus::Allowed);
        assert_eq!(status("blocked"), WindowStatus::Unknown);
    }
}
