//! What `baton init` proposes for what it found: subscriptions that are paid for first, metered ones last.

use std::fmt::Write as _;
use std::path::PathBuf;

/// CLIs that are known and not driven yet.
pub(crate) const LATER: &[&str] = &["codex", "opencode"];

/// A key that may stand in the environment, and the API it opens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) variable: &'static str,
    name: &'static str,
    provider: &'static str,
    /// `None` = the provider's own address.
    base_url: Option<&'static str>,
    /// A model to start with; `None` = we know none that will be there.
    model: Option<&'static str>,
}

pub(crate) const KEYS: &[Key] = &[
    key(
        "ANTHROPIC_API_KEY",
        "anthropic",
        "anthropic",
        None,
        Some("claude-sonnet-5-5"),
    ),
    key(
        "OPENAI_API_KEY",
        "openai",
        "openai",
        None,
        Some("gpt-6.1-sol"),
    ),
    key(
        "FIREWORKS_API_KEY",
        "fireworks",
        "openai",
        Some("https://api.fireworks.ai/inference/v1"),
        Some("kimi-k3"),
    ),
    key(
        "OPENROUTER_API_KEY",
        "openrouter",
        "openai",
        Some("https://openrouter.ai/api/v1"),
        None,
    ),
    key(
        "GROQ_API_KEY",
        "groq",
        "openai",
        Some("https://api.groq.com/openai/v1"),
        None,
    ),
    key(
        "DEEPSEEK_API_KEY",
        "deepseek",
        "openai",
        Some("https://api.deepseek.com/v1"),
        None,
    ),
    key(
        "MISTRAL_API_KEY",
        "mistral",
        "openai",
        Some("https://api.mistral.ai/v1"),
        None,
    ),
    key(
        "TOGETHER_API_KEY",
        "together",
        "openai",
        Some("https://api.together.xyz/v1"),
        None,
    ),
    key(
        "XAI_API_KEY",
        "xai",
        "openai",
        Some("https://api.x.ai/v1"),
        None,
    ),
];

const fn key(
    variable: &'static str,
    name: &'static str,
    provider: &'static str,
    base_url: Option<&'static str>,
    model: Option<&'static str>,
) -> Key {
    Key {
        variable,
        name,
        provider,
        base_url,
        model,
    }
}

/// What is on this machine.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) claude: Option<PathBuf>,
    /// Of [`LATER`].
    pub(crate) later: Vec<&'static str>,
    pub(crate) keys: Vec<&'static Key>,
}

impl Found {
    /// What was found, a line each.
    pub(crate) fn summary(&self) -> String {
        let mut lines = Vec::new();
        if let Some(path) = &self.claude {
            lines.push(format!("Found claude at {}.", path.display()));
        }
        lines.extend(
            self.keys
                .iter()
                .map(|key| format!("Found {} in the environment.", key.variable)),
        );
        lines.extend(self.later.iter().map(|name| {
            format!("Found {name}; not yet: it comes with the issue \"Every signal\".")
        }));
        lines.join("\n")
    }

    /// ` (codex: not yet)` for what was found and cannot be used yet.
    pub(crate) fn later_note(&self) -> String {
        if self.later.is_empty() {
            String::new()
        } else {
            format!(
                " ({} found; not yet: comes with the issue \"Every signal\")",
                self.later.join(" and ")
            )
        }
    }
}

/// The file to write; `None` = nothing that could answer was found.
pub(crate) fn propose(found: &Found) -> Option<String> {
    let plan = found.claude.as_ref().map(|_| "claude/opus".to_owned());
    let metered = found
        .keys
        .iter()
        .filter_map(|key| Some(format!("{}/{}", key.name, key.model?)));
    let chain: Vec<String> = plan.into_iter().chain(metered).collect();
    let first = chain.first()?;
    let mut text = String::from(
        "# Written by `baton init`. `baton config check` checks it, `baton config schema` describes it.\n",
    );
    if found.claude.is_some() {
        text.push_str("\n[subscriptions.claude]\nprovider = \"claude\"   # your own login of the CLI; home = \"…\" for another one\n");
    }
    for key in &found.keys {
        push(
            &mut text,
            format_args!(
                "\n[subscriptions.{}]\nprovider = {:?}\n",
                key.name, key.provider
            ),
        );
        if let Some(url) = key.base_url {
            push(&mut text, format_args!("base_url = {url:?}\n"));
        }
        push(
            &mut text,
            format_args!(
                "key_env = {:?}   # secrets are named, never written\n",
                key.variable
            ),
        );
    }
    text.push_str("\n[profiles.default]\n");
    text.push_str(if found.claude.is_some() {
        "# Tried from left to right. A metered entry (an API key) is passed over unless it is the first.\n"
    } else {
        "# Tried from left to right. These cost money per turn: putting one first is the opt-in, the others are passed over.\n"
    });
    push(&mut text, format_args!("chain = {chain:?}\n"));
    for key in found.keys.iter().filter(|key| key.model.is_none()) {
        push(
            &mut text,
            format_args!("# To use {0}, add \"{0}/MODEL\" to the chain.\n", key.name),
        );
    }
    text.push_str("\n[profiles.default.plugins]\nquota = { enabled = true }     # skips what is known to be spent\nhandoff = { enabled = true }   # saves what was in flight when everything is\n");
    debug_assert!(text.contains(first.as_str()));
    Some(text)
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(piece); // writing to a String cannot fail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<&'static Key> {
        KEYS.iter()
            .filter(|key| names.contains(&key.variable))
            .collect()
    }

    #[test]
    fn plans_come_first_and_metered_last() {
        let found = Found {
            claude: Some("/bin/claude".into()),
            later: vec!["codex"],
            keys: keys(&["ANTHROPIC_API_KEY", "GROQ_API_KEY"]),
        };
        let text = propose(&found).unwrap();
        assert!(
            text.contains(r#"chain = ["claude/opus", "anthropic/claude-sonnet-5-5"]"#),
            "{text}"
        );
        assert!(text.contains("# To use groq, add \"groq/MODEL\""), "{text}");
        assert!(found.summary().contains("Found codex; not yet"));
    }

    #[test]
    fn nothing_usable_proposes_nothing() {
        let found = Found {
            later: vec!["codex"],
            ..Found::default()
        };
        assert_eq!(propose(&found), None);
        let only_unknown_models = Found {
            keys: keys(&["GROQ_API_KEY"]),
            ..Found::default()
        };
        assert_eq!(propose(&only_unknown_models), None);
    }
}
