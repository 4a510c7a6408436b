//! Conversations a lane has left and can pick up again, and who took part in one.

use gateway_core::ids::ConversationId;
use jiff::Timestamp;
use sqlx::{Row, SqliteExecutor};

use super::super::rules::{EARLIER_MAX, from_ms};
use super::super::{ConversationRow, Lane, SessionRow, StoreError};
use super::fault::Fault;
use super::{SqliteStore, Tx, sessions};

/// Remembers the conversation a lane leaves. One in which nothing was ever said is forgotten.
pub(super) async fn leave(tx: &mut Tx, left: &SessionRow) -> Result<(), Fault> {
    let answered = left.answered_by.as_ref();
    sqlx::query(
        "insert into conversations (conversation, profile, session, number, started_at, used_at, \
         chosen, answered_by, answered_at) \
         select $1, $2, $3, \
         (select coalesce(max(number), 0) + 1 from conversations where profile = $2 and session = $3), \
         $4, \
         coalesce((select max(coalesce(ended_at, started_at)) from turns where conversation = $1), $7, $4), \
         $5, $6, $7 \
         where exists (select 1 from turns where conversation = $1) \
         or exists (select 1 from exchanges where conversation = $1) \
         on conflict (conversation) do update set used_at = excluded.used_at, \
         chosen = excluded.chosen, answered_by = excluded.answered_by, answered_at = excluded.answered_at",
    )
    .bind(left.conversation.as_str())
    .bind(left.lane.profile.as_str())
    .bind(left.lane.session.as_str())
    .bind(left.started_at.as_millisecond())
    .bind(left.chosen.as_ref().map(ToString::to_string))
    .bind(answered.map(|(route, _)| route.to_string()))
    .bind(answered.map(|(_, at)| at.as_millisecond()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

pub(super) async fn earlier(
    store: &SqliteStore,
    lane: &Lane,
) -> Result<Vec<ConversationRow>, Fault> {
    let rows = sqlx::query(
        "select conversation, number, started_at, used_at, \
         (select count(*) from exchanges e where e.conversation = c.conversation) as exchanges, \
         coalesce((select request from exchanges e where e.conversation = c.conversation order by seq limit 1), \
         (select request from turns t where t.conversation = c.conversation and request <> '' \
         order by started_at, turn limit 1), '') as first_request \
         from conversations c where profile = $1 and session = $2 and not exists \
         (select 1 from sessions s where s.conversation = c.conversation) \
         order by used_at desc, number desc limit $3",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(i64::from(EARLIER_MAX))
    .fetch_all(&store.readers)
    .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(ConversationRow {
            conversation: ConversationId::new(row.try_get::<String, _>("conversation")?),
            number: u32::try_from(row.try_get::<i64, _>("number")?).unwrap_or(u32::MAX),
            started_at: from_ms(row.try_get("started_at")?),
            used_at: from_ms(row.try_get("used_at")?),
            exchanges: u64::try_from(row.try_get::<i64, _>("exchanges")?).unwrap_or(0),
            first_request: row.try_get("first_request")?,
        });
    }
    Ok(found)
}

pub(super) async fn resume(
    store: &SqliteStore,
    lane: &Lane,
    conversation: &ConversationId,
) -> Result<Option<SessionRow>, Fault> {
    let mut tx = store.begin().await?;
    let current = sessions::find(&mut *tx, lane).await?;
    if let Some(current) = current
        .as_ref()
        .filter(|row| row.conversation == *conversation)
    {
        return Ok(Some(current.clone()));
    }
    if !is_of(&mut *tx, lane, conversation).await? {
        return Ok(None);
    }
    if let Some(current) = &current {
        leave(&mut tx, current).await?;
    }
    sqlx::query(
        "insert into sessions (profile, session, conversation, started_at, chosen, answered_by, answered_at) \
         select profile, session, conversation, started_at, chosen, answered_by, answered_at \
         from conversations where conversation = $1 \
         on conflict (profile, session) do update set conversation = excluded.conversation, \
         started_at = excluded.started_at, chosen = excluded.chosen, \
         answered_by = excluded.answered_by, answered_at = excluded.answered_at",
    )
    .bind(conversation.as_str())
    .execute(&mut *tx)
    .await?;
    let row = sessions::find(&mut *tx, lane).await?;
    tx.commit().await?;
    match row {
        Some(row) => Ok(Some(row)),
        None => Err(StoreError::NoSuchSession(lane.session.clone()).into()),
    }
}

async fn is_of(
    connection: impl SqliteExecutor<'_>,
    lane: &Lane,
    conversation: &ConversationId,
) -> Result<bool, Fault> {
    let known = sqlx::query_scalar(
        "select exists (select 1 from conversations where conversation = $1 and profile = $2 and session = $3)",
    )
    .bind(conversation.as_str())
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .fetch_one(connection)
    .await?;
    Ok(known)
}

/// A turn of the conversation ended; the lane may have left it meanwhile.
pub(super) async fn used(
    tx: &mut Tx,
    conversation: &ConversationId,
    at: Timestamp,
    answered_by: Option<&gateway_core::route::Route>,
) -> Result<(), Fault> {
    sqlx::query("update conversations set used_at = $1 where conversation = $2")
        .bind(at.as_millisecond())
        .bind(conversation.as_str())
        .execute(&mut **tx)
        .await?;
    if let Some(route) = answered_by {
        sqlx::query(
            "update conversations set answered_by = $1, answered_at = $2 where conversation = $3",
        )
        .bind(route.to_string())
        .bind(at.as_millisecond())
        .bind(conversation.as_str())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

pub(super) async fn note_participant(
    store: &SqliteStore,
    conversation: &ConversationId,
    platform: &str,
    sender: &str,
) -> Result<(), Fault> {
    let known: bool = sqlx::query_scalar(
        "select exists (select 1 from participants where conversation = $1 and platform = $2 and sender = $3)",
    )
    .bind(conversation.as_str())
    .bind(platform)
    .bind(sender)
    .fetch_one(&store.readers)
    .await?;
    if known {
        return Ok(()); // each message asks; the write lock is for the first one
    }
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into participants (conversation, platform, sender) values ($1, $2, $3) \
         on conflict do nothing",
    )
    .bind(conversation.as_str())
    .bind(platform)
    .bind(sender)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

pub(super) async fn took_part(
    store: &SqliteStore,
    platform: &str,
    sender: &str,
) -> Result<Vec<ConversationId>, Fault> {
    let found: Vec<String> = sqlx::query_scalar(
        "select conversation from participants where platform = $1 and sender = $2 order by conversation",
    )
    .bind(platform)
    .bind(sender)
    .fetch_all(&store.readers)
    .await?;
    Ok(found.into_iter().map(ConversationId::new).collect())
}
