//! CLIProxyAPI, a hub of logins: its list of them (`GET /v0/management/auth-files`), and what it fetches from a login's own
//! company on request (`POST /v0/management/api-call`). Only the payloads; who asks is elsewhere.
//!
//! The hub's own cooldowns are known to outlive the quota's reset (its issues 3866, 5277, 5611): they count as a hub's
//! word, which any other source outranks. An entry that is merely `unavailable` says nothing about quota.

use serde_json::Value;

use super::fields::{self, flag_of, member, text_of};
use super::{Origin, claude, codex, login};
use crate::ids::SubscriptionId;
use crate::usage::identity::Login;
use crate::usage::lenient;
use crate::usage::refusal::UNNAMED_WINDOW;
use crate::usage::{Reading, WindowScope, WindowStatus};

/// A login of the hub that can be turned into a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubLogin {
    /// The hub's name of the entry, usually a file name.
    pub name: String,
    /// What `api-call` wants to be given; `None` = an older hub, which takes the name.
    pub auth_index: Option<String>,
    /// `codex` or `claude`.
    pub driver: &'static str,
    pub account_id: Option<String>,
    pub email: Option<String>,
    pub plan: Option<String>,
}

impl HubLogin {
    /// The login as the quota groups want it, under a subscription's name.
    pub fn login(&self, id: &SubscriptionId) -> Login {
        Login {
            account_id: self.account_id.clone(),
            email: self.email.clone(),
            plan: self.plan.clone(),
            ..login::of(upstream(self.driver), id)
        }
    }
}

/// Reads the list: enabled logins of companies whose limits we can read.
pub fn logins(list: &Value) -> Vec<HubLogin> {
    files(list).filter_map(hub_login).collect()
}

/// Reads what the hub itself holds against a login (an entry of the list): the account's mark and those of single models.
pub fn cooldowns(entry: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let account = mark(entry, WindowScope::Account, origin);
    let models = entry.get("model_states").and_then(Value::as_object);
    let of_models = models
        .into_iter()
        .flatten()
        .filter_map(|(model, state)| mark(state, WindowScope::Model(model.clone()), origin));
    account.into_iter().chain(of_models).collect()
}

/// Reads the answer of an `api-call` to the usage page of the login's company. Anything but a status of 200 has no readings.
pub fn answer(driver: &str, call: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    if fields::number_of(call, &["status_code", "statusCode"]).is_some_and(|code| code != 200.0) {
        return Vec::new();
    }
    let body = match call.get("body") {
        Some(Value::String(text)) => lenient::parse(text).unwrap_or(Value::Null),
        Some(body) => body.clone(),
        None => Value::Null,
    };
    match driver {
        "codex" => codex::usage(&body, origin),
        "claude" => claude::usage(&body, origin),
        _ => Vec::new(),
    }
}

/// The entries of the list.
pub fn files(list: &Value) -> impl Iterator<Item = &Value> {
    list.get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn hub_login(file: &Value) -> Option<HubLogin> {
    let driver = match text_of(file, &["provider", "type"])? {
        kind if kind.eq_ignore_ascii_case("codex") => "codex",
        kind if kind.eq_ignore_ascii_case("claude") => "claude",
        _ => return None,
    };
    if flag_of(file, &["disabled"]) == Some(true) {
        return None;
    }
    let claims = member(file, &["id_token"]).unwrap_or(&Value::Null);
    let id = SubscriptionId::new("");
    let facts = login::codex(claims, &id);
    let text = |names: &[&str]| text_of(file, names).map(str::to_owned);
    Some(HubLogin {
        name: text(&["name", "id"])?,
        auth_index: text(&["auth_index", "authIndex"]),
        driver,
        account_id: facts.account_id.or_else(|| text(&["account_id"])),
        email: text(&["email"]).or(facts.email),
        plan: facts.plan.or_else(|| text(&["plan_type"])),
    })
}

fn upstream(driver: &str) -> &'static str {
    if driver == "claude" {
        "anthropic"
    } else {
        "openai"
    }
}

fn mark(state: &Value, scope: WindowScope, origin: &Origin<'_>) -> Option<Reading> {
    let quota = state.get("quota")?;
    (flag_of(quota, &["exceeded"]) == Some(true)).then(|| Reading {
        scope: Some(scope),
        status: WindowStatus::Rejected,
        resets_at: fields::reset_of(origin, quota, &["next_recover_at"], &[])
            .or_else(|| fields::reset_of(origin, state, &["next_retry_after"], &[])),
        ..origin.reading(UNNAMED_WINDOW)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    fn list() -> Value {
        json!({"files": [
            {"name": "codex-a.json", "auth_index": "01", "provider": "codex", "email": "x@y", "status": "active",
             "id_token": {"chatgpt_account_id": "acc", "plan_type": "plus"}},
            {"name": "claude-b.json", "type": "Claude", "email": "x@y", "unavailable": true, "status": "error"},
            {"name": "off.json", "provider": "codex", "disabled": true},
            {"name": "gemini.json", "provider": "gemini-cli"}, null, {"provider": "codex"},
        ]})
    }

    #[test]
    fn enabled_logins_of_known_companies() {
        let found = logins(&list());
        let told: Vec<_> = found
            .iter()
            .map(|login| {
                (
                    login.name.as_str(),
                    login.driver,
                    login.account_id.as_deref(),
                    login.plan.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("codex-a.json", "codex", Some("acc"), Some("plus")),
                ("claude-b.json", "claude", None, None)
            ]
        );
        let login = found[1].login(&"hub-b".into());
        assert_eq!(login.upstream.as_deref(), Some("anthropic"));
    }

    #[test]
    fn a_cooldown_for_quota_is_a_mark_and_unavailability_is_none() {
        let entry = json!({"quota": {"exceeded": true, "next_recover_at": "2026-12-01T00:00:00Z"}, "model_states": {
            "gpt-6.1-sol": {"unavailable": true, "next_retry_after": "2026-11-30T13:00:00Z", "quota": {"exceeded": true}},
            "gpt-6.1-luna": {"unavailable": true, "next_retry_after": "2026-11-30T13:00:00Z", "quota": {"exceeded": false}}}});
        assert_eq!(
            lines(&cooldowns(&entry, &origin())),
            [
                "refusal account - rejected 2026-12-01T00:00:00Z -",
                "refusal model:gpt-6.1-sol - rejected 2026-11-30T13:00:00Z -",
            ]
        );
        assert!(files(&list()).all(|file| cooldowns(file, &origin()).is_empty()));
    }

    #[test]
    fn what_the_hub_fetches_is_read_as_the_company_writes_it() {
        let body = json!({"rate_limit": {"primary_window": {"used_percent": 1, "limit_window_seconds": 18000}}}).to_string();
        let call = |code: i32| json!({"status_code": code, "header": {}, "body": body});
        assert_eq!(
            lines(&answer("codex", &call(200), &origin())),
            ["five_hour account 1% - - 300m"]
        );
        for (driver, call) in [
            ("codex", call(401)),
            ("gemini", call(200)),
            ("claude", json!({"body": "<html>"})),
        ] {
            assert!(answer(driver, &call, &origin()).is_empty());
        }
    }
}
