//! Payload to injected context, preview and notice.

use jiff::Timestamp;

use super::{Handoff, StoredHandoff};

/// Stands in an injected context where the host fills in the verbatim request.
pub const REQUEST_PLACEHOLDER: &str = "\u{1}request\u{1}";

/// The injected context with [`REQUEST_PLACEHOLDER`] in place of the request; within the byte budget.
pub fn context(_handoff: &Handoff) -> String {
    unimplemented!()
}

/// The three-line notice.
pub fn notice(_handoff: &Handoff) -> String {
    unimplemented!()
}

/// The answer of `/resume-handoff` over the conversation's handoffs, newest first; consumes nothing. `limit` = characters of one message.
pub fn resume_reply(_stored: &[StoredHandoff], _now: Timestamp, _limit: Option<usize>) -> String {
    unimplemented!()
}
