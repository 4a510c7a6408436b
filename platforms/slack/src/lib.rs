//! Slack as a chat platform, over Socket Mode and the Web API. No type of the client library leaves this crate. Facts about
//! Slack are of its documentation of 2026 unless another source is named.
//!
//! What of slack-morphism 2.31 is used: the types of requests, blocks and errors, and the session that makes Web API calls
//! of them. What is not, and why:
//! - **Its Socket Mode.** It closes the old socket before it opens the next one, so that what Slack still sends there is
//!   never acknowledged; it reconnects at once after `link_disabled` and `too_many_websockets`; it acknowledges only when a
//!   callback has returned. None of this can be changed from outside. `socket` is a client of our own.
//! - **Its HTTP client.** Ours (in `api`) implements the same trait, and tells apart what did not arrive and what may
//!   have, reads the scopes a token was granted from the answer's headers, and takes an empty answer of a `response_url`.
//! - **Its models of what comes in.** They know no file sizes, and a block they cannot read makes the whole content of a
//!   message `None`. `inbound` reads the few fields that are needed, and tolerates everything else.

mod address;
mod api;
mod check;
mod files;
#[cfg(feature = "foreign")]
pub mod foreign;
mod inbound;
mod manifest;
mod outbound;
mod responses;
mod scopes;
mod settings;
mod slack;
mod socket;
mod surface;
mod text;

use std::time::Duration;

use platforms::chat::Style;
use platforms::escape::Shape;
use platforms::outbox::Pace;
use platforms::stream::Flow;

pub use manifest::{App, manifest};
pub use scopes::{APP_SCOPE, EVENTS, Event, SCOPES, Scope};
pub use settings::SlackSettings;
pub use slack::Slack;
pub use socket::Timing;

/// The platform's name in addresses and logs.
pub const NAME: &str = "slack";

/// Slack's numbers. Texts go out as `markdown_text`, which is standard Markdown and holds 12,000 characters.
pub const STYLE: Style = Style {
    shape: Shape::SLACK_MARKDOWN,
    flow: Flow {
        first_after: Duration::from_secs(1),
        interval: Duration::from_millis(1_500),
        messages_max: 5,
    },
    pace: Pace::SLACK,
    // An assistant's status stands for two minutes.
    activity_every: Duration::from_secs(90),
};
