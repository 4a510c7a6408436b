//! Which source a payload is from, told by its shape: for `baton explain usage`, where nobody names it. Providers always do.

use serde_json::{Value, json};

use super::generic::{self, Unit};
use super::{
    Headers, MAX_WINDOWS, Origin, claude, codex, copilot, cursor, fields, gemini, glm, grok, hub,
    kimi, minimax, opencode_go, openrouter, ratelimit_headers,
};
use crate::usage::{Reading, lenient};

/// Wrappers around wrappers end here.
const MAX_WRAPS: usize = 6;

/// Reads a payload of any source; empty = nothing in it was understood.
pub fn readings(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let mut readings = unwrap(payload, origin, MAX_WRAPS);
    readings.truncate(MAX_WINDOWS);
    readings
}

/// Reads a screen as people paste it, shown at `now` on a host in `zone`; empty = nothing in it was understood.
pub fn screen(
    text: &str,
    now: jiff::Timestamp,
    zone: Option<&jiff::tz::TimeZone>,
    origin: &Origin<'_>,
) -> Vec<Reading> {
    generic::screen::readings(text, now, zone, origin)
}

/// When an object's values were true, if it says so in any of the usual words.
pub fn stamp(object: &serde_json::Map<String, Value>) -> Option<jiff::Timestamp> {
    generic::stamp(object)
}

fn unwrap(payload: &Value, origin: &Origin<'_>, wraps: usize) -> Vec<Reading> {
    if let Some(text) = payload.as_str() {
        return match lenient::parse(text) {
            Ok(inner) if wraps > 0 && !inner.is_string() => unwrap(&inner, origin, wraps - 1),
            _ => Vec::new(),
        };
    }
    if is_headers(payload) {
        return headers(&Headers::of_json(payload), None, origin);
    }
    let known = known(payload, origin);
    if !known.is_empty() {
        return known;
    }
    const WRAPPERS: [&str; 10] = [
        "headers", "params", "result", "response", "payload", "body", "data", "info", "snapshot",
        "event",
    ];
    if wraps > 0 {
        for inner in WRAPPERS.iter().filter_map(|name| payload.get(name)) {
            let stamp = payload.as_object().and_then(generic::stamp);
            let origin = Origin {
                observed_at: stamp.or(origin.observed_at),
                ..*origin
            };
            let found = unwrap(inner, &origin, wraps - 1);
            if !found.is_empty() {
                return found;
            }
        }
    }
    generic::readings(payload, unit(payload), origin)
}

/// What the values and a named origin say about shares that do not state their unit.
fn unit(payload: &Value) -> Unit {
    match generic::unit(payload) {
        Unit::Unknown => match fields::text_of(payload, &["source", "unit", "scale", "origin"]) {
            Some(word)
                if word.contains("header")
                    || word.contains("event")
                    || word.contains("fraction") =>
            {
                Unit::Fraction
            }
            Some(word) if word.contains("oauth") || word.contains("percent") => Unit::Points,
            _ => Unit::Unknown,
        },
        told => told,
    }
}

fn known(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let has = |pointer: &str| payload.pointer(pointer).is_some();
    let object = |pointer: &str| payload.pointer(pointer).is_some_and(Value::is_object);
    let rows = |pointer: &str| payload.pointer(pointer).and_then(Value::as_array);
    let row_has = |pointer: &str, member: &str| {
        rows(pointer).is_some_and(|rows| rows.iter().any(|row| row.get(member).is_some()))
    };
    if has("/rate_limit_info")
        || has("/quotaLimits")
        || has("/rateLimitType")
        || has("/unifiedWindows")
    {
        claude::rate_limit_info(payload, origin)
    } else if has("/rate_limit/primary_window")
        || has("/rate_limit/secondary_window")
        || has("/additional_rate_limits")
    {
        codex::usage(payload, origin)
    } else if object("/primary_window") || object("/secondary_window") {
        codex::usage(&json!({ "rate_limit": payload }), origin)
    } else if is_codex_snapshot(payload) {
        codex::rate_limits(payload, origin)
    } else if has("/quota_snapshots") || has("/limited_user_quotas") {
        copilot::user(payload, origin)
    } else if has("/model_remains") || has("/data/model_remains") {
        minimax::remains(payload, origin)
    } else if row_has("/limits", "nextResetTime")
        || row_has("/data/limits", "nextResetTime")
        || row_has("/limits", "currentValue")
        || row_has("/data/limits", "currentValue")
        || row_has("/data/limits", "percentage")
    {
        glm::quota(payload, origin)
    } else if row_has("/limits", "detail") || object("/usages") || has("/usage/resetTime") {
        kimi::usages(payload, origin)
    } else if object("/usage/rolling")
        || object("/usage/weekly")
        || object("/rollingUsage")
        || object("/weeklyUsage")
    {
        opencode_go::usage(payload, origin)
    } else if has("/limit_remaining")
        || has("/data/limit_remaining")
        || has("/limitRemaining")
        || has("/data/limitRemaining")
        || has("/total_credits")
        || has("/data/total_credits")
    {
        openrouter::key(payload, origin)
    } else if has("/planUsage") || has("/individualUsage/plan") {
        cursor::period(payload, origin)
    } else if row_has("/buckets", "remainingFraction")
        || row_has("/buckets", "modelId")
        || models_with_quota(payload)
        || groups_with_buckets(payload)
    {
        gemini::quota(payload, origin)
    } else if has("/config/creditUsagePercent")
        || has("/config/monthlyLimit")
        || has("/creditUsagePercent")
    {
        grok::billing(payload, origin).into_iter().collect()
    } else if is_claude_usage(payload) && unit(payload) == Unit::Points {
        claude::usage(payload, origin)
    } else if row_has("/files", "provider") || row_has("/files", "quota") {
        hub::files(payload)
            .flat_map(|file| hub::cooldowns(file, origin))
            .collect()
    } else {
        Vec::new()
    }
}

/// Reads the headers of an answer, whoever it is from.
pub fn headers(headers: &Headers, model: Option<&str>, origin: &Origin<'_>) -> Vec<Reading> {
    let mut found = claude::headers(headers, origin);
    found.extend(codex::headers(headers, origin));
    found.extend(copilot::headers(headers, origin));
    found.extend(ratelimit_headers::readings(headers, model, origin));
    found
}

fn is_headers(payload: &Value) -> bool {
    const NAMES: [&str; 4] = [
        "anthropic-ratelimit-",
        "x-codex-",
        "x-ratelimit-",
        "x-quota-snapshot-",
    ];
    let members = payload.as_object().into_iter().flatten();
    members
        .map(|(name, _)| name.to_ascii_lowercase())
        .any(|name| NAMES.iter().any(|prefix| name.starts_with(prefix)))
}

/// What the payload calls its windows itself, each with the share stated there.
pub fn names(payload: &Value, origin: &Origin<'_>) -> Vec<(String, f64)> {
    generic::names(payload, unit(payload), origin)
}

fn is_codex_snapshot(payload: &Value) -> bool {
    const PLACES: [&str; 4] = ["", "/rateLimits", "/rate_limits", "/rateLimitsByLimitId"];
    PLACES
        .iter()
        .filter_map(|place| payload.pointer(place))
        .any(|place| {
            let slot = |name: &str| place.get(name).is_some_and(|slot| slot.is_object());
            slot("primary") || slot("secondary") || place.get("codex").is_some_and(Value::is_object)
        })
}

fn models_with_quota(payload: &Value) -> bool {
    let models = payload.get("models").and_then(Value::as_object);
    models.is_some_and(|models| {
        models
            .values()
            .any(|model| model.get("quotaInfo").is_some())
    })
}

fn groups_with_buckets(payload: &Value) -> bool {
    let groups = payload.get("groups").and_then(Value::as_array);
    groups.is_some_and(|groups| {
        groups
            .iter()
            .any(|group| group.get("buckets").is_some_and(Value::is_array))
    })
}

fn is_claude_usage(payload: &Value) -> bool {
    let limits = payload.get("rate_limits").unwrap_or(payload);
    let names = ["five_hour", "seven_day", "model_scoped"];
    let named = names.iter().any(|name| {
        limits.get(name).is_some_and(|window| {
            window.is_array()
                || window.get("utilization").is_some()
                || window.get("used_percentage").is_some()
        })
    });
    let listed = limits.get("limits").and_then(Value::as_array);
    named
        || listed.is_some_and(|rows| {
            rows.iter()
                .any(|row| row.get("kind").is_some() && row.get("percent").is_some())
        })
}
