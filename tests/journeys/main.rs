//! The product from outside; one module per journey, one executable, one link.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests too"
)]

mod busy;
mod buttons;
mod chat;
mod claims;
mod cli;
mod conversations;
mod cooling;
mod crash;
mod edges;
mod fallback;
mod foreign;
mod handoff;
mod http;
mod http_guard;
mod plugin_commands;
mod plugins;
mod power_loss;
#[path = "../../providers/tests/real/mod.rs"]
mod real;
mod real_chain;
mod real_claude;
mod real_rotation;
mod registry;
mod restart;
mod rotation;
mod routing;
mod run;
mod served;
mod soak;
mod trouble;
