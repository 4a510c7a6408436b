//! What `baton init` proposes for what it found: subscriptions that are paid for first, metered ones last.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::config::Program;

/// A program that drives its own login.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cli {
    pub(crate) program: Program,
    pub(crate) path: PathBuf,
    pub(crate) login: Login,
}

/// Whether the program has a login, as far as its files tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Login {
    /// There is one, or it cannot be told from outside (Claude Code may keep it in a keychain).
    Likely,
    /// There is none where it would be.
    Missing(PathBuf),
}

impl Cli {
    fn usable(&self) -> bool {
        self.login == Login::Likely
    }
}

/// A model to start with, how to log in, and what one should know of the names.
fn first_steps(program: Program) -> (&'static str, &'static str, &'static str) {
    match program {
        Program::Claude => ("opus", "claude", "home = \"…\" for another one"),
        Program::Codex => ("gpt-6.1-sol", "codex login", "home = \"…\" for another one"),
        Program::OpenCode => (
            "opencode-go/kimi-k3",
            "opencode auth login",
            "`opencode models` lists its models as provider/model",
        ),
    }
}

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
    pub(crate) clis: Vec<Cli>,
    pub(crate) keys: Vec<&'static Key>,
}

impl Found {
    /// What was found, a line each.
    pub(crate) fn summary(&self) -> String {
        let clis = self.clis.iter().map(|cli| {
            let word = cli.program.word();
            match &cli.login {
                Login::Likely => format!("Found {word} at {}.", cli.path.display()),
                Login::Missing(_) => format!(
                    "Found {word} at {}, left out: {}.",
                    cli.path.display(),
                    no_login(cli)
                ),
            }
        });
        let keys = self
            .keys
            .iter()
            .map(|key| format!("Found {} in the environment.", key.variable));
        clis.chain(keys).collect::<Vec<_>>().join("\n")
    }

    /// What was found and is not enough to start with, in brackets; empty = nothing.
    pub(crate) fn unusable(&self) -> String {
        let clis = self
            .clis
            .iter()
            .map(|cli| format!("{}: {}", cli.program.word(), no_login(cli)));
        let keys = self.keys.iter().map(|key| {
            format!(
                "{}: no model of it is known, write config.toml by hand",
                key.variable
            )
        });
        let notes: Vec<String> = clis.chain(keys).collect();
        if notes.is_empty() {
            String::new()
        } else {
            format!(" (found {})", notes.join("; "))
        }
    }
}

fn no_login(cli: &Cli) -> String {
    let (_, log_in, _) = first_steps(cli.program);
    match &cli.login {
        Login::Missing(looked) => {
            format!("it has no login at {}; run `{log_in}`", looked.display())
        }
        Login::Likely => "it is ready".to_owned(),
    }
}

/// The file to write; `None` = nothing that could answer was found.
pub(crate) fn propose(found: &Found) -> Option<String> {
    let clis = || found.clis.iter().filter(|cli| cli.usable());
    let plan = clis().map(|cli| {
        let (model, ..) = first_steps(cli.program);
        format!("{}/{model}", cli.program.word())
    });
    let metered = found
        .keys
        .iter()
        .filter_map(|key| Some(format!("{}/{}", key.name, key.model?)));
    let chain: Vec<String> = plan.chain(metered).collect();
    let first = chain.first()?;
    let mut text = String::from(
        "# Written by `baton init`. `baton config check` checks it, `baton config schema` describes it.\n",
    );
    for cli in clis() {
        let (_, _, hint) = first_steps(cli.program);
        let word = cli.program.word();
        push(
            &mut text,
            format_args!(
                "\n[subscriptions.{word}]\nprovider = {word:?}   # your own login of the CLI; {hint}\n"
            ),
        );
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
    text.push_str(if clis().next().is_some() {
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

    fn cli(program: Program, login: Login) -> Cli {
        Cli {
            program,
            path: format!("/bin/{}", program.word()).into(),
            login,
        }
    }

    #[test]
    fn plans_come_first_and_metered_last() {
        let found = Found {
            clis: Program::ALL
                .map(|program| cli(program, Login::Likely))
                .into(),
            keys: keys(&["ANTHROPIC_API_KEY", "GROQ_API_KEY"]),
        };
        let text = propose(&found).unwrap();
        assert!(
            text.contains(r#"chain = ["claude/opus", "codex/gpt-6.1-sol", "opencode/opencode-go/kimi-k3", "anthropic/claude-sonnet-5-5"]"#),
            "{text}"
        );
        assert!(text.contains("# To use groq, add \"groq/MODEL\""), "{text}");
        assert!(found.summary().contains("Found codex at /bin/codex."));
    }

    #[test]
    fn a_program_without_a_login_is_named_and_left_out() {
        let missing = Login::Missing("/home/p/.codex/auth.json".into());
        let found = Found {
            clis: vec![
                cli(Program::Claude, Login::Likely),
                cli(Program::Codex, missing),
            ],
            ..Found::default()
        };
        let text = propose(&found).unwrap();
        assert!(text.contains(r#"chain = ["claude/opus"]"#), "{text}");
        assert!(!text.contains("codex"), "{text}");
        assert!(found.summary().ends_with(
            "Found codex at /bin/codex, left out: it has no login at /home/p/.codex/auth.json; run `codex login`."
        ));
    }

    #[test]
    fn nothing_usable_proposes_nothing() {
        let found = Found {
            clis: vec![cli(Program::Codex, Login::Missing("/a".into()))],
            ..Found::default()
        };
        assert_eq!(propose(&found), None);
        assert!(found.unusable().contains("run `codex login`"));
        let only_unknown_models = Found {
            keys: keys(&["GROQ_API_KEY"]),
            ..Found::default()
        };
        assert_eq!(propose(&only_unknown_models), None);
    }
}
