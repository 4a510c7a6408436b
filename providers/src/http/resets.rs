//! When a refused subscription may be asked again, from what the answer states. Nothing stated, nothing derived.
//!
//! Precedence: the rejected window's own reset, then the vendor's absolute fields, its relative fields, `retry-after-ms`,
//! `retry-after`, the empty budget's reset header, and prose last. Relative values count from `now`, the receipt.

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Timestamp, tz};
use serde_json::Value;

use super::evidence::Evidence;

/// The furthest future an instant may lie in and still be believed.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 400);
/// Numbers below this in a reset field are seconds to wait, not an epoch.
const SMALLEST_EPOCH: f64 = 1e8;

/// The instant the answer states, if any.
pub(crate) fn stated(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    absolute_field(evidence, now)
        .or_else(|| relative_field(evidence, now))
        .or_else(|| retry_after(evidence, now))
        .or_else(|| empty_budget(evidence, now))
        .or_else(|| prose(evidence, now))
}

/// The instant stated by the vendor's own words or fields, without generic headers: what may be believed of money.
pub(crate) fn stated_by_vendor(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    absolute_field(evidence, now).or_else(|| date_in_prose(&evidence.message, now))
}

/// Reads an instant written as a number or text: epoch in s, ms or ns by digit count, a small number as seconds from
/// now, RFC 3339. `None` for anything implausible, zero and the past included.
pub(crate) fn instant(value: &Value, now: Timestamp) -> Option<Timestamp> {
    match value {
        Value::Number(number) => number.as_f64().and_then(|number| from_number(number, now)),
        Value::String(text) => instant_text(text, now),
        Value::Array(items) => instant(items.first()?, now),
        _ => None,
    }
}

/// Like [`instant`], for text.
pub(crate) fn instant_text(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) => from_number(number, now),
        Err(_) => plausible(text.parse().ok()?, now),
    }
}

/// Reads a duration as Go, protobuf and prose write it: `6m0s`, `88ms`, `34.07s`, `5 days 22 hours`. Stops at the first
/// word that is no part of one; `None` if it does not begin with one.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut seconds = 0.0;
    let mut any = false;
    loop {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_while(after.trim_start(), char::is_alphabetic);
        let (Ok(number), Some(scale)) = (number.parse::<f64>(), unit_seconds(unit)) else {
            break;
        };
        seconds += number * scale;
        any = true;
        rest = after.trim_start_matches([' ', '\n', ',']);
    }
    any.then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

fn from_number(number: f64, now: Timestamp) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let seconds = match number {
        small if small < SMALLEST_EPOCH => {
            return after(Duration::try_from_secs_f64(small).ok()?, now);
        }
        seconds if seconds < 1e11 => seconds,
        millis if millis < 1e14 => millis / 1e3,
        micros if micros < 1e17 => micros / 1e6,
        nanos => nanos / 1e9,
    };
    let since_epoch = SignedDuration::try_from_secs_f64(seconds).ok()?;
    plausible(Timestamp::from_duration(since_epoch).ok()?, now)
}

fn after(wait: Duration, now: Timestamp) -> Option<Timestamp> {
    let wait = SignedDuration::try_from(wait).ok()?;
    plausible(now.checked_add(wait).ok()?, now)
}

fn plausible(at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let ahead = at.duration_since(now);
    (ahead > SignedDuration::ZERO && ahead < HORIZON).then_some(at)
}

/// Vendor fields that name an instant, innermost object first.
fn absolute_field(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    const PLACES: &[&str] = &[
        "/resets_at",
        "/reset_at",
        "/resetsAt",
        "/metadata/quotaResetTimeStamp",
        "/metadata/headers/X-RateLimit-Reset",
        "/metadata/headers/x-ratelimit-reset",
    ];
    look(evidence, PLACES, |value| instant(value, now))
}

fn relative_field(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    // A per-day limit with a short delay beside it: the delay is false.
    let per_day = super::judge::per_day(evidence);
    const PLACES: &[&str] = &[
        "/resets_in_seconds",
        "/metadata/quotaResetDelay",
        "/retryDelay",
        "/retry_after_seconds",
        "/retry_after",
    ];
    look(evidence, PLACES, |value| {
        let wait = match value {
            Value::Number(number) => Duration::try_from_secs_f64(number.as_f64()?).ok()?,
            Value::String(text) => duration(text)?,
            _ => return None,
        };
        let believed = !(per_day && wait < Duration::from_secs(300));
        believed.then(|| after(wait, now)).flatten()
    })
}

fn look(
    evidence: &Evidence,
    places: &[&str],
    read: impl Fn(&Value) -> Option<Timestamp>,
) -> Option<Timestamp> {
    let found = |place: &&str| {
        let mut objects = evidence.objects.iter().rev();
        objects.find_map(|object| object.pointer(place).and_then(&read))
    };
    places.iter().find_map(found)
}

fn retry_after(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    let millis = evidence
        .header("retry-after-ms")
        .and_then(|text| text.parse::<f64>().ok());
    let wait = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok());
    wait.and_then(|wait| after(wait, now)).or_else(|| {
        let text = evidence.header("retry-after")?;
        match text.parse::<f64>() {
            Ok(seconds) => after(Duration::try_from_secs_f64(seconds).ok()?, now),
            Err(_) => after(http_date_wait(text, evidence, now)?, now),
        }
    })
}

/// How long until an HTTP date, by the server's own clock if it sent one.
fn http_date_wait(text: &str, evidence: &Evidence, now: Timestamp) -> Option<Duration> {
    let read = |text: &str| Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok();
    let from = evidence.header("date").and_then(read).unwrap_or(now);
    Duration::try_from(read(text)?.duration_since(from)).ok()
}

/// The reset of a budget that is empty; budgets with room are ignored, of several empty ones the latest counts.
fn empty_budget(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    let reset = |name: &str| {
        let text = evidence.header(name)?;
        instant_text(text, now).or_else(|| after(duration(text)?, now))
    };
    let budgets = evidence.headers.keys().filter_map(|name| {
        let name = name.as_str();
        let (reset_name, remaining) = match name.strip_prefix("x-ratelimit-remaining") {
            Some(rest) => (format!("x-ratelimit-reset{rest}"), name),
            None => {
                let budget = name
                    .strip_prefix("anthropic-ratelimit-")?
                    .strip_suffix("-remaining")?;
                (format!("anthropic-ratelimit-{budget}-reset"), name)
            }
        };
        let left: f64 = evidence.header(remaining)?.parse().ok()?;
        (left <= 0.0).then(|| reset(&reset_name)).flatten()
    });
    budgets.max()
}

fn prose(evidence: &Evidence, now: Timestamp) -> Option<Timestamp> {
    wait_in_prose(&evidence.text, now).or_else(|| date_in_prose(&evidence.message, now))
}

/// "try again in 1.574s", "Please wait 2 minutes", "Resets in 108h48m29s".
fn wait_in_prose(text: &str, now: Timestamp) -> Option<Timestamp> {
    const LEADS: &[&str] = &[
        "try again in ",
        "try again after ",
        "retry in ",
        "retry after ",
        "resets in ",
        "reset in ",
        "please wait ",
        "come back in ",
    ];
    LEADS.iter().find_map(|lead| {
        let (_, rest) = text.split_once(lead)?;
        after(duration(rest)?, now)
    })
}

/// "Resets at 10:00 UTC", "regain access on 2026-04-01 at 00:00 UTC", an RFC 3339 instant, and the GLM vendors'
/// zone-less stamps, which are UTC+8.
fn date_in_prose(message: &str, now: Timestamp) -> Option<Timestamp> {
    let words: Vec<&str> = message
        .split(|c: char| c.is_whitespace() || c == ',' || c == '。')
        .map(|word| word.trim_matches(['.', '(', ')', '"']))
        .filter(|word| !word.is_empty())
        .collect();
    if let Some(at) = words.iter().find_map(|word| word.parse::<Timestamp>().ok()) {
        return plausible(at, now);
    }
    let date = words
        .iter()
        .position(|word| word.parse::<Date>().is_ok() && word.len() == 10);
    let Some(place) = date else {
        return clock_in_utc(message, &words, now);
    };
    let date: Date = words.get(place)?.parse().ok()?;
    let next: Vec<&str> = words
        .iter()
        .skip(place + 1)
        .copied()
        .filter(|word| *word != "at")
        .take(2)
        .collect();
    let time = clock(next.first()?)?;
    let zone = match next.get(1) {
        Some(&"UTC") => tz::Offset::UTC,
        _ if message.contains("重置") || message.contains("limit will reset at") => tz::offset(8),
        _ => return None,
    };
    plausible(zone.to_timestamp(date.to_datetime(time)).ok()?, now)
}

/// The next time it is this o'clock in UTC.
fn clock_in_utc(message: &str, words: &[&str], now: Timestamp) -> Option<Timestamp> {
    if !message.to_lowercase().contains("reset") {
        return None;
    }
    let pair = words.windows(2).find(|pair| pair.get(1) == Some(&"UTC"))?;
    let time = clock(pair.first()?)?;
    let today = tz::Offset::UTC.to_datetime(now).date();
    let at = |date: Date| tz::Offset::UTC.to_timestamp(date.to_datetime(time)).ok();
    at(today)
        .filter(|at| *at > now)
        .or_else(|| at(today.tomorrow().ok()?))
        .and_then(|at| plausible(at, now))
}

/// `10:00` or `07:41:44`.
fn clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':').map(str::parse::<i8>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().unwrap_or(Ok(0)).ok()?;
    Time::new(hour, minute, second, 0).ok()
}
