//! The way out: one platform of a name, over as many bots as there are. An address on it begins with the profile it belongs
//! to, and the profile's section names the bot; so an address that was stored before a restart, or before the bot got a
//! new token, still finds its way.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::ids::{ProfileId, TurnId};
use gateway_core::message::{ReplyOp, ReplyTarget};
use platforms::chat::{Chat, Surface};
use platforms::{DeliveryError, Limits, Platform, Receipt};

use crate::config::ChatKind;

/// What a bot says goes through one of these.
#[async_trait]
pub trait Mouth: Platform {
    /// Shows that somebody is working at an address.
    fn working(&self, address: &str);

    /// Shows it no more.
    fn rests(&self, address: &str);

    /// Waits until everything said so far is out, or given up.
    async fn drained(&self);
}

#[async_trait]
impl<S: Surface> Mouth for Chat<S> {
    fn working(&self, address: &str) {
        Chat::working(self, address);
    }

    fn rests(&self, address: &str) {
        Chat::rests(self, address);
    }

    async fn drained(&self) {
        Chat::drained(self).await;
    }
}

/// Every bot of one platform as one platform.
pub struct Switchboard {
    kind: ChatKind,
    limits: Limits,
    mouths: BTreeMap<ProfileId, Arc<dyn Mouth>>,
}

impl Switchboard {
    /// One that serves these profiles; `None` = there are none.
    pub fn new(kind: ChatKind, mouths: BTreeMap<ProfileId, Arc<dyn Mouth>>) -> Option<Self> {
        let limits = mouths.values().next()?.limits();
        Some(Self {
            kind,
            limits,
            mouths,
        })
    }
}

/// The address of a place of `profile` on its platform.
pub fn address(profile: &ProfileId, address: &str) -> String {
    format!("{profile}/{address}")
}

/// The way back: the profile, and the address as its adapter made it. Names of profiles hold no slash.
fn parts(address: &str) -> Option<(ProfileId, &str)> {
    let (profile, address) = address.split_once('/')?;
    Some((ProfileId::new(profile), address))
}

#[async_trait]
impl Platform for Switchboard {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    /// Discord shows only answers of commands and presses to one person alone.
    fn whispers(&self) -> bool {
        self.kind != ChatKind::Discord
    }

    async fn deliver(
        &self,
        to: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        let gone = |why: &str| DeliveryError::Gone {
            place: to.address.clone(),
            why: why.to_owned(),
        };
        let (profile, address) =
            parts(&to.address).ok_or_else(|| gone("it is no address of a profile's"))?;
        let mouth = self
            .mouths
            .get(&profile)
            .ok_or_else(|| gone("its profile is not served here"))?;
        let inner = ReplyTarget {
            platform: to.platform.clone(),
            address: address.to_owned(),
        };
        mouth.deliver(&inner, turn, op).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_profile() {
        let profile = ProfileId::new("work");
        for inner in ["channel:1", "message C1 17.1 U1", "a/b", ""] {
            let whole = address(&profile, inner);
            assert_eq!(parts(&whole), Some((profile.clone(), inner)));
        }
        assert_eq!(parts("channel:1"), None);
    }
}
