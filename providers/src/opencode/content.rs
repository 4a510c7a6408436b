//! The configuration the program gets from us (`OPENCODE_CONFIG_CONTENT`, merged last by 1.18.33).
//!
//! Its agents are closed: what a turn may do is said per session (`permissions.rs`), and an agent that lost its
//! session's rules can do nothing. Nothing of a project runs: no formatter, no language server, no plugin, no MCP server.

use serde_json::{Map, Value, json};

/// The person's providers, then what the settings say, then ours.
pub(super) fn joined(providers: Map<String, Value>, said: Option<Value>) -> Value {
    let mut content = Value::Object(providers);
    if let Some(said) = said {
        merge(&mut content, said);
    }
    merge(&mut content, ours());
    content
}

fn ours() -> Value {
    json!({
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "formatter": false,
        "lsp": false,
        "plugin": [],
        "instructions": [],
        "default_agent": "build",
        // The title agent asks the small model, which may be another provider's: titles are given.
        "agent": {
            "build": {"permission": {"*": "deny"}},
            "plan": {"disable": true},
            "title": {"disable": true},
        },
        // A call that is refused does not end the turn.
        "experimental": {"continue_loop_on_deny": true},
    })
}

/// Later objects win key by key, everything else whole.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_wins_over_what_is_said_and_that_over_the_providers() {
        let providers = json!({"provider": {"a": {"name": "x"}}, "enabled_providers": ["a"]});
        let Value::Object(providers) = providers else {
            unreachable!()
        };
        let said = json!({"provider": {"a": {"name": "y"}}, "snapshot": true, "mcp": {"m": {"type": "local"}}});
        let content = joined(providers, Some(said));
        assert_eq!(content["provider"]["a"]["name"], "y");
        assert_eq!(content["enabled_providers"], json!(["a"]));
        assert_eq!(content["snapshot"], false);
        assert_eq!(content["mcp"]["m"]["type"], "local");
        assert_eq!(content["agent"]["build"]["permission"]["*"], "deny");
    }
}
