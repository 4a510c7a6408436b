//! What survives: sessions, the journal of running turns, handoffs, readings. One trait, one contract suite for every
//! implementation. Journal rows, seals, claims and acks are durable when the call returns.

use async_trait::async_trait;
use gateway_core::handoff::{Handoff, HandoffState, StoredHandoff};
use gateway_core::ids::{
    ConversationId, HandoffId, InboundId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId,
    TurnId,
};
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use gateway_core::route::Route;
use gateway_core::usage::Reading;
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
    #[error("no such turn: {0}")]
    NoSuchTurn(TurnId),
}

/// The store. Every method is atomic; methods that change a promise are durable on return.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    // --- inbound
    /// Remembers a message id; `false` = it was there already (answered once is enough).
    async fn first_sight(
        &self,
        platform: &str,
        id: &InboundId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    // --- sessions
    /// The lane's session, opened if there is none.
    async fn session(&self, lane: &Lane, now: Timestamp) -> Result<SessionRow, StoreError>;
    /// Opens a new conversation on the lane and discards its armed and stopped handoffs, which are returned.
    async fn new_conversation(
        &self,
        lane: &Lane,
        now: Timestamp,
    ) -> Result<(SessionRow, Vec<StoredHandoff>), StoreError>;
    async fn choose_route(&self, lane: &Lane, route: Option<&Route>) -> Result<(), StoreError>;
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
    /// Writes the first row and claims `row.carries` (each must be armed at the revision given), all or nothing.
    /// `false` = a handoff was claimed by somebody else meanwhile, nothing was written: look again.
    async fn open_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError>;
    async fn append(&self, turn: &TurnId, entries: &[JournalEntry]) -> Result<(), StoreError>;
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
    /// Moves a handoff from one state to another if it still has this revision; `false` = it has moved on.
    async fn move_handoff(
        &self,
        id: &HandoffId,
        revision: i64,
        to: HandoffState,
    ) -> Result<bool, StoreError>;
    /// Expires what is past its time, purges ended rows older than 30 days and corrupt ones older than 7; returns the expired.
    async fn sweep(&self, now: Timestamp) -> Result<Vec<StoredHandoff>, StoreError>;

    // --- usage
    /// The newest reading per (subscription, window, scope).
    async fn readings(&self) -> Result<Vec<Reading>, StoreError>;
    /// Merges readings: newer `observed_at` wins, ties by source.
    async fn put_readings(&self, readings: &[Reading]) -> Result<(), StoreError>;
    /// Grows with every change of the readings, across processes: a cheap question before each gate.
    async fn readings_revision(&self) -> Result<i64, StoreError>;
}
