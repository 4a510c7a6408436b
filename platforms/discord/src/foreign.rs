//! The way in, opened for tests that feed it anything. Behind the feature `foreign`; nothing that serves a person uses it.

use platforms::adapter::Heard;
use platforms::wire::Place;
use serde::Deserialize;
use serde_json::Value;

use crate::address::Address;
use crate::event::Event;
use crate::inbound::{self, Me};

/// The bot that hears it.
pub const BOT: u64 = 9;

#[derive(Deserialize)]
struct Frame {
    t: Option<String>,
    #[serde(default)]
    d: Value,
}

/// What is heard of one frame of the gateway; `None` = nothing.
pub fn hear(frame: &str) -> Option<Heard> {
    let frame: Frame = serde_json::from_str(frame).ok()?;
    let me = Me {
        user: BOT,
        application: BOT,
        name: "baton".to_owned(),
    };
    match Event::read(&frame.t?, &frame.d.to_string())?.ok()? {
        Event::Message(told) => inbound::message(&told, &me, None),
        Event::Interaction(told) => inbound::interaction(&told, &me, None, ""),
        _ => None,
    }
}

/// Where an address of ours leads.
pub fn place(address: &str) -> Option<Place> {
    let address = Address::decode(address)?;
    Some(Place {
        channel: address.channel.to_string(),
        thread: None,
    })
}
