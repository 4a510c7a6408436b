//! Claude Code (`claude`): one process per turn, driven over stream-json with the person's own login.
//!
//! What to know before changing anything here:
//! * a session is a UUID; whether it is resumed or opened is decided by its transcript on disk (`sessions.rs`);
//! * a failed turn's prompt is already in the transcript, so sending it again after a failure puts it there twice. That
//!   double is accepted: the other choice ("continue") would answer a question the person may have changed;
//! * `is_error` decides, never `subtype`; words never before fields (`failure.rs`);
//! * two turns of one session must not overlap (one of them would be lost): the host serialises them.

mod blocks;
mod command;
mod config;
mod failure;
mod limits;
mod login;
mod probe;
mod sessions;
pub(crate) mod stream;
mod todos;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::ProviderSessionId;

pub use self::config::ClaudeSettings;
use self::sessions::Sessions;
pub use self::stream::{Stream, TurnEnd};
use crate::environment::billing_variable;
use crate::process::ChildSpec;
use crate::{
    AttemptHandle, AttemptRequest, Health, LoginFacts, Permissions, ProbeError, Probed, Provider,
};

/// The oldest version with every switch this provider relies on (`--restricted`, `--permission-prompts`).
const OLDEST: [u32; 3] = [2, 1, 332];
/// How long `claude --version` may take; it starts in about a second on a busy machine.
const VERSION_WAIT: Duration = Duration::from_secs(30);

/// The provider.
#[derive(Debug, Clone)]
pub struct Claude(Arc<ClaudeSettings>);

impl Claude {
    /// Drives `claude` as these settings say; looks at nothing yet.
    pub fn new(settings: ClaudeSettings) -> Self {
        Self(Arc::new(settings))
    }

    fn binary(&self) -> Result<PathBuf, String> {
        match &self.0.binary {
            Some(path) => Ok(path.clone()),
            None => which::which("claude").map_err(|_| NOT_FOUND.to_owned()),
        }
    }

    fn sessions(&self) -> Sessions {
        Sessions {
            folder: self.0.folder(),
        }
    }

    async fn version(&self, binary: PathBuf) -> Result<String, String> {
        let spec = ChildSpec {
            program: binary,
            args: vec!["--version".into()],
            env: self.0.environment(std::env::vars_os()),
            cwd: std::env::temp_dir(),
        };
        crate::program::version(PRODUCT, &spec, VERSION_WAIT).await
    }

    /// Whether a login is there. On macOS it may be in the keychain, which is not looked into.
    fn has_login(&self) -> bool {
        let settings = &self.0;
        let file = || {
            settings
                .folder()
                .is_some_and(|folder| folder.join(".credentials.json").is_file())
        };
        cfg!(target_os = "macos")
            || settings.env.contains_key("CLAUDE_CODE_OAUTH_TOKEN")
            || billing_variable(&settings.env).is_some()
            || file()
    }
}

/// What to install where the program is missing.
const PRODUCT: &str = "Claude Code";
const NOT_FOUND: &str =
    "`claude` was not found on PATH; install Claude Code, or name the program with `binary`";

#[async_trait]
impl Provider for Claude {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let claude = self.clone();
        AttemptHandle::spawn(move |events, stop| turn::run(claude, request, events, stop))
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    async fn session_holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let (sessions, session, marker) = (self.sessions(), session.clone(), marker.to_owned());
        let looking = tokio::task::spawn_blocking(move || sessions.holds(&session, &marker));
        looking.await.ok().flatten()
    }

    fn check_permissions(&self, permissions: Permissions) -> Result<(), String> {
        let is_root = rustix::process::geteuid().is_root();
        refusal(permissions, is_root, self.0.env.contains_key("IS_SANDBOX"))
    }

    async fn probe(&self, limit: Duration) -> Result<Probed, ProbeError> {
        probe::ask(self, limit).await
    }

    async fn login(&self) -> LoginFacts {
        let settings = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || login::facts(&settings));
        reading.await.unwrap_or_default()
    }

    async fn health(&self) -> Health {
        let broken = |problem: String, hint: &str| Health::Broken {
            problem,
            hint: hint.to_owned(),
        };
        let binary = match self.binary() {
            Ok(binary) => binary,
            Err(problem) => return broken(problem, "npm install -g @anthropic-ai/claude-code"),
        };
        let version = match self.version(binary).await {
            Ok(version) => version,
            Err(problem) => {
                return broken(
                    problem,
                    "run `claude --version` by hand and repair the installation",
                );
            }
        };
        if crate::program::numbers(&version).is_none_or(|numbers| numbers < OLDEST) {
            let problem = format!(
                "claude {version} is older than 2.1.332 and lacks switches the permissions rest on"
            );
            return broken(problem, "run `claude update`");
        }
        match self.has_login() {
            true => Health::Ready {
                version: Some(version),
            },
            false => broken(
                "claude has no login here".to_owned(),
                "run `claude` once and log in (with `CLAUDE_CONFIG_DIR` set to the subscription's `home`)",
            ),
        }
    }
}

/// What this provider cannot enforce, by name.
fn refusal(permissions: Permissions, is_root: bool, sandboxed: bool) -> Result<(), String> {
    if permissions == Permissions::Full && is_root && !sandboxed {
        return Err(
            "claude refuses permissions = \"full\" as root; run the gateway as another user, or choose \"edit\"".to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_as_root_is_refused_by_name() {
        assert!(
            refusal(Permissions::Full, true, false)
                .unwrap_err()
                .contains("\"full\"")
        );
        for (permissions, root, sandboxed) in [
            (Permissions::Full, false, false),
            (Permissions::Full, true, true),
            (Permissions::Edit, true, false),
            (Permissions::ReadOnly, true, false),
            (Permissions::None, true, false),
        ] {
            assert_eq!(refusal(permissions, root, sandboxed), Ok(()));
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(crate::program::numbers("2.1.400").unwrap() > OLDEST);
        assert!(crate::program::numbers("2.1.197").unwrap() < OLDEST);
        assert_eq!(crate::program::numbers("next"), None);
    }
}
