//! Codex (`codex app-server`): one process per subscription, many threads, with the person's own login.
//!
//! What to know before changing anything here:
//! * the server starts with the first turn, ends when nothing has run for some minutes or with the provider, and is started
//!   anew when it has died; a turn it took with it has failed;
//! * a session is a thread id, never a name; whether it can be resumed is the program's word, and one that cannot is
//!   replaced by a new thread that is told the conversation as text;
//! * a failed turn's prompt is already in the rollout, so sending it again after a failure puts it there twice. That double
//!   is accepted, as for Claude: the other choice ("continue") would answer a question the person may have changed;
//! * a second `turn/start` on a running thread is mixed into the running turn: turns of one thread wait here;
//! * `codexErrorInfo` decides, words only where it says nothing (`failure.rs`);
//! * the person's own `AGENTS.md` in the login's folder reaches the model: 0.171 has no switch for it. Everything else of
//!   the person's and the project's settings that could act does not (`command.rs`).

mod account;
mod command;
mod config;
mod failure;
mod items;
mod lanes;
mod limits;
mod open;
mod server;
mod sessions;
pub(crate) mod stream;
mod text;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::ProviderSessionId;
use gateway_core::usage::ReadingSource;
use gateway_core::usage::source::{Origin, codex};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::account::Account;
pub use self::config::CodexSettings;
use self::lanes::Lanes;
use self::server::{CallError, Server};
use self::sessions::Sessions;
use crate::process::ChildSpec;
use crate::{AttemptHandle, AttemptRequest, Health, LoginFacts, ProbeError, Probed, Provider};

/// The oldest version with permission profiles as this provider uses them.
const OLDEST: [u32; 3] = [0, 171, 0];
/// What to install where the program is missing.
const PRODUCT: &str = "Codex";
/// How long the server may take until it has said who it is; half a second on a quiet machine.
const GREETING: Duration = Duration::from_secs(30);

/// The provider.
#[derive(Debug, Clone)]
pub struct Codex(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: CodexSettings,
    lanes: Lanes,
    running: tokio::sync::Mutex<Option<Running>>,
}

/// A server that has said who it is.
#[derive(Debug, Clone)]
struct Running {
    server: Server,
    version: String,
    account: Account,
}

impl Codex {
    /// Drives `codex app-server` as these settings say; looks at nothing and starts nothing yet.
    pub fn new(settings: CodexSettings) -> Self {
        Self(Arc::new(Inner {
            settings,
            lanes: Lanes::default(),
            running: tokio::sync::Mutex::default(),
        }))
    }

    fn settings(&self) -> &CodexSettings {
        &self.0.settings
    }

    fn lanes(&self) -> &Lanes {
        &self.0.lanes
    }

    /// The running server, or a new one. `Err` has a sentence for people.
    async fn server(&self) -> Result<Running, String> {
        let mut slot = self.0.running.lock().await;
        if let Some(running) = slot.as_ref().filter(|running| running.server.is_alive()) {
            return Ok(running.clone());
        }
        let running = self.start().await?;
        log_version(&running.version);
        *slot = Some(running.clone());
        Ok(running)
    }

    async fn start(&self) -> Result<Running, String> {
        let settings = self.settings();
        let folder = settings.folder().filter(|folder| folder.is_dir());
        let spec = ChildSpec {
            program: settings.program()?,
            args: command::arguments(),
            env: settings.environment(std::env::vars_os()),
            cwd: folder.unwrap_or_else(std::env::temp_dir),
        };
        let server = Server::start(&spec)
            .await
            .map_err(|error| crate::program::start_problem(PRODUCT, &spec, &error))?;
        match timeout(GREETING, self.greet(&server)).await {
            Ok(Ok((version, account))) => Ok(Running {
                server,
                version,
                account,
            }),
            Ok(Err(error)) => Err(format!(
                "codex app-server cannot be used: {}",
                error.words()
            )),
            Err(_) => Err("codex app-server did not answer its greeting".to_owned()),
        }
    }

    async fn greet(&self, server: &Server) -> Result<(String, Account), CallError> {
        let client = json!({
            "clientInfo": {"name": "baton", "title": "Baton", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true},
        });
        let hello = server.call("initialize", client).await?;
        server.say("initialized");
        let agent = hello.get("userAgent").and_then(Value::as_str);
        let config = server
            .call("config/read", json!({"includeLayers": false}))
            .await;
        let account = server
            .call("account/read", json!({"refreshToken": false}))
            .await;
        for answer in [&config, &account] {
            if let Err(CallError::Gone(words)) = answer {
                return Err(CallError::Gone(words.clone()));
            }
        }
        let account = Account::read(
            account.ok().as_ref(),
            &config.unwrap_or_default(),
            self.auth().await.as_ref(),
        );
        Ok((version_of(agent.unwrap_or_default()), account))
    }

    /// The login file; `None` = there is none (the keyring may hold the login), or it is no JSON.
    async fn auth(&self) -> Option<Value> {
        let file = self.settings().folder()?.join("auth.json");
        serde_json::from_slice(&tokio::fs::read(file).await.ok()?).ok()
    }

    /// Why a turn would bill what it must not; `None` = it would not. The file is looked at each time: a key that was put
    /// there while the server runs counts for its next request.
    async fn unwanted_bill(&self, running: &Running) -> Option<String> {
        let settings = self.settings();
        let account = match running.account {
            Account::Login => Account::read(None, &Value::Null, self.auth().await.as_ref()),
            _ => running.account.clone(),
        };
        // No file at all: the login is in the keyring, as the program said.
        let account = match account {
            Account::Missing => running.account.clone(),
            known => known,
        };
        account.refusal(settings.billing, &settings.env)
    }

    async fn ask_limits(&self) -> Result<Value, ProbeError> {
        let running = self.server().await.map_err(ProbeError::Failed)?;
        let answer = running
            .server
            .call("account/rateLimits/read", Value::Null)
            .await;
        answer.map_err(|error| match &error {
            CallError::Refused { message, .. } if message.contains("authentication required") => {
                ProbeError::Unsupported("codex tells limits only to a ChatGPT login".to_owned())
            }
            CallError::Refused { message, .. } if message.contains("429") => {
                ProbeError::Throttled { retry_after: None }
            }
            other => ProbeError::Failed(other.words()),
        })
    }
}

#[async_trait]
impl Provider for Codex {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let codex = self.clone();
        AttemptHandle::spawn(move |events, stop| turn::run(codex, request, events, stop))
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    async fn session_holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let sessions = Sessions {
            folder: self.settings().folder(),
        };
        let (session, marker) = (session.clone(), marker.to_owned());
        let looking = tokio::task::spawn_blocking(move || sessions.holds(&session, &marker));
        looking.await.ok().flatten()
    }

    async fn probe(&self, limit: Duration) -> Result<Probed, ProbeError> {
        let told = timeout(limit, self.ask_limits()).await;
        let told = told.map_err(|_| {
            ProbeError::Failed("codex app-server did not answer in time".to_owned())
        })??;
        let settings = self.settings();
        let origin = Origin::new(
            &settings.subscription,
            (settings.now)(),
            ReadingSource::Probe,
        );
        let mut login = self.login().await;
        let plan = told.pointer("/rateLimits/planType").and_then(Value::as_str);
        login.plan = plan.map(str::to_owned).or(login.plan);
        Ok(Probed {
            readings: codex::rate_limits(&told, &origin),
            login,
        })
    }

    async fn login(&self) -> LoginFacts {
        match self.auth().await {
            Some(auth) => account::facts(&auth),
            None => LoginFacts {
                upstream: Some("openai".to_owned()),
                ..LoginFacts::default()
            },
        }
    }

    async fn health(&self) -> Health {
        let broken = |problem: String, hint: &str| Health::Broken {
            problem,
            hint: hint.to_owned(),
        };
        let running = match self.server().await {
            Ok(running) => running,
            Err(problem) => {
                return broken(
                    problem,
                    "npm install -g @openai/codex, then run `codex app-server` by hand to see what it says",
                );
            }
        };
        let version = running.version.clone();
        if crate::program::numbers(&version).is_none_or(|numbers| numbers < OLDEST) {
            let problem = format!(
                "codex {version} is older than 0.171.0 and lacks the permission profiles the permissions rest on"
            );
            return broken(problem, "run `npm install -g @openai/codex`");
        }
        match self.unwanted_bill(&running).await {
            None => Health::Ready {
                version: Some(version),
            },
            Some(refusal) => match refusal.split_once("; ") {
                Some((problem, hint)) => broken(problem.to_owned(), hint),
                None => broken(refusal, "run `codex login`"),
            },
        }
    }
}

/// `baton/0.171.0 (Debian 12.0.0; x86_64) …`: the version of the program stands behind the client's name.
fn version_of(agent: &str) -> String {
    let after = agent.split_once('/').map_or(agent, |(_, after)| after);
    after
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn log_version(version: &str) {
    if crate::program::numbers(version) == Some(OLDEST) {
        tracing::info!(version, "codex");
    } else {
        tracing::warn!(
            version,
            "this version of codex was never tried with the gateway"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_agent_it_answers_with() {
        let agent = "baton/0.171.0 (Debian 12.0.0; x86_64) unknown (baton; 0.1.0)";
        assert_eq!(crate::program::numbers(&version_of(agent)), Some(OLDEST));
        assert!(crate::program::numbers(&version_of("lab/0.170.9 (x)")).unwrap() < OLDEST);
        assert_eq!(crate::program::numbers(&version_of("")), None);
    }
}
