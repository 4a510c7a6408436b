//! Every request as it came, and what was answered.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// One request to the Web API or to a `response_url`.
#[derive(Clone, Debug)]
pub struct Requested {
    pub at: Timestamp,
    /// `chat.postMessage`, or `response_url`, or `upload`.
    pub method: String,
    pub parameters: Map<String, Value>,
    /// HTTP status; Slack's own errors are 200 with `ok: false`. 0 = the connection was cut.
    pub status: u16,
    pub answer: Value,
}

/// What `assistant.threads.setStatus` said.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub channel: String,
    pub thread_ts: String,
    /// Empty = cleared.
    pub text: String,
}
