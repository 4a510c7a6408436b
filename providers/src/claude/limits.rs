//! `rate_limit_event` to readings, and the refusal it may mean.
//!
//! `status: rejected` alone is not a refusal: without `resetsAt` and `rateLimitType` it is a throttled server
//! (`oauth-429-no-unified-headers`), and with `overageInUse` the answer came, paid for beyond the plan
//! (`rl-overage-in-use-oauth`). Readings repeat what each window says even then: the plan's window *is* spent, and the
//! next turn shall know before it pays again. Utilization is 0 to 1 in this event, whatever its value.

use gateway_core::ids::SubscriptionId;
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};
use jiff::Timestamp;
use serde_json::Value;

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
    /// The latest reset of the rejected windows (all of them must be open again); `None` = not stated.
    pub(super) retry_at: Option<Timestamp>,
}

/// Reads `rate_limit_info`.
pub(super) fn read(info: &Value, subscription: &SubscriptionId, now: Timestamp) -> LimitNotice {
    let windows = windows(info);
    let refusal = refusal(info, &windows);
    let reading = |window: Window| Reading {
        subscription: subscription.clone(),
        scope: scope(&window.id),
        used_pct: window.used_pct,
        status: window.status,
        resets_at: window.resets_at,
        duration_mins: duration_mins(&window.id),
        observed_at: Some(now),
        source: ReadingSource::Event,
        window: window.id,
    };
    LimitNotice {
        readings: windows.into_iter().map(reading).collect(),
        refusal,
    }
}

struct Window {
    id: String,
    status: WindowStatus,
    used_pct: Option<f64>,
    resets_at: Option<Timestamp>,
}

/// The listed windows, and the one the event is about if it is not listed (per-model windows never are).
fn windows(info: &Value) -> Vec<Window> {
    let listed = info.get("unifiedWindows").and_then(Value::as_object);
    let mut windows: Vec<Window> = listed
        .into_iter()
        .flatten()
        .map(|(id, facts)| window(id, facts))
        .collect();
    if let Some(id) = info.get("rateLimitType").and_then(Value::as_str)
        && !windows.iter().any(|window| window.id == id)
    {
        windows.push(window(id, info));
    }
    windows
}

fn window(id: &str, facts: &Value) -> Window {
    Window {
        id: id.to_owned(),
        status: status(facts.get("status")),
        used_pct: facts.get("utilization").and_then(Value::as_f64).map(points),
        resets_at: facts.get("resetsAt").and_then(instant),
    }
}

fn refusal(info: &Value, windows: &[Window]) -> Option<Refusal> {
    let resets_at = info.get("resetsAt").and_then(instant);
    let named = info.get("rateLimitType").and_then(Value::as_str);
    let paid_beyond = info.get("overageInUse").and_then(Value::as_bool) == Some(true);
    let rejected = status(info.get("status")) == WindowStatus::Rejected;
    if !rejected || paid_beyond || (resets_at.is_none() && named.is_none()) {
        return None;
    }
    let others = windows
        .iter()
        .filter(|window| window.status == WindowStatus::Rejected)
        .filter_map(|window| window.resets_at);
    Some(Refusal {
        window: named.map(str::to_owned),
        retry_at: others.chain(resets_at).max(),
    })
}

fn status(value: Option<&Value>) -> WindowStatus {
    match value.and_then(Value::as_str) {
        Some("allowed") => WindowStatus::Allowed,
        Some("allowed_warning") => WindowStatus::Warning,
        Some("rejected" | "exhausted") => WindowStatus::Rejected,
        _ => WindowStatus::Unknown,
    }
}

/// 0..1 to points of 100, to two decimals.
fn points(utilization: f64) -> f64 {
    (utilization * 10_000.0).round() / 100.0
}

/// Epoch seconds, or milli-, micro-, nanoseconds by their size. Zero, negative and implausible values are no instant.
fn instant(value: &Value) -> Option<Timestamp> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_f64()?,
    };
    let seconds = match number {
        n if n >= 1e17 => n / 1e9,
        n if n >= 1e14 => n / 1e6,
        n if n >= 1e11 => n / 1e3,
        n => n,
    };
    if !(1e9..4.2e9).contains(&seconds) {
        return None; // before 2001 or after 2103
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range is checked above"
    )]
    Timestamp::from_second(seconds as i64).ok()
}

fn scope(window: &str) -> Option<WindowScope> {
    match window {
        "five_hour" | "seven_day" => Some(WindowScope::Account),
        "overage" => Some(WindowScope::Spend),
        _ => model_of(window).map(|model| WindowScope::Model(model.to_owned())),
    }
}

/// The model family a window limits; `None` = the account, or not known.
pub(super) fn model_of(window: &str) -> Option<&str> {
    match window.strip_prefix("seven_day_") {
        Some("overage_included" | "oauth_apps") | None => None,
        model => model,
    }
}

fn duration_mins(window: &str) -> Option<u32> {
    match window {
        "five_hour" => Some(300),
        _ if window.starts_with("seven_day") => Some(10_080),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notice(info: Value) -> LimitNotice {
        read(&info, &"sub".into(), Timestamp::UNIX_EPOCH)
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
