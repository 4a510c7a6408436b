//! `rate_limit_event` to readings (the core reads it), and the refusal it may mean.
//!
//! `status: rejected` alone is not a refusal: without `resetsAt` and `rateLimitType` it is a throttled server
//! (`oauth-429-no-unified-headers`), and with `overageInUse` the answer came, paid for beyond the plan
//! (`rl-overage-in-use-oauth`). Readings repeat what each window says even then: the plan's window *is* spent, and the
//! next turn shall know before it pays again.

use gateway_core::failure::plausible;
use gateway_core::ids::SubscriptionId;
use gateway_core::usage::source::{Origin, claude};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::Timestamp;
use serde_json::Value;

pub(super) use gateway_core::usage::source::claude::model_of;

/// What one event says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LimitNotice {
    pub(super) readings: Vec<Reading>,
    pub(super) refusal: Option<Refusal>,
}

/// A window that is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// As the event names it; `None` = not named.
    pub(super) window: Option<String>,
    /// The latest reset of the rejected windows (all of them must be open again), if it is ahead and not absurdly far;
    /// `None` = not stated.
    pub(super) retry_at: Option<Timestamp>,
}

/// Reads `rate_limit_info`.
pub(super) fn read(info: &Value, subscription: &SubscriptionId, now: Timestamp) -> LimitNotice {
    let origin = Origin::new(subscription, now, ReadingSource::Event);
    let readings = claude::rate_limit_info(info, &origin);
    LimitNotice {
        refusal: refusal(info, &readings, &origin, now),
        readings,
    }
}

fn refusal(
    info: &Value,
    readings: &[Reading],
    origin: &Origin<'_>,
    now: Timestamp,
) -> Option<Refusal> {
    let resets_at = claude::resets_at(info, origin);
    let named = info.get("rateLimitType").and_then(Value::as_str);
    let paid_beyond = info.get("overageInUse").and_then(Value::as_bool) == Some(true);
    if !claude::is_rejected(info) || paid_beyond || (resets_at.is_none() && named.is_none()) {
        return None;
    }
    let others = readings
        .iter()
        .filter(|reading| reading.status == WindowStatus::Rejected)
        .filter_map(|reading| reading.resets_at);
    Some(Refusal {
        window: named.map(str::to_owned),
        retry_at: others
            .chain(resets_at)
            .filter_map(|at| plausible(at, now))
            .max(),
    })
}

#[cfg(test)]
mod tests {
    use gateway_core::usage::WindowScope;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_795_999_000).unwrap()
    }

    fn notice(info: Value) -> LimitNotice {
        read(&info, &"sub".into(), now())
    }

    #[test]
    fn rejected_is_a_refusal_only_with_a_reset_or_a_window() {
        let rows = [
            (json!({"status": "rejected"}), false),
            (json!({"status": "rejected", "resetsAt": 0}), false),
            (
                json!({"status": "rejected", "resetsAt": 1_796_000_000}),
                true,
            ),
            (
                json!({"status": "rejected", "rateLimitType": "five_hour"}),
                true,
            ),
            (
                json!({"status": "allowed", "rateLimitType": "five_hour"}),
                false,
            ),
            (
                json!({"status": "rejected", "rateLimitType": "five_hour", "overageInUse": true}),
                false,
            ),
            (json!("rejected"), false),
        ];
        for (info, expected) in rows {
            assert_eq!(notice(info.clone()).refusal.is_some(), expected, "{info}");
        }
    }

    #[test]
    fn the_latest_reset_of_the_rejected_windows_counts() {
        let refusal = notice(json!({
            "status": "rejected", "rateLimitType": "five_hour", "resetsAt": 1_796_000_000,
            "unifiedWindows": {
                "five_hour": {"status": "rejected", "resetsAt": 1_796_000_000},
                "seven_day": {"status": "rejected", "resetsAt": 1_796_200_000},
                "seven_day_opus": {"status": "allowed", "resetsAt": 1_796_900_000},
            },
        }));
        let until = refusal.refusal.unwrap().retry_at.unwrap();
        assert_eq!(until.as_second(), 1_796_200_000);
    }

    #[test]
    fn a_reset_that_is_past_or_absurd_is_none() {
        for resets_at in [1_700_960_930_i64, 1_795_999_000, 3_999_999_999] {
            let info =
                json!({"status": "rejected", "rateLimitType": "five_hour", "resetsAt": resets_at});
            let refusal = notice(info).refusal.expect("a refusal all the same");
            assert_eq!(refusal.retry_at, None, "{resets_at}");
        }
    }

    #[test]
    fn a_window_the_event_is_about_is_read_even_if_not_listed() {
        let readings = notice(json!({
            "status": "rejected", "rateLimitType": "seven_day_opus", "resetsAt": 1_796_000_000_000_i64,
            "unifiedWindows": {"five_hour": {"status": "allowed", "utilization": 0.07}},
        }))
        .readings;
        assert_eq!(
            (readings[0].window.as_str(), readings[0].used_pct),
            ("five_hour", Some(7.0))
        );
        assert_eq!(
            readings[1].scope,
            Some(WindowScope::Model("opus".to_owned()))
        );
        assert_eq!(readings[1].resets_at.unwrap().as_second(), 1_796_000_000);
    }
}
