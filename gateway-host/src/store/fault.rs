//! A store that fails on request, around any other: how the rest of the gateway is shown a full disk without one.
//! For tests only; it holds no data of its own, and a call that fails leaves the store behind it untouched.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::action::{Action, Offer};
use gateway_core::bridge::digest::Digest;
use gateway_core::bridge::rotation::Swap;
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{
    ConversationId, HandoffId, InboundId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId,
    TurnId,
};
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::route::Route;
use gateway_core::spend::{Overspend, SpendCaps, Spent, Usd};
use gateway_core::switch::facts::Burn;
use gateway_core::usage::Reading;
use gateway_core::usage::identity::Login;
use gateway_core::usage::probe::ProbeState;
use jiff::Timestamp;
use parking_lot::Mutex;
use providers::Exchange;

use super::generations::{Generations, RetiredSession, Retirement, Told};
use super::routing::{AuditRow, Promise, RoutingRow, RoutingStep, RoutingStore};
use super::{
    ConversationRow, Lane, PairedOperator, ProviderSessionRow, SessionRow, Store, StoreError,
    TurnClose,
};

/// A method of [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    FirstSight,
    WasSeen,
    Session,
    NewConversation,
    EarlierConversations,
    ResumeConversation,
    NoteParticipant,
    TookPart,
    ChooseRoute,
    ChooseRouteUndoably,
    Action,
    UseAction,
    ProviderSession,
    NoteProviderSession,
    History,
    OpenTurn,
    ClaimForTurn,
    Turn,
    Append,
    Journal,
    CloseTurn,
    OpenTurns,
    AdoptTurn,
    HandoffsOf,
    Handoffs,
    Handoff,
    MoveHandoff,
    Sweep,
    Readings,
    ReadingsSince,
    PutReadings,
    ReadingsRevision,
    Logins,
    PutLogins,
    ProbeState,
    PutProbeState,
    PairOperator,
    PairedOperators,
    UnpairOperators,
    Routing,
    RecordStep,
    UnsettledRouting,
    AuditOf,
    AuditOfTurn,
    SwitchesSince,
    Promises,
    Burn,
    PutBurn,
    ReserveSpend,
    SettleSpend,
    Spent,
    RetireSession,
    ForgetSession,
    Generation,
    RetiredSessions,
    Told,
    Tell,
    Landmark,
}

/// Every method that writes: what a full disk takes away.
pub const WRITES: &[Method] = &[
    Method::FirstSight,
    Method::Session,
    Method::NewConversation,
    Method::ResumeConversation,
    Method::NoteParticipant,
    Method::ChooseRoute,
    Method::ChooseRouteUndoably,
    Method::UseAction,
    Method::NoteProviderSession,
    Method::OpenTurn,
    Method::ClaimForTurn,
    Method::Append,
    Method::CloseTurn,
    Method::AdoptTurn,
    Method::MoveHandoff,
    Method::Sweep,
    Method::PutReadings,
    Method::PutLogins,
    Method::PutProbeState,
    Method::PairOperator,
    Method::UnpairOperators,
    Method::RetireSession,
    Method::ForgetSession,
    Method::Tell,
    Method::RecordStep,
    Method::PutBurn,
    Method::ReserveSpend,
    Method::SettleSpend,
];

/// Wraps a store; the methods given to [`FaultyStore::fail`] answer [`StoreError::Write`] until [`FaultyStore::heal`].
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    failing: Mutex<HashSet<Method>>,
}

impl FaultyStore {
    /// A store that does not fail yet.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            failing: Mutex::default(),
        }
    }

    /// From now on these methods fail too.
    pub fn fail(&self, methods: &[Method]) {
        self.failing.lock().extend(methods);
    }

    /// Everything works again.
    pub fn heal(&self) {
        self.failing.lock().clear();
    }

    fn check(&self, method: Method) -> Result<(), StoreError> {
        if self.failing.lock().contains(&method) {
            return Err(StoreError::Write("the disk is full".to_owned()));
        }
        Ok(())
    }
}

/// Writes out the trait: each method asks whether it fails, then goes to the store behind.
macro_rules! forward {
    ($store:ident { $($method:ident: $name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)* }) => {
        #[async_trait]
        impl $store for FaultyStore {
            $(async fn $name(&self, $($arg: $kind),*) -> Result<$out, StoreError> {
                self.check(Method::$method)?;
                self.inner.$name($($arg),*).await
            })*
        }
    };
}

forward! { Store {
    FirstSight: first_sight(platform: &str, id: &InboundId, now: Timestamp) -> bool;
    WasSeen: was_seen(platform: &str, id: &InboundId) -> bool;
    Session: session(lane: &Lane, now: Timestamp) -> SessionRow;
    NewConversation: new_conversation(lane: &Lane, now: Timestamp) -> (SessionRow, Vec<StoredHandoff>);
    EarlierConversations: earlier_conversations(lane: &Lane) -> Vec<ConversationRow>;
    ResumeConversation: resume_conversation(lane: &Lane, conversation: &ConversationId) -> Option<SessionRow>;
    NoteParticipant: note_participant(conversation: &ConversationId, platform: &str, sender: &str) -> ();
    TookPart: took_part(platform: &str, sender: &str) -> Vec<ConversationId>;
    ChooseRoute: choose_route(lane: &Lane, route: Option<&Route>) -> ();
    ChooseRouteUndoably: choose_route_undoably(lane: &Lane, route: Option<&Route>, offer: &Offer) -> ();
    Action: action(token: &str) -> Option<Action>;
    UseAction: use_action(token: &str, now: Timestamp) -> bool;
    ProviderSession: provider_session(conversation: &ConversationId, subscription: &SubscriptionId) -> Option<ProviderSessionRow>;
    NoteProviderSession: note_provider_session(conversation: &ConversationId, subscription: &SubscriptionId, id: &ProviderSessionId) -> ();
    History: history(conversation: &ConversationId, limit: u32) -> (Vec<Exchange>, u64);
    OpenTurn: open_turn(row: &TurnRow, claims: &[(HandoffId, i64)]) -> bool;
    ClaimForTurn: claim_for_turn(row: &TurnRow, claims: &[(HandoffId, i64)]) -> bool;
    Turn: turn(turn: &TurnId) -> Option<TurnRow>;
    Append: append(turn: &TurnId, entries: &[JournalEntry]) -> ();
    Journal: journal(turn: &TurnId) -> Vec<JournalEntry>;
    CloseTurn: close_turn(close: &TurnClose) -> bool;
    OpenTurns: open_turns() -> Vec<TurnRow>;
    AdoptTurn: adopt_turn(turn: &TurnId, from_owner: &str, to_owner: &str) -> bool;
    HandoffsOf: handoffs_of(lane: &Lane) -> Vec<StoredHandoff>;
    Handoffs: handoffs() -> Vec<StoredHandoff>;
    Handoff: handoff(id: &HandoffId) -> Option<StoredHandoff>;
    MoveHandoff: move_handoff(id: &HandoffId, revision: i64, to: HandoffState) -> bool;
    Sweep: sweep(now: Timestamp) -> Vec<StoredHandoff>;
    Readings: readings() -> Vec<Reading>;
    ReadingsSince: readings_since(seq: i64) -> Vec<(i64, Reading)>;
    PutReadings: put_readings(readings: &[Reading], now: Timestamp) -> ();
    ReadingsRevision: readings_revision() -> i64;
    Logins: logins() -> Vec<Login>;
    PutLogins: put_logins(logins: &[Login]) -> ();
    ProbeState: probe_state(head: &str) -> Option<ProbeState>;
    PutProbeState: put_probe_state(head: &str, state: &ProbeState) -> ();
    PairOperator: pair_operator(operator: &PairedOperator) -> ();
    PairedOperators: paired_operators() -> Vec<PairedOperator>;
    UnpairOperators: unpair_operators(profile: &ProfileId, platform: &str) -> u64;
} }

forward! { Generations {
    RetireSession: retire_session(wish: &Retirement) -> Swap;
    ForgetSession: forget_session(conversation: &ConversationId, subscription: &SubscriptionId, session: &ProviderSessionId) -> ();
    Generation: generation(base: &str, subscription: &SubscriptionId) -> u32;
    RetiredSessions: retired_sessions(base: &str) -> Vec<RetiredSession>;
    Told: told(lane: &Lane) -> Option<Told>;
    Tell: tell(lane: &Lane, told: &Told, landmarks: &[Digest]) -> ();
    Landmark: landmark(profile: &ProfileId, landmarks: &[Digest]) -> Option<SessionKey>;
} }

forward! { RoutingStore {
    Routing: routing(conversation: &ConversationId) -> Option<RoutingRow>;
    RecordStep: record_step(step: &RoutingStep) -> bool;
    UnsettledRouting: unsettled_routing() -> Vec<RoutingRow>;
    AuditOf: audit_of(conversation: &ConversationId) -> Vec<AuditRow>;
    AuditOfTurn: audit_of_turn(turn: Option<&TurnId>) -> Vec<AuditRow>;
    SwitchesSince: switches_since(from: Timestamp) -> Vec<Timestamp>;
    Promises: promises() -> (Vec<Promise>, i64);
    Burn: burn() -> Vec<Burn>;
    PutBurn: put_burn(burn: &[Burn]) -> ();
    ReserveSpend: reserve_spend(attempt: &str, conversation: &ConversationId, worst: Option<Usd>, caps: &SpendCaps, at: Timestamp) -> Result<Usd, Overspend>;
    SettleSpend: settle_spend(attempt: &str, cost: Option<Usd>, at: Timestamp) -> ();
    Spent: spent(conversation: &ConversationId, at: Timestamp) -> Spent;
} }

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryStore;
    use super::*;

    #[tokio::test]
    async fn fails_what_it_is_told_and_nothing_reaches_the_store() {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let (id, now) = (InboundId::new("m1"), Timestamp::UNIX_EPOCH);
        store.fail(WRITES);
        let refused = store.first_sight("console", &id, now).await.unwrap_err();
        assert!(refused.to_string().contains("nothing was sent"));
        assert!(store.handoffs().await.unwrap().is_empty());
        store.heal();
        assert!(store.first_sight("console", &id, now).await.unwrap());
    }
}
