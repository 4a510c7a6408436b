//! Resets and waits in response headers.

use std::time::Duration;

use jiff::Timestamp;

use super::clock::{self, Clock};
use super::{duration, number};
use crate::headers::Headers;

/// The reset of a window of the plan that the headers call spent; of several the latest, since all of them must pass.
pub(super) fn spent_window(headers: &Headers, clock: &Clock<'_>) -> Option<Timestamp> {
    let resets = headers.iter().filter_map(|(name, value)| {
        if let Some(window) = unified_window(name).filter(|_| value == "rejected") {
            return unified_reset(headers, window, clock);
        }
        let window = name
            .strip_prefix("x-codex-")?
            .strip_suffix("-used-percent")?;
        let spent = value.parse::<f64>().is_ok_and(|used| used >= 100.0);
        spent.then(|| codex_reset(headers, window, clock)).flatten()
    });
    resets.max().or_else(|| {
        let rejected = headers.get("anthropic-ratelimit-unified-status") == Some("rejected");
        rejected
            .then(|| clock.written(headers.get("anthropic-ratelimit-unified-reset")?))
            .flatten()
    })
}

/// `5h` of `anthropic-ratelimit-unified-5h-status`; overage is money, not a window.
fn unified_window(name: &str) -> Option<&str> {
    let window = name
        .strip_prefix("anthropic-ratelimit-unified-")?
        .strip_suffix("-status")?;
    (window != "overage").then_some(window)
}

fn unified_reset(headers: &Headers, window: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    clock.written(headers.get(&format!("anthropic-ratelimit-unified-{window}-reset"))?)
}

fn codex_reset(headers: &Headers, window: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    let field = |name: &str| headers.get(&format!("x-codex-{window}-{name}"));
    let relative = || seconds(field("reset-after-seconds")?, clock);
    field("reset-at")
        .and_then(|at| clock.written(at))
        .or_else(relative)
}

/// `retry-after-ms`, then `retry-after`.
pub(super) fn retry_after(headers: &Headers, clock: &Clock<'_>) -> Option<Timestamp> {
    let millis = || {
        let text = headers
            .get("retry-after-ms")
            .or_else(|| headers.get("x-ms-retry-after-ms"))?;
        let seconds: f64 = text.parse().ok()?;
        clock.after(Duration::try_from_secs_f64(seconds / 1e3).ok()?)
    };
    millis().or_else(|| {
        [
            "retry-after",
            "x-retry-after",
            "x-ratelimit-reset-after",
            "ratelimit-reset-after",
        ]
        .iter()
        .find_map(|name| seconds_or_date(headers, headers.get(name)?, clock))
    })
}

fn seconds_or_date(headers: &Headers, text: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    if let Some(at) = clock::http_date(text) {
        // Counted by the server's own clock, so that ours may be off.
        let from = headers
            .get("date")
            .and_then(clock::http_date)
            .unwrap_or(clock.now);
        return clock.after(Duration::try_from(at.duration_since(from)).ok()?);
    }
    seconds(text, clock).or_else(|| clock.written(text))
}

fn seconds(text: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    // Two of the same name, joined on the way.
    let text = text.split_once(',').map_or(text, |(first, _)| first.trim());
    match text.parse::<f64>() {
        Ok(number) if number >= number::SMALLEST_EPOCH => number::instant(number, clock.now),
        Ok(number) => clock.after(Duration::try_from_secs_f64(number).ok()?),
        Err(_) => clock.after(duration::whole(text)?),
    }
}

/// Prefixes of budget headers and what their names end in: (`limit` family, reset, remaining).
const FAMILIES: &[(&str, &str)] = &[
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
    ("ratelimitbysize-reset", "ratelimitbysize-remaining"),
    ("x-rate-limit-reset", "x-rate-limit-remaining"),
];

/// The reset of a budget that is empty. Budgets with room are ignored; of several empty ones the latest counts.
pub(super) fn empty_budget(headers: &Headers, clock: &Clock<'_>) -> Option<Timestamp> {
    let resets = headers.iter().filter_map(|(name, value)| {
        let remaining = remaining_of(name)?;
        match headers.get(&remaining).map(str::parse::<f64>) {
            Some(Ok(left)) if left > 0.0 => None,
            _ => clock
                .written(value)
                .or_else(|| clock.after(duration::whole(value)?)),
        }
    });
    resets.max().or_else(|| standard(headers, clock))
}

/// The header that says how much is left of the budget whose reset `name` states.
fn remaining_of(name: &str) -> Option<String> {
    for (reset, remaining) in FAMILIES {
        if let Some(rest) = name.strip_prefix(reset) {
            return (!rest.starts_with("-after")).then(|| format!("{remaining}{rest}"));
        }
    }
    let budget = name
        .strip_prefix("anthropic-ratelimit-")?
        .strip_suffix("-reset")?;
    (!budget.starts_with("unified")).then(|| format!("anthropic-ratelimit-{budget}-remaining"))
}

/// `ratelimit: limit=100, remaining=0, reset=50` of the IETF's draft, also `"default";r=0;t=50`.
fn standard(headers: &Headers, clock: &Clock<'_>) -> Option<Timestamp> {
    let text = headers.get("ratelimit")?;
    let field = |names: [&str; 2]| {
        text.split([',', ';']).find_map(|part| {
            let (name, value) = part.trim().split_once('=')?;
            names
                .contains(&name.trim())
                .then(|| value.trim().parse::<f64>().ok())
                .flatten()
        })
    };
    let empty = field(["remaining", "r"]).is_none_or(|left| left <= 0.0);
    let seconds = field(["reset", "t"]).filter(|_| empty)?;
    clock.after(Duration::try_from_secs_f64(seconds).ok()?)
}
