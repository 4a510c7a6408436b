//! Claude: the usage screen's data, events of the program's stream, and unified response headers.
//!
//! The unit trap: the OAuth usage endpoint, the program's `get_usage` and its status line count to 100 and write RFC 3339
//! (the status line: epoch seconds); events and headers count to 1 and write epoch seconds. The value never decides.
//! Facts as of Claude Code 2.1.332 and the endpoint with beta `oauth-2025-04-20`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fields::{self, flag_of, member, number_of, text_of};
use super::{Headers, MAX_WINDOWS, Origin, span};
use crate::usage::refusal::UNNAMED_WINDOW;
use crate::usage::{Reading, WindowScope, WindowStatus, blocking, merge};

const HEADER: &str = "anthropic-ratelimit-unified-";
/// Members of the usage payload that are not windows of their own kind.
const LISTS: [&str; 4] = ["model_scoped", "limits", "extra_usage", "spend"];
const SPEND_WINDOW: &str = "monthly_spend";

/// Reads `GET /api/oauth/usage`, the answer to `get_usage`, or what a status line gets on stdin. Shares count to 100.
///
/// A window with no reset and nothing used is idle: its clock starts with the next request.
pub fn usage(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let limits = member(payload, &["rate_limits"]).unwrap_or(payload);
    let named = limits.as_object().into_iter().flatten();
    let mut readings: Vec<Reading> = named
        .filter(|(id, window)| !LISTS.contains(&id.as_str()) && is_window(window))
        .map(|(id, window)| percent_window(id, window, origin))
        .take(MAX_WINDOWS)
        .collect();
    let scoped = items(limits, "model_scoped").filter_map(|window| {
        let model = text_of(window, &["display_name"])?;
        Some(of_model(model, percent_window("", window, origin)))
    });
    let listed = items(limits, "limits").filter_map(|limit| listed_window(limit, origin));
    let more = scoped.chain(listed).take(MAX_WINDOWS);
    for reading in more.chain(spend(limits, origin)) {
        // The list repeats the named windows; the first to speak of a window is the one that always did.
        if !readings
            .iter()
            .any(|known| merge::same_window(known, &reading))
        {
            readings.push(reading);
        }
    }
    readings
}

/// Reads `rate_limit_info` of an event (the event itself will do), or the `quotaLimits` of a transcript. Shares count to 1.
pub fn rate_limit_info(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let info = member(payload, &["rate_limit_info", "quotaLimits"]).unwrap_or(payload);
    let listed = info.get("unifiedWindows").and_then(Value::as_object);
    let mut readings: Vec<Reading> = listed
        .into_iter()
        .flatten()
        .map(|(id, facts)| fraction_window(id, facts, origin))
        .take(MAX_WINDOWS)
        .collect();
    judge_listed(&mut readings, info, origin);
    // The window the event is about, if it is not listed: per-model windows never are.
    if let Some(id) = text_of(info, &["rateLimitType"])
        && !readings.iter().any(|reading| reading.window == id)
    {
        let mut reading = fraction_window(id, info, origin);
        if overage_is_refused(info) {
            reading.status = WindowStatus::Rejected;
        }
        // Refused for lack of money beyond the plan is refused: the plan's own windows were spent before.
        if reading.status == WindowStatus::Rejected && reading.scope == Some(WindowScope::Spend) {
            reading.scope = Some(WindowScope::Account);
        }
        readings.push(reading);
    }
    readings
}

/// The event's word belongs to the window it names. A request that was served is refused by none, so a window of the account
/// that is listed as full lets requests through.
fn judge_listed(readings: &mut [Reading], info: &Value, origin: &Origin<'_>) {
    let word = if overage_is_refused(info) {
        WindowStatus::Rejected
    } else {
        text_of(info, &["status"]).map_or(WindowStatus::Unknown, status)
    };
    let served = matches!(word, WindowStatus::Allowed | WindowStatus::Warning);
    let named = text_of(info, &["rateLimitType"]);
    for reading in readings {
        if named == Some(reading.window.as_str()) {
            reading.resets_at = reading.resets_at.or_else(|| resets_at(info, origin));
            if reading.status == WindowStatus::Unknown {
                reading.status = word;
            }
        } else if served
            && reading.status == WindowStatus::Unknown
            && reading.scope == Some(WindowScope::Account)
            && reading.used_pct.is_some_and(|used| used >= 100.0)
        {
            reading.status = WindowStatus::Allowed;
        }
    }
}

/// Whether an event's own word is a refusal of the request it came with.
pub fn is_rejected(info: &Value) -> bool {
    text_of(info, &["status"]).map(status) == Some(WindowStatus::Rejected)
}

/// When an event says that the window it is about opens again.
pub fn resets_at(info: &Value, origin: &Origin<'_>) -> Option<Timestamp> {
    fields::reset_of(origin, info, &["resetsAt"], &[])
}

/// Reads `anthropic-ratelimit-unified-*`. `anthropic-ratelimit-tokens-*` and its kin are minute budgets and no windows.
pub fn headers(headers: &Headers, origin: &Origin<'_>) -> Vec<Reading> {
    let mut shorts: Vec<&str> = headers
        .after(HEADER)
        .filter_map(|rest| rest.rsplit_once('-'))
        .filter(|(_, field)| matches!(*field, "status" | "reset" | "utilization"))
        .map(|(short, _)| short)
        .collect();
    shorts.sort_unstable();
    shorts.dedup();
    let read = |short: &str| header_window(headers, short, origin);
    let mut readings: Vec<Reading> = shorts.into_iter().filter_map(read).collect();
    add_overall(headers, &mut readings, origin);
    readings
}

/// The model family a window limits; `None` = the account, or not known.
pub fn model_of(window: &str) -> Option<&str> {
    match window.strip_prefix("seven_day_")? {
        "overage_included" | "oauth_apps" | "cowork" => None,
        model => Some(model),
    }
}

fn is_window(value: &Value) -> bool {
    const SHARES: [&str; 3] = ["utilization", "used_percentage", "percent"];
    value.is_object() && SHARES.iter().any(|name| value.get(name).is_some())
}

fn percent_window(id: &str, window: &Value, origin: &Origin<'_>) -> Reading {
    let used = number_of(window, &["utilization", "used_percentage", "percent"]);
    Reading {
        used_pct: used.and_then(fields::points),
        ..common(id, window, origin)
    }
}

fn fraction_window(id: &str, window: &Value, origin: &Origin<'_>) -> Reading {
    Reading {
        used_pct: number_of(window, &["utilization"]).and_then(fields::fraction),
        ..common(id, window, origin)
    }
}

fn common(id: &str, window: &Value, origin: &Origin<'_>) -> Reading {
    Reading {
        scope: scope(id),
        status: text_of(window, &["status"]).map_or(WindowStatus::Unknown, status),
        resets_at: fields::reset_of(origin, window, &["resets_at", "resetsAt"], &[]),
        duration_mins: length(id),
        ..origin.reading(id)
    }
}

/// One consumer of the events has seen `denied` too.
fn status(word: &str) -> WindowStatus {
    match blocking::status(word) {
        WindowStatus::Unknown if word.eq_ignore_ascii_case("denied") => WindowStatus::Rejected,
        known => known,
    }
}

/// The plan's window is spent, the turn drew on what is paid beyond it, and that is refused from now on.
fn overage_is_refused(info: &Value) -> bool {
    flag_of(info, &["isUsingOverage", "overageInUse"]) == Some(true)
        && text_of(info, &["overageStatus"]).map(status) == Some(WindowStatus::Rejected)
}

/// `limits[]`: a kind, a percentage, and a scope where it is not the whole account.
fn listed_window(limit: &Value, origin: &Origin<'_>) -> Option<Reading> {
    let model = limit
        .pointer("/scope/model/display_name")
        .and_then(Value::as_str);
    match (text_of(limit, &["kind"])?, model) {
        (_, Some(model)) => Some(of_model(model, percent_window("", limit, origin))),
        ("session", None) => Some(percent_window("five_hour", limit, origin)),
        ("weekly_all" | "weekly", None) => Some(percent_window("seven_day", limit, origin)),
        // A scope nobody here knows limits nothing we could name.
        (kind, None) => Some(Reading {
            scope: None,
            ..percent_window(kind, limit, origin)
        }),
    }
}

fn of_model(model: &str, reading: Reading) -> Reading {
    let words: Vec<String> = model.split_whitespace().map(str::to_lowercase).collect();
    Reading {
        window: format!("seven_day_{}", words.join("_")),
        scope: Some(WindowScope::Model(model.to_owned())),
        duration_mins: Some(span::WEEK),
        ..reading
    }
}

/// Money beyond the plan, if it is switched on. It gates only itself.
fn spend(limits: &Value, origin: &Origin<'_>) -> Option<Reading> {
    let on = |name: &str| {
        let object = limits.get(name)?;
        (flag_of(object, &["enabled", "is_enabled"]) == Some(true)).then_some(object)
    };
    let object = on("spend").or_else(|| on("extra_usage"))?;
    let stated = number_of(object, &["percent", "utilization"]).and_then(fields::points);
    let amount = |name: &str| {
        object
            .pointer(&format!("/{name}/amount_minor"))
            .and_then(fields::number)
    };
    let used = number_of(object, &["used_credits"]).or_else(|| amount("used"));
    let limit = number_of(object, &["monthly_limit"]).or_else(|| amount("limit"));
    Some(Reading {
        scope: Some(WindowScope::Spend),
        used_pct: stated.or_else(|| fields::counted(used?, limit?)),
        ..origin.reading(SPEND_WINDOW)
    })
}

fn header_window(headers: &Headers, short: &str, origin: &Origin<'_>) -> Option<Reading> {
    let id = long(short)?;
    let field = |name: &str| format!("{HEADER}{short}-{name}");
    Some(Reading {
        scope: scope(&id),
        used_pct: headers
            .number(&field("utilization"))
            .and_then(fields::fraction),
        status: headers
            .get(&field("status"))
            .map_or(WindowStatus::Unknown, status),
        resets_at: header_reset(headers, &field("reset"), origin),
        duration_mins: length(&id),
        ..origin.reading(id)
    })
}

/// The word about the whole belongs to the window it names as the one that counts, unless that one has its own.
fn add_overall(headers: &Headers, readings: &mut Vec<Reading>, origin: &Origin<'_>) {
    let word = headers
        .get(&format!("{HEADER}status"))
        .map_or(WindowStatus::Unknown, status);
    let resets_at = header_reset(headers, &format!("{HEADER}reset"), origin);
    let claim = headers.get(&format!("{HEADER}representative-claim"));
    match claim.and_then(|claim| readings.iter_mut().find(|reading| reading.window == claim)) {
        Some(reading) if reading.status == WindowStatus::Unknown => {
            reading.status = word;
            reading.resets_at = reading.resets_at.or(resets_at);
        }
        Some(_) => {}
        None => {
            let stated = readings.iter().any(|reading| reading.status == word);
            let window = claim
                .or_else(|| (word == WindowStatus::Rejected && !stated).then_some(UNNAMED_WINDOW));
            readings.extend(window.map(|window| Reading {
                scope: if claim.is_some() {
                    scope(window)
                } else {
                    Some(WindowScope::Account)
                },
                status: word,
                resets_at,
                duration_mins: length(window),
                ..origin.reading(window)
            }));
        }
    }
}

fn header_reset(headers: &Headers, name: &str, origin: &Origin<'_>) -> Option<Timestamp> {
    fields::reset(origin, &json!(headers.get(name)?))
}

/// `5h`, `7d`, `7d_opus`, `7d-sonnet`, `7d_oi` as the events name them; the program also knows the events' own names there.
/// Overage and anything unknown is no window.
fn long(short: &str) -> Option<String> {
    match short {
        "5h" | "five_hour" => Some("five_hour".to_owned()),
        "7d" | "seven_day" | "weekly" => Some("seven_day".to_owned()),
        "7d_oi" | "7d-oi" => Some("seven_day_overage_included".to_owned()),
        _ => short
            .strip_prefix("7d")
            .or_else(|| short.strip_prefix("seven_day"))
            .and_then(|rest| rest.strip_prefix(['_', '-']))
            .filter(|model| !model.is_empty())
            .map(|model| format!("seven_day_{model}")),
    }
}

/// `None` = the id decides wherever the reading is looked at.
fn scope(id: &str) -> Option<WindowScope> {
    match id {
        "five_hour" | "seven_day" => Some(WindowScope::Account),
        "overage" | SPEND_WINDOW => Some(WindowScope::Spend),
        "seven_day_oauth_apps" => Some(WindowScope::Bucket("oauth_apps".to_owned())),
        "seven_day_cowork" => Some(WindowScope::Bucket("cowork".to_owned())),
        _ => model_of(id).map(|model| WindowScope::Model(model.to_owned())),
    }
}

fn length(id: &str) -> Option<u32> {
    match id {
        "five_hour" => Some(span::SESSION),
        _ if id.starts_with("seven_day") => Some(span::WEEK),
        _ => None,
    }
}

fn items<'v>(object: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    object
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests;
