//! Which sessions of a conversation were retired, and what the live ones were told.
//!
//! Two records decide where the next request goes: the provider sessions of a conversation, and the retirements, which
//! win: a retired session is never noted as the live one again, whoever reports it and however late.

use async_trait::async_trait;
use gateway_core::bridge::digest::Digest;
use gateway_core::bridge::lineage::Seen;
use gateway_core::bridge::rotation::{Reason, Swap};
use gateway_core::ids::{ConversationId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId};
use jiff::Timestamp;

use super::{Lane, StoreError};

/// How many landmarks a profile keeps; the oldest go first. A conversation whose landmarks are gone is told whole to a new
/// session.
pub const LANDMARKS: usize = 4096;

/// A wish to retire a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    /// The title without a generation: generations are counted per base and subscription.
    pub base: String,
    pub conversation: ConversationId,
    pub subscription: SubscriptionId,
    /// The session that is full. It is retired only if it is still the live one.
    pub session: ProviderSessionId,
    pub reason: Reason,
    pub at: Timestamp,
}

/// A session that was retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetiredSession {
    pub subscription: SubscriptionId,
    /// The number it had; its successor has the next one.
    pub generation: u32,
    pub session: ProviderSessionId,
    pub reason: Reason,
    pub at: Timestamp,
}

/// What the sessions behind a program's conversation were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub conversation: ConversationId,
    pub seen: Seen,
}

/// The part of the store that is about generations. Every method is atomic, and durable on return if it writes.
#[async_trait]
pub trait Generations: Send + Sync {
    /// Retires a session if it is still the live one of its conversation and subscription.
    async fn retire_session(&self, wish: &Retirement) -> Result<Swap, StoreError>;

    /// Forgets a session that was opened for a request that did not fit it. No generation is counted: the next request
    /// opens another one of the same title. Does nothing if another session is live.
    async fn forget_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        session: &ProviderSessionId,
    ) -> Result<(), StoreError>;

    /// The live generation: how many sessions of this base were retired on the subscription.
    async fn generation(
        &self,
        base: &str,
        subscription: &SubscriptionId,
    ) -> Result<u32, StoreError>;

    /// The retired sessions of a base, oldest first.
    async fn retired_sessions(&self, base: &str) -> Result<Vec<RetiredSession>, StoreError>;

    /// What the sessions of a lane were told; `None` = no program has spoken there.
    async fn told(&self, lane: &Lane) -> Result<Option<Told>, StoreError>;

    /// Records what the sessions of a lane were told, and the landmarks by which the conversation is found again.
    async fn tell(&self, lane: &Lane, told: &Told, landmarks: &[Digest]) -> Result<(), StoreError>;

    /// The lane that left one of these landmarks, the first of them that is known; `None` = nobody did.
    async fn landmark(
        &self,
        profile: &ProfileId,
        landmarks: &[Digest],
    ) -> Result<Option<SessionKey>, StoreError>;
}
