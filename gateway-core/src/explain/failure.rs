//! Topic `failure`: one answer of a provider or a program, in whatever shape it was reported, judged by the same rules as
//! in a real turn.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::failure::{
    Action, Context, Endpoint, Evidence, FailureKind, FailureScope, Headers, Judgement, judge,
};
use crate::usage::instant::instant;

/// Members that are a text of a program or a person.
const TEXTS: &[&str] = &[
    "text",
    "stderr",
    "stdout",
    "output",
    "notice",
    "log",
    "lines",
    "errors",
    "cause_chain",
];
/// Members that are the body of an answer or an event of a program.
const BODIES: &[&str] = &[
    "body",
    "response_body",
    "data",
    "payload",
    "sse",
    "stream",
    "event",
    "events",
    "result",
    "line",
    "record",
    "message",
    "error",
    "exception",
];
/// Members that are known and say nothing of the failure itself.
const BESIDE: &[&str] = &[
    "id",
    "now",
    "provider",
    "host_zone",
    "status",
    "headers",
    "request",
    "url_role",
    "caller",
    "session",
    "then",
    "token",
    "other_source",
    "local_clock",
    "elapsed_ms",
    "exit_code",
    "fidelity",
    "model",
    "note",
    "title",
    "code",
    "success",
    "cause",
    "values",
    "values_now",
];

/// Answers one line; the members that are not understood are looked at as bodies if nothing else speaks.
pub(super) fn verdict(line: &Value) -> Result<Value, String> {
    let now = match line.get("now") {
        None | Some(Value::Null) => None,
        Some(value) => Some(instant(value).ok_or("`now` is not an instant")?),
    };
    let id = line
        .get("id")
        .filter(|id| id.is_string())
        .ok_or("`id` is missing or not a string")?;
    let provider = text(line, "provider")
        .map(str::to_lowercase)
        .unwrap_or_default();
    let host_zone = text(line, "host_zone").map(zone).transpose()?;
    let evidence = evidence(line)?;
    let context = Context {
        provider: &provider,
        host_zone,
        endpoint: endpoint(line),
        refreshable: refreshable(line),
        received: ["received_at", "captured_at", "observed_at"]
            .iter()
            .find_map(|member| instant(line.get(*member)?)),
        long_context: long_context(line),
        wrong_header: wrong_header(line),
        shown: shown(line),
        session_share: share(line),
        ..Context::at(now.unwrap_or(Timestamp::UNIX_EPOCH))
    };
    let judgement = judge(&evidence, &context, None);
    Ok(answer(id, &judgement, now))
}

fn text<'a>(line: &'a Value, member: &str) -> Option<&'a str> {
    line.get(member)?
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| format!("`host_zone` is no zone: `{}`", super::shorten(name)))
}

fn endpoint(line: &Value) -> Endpoint {
    let role = ["url_role", "endpoint", "url"]
        .iter()
        .find_map(|member| text(line, member));
    let role = role.unwrap_or_default().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| role.contains(word));
    if has(&["usage", "quota", "rate_limits", "rate-limits"]) {
        Endpoint::Usage
    } else if has(&["refresh", "oauth/token", "oauth token"]) {
        Endpoint::Refresh
    } else {
        Endpoint::Model
    }
}

/// Whether a refresh of the login can help; it cannot once it was tried.
fn refreshable(line: &Value) -> Option<bool> {
    let tried = [
        "/token/refreshed",
        "/token/refreshed_just_now",
        "/refreshed",
        "/after_refresh",
    ]
    .iter()
    .any(|pointer| line.pointer(pointer).and_then(Value::as_bool) == Some(true));
    match tried {
        true => Some(false),
        false => line.pointer("/token/has_refresh").and_then(Value::as_bool),
    }
}

fn long_context(line: &Value) -> bool {
    let beta = line
        .pointer("/request/beta")
        .or_else(|| line.pointer("/request/betas"));
    beta.is_some_and(|beta| beta.to_string().contains("context-1m"))
}

/// An OAuth token in the header of API keys, or a key in the header of tokens.
fn wrong_header(line: &Value) -> bool {
    let request = |member: &str| {
        line.pointer(&format!("/request/{member}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_lowercase()
    };
    let (header, token) = (request("header"), request("token_prefix"));
    header == "x-api-key" && token.starts_with("sk-ant-oat")
        || header == "authorization" && token.starts_with("sk-ant-api")
}

/// Whether the person has seen some of the answer.
fn shown(line: &Value) -> bool {
    [
        "visible_text",
        "partial_text",
        "shown",
        "output_started",
        "text_shown",
    ]
    .iter()
    .any(|member| match line.get(member) {
        Some(Value::Bool(shown)) => *shown,
        Some(Value::String(text)) => !text.is_empty(),
        _ => false,
    })
}

fn share(line: &Value) -> Option<f64> {
    let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_f64);
    Some(
        number("/session/input_tokens")?
            / number("/session/window").filter(|window| *window > 0.0)?,
    )
}

fn evidence(line: &Value) -> Result<Evidence, String> {
    let status = match line.get("status") {
        None | Some(Value::Null) => None,
        // "529 Overloaded"; a word alone is a typed name.
        Some(Value::String(name)) if name.parse::<u16>().is_err() => {
            name.get(..3).and_then(|digits| digits.parse().ok())
        }
        Some(value) => Some(whole(value).ok_or("`status` is not an HTTP status")?),
    };
    let mut evidence = Evidence::default();
    if let Some(status) = status {
        evidence.set_status(status);
    }
    for (name, value) in headers(line) {
        evidence.add_header(&name, &value);
    }
    let mut spoken = false;
    for member in BODIES {
        if let Some(value) = line.get(*member).filter(|value| !value.is_null()) {
            evidence.take_value(value);
            spoken = true;
        }
    }
    for member in TEXTS {
        spoken |= take_text(&mut evidence, line.get(*member));
    }
    if line
        .get("exit_code")
        .and_then(Value::as_i64)
        .is_some_and(|code| code != 0)
    {
        evidence.set_exited();
    }
    for member in ["code", "cause", "success", "is_error"] {
        if let Some(value) = line.get(member) {
            evidence.take_value(&json!({ member: value }));
        }
    }
    if !spoken {
        for (_, value) in line
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| says_something(name, value))
        {
            evidence.take_value(value);
            spoken = true;
        }
    }
    let known = [
        "status",
        "headers",
        "code",
        "cause",
        "exit_code",
        "elapsed_ms",
        "other_source",
    ];
    if !spoken && known.iter().all(|member| line.get(*member).is_none()) {
        return Err("nothing to judge: give `status`, `headers`, `body` or `text`".to_owned());
    }
    if let Some(other) = line.get("other_source") {
        evidence.take_other_source(other);
    }
    Ok(evidence)
}

/// Whether an unknown member may hold the failure: a structure, or a sentence.
fn says_something(name: &str, value: &Value) -> bool {
    let speaks = match value {
        Value::String(text) => text.trim().contains(char::is_whitespace),
        Value::Object(_) | Value::Array(_) => true,
        _ => false,
    };
    speaks && !BESIDE.contains(&name)
}

fn take_text(evidence: &mut Evidence, value: Option<&Value>) -> bool {
    match value {
        Some(Value::String(text)) => evidence.take_text(text),
        Some(value @ Value::Array(items)) if items.iter().any(Value::is_object) => {
            evidence.take_value(value);
        }
        Some(Value::Array(items)) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            evidence.take_text(&texts.join("\n"));
        }
        Some(value @ Value::Object(_)) => evidence.take_value(value),
        _ => return false,
    }
    true
}

fn whole(value: &Value) -> Option<u16> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())?;
    (100.0..1000.0).contains(&number).then(|| {
        u16::try_from(
            value
                .as_u64()
                .or_else(|| value.as_str()?.trim().parse().ok())?,
        )
        .ok()
    })?
}

fn headers(line: &Value) -> Vec<(String, String)> {
    let texts = |value: &Value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Value::Number(number) => vec![number.to_string()],
        Value::Bool(flag) => vec![flag.to_string()],
        _ => Vec::new(),
    };
    let headers = line.get("headers");
    if let Some(headers @ (Value::Array(_) | Value::String(_))) = headers {
        let named = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        return Headers::of_json(headers).iter().map(named).collect();
    }
    headers
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .flat_map(|(name, value)| {
            texts(value)
                .into_iter()
                .map(move |text| (name.clone(), text))
        })
        .collect()
}

fn answer(id: &Value, judgement: &Judgement, now: Option<Timestamp>) -> Value {
    // Without `now` an instant cannot be told, a wait can.
    let base = now.unwrap_or(Timestamp::UNIX_EPOCH);
    let after = judgement
        .retry_at
        .map(|at| at.duration_since(base).as_secs_f64());
    json!({
        "id": id,
        "class": class(judgement.kind),
        "scope": scope(judgement.kind, &judgement.scope),
        "retry_at": judgement.retry_at.filter(|_| now.is_some()).map(|at| at.to_string()),
        "retry_after_s": after,
        "action": action(judgement.action),
        "reason": judgement.detail,
    })
}

/// The contract's words; a program that could not run is a broken connection to the provider.
fn class(kind: Option<FailureKind>) -> Value {
    match kind {
        None => json!("none"),
        Some(FailureKind::Crashed) => json!("transport"),
        Some(kind) => serde_json::to_value(kind).unwrap_or_default(),
    }
}

fn action(action: Action) -> Value {
    serde_json::to_value(action).unwrap_or_default()
}

fn scope(kind: Option<FailureKind>, scope: &FailureScope) -> Value {
    if kind.is_none() {
        return Value::Null;
    }
    json!(match scope {
        FailureScope::Account => "account",
        FailureScope::AccountModel => "account+model",
        FailureScope::Burst => "burst_minute",
        FailureScope::UpstreamShared => "upstream_shared",
        FailureScope::Request => "request",
        FailureScope::Session => "session",
        FailureScope::NetworkEdge => "network_edge",
    })
}
