//! The settings of routing, with their defaults and the ranges a configuration may use (section 3.0 of the contract).

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

use crate::ids::SubscriptionId;
use crate::spend::{SpendCaps, Usd};
use crate::usage::freshness::FRESH_MS;

const MINUTE_MS: i64 = 60_000;

/// How the eligible entries of a chain are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ChainOrder {
    /// The same model on another login first, then other subscriptions, then OpenCode Go, paid entries last.
    #[default]
    Tiered,
    /// As the person wrote them.
    Absolute,
}

/// Every setting of routing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The master switch of automatic switching, guard and admission; off unless somebody turns it on.
    pub enabled: bool,
    /// Whether a limited thread goes on by itself at the reset while routing is off.
    pub auto_resume: bool,
    pub order: ChainOrder,
    /// A reading this old or younger is fresh.
    pub fresh_max_ms: i64,
    /// A reset this near or nearer is waited for instead of moving.
    pub wait_within_ms: i64,
    /// The same before money is spent.
    pub paid_wait_within_ms: i64,
    /// A weekly or monthly window this full counts when a session window is out.
    pub weekly_nearly_gone_pct: f64,
    pub guard: Guard,
    /// Room a candidate must keep for the person.
    pub reserve_interactive_pct: f64,
    /// Room that work in the background leaves to the person.
    pub reserve_background_pct: f64,
    /// Automatic switches per thread in any rolling 24 h.
    pub cap_thread: u32,
    /// The same over the whole root: the brake on a runaway.
    pub cap_environment: u32,
    pub paid: Paid,
    /// The provider's own paid overage may carry a running turn.
    pub overage_allowed: bool,
    /// How long an open tool may finish after the limit was reported.
    pub drain_ms: i64,
    /// How long an interrupt may stay unanswered.
    pub interrupt_ack_ms: i64,
    /// How long a refused turn may take to end by itself.
    pub hold_grace_ms: i64,
    /// How long after a reset a waiting thread wakes; where in it depends on the thread alone.
    pub reset_jitter_ms: (i64, i64),
    /// How long a child waits for capacity before its parent is told.
    pub admission_max_wait_ms: i64,
    /// The most a handover may take of the next model's window.
    pub handoff_cap_tokens: u64,
}

/// The prediction before a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Points that must be left after the turn.
    pub margin_pct: f64,
    /// Factor on the expected burn.
    pub safety: f64,
    /// How many of the newest samples count.
    pub samples: usize,
    /// With fewer, only the hard mark trips.
    pub min_samples: usize,
    pub hard_pct: f64,
    /// A predictive switch needs a candidate at least this much emptier than the source.
    pub hysteresis_pct: f64,
}

/// Paid routes; off unless somebody turns them on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paid {
    pub enabled: bool,
    /// The metered subscriptions opted in; `None` = all of them.
    pub accounts: Option<Vec<SubscriptionId>>,
    pub caps: SpendCaps,
}

impl Paid {
    /// Whether money may be spent on this subscription at all.
    pub fn allows(&self, subscription: &SubscriptionId) -> bool {
        let opted_in = |accounts: &Vec<SubscriptionId>| accounts.contains(subscription);
        self.enabled && self.caps.allow_anything() && self.accounts.as_ref().is_none_or(opted_in)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: false,
            auto_resume: false,
            order: ChainOrder::Tiered,
            fresh_max_ms: FRESH_MS,
            wait_within_ms: 10 * MINUTE_MS,
            paid_wait_within_ms: 60 * MINUTE_MS,
            weekly_nearly_gone_pct: 95.0,
            guard: Guard::default(),
            reserve_interactive_pct: 5.0,
            reserve_background_pct: 15.0,
            cap_thread: 3,
            cap_environment: 20,
            paid: Paid::default(),
            overage_allowed: false,
            drain_ms: 120_000,
            interrupt_ack_ms: 30_000,
            hold_grace_ms: 15_000,
            reset_jitter_ms: (30_000, 90_000),
            admission_max_wait_ms: 24 * 60 * MINUTE_MS,
            handoff_cap_tokens: 32_000,
        }
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            margin_pct: 10.0,
            safety: 1.25,
            samples: 3,
            min_samples: 2,
            hard_pct: 97.0,
            hysteresis_pct: 10.0,
        }
    }
}

impl Default for Paid {
    fn default() -> Self {
        Self {
            enabled: false,
            accounts: None,
            caps: SpendCaps {
                day: Usd::from_micros(5_000_000),
                thread: Usd::from_micros(2_000_000),
            },
        }
    }
}

/// A setting outside of what a configuration may say.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{key}` is {value}, but must lie within {} to {}", .range.start(), .range.end())]
pub struct OutOfRange {
    pub key: &'static str,
    pub value: f64,
    pub range: RangeInclusive<f64>,
}

impl Settings {
    /// Lists what lies outside the ranges, in the contract's order and units. The decisions themselves take any value.
    pub fn out_of_range(&self) -> Vec<OutOfRange> {
        let rows = [
            ("fresh_max", minutes(self.fresh_max_ms), 1.0..=60.0),
            (
                "wait_if_reset_within",
                minutes(self.wait_within_ms),
                0.0..=60.0,
            ),
            (
                "paid_wait_if_reset_within",
                minutes(self.paid_wait_within_ms),
                0.0..=300.0,
            ),
            (
                "weekly_nearly_gone",
                self.weekly_nearly_gone_pct,
                80.0..=100.0,
            ),
            (
                "reserve.interactive",
                self.reserve_interactive_pct,
                0.0..=20.0,
            ),
            (
                "reserve.background",
                self.reserve_background_pct,
                10.0..=20.0,
            ),
            ("cap.thread", f64::from(self.cap_thread), 0.0..=20.0),
        ];
        rows.into_iter()
            .filter(|(_, value, range)| !range.contains(value))
            .map(|(key, value, range)| OutOfRange { key, value, range })
            .collect()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds a person sets are far below 2^53"
)]
fn minutes(ms: i64) -> f64 {
    ms as f64 / 60_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_off_and_within_their_ranges() {
        let settings = Settings::default();
        assert!(!settings.enabled && !settings.auto_resume && !settings.paid.enabled);
        assert_eq!(settings.out_of_range(), []);
    }

    #[test]
    fn what_is_out_of_range_is_named_with_its_range() {
        let settings = Settings {
            wait_within_ms: 61 * MINUTE_MS,
            cap_thread: 21,
            reserve_background_pct: 9.5,
            ..Settings::default()
        };
        let said: Vec<_> = settings
            .out_of_range()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            said,
            [
                "`wait_if_reset_within` is 61, but must lie within 0 to 60",
                "`reserve.background` is 9.5, but must lie within 10 to 20",
                "`cap.thread` is 21, but must lie within 0 to 20",
            ]
        );
    }

    #[test]
    fn money_needs_the_switch_the_account_and_both_caps() {
        let on = Paid {
            enabled: true,
            ..Paid::default()
        };
        let id = SubscriptionId::new("Fireworks");
        assert!(on.allows(&id) && !Paid::default().allows(&id));
        let accounts = |names: &[&str]| Paid {
            accounts: Some(names.iter().map(SubscriptionId::new).collect()),
            ..on.clone()
        };
        assert!(accounts(&["fireworks "]).allows(&id) && !accounts(&[]).allows(&id));
        for caps in [
            SpendCaps {
                day: Usd::ZERO,
                ..on.caps
            },
            SpendCaps {
                thread: Usd::ZERO,
                ..on.caps
            },
        ] {
            assert!(!Paid { caps, ..on.clone() }.allows(&id));
        }
    }
}
