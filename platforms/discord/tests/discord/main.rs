//! The adapter in front of a Discord on loopback, and of one that others wrote.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test executable: helpers outside test functions are test code too"
)]

mod answers;
mod bot;
mod checks;
mod commands;
mod conversation;
mod faults;
mod load;
mod messages;
mod production;
mod real_simcord;
