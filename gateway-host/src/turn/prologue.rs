//! Before the first attempt: seal what a dead process left on this lane, restore the session, ask the plugins, claim what
//! they want to carry. The first row becomes durable while the provider starts.

use std::sync::Arc;

use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{ConversationId, HandoffId, TurnId};
use gateway_core::journal::TurnRow;
use gateway_core::message::{Inbound, Origin};
use gateway_core::route::{Chain, Route};
use gateway_core::walk::{Walk, usable};
use jiff::Timestamp;
use tokio::sync::oneshot;
use tracing::warn;

use super::journal::Journal;
use super::pace::Pace;
use super::rotation::Rotation;
use super::{Request, Turn, TurnStop, recovery};
use crate::config::ProfileSettings;
use crate::cooling::Aside;
use crate::delivery::Voice;
use crate::effects::Effects;
use crate::plugins::facts::{FactSheet, PrologueAdvice, PrologueFacts, TurnFacts};
use crate::routing::ride;
use crate::store::{Lane, SessionRow, StoreError};
use crate::usage::Evidence;

/// How many exchanges of a conversation a route without sessions is sent at most.
const HISTORY_EXCHANGES: u32 = 200;

/// How often a turn looks again when somebody else claims what it was about to carry.
const CLAIM_ROUNDS: usize = 5;

/// Opens a turn. `Err` = the store could not take it; nothing was sent to anybody.
pub async fn open(
    request: Request,
    stop: TurnStop,
    effects: &Effects,
) -> Result<(Box<Turn>, Walk), StoreError> {
    let lane = Lane {
        profile: request.inbound.profile.clone(),
        session: request.inbound.session.clone(),
    };
    let profile = effects.profile(&lane.profile);
    let now = effects.now();
    // None of the three needs another's answer; what was left is sealed before the handoffs are looked at.
    let (shared, session, evidence) = tokio::join!(
        recovery::seal_left_on(&lane, true, effects),
        effects.store.session(&lane, now),
        effects.registry.current(now),
    );
    let (shared, session) = (shared?, session?);
    let chain = chain_of(&profile, &session, &evidence, effects);
    let asides = effects.cooling.asides(&chain, now);
    let paid_for = usable(&chain);
    let usable: Vec<bool> = paid_for
        .iter()
        .zip(&asides)
        .map(|(paid_for, aside)| *paid_for && *aside == Aside::No)
        .collect();
    let sheet = effects.sheets.of(&lane.profile, &chain, &usable, &evidence);
    let (history, ()) = tokio::join!(
        effects
            .store
            .history(&session.conversation, HISTORY_EXCHANGES),
        note_participant(&request.inbound, &session.conversation, effects),
    );
    let (history, history_len) = history?;
    // A program waits for its answer and asks again by itself; what goes on hours later would reach nobody.
    let routed =
        request.ask.is_none() && ride::speaks(&profile, &session.conversation, effects).await?;
    for round in 0.. {
        let facts = TurnFacts {
            turn: turn_id(&request),
            profile: lane.profile.clone(),
            session: lane.session.clone(),
            conversation: session.conversation.clone(),
            origin: request.inbound.origin,
            sheet: Arc::clone(&sheet),
            now,
        };
        let mut advice = ask(&lane, &facts, effects).await?;
        if round >= CLAIM_ROUNDS {
            warn!(turn = %facts.turn, "handoffs moved under this turn again and again; it goes on without them");
            (advice.inject, advice.claims) = (None, Vec::new());
        }
        let Some(claims) = claims(&advice.claims, now, effects).await? else {
            continue;
        };
        let row = row_of(&request, &facts, &advice, effects);
        let (durable_in, durable) = oneshot::channel();
        let journal = Journal::start(Arc::clone(&effects.store), row.turn.clone(), durable);
        let carried = claims
            .iter()
            .map(|(_, _, handoff)| handoff.clone())
            .collect();
        let claims: Vec<_> = claims
            .into_iter()
            .map(|(id, revision, _)| (id, revision))
            .collect();
        let first_row = if claims.is_empty() && request.queued.is_none() {
            FirstRow::write(row.clone(), durable_in, effects)
        } else if write_first_row(&request, &row, &claims, effects).await? {
            let _ = durable_in.send(()); // the journal holds the other end
            FirstRow::Durable
        } else {
            continue; // somebody claimed one of them meanwhile: look again
        };
        let mut turn = Turn {
            voice: Voice::new(effects, row.target.clone(), row.turn.clone()),
            conversation: session.conversation.clone(),
            permissions: request.permissions,
            injected: advice.inject.clone(),
            stop: stop.clone(),
            profile,
            chain,
            facts,
            history,
            history_len,
            carried,
            journal,
            lane,
            row,
            first_row,
            shared,
            asides,
            usable,
            pace: Pace::default(),
            failure: None,
            remarks: Vec::new(),
            session: None,
            routed,
            rider: None,
            rotation: Rotation::default(),
            ask: request.ask.clone(),
        };
        let walk = plan(&mut turn, &paid_for, &advice).await;
        return Ok((Box::new(turn), walk));
    }
    unreachable!("the rounds have no end but a return")
}

/// The chain of this turn: the route chosen with `/model` first, then the configured order; each entry with the quota group
/// of its login, where it shares one.
pub fn chain_of(
    profile: &ProfileSettings,
    session: &SessionRow,
    evidence: &Evidence,
    effects: &Effects,
) -> Chain {
    let mut chain = profile.chain_for(&effects.settings);
    add_candidates(&mut chain, profile, effects);
    evidence.group_entries(&mut chain);
    let Some(chosen) = &session.chosen else {
        return chain;
    };
    if let Some(at) = chain
        .entries
        .iter()
        .position(|entry| entry.route == *chosen)
    {
        let entry = chain.entries.remove(at);
        chain.entries.insert(0, entry);
    } else {
        warn!(route = %chosen, "the chosen route is not in the profile's chain any more; the chain is used");
    }
    chain
}

/// Remembers who speaks in a conversation: what is left in it is theirs to see and drop. A turn goes on without: operators
/// still can.
pub async fn note_participant(inbound: &Inbound, conversation: &ConversationId, effects: &Effects) {
    if inbound.origin != Origin::Human {
        return;
    }
    let (platform, sender) = (&inbound.target.platform, &inbound.sender.id);
    let noted = effects
        .store
        .note_participant(conversation, platform, sender)
        .await;
    if let Err(fault) = noted {
        warn!(%fault, "who takes part in a conversation was not noted");
    }
}

/// Where routing may go beyond the profile's chain: behind it, for the walk's order is the chain's.
fn add_candidates(chain: &mut Chain, profile: &ProfileSettings, effects: &Effects) {
    if profile.routing.settings.enabled {
        for route in &profile.routing.candidates {
            let known = chain.entries.iter().any(|entry| entry.route == *route);
            chain
                .entries
                .extend(effects.settings.entry(route).filter(|_| !known));
        }
    }
}

fn turn_id(request: &Request) -> TurnId {
    let queued = request.queued.as_ref().map(|row| row.turn.clone());
    let resumed = request.resumes.as_ref().map(|(turn, _)| turn.clone());
    queued
        .or(resumed)
        .unwrap_or_else(|| TurnId::new(uuid::Uuid::now_v7().to_string()))
}

async fn ask(
    lane: &Lane,
    facts: &TurnFacts,
    effects: &Effects,
) -> Result<PrologueAdvice, StoreError> {
    let documents = effects.store.handoffs_of(lane).await?;
    let of_this = documents
        .into_iter()
        .filter(|document| document.handoff.conversation == facts.conversation);
    let documents = of_this
        .map(|document| StoredHandoff {
            state: document.standing(facts.now),
            ..document
        })
        .filter(|document| document.state == HandoffState::Armed) // nothing else can be claimed
        .collect();
    let facts = PrologueFacts {
        turn: facts.clone(),
        documents,
    };
    Ok(effects
        .plugins
        .prologue(&lane.profile, Arc::new(facts))
        .await)
}

/// The advised handoffs with their revisions, in the order of the injected text; `None` = one has moved on, ask again.
async fn claims(
    advised: &[HandoffId],
    now: Timestamp,
    effects: &Effects,
) -> Result<Option<Vec<(HandoffId, i64, gateway_core::handoff::Handoff)>>, StoreError> {
    let mut claims = Vec::new();
    for id in advised {
        match effects.store.handoff(id).await? {
            Some(stored) if stored.standing(now) == HandoffState::Armed => {
                claims.push((id.clone(), stored.revision, stored.handoff));
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(claims))
}

fn row_of(
    request: &Request,
    facts: &TurnFacts,
    advice: &PrologueAdvice,
    effects: &Effects,
) -> TurnRow {
    let inbound = &request.inbound;
    TurnRow {
        turn: facts.turn.clone(),
        profile: facts.profile.clone(),
        session: facts.session.clone(),
        conversation: facts.conversation.clone(),
        inbound: inbound.id.clone(),
        origin: inbound.origin,
        target: inbound.target.clone(),
        request: request.text.clone(),
        started_at: facts.now,
        owner: effects.instance.clone(),
        carries: advice.claims.clone(),
    }
}

/// A message that had to wait was written down then; it only claims now.
async fn write_first_row(
    request: &Request,
    row: &TurnRow,
    claims: &[(HandoffId, i64)],
    effects: &Effects,
) -> Result<bool, StoreError> {
    match &request.queued {
        None => effects.store.open_turn(row, claims).await,
        Some(_) => effects.store.claim_for_turn(row, claims).await,
    }
}

/// The walk over the chain with what is known before any request; says so once if the head is spent.
async fn plan(turn: &mut Turn, paid_for: &[bool], advice: &PrologueAdvice) -> Walk {
    let mut walk = Walk::new(paid_for);
    for (position, aside) in turn.asides.iter().enumerate() {
        match aside {
            Aside::No => {}
            Aside::Cooling => walk.cool(position),
            Aside::LockedOut => walk.lock_out(position),
        }
    }
    if turn.routed {
        return walk; // the gate has no say
    }
    walk.gated = advice.gated;
    for skip in &advice.skips {
        walk.skip(skip.position, skip.until);
    }
    if let Some(line) = &advice.status_line {
        turn.voice.status(line).await;
    }
    walk
}

/// The turn's first row, possibly still on its way to the disk. No prompt leaves before it is there.
pub enum FirstRow {
    Durable,
    Writing(tokio::task::JoinHandle<Result<bool, StoreError>>),
}

impl FirstRow {
    fn write(row: TurnRow, durable: oneshot::Sender<()>, effects: &Effects) -> Self {
        let store = Arc::clone(&effects.store);
        Self::Writing(tokio::spawn(async move {
            let written = store.open_turn(&row, &[]).await?;
            let _ = durable.send(()); // the journal holds the other end
            Ok(written)
        }))
    }

    /// Waits until the row is on disk.
    pub async fn durable(&mut self) -> Result<(), StoreError> {
        if let Self::Writing(writing) = self {
            let written = writing
                .await
                .map_err(|panic| StoreError::Write(panic.to_string()))?;
            *self = Self::Durable;
            written?;
        }
        Ok(())
    }
}

/// Prepared sheets, one per profile: rebuilt when the chain or the evidence changes.
#[derive(Default)]
pub struct Sheets {
    cache: parking_lot::Mutex<std::collections::HashMap<gateway_core::ids::ProfileId, Prepared>>,
}

struct Prepared {
    chain: Vec<Route>,
    usable: Vec<bool>,
    revision: u64,
    sheet: Arc<FactSheet>,
}

impl Sheets {
    /// The sheet of this chain under this evidence.
    pub fn of(
        &self,
        profile: &gateway_core::ids::ProfileId,
        chain: &Chain,
        usable: &[bool],
        evidence: &Evidence,
    ) -> Arc<FactSheet> {
        let mut cache = self.cache.lock();
        let same = |prepared: &&Prepared| {
            prepared.revision == evidence.revision
                && prepared.usable == usable
                && prepared.chain.len() == chain.entries.len()
                && prepared
                    .chain
                    .iter()
                    .zip(&chain.entries)
                    .all(|(route, entry)| *route == entry.route)
        };
        if let Some(prepared) = cache.get(profile).filter(same) {
            return Arc::clone(&prepared.sheet);
        }
        let sheet = Arc::new(FactSheet::build(chain, usable, &evidence.readings));
        let routes = chain
            .entries
            .iter()
            .map(|entry| entry.route.clone())
            .collect();
        let prepared = Prepared {
            chain: routes,
            usable: usable.to_vec(),
            revision: evidence.revision,
            sheet: Arc::clone(&sheet),
        };
        cache.insert(profile.clone(), prepared);
        sheet
    }
}
