//! The session behind a turn: its title, and its successor once it is full.
//!
//! A full session is retired in the store before its successor is asked, so that a turn that dies in between has still
//! done it for the next one. Nothing of the old session is touched: its transcript stays where the CLI keeps it.

use gateway_core::bridge::digest::Digest;
use gateway_core::bridge::prompt;
use gateway_core::bridge::recap::{Bounds, recap};
use gateway_core::bridge::rotation::{Arm, Reason, Swap, Verdict, judge};
use gateway_core::bridge::title::{Base, Space, Title};
use gateway_core::failure::{Failure, FailureScope};
use gateway_core::ids::{ConversationId, ProviderSessionId, SessionKey};
use gateway_core::notice;
use gateway_core::route::Route;
use providers::Exchange;
use sha2::Digest as _;
use tracing::{error, info, warn};

use super::Turn;
use super::attempt::known_only;
use crate::effects::Effects;
use crate::store::generations::Retirement;
use crate::store::{ProviderSessionRow, StoreError};

/// What a turn knows of the session behind its running attempt, and of what it did about a full one.
#[derive(Debug, Default)]
pub struct Rotation {
    /// `None` = no attempt has begun.
    live: Option<Title>,
    /// The session the attempt resumed; `None` = it opened one, or its route keeps none.
    resumed: Option<ProviderSessionId>,
    keeps_sessions: bool,
    /// What became of the session that overflowed in this turn; a turn rotates once.
    swap: Option<Swap>,
}

impl Rotation {
    /// The title of the session the running attempt uses; empty before the first attempt.
    pub fn title(&self) -> String {
        self.live.map(|title| title.to_string()).unwrap_or_default()
    }

    /// The generation of that session.
    pub fn generation(&self) -> u32 {
        self.live.map_or(0, |title| title.generation)
    }

    /// What became of the session that overflowed in this turn; `None` = none did.
    pub fn swap(&self) -> Option<Swap> {
        self.swap
    }

    fn arm(&self) -> Arm {
        match (self.keeps_sessions, &self.resumed) {
            (false, _) => Arm::None,
            (true, None) => Arm::Create,
            (true, Some(_)) => Arm::Resume,
        }
    }
}

/// The base of the titles of a conversation's sessions.
pub fn base(conversation: &ConversationId) -> Base {
    let digest = sha2::Sha256::digest(conversation.as_str().as_bytes());
    let head = digest.iter().take(8);
    Base {
        space: Space::Transcript,
        digest: Digest(head.fold(0, |digest, byte| (digest << 8) | u64::from(*byte))),
    }
}

/// The base of the titles of a lane's sessions: a program's lane carries it in its key, so that it stays over a new
/// conversation; anybody else's conversation has its own.
pub fn base_of(session: &SessionKey, conversation: &ConversationId) -> Base {
    let title = session
        .as_str()
        .split_once(PROGRAMS)
        .and_then(|(_, title)| title.parse::<Title>().ok());
    title.map_or_else(|| base(conversation), |title| title.base)
}

/// How a program's lane is marked; what follows is the base.
const PROGRAMS: &str = ":http:";

/// Notes which session the attempt uses, and gives what it is sent: these words, and the conversation so far. The successor
/// of a full session is told a recap instead of everything: everything is what did not fit.
pub(super) async fn opening(
    turn: &mut Turn,
    route: &Route,
    known: Option<&ProviderSessionRow>,
    keeps_sessions: bool,
    words: String,
    effects: &Effects,
) -> Result<(String, Vec<Exchange>), StoreError> {
    let base = base_of(&turn.lane.session, &turn.conversation);
    let generation = match keeps_sessions {
        true => {
            let base = base.to_string();
            effects.store.generation(&base, &route.subscription).await?
        }
        false => 0,
    };
    turn.rotation.live = Some(Title { base, generation });
    turn.rotation.resumed = known.map(|row| row.id.clone());
    turn.rotation.keeps_sessions = keeps_sessions;
    let history = known_only(&turn.history, effects);
    if keeps_sessions && known.is_some() {
        return Ok((words, history)); // it knows who it is and what was said
    }
    let instructions = turn.ask.as_ref().map_or(&[][..], |ask| &ask.instructions);
    let bare = turn.ask.as_ref().is_none_or(|ask| ask.bare);
    if generation == 0 {
        let opening = prompt::opening(instructions, None);
        return Ok((prompt::create(opening.as_deref(), &words, bare), history));
    }
    let said: Vec<(&str, &str)> = history
        .iter()
        .map(|exchange| (exchange.request.as_str(), exchange.answer.as_str()))
        .collect();
    let told = recap(&said, Bounds::default());
    if let Some(told) = &told {
        info!(turn = %turn.row.turn, title = turn.rotation.title(), whole = told.whole, excerpts = told.excerpts, dropped = told.dropped, "a successor is told a recap");
    }
    let opening = prompt::opening(instructions, told.as_ref().map(|told| told.text.as_str()));
    Ok((prompt::create(opening.as_deref(), &words, bare), Vec::new()))
}

/// After a failure: a full session is retired and its successor asked. `true` = the same position is tried once more.
pub(super) async fn after(
    turn: &mut Turn,
    position: usize,
    failure: &mut Failure,
    effects: &Effects,
) -> Result<bool, StoreError> {
    let title = turn.rotation.title();
    let rotated = turn.rotation.swap.is_some();
    match judge(failure, turn.rotation.arm(), &title, rotated) {
        Verdict::Keep => Ok(false),
        Verdict::DoesNotFit => {
            failure.scope = FailureScope::Request;
            forget(turn, position, effects).await?;
            Ok(false)
        }
        Verdict::Stuck(foreign) => {
            error!(turn = %turn.row.turn, title, %foreign, "a full session cannot be retired; start a new conversation");
            Ok(false)
        }
        Verdict::Retire { successor } => {
            let (Some(route), Some(session)) =
                (turn.route(position).cloned(), turn.rotation.resumed.clone())
            else {
                return Ok(false);
            };
            let wish = Retirement {
                base: successor.base.to_string(),
                conversation: turn.conversation.clone(),
                subscription: route.subscription,
                session,
                reason: Reason::Overflow,
                at: effects.now(),
            };
            let swap = effects.store.retire_session(&wish).await?;
            tell(turn, &title, successor.base, swap);
            Ok(true)
        }
    }
}

/// A session that was opened for this request holds nothing but what did not fit: the next request opens another one.
async fn forget(turn: &Turn, position: usize, effects: &Effects) -> Result<(), StoreError> {
    let (Arm::Create, Some(route), Some(session)) =
        (turn.rotation.arm(), turn.route(position), &turn.session)
    else {
        return Ok(());
    };
    let (conversation, subscription) = (&turn.conversation, &route.subscription);
    let store = &effects.store;
    store
        .forget_session(conversation, subscription, session)
        .await
}

fn tell(turn: &mut Turn, from: &str, base: Base, swap: Swap) {
    let generation = swap.generation();
    let to = Title { base, generation };
    let turns = turn.history_len;
    match swap {
        Swap::Retired { .. } => {
            warn!(turn = %turn.row.turn, from, %to, turns, "a full session is retired; its successor starts with a cold cache");
        }
        Swap::Joined { .. } => {
            info!(turn = %turn.row.turn, from, %to, "somebody else has retired it; joining");
        }
    }
    turn.rotation.swap = Some(swap);
    turn.remarks.push(notice::session_rotated(generation));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_of_a_conversation_is_a_title_of_ours() {
        let base = base(&ConversationId::new("c1")).to_string();
        assert_eq!(base, "baton-d0f631ca1ddba8db");
        assert!(base.parse::<Title>().is_ok());
    }
}
