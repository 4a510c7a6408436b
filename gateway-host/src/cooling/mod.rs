//! What this process remembers of routes that failed, for all its profiles: who cools (in memory), whose login is refused
//! (on disk, heard by every process of the root), and which conversation has been told of that. What follows from a failure
//! is decided in [`gateway_core::cooling`].

pub mod lockout;
pub mod login;

use std::collections::HashSet;

use gateway_core::cooling::{Coolings, Lesson};
use gateway_core::ids::{ConversationId, SubscriptionId};
use gateway_core::route::{Chain, Route};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::config::{Environment, Settings};
use lockout::Lockouts;
use login::Logins;

/// The memory of a gateway.
pub struct Cooling {
    coolings: Mutex<Coolings>,
    lockouts: Lockouts,
    logins: Logins,
    /// Which conversations were told which subscription is left out.
    told: Mutex<HashSet<(ConversationId, SubscriptionId)>>,
}

/// Why an entry is not tried in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// It is.
    No,
    /// Tried last.
    Cooling,
    /// Left out.
    LockedOut,
}

impl Cooling {
    /// An empty memory. The logins are looked at now: a key that is changed later is used from the next start on.
    pub fn new(settings: &Settings) -> Self {
        Self {
            coolings: Mutex::default(),
            lockouts: Lockouts::of(&settings.root),
            logins: Logins::of(settings, &Environment::of_process()),
            told: Mutex::default(),
        }
    }

    /// Where each entry of a chain stands for a turn that is about to go, by position.
    pub fn asides(&self, chain: &Chain, now: Timestamp) -> Vec<Aside> {
        let any_locked = self.lockouts.any();
        let mut coolings = self.coolings.lock();
        let aside = |route: &Route| {
            if any_locked && self.is_locked_out(&route.subscription) {
                Aside::LockedOut
            } else if coolings.set_aside(&route.subscription, route.model.as_str(), now) {
                Aside::Cooling
            } else {
                Aside::No
            }
        };
        chain
            .entries
            .iter()
            .map(|entry| &entry.route)
            .map(aside)
            .collect()
    }

    /// Whether the subscription is left out. One whose login has changed since is not: its record is removed.
    pub fn is_locked_out(&self, subscription: &SubscriptionId) -> bool {
        let Some(lockout) = self.lockouts.of_subscription(subscription) else {
            return false;
        };
        if lockout.is_of(&self.logins.describe(subscription)) {
            return true;
        }
        tracing::info!(%subscription, "its login has changed: it is tried again");
        self.lockouts.clear(subscription);
        false
    }

    /// The same for somebody who only looks: no record is removed, since a shell may not have the keys the gateway has.
    pub fn appears_locked_out(&self, subscription: &SubscriptionId) -> bool {
        let lockout = self.lockouts.of_subscription(subscription);
        lockout.is_some_and(|lockout| lockout.is_of(&self.logins.describe(subscription)))
    }

    /// Remembers what a failure teaches. `true` = from now on the subscription is left out, and was not before.
    pub fn learn(&self, route: &Route, lesson: Lesson, now: Timestamp) -> bool {
        self.coolings
            .lock()
            .learn(&route.subscription, route.model.as_str(), lesson, now);
        lesson == Lesson::LoginRefused
            && self.lockouts.record(
                &route.subscription,
                &self.logins.describe(&route.subscription),
                now,
            )
    }

    /// A turn was served by this route: whatever was held against it is proven wrong.
    pub fn served(&self, route: &Route) {
        self.coolings
            .lock()
            .served(&route.subscription, route.model.as_str());
        if self.lockouts.any() {
            self.lockouts.clear(&route.subscription);
        }
    }

    /// Notes that a conversation is told of a subscription that is left out; `true` = it was not told before.
    pub fn tell(&self, conversation: &ConversationId, subscription: &SubscriptionId) -> bool {
        self.told
            .lock()
            .insert((conversation.clone(), subscription.clone()))
    }
}
