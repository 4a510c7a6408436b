//! Members of foreign objects, read tolerantly.

use jiff::Timestamp;
use serde_json::Value;

use super::Origin;
use crate::usage::{WindowStatus, instant};

/// Numbers below this in a reset field are seconds to wait, not an epoch.
const SMALLEST_EPOCH: f64 = 1e8;
/// 2001 to 2103: no reset lies outside, whatever a field says.
const PLAUSIBLE_S: std::ops::Range<i64> = 1_000_000_000..4_200_000_000;

/// The first of these members that is there and not `null`.
pub(super) fn member<'v>(object: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names
        .iter()
        .filter_map(|name| object.get(name))
        .find(|value| !value.is_null())
}

/// A number, also as text and with a percent sign. Finite; may be negative.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number: f64 = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().trim_end_matches('%').trim_end().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// The first of these members that is a number.
pub(super) fn number_of(object: &Value, names: &[&str]) -> Option<f64> {
    names
        .iter()
        .find_map(|name| object.get(name).and_then(number))
}

/// The first of these members that is text and not blank, trimmed.
pub(super) fn text_of<'v>(object: &'v Value, names: &[&str]) -> Option<&'v str> {
    names
        .iter()
        .filter_map(|name| object.get(name)?.as_str())
        .map(str::trim)
        .find(|text| !text.is_empty())
}

/// The first of these members that is a truth value, also as text.
pub(super) fn flag_of(object: &Value, names: &[&str]) -> Option<bool> {
    names.iter().find_map(|name| match object.get(name)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    })
}

/// A share in points of 100, without the noise of binary fractions. Negative is unknown.
pub(super) fn points(percent: f64) -> Option<f64> {
    let rounded = (percent * 1e4).round() / 1e4;
    (rounded.is_finite() && rounded >= 0.0).then_some(rounded.abs())
}

/// A share stated as 0 to 1, in points of 100.
pub(super) fn fraction(share: f64) -> Option<f64> {
    points(share * 100.0)
}

/// A share stated as what is left of 100. More left than there is, is nothing used; a debt is legal.
pub(super) fn left(percent: f64) -> Option<f64> {
    points((100.0 - percent).max(0.0))
}

/// The share of a counted allowance. No allowance, no share.
pub(super) fn counted(used: f64, of: f64) -> Option<f64> {
    (of > 0.0)
        .then(|| points(used.max(0.0) / of * 100.0))
        .flatten()
}

/// An instant in any form; a small number counts from the origin's time.
pub(super) fn reset(origin: &Origin<'_>, value: &Value) -> Option<Timestamp> {
    match number(value) {
        Some(wait) if wait < SMALLEST_EPOCH => origin.after(wait),
        _ => instant::instant(value).filter(|at| is_plausible(*at)),
    }
}

/// The reset of a window: an absolute member before a relative one (relative values drift).
pub(super) fn reset_of(
    origin: &Origin<'_>,
    window: &Value,
    absolute: &[&str],
    in_seconds: &[&str],
) -> Option<Timestamp> {
    let stated = absolute
        .iter()
        .filter_map(|name| window.get(name))
        .find_map(|value| reset(origin, value));
    stated.or_else(|| number_of(window, in_seconds).and_then(|wait| origin.after(wait)))
}

pub(super) fn is_plausible(at: Timestamp) -> bool {
    PLAUSIBLE_S.contains(&at.as_second())
}

/// Minutes as a window's length; zero and nonsense are unknown.
pub(super) fn minutes(number: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    (1.0..=1e7)
        .contains(&number)
        .then_some(number.round() as u32)
}

/// What a status word says, in the words of many programs. Words that may be about something else than the quota (`active`,
/// `error`) say nothing.
pub(super) fn status(word: &str) -> WindowStatus {
    let word: String = word
        .trim()
        .chars()
        .map(|c| match c {
            '-' | ' ' => '_',
            c => c.to_ascii_lowercase(),
        })
        .collect();
    match word.as_str() {
        "allowed" | "ok" | "within_limit" | "under_limit" => WindowStatus::Allowed,
        "allowed_warning" | "warning" | "near_limit" | "approaching" | "approaching_limit" => {
            WindowStatus::Warning
        }
        "rejected"
        | "exhausted"
        | "denied"
        | "blocked"
        | "limited"
        | "rate_limited"
        | "limit_reached"
        | "rate_limit_reached"
        | "usage_limit_reached"
        | "quota_exceeded"
        | "exceeded"
        | "exceeds"
        | "over_limit"
        | "depleted"
        | "spent" => WindowStatus::Rejected,
        _ => WindowStatus::Unknown,
    }
}

/// A wait in seconds as programs and people write it: `6m0s`, `88ms`, `1h 5m`, `5 hours`, `in 3 days`. The whole text must be
/// one; a bare number is not.
pub(super) fn wait(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    rest = rest.strip_prefix("in ").unwrap_or(rest);
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = cut(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = cut(after.trim_start(), char::is_alphabetic);
        seconds += number.parse::<f64>().ok()? * unit_seconds(unit)?;
        rest = after.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    (seconds > 0.0).then_some(seconds)
}

fn cut(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// An instant in any form, a date (its beginning in UTC), or a wait in words.
pub(super) fn reset_words(origin: &Origin<'_>, value: &Value) -> Option<Timestamp> {
    let words = || {
        let text = value.as_str()?.trim();
        let midnight = || reset(origin, &Value::from(format!("{text}T00:00:00Z")));
        wait(text).map_or_else(midnight, |wait| origin.after(wait))
    };
    reset(origin, value).or_else(words)
}
