//! Who a payload is about, as far as it tells: the facts that quota groups are made of.

use serde_json::Value;

use super::fields::{member, text_of};
use crate::ids::SubscriptionId;
use crate::usage::identity::Login;

/// Codex: `wham/usage`, the app-server's `account/read`, the decoded claims of an id token, or a hub's copy of them.
pub fn codex(payload: &Value, id: &SubscriptionId) -> Login {
    let claims = payload.get("https://api.openai.com/auth");
    let account = member(payload, &["account"]).filter(|account| account.is_object());
    let places = [claims, account, Some(payload)];
    let find = |names: &[&str]| {
        let found = places
            .iter()
            .flatten()
            .find_map(|place| text_of(place, names));
        found.map(str::to_owned)
    };
    Login {
        account_id: find(&["chatgpt_account_id", "account_id", "accountId"]),
        email: find(&["email"]),
        plan: find(&["chatgpt_plan_type", "plan_type", "planType"]),
        ..of("openai", id)
    }
}

/// Claude: the OAuth profile, the program's `auth status --json`, or the `oauthAccount` of its settings. A person's seat in
/// an organisation has its own limits, so both ids make the account where both are told.
pub fn claude(payload: &Value, id: &SubscriptionId) -> Login {
    let top = member(payload, &["oauthAccount"]).unwrap_or(payload);
    let part = |name: &str| top.get(name).unwrap_or(&Value::Null);
    let account = text_of(part("account"), &["uuid"])
        .or_else(|| text_of(top, &["accountUuid", "account_uuid"]));
    let organization = text_of(part("organization"), &["uuid"])
        .or_else(|| text_of(top, &["organizationUuid", "organization_uuid", "orgId"]));
    let account_id = match (organization, account) {
        (Some(organization), Some(account)) => Some(format!("{organization}/{account}")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    let email = text_of(top, &["emailAddress", "email"])
        .or_else(|| text_of(part("account"), &["email", "email_address"]));
    let plan = text_of(top, &["subscriptionType", "subscription_type"])
        .or_else(|| text_of(part("organization"), &["organization_type"]));
    Login {
        account_id,
        email: email.map(str::to_owned),
        plan: plan.map(str::to_owned),
        ..of("anthropic", id)
    }
}

/// Copilot: `copilot_internal/user`.
pub fn copilot(payload: &Value, id: &SubscriptionId) -> Login {
    Login {
        account_id: text_of(payload, &["login"]).map(str::to_owned),
        plan: text_of(payload, &["copilot_plan"]).map(str::to_owned),
        ..of("github", id)
    }
}

/// A subscription of a company about whose login nothing is known.
pub(super) fn of(upstream: &str, id: &SubscriptionId) -> Login {
    Login {
        id: id.clone(),
        upstream: Some(upstream.to_owned()),
        account_id: None,
        fingerprint: None,
        email: None,
        plan: None,
        metered: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn as_far_as_the_payload_tells() {
        type Read = fn(&Value, &SubscriptionId) -> Login;
        let rows: [(Read, Value, [Option<&str>; 3]); 8] = [
            (
                codex,
                json!({"account_id": "a", "email": "x@y", "plan_type": "plus", "user_id": "u"}),
                [Some("a"), Some("x@y"), Some("plus")],
            ),
            (
                codex,
                json!({"account": {"type": "chatgpt", "email": "x@y", "planType": "pro"}}),
                [None, Some("x@y"), Some("pro")],
            ),
            (
                codex,
                json!({"email": "x@y", "https://api.openai.com/auth": {"chatgpt_account_id": "a", "chatgpt_plan_type": "team"}}),
                [Some("a"), Some("x@y"), Some("team")],
            ),
            (
                claude,
                json!({"account": {"uuid": "a", "email": "x@y"}, "organization": {"uuid": "o", "organization_type": "claude_max"}}),
                [Some("o/a"), Some("x@y"), Some("claude_max")],
            ),
            (
                claude,
                json!({"loggedIn": true, "email": "x@y", "orgId": "o", "subscriptionType": "max"}),
                [Some("o"), Some("x@y"), Some("max")],
            ),
            (
                claude,
                json!({"oauthAccount": {"accountUuid": "a", "organizationUuid": "o", "emailAddress": "x@y"}}),
                [Some("o/a"), Some("x@y"), None],
            ),
            (
                copilot,
                json!({"login": "someone", "copilot_plan": "individual"}),
                [Some("someone"), None, Some("individual")],
            ),
            (claude, json!([]), [None, None, None]),
        ];
        for (read, payload, want) in rows {
            let login = read(&payload, &"s".into());
            let got = [login.account_id, login.email, login.plan];
            assert_eq!(got.each_ref().map(Option::as_deref), want, "{payload}");
        }
    }
}
