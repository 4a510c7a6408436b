//! What members say about how much is used.
//!
//! A member named percent is one. A member named fraction or ratio is one. `utilization`, and `used` or `usage` alone, may be
//! either: then all such values of the payload decide together, and a lone 1 stays unknown. Counts check what a percentage
//! claims: one that equals what the counts say is left, or a hundredth of what they say is used, is that.

use serde_json::{Map, Value};

use super::naming::{plain, split};
use crate::usage::WindowStatus;
use crate::usage::source::fields;

/// What a share means that does not say so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of 100.
    Points,
    /// Of 1.
    Fraction,
    /// Nothing settles it: 0 is 0, anything else is unknown.
    Unknown,
}

const PERCENT: [&str; 16] = [
    "usedpercent",
    "usedpercentage",
    "percentused",
    "percentageused",
    "usagepercent",
    "usagepercentage",
    "percentage",
    "percent",
    "pct",
    "usedpct",
    "pctused",
    "usagepct",
    "utilizationpercent",
    "utilizationpct",
    "creditusagepercent",
    "consumedpercent",
];
const PERCENT_LEFT: [&str; 12] = [
    "remainingpercent",
    "percentremaining",
    "remainingpercentage",
    "percentageremaining",
    "percentleft",
    "leftpercent",
    "remainingpct",
    "pctremaining",
    "quotaremainingpercent",
    "availablepercent",
    "pctleft",
    "percentavailable",
];
const FRACTION: [&str; 7] = [
    "usedfraction",
    "usedratio",
    "usageratio",
    "fractionused",
    "usagefraction",
    "ratio",
    "fraction",
];
const FRACTION_LEFT: [&str; 4] = [
    "remainingfraction",
    "fractionremaining",
    "remainingratio",
    "ratioremaining",
];
const EITHER: [&str; 5] = [
    "util",
    "utilization",
    "utilisation",
    "usageutilization",
    "usedutilization",
];
const USED: [&str; 13] = [
    "currentvalue",
    "used",
    "usedcount",
    "consumed",
    "usedtokens",
    "usedrequests",
    "currentusage",
    "usedamount",
    "requestsused",
    "requestsusedsincelastrefresh",
    "requests",
    "count",
    "usage",
];
const LIMIT: [&str; 14] = [
    "limit",
    "total",
    "quota",
    "max",
    "maximum",
    "allowance",
    "entitlement",
    "cap",
    "totalcount",
    "limitcount",
    "budget",
    "usagelimit",
    "requestlimit",
    "totalallowance",
];
const LEFT: [&str; 8] = [
    "remaining",
    "left",
    "available",
    "quotaremaining",
    "remains",
    "remainingcount",
    "remainscount",
    "balance",
];

/// The share in points of 100.
pub(super) fn used(object: &Map<String, Value>, unit: Unit) -> Option<f64> {
    let stated = percent(object);
    let counted = counted(object);
    match (stated, counted) {
        (Some(percent), Some(counts)) => settle(percent, counts),
        (Some(percent), None) => Some(percent),
        (None, Some(counts)) => Some(counts),
        (None, None) => fraction(object).or_else(|| either(object, unit)),
    }
    .and_then(fields::points)
}

/// Whether the object has a member for a share, even one whose value is not understood.
pub(super) fn is_stated(object: &Map<String, Value>) -> bool {
    let names = [
        &PERCENT[..],
        &PERCENT_LEFT,
        &FRACTION,
        &FRACTION_LEFT,
        &EITHER,
    ];
    object.iter().any(|(name, value)| {
        let name = plain(name);
        !value.is_object() && names.iter().any(|names| names.contains(&name.as_str()))
    })
}

pub(super) fn is_unlimited(object: &Map<String, Value>) -> bool {
    object.iter().any(|(name, value)| {
        matches!(plain(name).as_str(), "unlimited" | "isunlimited") && value == &Value::Bool(true)
    })
}

/// A status word, or a flag that says the same.
pub(super) fn status(object: &Map<String, Value>) -> WindowStatus {
    const WORDS: [&str; 7] = [
        "status",
        "laststatus",
        "state",
        "limitstatus",
        "quotastatus",
        "type",
        "code",
    ];
    const REFUSES: [&str; 12] = [
        "limitreached",
        "isexhausted",
        "exhausted",
        "isratelimited",
        "ratelimited",
        "blocked",
        "exceeded",
        "limited",
        "islimited",
        "quotaexceeded",
        "hitlimit",
        "isblocked",
    ];
    let mut said = WindowStatus::Unknown;
    for (name, value) in object {
        let name = plain(name);
        let one = match value {
            Value::Bool(true) if REFUSES.contains(&name.as_str()) => WindowStatus::Rejected,
            Value::Bool(false) if name == "allowed" => WindowStatus::Rejected,
            Value::Bool(true) if name == "allowed" => WindowStatus::Allowed,
            Value::String(word) if WORDS.contains(&name.as_str()) => fields::status(word),
            _ => WindowStatus::Unknown,
        };
        if said == WindowStatus::Unknown || one == WindowStatus::Rejected {
            said = one;
        }
    }
    said
}

/// Looks at every share that may be either, however deep.
pub(super) fn unit(payload: &Value) -> Unit {
    let mut seen = Seen {
        left: super::MAX_LOOKED,
        ..Seen::default()
    };
    gather(payload, 0, &mut seen);
    if seen.above_one {
        Unit::Points
    } else if seen.broken {
        Unit::Fraction
    } else {
        Unit::Unknown
    }
}

#[derive(Default)]
struct Seen {
    above_one: bool,
    broken: bool,
    /// How many members may still be looked at.
    left: usize,
}

fn gather(value: &Value, depth: usize, seen: &mut Seen) {
    if depth > super::MAX_DEPTH || seen.left == 0 {
        return;
    }
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter().take(seen.left) {
                seen.left = seen.left.saturating_sub(1);
                let name = plain(name);
                let rest = split(&name).map_or(name, |(_, rest)| rest);
                if EITHER.contains(&rest.as_str())
                    && let Some(share) = fields::number(value)
                {
                    seen.above_one |= share > 1.0;
                    seen.broken |= share > 0.0 && share < 1.0;
                }
                gather(value, depth + 1, seen);
            }
        }
        Value::Array(items) => {
            for item in items.iter().take(seen.left) {
                seen.left = seen.left.saturating_sub(1);
                gather(item, depth + 1, seen);
            }
        }
        _ => {}
    }
}

/// A plain name without the money it counts in: an allowance may be one of dollars.
fn counting(name: &str) -> &str {
    const COINS: [&str; 4] = ["microcents", "cents", "usd", "dollars"];
    let strip = |coin: &&str| name.strip_suffix(*coin).filter(|rest| !rest.is_empty());
    COINS.iter().find_map(strip).unwrap_or(name)
}

fn number(object: &Map<String, Value>, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|wanted| {
        let member = object
            .iter()
            .find(|(name, _)| counting(&plain(name)) == *wanted)?;
        fields::number(member.1)
    })
}

fn percent(object: &Map<String, Value>) -> Option<f64> {
    let left = || number(object, &PERCENT_LEFT).map(|left| (100.0 - left).max(0.0));
    number(object, &PERCENT)
        .or_else(left)
        .or_else(|| signed(object))
}

/// A value with a percent sign says itself what it is.
fn signed(object: &Map<String, Value>) -> Option<f64> {
    object.iter().find_map(|(name, value)| {
        let share = value
            .as_str()?
            .trim()
            .strip_suffix('%')?
            .trim()
            .parse::<f64>()
            .ok()?;
        match plain(name).as_str() {
            "remaining" | "left" | "available" => Some((100.0 - share).max(0.0)),
            "used" | "usage" | "utilization" | "consumed" => Some(share),
            _ => None,
        }
    })
}

fn counted(object: &Map<String, Value>) -> Option<f64> {
    let used = number(object, &USED);
    let limit = number(object, &LIMIT).filter(|limit| *limit > 0.0);
    let left = number(object, &LEFT);
    let of = |used: f64, limit: f64| fields::counted(used, limit);
    match (used, limit, left) {
        (Some(used), Some(limit), _) => of(used, limit),
        (None, Some(limit), Some(left)) => of(limit - left, limit),
        (Some(used), None, Some(left)) => of(used, used + left),
        _ => None,
    }
}

/// Which of the meanings of a percentage the counts beside it support.
fn settle(percent: f64, counts: f64) -> Option<f64> {
    const ROUNDING: f64 = 1.5;
    let agrees = |meaning: f64| (meaning - counts).abs() <= ROUNDING;
    let hundredth = percent <= 1.0 && (percent * 100.0 - counts).abs() < (percent - counts).abs();
    if (agrees(100.0 - percent) && !agrees(percent)) || (hundredth && agrees(percent * 100.0)) {
        Some(counts)
    } else {
        Some(percent)
    }
}

fn fraction(object: &Map<String, Value>) -> Option<f64> {
    let left = || number(object, &FRACTION_LEFT).map(|left| (1.0 - left).max(0.0));
    number(object, &FRACTION)
        .or_else(left)
        .map(|share| share * 100.0)
}

/// `usage: 0.31` in a window that is named by its length: a share of 1, and nothing else there tells how much.
pub(super) fn bare(object: &Map<String, Value>) -> Option<f64> {
    if number(object, &LIMIT).is_some() {
        return None;
    }
    let share = number(object, &["used", "usage"])?;
    ((0.0..1.0).contains(&share)).then(|| fields::points(share * 100.0))?
}

fn either(object: &Map<String, Value>, unit: Unit) -> Option<f64> {
    if let Some(share) = number(object, &EITHER) {
        return match unit {
            Unit::Points => Some(share),
            Unit::Fraction => Some(share * 100.0),
            Unit::Unknown => (share == 0.0).then_some(0.0),
        };
    }
    // `used` or `usage` alone, in an object that is about a window: registries write percentages like that.
    let about_a_window = object.iter().any(|(name, _)| {
        let name = plain(name);
        name == "status" || name.contains("reset")
    });
    about_a_window
        .then(|| number(object, &["used", "usage"]))
        .flatten()
        .filter(|share| *share == 0.0 || *share > 1.0)
}
