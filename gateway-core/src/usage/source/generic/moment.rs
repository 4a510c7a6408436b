//! What members say about time: when a window resets, how long it is, when it was looked at.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::naming::{self, plain};
use crate::usage::instant;
use crate::usage::source::{Origin, fields};

const ENDS: [&str; 19] = [
    "enddate",
    "nextrefreshtime",
    "refreshesat",
    "endtime",
    "endsat",
    "endat",
    "windowend",
    "windowends",
    "windowendsat",
    "periodend",
    "currentperiodend",
    "billingperiodend",
    "billingcycleend",
    "renewsat",
    "renewat",
    "renewal",
    "nextrecoverat",
    "recoversat",
    "end",
];
const STAMPS: [&str; 21] = [
    "laststatusat",
    "at",
    "lastobservedat",
    "observedat",
    "checkedat",
    "fetchedat",
    "updatedat",
    "lastupdated",
    "lastupdatedat",
    "capturedat",
    "asof",
    "timestamp",
    "collectedat",
    "lastchecked",
    "lastcheckedat",
    "cachedat",
    "savedat",
    "generatedat",
    "readat",
    "snapshotat",
    "ts",
];

/// When the object's values were true.
pub(crate) fn stamp(object: &Map<String, Value>) -> Option<Timestamp> {
    let stamps = object.iter().filter(|(name, _)| is_stamp(&plain(name)));
    stamps
        .filter_map(|(_, value)| instant::instant(value))
        .find(|at| fields::is_plausible(*at))
}

/// A stamp's name, which may end in what it counts: `fetchedAtMs`.
fn is_stamp(name: &str) -> bool {
    const ENDINGS: [&str; 5] = ["ms", "utc", "unix", "epoch", "iso"];
    STAMPS.contains(&name)
        || ENDINGS.iter().any(|ending| {
            name.strip_suffix(ending)
                .is_some_and(|name| STAMPS.contains(&name))
        })
}

/// When the window opens again: an absolute member before a relative one.
pub(super) fn reset(object: &Map<String, Value>, origin: &Origin<'_>) -> Option<Timestamp> {
    let named = || object.iter().map(|(name, value)| (plain(name), value));
    let absolute = named()
        .filter(|(name, _)| is_absolute(name))
        .find_map(|(_, value)| fields::reset_words(origin, value));
    absolute.or_else(|| {
        named()
            .filter(|(name, _)| is_relative(name))
            .find_map(|(name, value)| {
                let seconds = match fields::number(value) {
                    Some(number) => number * unit(&name),
                    None => fields::wait(value.as_str()?)?,
                };
                origin.after(seconds)
            })
    })
}

/// Minutes the object says it covers; 0 is a placeholder's.
pub(super) fn length(object: &Map<String, Value>) -> Option<f64> {
    object.iter().find_map(|(name, value)| {
        let name = plain(name);
        let about = name.starts_with("window")
            || name.starts_with("limitwindow")
            || name.starts_with("duration");
        let each = match &name {
            _ if !about => return None,
            name if name.ends_with("seconds") || name.ends_with("secs") => 1.0 / 60.0,
            name if name.ends_with("minutes") || name.ends_with("mins") => 1.0,
            name if name.ends_with("hours") => 60.0,
            name if name.ends_with("ms") => 1.0 / 60_000.0,
            _ => return value.as_str().and_then(naming::length).map(f64::from),
        };
        Some(fields::number(value)? * each)
    })
}

fn is_absolute(name: &str) -> bool {
    let resets = name.contains("reset") && !name.contains("credit") && !name.contains("count");
    (resets && !is_relative(name)) || ENDS.contains(&name)
}

fn is_relative(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "resetin",
        "resetsin",
        "resetafter",
        "resetsafter",
        "untilreset",
        "remainstime",
        "toreset",
    ];
    WORDS.iter().any(|word| name.contains(word)) || name == "retryafter"
}

/// Seconds in one of what a relative member counts.
fn unit(name: &str) -> f64 {
    if name.ends_with("ms")
        || name.ends_with("millis")
        || name.contains("millisecond")
        || name == "remainstime"
    {
        0.001
    } else if name.ends_with("mins") || name.contains("minute") {
        60.0
    } else if name.contains("hour") {
        3_600.0
    } else if name.ends_with("days") {
        86_400.0
    } else {
        1.0
    }
}
