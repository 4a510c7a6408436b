//! A provider that plays a script: a CLI with tools and sessions, for tests and demos.
//!
//! It keeps every promise of a real provider (go before sending, deadline, silence, stop) unless a [`Act`] says to break
//! one, and records each request it got. It never starts a program; its only way out is [`Act::Fetch`], which asks a
//! loopback server for its text so that the server counts it.

mod play;
mod transcripts;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::event::{CallOutcome, Todo, TokenUsage};
use gateway_core::failure::Failure;
use gateway_core::ids::{AttemptId, ConversationId, ModelId, ProviderSessionId};
use gateway_core::usage::Reading;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{AttemptHandle, AttemptRequest, Exchange, Health, Permissions, Provider};
use transcripts::Transcripts;

/// One thing the scripted provider does in an attempt. A script that runs out ends as [`Act::Answer`] does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Reports this session id instead of the one it resumed or made; from here on it is the attempt's session.
    Session(ProviderSessionId),
    /// Visible text of the current block.
    Text(String),
    /// Later text belongs to a new block.
    NewBlock,
    /// Takes back the text of this block and the later ones.
    Retract {
        from_block: u32,
    },
    /// A tool call starts; `arguments` is JSON text.
    ToolCall {
        id: String,
        name: String,
        arguments: String,
    },
    /// A tool call ends.
    ToolResult {
        id: String,
        outcome: CallOutcome,
        text: String,
    },
    Todos(Vec<Todo>),
    Usage(TokenUsage),
    Limit(Reading),
    Activity(String),
    /// Silence until the notify fires; stop, deadline and silence limit end it too.
    Wait(Arc<Notify>),
    /// Silence until somebody stops the attempt.
    WaitForStop,
    /// From here on a stop is ignored for this long.
    IgnoreStop(Duration),
    /// Asks a server that speaks the Messages API for its text and says it. A refusal ends the attempt as a failure
    /// would over HTTP.
    Fetch {
        /// As [`Loopback::base_url`](crate::loopback::Loopback::base_url) gives it.
        base_url: String,
        client: reqwest::Client,
    },
    /// Ends the attempt with this failure.
    Fail(Failure),
    /// Ends the attempt with all text said so far.
    Answer,
    /// Ends without a word: the driving task dies and the end never resolves to a value.
    Crash,
}

impl Act {
    /// Visible text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A tool call that starts and is left open.
    pub fn call(id: &str, name: &str, arguments: &serde_json::Value) -> Self {
        Self::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.to_string(),
        }
    }

    /// The end of a tool call.
    pub fn result(id: &str, outcome: CallOutcome, text: impl Into<String>) -> Self {
        Self::ToolResult {
            id: id.into(),
            outcome,
            text: text.into(),
        }
    }
}

/// What one attempt was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenAttempt {
    pub attempt: AttemptId,
    pub conversation: ConversationId,
    pub model: ModelId,
    /// The session the host asked to resume; `None` = a new one.
    pub session: Option<ProviderSessionId>,
    pub title: String,
    pub prompt: String,
    pub history: Vec<Exchange>,
    pub unseen: usize,
    pub workdir: PathBuf,
    pub permissions: Permissions,
    /// Whether `go` fired, so that the prompt left.
    pub sent: bool,
}

/// Decides the script of an attempt nothing was queued for.
type Otherwise = Arc<dyn Fn(&SeenAttempt) -> Vec<Act> + Send + Sync>;

/// A subscription that plays scripts. Clones share everything.
#[derive(Clone)]
pub struct Scripted(Arc<Inner>);

struct Inner {
    scripts: Mutex<VecDeque<Vec<Act>>>,
    otherwise: Mutex<Otherwise>,
    seen: Mutex<Vec<SeenAttempt>>,
    started: watch::Sender<usize>,
    sent: watch::Sender<usize>,
    keeps_sessions: bool,
    transcripts: Transcripts,
    health: Mutex<Health>,
}

impl Scripted {
    /// Keeps its sessions in memory.
    pub fn new() -> Self {
        Self::build(true, Transcripts::in_memory())
    }

    /// Keeps its sessions as files in this folder, so that they outlive the process.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self::build(true, Transcripts::in_folder(folder.into()))
    }

    /// Keeps no sessions, like an HTTP API.
    pub fn without_sessions() -> Self {
        Self::build(false, Transcripts::in_memory())
    }

    fn build(keeps_sessions: bool, transcripts: Transcripts) -> Self {
        Self(Arc::new(Inner {
            scripts: Mutex::default(),
            otherwise: Mutex::new(Arc::new(|_: &SeenAttempt| {
                vec![Act::text("Hello from the scripted provider."), Act::Answer]
            })),
            seen: Mutex::default(),
            started: watch::Sender::new(0),
            sent: watch::Sender::new(0),
            keeps_sessions,
            transcripts,
            health: Mutex::new(Health::Ready { version: None }),
        }))
    }

    /// Queues the script of one attempt.
    pub fn play(&self, script: impl IntoIterator<Item = Act>) {
        let script = script.into_iter().collect();
        self.0.scripts.lock().push_back(script);
    }

    /// Sets what plays when nothing is queued; at first a short text.
    pub fn otherwise(&self, decide: impl Fn(&SeenAttempt) -> Vec<Act> + Send + Sync + 'static) {
        *self.0.otherwise.lock() = Arc::new(decide);
    }

    /// Sets what [`Provider::health`] answers.
    pub fn set_health(&self, health: Health) {
        *self.0.health.lock() = health;
    }

    /// Returns every attempt so far, oldest first.
    pub fn attempts(&self) -> Vec<SeenAttempt> {
        self.0.seen.lock().clone()
    }

    /// Returns the prompts that really left, oldest first.
    pub fn prompts(&self) -> Vec<String> {
        let seen = self.0.seen.lock();
        let sent = seen.iter().filter(|attempt| attempt.sent);
        sent.map(|attempt| attempt.prompt.clone()).collect()
    }

    /// Forgets the transcript of a session, as when somebody deletes its file.
    pub fn forget(&self, session: &ProviderSessionId) {
        self.0.transcripts.remove(session);
    }

    /// Waits until at least `count` attempts have started.
    pub async fn attempts_reach(&self, count: usize) {
        reach(&self.0.started, count).await;
    }

    /// Waits until at least `count` prompts have left.
    pub async fn prompts_reach(&self, count: usize) {
        reach(&self.0.sent, count).await;
    }
}

async fn reach(counter: &watch::Sender<usize>, count: usize) {
    let mut seen = counter.subscribe();
    let reached = seen.wait_for(|now| *now >= count).await;
    reached.expect("the sender is borrowed here, so it is not dropped");
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    /// Remembers the attempt; returns its place in the list and its script.
    fn admit(&self, request: &AttemptRequest) -> (usize, Vec<Act>) {
        let seen = SeenAttempt {
            attempt: request.attempt.clone(),
            conversation: request.conversation.clone(),
            model: request.model.clone(),
            session: request.session.clone(),
            title: request.title.clone(),
            prompt: request.prompt.clone(),
            history: request.history.clone(),
            unseen: request.unseen,
            workdir: request.workdir.clone(),
            permissions: request.permissions,
            sent: false,
        };
        let queued = self.scripts.lock().pop_front();
        let script = queued.unwrap_or_else(|| {
            let decide = self.otherwise.lock().clone();
            decide(&seen)
        });
        let place = {
            let mut list = self.seen.lock();
            list.push(seen);
            list.len() - 1
        };
        self.started.send_modify(|count| *count += 1);
        (place, script)
    }

    fn mark_sent(&self, place: usize) {
        if let Some(attempt) = self.seen.lock().get_mut(place) {
            attempt.sent = true;
        }
        self.sent.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Provider for Scripted {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let (place, script) = self.0.admit(&request);
        let inner = self.0.clone();
        AttemptHandle::spawn(move |events, stop| {
            play::run(inner, place, script, request, events, stop)
        })
    }

    fn keeps_sessions(&self) -> bool {
        self.0.keeps_sessions
    }

    async fn session_holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        self.0.transcripts.holds(session, marker)
    }

    async fn health(&self) -> Health {
        self.0.health.lock().clone()
    }
}

#[cfg(test)]
mod tests;
