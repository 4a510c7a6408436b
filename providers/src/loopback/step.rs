//! What a loopback server does with one request.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

/// One answer of a loopback server. Texts are streamed if the request asked for a stream, else sent whole.
#[derive(Debug, Clone)]
pub enum Step {
    /// A complete answer, its text cut into this many deltas, with extra response headers.
    Answer {
        text: String,
        deltas: usize,
        headers: Vec<(String, String)>,
    },
    /// The model calls one tool; `text` comes before it. Responses: a text as `input` makes it a free-form tool.
    ToolUse {
        text: String,
        name: String,
        input: Value,
    },
    /// Any status, headers and body, byte for byte.
    Status {
        code: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The account's window is used up. Anthropic: 429 with the unified headers; OpenAI and Responses: 429
    /// `usage_limit_reached`.
    UnifiedRejected {
        /// `five_hour` or `seven_day`.
        window: String,
        resets_at: Timestamp,
    },
    /// The stream breaks after `after` of the text's `deltas`.
    CutAfter {
        text: String,
        deltas: usize,
        after: usize,
        cut: Cut,
    },
    /// An error event arrives in the stream after `after` of the text's `deltas`. On a request without stream: the
    /// error object with status 200.
    StreamError {
        text: String,
        deltas: usize,
        after: usize,
        error: Value,
    },
    /// The stream falls silent after `after` of the text's `deltas`, until the notify fires or the client goes away;
    /// then the rest follows.
    Stall {
        text: String,
        deltas: usize,
        after: usize,
        until: Option<Arc<Notify>>,
    },
    /// No headers until the notify fires or the client goes away; then `then`.
    Hang {
        until: Option<Arc<Notify>>,
        then: Box<Step>,
    },
}

/// How a stream breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The connection closes in the middle of the body.
    Abrupt,
    /// The body ends properly, but without the protocol's last event.
    CleanEof,
}

impl Step {
    /// A complete answer of a word per delta, without extra headers.
    pub fn answer(text: impl Into<String>) -> Self {
        let text = text.into();
        let deltas = text.split_whitespace().count().max(1);
        Self::Answer {
            text,
            deltas,
            headers: Vec::new(),
        }
    }

    /// A JSON body with this status.
    pub fn status(code: u16, body: &Value) -> Self {
        Self::Status {
            code,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.to_string(),
        }
    }

    /// A status with these headers and this text as body.
    pub fn status_with(code: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Self {
        let owned = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Self::Status {
            code,
            headers: owned.collect(),
            body: body.into(),
        }
    }

    /// A stream whose connection closes after `after` words.
    pub fn cut_after(text: impl Into<String>, after: usize, cut: Cut) -> Self {
        let text = text.into();
        let deltas = text.split_whitespace().count().max(1);
        Self::CutAfter {
            text,
            deltas,
            after,
            cut,
        }
    }

    /// A stream that falls silent after `after` words until the client goes away.
    pub fn stall_after(text: impl Into<String>, after: usize) -> Self {
        let text = text.into();
        let deltas = text.split_whitespace().count().max(1);
        Self::Stall {
            text,
            deltas,
            after,
            until: None,
        }
    }

    /// No headers until the client goes away.
    pub fn hang() -> Self {
        Self::Hang {
            until: None,
            then: Box::new(Self::answer("late")),
        }
    }
}

/// Cuts `text` into `parts` pieces of about equal length, at character boundaries; joined they are the text again.
pub(super) fn pieces(text: &str, parts: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let parts = parts.clamp(1, chars.len().max(1));
    let size = chars.len().div_ceil(parts).max(1);
    chars
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// A rough token count, the same every time.
pub(super) fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}
