//! Retired sessions, what live ones were told, and where conversations are found again.

use async_trait::async_trait;
use gateway_core::bridge::digest::Digest;
use gateway_core::bridge::rotation::{Reason, Swap};
use gateway_core::ids::{ConversationId, ProfileId, ProviderSessionId, SessionKey, SubscriptionId};
use sqlx::SqliteExecutor;

use super::super::generations::{Generations, LANDMARKS, RetiredSession, Retirement, Told};
use super::super::rules::from_ms;
use super::super::{Lane, StoreError, document};
use super::SqliteStore;
use super::fault::Fault;

#[async_trait]
impl Generations for SqliteStore {
    async fn retire_session(&self, wish: &Retirement) -> Result<Swap, StoreError> {
        retire(self, wish).await.map_err(self.on_write())
    }

    async fn forget_session(
        &self,
        conversation: &ConversationId,
        subscription: &SubscriptionId,
        session: &ProviderSessionId,
    ) -> Result<(), StoreError> {
        let done = forget(self, conversation, subscription, session).await;
        done.map_err(self.on_write())
    }

    async fn generation(
        &self,
        base: &str,
        subscription: &SubscriptionId,
    ) -> Result<u32, StoreError> {
        let live = live(&self.readers, base, subscription).await;
        live.map_err(self.on_read())
    }

    async fn retired_sessions(&self, base: &str) -> Result<Vec<RetiredSession>, StoreError> {
        retired(self, base).await.map_err(self.on_read())
    }

    async fn told(&self, lane: &Lane) -> Result<Option<Told>, StoreError> {
        told(self, lane).await.map_err(self.on_read())
    }

    async fn tell(&self, lane: &Lane, told: &Told, landmarks: &[Digest]) -> Result<(), StoreError> {
        let done = tell(self, lane, told, landmarks).await;
        done.map_err(self.on_write())
    }

    async fn landmark(
        &self,
        profile: &ProfileId,
        landmarks: &[Digest],
    ) -> Result<Option<SessionKey>, StoreError> {
        let found = landmark(self, profile, landmarks).await;
        found.map_err(self.on_read())
    }
}

async fn live(
    connection: impl SqliteExecutor<'_>,
    base: &str,
    subscription: &SubscriptionId,
) -> Result<u32, Fault> {
    let count: i64 = sqlx::query_scalar(
        "select count(*) from retired_sessions where base = $1 and subscription = $2",
    )
    .bind(base)
    .bind(subscription.key())
    .fetch_one(connection)
    .await?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

async fn retire(store: &SqliteStore, wish: &Retirement) -> Result<Swap, Fault> {
    let mut tx = store.begin().await?;
    let generation = live(&mut *tx, &wish.base, &wish.subscription).await?;
    let gone = sqlx::query(
        "delete from provider_sessions where conversation = $1 and subscription = $2 and id = $3",
    )
    .bind(wish.conversation.as_str())
    .bind(wish.subscription.key())
    .bind(wish.session.as_str())
    .execute(&mut *tx)
    .await?;
    if gone.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(Swap::Joined { generation });
    }
    sqlx::query(
        "insert into retired_sessions \
         (base, subscription, generation, conversation, session, reason, retired_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(&wish.base)
    .bind(wish.subscription.key())
    .bind(i64::from(generation))
    .bind(wish.conversation.as_str())
    .bind(wish.session.as_str())
    .bind(wish.reason.word())
    .bind(wish.at.as_millisecond())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Swap::Retired {
        generation: generation + 1,
    })
}

async fn forget(
    store: &SqliteStore,
    conversation: &ConversationId,
    subscription: &SubscriptionId,
    session: &ProviderSessionId,
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "delete from provider_sessions where conversation = $1 and subscription = $2 and id = $3",
    )
    .bind(conversation.as_str())
    .bind(subscription.key())
    .bind(session.as_str())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

async fn retired(store: &SqliteStore, base: &str) -> Result<Vec<RetiredSession>, Fault> {
    let rows: Vec<(String, i64, String, String, i64)> = sqlx::query_as(
        "select subscription, generation, session, reason, retired_at from retired_sessions \
         where base = $1 order by retired_at, subscription, generation",
    )
    .bind(base)
    .fetch_all(&store.readers)
    .await?;
    rows.into_iter()
        .map(|(subscription, generation, session, reason, at)| {
            Ok(RetiredSession {
                subscription: SubscriptionId::new(subscription),
                generation: u32::try_from(generation).unwrap_or(u32::MAX),
                session: ProviderSessionId::new(session),
                reason: Reason::from_word(&reason)
                    .ok_or_else(|| damaged(base, format!("`{reason}` is no reason")))?,
                at: from_ms(at),
            })
        })
        .collect()
}

async fn told(store: &SqliteStore, lane: &Lane) -> Result<Option<Told>, Fault> {
    let found: Option<(String, String)> =
        sqlx::query_as("select conversation, seen from told where profile = $1 and session = $2")
            .bind(lane.profile.as_str())
            .bind(lane.session.as_str())
            .fetch_optional(&store.readers)
            .await?;
    // A record that cannot be read is none: the conversation is told whole to a new session.
    Ok(found.and_then(|(conversation, seen)| {
        Some(Told {
            conversation: ConversationId::new(conversation),
            seen: serde_json::from_str(&seen).ok()?,
        })
    }))
}

async fn tell(
    store: &SqliteStore,
    lane: &Lane,
    told: &Told,
    landmarks: &[Digest],
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into told (profile, session, conversation, seen) values ($1, $2, $3, $4) \
         on conflict (profile, session) do update set conversation = excluded.conversation, \
         seen = excluded.seen",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(told.conversation.as_str())
    .bind(document(&told.seen))
    .execute(&mut *tx)
    .await?;
    let newest: i64 =
        sqlx::query_scalar("select coalesce(max(seq), 0) from landmarks where profile = $1")
            .bind(lane.profile.as_str())
            .fetch_one(&mut *tx)
            .await?;
    let mut seq = newest;
    for landmark in landmarks {
        seq += 1;
        sqlx::query(
            "insert into landmarks (profile, digest, session, seq) values ($1, $2, $3, $4) \
             on conflict (profile, digest) do update set session = excluded.session, seq = excluded.seq",
        )
        .bind(lane.profile.as_str())
        .bind(landmark.to_string())
        .bind(lane.session.as_str())
        .bind(seq)
        .execute(&mut *tx)
        .await?;
    }
    sqlx::query(
        "delete from landmarks where profile = $1 and seq <= (select seq from landmarks \
         where profile = $1 order by seq desc limit 1 offset $2)",
    )
    .bind(lane.profile.as_str())
    .bind(i64::try_from(LANDMARKS).unwrap_or(i64::MAX))
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

async fn landmark(
    store: &SqliteStore,
    profile: &ProfileId,
    landmarks: &[Digest],
) -> Result<Option<SessionKey>, Fault> {
    for landmark in landmarks {
        let found: Option<String> =
            sqlx::query_scalar("select session from landmarks where profile = $1 and digest = $2")
                .bind(profile.as_str())
                .bind(landmark.to_string())
                .fetch_optional(&store.readers)
                .await?;
        if let Some(session) = found {
            return Ok(Some(SessionKey::new(session)));
        }
    }
    Ok(None)
}

fn damaged(base: &str, why: String) -> StoreError {
    StoreError::Damaged {
        what: format!("a retired session of {base}"),
        why,
    }
}
