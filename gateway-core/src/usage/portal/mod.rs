//! The published registry file, `usage.json`: bytes in, readings out, and readings back into the document ([`write`]).
//!
//! Other programs write this file too, so every shape is borne: a record that is not understood is left out, a value that
//! is not understood is unknown, and a document that is no JSON gives no readings and a reason. It is never an error.

pub mod write;

use serde_json::Value;

use super::{Reading, ReadingSource, WindowScope, blocking, instant, lenient, scope};
use crate::ids::SubscriptionId;

/// What a snapshot says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Portal {
    /// All readings as written; the newest per window is [`merge`](super::merge)'s business.
    pub readings: Vec<Reading>,
    /// Why the whole document was not understood; `None` = it was.
    pub fault: Option<PortalFault>,
}

/// Why a document gives no readings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortalFault {
    #[error("not UTF-8")]
    NotUtf8,
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("the document is not a JSON object")]
    NotAnObject,
}

/// Reads a snapshot.
pub fn parse(bytes: &[u8]) -> Portal {
    match document(bytes) {
        Ok(document) => Portal {
            readings: readings(&document),
            fault: None,
        },
        Err(fault) => Portal {
            readings: Vec::new(),
            fault: Some(fault),
        },
    }
}

/// Reads the document itself; a byte order mark is tolerated.
pub fn document(bytes: &[u8]) -> Result<Value, PortalFault> {
    let text = str::from_utf8(bytes).map_err(|_| PortalFault::NotUtf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = lenient::parse(text).map_err(|why| PortalFault::NotJson(why.to_string()))?;
    document
        .is_object()
        .then_some(document)
        .ok_or(PortalFault::NotAnObject)
}

/// The readings of a document that is JSON already.
pub fn readings(document: &Value) -> Vec<Reading> {
    items(document, "providers")
        .flat_map(|provider| items(provider, "accounts"))
        .flat_map(account_readings)
        .collect()
}

fn account_readings(account: &Value) -> impl Iterator<Item = Reading> + '_ {
    let slug = slug(account);
    items(account, "windows")
        .filter_map(move |window| window_reading(slug.clone()?, account, window))
}

/// The join key of an account; blank or missing = the account is not for us.
fn slug(account: &Value) -> Option<SubscriptionId> {
    let slug = SubscriptionId::new(account.get("provider_slug")?.as_str()?);
    (!slug.key().is_empty()).then_some(slug)
}

fn window_reading(
    subscription: SubscriptionId,
    account: &Value,
    window: &Value,
) -> Option<Reading> {
    let id = window_id(window)?;
    // A stamp of the window itself outranks the account's: sparse updates refresh one window only.
    let stamp = window
        .get("observed_at")
        .or_else(|| account.get("observed_at"));
    Some(Reading {
        subscription,
        window: id.to_owned(),
        scope: window_scope(window),
        used_pct: window.get("pct").and_then(instant::percent),
        status: blocking::status(text(window, "status")),
        resets_at: window.get("resets_at").and_then(instant::instant),
        duration_mins: window
            .get("duration_mins")
            .and_then(Value::as_u64)
            .and_then(|mins| u32::try_from(mins).ok()),
        observed_at: stamp.and_then(instant::instant),
        source: source(text(window, "source")),
    })
}

fn window_id(window: &Value) -> Option<&str> {
    let id = window.get("key")?.as_str()?.trim();
    (!id.is_empty()).then_some(id)
}

/// Our own `scope` member, else `scoped` with its model. A scoped window whose model nobody names limits no model we know.
fn window_scope(window: &Value) -> Option<WindowScope> {
    if let Some(stated) = scope::parse(text(window, "scope")) {
        return Some(stated);
    }
    window
        .get("scoped")
        .is_some_and(is_truthy)
        .then(|| WindowScope::Model(text(window, "model").trim().to_owned()))
}

fn source(word: &str) -> ReadingSource {
    match word {
        "failure" => ReadingSource::Failure,
        "event" => ReadingSource::Event,
        "header" => ReadingSource::Header,
        "hub" => ReadingSource::Hub,
        "rollout" => ReadingSource::Rollout,
        _ => ReadingSource::Probe,
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn items<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .get(member)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Truth as the program that writes this file (Python) means it.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

#[cfg(test)]
mod tests;
