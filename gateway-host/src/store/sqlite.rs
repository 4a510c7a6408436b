//! The store in one SQLite file, shared by every gateway process of a root: WAL, one writer connection per process,
//! every write a transaction that takes the write lock first, `synchronous=FULL`. What is acknowledged survives power
//! loss. A file we cannot read is reported with the way out, never overwritten or deleted.

mod actions;
mod conversations;
mod fault;
mod generations;
mod handoffs;
mod open;
mod operators;
mod routing;
mod sessions;
#[cfg(test)]
mod tests;
mod turns;
mod usage;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use gateway_core::action::{Action, Offer};
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{
    ConversationId, HandoffId, InboundId, ProfileId, ProviderSessionId, SubscriptionId, TurnId,
};
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::route::Route;
use gateway_core::usage::Reading;
use gateway_core::usage::identity::Login;
use gateway_core::usage::probe::ProbeState;
use jiff::Timestamp;
use providers::Exchange;
use sqlx::{Sqlite, SqlitePool, Transaction};

use self::fault::{Doing, Fault};
use super::{
    ConversationRow, Lane, PairedOperator, ProviderSessionRow, SessionRow, Store, StoreError,
    TurnClose,
};

type Tx = Transaction<'static, Sqlite>;

/// The embedded store. Cheap to clone: clones share the connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: PathBuf,
    /// Exactly one connection: writes of this process queue here, those of others at the file's lock.
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqliteStore {
    /// Opens the file, made with mode 0600 (its folder 0700) if it is not there, and brings its schema up to date.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        open::open(path.as_ref()).await
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the connections; running calls finish first. Nothing depends on it: it only tidies the log file up.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// A transaction that holds the write lock from its first statement, so that it never fails half-way for a lock.
    async fn begin(&self) -> Result<Tx, Fault> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    fn on_write(&self) -> impl Fn(Fault) -> StoreError + '_ {
        |fault| fault.into_store_error(Doing::Write, &self.path)
    }

    fn on_read(&self) -> impl Fn(Fault) -> StoreError + '_ {
        |fault| fault.into_store_error(Doing::Read, &self.path)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn first_sight(
        &self,
        platform: &str,
        id: &InboundId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let done = sessions::first_sight(self, platform, id, now).await;
        done.map_err(self.on_write())
    }

    async fn was_seen(&self, platform: &str, id: &InboundId) -> Result<bool, StoreError> {
        let done = sessions::was_seen(self, platform, id).await;
        done.map_err(self.on_read())
    }

    async fn session(&self, lane: &Lane, now: Timestamp) -> Result<SessionRow, StoreError> {
        let done = sessions::session(self, lane, now).await;
        done.map_err(self.on_write())
    }

    async fn new_conversation(
        &self,
        lane: &Lane,
        now: Timestamp,
    ) -> Result<(SessionRow, Vec<StoredHandoff>), StoreError> {
        let done = sessions::new_conversation(self, lane, now).await;
        done.map_err(self.on_write())
    }

    async fn choose_route(&self, lane: &Lane, route: Option<&Route>) -> Result<(), StoreError> {
        let done = sessions::choose_route(self, lane, route).await;
        done.map_err(self.on_write())
    }

    async fn earlier_conversations(&self, lane: &Lane) -> Result<Vec<ConversationRow>, StoreError> {
        let done = conversations::earlier(self, lane).await;
        done.map_err(self.on_read())
    }

    async fn resume_conversation(
        &self,
        lane: &Lane,
        conversation: &ConversationId,
    ) -> Result<Option<SessionRow>, StoreError> {
        let done = conversations::resume(self, lane, conversation).await;
        done.map_err(self.on_write())
    }

    async fn note_participant(
        &self,
        conversation: &ConversationId,
        platform: &str,
        sender: &str,
    ) -> Result<(), StoreError> {
        let done = conversations::note_participant(self, conversation, platform, sender).await;
        done.map_err(self.on_write())
    }

    async fn took_part(
        &self,
        platform: &str,
        sender: &str,
    ) -> Result<Vec<ConversationId>, StoreError> {
        let done = conversations::took_part(self, platform, sender).await;
        done.map_err(self.on_read())
    }

    async fn choose_route_undoably(
        &self,
        lane: &Lane,
        route: Option<&Route>,
        offer: &Offer,
    ) -> Result<(), StoreError> {
        let done = actions::choose_undoably(self, lane, route, offer).await;
        done.map_err(self.on_write())
    }

    async fn action(&self, token: &str) -> Result<Option<Action>, StoreError> {
        actions::one(self, token).await.map_err(self.on_read())
    }

    async fn use_action(&self, token: &str, now: Timestamp) -> Result<bool, StoreError> {
        let done = actions::use_once(self, token, now).await;
        done.map_err(self.on_write())
    }

    async fn provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
    ) -> Result<Option<ProviderSessionRow>, StoreError> {
        let done = sessions::provider_session(self, conversation, subscription).await;
        done.map_err(self.on_read())
    }

    async fn note_provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        id: &ProviderSessionId,
    ) -> Result<(), StoreError> {
        let done = sessions::note_provider_session(self, conversation, subscription, id).await;
        done.map_err(self.on_write())
    }

    async fn history(
        &self,
        conversation: &ConversationId,
        limit: u32,
    ) -> Result<(Vec<Exchange>, u64), StoreError> {
        let done = sessions::history(self, conversation, limit).await;
        done.map_err(self.on_read())
    }

    async fn open_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError> {
        let done = turns::open_turn(self, row, claims).await;
        done.map_err(self.on_write())
    }

    async fn claim_for_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError> {
        let done = turns::claim_for_turn(self, row, claims).await;
        done.map_err(self.on_write())
    }

    async fn turn(&self, turn: &TurnId) -> Result<Option<TurnRow>, StoreError> {
        let done = turns::turn(self, turn).await;
        done.map_err(self.on_read())
    }

    async fn append(&self, turn: &TurnId, entries: &[JournalEntry]) -> Result<(), StoreError> {
        let done = turns::append(self, turn, entries).await;
        done.map_err(self.on_write())
    }

    async fn journal(&self, turn: &TurnId) -> Result<Vec<JournalEntry>, StoreError> {
        let done = turns::journal(self, turn).await;
        done.map_err(self.on_read())
    }

    async fn close_turn(&self, close: &TurnClose) -> Result<bool, StoreError> {
        let done = turns::close_turn(self, close).await;
        done.map_err(self.on_write())
    }

    async fn open_turns(&self) -> Result<Vec<TurnRow>, StoreError> {
        let done = turns::open_turns(self).await;
        done.map_err(self.on_read())
    }

    async fn adopt_turn(
        &self,
        turn: &TurnId,
        from_owner: &str,
        to_owner: &str,
    ) -> Result<bool, StoreError> {
        let done = turns::adopt_turn(self, turn, from_owner, to_owner).await;
        done.map_err(self.on_write())
    }

    async fn handoffs_of(&self, lane: &Lane) -> Result<Vec<StoredHandoff>, StoreError> {
        let done = handoffs::of_lane(self, lane).await;
        done.map_err(self.on_read())
    }

    async fn handoffs(&self) -> Result<Vec<StoredHandoff>, StoreError> {
        let done = handoffs::unsettled(self).await;
        done.map_err(self.on_read())
    }

    async fn handoff(&self, id: &HandoffId) -> Result<Option<StoredHandoff>, StoreError> {
        let done = handoffs::one(self, id).await;
        done.map_err(self.on_read())
    }

    async fn move_handoff(
        &self,
        id: &HandoffId,
        revision: i64,
        to: HandoffState,
    ) -> Result<bool, StoreError> {
        let done = handoffs::move_to(self, id, revision, to).await;
        done.map_err(self.on_write())
    }

    async fn sweep(&self, now: Timestamp) -> Result<Vec<StoredHandoff>, StoreError> {
        let done = handoffs::sweep(self, now).await;
        done.map_err(self.on_write())
    }

    async fn readings(&self) -> Result<Vec<Reading>, StoreError> {
        usage::readings(self).await.map_err(self.on_read())
    }

    async fn readings_since(&self, seq: i64) -> Result<Vec<(i64, Reading)>, StoreError> {
        usage::since(self, seq).await.map_err(self.on_read())
    }

    async fn put_readings(&self, readings: &[Reading], now: Timestamp) -> Result<(), StoreError> {
        let done = usage::put(self, readings, now).await;
        done.map_err(self.on_write())
    }

    async fn readings_revision(&self) -> Result<i64, StoreError> {
        usage::revision(self).await.map_err(self.on_read())
    }

    async fn logins(&self) -> Result<Vec<Login>, StoreError> {
        usage::logins(self).await.map_err(self.on_read())
    }

    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError> {
        let done = usage::put_logins(self, logins).await;
        done.map_err(self.on_write())
    }

    async fn probe_state(&self, head: &str) -> Result<Option<ProbeState>, StoreError> {
        let done = usage::probe_state(self, head).await;
        done.map_err(self.on_read())
    }

    async fn put_probe_state(&self, head: &str, state: &ProbeState) -> Result<(), StoreError> {
        let done = usage::put_probe_state(self, head, state).await;
        done.map_err(self.on_write())
    }

    async fn pair_operator(&self, operator: &PairedOperator) -> Result<(), StoreError> {
        let done = operators::pair(self, operator).await;
        done.map_err(self.on_write())
    }

    async fn paired_operators(&self) -> Result<Vec<PairedOperator>, StoreError> {
        operators::all(self).await.map_err(self.on_read())
    }

    async fn unpair_operators(
        &self,
        profile: &ProfileId,
        platform: &str,
    ) -> Result<u64, StoreError> {
        let done = operators::unpair(self, profile, platform).await;
        done.map_err(self.on_write())
    }
}
