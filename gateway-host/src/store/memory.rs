//! The store in memory: for tests, the demo and benches. It keeps every rule of the trait except durability, and passes
//! the same contract suite as the one on disk.

mod actions;
mod conversations;
mod generations;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use gateway_core::action::{Action, Offer};
use gateway_core::bridge::digest::Digest;
use gateway_core::handoff::{HandoffState, StoredHandoff};
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
use parking_lot::Mutex;
use providers::Exchange;
use uuid::Uuid;

use super::generations::Told;
use super::memory_routing::RoutingState;
use super::rules::{self, in_ms};
use super::{
    Carried, ConversationRow, Lane, PairedOperator, ProviderSessionRow, SessionRow, Store,
    StoreError, TurnClose,
};

/// A store that lives as long as the value. One lock: every method is atomic because it holds it throughout.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<State>, Mutex<RoutingState>);

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn routing_state(&self) -> parking_lot::MutexGuard<'_, RoutingState> {
        self.1.lock()
    }
}

#[derive(Debug, Default)]
struct State {
    inbound: HashMap<(String, InboundId), Timestamp>,
    sessions: HashMap<Lane, SessionRow>,
    provider_sessions: HashMap<(ConversationId, SubscriptionId), ProviderSessionRow>,
    left: HashMap<ConversationId, conversations::Left>,
    /// Conversation, platform, person.
    participants: BTreeSet<(ConversationId, String, String)>,
    /// By token.
    actions: HashMap<String, Action>,
    history: HashMap<ConversationId, Vec<Exchange>>,
    turns: BTreeMap<TurnId, Turn>,
    handoffs: BTreeMap<HandoffId, Kept>,
    /// Each with the revision that last changed it.
    readings: HashMap<(SubscriptionId, String, Option<WindowScope>), (i64, Reading)>,
    logins: BTreeMap<String, Login>,
    probes: HashMap<String, ProbeState>,
    readings_revision: i64,
    /// By profile, platform and person.
    operators: BTreeMap<(ProfileId, String, String), PairedOperator>,
    /// In the order of retirement.
    retired: Vec<generations::Retired>,
    told: HashMap<Lane, Told>,
    /// The oldest first.
    landmarks: Vec<(ProfileId, Digest, SessionKey)>,
}

#[derive(Debug)]
struct Turn {
    row: TurnRow,
    status: TurnStatus,
    journal: Vec<JournalEntry>,
    ended_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Kept {
    stored: StoredHandoff,
    /// When a sweep first saw it over.
    over_since: Option<Timestamp>,
}

impl Kept {
    fn move_to(&mut self, to: HandoffState, claimed_by: Option<TurnId>) {
        self.stored.state = to;
        self.stored.revision += 1;
        self.stored.claimed_by = claimed_by;
    }
}

impl State {
    /// Claims all or none; each must be armed at the revision given.
    fn claim(&mut self, turn: &TurnId, claims: &[(HandoffId, i64)]) -> bool {
        let free = claims.iter().enumerate().all(|(at, (id, revision))| {
            let twice = claims.iter().take(at).any(|(other, _)| other == id);
            let armed = self.handoffs.get(id).is_some_and(|kept| {
                kept.stored.state == HandoffState::Armed && kept.stored.revision == *revision
            });
            armed && !twice
        });
        if free {
            for (id, _) in claims {
                if let Some(kept) = self.handoffs.get_mut(id) {
                    kept.move_to(HandoffState::Claimed, Some(turn.clone()));
                }
            }
        }
        free
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn first_sight(
        &self,
        platform: &str,
        id: &InboundId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        let key = (platform.to_owned(), id.clone());
        if state.inbound.contains_key(&key) {
            return Ok(false);
        }
        state.inbound.insert(key, now);
        Ok(true)
    }

    async fn was_seen(&self, platform: &str, id: &InboundId) -> Result<bool, StoreError> {
        let key = (platform.to_owned(), id.clone());
        Ok(self.0.lock().inbound.contains_key(&key))
    }

    async fn session(&self, lane: &Lane, now: Timestamp) -> Result<SessionRow, StoreError> {
        let mut state = self.0.lock();
        let row = state
            .sessions
            .entry(lane.clone())
            .or_insert_with(|| fresh_session(lane, now));
        Ok(row.clone())
    }

    async fn new_conversation(
        &self,
        lane: &Lane,
        now: Timestamp,
    ) -> Result<(SessionRow, Vec<StoredHandoff>), StoreError> {
        let mut state = self.0.lock();
        let discarded = state.discard_of(lane);
        if let Some(left) = state.sessions.get(lane).cloned() {
            state.leave(&left);
        }
        let row = fresh_session(lane, now);
        state.sessions.insert(lane.clone(), row.clone());
        Ok((row, discarded))
    }

    async fn choose_route(&self, lane: &Lane, route: Option<&Route>) -> Result<(), StoreError> {
        self.0.lock().choose(lane, route).map(drop)
    }

    async fn choose_route_undoably(
        &self,
        lane: &Lane,
        route: Option<&Route>,
        offer: &Offer,
    ) -> Result<(), StoreError> {
        self.0.lock().choose_undoably(lane, route, offer)
    }

    async fn action(&self, token: &str) -> Result<Option<Action>, StoreError> {
        Ok(self.0.lock().actions.get(token).cloned())
    }

    async fn use_action(&self, token: &str, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.0.lock().use_action(token, now))
    }

    async fn earlier_conversations(&self, lane: &Lane) -> Result<Vec<ConversationRow>, StoreError> {
        Ok(self.0.lock().earlier(lane))
    }

    async fn resume_conversation(
        &self,
        lane: &Lane,
        conversation: &ConversationId,
    ) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.0.lock().resume(lane, conversation))
    }

    async fn note_participant(
        &self,
        conversation: &ConversationId,
        platform: &str,
        sender: &str,
    ) -> Result<(), StoreError> {
        let one = (conversation.clone(), platform.to_owned(), sender.to_owned());
        self.0.lock().participants.insert(one);
        Ok(())
    }

    async fn took_part(
        &self,
        platform: &str,
        sender: &str,
    ) -> Result<Vec<ConversationId>, StoreError> {
        let state = self.0.lock();
        let is_them =
            |one: &&(ConversationId, String, String)| one.1 == platform && one.2 == sender;
        let found = state.participants.iter().filter(is_them);
        Ok(found
            .map(|(conversation, ..)| conversation.clone())
            .collect())
    }

    async fn provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
    ) -> Result<Option<ProviderSessionRow>, StoreError> {
        let key = (conversation.clone(), subscription.clone());
        Ok(self.0.lock().provider_sessions.get(&key).cloned())
    }

    async fn note_provider_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        id: &ProviderSessionId,
    ) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let key = (conversation.clone(), subscription.clone());
        let known = state.provider_sessions.get(&key).map(|row| &row.id) == Some(id);
        if !known && !state.is_retired(conversation, subscription, id) {
            let row = ProviderSessionRow {
                id: id.clone(),
                seen: 0,
            };
            state.provider_sessions.insert(key, row);
        }
        Ok(())
    }

    async fn history(
        &self,
        conversation: &ConversationId,
        limit: u32,
    ) -> Result<(Vec<Exchange>, u64), StoreError> {
        let state = self.0.lock();
        let Some(all) = state.history.get(conversation) else {
            return Ok((Vec::new(), 0));
        };
        let older = all.len().saturating_sub(limit as usize);
        let newest = all.iter().skip(older).cloned().collect();
        Ok((newest, all.len() as u64))
    }

    async fn open_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        if state.turns.contains_key(&row.turn) {
            return Err(StoreError::TurnExists(row.turn.clone()));
        }
        let message = (row.target.platform.clone(), row.inbound.clone());
        if state.inbound.contains_key(&message) {
            return Err(StoreError::SeenBefore(row.inbound.clone()));
        }
        if !state.claim(&row.turn, claims) {
            return Ok(false);
        }
        state.inbound.insert(message, row.started_at);
        let mut row = row.clone();
        row.started_at = in_ms(row.started_at);
        let turn = Turn {
            row,
            status: TurnStatus::Open,
            journal: Vec::new(),
            ended_at: None,
        };
        state.turns.insert(turn.row.turn.clone(), turn);
        Ok(true)
    }

    async fn claim_for_turn(
        &self,
        row: &TurnRow,
        claims: &[(HandoffId, i64)],
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        let open = |turn: &Turn| turn.status == TurnStatus::Open;
        if !state.turns.get(&row.turn).is_some_and(open) {
            return Err(StoreError::NoSuchTurn(row.turn.clone()));
        }
        if !state.claim(&row.turn, claims) {
            return Ok(false);
        }
        if let Some(known) = state.turns.get_mut(&row.turn) {
            known.row.conversation = row.conversation.clone();
            known.row.carries = row.carries.clone();
        }
        Ok(true)
    }

    async fn turn(&self, turn: &TurnId) -> Result<Option<TurnRow>, StoreError> {
        let state = self.0.lock();
        Ok(state.turns.get(turn).map(|known| known.row.clone()))
    }

    async fn append(&self, turn: &TurnId, entries: &[JournalEntry]) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        match state.turns.get_mut(turn) {
            Some(known) if known.status == TurnStatus::Open => {
                known.journal.extend_from_slice(entries);
                Ok(())
            }
            _ => Err(StoreError::NoSuchTurn(turn.clone())),
        }
    }

    async fn journal(&self, turn: &TurnId) -> Result<Vec<JournalEntry>, StoreError> {
        let state = self.0.lock();
        match state.turns.get(turn) {
            Some(known) => Ok(known.journal.clone()),
            None => Err(StoreError::NoSuchTurn(turn.clone())),
        }
    }

    async fn close_turn(&self, close: &TurnClose) -> Result<bool, StoreError> {
        super::check_close(close)?;
        self.0.lock().close(close)
    }

    async fn open_turns(&self) -> Result<Vec<TurnRow>, StoreError> {
        let state = self.0.lock();
        let mut rows: Vec<TurnRow> = state
            .turns
            .values()
            .filter(|turn| turn.status == TurnStatus::Open)
            .map(|turn| turn.row.clone())
            .collect();
        rows.sort_by(|a, b| (a.started_at, &a.turn).cmp(&(b.started_at, &b.turn)));
        Ok(rows)
    }

    async fn adopt_turn(
        &self,
        turn: &TurnId,
        from_owner: &str,
        to_owner: &str,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        match state.turns.get_mut(turn) {
            Some(known) if known.status == TurnStatus::Open && known.row.owner == from_owner => {
                to_owner.clone_into(&mut known.row.owner);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn handoffs_of(&self, lane: &Lane) -> Result<Vec<StoredHandoff>, StoreError> {
        Ok(self.0.lock().listed(|kept| is_of(kept, lane)))
    }

    async fn handoffs(&self) -> Result<Vec<StoredHandoff>, StoreError> {
        Ok(self
            .0
            .lock()
            .listed(|kept| !rules::is_settled(kept.stored.state)))
    }

    async fn handoff(&self, id: &HandoffId) -> Result<Option<StoredHandoff>, StoreError> {
        Ok(self.0.lock().handoffs.get(id).map(shown))
    }

    async fn move_handoff(
        &self,
        id: &HandoffId,
        revision: i64,
        to: HandoffState,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        let Some(kept) = state.handoffs.get_mut(id) else {
            return Ok(false);
        };
        if kept.stored.revision != revision || !rules::may_move(kept.stored.state, to) {
            return Ok(false);
        }
        let claimed_by = kept
            .stored
            .claimed_by
            .take()
            .filter(|_| super::keeps_claim(to));
        kept.move_to(to, claimed_by);
        Ok(true)
    }

    async fn sweep(&self, now: Timestamp) -> Result<Vec<StoredHandoff>, StoreError> {
        Ok(self.0.lock().sweep(now))
    }

    async fn readings(&self) -> Result<Vec<Reading>, StoreError> {
        let mut all: Vec<Reading> = self
            .0
            .lock()
            .readings
            .values()
            .map(|(_, reading)| reading.clone())
            .collect();
        all.sort_by_cached_key(|r| {
            (
                r.subscription.key().to_owned(),
                r.window.clone(),
                super::scope_text(r.scope.as_ref()),
            )
        });
        Ok(all)
    }

    async fn readings_since(&self, seq: i64) -> Result<Vec<(i64, Reading)>, StoreError> {
        let state = self.0.lock();
        let newer = state.readings.values().filter(|(at, _)| *at > seq);
        let mut newer: Vec<(i64, Reading)> = newer.cloned().collect();
        newer.sort_by_cached_key(|(at, r)| {
            let scope = super::scope_text(r.scope.as_ref());
            (
                *at,
                r.subscription.key().to_owned(),
                r.window.clone(),
                scope,
            )
        });
        Ok(newer)
    }

    async fn put_readings(&self, readings: &[Reading], now: Timestamp) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let changed = readings
            .iter()
            .filter(|reading| state.put_reading(reading, now))
            .count();
        if changed > 0 {
            state.readings_revision += 1;
        }
        Ok(())
    }

    async fn readings_revision(&self) -> Result<i64, StoreError> {
        Ok(self.0.lock().readings_revision)
    }

    async fn logins(&self) -> Result<Vec<Login>, StoreError> {
        Ok(self.0.lock().logins.values().cloned().collect())
    }

    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let mut changed = false;
        for login in logins {
            let old = state
                .logins
                .insert(login.id.key().to_owned(), login.clone());
            changed |= old.as_ref() != Some(login);
        }
        state.readings_revision += i64::from(changed);
        Ok(())
    }

    async fn probe_state(&self, head: &str) -> Result<Option<ProbeState>, StoreError> {
        Ok(self.0.lock().probes.get(head).copied())
    }

    async fn put_probe_state(&self, head: &str, probed: &ProbeState) -> Result<(), StoreError> {
        self.0.lock().probes.insert(head.to_owned(), *probed);
        Ok(())
    }

    async fn pair_operator(&self, operator: &PairedOperator) -> Result<(), StoreError> {
        let mut kept = operator.clone();
        kept.paired_at = in_ms(kept.paired_at);
        let key = (
            kept.profile.clone(),
            kept.platform.clone(),
            kept.person.clone(),
        );
        self.0.lock().operators.insert(key, kept);
        Ok(())
    }

    async fn paired_operators(&self) -> Result<Vec<PairedOperator>, StoreError> {
        Ok(self.0.lock().operators.values().cloned().collect())
    }

    async fn unpair_operators(
        &self,
        profile: &ProfileId,
        platform: &str,
    ) -> Result<u64, StoreError> {
        let mut state = self.0.lock();
        let before = state.operators.len();
        let stays = |one: &PairedOperator| one.profile != *profile || one.platform != platform;
        state.operators.retain(|_, one| stays(one));
        Ok((before - state.operators.len()) as u64)
    }
}

impl State {
    fn close(&mut self, close: &TurnClose) -> Result<bool, StoreError> {
        let Some(turn) = self.turns.get_mut(&close.turn) else {
            return Err(StoreError::NoSuchTurn(close.turn.clone()));
        };
        if turn.status != TurnStatus::Open {
            return Ok(false);
        }
        if let Some((handoff, _)) = &close.seal
            && self.handoffs.contains_key(&handoff.id)
        {
            return Err(super::sealed_twice(&handoff.id));
        }
        turn.status = close.status;
        turn.ended_at = Some(close.at);
        let row = turn.row.clone();
        self.settle_carried(&close.turn, close.carried);
        if let Some((handoff, state)) = &close.seal {
            let stored = StoredHandoff {
                handoff: handoff.clone(),
                state: *state,
                revision: 1,
                claimed_by: None,
            };
            let kept = Kept {
                stored,
                over_since: None,
            };
            self.handoffs.insert(handoff.id.clone(), kept);
        }
        self.remember(&row, close);
        Ok(true)
    }

    fn settle_carried(&mut self, turn: &TurnId, carried: Carried) {
        for kept in self.handoffs.values_mut() {
            if kept.stored.state == HandoffState::Claimed
                && kept.stored.claimed_by.as_ref() == Some(turn)
            {
                let state = super::settled_as(carried);
                let claimed_by = super::keeps_claim(state).then(|| turn.clone());
                kept.move_to(state, claimed_by);
            }
        }
    }

    fn remember(&mut self, row: &TurnRow, close: &TurnClose) {
        let history = self.history.entry(row.conversation.clone()).or_default();
        history.extend_from_slice(&close.exchanges);
        let seen = history.len() as u64;
        if let Some((subscription, id)) = &close.session
            && !self.is_retired(&row.conversation, subscription, id)
        {
            let key = (row.conversation.clone(), subscription.clone());
            let session = ProviderSessionRow {
                id: id.clone(),
                seen,
            };
            self.provider_sessions.insert(key, session);
        }
        self.used(&row.conversation, close.at, close.answered_by.as_ref());
        let lane = Lane {
            profile: row.profile.clone(),
            session: row.session.clone(),
        };
        if let (Some(route), Some(session)) = (&close.answered_by, self.sessions.get_mut(&lane))
            && session.conversation == row.conversation
        {
            session.answered_by = Some((route.clone(), in_ms(close.at)));
        }
    }

    /// Discards what waits on the lane, but for what waits in conversations it has left before.
    fn discard_of(&mut self, lane: &Lane) -> Vec<StoredHandoff> {
        let waits = |kept: &Kept| {
            let state = kept.stored.state;
            is_of(kept, lane) && matches!(state, HandoffState::Armed | HandoffState::Stopped)
        };
        let waiting: Vec<HandoffId> = self
            .handoffs
            .values()
            .filter(|kept| waits(kept))
            .filter(|kept| !self.is_elsewhere(lane, &kept.stored.handoff.conversation))
            .map(|kept| kept.stored.handoff.id.clone())
            .collect();
        let mut discarded = Vec::new();
        for id in waiting {
            if let Some(kept) = self.handoffs.get_mut(&id) {
                kept.move_to(HandoffState::Discarded, None);
                discarded.push(kept.stored.clone());
            }
        }
        newest_first(&mut discarded);
        discarded
    }

    fn listed(&self, wanted: impl Fn(&Kept) -> bool) -> Vec<StoredHandoff> {
        let mut found: Vec<StoredHandoff> = self
            .handoffs
            .values()
            .filter(|k| wanted(k))
            .map(shown)
            .collect();
        newest_first(&mut found);
        found
    }

    fn sweep(&mut self, now: Timestamp) -> Vec<StoredHandoff> {
        let mut expired = Vec::new();
        for kept in self.handoffs.values_mut() {
            if kept.stored.state == HandoffState::Armed
                && in_ms(kept.stored.handoff.expires_at) <= in_ms(now)
            {
                kept.move_to(HandoffState::Expired, None);
                expired.push(shown(kept));
            }
            if rules::is_over(kept.stored.state) && kept.over_since.is_none() {
                kept.over_since = Some(now);
            }
        }
        newest_first(&mut expired);
        self.purge(now);
        expired
    }

    fn purge(&mut self, now: Timestamp) {
        let older = |at: Timestamp, keep: i64| at.as_millisecond() < now.as_millisecond() - keep;
        self.handoffs.retain(|_, kept| {
            !kept
                .over_since
                .is_some_and(|at| older(at, rules::keep_ms(kept.stored.state)))
        });
        self.inbound
            .retain(|_, at| !older(*at, rules::KEEP_INBOUND_MS));
        self.actions
            .retain(|_, action| !older(action.offer.expires_at, rules::KEEP_ACTIONS_MS));
        self.turns.retain(|_, turn| {
            !turn
                .ended_at
                .is_some_and(|at| older(at, rules::KEEP_ENDED_MS))
        });
        for turn in self.turns.values_mut() {
            let past = turn
                .ended_at
                .is_some_and(|at| older(at, rules::KEEP_ANSWERED_TEXT_MS));
            if turn.status == TurnStatus::Answered && past {
                turn.journal = Vec::new();
                turn.row.request = String::new();
            }
        }
    }

    fn put_reading(&mut self, new: &Reading, now: Timestamp) -> bool {
        let key = (
            new.subscription.clone(),
            new.window.clone(),
            new.scope.clone(),
        );
        let new = super::tidy(new);
        if let Some((_, old)) = self.readings.get(&key)
            && (!rules::replaces(old, &new, now) || super::document(old) == super::document(&new))
        {
            return false;
        }
        self.readings.insert(key, (self.readings_revision + 1, new));
        true
    }
}

fn fresh_session(lane: &Lane, now: Timestamp) -> SessionRow {
    SessionRow {
        lane: lane.clone(),
        conversation: ConversationId::new(Uuid::new_v4().to_string()),
        started_at: in_ms(now),
        chosen: None,
        answered_by: None,
    }
}

fn is_of(kept: &Kept, lane: &Lane) -> bool {
    kept.stored.handoff.profile == lane.profile && kept.stored.handoff.session == lane.session
}

/// The handoff as callers see it: a payload of a newer version is corrupt to us.
fn shown(kept: &Kept) -> StoredHandoff {
    let mut stored = kept.stored.clone();
    if !rules::is_readable(&stored.handoff) && !rules::is_settled(stored.state) {
        stored.state = HandoffState::Corrupt;
    }
    stored
}

fn newest_first(found: &mut [StoredHandoff]) {
    found.sort_by(|a, b| {
        let key = |s: &StoredHandoff| (s.handoff.created_at.as_millisecond(), s.handoff.id.clone());
        key(b).cmp(&key(a))
    });
}
