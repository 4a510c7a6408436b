//! Generations in memory.

use async_trait::async_trait;
use gateway_core::bridge::digest::Digest;
use gateway_core::bridge::rotation::Swap;
use gateway_core::ids::{ConversationId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId};

use super::super::generations::{Generations, LANDMARKS, RetiredSession, Retirement, Told};
use super::super::rules::in_ms;
use super::super::{Lane, StoreError};
use super::{MemoryStore, State};

/// A retired session with what it belonged to.
#[derive(Debug)]
pub(super) struct Retired {
    base: String,
    conversation: ConversationId,
    session: RetiredSession,
}

impl State {
    /// Whether the session was retired: it is never the live one again.
    pub(super) fn is_retired(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        id: &ProviderSessionId,
    ) -> bool {
        self.retired.iter().any(|retired| {
            retired.conversation == *conversation
                && retired.session.subscription == *subscription
                && retired.session.session == *id
        })
    }

    fn generation(&self, base: &str, subscription: &SubscriptionId) -> u32 {
        let of_this = self.retired.iter().filter(|retired| {
            retired.base == base && retired.session.subscription == *subscription
        });
        u32::try_from(of_this.count()).unwrap_or(u32::MAX)
    }
}

#[async_trait]
impl Generations for MemoryStore {
    async fn retire_session(&self, wish: &Retirement) -> Result<Swap, StoreError> {
        let mut state = self.0.lock();
        let generation = state.generation(&wish.base, &wish.subscription);
        let key = (wish.conversation.clone(), wish.subscription.clone());
        if state.provider_sessions.get(&key).map(|row| &row.id) != Some(&wish.session) {
            return Ok(Swap::Joined { generation });
        }
        state.provider_sessions.remove(&key);
        state.retired.push(Retired {
            base: wish.base.clone(),
            conversation: wish.conversation.clone(),
            session: RetiredSession {
                subscription: wish.subscription.clone(),
                generation,
                session: wish.session.clone(),
                reason: wish.reason,
                at: in_ms(wish.at),
            },
        });
        Ok(Swap::Retired {
            generation: generation + 1,
        })
    }

    async fn forget_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        session: &ProviderSessionId,
    ) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let key = (conversation.clone(), subscription.clone());
        if state.provider_sessions.get(&key).map(|row| &row.id) == Some(session) {
            state.provider_sessions.remove(&key);
        }
        Ok(())
    }

    async fn generation(
        &self,
        base: &str,
        subscription: &SubscriptionId,
    ) -> Result<u32, StoreError> {
        Ok(self.0.lock().generation(base, subscription))
    }

    async fn retired_sessions(&self, base: &str) -> Result<Vec<RetiredSession>, StoreError> {
        let state = self.0.lock();
        let of_this = state.retired.iter().filter(|retired| retired.base == base);
        Ok(of_this.map(|retired| retired.session.clone()).collect())
    }

    async fn told(&self, lane: &Lane) -> Result<Option<Told>, StoreError> {
        Ok(self.0.lock().told.get(lane).cloned())
    }

    async fn tell(&self, lane: &Lane, told: &Told, landmarks: &[Digest]) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        state.told.insert(lane.clone(), told.clone());
        for landmark in landmarks {
            let same = |(profile, known, _): &(ProfileId, Digest, SessionKey)| {
                *profile == lane.profile && known == landmark
            };
            state.landmarks.retain(|known| !same(known));
            let left = (lane.profile.clone(), *landmark, lane.session.clone());
            state.landmarks.push(left);
        }
        let of_profile =
            |(profile, ..): &&(ProfileId, Digest, SessionKey)| *profile == lane.profile;
        let mut over = state.landmarks.iter().filter(of_profile).count();
        state.landmarks.retain(|(profile, ..)| {
            let goes = *profile == lane.profile && over > LANDMARKS;
            over -= usize::from(goes);
            !goes
        });
        Ok(())
    }

    async fn landmark(
        &self,
        profile: &ProfileId,
        landmarks: &[Digest],
    ) -> Result<Option<SessionKey>, StoreError> {
        let state = self.0.lock();
        let find = |landmark: &Digest| {
            let mut known = state.landmarks.iter();
            known.find(|(of, digest, _)| of == profile && digest == landmark)
        };
        let found = landmarks.iter().find_map(find);
        Ok(found.map(|(.., session)| session.clone()))
    }
}
