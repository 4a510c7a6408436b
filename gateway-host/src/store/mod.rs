//! What survives: sessions, the journal of running turns, handoffs, readings. One trait, one contract suite for every
//! implementation. Journal rows, seals, claims and acks are durable when the call returns.

#[cfg(test)]
mod contract;
pub mod fault;
pub mod generations;
pub mod memory;
mod memory_routing;
pub mod routing;
mod rules;
pub mod sqlite;

use async_trait::async_trait;
use gateway_core::action::{Action, Offer};
use gateway_core::handoff::{Handoff, HandoffState, StoredHandoff};
use gateway_core::ids::{
    ConversationId, HandoffId, InboundId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId,
    TurnId,
};
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use gateway_core::route::Route;
use gateway_core::usage::identity::Login;
use gateway_core::usage::probe::ProbeState;
use gateway_core::usage::{Reading, WindowScope};
use jiff::Timestamp;
use providers::Exchange;

/// A lane of one profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane {
    pub profile: ProfileId,
    pub session: SessionKey,
}

/// What a lane holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub lane: Lane,
    pub conversation: ConversationId,
    pub started_at: Timestamp,
    /// The route chosen with `/model`; `None` = the chain.
    pub chosen: Option<Route>,
    /// The last route that answered, and when.
    pub answered_by: Option<(Route, Timestamp)>,
}

/// A conversation the lane has left and can pick up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    pub conversation: ConversationId,
    /// Counted per lane from 1; never changes.
    pub number: u32,
    pub started_at: Timestamp,
    /// When its last turn ended.
    pub used_at: Timestamp,
    /// Exchanges in its history.
    pub exchanges: u64,
    /// The first request of it that is kept, verbatim; empty = none is any more.
    pub first_request: String,
}

/// The CLI session behind a conversation on one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSessionRow {
    pub id: ProviderSessionId,
    /// How many exchanges of the conversation's history it has seen.
    pub seen: u64,
}

/// How a turn ends in the store: one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnClose {
    pub turn: TurnId,
    pub status: TurnStatus,
    pub at: Timestamp,
    /// The handoff this turn seals, in the state it starts with (`Armed` or `Stopped`).
    pub seal: Option<(Handoff, HandoffState)>,
    /// What happens to the handoffs the turn carried.
    pub carried: Carried,
    /// Exchanges to append to the conversation's history, oldest first.
    pub exchanges: Vec<Exchange>,
    /// The route that answered.
    pub answered_by: Option<Route>,
    /// The session of the answering subscription, marked as having seen everything up to and including `exchanges`.
    pub session: Option<(SubscriptionId, ProviderSessionId)>,
}

/// What happens to claimed handoffs when their turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// The turn was answered: done.
    Acked,
    /// A second cut merged them into the handoff it seals.
    Chained,
    /// Back to armed, as if never claimed.
    Released,
}

/// Somebody who became an operator of a profile by its pairing code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedOperator {
    pub profile: ProfileId,
    /// The platform's name.
    pub platform: String,
    /// The platform's id of the person.
    pub person: String,
    /// Their name then, for people who look.
    pub name: String,
    pub paired_at: Timestamp,
}

/// A fault of the store. Nothing about quotas or providers is ever here.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot open the store {path}: {why}. {hint}")]
    Open {
        path: String,
        why: String,
        hint: &'static str,
    },
    /// The disk is full or read-only, or the file went away.
    #[error(
        "the store cannot write: {0}. Free space or check the permissions of the state folder; nothing was sent"
    )]
    Write(String),
    #[error("the store cannot read: {0}")]
    Read(String),
    /// A row that this version cannot understand; named so that it can be looked at.
    #[error("{what} in the store is damaged: {why}")]
    Damaged { what: String, why: String },
    /// Unknown, or ended where an open one is needed.
    #[error("no such open turn: {0}")]
    NoSuchTurn(TurnId),
    /// A turn is opened once.
    #[error("turn {0} exists already")]
    TurnExists(TurnId),
    /// The message a turn was to answer has been taken before.
    #[error("message {0} was taken before")]
    SeenBefore(InboundId),
    /// The lane has no session yet; [`Store::session`] opens it.
    #[error("no session on {0} yet")]
    NoSuchSession(SessionKey),
}

/// The store. Every method is atomic; methods that change a promise are durable on return.
#[async_trait]
pub trait Store: generations::Generations + routing::RoutingStore + 'static {
    // --- inbound
    /// Remembers the id of what is answered without a turn; `false` = it was there already (answered once is enough). A
    /// message that gets a turn is remembered by [`Store::open_turn`].
    async fn first_sight(
        &self,
        platform: &str,
        id: &InboundId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Whether this was taken before, with a turn or without.
    async fn was_seen(&self, platform: &str, id: &InboundId) -> Result<bool, StoreError>;

    // --- sessions
    /// The lane's session, opened if there is none.
    async fn session(&self, lane: &Lane, now: Timestamp) -> Result<SessionRow, StoreError>;
    /// Opens a new conversation on the lane and discards the armed and stopped handoffs of the one it leaves, which are
    /// returned; those of earlier conversations stay with them. What is left can be picked up again, if anything was said.
    async fn new_conversation(
        &self,
        lane: &Lane,
        now: Timestamp,
    ) -> Result<(SessionRow, Vec<StoredHandoff>), StoreError>;
    /// The lane's other conversations in which something was said, last used first, at most 100.
    async fn earlier_conversations(&self, lane: &Lane) -> Result<Vec<ConversationRow>, StoreError>;
    /// Makes an earlier conversation the lane's current one, with the choice it had; the one it leaves can be picked up
    /// again, and no handoff moves. `None` = the lane has no such conversation, nothing was changed.
    async fn resume_conversation(
        &self,
        lane: &Lane,
        conversation: &ConversationId,
    ) -> Result<Option<SessionRow>, StoreError>;
    /// Remembers that a person spoke in a conversation.
    async fn note_participant(
        &self,
        conversation: &ConversationId,
        platform: &str,
        sender: &str,
    ) -> Result<(), StoreError>;
    /// The conversations a person spoke in.
    async fn took_part(
        &self,
        platform: &str,
        sender: &str,
    ) -> Result<Vec<ConversationId>, StoreError>;
    /// Sets or clears the choice of the lane's session, which must be open. It holds for that conversation. Older choices
    /// can no longer be undone.
    async fn choose_route(&self, lane: &Lane, route: Option<&Route>) -> Result<(), StoreError>;
    /// The same, and in the same transaction the row of the button that undoes it.
    async fn choose_route_undoably(
        &self,
        lane: &Lane,
        route: Option<&Route>,
        offer: &Offer,
    ) -> Result<(), StoreError>;
    /// A button's row by its token; `None` = there is none that this version understands.
    async fn action(&self, token: &str) -> Result<Option<Action>, StoreError>;
    /// Does what the button does, once: in one transaction it is used and its choice undone. `false` = it was not open, or
    /// what it would undo does not stand any more; then it is replaced, and nothing else was changed.
    async fn use_action(&self, token: &str, now: Timestamp) -> Result<bool, StoreError>;
    async fn provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
    ) -> Result<Option<ProviderSessionRow>, StoreError>;
    /// Records the session a provider opened, before the turn has ended. Keeps `seen` if the id is unchanged, else 0.
    async fn note_provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        id: &ProviderSessionId,
    ) -> Result<(), StoreError>;
    /// The conversation's exchanges, oldest first, at most the newest `limit`; and how many there are in all.
    async fn history(
        &self,
        conversation: &ConversationId,
        limit: u32,
    ) -> Result<(Vec<Exchange>, u64), StoreError>;

    // --- turns
    /// Writes the first row, remembers its message as seen, and claims `row.carries` (each must be armed at the revision
    /// given), all or nothing. `false` = a handoff was claimed by somebody else meanwhile, nothing was written: look
    /// again. [`StoreError::SeenBefore`] = another turn has the message.
    async fn open_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError>;
    /// Adds to the journal of an open turn, all or nothing; an ended turn's journal is final ([`StoreError::NoSuchTurn`]).
    /// Gives an open turn that had to wait its conversation and its claims, all or nothing; `false` as for `open_turn`.
    async fn claim_for_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError>;
    /// The first row of a turn, open or ended; `None` = not here (any more).
    async fn turn(&self, turn: &TurnId) -> Result<Option<TurnRow>, StoreError>;
    async fn append(&self, turn: &TurnId, entries: &[JournalEntry]) -> Result<(), StoreError>;
    /// What happened, in order. A damaged entry is left out and logged; empty once the turn's texts were swept away.
    async fn journal(&self, turn: &TurnId) -> Result<Vec<JournalEntry>, StoreError>;
    /// Ends an open turn; ending an ended one changes nothing and returns `false`.
    async fn close_turn(&self, close: &TurnClose) -> Result<bool, StoreError>;
    /// Turns that are still open, oldest first; of every process.
    async fn open_turns(&self) -> Result<Vec<TurnRow>, StoreError>;
    /// Takes over an open turn of a dead owner; `false` = somebody else did.
    async fn adopt_turn(
        &self,
        turn: &TurnId,
        from_owner: &str,
        to_owner: &str,
    ) -> Result<bool, StoreError>;

    // --- handoffs
    /// The lane's handoffs in any state, newest first.
    async fn handoffs_of(&self, lane: &Lane) -> Result<Vec<StoredHandoff>, StoreError>;
    /// Every handoff of the root that is not acked, chained or discarded, newest first.
    async fn handoffs(&self) -> Result<Vec<StoredHandoff>, StoreError>;
    async fn handoff(&self, id: &HandoffId) -> Result<Option<StoredHandoff>, StoreError>;
    /// Moves a handoff from one state to another if it still has this revision; `false` = it has moved on, or there is no
    /// way from its state to that one (what is over stays over; only [`Store::open_turn`] claims).
    async fn move_handoff(
        &self,
        id: &HandoffId,
        revision: i64,
        to: HandoffState,
    ) -> Result<bool, StoreError>;
    /// Expires armed handoffs past their time and returns them; purges handoffs that have been over for 30 days (corrupt
    /// ones for 7) since a sweep first saw them so, turns ended 30 days ago, journal and request of turns answered 3 days
    /// ago, and message ids seen and buttons expired 7 days ago.
    async fn sweep(&self, now: Timestamp) -> Result<Vec<StoredHandoff>, StoreError>;

    // --- usage
    /// The newest reading per (subscription, window, scope).
    async fn readings(&self) -> Result<Vec<Reading>, StoreError>;
    /// The readings that changed after the revision `seq`, each with the revision that changed it, oldest change first;
    /// -1 = all of them.
    async fn readings_since(&self, seq: i64) -> Result<Vec<(i64, Reading)>, StoreError>;
    /// Merges readings in one transaction, as [`gateway_core::usage::merge::compare`] orders them.
    async fn put_readings(&self, readings: &[Reading], now: Timestamp) -> Result<(), StoreError>;
    /// Grows with every change of the readings and of the logins, across processes: a cheap question before each gate.
    async fn readings_revision(&self) -> Result<i64, StoreError>;
    /// Who the logins are, as far as known; one per subscription.
    async fn logins(&self) -> Result<Vec<Login>, StoreError>;
    /// Replaces what is known of these logins.
    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError>;
    /// What is remembered of the probes of a quota group; `None` = nothing.
    async fn probe_state(&self, head: &str) -> Result<Option<ProbeState>, StoreError>;
    async fn put_probe_state(&self, head: &str, state: &ProbeState) -> Result<(), StoreError>;

    // --- operators by pairing
    /// Remembers an operator; one who is known is renewed.
    async fn pair_operator(&self, operator: &PairedOperator) -> Result<(), StoreError>;
    /// Every paired operator, by profile, platform and person.
    async fn paired_operators(&self) -> Result<Vec<PairedOperator>, StoreError>;
    /// Forgets the paired operators of a profile on a platform; returns how many there were.
    async fn unpair_operators(
        &self,
        profile: &ProfileId,
        platform: &str,
    ) -> Result<u64, StoreError>;
}

/// Refuses an end that is none, before anything is written.
fn check_close(close: &TurnClose) -> Result<(), StoreError> {
    if close.status == TurnStatus::Open {
        return Err(StoreError::Damaged {
            what: format!("the end of turn {}", close.turn),
            why: "a turn cannot end as open".to_owned(),
        });
    }
    Ok(())
}

fn sealed_twice(id: &HandoffId) -> StoreError {
    StoreError::Damaged {
        what: format!("handoff {id}"),
        why: "it exists already; nothing was overwritten".to_owned(),
    }
}

/// The state a claimed handoff is left in.
fn settled_as(carried: Carried) -> HandoffState {
    match carried {
        Carried::Acked => HandoffState::Acked,
        Carried::Chained => HandoffState::Chained,
        Carried::Released => HandoffState::Armed,
    }
}

/// Whether the turn that claimed a handoff stays on record: the one that answered with it, and the one that merged it.
fn keeps_claim(state: HandoffState) -> bool {
    matches!(state, HandoffState::Acked | HandoffState::Chained)
}

/// A reading as it is kept: a number that is none is unknown.
fn tidy(reading: &Reading) -> Reading {
    let mut kept = reading.clone();
    kept.used_pct = kept.used_pct.filter(|pct| pct.is_finite());
    kept
}

/// The text a value is stored as.
fn document<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("our records have string keys and cannot fail to serialise")
}

/// The scope as a key; empty = not stated.
fn scope_text(scope: Option<&WindowScope>) -> String {
    scope.map(document).unwrap_or_default()
}
