//! The login file (`auth.json`): which providers there is a login for. It is read, never written, and its keys go
//! nowhere but to the plan's own usage endpoint.

use std::path::Path;

use serde_json::Value;

use crate::{LoginFacts, LoginSubject};

/// The provider of the OpenCode Go plan.
pub(super) const GO: &str = "opencode-go";
/// The most of the file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The file as JSON; `Null` = there is none. Blocks on one small file.
pub(super) fn read(path: &Path) -> Value {
    let small = std::fs::metadata(path).is_ok_and(|meta| meta.len() <= MAX_BYTES);
    let bytes = small.then(|| std::fs::read(path).ok()).flatten();
    let parsed = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    parsed.unwrap_or(Value::Null)
}

/// The key of the Go plan; `None` = no such login.
pub(super) fn go_key(auth: &Value) -> Option<&str> {
    let entry = auth.get(GO)?;
    let key = entry.get("key").and_then(Value::as_str)?.trim();
    let typed = entry.get("type").and_then(Value::as_str) == Some("api");
    (typed && !key.is_empty()).then_some(key)
}

/// Who the login is. A file with one entry is one login; with several, nothing says which of them a turn draws on.
pub(super) fn facts(auth: &Value) -> LoginFacts {
    let entries: Vec<(&String, &Value)> = auth
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, entry)| entry.get("type").is_some())
        .collect();
    let [(provider, entry)] = entries.as_slice() else {
        return LoginFacts::default();
    };
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    // An API key is the same for as long as the login is; tokens are not looked at.
    let key = text("key").map(|key| LoginSubject::new(key.trim()));
    LoginFacts {
        upstream: Some(upstream(provider).to_owned()),
        account_id: text("accountId").map(str::to_owned),
        subject: text("accountId").map(LoginSubject::new).or(key),
        email: None,
        plan: (provider.as_str() == GO).then(|| "go".to_owned()),
    }
}

/// The company behind a provider of the program, where the name differs.
fn upstream(provider: &str) -> &str {
    match provider {
        GO | "opencode" => "opencode",
        "github-copilot" => "github",
        "zai-coding-plan" => "zai",
        "zhipuai-coding-plan" => "zhipuai",
        "kimi-for-coding" => "moonshotai",
        "minimax-coding-plan" | "minimax-cn-coding-plan" => "minimax",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_login_is_somebody_and_several_are_nobody() {
        let go = json!({"opencode-go": {"type": "api", "key": "sk-secret"}});
        let facts = facts(&go);
        assert_eq!(facts.upstream.as_deref(), Some("opencode"));
        assert!(!format!("{facts:?}").contains("secret"));
        assert_eq!(facts.subject.unwrap().expose(), "sk-secret");
        assert_eq!(go_key(&go), Some("sk-secret"));
        let chatgpt = json!({"openai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "accountId": "acc"}});
        let facts = super::facts(&chatgpt);
        assert_eq!(facts.upstream.as_deref(), Some("openai"));
        assert_eq!(facts.subject.unwrap().expose(), "acc");
        let both = json!({"a": {"type": "api", "key": "k"}, "b": {"type": "api", "key": "l"}});
        assert_eq!(super::facts(&both), LoginFacts::default());
        assert_eq!(super::facts(&Value::Null), LoginFacts::default());
    }

    #[test]
    fn only_a_key_of_the_plan_is_a_key() {
        for auth in [
            json!(null),
            json!({"opencode-go": {"type": "api", "key": " "}}),
            json!({"opencode-go": {"type": "oauth", "key": "k"}}),
            json!({"opencode": {"type": "api", "key": "k"}}),
        ] {
            assert_eq!(go_key(&auth), None, "{auth}");
        }
    }
}
