//! OpenCode (`opencode serve`): one long-lived server per subscription, driven over HTTP on loopback with the person's
//! own logins.
//!
//! What to know before changing anything here:
//! * a turn that failed answers with status 200 as well: `info.error` tells;
//! * the program retries by itself, for hours if the service says so: only `session.status` shows it, and a limit is
//!   given up here (`failure.rs`);
//! * what a turn may do is a rule set of its session (`permissions.rs`), and what the program does not confine itself is
//!   looked for in the working directory (`ground.rs`);
//! * its own configuration is ours: of the person's one only the providers are taken (`user_config.rs`);
//! * two turns of one session must not overlap: the host serialises them.

mod api;
mod billing;
mod blocks;
mod config;
mod content;
mod failure;
mod ground;
mod hub;
mod leftovers;
mod login;
mod permissions;
mod ready;
mod server;
pub(crate) mod stream;
mod turn;
mod usage;
mod user_config;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::ProviderSessionId;
use serde_json::Value;

use self::api::CallError;
pub use self::config::OpenCodeSettings;
use self::server::{Lease, Servers};
use crate::process::ChildSpec;
use crate::{
    AttemptHandle, AttemptRequest, Health, LoginFacts, Permissions, ProbeError, Probed, Provider,
};

/// The oldest version whose session rules were checked (`tests/real_opencode.rs`).
const OLDEST: [u32; 3] = [1, 18, 33];
/// How long `opencode --version` may take on a loaded machine.
const VERSION_WAIT: Duration = Duration::from_secs(60);
/// What to install where the program is missing.
const PRODUCT: &str = "OpenCode";
const NOT_FOUND: &str =
    "`opencode` was not found on PATH; install OpenCode, or name the program with `binary`";

/// The provider. Dropped, it ends its server.
#[derive(Clone)]
pub struct OpenCode(Arc<Shared>);

struct Shared {
    settings: OpenCodeSettings,
    servers: Servers,
}

impl OpenCode {
    /// Drives `opencode` as these settings say; looks at nothing and starts nothing yet.
    pub fn new(settings: OpenCodeSettings) -> Self {
        Self(Arc::new(Shared {
            settings,
            servers: Servers::default(),
        }))
    }

    fn binary(&self) -> Result<PathBuf, String> {
        match &self.0.settings.binary {
            Some(path) => Ok(path.clone()),
            None => which::which("opencode").map_err(|_| NOT_FOUND.to_owned()),
        }
    }

    async fn lease(&self) -> Result<Lease, String> {
        let settings = &self.0.settings;
        self.0.servers.lease(settings, self.binary()?).await
    }

    /// The login file; `Null` = there is none.
    async fn auth(&self) -> Value {
        let Some(folders) = self.0.settings.folders() else {
            return Value::Null;
        };
        let reading = tokio::task::spawn_blocking(move || login::read(&folders.auth_file()));
        reading.await.unwrap_or(Value::Null)
    }

    /// What no file tool may reach, as named and with links resolved: the settings' folders, the login's, and what shows
    /// the environment of processes.
    fn hidden(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = ["/proc", "/sys", "/dev"].map(PathBuf::from).into();
        let folders = self.0.settings.folders();
        let mine = folders.iter().flat_map(|folders| {
            // Without a home of its own the login shares these folders with other programs: only its parts are hidden.
            let own = folders.all().map(|folder| folder.join("opencode"));
            own.into_iter().chain([folders.private()])
        });
        let home = self.0.settings.home.iter().cloned();
        let named = self.0.settings.hidden.iter().cloned();
        for path in named.chain(home).chain(mine) {
            let resolved = path.canonicalize().ok();
            paths.extend(resolved.filter(|resolved| *resolved != path));
            paths.push(path);
        }
        paths
    }

    /// Whether the program finds the `rg` its searches run. It would download one and run it otherwise (1.18.33).
    fn has_search(&self) -> bool {
        let settings = &self.0.settings;
        let cached = settings
            .folders()
            .is_some_and(|folders| folders.cache.join("opencode/bin/rg").is_file());
        let path = settings.variable("PATH");
        cached || which::which_in("rg", path, std::env::temp_dir()).is_ok()
    }

    async fn version(&self, binary: PathBuf) -> Result<String, String> {
        let spec = ChildSpec {
            program: binary,
            args: vec!["--version".into()],
            env: self.0.settings.environment(std::env::vars_os(), None),
            cwd: std::env::temp_dir(),
        };
        crate::program::version(PRODUCT, &spec, VERSION_WAIT).await
    }

    /// Whether there is anything to answer with: a login, or a provider in the configuration.
    async fn has_login(&self) -> bool {
        let logins = self.auth().await;
        let provider = || {
            let folders = self.0.settings.folders();
            let known =
                folders.map(|folders| user_config::providers(&folders.config.join("opencode")));
            known.is_some_and(|known| known.contains_key("provider"))
        };
        logins.as_object().is_some_and(|logins| !logins.is_empty())
            || provider()
            || self.0.settings.env.contains_key("OPENCODE_CONFIG_CONTENT")
            || self.0.settings.env.contains_key("OPENCODE_CONFIG")
    }
}

#[async_trait]
impl Provider for OpenCode {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let opencode = self.clone();
        AttemptHandle::spawn(move |events, stop| turn::run(opencode, request, events, stop))
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    async fn session_holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let lease = self.lease().await.ok()?;
        match turn::within(lease.server.api.transcript(session)).await? {
            Ok(transcript) => Some(transcript.contains(marker)),
            Err(CallError::NotFound) => None,
            Err(error) => {
                tracing::warn!(%error, "opencode did not show a session");
                None
            }
        }
    }

    fn check_permissions(&self, _permissions: Permissions) -> Result<(), String> {
        // Every level is enforced, by the program's rules or by what `ground` closes; a working directory in which one
        // cannot be is refused by the turn.
        Ok(())
    }

    async fn probe(&self, limit: Duration) -> Result<Probed, ProbeError> {
        let auth = self.auth().await;
        let readings = usage::probe(&self.0.settings, &auth, limit).await?;
        Ok(Probed {
            readings,
            login: login::facts(&auth),
        })
    }

    async fn login(&self) -> LoginFacts {
        login::facts(&self.auth().await)
    }

    async fn health(&self) -> Health {
        let broken = |problem: String, hint: &str| Health::Broken {
            problem,
            hint: hint.to_owned(),
        };
        let binary = match self.binary() {
            Ok(binary) => binary,
            Err(problem) => return broken(problem, "npm install -g opencode-ai"),
        };
        let version = match self.version(binary).await {
            Ok(version) => version,
            Err(problem) => {
                return broken(
                    problem,
                    "run `opencode --version` by hand and repair the installation",
                );
            }
        };
        if crate::program::numbers(&version).is_none_or(|numbers| numbers < OLDEST) {
            let problem = format!(
                "opencode {version} is older than 1.18.33, whose session rules the permissions rest on"
            );
            return broken(problem, "run `opencode upgrade`");
        }
        match self.has_login().await {
            true => Health::Ready {
                version: Some(version),
            },
            false => broken(
                "opencode has no login and no provider here".to_owned(),
                "run `opencode auth login` (with XDG_DATA_HOME set to the `data` folder of the subscription's `home`)",
            ),
        }
    }
}
