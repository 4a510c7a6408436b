//! The adapter against the fake Slack, which checks every call and answer against Slack's own description and is itself
//! driven by Slack's own client elsewhere.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test executable: helpers outside test functions are test code too"
)]

mod answers;
mod buttons;
mod checks;
mod faults;
mod files;
mod support;
