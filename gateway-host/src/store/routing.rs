//! What routing keeps: each conversation's machine, the audit, promised room, samples of burn, and the money ledger.
//!
//! A step of a machine is one transaction: its new state, its audit rows and the room it promises, or nothing of it. Whoever
//! decided on an older state, or on promises that others have added to since, writes nothing and decides again.

use async_trait::async_trait;
use gateway_core::ids::{ConversationId, ProfileId, SessionKey, SubscriptionId, TurnId};
use gateway_core::message::ReplyTarget;
use gateway_core::spend::{Overspend, SpendCaps, Spent, Usd};
use gateway_core::switch::facts::{Burn, Facts};
use gateway_core::switch::machine::{AuditKind, Event, Machine, State};
use jiff::Timestamp;
use providers::Permissions;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// A conversation under routing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutingRow {
    pub conversation: ConversationId,
    /// How often it was written; 0 = never.
    pub revision: i64,
    pub machine: Machine,
    pub seat: Seat,
    /// The gateway process that wrote it last: the one a running turn belongs to.
    pub owner: String,
}

impl RoutingRow {
    /// When it is to be looked at again; `None` = it waits for nothing.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match &self.machine.state {
            State::WaitingReset { wake_at, .. } => Some(*wake_at),
            State::Held { wake_at, .. } => *wake_at,
            _ => None,
        }
    }
}

/// Where a conversation lives, and with what rights its work goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    pub profile: ProfileId,
    pub session: SessionKey,
    pub target: ReplyTarget,
    pub permissions: Permissions,
    /// The person's turn whose work is unfinished; `None` = nothing is.
    pub pending: Option<TurnId>,
}

/// Everything of one step that becomes durable together.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingStep {
    /// The new state; its `revision` is the one that was read.
    pub row: RoutingRow,
    pub audit: Vec<AuditRow>,
    pub reserve: Vec<Promise>,
    /// [`RoutingStore::promises_revision`] as the decision saw it; only asked for where room is reserved.
    pub promises_seen: i64,
    /// Promises that are void: nothing was started.
    pub release: Vec<String>,
    /// Promises whose work has begun: they count until a newer reading shows what it burnt.
    pub begun: Vec<String>,
    pub at: Timestamp,
}

/// One line of the audit. Never changed once written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    /// Its place in the order of the whole root; 0 until it is written.
    pub seq: i64,
    pub at: Timestamp,
    pub conversation: ConversationId,
    /// The person's turn it is about.
    pub turn: Option<TurnId>,
    pub kind: AuditKind,
    /// `None` = the person's own doing, outside of any episode.
    pub episode: Option<String>,
    pub attempt: u32,
    /// What was known and what happened: stepping the machine with it again gives the same effects.
    pub replay: Replay,
}

/// The inputs of one step, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    pub machine: Machine,
    pub event: Event,
    pub facts: Facts,
}

/// Room promised on a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    pub id: String,
    pub subscription: SubscriptionId,
    /// Points of 100.
    pub pct: f64,
    pub at: Timestamp,
    /// When the work it was made for began to answer; `None` = it is in flight.
    pub begun_at: Option<Timestamp>,
}

/// The part of the store that routing uses. Every method is atomic and durable on return.
#[async_trait]
pub trait RoutingStore: Send + Sync + 'static {
    /// `None` = routing has never looked at this conversation.
    async fn routing(
        &self,
        conversation: &ConversationId,
    ) -> Result<Option<RoutingRow>, StoreError>;
    /// Writes one step if the row still has the revision that was read, and (where it reserves) nobody has promised room
    /// since. `false` = nothing was written: read again.
    async fn record_step(&self, step: &RoutingStep) -> Result<bool, StoreError>;
    /// Conversations that are not at rest: something runs, waits or is held.
    async fn unsettled_routing(&self) -> Result<Vec<RoutingRow>, StoreError>;
    /// The audit of a conversation, oldest first.
    async fn audit_of(&self, conversation: &ConversationId) -> Result<Vec<AuditRow>, StoreError>;
    /// The audit rows about a turn, oldest first; without one, of the turn the newest row is about.
    async fn audit_of_turn(&self, turn: Option<&TurnId>) -> Result<Vec<AuditRow>, StoreError>;
    /// When anybody switched by itself, from this instant on.
    async fn switches_since(&self, from: Timestamp) -> Result<Vec<Timestamp>, StoreError>;
    /// Room that is promised, and the revision to reserve against.
    async fn promises(&self) -> Result<(Vec<Promise>, i64), StoreError>;
    /// Samples of burn per subscription and window, oldest first.
    async fn burn(&self) -> Result<Vec<Burn>, StoreError>;
    /// Replaces the samples of these windows.
    async fn put_burn(&self, burn: &[Burn]) -> Result<(), StoreError>;
    /// Promises a paid attempt its worst case, if the caps bear it; the same attempt again changes nothing.
    async fn reserve_spend(
        &self,
        attempt: &str,
        conversation: &ConversationId,
        worst: Option<Usd>,
        caps: &SpendCaps,
        at: Timestamp,
    ) -> Result<Result<Usd, Overspend>, StoreError>;
    /// Replaces a promise by what it cost; `None` = nothing was sent. An attempt without an open promise is left alone.
    async fn settle_spend(
        &self,
        attempt: &str,
        cost: Option<Usd>,
        at: Timestamp,
    ) -> Result<(), StoreError>;
    /// What is gone or promised on the day of `at` (UTC), over everything and for one conversation.
    async fn spent(
        &self,
        conversation: &ConversationId,
        at: Timestamp,
    ) -> Result<Spent, StoreError>;
}

/// Whether a row has nothing in flight and nothing to wait for.
pub(super) fn is_settled(machine: &Machine) -> bool {
    !machine.running && machine.state.episode().is_none()
}

/// The day money counts for: days since 1970, UTC.
pub(super) fn day_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(86_400)
}
