//! The way in, opened for tests that feed it anything. Behind the feature `foreign`; nothing that serves a person uses it.

use platforms::adapter::Heard;
use platforms::wire::Place;
use serde::Deserialize;
use serde_json::Value;

use crate::address::Address;
use crate::api::Who;
use crate::inbound::{self, Taken};

/// The bot that hears it.
pub const BOT: &str = "UBOT";

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: Value,
}

/// What is heard of one envelope; `None` = nothing.
pub fn hear(envelope: &str) -> Option<Heard> {
    let envelope: Envelope = serde_json::from_str(envelope).ok()?;
    let who = Who {
        user_id: BOT.to_owned(),
        bot_id: "BBOT".to_owned(),
        team_id: "T1".to_owned(),
        ..Who::default()
    };
    let payload = envelope.payload.to_string();
    match inbound::take(&envelope.kind, &payload, &who, "") {
        Taken::Heard(fresh) => Some(fresh.heard),
        Taken::Ignored | Taken::Unreadable(_) => None,
    }
}

/// Where an address of ours leads.
pub fn place(address: &str) -> Option<Place> {
    Address::parse(address).map(|address| address.place())
}
