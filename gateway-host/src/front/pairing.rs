//! The owner's one-time code, while a platform's section names no operator: shown where the gateway was started, typed as
//! `/pair CODE` to the bot, and its sender becomes an operator. The code is in memory alone; who was paired is in the store.
//!
//! Paired operators count only while the section names none: naming operators in the configuration ends them, and
//! `baton run --pair` forgets them and offers a new code.

use std::collections::BTreeMap;

use gateway_core::access::{Pairing, PairingCode, Redeemed};
use gateway_core::ids::ProfileId;
use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::config::ChatKind;

/// The codes that were offered by this process.
#[derive(Debug, Default)]
pub struct Pairings(Mutex<BTreeMap<(ChatKind, ProfileId), Pairing>>);

/// What became of a typed code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its sender is an operator of this profile.
    Paired(ProfileId),
    /// The sentence for whoever typed it.
    Refused(String),
    /// No code was offered for any of the profiles.
    NoneOffered,
}

impl Pairings {
    /// Offers a code for a profile on a platform; one offered before is no longer valid.
    pub fn offer(&self, kind: ChatKind, profile: &ProfileId, now: Timestamp) -> PairingCode {
        let (code, pairing) = Pairing::offer(random(), now);
        self.0.lock().insert((kind, profile.clone()), pairing);
        code
    }

    /// Tries a code on the profiles of a place, in order.
    pub fn redeem(
        &self,
        kind: ChatKind,
        profiles: &[ProfileId],
        typed: &str,
        now: Timestamp,
    ) -> Outcome {
        let mut open = self.0.lock();
        let mut refused = Outcome::NoneOffered;
        for profile in profiles {
            let Some(pairing) = open.get_mut(&(kind, profile.clone())) else {
                continue;
            };
            let say = match pairing.redeem(typed, now) {
                Redeemed::Paired => return Outcome::Paired(profile.clone()),
                Redeemed::Wrong { tries_left } => {
                    format!("That is not the code. Tries left: {tries_left}.")
                }
                Redeemed::Expired | Redeemed::Used | Redeemed::Locked => {
                    "This code is no longer valid. The gateway's owner gets a new one with `baton run --pair`.".to_owned()
                }
            };
            refused = Outcome::Refused(say);
        }
        refused
    }
}

/// Eight bytes of the system's random source: those of a random UUID that hold no version or variant.
fn random() -> [u8; 8] {
    let [a, b, c, d, e, f, _, _, _, g, h, ..] = *Uuid::new_v4().as_bytes();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn the_code_of_one_of_several_profiles_pairs_with_that_one() {
        let (pairings, now) = (Pairings::default(), Timestamp::UNIX_EPOCH);
        let both = [ProfileId::new("one"), ProfileId::new("two")];
        let try_it = |kind, typed: &str, now| pairings.redeem(kind, &both, typed, now);
        assert_eq!(
            try_it(ChatKind::Discord, "ABCD-EFGH", now),
            Outcome::NoneOffered
        );
        let codes = both.each_ref().map(|profile| {
            let code = pairings.offer(ChatKind::Discord, profile, now);
            code.shown().to_owned()
        });
        assert_ne!(codes[0], codes[1]);
        assert_eq!(
            try_it(ChatKind::Slack, &codes[1], now),
            Outcome::NoneOffered
        );
        let second = try_it(ChatKind::Discord, &codes[1], now);
        assert_eq!(second, Outcome::Paired(both[1].clone()));
        let again = try_it(ChatKind::Discord, &codes[1], now);
        assert!(matches!(again, Outcome::Refused(say) if say.contains("no longer valid")));
        let late = now + SignedDuration::from_mins(15);
        let late = try_it(ChatKind::Discord, &codes[0], late);
        assert!(matches!(late, Outcome::Refused(_)));
    }
}
