//! Who pays, and who the login is.
//!
//! Billing guard: a subscription that is a plan must not silently bill an API key. `account/read` of 0.171 says which
//! account the program would use; a key in `auth.json` wins even beside a login's tokens. A provider of the person's own
//! (`model_providers`) that wants no OpenAI login is paid by whatever its key bills, so it needs `billing = "metered"`,
//! unless it is on this machine (a loopback address), where nothing is billed.

use std::collections::BTreeMap;

use gateway_core::route::Billing;
use serde_json::Value;

use crate::{LoginFacts, LoginSubject};

/// Variables that hold a key of OpenAI for the program.
const KEYS: [&str; 2] = ["OPENAI_API_KEY", "CODEX_API_KEY"];

/// What the program says of its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    /// A ChatGPT login.
    Login,
    /// A key or a cloud account, by the program's name for it (`apiKey`, `amazonBedrock`, `gcp`).
    Billed(String),
    /// A provider of the person's own; where it is.
    Own { base_url: String },
    /// Nobody is logged in.
    Missing,
}

impl Account {
    /// From `account/read` and `config/read`; `auth` is the login file, for when the former could not be answered (it asks
    /// the service for the workspace, which fails without a network).
    pub(super) fn read(account: Option<&Value>, config: &Value, auth: Option<&Value>) -> Self {
        let kind = account
            .and_then(|answer| answer.get("account"))
            .and_then(|account| account.get("type"))
            .and_then(Value::as_str);
        let wants_login = account
            .and_then(|answer| answer.get("requiresOpenaiAuth"))
            .and_then(Value::as_bool)
            .unwrap_or(true);
        match kind {
            Some("chatgpt") => Self::Login,
            Some(other) => Self::Billed(other.to_owned()),
            None if !wants_login => Self::Own {
                base_url: own_url(config),
            },
            None => auth.map_or(Self::Missing, from_file),
        }
    }

    /// Why a turn must not run; `None` = it may.
    pub(super) fn refusal(
        &self,
        billing: Billing,
        env: &BTreeMap<String, String>,
    ) -> Option<String> {
        if *self == Self::Missing {
            return Some("codex has no login here; run `codex login` (with `CODEX_HOME` set to the subscription's `home`)".to_owned());
        }
        if billing == Billing::Metered {
            return None;
        }
        if let Some(key) = KEYS.into_iter().find(|key| env.contains_key(*key)) {
            return Some(format!(
                "codex could bill the key {key} of the subscription's `env` instead of the plan; take it out, or set billing = \"metered\""
            ));
        }
        match self {
            Self::Billed(kind) => Some(format!(
                "codex would bill an API key ({kind}) instead of the plan; run `codex login` with the plan, or set billing = \"metered\""
            )),
            Self::Own { base_url } if !is_loopback(base_url) => Some(format!(
                "codex would use the model provider at {base_url}, which is paid by its own key and not by the plan; set billing = \"metered\""
            )),
            _ => None,
        }
    }
}

fn from_file(auth: &Value) -> Account {
    let filled = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    let token = auth
        .get("tokens")
        .and_then(|tokens| tokens.get("access_token"));
    if filled(auth.get("OPENAI_API_KEY")) {
        Account::Billed("apiKey".to_owned())
    } else if filled(token) {
        Account::Login
    } else {
        Account::Missing
    }
}

fn own_url(config: &Value) -> String {
    let config = config.get("config").unwrap_or(config);
    let name = config.get("model_provider").and_then(Value::as_str);
    let url = name.and_then(|name| {
        config
            .get("model_providers")?
            .get(name)?
            .get("base_url")?
            .as_str()
    });
    // Without an address of its own it is one of the program's built-in local providers, or unknown: then it is named.
    url.or(name).unwrap_or("an unknown address").to_owned()
}

fn is_loopback(url: &str) -> bool {
    let host = reqwest::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback())
    })
}

/// Who the login is, from the claims of its `id_token`. No token is kept; signatures are not checked, since nothing is
/// granted by these facts.
pub(super) fn facts(auth: &Value) -> LoginFacts {
    let upstream = Some("openai".to_owned());
    if let Account::Billed(_) = from_file(auth) {
        let key = auth.get("OPENAI_API_KEY").and_then(Value::as_str);
        return LoginFacts {
            upstream,
            subject: key.map(LoginSubject::new),
            ..LoginFacts::default()
        };
    }
    let tokens = auth.get("tokens").unwrap_or(&Value::Null);
    let claims = tokens
        .get("id_token")
        .and_then(Value::as_str)
        .and_then(claims)
        .unwrap_or_default();
    let openai = claims
        .get("https://api.openai.com/auth")
        .unwrap_or(&Value::Null);
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    LoginFacts {
        upstream,
        account_id: text(openai, "chatgpt_account_id").or_else(|| text(tokens, "account_id")),
        subject: text(openai, "chatgpt_user_id")
            .or_else(|| text(&claims, "sub"))
            .map(LoginSubject::new),
        email: text(&claims, "email"),
        plan: text(openai, "chatgpt_plan_type"),
    }
}

/// The middle part of a JSON web token.
fn claims(token: &str) -> Option<Value> {
    serde_json::from_slice(&base64url(token.split('.').nth(1)?)?).ok()
}

/// Base64 with `-` and `_`, without padding; `None` = not that.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn none() -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    #[test]
    fn a_plan_is_never_billed_to_a_key() {
        let own = |url: &str| Account::Own {
            base_url: url.to_owned(),
        };
        let rows = [
            (Account::Login, None),
            (Account::Billed("apiKey".to_owned()), Some("API key")),
            (own("https://api.example.test/v1"), Some("api.example.test")),
            (own("http://127.0.0.1:9/v1"), None),
            (own("http://[::1]:9/v1"), None),
            (own("http://localhost:9/v1"), None),
            (
                own("http://127.0.0.1.example.test/v1"),
                Some("127.0.0.1.example.test"),
            ),
            (Account::Missing, Some("codex login")),
        ];
        for (account, expected) in rows {
            let refusal = account.refusal(Billing::Plan, &none());
            match expected {
                None => assert_eq!(refusal, None, "{account:?}"),
                Some(words) => assert!(refusal.as_deref().unwrap().contains(words), "{refusal:?}"),
            }
            let metered = account.refusal(Billing::Metered, &none());
            assert_eq!(
                metered.is_some(),
                account == Account::Missing,
                "{account:?}"
            );
        }
        let named = BTreeMap::from([("OPENAI_API_KEY".to_owned(), "k".to_owned())]);
        assert!(Account::Login.refusal(Billing::Plan, &named).is_some());
        assert_eq!(Account::Login.refusal(Billing::Metered, &named), None);
    }

    #[test]
    fn what_the_program_says_counts_before_its_file() {
        let read = |account: Option<Value>, auth: Option<Value>| {
            let config = json!({"config": {"model_provider": "m", "model_providers": {"m": {"base_url": "http://x/v1"}}}});
            Account::read(account.as_ref(), &config, auth.as_ref())
        };
        let tokens = json!({"OPENAI_API_KEY": null, "tokens": {"access_token": "t"}});
        let both = json!({"OPENAI_API_KEY": "k", "tokens": {"access_token": "t"}});
        let says =
            |kind: &str| Some(json!({"account": {"type": kind}, "requiresOpenaiAuth": true}));
        assert_eq!(read(says("chatgpt"), None), Account::Login);
        assert_eq!(
            read(says("apiKey"), Some(tokens.clone())),
            Account::Billed("apiKey".to_owned())
        );
        assert_eq!(
            read(
                Some(json!({"account": null, "requiresOpenaiAuth": false})),
                Some(both.clone())
            ),
            Account::Own {
                base_url: "http://x/v1".to_owned()
            }
        );
        assert_eq!(read(None, Some(tokens)), Account::Login);
        assert_eq!(read(None, Some(both)), Account::Billed("apiKey".to_owned()));
        assert_eq!(read(None, None), Account::Missing);
        let empty = json!({"account": null, "requiresOpenaiAuth": true});
        assert_eq!(read(Some(empty), None), Account::Missing);
    }

    /// `{"email":"ann@example.test","https://api.openai.com/auth":{"chatgpt_account_id":"acc-1","chatgpt_user_id":"user-1","chatgpt_plan_type":"plus"}}`
    const CLAIMS: &str = "eyJlbWFpbCI6ImFubkBleGFtcGxlLnRlc3QiLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEiLCJjaGF0Z3B0X3VzZXJfaWQiOiJ1c2VyLTEiLCJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMifX0";

    #[test]
    fn a_login_is_known_by_the_claims_of_its_token() {
        let auth = json!({"tokens": {"id_token": format!("h.{CLAIMS}.s"), "access_token": "secret", "account_id": "other"}});
        let facts = facts(&auth);
        assert_eq!(facts.account_id.as_deref(), Some("acc-1"));
        assert_eq!(facts.email.as_deref(), Some("ann@example.test"));
        assert_eq!(facts.plan.as_deref(), Some("plus"));
        assert_eq!(
            facts.subject.as_ref().map(LoginSubject::expose),
            Some("user-1")
        );
        assert!(!format!("{facts:?}").contains("secret"));
    }

    #[test]
    fn damaged_tokens_tell_nothing() {
        for token in ["", "a", "a.b", "a.!!.c", "a.e30.c", "\u{e9}.\u{e9}.\u{e9}"] {
            let auth = json!({"tokens": {"id_token": token, "access_token": "t"}});
            let facts = facts(&auth);
            assert_eq!((facts.account_id, facts.email), (None, None), "{token}");
        }
    }
}
