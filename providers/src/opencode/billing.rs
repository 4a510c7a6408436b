//! The billing guard: a subscription that is said to be a plan pays through the plan's own provider and no other. The
//! program may know many more providers (a key it found, another login), and each would be billed without a word.

use serde_json::Value;

/// Providers of the program that are plans paid by the month, as models.dev names them in 1.18.33.
const PLANS: &[&str] = &[
    "opencode-go",
    "github-copilot",
    "zai-coding-plan",
    "zhipuai-coding-plan",
    "kimi-for-coding",
    "minimax-coding-plan",
    "minimax-cn-coding-plan",
    "alibaba-coding-plan",
    "alibaba-coding-plan-cn",
    "tencent-coding-plan",
    "volcengine-coding-plan",
    "umans-ai-coding-plan",
    "kuae-cloud-coding-plan",
];

/// A provider of the program and one of its models, as `/config/providers` describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

/// Splits `provider/model`; the model may hold further slashes.
pub(super) fn target(model: &str) -> Option<Target<'_>> {
    let (provider, model) = model.split_once('/')?;
    (!provider.is_empty() && !model.is_empty()).then_some(Target { provider, model })
}

/// Why this target must not be used; `None` = it may. `known` is the answer of `/config/providers`, `auth` the login
/// file. Fails closed: what is not known to be a plan is not one.
pub(super) fn refusal(
    target: &Target<'_>,
    known: &Value,
    auth: &Value,
    metered: bool,
) -> Option<String> {
    let Target { provider, model } = target;
    let providers = known.get("providers").and_then(Value::as_array);
    let entry = providers
        .into_iter()
        .flatten()
        .find(|entry| entry.get("id").and_then(Value::as_str) == Some(provider));
    let Some(entry) = entry else {
        return Some(format!(
            "opencode has no login and no configuration for the provider \"{provider}\"; run `opencode auth login`, or correct the route"
        ));
    };
    let Some(details) = entry.get("models").and_then(|models| models.get(*model)) else {
        return Some(format!(
            "opencode's provider \"{provider}\" has no model \"{model}\"; `opencode models {provider}` lists them"
        ));
    };
    let login = auth.get(*provider).and_then(|entry| entry.get("type"));
    let paid_by_plan = metered
        || PLANS.contains(provider)
        // A ChatGPT login, not a key.
        || (*provider == "openai" && login.and_then(Value::as_str) == Some("oauth"))
        || is_on_this_machine(entry, details);
    (!paid_by_plan).then(|| {
        format!(
            "\"{provider}\" is not a plan that opencode can use, so it would bill per token; write billing = \"metered\" for this subscription if that is meant"
        )
    })
}

/// A model served on this machine bills nobody.
fn is_on_this_machine(entry: &Value, model: &Value) -> bool {
    let base = entry.pointer("/options/baseURL").and_then(Value::as_str);
    let url = base.or_else(|| model.pointer("/api/url").and_then(Value::as_str));
    let url = url.and_then(|url| reqwest::Url::parse(url).ok());
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        let address: Option<std::net::IpAddr> = host.parse().ok();
        host == "localhost" || address.is_some_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known(provider: &str, url: &str) -> Value {
        json!({"providers": [{"id": provider, "models": {"m/1": {"api": {"url": url}}}, "options": {}}]})
    }

    #[test]
    fn only_a_plan_this_machine_or_a_word_for_it_may_be_billed() {
        let far = "https://api.example.com/v1";
        let none = json!({});
        let oauth = json!({"openai": {"type": "oauth"}});
        let key = json!({"openai": {"type": "api"}});
        for (model, known, auth, metered, allowed) in [
            (
                "opencode-go/m/1",
                known("opencode-go", far),
                &none,
                false,
                true,
            ),
            (
                "github-copilot/m/1",
                known("github-copilot", far),
                &none,
                false,
                true,
            ),
            ("opencode/m/1", known("opencode", far), &none, false, false),
            (
                "openrouter/m/1",
                known("openrouter", far),
                &none,
                false,
                false,
            ),
            (
                "openrouter/m/1",
                known("openrouter", far),
                &none,
                true,
                true,
            ),
            ("openai/m/1", known("openai", far), &oauth, false, true),
            ("openai/m/1", known("openai", far), &key, false, false),
            (
                "ollama/m/1",
                known("ollama", "http://localhost:11434/v1"),
                &none,
                false,
                true,
            ),
            (
                "mock/m/1",
                known("mock", "http://127.0.0.1:9/v1"),
                &none,
                false,
                true,
            ),
            (
                "mock/m/1",
                known("mock", "http://[::1]:9/v1"),
                &none,
                false,
                true,
            ),
            (
                "mock/m/1",
                known("mock", "http://127.0.0.1.example.com/v1"),
                &none,
                false,
                false,
            ),
            ("mock/m/1", known("mock", "nonsense"), &none, false, false),
            (
                "other/m/1",
                known("mock", "http://127.0.0.1/v1"),
                &none,
                true,
                false,
            ),
            (
                "mock/m/2",
                known("mock", "http://127.0.0.1/v1"),
                &none,
                true,
                false,
            ),
        ] {
            let refused = refusal(&target(model).unwrap(), &known, auth, metered);
            assert_eq!(refused.is_none(), allowed, "{model}: {refused:?}");
        }
    }

    #[test]
    fn a_model_is_a_provider_and_a_model() {
        assert_eq!(
            target("a/b/c"),
            Some(Target {
                provider: "a",
                model: "b/c"
            })
        );
        for model in ["a", "/a", "a/", ""] {
            assert_eq!(target(model), None);
        }
    }
}
