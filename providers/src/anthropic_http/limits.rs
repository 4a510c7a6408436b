//! `anthropic-ratelimit-unified-*` headers to readings of the account's windows.
//!
//! Only the unified windows are windows of the account. `anthropic-ratelimit-tokens-*` and its kin are minute budgets:
//! they never become readings. Utilization is a fraction here (1.02 = 102 %), whatever its size.

use gateway_core::ids::SubscriptionId;
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};
use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::http::resets::instant_text;

const PREFIX: &str = "anthropic-ratelimit-unified-";

/// Every window the headers speak of, sorted by id.
pub(super) fn readings(
    headers: &HeaderMap,
    subscription: &SubscriptionId,
    now: Timestamp,
) -> Vec<Reading> {
    let mut shorts: Vec<&str> = headers
        .keys()
        .filter_map(|name| name.as_str().strip_prefix(PREFIX))
        .filter_map(|rest| rest.rsplit_once('-'))
        .filter(|(_, field)| matches!(*field, "status" | "reset" | "utilization"))
        .map(|(short, _)| short)
        .collect();
    shorts.sort_unstable();
    shorts.dedup();
    let read = |short: &str| reading(headers, short, subscription, now);
    let mut readings: Vec<Reading> = shorts.into_iter().filter_map(read).collect();
    readings.extend(representative(headers, &readings, subscription, now));
    readings
}

/// The window that refuses: of several the one that resets last.
pub(super) fn refused(
    headers: &HeaderMap,
    subscription: &SubscriptionId,
    now: Timestamp,
) -> Option<Reading> {
    let readings = readings(headers, subscription, now).into_iter();
    readings
        .filter(|reading| reading.status == WindowStatus::Rejected)
        .max_by_key(|reading| reading.resets_at)
}

fn reading(
    headers: &HeaderMap,
    short: &str,
    subscription: &SubscriptionId,
    now: Timestamp,
) -> Option<Reading> {
    let (window, scope, duration_mins) = window(short)?;
    let field = |name: &str| text(headers, &format!("{PREFIX}{short}-{name}"));
    let used = field("utilization").and_then(|text| text.parse::<f64>().ok());
    Some(Reading {
        subscription: subscription.clone(),
        window,
        scope: Some(scope),
        used_pct: used
            .filter(|used| used.is_finite() && *used >= 0.0)
            .map(percent),
        status: field("status").map_or(WindowStatus::Unknown, status),
        resets_at: field("reset").and_then(|text| instant_text(text, now)),
        duration_mins: Some(duration_mins),
        observed_at: Some(now),
        source: ReadingSource::Header,
    })
}

/// The window named as the one that counts, if it has no headers of its own.
fn representative(
    headers: &HeaderMap,
    known: &[Reading],
    subscription: &SubscriptionId,
    now: Timestamp,
) -> Option<Reading> {
    let claim = text(headers, &format!("{PREFIX}representative-claim"))?;
    let short = match claim.strip_prefix("seven_day") {
        Some(rest) => format!("7d{rest}"),
        None if claim == "five_hour" => "5h".to_owned(),
        None => return None,
    };
    if known.iter().any(|reading| reading.window == claim) {
        return None;
    }
    let mut reading = reading(headers, &short, subscription, now)?;
    reading.status =
        text(headers, &format!("{PREFIX}status")).map_or(WindowStatus::Unknown, status);
    reading.resets_at =
        text(headers, &format!("{PREFIX}reset")).and_then(|text| instant_text(text, now));
    Some(reading)
}

/// `5h`, `7d`, `7d_opus`: id, scope and length in minutes. Overage and anything unknown is no window.
fn window(short: &str) -> Option<(String, WindowScope, u32)> {
    match short {
        "5h" => Some(("five_hour".into(), WindowScope::Account, 300)),
        "7d" => Some(("seven_day".into(), WindowScope::Account, 10_080)),
        _ => {
            let model = short
                .strip_prefix("7d_")
                .filter(|model| !model.is_empty())?;
            Some((
                format!("seven_day_{model}"),
                WindowScope::Model(model.into()),
                10_080,
            ))
        }
    }
}

fn status(word: &str) -> WindowStatus {
    match word {
        "allowed" => WindowStatus::Allowed,
        "allowed_warning" => WindowStatus::Warning,
        "rejected" | "exhausted" => WindowStatus::Rejected,
        _ => WindowStatus::Unknown,
    }
}

/// A fraction in points of 100, without the noise of binary fractions.
fn percent(fraction: f64) -> f64 {
    (fraction * 1e6).round() / 1e4
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}
