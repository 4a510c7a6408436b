//! Rate limits as fixed windows: the first request opens one, the limit-th and following are refused until it ends.
//!
//! Discord and Slack publish neither their algorithm nor most sizes; fixed windows are what their headers describe. Windows
//! may run faster than the clock (`speed`), so that load tests need not wait; the waits told to a client shrink with them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::between;

/// `requests` per `per`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) requests: u32,
    pub(crate) per: Duration,
}

impl Rate {
    pub(crate) const fn new(requests: u32, per: Duration) -> Self {
        Self { requests, per }
    }
}

/// What a window says about one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed {
        remaining: u32,
        resets_after: Duration,
    },
    Refused {
        retry_after: Duration,
    },
}

/// All windows of one fake.
pub(crate) struct Limits {
    speed: f64,
    windows: HashMap<String, Window>,
}

struct Window {
    opened: Timestamp,
    used: u32,
}

impl Limits {
    /// `speed` 20.0 makes 5 per 5 s into 5 per 0.25 s.
    pub(crate) fn new(speed: f64) -> Self {
        Self {
            speed,
            windows: HashMap::new(),
        }
    }

    /// Counts one request in the window named `key`.
    pub(crate) fn count(&mut self, key: &str, rate: Rate, now: Timestamp) -> Verdict {
        let per = rate.per.div_f64(self.speed);
        let window = self.windows.entry(key.to_owned()).or_insert(Window {
            opened: now,
            used: 0,
        });
        if between(window.opened, now) >= per {
            *window = Window {
                opened: now,
                used: 0,
            };
        }
        let resets_after = per.saturating_sub(between(window.opened, now));
        if window.used >= rate.requests {
            return Verdict::Refused {
                retry_after: resets_after,
            };
        }
        window.used += 1;
        Verdict::Passed {
            remaining: rate.requests - window.used,
            resets_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixth_request_in_a_window_waits_for_its_end() {
        let start = Timestamp::UNIX_EPOCH;
        let five = Rate::new(5, Duration::from_secs(5));
        let mut limits = Limits::new(1.0);
        for left in (0..5).rev() {
            let verdict = limits.count("c", five, start);
            assert!(matches!(verdict, Verdict::Passed { remaining, .. } if remaining == left));
        }
        let later = start + Duration::from_secs(2);
        assert_eq!(
            limits.count("c", five, later),
            Verdict::Refused {
                retry_after: Duration::from_secs(3)
            }
        );
        let after = start + Duration::from_secs(5);
        assert!(matches!(
            limits.count("c", five, after),
            Verdict::Passed { remaining: 4, .. }
        ));
    }

    #[test]
    fn twenty_times_faster_shrinks_window_and_wait() {
        let start = Timestamp::UNIX_EPOCH;
        let one = Rate::new(1, Duration::from_secs(5));
        let mut limits = Limits::new(20.0);
        limits.count("c", one, start);
        assert_eq!(
            limits.count("c", one, start),
            Verdict::Refused {
                retry_after: Duration::from_millis(250)
            }
        );
    }
}
