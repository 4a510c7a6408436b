//! What a login looks like from outside, to tell whether it is still the one that was refused. Of a program's own
//! credentials only the file's size and age are looked at, never what is in it; a key is compared by a salted digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gateway_core::ids::SubscriptionId;
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::{Environment, Program, ProviderSettings, Settings, SubscriptionSettings};

/// The logins of all subscriptions.
pub struct Logins(BTreeMap<SubscriptionId, Login>);

struct Login {
    /// Settings and key as they are used until the next start.
    fixed: SecretString,
    /// Where the program keeps its credentials; they can change at any time.
    files: Vec<PathBuf>,
}

impl Logins {
    /// Looks at the settings and their keys once.
    pub fn of(settings: &Settings, environment: &Environment) -> Self {
        let login = |subscription: &SubscriptionSettings| {
            let files = match &subscription.provider {
                ProviderSettings::Cli { program, home, .. } => {
                    credential_files(*program, home.as_deref(), environment)
                }
                _ => Vec::new(),
            };
            let fixed = SecretString::from(fixed(subscription, environment));
            (subscription.id.clone(), Login { fixed, files })
        };
        Self(settings.subscriptions.values().map(login).collect())
    }

    /// A text that differs whenever the login does. It may hold a key: it goes into a digest and nowhere else.
    pub fn describe(&self, subscription: &SubscriptionId) -> String {
        let Some(login) = self.0.get(subscription) else {
            return String::new();
        };
        let mut text = login.fixed.expose_secret().to_owned();
        for file in &login.files {
            if let Ok(about) = std::fs::metadata(file) {
                let _ = write!(
                    text,
                    "\n{} {} {}.{}",
                    file.display(),
                    about.len(),
                    about.mtime(),
                    about.mtime_nsec()
                ); // writing to a String cannot fail
            }
        }
        text
    }
}

fn fixed(subscription: &SubscriptionSettings, environment: &Environment) -> String {
    let key = subscription
        .key()
        .and_then(|key| key.resolve_in(environment).ok());
    let key = key.as_ref().map_or("", |key| key.expose_secret());
    match &subscription.provider {
        ProviderSettings::Cli {
            program,
            home,
            binary,
            env,
        } => {
            // Who pays is part of it: a billing guard refuses a login, and `billing = "metered"` is its way out.
            let billing = subscription.billing;
            format!(
                "{}\n{home:?}\n{binary:?}\n{env:?}\n{billing:?}",
                program.word()
            )
        }
        ProviderSettings::Anthropic { base_url, .. }
        | ProviderSettings::OpenAi { base_url, .. } => {
            format!("{base_url}\n{key}")
        }
        ProviderSettings::Scripted => String::new(),
    }
}

/// Where a program may keep its login, best guess first. Seen with Claude Code 2.1 (`.credentials.json`; on macOS the
/// keychain, so no file), Codex 0.x (`auth.json` in `CODEX_HOME`) and OpenCode 1.x (`auth.json` in its data folder).
pub fn credential_files(
    program: Program,
    home: Option<&Path>,
    environment: &Environment,
) -> Vec<PathBuf> {
    let person = environment.home.clone().unwrap_or_default();
    let folder = |variable: &str, default: &str| {
        let set = environment.get(variable).map(PathBuf::from);
        set.unwrap_or_else(|| person.join(default))
    };
    let own = home.map(Path::to_path_buf);
    match program {
        Program::Claude => {
            let home = own.unwrap_or_else(|| folder("CLAUDE_CONFIG_DIR", ".claude"));
            vec![home.join(".credentials.json")]
        }
        Program::Codex => {
            let home = own.unwrap_or_else(|| folder("CODEX_HOME", ".codex"));
            vec![home.join("auth.json")]
        }
        Program::OpenCode => match own {
            Some(home) => ["opencode", "data/opencode", ".local/share/opencode", "."]
                .iter()
                .map(|part| home.join(part).join("auth.json"))
                .collect(),
            None => vec![
                folder("XDG_DATA_HOME", ".local/share")
                    .join("opencode")
                    .join("auth.json"),
            ],
        },
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::route::Billing;

    use super::*;

    #[test]
    fn who_pays_is_part_of_a_login() {
        let environment = Environment::of(Path::new("/home/p"), &[]);
        let look = |billing| {
            let id = SubscriptionId::new("a");
            let provider = ProviderSettings::Cli {
                program: Program::Codex,
                home: Some("/nonexistent".into()),
                binary: None,
                env: BTreeMap::new(),
            };
            fixed(
                &SubscriptionSettings {
                    slug: id.clone(),
                    id,
                    billing,
                    provider,
                },
                &environment,
            )
        };
        assert_eq!(look(Billing::Plan), look(Billing::Plan));
        assert_ne!(look(Billing::Plan), look(Billing::Metered));
    }

    #[test]
    fn each_program_keeps_its_login_in_its_own_place() {
        let environment = Environment::of(Path::new("/home/p"), &[("CODEX_HOME", "/c")]);
        let files = |program, home: Option<&str>| {
            credential_files(program, home.map(Path::new), &environment)
        };
        let first = |program, home| files(program, home).first().cloned().unwrap();
        let rows = [
            (Program::Claude, None, "/home/p/.claude/.credentials.json"),
            (Program::Claude, Some("/w"), "/w/.credentials.json"),
            (Program::Codex, None, "/c/auth.json"),
            (Program::Codex, Some("/w"), "/w/auth.json"),
            (
                Program::OpenCode,
                None,
                "/home/p/.local/share/opencode/auth.json",
            ),
            (Program::OpenCode, Some("/w"), "/w/opencode/auth.json"),
        ];
        for (program, home, want) in rows {
            assert_eq!(first(program, home), Path::new(want), "{program:?}");
        }
    }
}
