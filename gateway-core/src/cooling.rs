//! An attempt failed: is the same route asked once more, and what is remembered of it for later turns?
//!
//! | failure | in this turn | for later turns |
//! |---|---|---|
//! | a burst (a minute budget) with a stated wait | the same route after that wait, at most twice | once it moves on: cooling until the stated instant |
//! | a burst or a bare 429 without one | the same route once, after a guess | cooling for a minute |
//! | a quota with a stated reset | the next route | the registry's mark, not ours |
//! | a quota without one | the next route | cooling for five minutes |
//! | money without a date | the next route | cooling until a turn is served, asked again every ten minutes |
//! | overload, a shared upstream pool, a broken connection | the same route once, shortly | nothing: the account is fine |
//! | a route that cannot be reached | the turn's first one once more, then the next | nothing: the way out may be down |
//! | a refused login | the next route | left out until the operator acts |
//! | everything else | the next route, or the end ([`crate::walk`]) | nothing |
//!
//! **Waits.** A stated wait is a measurement: it is kept to the instant, neither shortened (the server means it) nor
//! clamped. One longer than a person wants to look at goes to the next route instead, if there is one; one longer than any
//! burst is a quota and nobody waits for it. A guess is drawn from the upper half of its length, so that turns that failed
//! together do not come back together, and no guess is longer than a minute.
//!
//! **Never re-run.** An attempt that has shown text or started a tool is not repeated on any account.
//!
//! **Cooling is no proof.** A cooling route is tried last, not never: if nothing else is left, it is asked. What fails
//! while it cools does not lengthen its cooling.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::failure::{Failure, FailureKind, FailureScope};
use crate::ids::SubscriptionId;

/// The longest stated wait a turn sits out while another route is free.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// A stated wait above this is a quota, not a burst.
const LONGEST_BURST: SignedDuration = SignedDuration::from_mins(5);
/// How often a burst with a stated wait is sat out in one turn.
const BURST_RETRIES: u32 = 2;
/// The guess for a burst that states no wait.
const BURST_GUESS: SignedDuration = SignedDuration::from_secs(5);
/// The guess for an overload or a shared pool that states no wait.
const BUSY_GUESS: SignedDuration = SignedDuration::from_secs(2);
/// The guess for a connection that broke or did not come about.
const BROKEN_GUESS: SignedDuration = SignedDuration::from_secs(1);
/// An attempt that took longer than this has retried enough by itself (the CLIs do).
const SHORT_ATTEMPT: SignedDuration = SignedDuration::from_secs(30);

/// How long a throttled account cools if it did not say.
pub const THROTTLED: SignedDuration = SignedDuration::from_mins(1);
/// How long an account that is out of quota cools if it did not say.
pub const SPENT: SignedDuration = SignedDuration::from_mins(5);
/// How often an account that is out of money is asked again: people top up.
pub const RECHECK: SignedDuration = SignedDuration::from_mins(10);

/// A failed attempt, as far as the next step depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Trouble<'a> {
    pub failure: &'a Failure,
    /// The attempt has shown text or started a tool call.
    pub left_traces: bool,
    /// How often this route was asked again in this turn.
    pub retries: u32,
    /// An attempt on another route has failed in this turn.
    pub others_failed: bool,
    /// The chain holds another route that has not been tried.
    pub others_left: bool,
    /// How long the attempt took.
    pub took: SignedDuration,
    /// How much longer the turn may wait in all.
    pub time_left: SignedDuration,
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhatNow {
    /// The same route again, not before this instant.
    Again(Timestamp),
    /// The walk decides.
    On,
}

/// Decides whether the same route is asked once more. `seed` is random: it spreads guesses.
pub fn what_now(trouble: &Trouble<'_>, seed: u64, now: Timestamp) -> WhatNow {
    if trouble.left_traces {
        return WhatNow::On;
    }
    let wait = match Manner::of(trouble.failure) {
        Manner::Burst => burst(trouble, seed, now),
        Manner::Busy => short(trouble, BUSY_GUESS, seed, now),
        Manner::Broken => short(trouble, BROKEN_GUESS, seed, now),
        // Thirty dead routes in a row are the way out of this machine: one second look in all is enough.
        Manner::Unreachable if !trouble.others_failed => short(trouble, BROKEN_GUESS, seed, now),
        Manner::Unreachable | Manner::Spent | Manner::Broke | Manner::Refused | Manner::Other => {
            None
        }
    };
    match wait.filter(|wait| *wait <= trouble.time_left) {
        Some(wait) => now.checked_add(wait).map_or(WhatNow::On, WhatNow::Again),
        None => WhatNow::On,
    }
}

fn burst(trouble: &Trouble<'_>, seed: u64, now: Timestamp) -> Option<SignedDuration> {
    let Some(stated) = stated(trouble.failure, now) else {
        return (trouble.retries == 0).then(|| guess(BURST_GUESS, seed));
    };
    let longest = if trouble.others_left {
        PATIENCE
    } else {
        LONGEST_BURST
    };
    (trouble.retries < BURST_RETRIES && stated <= longest).then_some(stated)
}

fn short(
    trouble: &Trouble<'_>,
    length: SignedDuration,
    seed: u64,
    now: Timestamp,
) -> Option<SignedDuration> {
    if trouble.retries > 0 || trouble.took > SHORT_ATTEMPT {
        return None;
    }
    match stated(trouble.failure, now) {
        Some(stated) => (stated <= PATIENCE).then_some(stated),
        None => Some(guess(length, seed)),
    }
}

/// The wait the provider stated; `None` = none, or its instant has passed.
fn stated(failure: &Failure, now: Timestamp) -> Option<SignedDuration> {
    let wait = failure.retry_at?.duration_since(now);
    wait.is_positive().then_some(wait)
}

/// A wait from the upper half of `length`.
fn guess(length: SignedDuration, seed: u64) -> SignedDuration {
    let half = length.as_millis() / 2;
    let share = i128::from(mixed(seed) >> 44); // 20 bits
    let ms = half + half * share / ((1 << 20) - 1);
    SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Spreads neighbouring seeds (the finaliser of SplitMix64).
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a failure asks for.
enum Manner {
    /// A minute budget, or a 429 that says nothing of a quota.
    Burst,
    /// Their machines, not our account.
    Busy,
    Broken,
    /// The way out of this machine.
    Unreachable,
    /// Out of quota.
    Spent,
    /// Out of money.
    Broke,
    /// The login is refused.
    Refused,
    Other,
}

impl Manner {
    fn of(failure: &Failure) -> Self {
        use FailureScope::{Account, AccountModel, NetworkEdge};
        match (failure.kind, &failure.scope) {
            (FailureKind::Transport | FailureKind::Timeout, NetworkEdge) => Self::Unreachable,
            // A wall that throttles this address: another look makes it worse, and no account is to blame.
            (FailureKind::RateLimit | FailureKind::UpstreamRateLimit, NetworkEdge) => Self::Other,
            (FailureKind::RateLimit, Account | AccountModel) => Self::Spent,
            (FailureKind::RateLimit, _) => Self::Burst,
            (FailureKind::Overloaded | FailureKind::UpstreamRateLimit, _) => Self::Busy,
            (FailureKind::Transport, _) => Self::Broken,
            (FailureKind::Billing, Account | AccountModel) => Self::Broke,
            (FailureKind::Auth, Account) => Self::Refused,
            _ => Self::Other,
        }
    }
}

/// What later turns should know of a failure once the turn has moved on from its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesson {
    Nothing,
    /// Tried last until then.
    Cools(Reach, Timestamp),
    /// Tried last until a turn is served.
    Unfunded(Reach),
    /// Left out until the operator acts.
    LoginRefused,
}

/// What of a subscription cools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Account,
    /// Only the model that was asked.
    Model,
}

/// Draws the lesson of a failure.
pub fn lesson(failure: &Failure, now: Timestamp) -> Lesson {
    let reach = match failure.scope {
        FailureScope::AccountModel => Reach::Model,
        _ => Reach::Account,
    };
    let stated = stated(failure, now);
    let cools = |wait: SignedDuration| {
        now.checked_add(wait)
            .map_or(Lesson::Nothing, |until| Lesson::Cools(reach, until))
    };
    match Manner::of(failure) {
        Manner::Burst => cools(stated.unwrap_or(THROTTLED)),
        Manner::Spent if stated.is_none() => cools(SPENT),
        Manner::Broke if stated.is_none() => Lesson::Unfunded(reach),
        Manner::Refused => Lesson::LoginRefused,
        _ => Lesson::Nothing, // a stated reset is the registry's
    }
}

/// Which accounts cool in this process, for all its profiles. Forgotten when it ends: what must outlive it has a stated
/// reset and stands in the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coolings {
    cooling: HashMap<(SubscriptionId, Option<String>), Cooling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cooling {
    Until(Timestamp),
    UntilServed { ask_again_at: Timestamp },
}

impl Coolings {
    /// Takes in a lesson; one that is hit while the same account cools changes nothing.
    pub fn learn(
        &mut self,
        subscription: &SubscriptionId,
        model: &str,
        lesson: Lesson,
        now: Timestamp,
    ) {
        self.cooling.retain(|_, cooling| cooling.holds(now));
        let (reach, cooling) = match lesson {
            Lesson::Cools(reach, until) => (reach, Cooling::Until(until)),
            Lesson::Unfunded(reach) => {
                let ask_again_at = now.checked_add(RECHECK).unwrap_or(now);
                (reach, Cooling::UntilServed { ask_again_at })
            }
            Lesson::Nothing | Lesson::LoginRefused => return,
        };
        let model = match reach {
            Reach::Account => None,
            Reach::Model => Some(model.to_owned()),
        };
        self.cooling
            .entry((subscription.clone(), model))
            .or_insert(cooling);
    }

    /// A turn was served: nothing of this account cools any more, but for its other models.
    pub fn served(&mut self, subscription: &SubscriptionId, model: &str) {
        self.cooling.remove(&(subscription.clone(), None));
        self.cooling
            .remove(&(subscription.clone(), Some(model.to_owned())));
    }

    /// Whether the route is to be tried last now.
    pub fn is_cooling(&self, subscription: &SubscriptionId, model: &str, now: Timestamp) -> bool {
        self.keys(subscription, model)
            .iter()
            .filter_map(|key| self.cooling.get(key))
            .any(|cooling| cooling.is_on(now))
    }

    /// The same for a turn that is about to go. Where an account without money is due to be asked again, exactly one turn
    /// is told that it may.
    pub fn set_aside(
        &mut self,
        subscription: &SubscriptionId,
        model: &str,
        now: Timestamp,
    ) -> bool {
        let aside = self.is_cooling(subscription, model, now);
        if !aside {
            for key in self.keys(subscription, model) {
                if let Some(Cooling::UntilServed { ask_again_at }) = self.cooling.get_mut(&key) {
                    *ask_again_at = now.checked_add(RECHECK).unwrap_or(now);
                }
            }
        }
        aside
    }

    fn keys(
        &self,
        subscription: &SubscriptionId,
        model: &str,
    ) -> [(SubscriptionId, Option<String>); 2] {
        [
            (subscription.clone(), None),
            (subscription.clone(), Some(model.to_owned())),
        ]
    }
}

impl Cooling {
    /// Whether it is worth remembering.
    fn holds(&self, now: Timestamp) -> bool {
        match self {
            Self::Until(until) => *until > now,
            Self::UntilServed { .. } => true,
        }
    }

    fn is_on(&self, now: Timestamp) -> bool {
        match self {
            Self::Until(until) => *until > now,
            Self::UntilServed { ask_again_at } => *ask_again_at > now,
        }
    }
}

#[cfg(test)]
mod tests;
