//! Codex: app-server snapshots, rollout lines, response headers, and the usage endpoint of the ChatGPT backend.
//!
//! The same limits in four dialects (Codex 0.1xx): the app-server writes camelCase, minutes and epoch seconds, and leaves
//! out of an update what did not change; a rollout's `token_count` writes snake_case and minutes; the endpoint
//! `wham/usage` writes seconds; headers carry one family per bucket. `used_percent` counts to 100 in all four.
//!
//! A bucket other than `codex` limits only the models metered on it, and replaces the main bucket for them. Code review
//! has a bucket that no turn draws on. Credits extend an allowance and never limit it. A stated "limit reached" outranks
//! percentages, which are seen to stick at 99: then the fullest window of the bucket is the one that refuses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::fields::{self, flag_of, member, number_of, text_of};
use super::{Headers, MAX_WINDOWS, Origin, span};
use crate::usage::{Reading, WindowScope, WindowStatus};

/// The bucket of ordinary models.
const MAIN: &str = "codex";
const SLOTS: [&str; 2] = ["primary", "secondary"];
const BY_LIMIT: [&str; 2] = ["rateLimitsByLimitId", "rate_limits_by_limit_id"];
const ONE: [&str; 2] = ["rateLimits", "rate_limits"];
const HEADER: &str = "x-codex-";

/// Reads `account/rateLimits/read`, `account/rateLimits/updated` (its `params`), or a `token_count` with `rate_limits`.
/// A bare snapshot is read too. For updates of a running app-server use [`RateLimits`], which remembers what they omit.
pub fn rate_limits(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    RateLimits::default().read(payload, origin)
}

/// What an app-server connection has said so far: omitted and null members of an update keep their last values.
#[derive(Debug, Clone, Default)]
pub struct RateLimits {
    /// Bucket to its snapshot, completed.
    known: BTreeMap<String, Value>,
}

impl RateLimits {
    /// Reads a snapshot or an update; returns readings of the windows it mentions and of no others (the others were not
    /// observed now).
    pub fn read(&mut self, payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
        let snapshots = snapshots(payload);
        let read = |(bucket, snapshot): (String, &Value)| {
            let known = self.known.entry(bucket.clone()).or_insert(Value::Null);
            complete(known, snapshot);
            let mentioned = SLOTS
                .into_iter()
                .filter(|slot| snapshot.get(slot).is_some_and(|window| !window.is_null()))
                .filter_map(|slot| Some((slot, window(known.get(slot)?, origin)?)));
            family(
                &bucket,
                mentioned.collect(),
                verdict(snapshot),
                snapshot,
                origin,
            )
        };
        snapshots.into_iter().flat_map(read).collect()
    }
}

/// Reads `GET /backend-api/wham/usage`: seconds, a family per feature.
pub fn usage(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let main = member(payload, &["rate_limit", "rateLimit"]).map(|limit| (MAIN.to_owned(), limit));
    let review = member(payload, &["code_review_rate_limit", "codeReviewRateLimit"])
        .map(|limit| ("code_review".to_owned(), limit));
    let more = member(payload, &["additional_rate_limits", "additionalRateLimits"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|more| {
            let feature = text_of(more, &["metered_feature", "meteredFeature", "limit_name"])?;
            Some((
                feature.to_owned(),
                member(more, &["rate_limit", "rateLimit"])?,
            ))
        });
    let families = main.into_iter().chain(review).chain(more.take(MAX_WINDOWS));
    let read = |(bucket, limit): (String, &Value)| {
        let windows = SLOTS.into_iter().filter_map(|slot| {
            let named = [format!("{slot}_window"), format!("{slot}Window")];
            let object = named.iter().find_map(|name| limit.get(name))?;
            Some((slot, window(object, origin)?))
        });
        family(&bucket, windows.collect(), verdict(limit), payload, origin)
    };
    families.flat_map(read).collect()
}

/// Reads the `x-codex-*` headers of an answer: `x-codex-primary-…` is the main bucket, `x-codex-<bucket>-primary-…` another.
pub fn headers(headers: &Headers, origin: &Origin<'_>) -> Vec<Reading> {
    let mut buckets: BTreeMap<&str, Vec<(&'static str, Window)>> = BTreeMap::new();
    for rest in headers.after(HEADER) {
        for slot in SLOTS {
            let Some(bucket) = rest.strip_suffix(&format!("{slot}-used-percent")) else {
                continue;
            };
            if let Some(window) = header_window(headers, &format!("{HEADER}{bucket}{slot}"), origin)
            {
                let bucket = bucket.trim_end_matches('-');
                buckets.entry(bucket).or_default().push((slot, window));
            }
        }
    }
    let active = headers.get("x-codex-active-limit").map_or(MAIN, short);
    let reached = headers.get("x-codex-rate-limit-reached-type").is_some();
    let read = |(bucket, windows): (&str, Vec<_>)| {
        let bucket = if bucket.is_empty() { MAIN } else { bucket };
        let verdict = if reached && short(bucket) == active {
            WindowStatus::Rejected
        } else {
            WindowStatus::Unknown
        };
        family(&full(bucket), windows, verdict, &Value::Null, origin)
    };
    buckets.into_iter().flat_map(read).collect()
}

/// `codex_bengalfox` in one header is `bengalfox` in the names of others.
fn short(bucket: &str) -> &str {
    bucket.strip_prefix("codex_").unwrap_or(bucket)
}

fn full(bucket: &str) -> String {
    if bucket == MAIN || bucket.starts_with("codex_") {
        bucket.to_owned()
    } else {
        format!("codex_{bucket}")
    }
}

/// The snapshots of a payload by bucket; the map by id says more than the single one beside it.
fn snapshots(payload: &Value) -> Vec<(String, &Value)> {
    let by_limit = member(payload, &BY_LIMIT).and_then(Value::as_object);
    let mut found: Vec<(String, &Value)> = by_limit
        .into_iter()
        .flatten()
        .filter(|(_, snapshot)| snapshot.is_object())
        .take(MAX_WINDOWS)
        .map(|(id, snapshot)| (id.clone(), snapshot))
        .collect();
    let single = member(payload, &ONE).unwrap_or(payload);
    let id = text_of(single, &["limitId", "limit_id"]).unwrap_or(MAIN);
    if single.is_object() && !found.iter().any(|(known, _)| known == id) {
        found.push((id.to_owned(), single));
    }
    found
}

/// Lays an update over what is known; `null` changes nothing.
fn complete(known: &mut Value, update: &Value) {
    match (known, update) {
        (_, Value::Null) => {}
        (Value::Object(known), Value::Object(update)) => {
            for (name, value) in update {
                complete(known.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (known, Value::Object(update)) => {
            let mut object = Map::new();
            for (name, value) in update {
                complete(object.entry(name.clone()).or_insert(Value::Null), value);
            }
            *known = Value::Object(object);
        }
        (known, update) => *known = update.clone(),
    }
}

struct Window {
    used_pct: Option<f64>,
    minutes: Option<u32>,
    resets_at: Option<Timestamp>,
}

fn window(object: &Value, origin: &Origin<'_>) -> Option<Window> {
    if !object.is_object() {
        return None;
    }
    let used = number_of(object, &["usedPercent", "used_percent"]);
    let minutes = number_of(
        object,
        &[
            "windowDurationMins",
            "window_minutes",
            "windowMinutes",
            "window_duration_mins",
        ],
    )
    .or_else(|| {
        let seconds = [
            "limit_window_seconds",
            "limitWindowSeconds",
            "window_seconds",
        ];
        Some(number_of(object, &seconds)? / 60.0)
    });
    let resets_at = fields::reset_of(
        origin,
        object,
        &["resetsAt", "resets_at", "resetAt", "reset_at"],
        &[
            "resets_in_seconds",
            "resetsInSeconds",
            "reset_after_seconds",
            "resetAfterSeconds",
        ],
    );
    real(used, minutes, resets_at)
}

fn header_window(headers: &Headers, prefix: &str, origin: &Origin<'_>) -> Option<Window> {
    let field = |name: &str| headers.number(&format!("{prefix}-{name}"));
    let at = field("reset-at").and_then(|at| fields::reset(origin, &at.into()));
    let resets_at = at.or_else(|| origin.after(field("reset-after-seconds")?));
    real(field("used-percent"), field("window-minutes"), resets_at)
}

/// A window of no minutes and nothing used is a placeholder, and one of which nothing is said is none.
fn real(used: Option<f64>, minutes: Option<f64>, resets_at: Option<Timestamp>) -> Option<Window> {
    let placeholder = minutes == Some(0.0) && used.unwrap_or(0.0) == 0.0;
    let silent = used.is_none() && minutes.is_none() && resets_at.is_none();
    (!placeholder && !silent).then_some(Window {
        used_pct: used.and_then(fields::points),
        minutes: minutes.and_then(fields::minutes),
        resets_at,
    })
}

/// What a family says as a whole.
fn verdict(limit: &Value) -> WindowStatus {
    let reached = flag_of(limit, &["limit_reached", "limitReached"]) == Some(true)
        || text_of(limit, &["rateLimitReachedType", "rate_limit_reached_type"]).is_some();
    match flag_of(limit, &["allowed"]) {
        _ if reached => WindowStatus::Rejected,
        Some(false) => WindowStatus::Rejected,
        Some(true) => WindowStatus::Allowed,
        None => WindowStatus::Unknown,
    }
}

fn family(
    bucket: &str,
    windows: Vec<(&'static str, Window)>,
    verdict: WindowStatus,
    payload: &Value,
    origin: &Origin<'_>,
) -> Vec<Reading> {
    let free = matches!(
        text_of(payload, &["planType", "plan_type"]),
        Some("free" | "go")
    );
    let mut readings: Vec<Reading> = Vec::new();
    for (slot, window) in windows {
        let mins = window.minutes.or_else(|| {
            span::at_least(origin.observed_at, window.resets_at).or(Some(usual_length(slot, free)))
        });
        let id = mins.and_then(span::id).unwrap_or(slot);
        let taken = readings.iter().any(|reading| reading.window == id);
        readings.push(Reading {
            scope: Some(scope(bucket)),
            used_pct: window.used_pct,
            resets_at: window.resets_at,
            duration_mins: mins,
            ..origin.reading(if taken { slot } else { id })
        });
    }
    judge(&mut readings, verdict);
    readings
}

fn usual_length(slot: &str, free: bool) -> u32 {
    match slot {
        "primary" if free => span::MONTH,
        "primary" => span::SESSION,
        _ => span::WEEK,
    }
}

fn scope(bucket: &str) -> WindowScope {
    if bucket.eq_ignore_ascii_case(MAIN) {
        WindowScope::Account
    } else {
        WindowScope::Bucket(bucket.to_owned())
    }
}

/// Spreads the family's word over its windows: "allowed" holds for each, "reached" for the full ones, else the fullest.
fn judge(readings: &mut [Reading], verdict: WindowStatus) {
    let used = |reading: &Reading| reading.used_pct.unwrap_or(-1.0);
    let fullest = readings.iter().map(used).fold(-1.0, f64::max);
    for reading in readings {
        reading.status = match verdict {
            WindowStatus::Rejected if used(reading) >= fullest.min(100.0) => verdict,
            WindowStatus::Rejected => WindowStatus::Unknown,
            other => other,
        };
    }
}

#[cfg(test)]
mod tests;
