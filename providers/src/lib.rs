//! Providers turn one attempt into events and an end. Each drives an official CLI or API with the person's own login;
//! nothing here decides where a turn goes.
//!
//! Promises every provider keeps:
//! * the prompt leaves only after [`AttemptRequest::go`] has fired (starting a process or a connection may overlap);
//! * bad news is a value ([`AttemptEnd::Failed`]), classified here and nowhere else, typed fields before prose;
//! * after [`Stop::stop`] the attempt ends with [`AttemptEnd::Stopped`], its whole process group reaped first;
//! * dropping the handle stops and reaps as well;
//! * the attempt's own deadline and silence limit are kept even if the other side says nothing.

pub mod anthropic_http;
pub mod claude;
pub mod codex;
mod earlier;
pub mod environment;
#[cfg(feature = "foreign")]
pub mod foreign;
pub mod http;
#[cfg(any(test, feature = "loopback"))]
pub mod loopback;
pub mod openai_http;
pub mod opencode;
pub mod process;
mod program;
pub mod scripted;
mod sse;

pub use http::install_tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::event::Event;
use gateway_core::failure::AttemptLimits;
use gateway_core::ids::{AttemptId, ConversationId, ModelId, ProviderSessionId};
use gateway_core::turn::AttemptEnd;
use gateway_core::usage::Reading;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What the agent may do on this machine. Ordered: a later level allows more.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// No tools at all.
    #[default]
    None,
    /// Read inside the working directory.
    ReadOnly,
    /// Read and edit inside the working directory.
    Edit,
    /// Everything the CLI can do.
    Full,
}

/// One earlier exchange of the conversation, as sent and as answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub request: String,
    pub answer: String,
}

/// Everything a provider needs for one try.
#[derive(Debug)]
pub struct AttemptRequest {
    pub attempt: AttemptId,
    pub conversation: ConversationId,
    pub model: ModelId,
    /// The CLI session this subscription last used for the conversation; `None` = open one.
    pub session: Option<ProviderSessionId>,
    /// A title for people, for providers that keep sessions.
    pub title: String,
    /// The person's words with any injected context already joined: sent verbatim as the user message.
    pub prompt: String,
    /// The conversation so far. A provider without sessions sends all of it; one that resumes a session sends only the
    /// last `unseen` exchanges, as text before the prompt.
    pub history: Vec<Exchange>,
    /// How many of the newest `history` entries the resumed session has not seen (answered elsewhere).
    pub unseen: usize,
    pub workdir: PathBuf,
    pub permissions: Permissions,
    pub limits: AttemptLimits,
    /// Fires when the journal row is durable. Dropped without firing = do not send, end as stopped.
    pub go: oneshot::Receiver<()>,
}

/// Asks a running attempt to stop: cleanly first, then by force. Cloneable; idempotent.
#[derive(Debug, Clone, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// A stop nobody has asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks once; further calls change nothing.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Whether it was asked.
    pub fn is_stopped(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is asked.
    pub async fn stopped(&self) {
        self.0.cancelled().await;
    }
}

/// A running attempt. Events come in order and end before `end` resolves; a dropped handle stops the attempt.
#[derive(Debug)]
pub struct AttemptHandle {
    pub events: mpsc::Receiver<Event>,
    pub end: oneshot::Receiver<AttemptEnd>,
    pub stop: Stop,
    _stop_on_drop: tokio_util::sync::DropGuard,
}

impl AttemptHandle {
    /// Runs `drive` as a task of its own. `drive` gets the sender for events and the stop to watch, and returns the end.
    pub fn spawn<F, D>(drive: D) -> Self
    where
        D: FnOnce(mpsc::Sender<Event>, Stop) -> F,
        F: Future<Output = AttemptEnd> + Send + 'static,
    {
        let (events_in, events) = mpsc::channel(256);
        let (end_in, end) = oneshot::channel();
        let stop = Stop::new();
        let guard = stop.0.clone().drop_guard();
        let driving = drive(events_in, stop.clone());
        tokio::spawn(async move {
            let _ = end_in.send(driving.await); // nobody listens any more: the handle was dropped
        });
        Self {
            events,
            end,
            stop,
            _stop_on_drop: guard,
        }
    }
}

/// What `baton doctor` and the start-up check learn about one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ready {
        version: Option<String>,
    },
    /// What is wrong, and what to do.
    Broken {
        problem: String,
        hint: String,
    },
}

/// What a subscription's official surface tells about the room that is left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probed {
    /// One per window the surface names; empty = it answered and named none.
    pub readings: Vec<Reading>,
    /// Who the login is, as far as this surface tells.
    pub login: LoginFacts,
}

/// Who a login is, for finding out which logins draw on one allowance. `None` = not known; nothing is guessed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginFacts {
    /// The company that meters it (`anthropic`, `openai`, `opencode`, a host name).
    pub upstream: Option<String>,
    /// The company's own id of the account, organisation or workspace.
    pub account_id: Option<String>,
    /// What stays the same for as long as the login is the same, and is never an access token (those rotate): the host
    /// keeps a keyed hash of it alone.
    pub subject: Option<LoginSubject>,
    pub email: Option<String>,
    pub plan: Option<String>,
}

/// A stable subject of a login, which may be a secret (an API key): it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginSubject(String);

impl LoginSubject {
    /// Wraps it.
    pub fn new(subject: impl Into<String>) -> Self {
        Self(subject.into())
    }

    /// The bytes to hash.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for LoginSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginSubject(…)")
    }
}

/// Why a probe brought nothing. It says something about the surface asked, never about the subscription's quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// There is no official surface, or this login cannot use it: asking again is useless.
    #[error("no official surface tells this login's limits: {0}")]
    Unsupported(String),
    /// Asked too often. `retry_after` is what was stated; `None` = nothing was.
    #[error("asked too often")]
    Throttled { retry_after: Option<Duration> },
    #[error("{0}")]
    Failed(String),
}

/// One subscription, ready to run attempts.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Starts one attempt at once and returns its handle; never blocks.
    fn start(&self, request: AttemptRequest) -> AttemptHandle;

    /// Whether the provider keeps sessions of its own (a CLI) or is sent the history each time (an HTTP API).
    fn keeps_sessions(&self) -> bool;

    /// Whether the stored session can be resumed and its transcript holds `marker`. `None` = no such transcript.
    async fn session_holds(&self, _session: &ProviderSessionId, _marker: &str) -> Option<bool> {
        None
    }

    /// Refuses, by name, a permission level this provider cannot enforce. `Err` holds the sentence for the operator.
    fn check_permissions(&self, _permissions: Permissions) -> Result<(), String> {
        Ok(())
    }

    /// Asks the official surface how much is left, within `limit`. Spends nothing, starts no turn.
    ///
    /// # Errors
    /// When there is no such surface, or it did not tell.
    async fn probe(&self, _limit: Duration) -> Result<Probed, ProbeError> {
        Err(ProbeError::Unsupported("this provider has none".to_owned()))
    }

    /// Who the login is, from its settings and its own files; nothing is dialled and nothing is started.
    async fn login(&self) -> LoginFacts {
        LoginFacts::default()
    }

    /// Looks at binary, version and login without spending anything.
    async fn health(&self) -> Health;
}

/// A provider behind its subscription.
pub type SharedProvider = Arc<dyn Provider>;
