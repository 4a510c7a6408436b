//! Discord and Slack on loopback, for tests: REST or Web API, websockets, people who type and click, scripted faults and
//! a record of what a person would see.
//!
//! Not for: permissions in depth, voice, anything an adapter of ours does not use. The README names what is validated
//! and what is not modelled. Invariant: every request and every answer is checked against the platform's own
//! description (`specs/`) plus hand checks; what breaks them is a [`Violations`] entry and fails the test at the latest
//! when the fake is dropped.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "runs in tests only: a panic here is a failed test"
)]

pub mod clock;
pub mod discord;
mod limits;
mod multipart;
pub mod python;
pub mod slack;
mod spec;
mod tls;
mod violations;

pub use clock::MovedClock;
pub use discord::FakeDiscord;
pub use slack::FakeSlack;
pub use violations::Violations;
