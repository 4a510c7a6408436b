//! Which lane a request belongs to, and what its turn says there.

use gateway_core::bridge::digest::{self, Digest, Key};
use gateway_core::bridge::lineage::{Opening, Seen, Unseen, unseen};
use gateway_core::bridge::rotation::Reason;
use gateway_core::bridge::{Message, address, prompt, split};
use gateway_core::ids::{ConversationId, ProfileId, SessionKey};
use gateway_core::route::Route;

use super::NAME;
use super::request::ChatRequest;
use crate::effects::Effects;
use crate::store::generations::{Retirement, Told};
use crate::store::{Lane, StoreError};
use crate::turn::rotation;

/// Where a request belongs.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) lane: Lane,
    key: Key,
    named: bool,
}

/// What the turn of a request says.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) conversation: ConversationId,
    pub(super) text: String,
    /// Whether the text is a lone user message without a label.
    pub(super) bare: bool,
    /// Why a session is opened; `None` = it goes on.
    pub(super) opening: Option<Opening>,
}

/// The key of a profile's conversations.
pub(super) fn key(secret: &[u8], profile: &ProfileId) -> Key {
    Key::of_profile(secret, profile.as_str())
}

/// Finds the lane of a request: a named caller's own, else the one that an earlier turn of the same transcript left, else
/// a new one.
pub(super) async fn find(
    request: &ChatRequest,
    profile: &ProfileId,
    key: Key,
    effects: &Effects,
) -> Result<Place, StoreError> {
    let user = address::name(request.user.as_deref());
    let known = match user {
        Some(_) => None,
        None => {
            let prefixes = address::prefixes(&key, &request.messages);
            effects.store.landmark(profile, &prefixes).await?
        }
    };
    let session = known.unwrap_or_else(|| {
        let base = address::mint(&key, user, &request.messages);
        SessionKey::new(format!("agent:{profile}:{NAME}:{base}"))
    });
    let lane = Lane {
        profile: profile.clone(),
        session,
    };
    Ok(Place {
        lane,
        key,
        named: user.is_some(),
    })
}

/// What two requests that are one have in common; `None` = nobody says that an equal one is the same.
pub(super) fn flight(
    request: &ChatRequest,
    idempotency: Option<&str>,
    key: &Key,
) -> Option<Digest> {
    let who = match (idempotency, address::name(request.user.as_deref())) {
        (Some(given), _) => digest::transcript(key, &[Message::new("idempotency key", given)]),
        (None, Some(user)) => digest::identity(key, user),
        (None, None) => return None,
    };
    let model = request.model.as_deref().unwrap_or_default();
    Some(digest::flight(key, who, model, &request.messages))
}

impl Place {
    /// Compares the request with what the lane's sessions were told, and opens a new conversation where it went another
    /// way. The caller holds the lane.
    pub(super) async fn words(
        &self,
        request: &ChatRequest,
        effects: &Effects,
    ) -> Result<Words, StoreError> {
        let now = effects.now();
        let store = &effects.store;
        let session = store.session(&self.lane, now).await?;
        let told = store.told(&self.lane).await?;
        let told = told.filter(|told| told.conversation == session.conversation);
        let seen = told.as_ref().map(|told| &told.seen);
        let (_, dialogue) = split(&request.messages);
        let (from, opening) = match unseen(&self.key, seen, &request.messages, self.named) {
            Unseen::From(from) => (from, None),
            Unseen::All(opening) => (0, Some(opening)),
        };
        let new = dialogue.get(from..).unwrap_or(dialogue);
        let mut conversation = session.conversation;
        if opening.is_some_and(|opening| opening != Opening::First) {
            self.leave(&conversation, opening, effects).await?;
            conversation = store
                .new_conversation(&self.lane, now)
                .await?
                .0
                .conversation;
            effects.mirror(&self.lane).await;
        }
        Ok(Words {
            conversation,
            text: prompt::delta(new),
            bare: prompt::is_bare(new),
            opening,
        })
    }

    /// The sessions of a conversation that went another way are retired, so that titles stay in one line.
    async fn leave(
        &self,
        conversation: &ConversationId,
        opening: Option<Opening>,
        effects: &Effects,
    ) -> Result<(), StoreError> {
        let reason = match opening {
            Some(Opening::InstructionsChanged) => Reason::InstructionsChanged,
            _ => Reason::Diverged,
        };
        let base = rotation::base_of(&self.lane.session, conversation).to_string();
        for subscription in effects.providers.keys() {
            let live = effects
                .store
                .provider_session(conversation, subscription)
                .await?;
            let Some(live) = live else { continue };
            let wish = Retirement {
                base: base.clone(),
                conversation: conversation.clone(),
                subscription: subscription.clone(),
                session: live.id,
                reason,
                at: effects.now(),
            };
            effects.store.retire_session(&wish).await?;
        }
        Ok(())
    }

    /// Records an answered request, so that the next one is compared with it and finds it.
    pub(super) async fn tell(
        &self,
        request: &ChatRequest,
        conversation: ConversationId,
        answer: &str,
        effects: &Effects,
    ) -> Result<(), StoreError> {
        let told = Told {
            conversation,
            seen: Seen::after(&self.key, &request.messages, answer),
        };
        let landmarks = address::landmarks(&self.key, &request.messages, answer);
        // What a named caller says leads nobody else to its session.
        let landmarks = if self.named { &[][..] } else { &landmarks };
        effects.store.tell(&self.lane, &told, landmarks).await
    }

    /// Sets the route of the lane to what this request asks for.
    pub(super) async fn choose(
        &self,
        route: Option<&Route>,
        effects: &Effects,
    ) -> Result<(), StoreError> {
        let chosen = effects
            .store
            .session(&self.lane, effects.now())
            .await?
            .chosen;
        if chosen.as_ref() == route {
            return Ok(());
        }
        effects.store.choose_route(&self.lane, route).await
    }
}
