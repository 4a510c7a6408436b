//! One attempt as a test sees it: what is asked, what was reported, how it ended. The same for every provider.
#![allow(dead_code, reason = "each test executable uses what it is about")]

use std::path::PathBuf;
use std::time::Duration;

use gateway_core::event::{CallOutcome, Event};
use gateway_core::failure::{AttemptLimits, Failure, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use providers::{AttemptHandle, AttemptRequest, Permissions};
use tokio::sync::oneshot;

/// Bounds nobody should reach.
pub(crate) const PATIENT: AttemptLimits = AttemptLimits {
    deadline: Duration::from_secs(180),
    silence: Duration::from_secs(120),
};

/// A request of a new conversation without tools, and the word that lets it go.
pub(crate) fn request(
    model: &str,
    prompt: &str,
    workdir: PathBuf,
) -> (AttemptRequest, oneshot::Sender<()>) {
    let (word, go) = oneshot::channel();
    let request = AttemptRequest {
        attempt: "attempt".into(),
        conversation: "conversation".into(),
        model: model.into(),
        session: None,
        title: "--a title".to_owned(),
        prompt: prompt.to_owned(),
        history: Vec::new(),
        unseen: 0,
        workdir,
        permissions: Permissions::None,
        limits: PATIENT,
        go,
    };
    (request, word)
}

/// What came of an attempt.
pub(crate) struct Turn {
    pub(crate) events: Vec<Event>,
    pub(crate) end: AttemptEnd,
}

impl Turn {
    /// Listens until it has ended.
    pub(crate) async fn of(mut handle: AttemptHandle) -> Self {
        let mut events = Vec::new();
        while let Some(event) = handle.events.recv().await {
            events.push(event);
        }
        Self {
            events,
            end: handle.end.await.unwrap(),
        }
    }

    pub(crate) fn session(&self) -> ProviderSessionId {
        let session = |event: &Event| match event {
            Event::Session { id } => Some(id.clone()),
            _ => None,
        };
        let found = self.events.iter().find_map(session);
        found.unwrap_or_else(|| panic!("no session was reported: {:?}", self.end))
    }

    pub(crate) fn answer(&self) -> &str {
        match &self.end {
            AttemptEnd::Answered(answer) => &answer.text,
            other => panic!("expected an answer, got {other:?} after {:?}", self.events),
        }
    }

    pub(crate) fn failure(&self) -> &Failure {
        match &self.end {
            AttemptEnd::Failed(failure) => failure,
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    /// What the failure is about, until when, and in what words.
    pub(crate) fn verdict(&self) -> (FailureKind, FailureScope, Option<Timestamp>, &str) {
        let failure = self.failure();
        let (kind, scope) = (failure.kind, failure.scope.clone());
        (kind, scope, failure.retry_at, &failure.detail)
    }

    /// How the calls ended, in the order of their ends.
    pub(crate) fn outcomes(&self) -> Vec<CallOutcome> {
        let outcome = |event: &Event| match event {
            Event::ToolResult { outcome, .. } => Some(*outcome),
            _ => None,
        };
        self.events.iter().filter_map(outcome).collect()
    }

    /// How one call ended, and with what text.
    pub(crate) fn outcome(&self, call: &str) -> (CallOutcome, &str) {
        let result = self.events.iter().find_map(|event| match event {
            Event::ToolResult { id, outcome, text } if id == call => {
                Some((*outcome, text.as_str()))
            }
            _ => None,
        });
        result.expect("the call has a result")
    }

    /// Every call's tool, outcome and text, in the order of the calls.
    pub(crate) fn calls(&self) -> Vec<(String, CallOutcome, String)> {
        let calls = self.events.iter().filter_map(|event| match event {
            Event::ToolCall { id, name, .. } => Some((id, name)),
            _ => None,
        });
        calls
            .map(|(id, name)| {
                let (outcome, text) = self.outcome(id);
                (name.clone(), outcome, text.to_owned())
            })
            .collect()
    }

    /// The text as a person sees it: deltas shown, retracted blocks gone.
    pub(crate) fn seen(&self) -> String {
        let mut blocks: Vec<String> = Vec::new();
        for event in &self.events {
            match event {
                Event::Text { block, delta } => {
                    let at = *block as usize;
                    blocks.resize(blocks.len().max(at + 1), String::new());
                    blocks[at].push_str(delta);
                }
                Event::Retract { from_block } => blocks.truncate(*from_block as usize),
                _ => {}
            }
        }
        blocks.join("\n\n")
    }
}
