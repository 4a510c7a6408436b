//! Inbound ids, lanes, the CLI sessions behind them, and the history of a conversation.

use gateway_core::action::ActionKind;
use gateway_core::handoff::StoredHandoff;
use gateway_core::ids::{ConversationId, InboundId, ProviderSessionId, SubscriptionId};
use gateway_core::route::Route;
use jiff::Timestamp;
use providers::Exchange;
use sqlx::{Sqlite, SqliteExecutor};
use uuid::Uuid;

use super::super::rules::from_ms;
use super::super::{Lane, ProviderSessionRow, SessionRow, StoreError, TurnClose};
use super::fault::Fault;
use super::{SqliteStore, Tx, actions, conversations, handoffs};

pub(super) async fn first_sight(
    store: &SqliteStore,
    platform: &str,
    id: &InboundId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let new = see(&mut tx, platform, id, now).await?;
    tx.commit().await?;
    Ok(new)
}

/// Remembers an id; `false` = it is known.
pub(super) async fn see(
    tx: &mut Tx,
    platform: &str,
    id: &InboundId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let done = sqlx::query(
        "insert into inbound (platform, id, seen_at) values ($1, $2, $3) on conflict do nothing",
    )
    .bind(platform)
    .bind(id.as_str())
    .bind(now.as_millisecond())
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn was_seen(
    store: &SqliteStore,
    platform: &str,
    id: &InboundId,
) -> Result<bool, Fault> {
    let seen: bool =
        sqlx::query_scalar("select exists (select 1 from inbound where platform = $1 and id = $2)")
            .bind(platform)
            .bind(id.as_str())
            .fetch_one(&store.readers)
            .await?;
    Ok(seen)
}

pub(super) async fn session(
    store: &SqliteStore,
    lane: &Lane,
    now: Timestamp,
) -> Result<SessionRow, Fault> {
    if let Some(row) = find(&store.readers, lane).await? {
        return Ok(row);
    }
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into sessions (profile, session, conversation, started_at) values ($1, $2, $3, $4) \
         on conflict do nothing",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(Uuid::new_v4().to_string())
    .bind(now.as_millisecond())
    .execute(&mut *tx)
    .await?;
    let row = find(&mut *tx, lane).await?;
    tx.commit().await?;
    row.ok_or_else(|| StoreError::NoSuchSession(lane.session.clone()).into())
}

pub(super) async fn find(
    connection: impl SqliteExecutor<'_>,
    lane: &Lane,
) -> Result<Option<SessionRow>, Fault> {
    type Columns = (String, i64, Option<String>, Option<String>, Option<i64>);
    let found: Option<Columns> = sqlx::query_as::<Sqlite, Columns>(
        "select conversation, started_at, chosen, answered_by, answered_at from sessions \
         where profile = $1 and session = $2",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .fetch_optional(connection)
    .await?;
    Ok(found.map(
        |(conversation, started_at, chosen, answered_by, answered_at)| SessionRow {
            lane: lane.clone(),
            conversation: ConversationId::new(conversation),
            started_at: from_ms(started_at),
            // A route that no longer parses is no choice: the chain decides.
            chosen: chosen.and_then(|text| text.parse().ok()),
            answered_by: answered_by
                .and_then(|text| text.parse().ok())
                .zip(answered_at.map(from_ms)),
        },
    ))
}

pub(super) async fn new_conversation(
    store: &SqliteStore,
    lane: &Lane,
    now: Timestamp,
) -> Result<(SessionRow, Vec<StoredHandoff>), Fault> {
    let mut tx = store.begin().await?;
    let discarded = handoffs::discard_of(&mut tx, lane).await?;
    if let Some(left) = find(&mut *tx, lane).await? {
        conversations::leave(&mut tx, &left).await?;
    }
    sqlx::query(
        "insert into sessions (profile, session, conversation, started_at) values ($1, $2, $3, $4) \
         on conflict (profile, session) do update set conversation = excluded.conversation, \
         started_at = excluded.started_at, chosen = null, answered_by = null, answered_at = null",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(Uuid::new_v4().to_string())
    .bind(now.as_millisecond())
    .execute(&mut *tx)
    .await?;
    let row = find(&mut *tx, lane).await?;
    tx.commit().await?;
    match row {
        Some(row) => Ok((row, discarded)),
        None => Err(StoreError::NoSuchSession(lane.session.clone()).into()),
    }
}

pub(super) async fn choose_route(
    store: &SqliteStore,
    lane: &Lane,
    route: Option<&Route>,
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    set_choice(&mut tx, lane, route).await?;
    tx.commit().await?;
    Ok(())
}

/// Sets the choice; what older buttons would have undone stands no longer.
pub(super) async fn set_choice(
    tx: &mut Tx,
    lane: &Lane,
    route: Option<&Route>,
) -> Result<(), Fault> {
    let done = sqlx::query("update sessions set chosen = $1 where profile = $2 and session = $3")
        .bind(route.map(Route::to_string))
        .bind(lane.profile.as_str())
        .bind(lane.session.as_str())
        .execute(&mut **tx)
        .await?;
    actions::replace(tx, lane, ActionKind::UndoModel).await?;
    match done.rows_affected() {
        0 => Err(StoreError::NoSuchSession(lane.session.clone()).into()),
        _ => Ok(()),
    }
}

pub(super) async fn provider_session(
    store: &SqliteStore,
    conversation: &ConversationId,
    subscription: &SubscriptionId,
) -> Result<Option<ProviderSessionRow>, Fault> {
    let found: Option<(String, i64)> = sqlx::query_as(
        "select id, seen from provider_sessions where conversation = $1 and subscription = $2",
    )
    .bind(conversation.as_str())
    .bind(subscription.key())
    .fetch_optional(&store.readers)
    .await?;
    Ok(found.map(|(id, seen)| ProviderSessionRow {
        id: ProviderSessionId::new(id),
        seen: u64::try_from(seen).unwrap_or(0),
    }))
}

pub(super) async fn note_provider_session(
    store: &SqliteStore,
    conversation: &ConversationId,
    subscription: &SubscriptionId,
    id: &ProviderSessionId,
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into provider_sessions (conversation, subscription, id, seen) select $1, $2, $3, 0 \
         where not exists (select 1 from retired_sessions \
         where conversation = $1 and subscription = $2 and session = $3) \
         on conflict (conversation, subscription) do update set id = excluded.id, seen = 0 \
         where provider_sessions.id <> excluded.id",
    )
    .bind(conversation.as_str())
    .bind(subscription.key())
    .bind(id.as_str())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

pub(super) async fn history(
    store: &SqliteStore,
    conversation: &ConversationId,
    limit: u32,
) -> Result<(Vec<Exchange>, u64), Fault> {
    // One transaction: the count and the list are of the same moment.
    let mut tx = store.readers.begin().await?;
    let all = length(&mut *tx, conversation).await?;
    let newest: Vec<(String, String)> = sqlx::query_as(
        "select request, answer from exchanges where conversation = $1 order by seq desc limit $2",
    )
    .bind(conversation.as_str())
    .bind(i64::from(limit))
    .fetch_all(&mut *tx)
    .await?;
    let exchanges = newest
        .into_iter()
        .rev()
        .map(|(request, answer)| Exchange { request, answer })
        .collect();
    Ok((exchanges, u64::try_from(all).unwrap_or(0)))
}

/// Exchanges are numbered from one and never removed, so the newest number is their count.
async fn length(
    connection: impl SqliteExecutor<'_>,
    conversation: &ConversationId,
) -> Result<i64, Fault> {
    let all =
        sqlx::query_scalar("select coalesce(max(seq), 0) from exchanges where conversation = $1")
            .bind(conversation.as_str())
            .fetch_one(connection)
            .await?;
    Ok(all)
}

/// What a closing turn leaves on its lane: exchanges, who answered, what the answering session has seen.
pub(super) async fn remember(
    tx: &mut Tx,
    lane: &Lane,
    conversation: &ConversationId,
    close: &TurnClose,
) -> Result<(), Fault> {
    let mut seq = length(&mut **tx, conversation).await?;
    for exchange in &close.exchanges {
        seq += 1;
        sqlx::query(
            "insert into exchanges (conversation, seq, request, answer) values ($1, $2, $3, $4)",
        )
        .bind(conversation.as_str())
        .bind(seq)
        .bind(&exchange.request)
        .bind(&exchange.answer)
        .execute(&mut **tx)
        .await?;
    }
    if let Some((subscription, id)) = &close.session {
        sqlx::query(
            "insert into provider_sessions (conversation, subscription, id, seen) \
             select $1, $2, $3, $4 where not exists (select 1 from retired_sessions \
             where conversation = $1 and subscription = $2 and session = $3) \
             on conflict (conversation, subscription) do update set id = excluded.id, seen = excluded.seen",
        )
        .bind(conversation.as_str())
        .bind(subscription.key())
        .bind(id.as_str())
        .bind(seq)
        .execute(&mut **tx)
        .await?;
    }
    conversations::used(tx, conversation, close.at, close.answered_by.as_ref()).await?;
    if let Some(route) = &close.answered_by {
        sqlx::query(
            "update sessions set answered_by = $1, answered_at = $2 \
             where profile = $3 and session = $4 and conversation = $5",
        )
        .bind(route.to_string())
        .bind(close.at.as_millisecond())
        .bind(lane.profile.as_str())
        .bind(lane.session.as_str())
        .bind(conversation.as_str())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}
