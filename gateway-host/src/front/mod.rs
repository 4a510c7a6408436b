//! The way in from the chat platforms: what an adapter heard becomes an [`Inbound`](gateway_core::message::Inbound), or
//! nothing. `door` decides who is let in and where to, `words` what was meant, `pairing` makes the owner an operator,
//! `files` takes what was attached, `desk` keeps the order of each conversation. `switchboard` is the way out: one platform
//! over several bots. `serve` runs all of it, for `baton run`.

pub mod connect;
mod desk;
pub mod door;
pub mod files;
pub mod pairing;
pub mod serve;
pub mod switchboard;
pub mod words;

use std::sync::Arc;

use gateway_core::ids::ProfileId;
use platforms::adapter::Adapter;

use crate::config::ChatKind;
use switchboard::Mouth;

/// One bot, and the profiles that are served through it.
#[derive(Clone)]
pub struct Bot {
    pub kind: ChatKind,
    pub adapter: Arc<dyn Adapter>,
    pub mouth: Arc<dyn Mouth>,
    /// In the order they are asked for.
    pub profiles: Vec<ProfileId>,
    /// Keeps other processes of the root from serving the same bot; `None` = nothing does.
    pub held: Option<Arc<std::fs::File>>,
}

impl Bot {
    /// The platform and the profiles, for people.
    pub fn name(&self) -> String {
        let profiles: Vec<&str> = self.profiles.iter().map(ProfileId::as_str).collect();
        format!("{} ({})", self.kind.name(), profiles.join(", "))
    }
}
