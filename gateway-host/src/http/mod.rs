//! The OpenAI-compatible surface: programs talk to the same chain, gate, handoff and journal as people do.
//!
//! A request becomes one turn on the lane of its conversation (`gateway_core::bridge` says which one, and what of it the
//! session has not seen). The turn runs in a task of its own: a client that hangs up changes nothing, its turn ends and
//! is recorded, and an equal request that names itself joins it while it runs. What a request is told when it fails is in
//! [`error`]; who may ask at all is in [`guard`]; sockets and limits are in [`server`].

mod answer;
mod conversation;
pub mod error;
mod flight;
mod guard;
mod locks;
mod models;
mod paths;
mod platform;
mod request;
pub mod server;
mod turn;

pub use platform::{HttpPlatform, NAME};
pub use server::{Listen, Server, ServerError};

use std::time::Duration;

/// The bounds of the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// A whole request, from its last byte to the answer.
    pub budget: Duration,
    /// The head of a request.
    pub head_wait: Duration,
    /// The body of a request.
    pub body_wait: Duration,
    /// The body, in bytes.
    pub body_max: usize,
    /// Turns that run at once.
    pub turns: usize,
    /// How long a request waits for one of them.
    pub queue_wait: Duration,
    /// Open connections.
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(300),
            head_wait: Duration::from_secs(10),
            body_wait: Duration::from_secs(30),
            body_max: 4 << 20,
            turns: 8,
            queue_wait: Duration::from_secs(60),
            connections: 512,
        }
    }
}
