//! Resets and waits in the fields of a body, found by what their names mean, not by a list of vendors.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::clock::Clock;
use super::{duration, number};

/// How the value of a field is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::failure) enum Form {
    Instant,
    Seconds,
    Millis,
}

/// Whether the window a field belongs to has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::failure) enum Room {
    Unknown,
    Left,
    Spent,
}

/// One reset or wait as a field states it.
#[derive(Debug, Clone)]
pub(in crate::failure) struct Stated {
    pub(in crate::failure) form: Form,
    pub(in crate::failure) room: Room,
    /// How far inside it was found.
    pub(in crate::failure) depth: usize,
    /// `retryDelay` and its kin: a hint for the next try, not the reset of a window.
    pub(in crate::failure) hint: bool,
    value: Value,
}

/// Endings of member names in lower case without `_` and `-`, longest first where one ends in another.
const ENDINGS: &[(&str, Form, bool)] = &[
    ("resetsinms", Form::Millis, false),
    ("resetinms", Form::Millis, false),
    ("resetafterms", Form::Millis, false),
    ("retryafterms", Form::Millis, true),
    ("retrydelayms", Form::Millis, true),
    ("waitms", Form::Millis, true),
    ("resetsinseconds", Form::Seconds, false),
    ("resetinseconds", Form::Seconds, false),
    ("resetsins", Form::Seconds, false),
    ("resetins", Form::Seconds, false),
    ("resetsinsec", Form::Seconds, false),
    ("resetsin", Form::Seconds, false),
    ("resetin", Form::Seconds, false),
    ("resetafterseconds", Form::Seconds, false),
    ("resetafters", Form::Seconds, false),
    ("resetafter", Form::Seconds, false),
    ("resetseconds", Form::Seconds, false),
    ("secondsuntilreset", Form::Seconds, false),
    ("resetdelay", Form::Seconds, false),
    ("retryafterseconds", Form::Seconds, true),
    ("retryafters", Form::Seconds, true),
    ("retryafter", Form::Seconds, true),
    ("retryinseconds", Form::Seconds, true),
    ("retryin", Form::Seconds, true),
    ("retrydelay", Form::Seconds, true),
    ("waitseconds", Form::Seconds, true),
    ("cooldownseconds", Form::Seconds, true),
    ("resetsat", Form::Instant, false),
    ("resetat", Form::Instant, false),
    ("resettime", Form::Instant, false),
    ("resettimestamp", Form::Instant, false),
    ("resetdate", Form::Instant, false),
    ("resetson", Form::Instant, false),
    ("resetepoch", Form::Instant, false),
    ("nextreset", Form::Instant, false),
    ("retryat", Form::Instant, false),
    ("availableat", Form::Instant, false),
    ("unblockedat", Form::Instant, false),
    ("blockeduntil", Form::Instant, false),
    ("nextflushtime", Form::Instant, false),
    ("nextresettime", Form::Instant, false),
];

/// Adds every reset and wait among the members of an object.
pub(in crate::failure) fn collect(
    fields: &Map<String, Value>,
    depth: usize,
    into: &mut Vec<Stated>,
) {
    let plain: Vec<(String, &Value)> = fields
        .iter()
        .filter(|(key, _)| key.len() <= 60)
        .map(|(key, value)| (plain(key), value))
        .collect();
    let retry_event = plain
        .iter()
        .any(|(key, value)| key == "type" && *value == "retry");
    for (key, value) in &plain {
        let next = (retry_event && key == "next").then_some(("", Form::Instant, true));
        let ending = ENDINGS
            .iter()
            .find_map(|(ending, form, hint)| Some((key.strip_suffix(ending)?, *form, *hint)));
        let Some((window, form, hint)) = next.or(ending) else {
            continue;
        };
        let scalar = matches!(value, Value::Number(_) | Value::String(_) | Value::Array(_));
        if scalar
            && !window.contains("overage")
            && !window.contains("rate_limit_reset_credit")
            && into.len() < 64
        {
            into.push(Stated {
                form,
                room: room(&plain, window),
                depth,
                hint,
                value: first(value).clone(),
            });
        }
    }
}

fn plain(key: &str) -> String {
    let letters = key.chars().take(120).filter(|c| c.is_ascii_alphanumeric());
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// Some send a list of one.
fn first(value: &Value) -> &Value {
    value
        .as_array()
        .and_then(|items| items.first())
        .unwrap_or(value)
}

/// Whether the members beside a reset say that its window has room. `window` is what its name begins with.
fn room(fields: &[(String, &Value)], window: &str) -> Room {
    let of_window = |key: &str| key.strip_prefix(window).map(str::to_owned);
    for (key, value) in fields {
        let Some(field) = of_window(key) else {
            continue;
        };
        let number = value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok());
        match (field.as_str(), number) {
            ("remaining" | "remainingpercent" | "left", Some(left)) => {
                return if left <= 0.0 { Room::Spent } else { Room::Left };
            }
            (
                "usedpercent" | "usedpercentage" | "percent" | "percentage" | "usedpct"
                | "percentused",
                Some(used),
            ) => {
                return if used >= 100.0 {
                    Room::Spent
                } else {
                    Room::Left
                };
            }
            // A share of 1 here; the usage endpoint writes points of 100. Between them lies nothing that is not spent.
            ("utilization", Some(used)) => {
                let spent = (0.995..=2.0).contains(&used) || used >= 99.5;
                return if spent { Room::Spent } else { Room::Left };
            }
            _ => {}
        }
        match (field.as_str(), *value) {
            ("limitreached", Value::Bool(reached)) => {
                return if *reached { Room::Spent } else { Room::Left };
            }
            ("status", Value::String(status)) => match status.as_str() {
                "rejected" | "denied" | "exceeded" | "exhausted" | "blocked" | "limited" => {
                    return Room::Spent;
                }
                "allowed" | "allowed_warning" | "ok" | "active" => return Room::Left,
                _ => {}
            },
            _ => {}
        }
    }
    Room::Unknown
}

impl Stated {
    /// The instant it states; relative values count from the receipt.
    pub(in crate::failure) fn instant(&self, clock: &Clock<'_>) -> Option<Timestamp> {
        match self.form {
            Form::Instant => match &self.value {
                // Some write the wait into a field that is named like an instant.
                Value::String(text) => clock
                    .written(text)
                    .or_else(|| clock.after(duration::whole(text)?)),
                value => number::instant(value.as_f64()?, clock.now),
            },
            // Some write the instant into a field that is named like a wait.
            Form::Seconds => match self
                .value
                .as_f64()
                .filter(|value| *value >= number::SMALLEST_EPOCH)
            {
                Some(epoch) => number::instant(epoch, clock.now),
                None => clock.after(self.wait(1.0)?),
            },
            Form::Millis => clock.after(self.wait(0.001)?),
        }
    }

    /// The wait it states; `None` for an instant and for what is no wait.
    fn wait(&self, scale: f64) -> Option<Duration> {
        let seconds = match &self.value {
            Value::String(text) => match text.trim().parse::<f64>() {
                Ok(number) => number * scale,
                Err(_) => return duration::whole(text),
            },
            value => value.as_f64()? * scale,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }
}
