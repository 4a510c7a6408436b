//! What names say: which window, how long, whose.

use serde_json::{Map, Value};

use super::super::span;
use crate::usage::source::claude;

/// What is longer names nothing: of it only the beginning is looked at.
const LONGEST_NAME: usize = 120;

/// A name without case and separators: `fiveHour`, `five_hour` and `Five-Hour` are one.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .take(LONGEST_NAME)
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Names of lengths, the more telling first: `seven_day` is no day.
const LENGTHS: [(&[&str], u32); 4] = [
    (&["sevenday", "7day", "7d", "weekly", "week"], span::WEEK),
    (
        &["fivehour", "5hour", "5hr", "5h", "session", "rolling"],
        span::SESSION,
    ),
    (&["monthly", "month", "30day", "30d"], span::MONTH),
    (
        &["daily", "perday", "24h", "1d", "oneday", "today"],
        span::DAY,
    ),
];

/// The length a window's name states.
pub(super) fn length(name: &str) -> Option<u32> {
    let name = plain(name);
    LENGTHS
        .iter()
        .find(|(words, _)| words.iter().any(|word| name.contains(word)))
        .map(|(_, mins)| *mins)
}

/// Prefixes of members that belong to one window each.
const PREFIXES: [&str; 21] = [
    "per5hour",
    "perweek",
    "perbillmonth",
    "permonth",
    "perday",
    "fivehour",
    "5hour",
    "5h",
    "session",
    "rolling",
    "primary",
    "sevenday",
    "7day",
    "7d",
    "weekly",
    "week",
    "secondary",
    "monthly",
    "month",
    "daily",
    "interval",
];

/// Endings that say the same: `util5h`, `used_7d`.
const SUFFIXES: [&str; 6] = ["fivehour", "5h", "sevenday", "7d", "weekly", "daily"];

/// Members of an object by the window their names begin or end with, without that part: `weekly_percent: 3` is a window
/// `weekly` that states `percent: 3`.
pub(super) fn groups(object: &Map<String, Value>) -> Vec<(&'static str, Map<String, Value>)> {
    let mut groups: Vec<(&'static str, Map<String, Value>)> = Vec::new();
    let scalars = object
        .iter()
        .filter(|(_, value)| !value.is_object() && !value.is_array());
    for (name, value) in scalars {
        let Some((window, rest)) = split(&plain(name)) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == window) {
            Some((_, group)) => {
                group.insert(rest, value.clone());
            }
            None => groups.push((window, Map::from_iter([(rest, value.clone())]))),
        }
    }
    groups
}

/// A plain name as the window it begins or ends with, and the rest.
pub(super) fn split(name: &str) -> Option<(&'static str, String)> {
    let at_head = PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?.trim_start_matches("ly");
        Some((*prefix, rest))
    });
    let at_tail = || {
        let strip = |suffix: &&'static str| Some((*suffix, name.strip_suffix(*suffix)?));
        SUFFIXES.iter().find_map(strip)
    };
    let (window, rest) = at_head.or_else(at_tail)?;
    // `weeklyQuotaResetAt` and `weekUsedQuota` are about the quota anyway.
    let rest = rest.trim_start_matches("quota").trim_end_matches("quota");
    (!rest.is_empty()).then(|| (window, rest.to_owned()))
}

/// The name an object gives itself.
pub(super) fn own_name(value: &Value) -> Option<&str> {
    own_name_of(value.as_object()?)
}

pub(super) fn own_name_of(object: &Map<String, Value>) -> Option<&str> {
    let mut first = None;
    for text in own_names(object) {
        // Of several names the one that tells a length is the window's.
        if length(text).is_some() {
            return Some(text);
        }
        first = first.or(Some(text));
    }
    first
}

fn own_names(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    const NAMES: [&str; 15] = [
        "key",
        "id",
        "window",
        "window_id",
        "windowId",
        "rateLimitType",
        "claim",
        "limit_name",
        "limitName",
        "period",
        "name",
        "label",
        "title",
        "kind",
        "type",
    ];
    NAMES
        .iter()
        .filter_map(|name| object.get(*name)?.as_str())
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The model an object says it is about.
pub(super) fn model(object: &Map<String, Value>) -> Option<&str> {
    const NAMES: [&str; 6] = [
        "model",
        "model_name",
        "modelName",
        "modelId",
        "model_id",
        "display_name",
    ];
    let direct = NAMES.iter().find_map(|name| object.get(*name)?.as_str());
    let scope = || {
        let scope = object.get("scope")?;
        let named = scope
            .pointer("/model/display_name")
            .or_else(|| scope.get("model"));
        named
            .and_then(Value::as_str)
            .or_else(|| scope.as_str()?.strip_prefix("model:"))
    };
    direct
        .or_else(scope)
        .map(str::trim)
        .filter(|model| !model.is_empty())
}

/// The model family in a window's name, or in another name the object gives itself: what stands beside the length.
pub(super) fn model_in(name: &str, object: &Map<String, Value>) -> Option<String> {
    std::iter::once(name)
        .chain(own_names(object))
        .find_map(family)
}

fn family(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("model:") {
        let model = rest.split(':').next().unwrap_or(rest);
        return (!model.is_empty()).then(|| model.to_owned());
    }
    let name = id(name);
    if let Some(model) = claude::model_of(&name) {
        return Some(model.to_owned());
    }
    const FAMILIES: [&str; 6] = ["opus", "sonnet", "haiku", "fable", "spark", "flash"];
    let mut words = name.split(['_', '-', '.']);
    let family = words.find(|word| FAMILIES.contains(word))?;
    length(&name).map(|_| family.to_owned())
}

/// Whether the members of this are named by model.
pub(super) fn holds_models(name: &str) -> bool {
    matches!(
        plain(name).as_str(),
        "models" | "bymodel" | "permodel" | "modelquotas" | "modelusage" | "modelstates"
    )
}

/// Money: it is shown, and gates nothing by itself.
pub(super) fn is_spend(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "extrausage",
        "spend",
        "credit",
        "overage",
        "ondemand",
        "balance",
        "prepaid",
        "wallet",
    ];
    let name = plain(name);
    WORDS.iter().any(|word| name.contains(word))
}

/// A feature beside the models.
pub(super) fn bucket(name: &str) -> Option<&'static str> {
    let name = plain(name);
    if name.contains("codereview") {
        Some("code_review")
    } else if name.contains("mcp") {
        Some(crate::usage::scope::MCP_TOOLS)
    } else if name.contains("completions") {
        Some("completions")
    } else {
        None
    }
}

/// Shares that are not of a quota: how full a context is, what a forecast says, banked resets.
pub(super) fn is_beside_the_point(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        // A forecast against a limit the person set, as ccusage makes it, and no word of the provider.
        "tokenlimit",
        "context",
        "projection",
        "forecast",
        "pace",
        "resetcredits",
        "history",
        "behaviors",
    ];
    let name = plain(name);
    WORDS.iter().any(|word| name.contains(word))
}

/// A window's name as people would say it: `rollingUsage` and `primary_window` are `rolling` and `primary`.
pub(super) fn short(name: &str) -> String {
    let name = id(name);
    // Containers: they name a place, not a window.
    const PLACES: [&str; 7] = [
        "usage",
        "detail",
        "data",
        "config",
        "buckets",
        "quota_info",
        "model_scoped",
    ];
    if PLACES.contains(&name.as_str()) {
        return String::new();
    }
    let short = ["_usage", "_window", "_limit", "_quota"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    short.map_or_else(|| name.clone(), str::to_owned)
}

/// A registry id out of a foreign name: words joined by `_`. Nothing at all is `usage`.
pub(super) fn id(name: &str) -> String {
    let mut id = String::new();
    let mut before = '_';
    for c in name.chars().take(80) {
        if c.is_alphanumeric() || matches!(c, '.' | '-') {
            if c.is_uppercase() && before.is_lowercase() {
                id.push('_');
            }
            id.extend(c.to_lowercase());
        } else if before != '_' && !id.is_empty() && !id.ends_with('_') {
            id.push('_');
        }
        before = c;
    }
    let id = id.trim_end_matches('_');
    if id.is_empty() {
        "usage".to_owned()
    } else {
        id.to_owned()
    }
}
