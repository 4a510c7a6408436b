//! What comes over a socket, as [`Heard`]: messages and mentions, slash commands, presses. Only the fields that are needed
//! are read; what else Slack sends, today or next year, changes nothing. Pure.
//!
//! Left out: what the bot said itself, edits and deletions, joins and other notices of the channel.

mod command;
mod event;
mod press;

#[cfg(test)]
mod tests;

use platforms::adapter::{Content, Heard, Speaker, SpeakerKind, Spot};
use platforms::wire::Place;

use crate::address::{Address, conversation, is_direct, is_id};
use crate::api::Who;
use crate::responses::Response;
use gateway_core::ids::InboundId;

/// What an envelope held.
#[derive(Debug)]
pub(crate) enum Taken {
    Heard(Box<Fresh>),
    /// Something nobody here waits for.
    Ignored,
    /// Not what Slack documents; counted.
    Unreadable(String),
}

/// Something heard, before it is known whether it was heard before.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) heard: Heard,
    /// Every id it goes by; a delivery that shares one of them is the same.
    pub(crate) ids: Vec<String>,
    /// The `response_url` that came with it, under the key that stands in the address.
    pub(crate) response: Option<(String, Response)>,
}

/// Reads one envelope's payload. `kind` is the envelope's type.
pub(crate) fn take(kind: &str, payload: &str, who: &Who, prefix: &str) -> Taken {
    let taken = match kind {
        "events_api" => event::take(payload, who),
        "slash_commands" => command::take(payload, prefix),
        "interactive" => press::take(payload),
        other => return Taken::Unreadable(format!("an envelope of the unknown type {other:?}")),
    };
    match taken {
        Ok(Some(fresh)) => Taken::Heard(Box::new(fresh)),
        Ok(None) => Taken::Ignored,
        Err(why) => Taken::Unreadable(format!("{kind}: {why}")),
    }
}

/// `Ok(None)` = nobody here waits for it; `Err` = it cannot be read.
type Read = Result<Option<Fresh>, String>;

fn id(what: &str, text: &str) -> Result<String, String> {
    match is_id(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("{what} is no id: {text:?}")),
    }
}

fn spot(channel: &str, team: Option<&str>, direct: bool) -> Spot {
    match direct {
        true => Spot::Direct {
            channel: channel.to_owned(),
        },
        false => Spot::Channel {
            guild: team.filter(|team| !team.is_empty()).map(str::to_owned),
            channel: channel.to_owned(),
            parent: None,
        },
    }
}

fn person(id: &str, name: Option<String>) -> Speaker {
    Speaker {
        id: id.to_owned(),
        name: name
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| id.to_owned()),
        roles: Vec::new(),
        kind: SpeakerKind::Person,
    }
}
