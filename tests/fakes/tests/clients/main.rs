//! The fakes, driven by clients that others wrote, and by hand where no client would break the rule.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test executable: helpers outside test functions are test code too"
)]

mod discord_commands;
mod discord_rules;
mod raw_bot;
mod real_simcord;
mod real_slack_bolt;
mod slack_rules;
mod sockets;
mod twilight;
mod twilight_bot;

use std::sync::Once;

/// Every client that may open TLS needs this once, before it is built.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .expect("nobody else installs one");
    });
}
