//! The parts of a scenario that every trigger looks at, read tolerantly: a member of a wrong type counts as absent.

use jiff::Timestamp;
use serde_json::Value;

use crate::ids::SubscriptionId;
use crate::plan::GateSettings;
use crate::usage::identity::Login;
use crate::usage::instant::{instant, percent};
use crate::usage::{Reading, ReadingSource, blocking, scope};

/// A model on a subscription.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    /// `None` = missing or blank: the entry is left alone.
    pub(super) subscription: Option<SubscriptionId>,
    pub(super) model: Option<String>,
    pub(super) bucket: Option<String>,
}

/// The scenario's instant; everything is relative to it.
pub(super) fn now(scenario: &Value) -> Result<Timestamp, String> {
    scenario
        .get("now")
        .and_then(instant)
        .ok_or_else(|| "`now` is missing or not an instant".to_owned())
}

pub(super) fn chain(scenario: &Value) -> Vec<Selection> {
    items(scenario, "chain").map(selection).collect()
}

/// What the turn used; the failing primary.
pub(super) fn source(scenario: &Value) -> Option<SubscriptionId> {
    selection(scenario.get("source")?).subscription
}

pub(super) fn readings(scenario: &Value) -> Vec<Reading> {
    items(scenario, "readings").filter_map(reading).collect()
}

pub(super) fn logins(scenario: &Value) -> Vec<Login> {
    items(scenario, "subscriptions").filter_map(login).collect()
}

pub(super) fn settings(scenario: &Value) -> GateSettings {
    let stated = |name: &str| {
        let seconds = scenario.get("settings")?.get(name)?.as_f64()?;
        seconds.is_finite().then(|| milliseconds(seconds))
    };
    let default = GateSettings::default();
    GateSettings {
        max_age_ms: stated("gate.max_age_s").unwrap_or(default.max_age_ms),
        horizon_ms: stated("gate.horizon_s").unwrap_or(default.horizon_ms),
    }
}

/// A finite number, also written as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// A length in minutes; one below a minute was not given.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 1, and a float cast saturates"
)]
pub(super) fn minutes(value: &Value) -> Option<u32> {
    let minutes = number(value).filter(|minutes| *minutes >= 1.0)?;
    Some(minutes as u32)
}

/// A flag; only `true` sets it.
pub(super) fn flag(value: &Value, member: &str) -> bool {
    value.get(member).and_then(Value::as_bool) == Some(true)
}

/// A non-blank text member, trimmed.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    let text = value.get(member)?.as_str()?.trim();
    (!text.is_empty()).then_some(text)
}

pub(super) fn items<'a>(
    value: &'a Value,
    member: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .get(member)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

pub(super) fn subscription_id(value: &Value) -> Option<SubscriptionId> {
    let id = SubscriptionId::new(value.as_str()?);
    (!id.key().is_empty()).then_some(id)
}

fn selection(value: &Value) -> Selection {
    Selection {
        subscription: value.get("subscription").and_then(subscription_id),
        model: value
            .get("model")
            .and_then(Value::as_str)
            .map(str::to_owned),
        bucket: text(value, "bucket").map(str::to_owned),
    }
}

fn reading(value: &Value) -> Option<Reading> {
    let source = match text(value, "source") {
        Some("failure") => ReadingSource::Failure,
        Some("event") => ReadingSource::Event,
        Some("header") => ReadingSource::Header,
        Some("hub") => ReadingSource::Hub,
        Some("rollout") => ReadingSource::Rollout,
        _ => ReadingSource::Probe,
    };
    Some(Reading {
        subscription: value.get("subscription").and_then(subscription_id)?,
        window: text(value, "window")?.to_owned(),
        scope: text(value, "scope").and_then(scope::parse),
        used_pct: value.get("used_pct").and_then(percent),
        status: blocking::status(text(value, "status").unwrap_or_default()),
        resets_at: value.get("resets_at").and_then(instant),
        duration_mins: value.get("duration_mins").and_then(minutes),
        observed_at: value.get("observed_at").and_then(instant),
        source,
    })
}

pub(super) fn login(value: &Value) -> Option<Login> {
    let provider = text(value, "provider").map(str::to_lowercase);
    let identity = value.get("identity").unwrap_or(&Value::Null);
    let key = |member: &str| text(identity, member).map(str::to_owned);
    let paid = value.get("paid").and_then(Value::as_bool) == Some(true);
    Some(Login {
        id: value.get("id").and_then(subscription_id)?,
        upstream: text(identity, "upstream")
            .map(str::to_lowercase)
            .or_else(|| default_upstream(provider.as_deref()?)),
        account_id: key("account_id"),
        fingerprint: key("fingerprint"),
        email: key("email"),
        plan: key("plan"),
        metered: paid || text(value, "credential") == Some("api_key"),
    })
}

/// The company that meters a back end's logins, where the back end alone tells.
fn default_upstream(provider: &str) -> Option<String> {
    match provider {
        "claude" => Some("anthropic".to_owned()),
        "codex" => Some("openai".to_owned()),
        "opencode" => None,
        other => Some(other.to_owned()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast saturates, and the gate compares with saturating arithmetic"
)]
pub(super) fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}
