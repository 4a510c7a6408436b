//! Handoffs: lists that survive a damaged row, moves guarded by revision, and the sweep.

use gateway_core::handoff::{Handoff, HandoffState, PAYLOAD_VERSION, StoredHandoff};
use gateway_core::ids::{ConversationId, HandoffId, InboundId, ProfileId, SessionKey, TurnId};
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::super::Lane;
use super::super::rules::{self, from_ms};
use super::fault::Fault;
use super::{SqliteStore, Tx};

pub(super) async fn of_lane(store: &SqliteStore, lane: &Lane) -> Result<Vec<StoredHandoff>, Fault> {
    let rows = sqlx::query(
        "select * from handoffs where profile = $1 and session = $2 \
         order by created_at desc, id desc",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .fetch_all(&store.readers)
    .await?;
    read_all(store, &rows).await
}

pub(super) async fn unsettled(store: &SqliteStore) -> Result<Vec<StoredHandoff>, Fault> {
    let rows = sqlx::query(
        "select * from handoffs where state not in ('acked', 'chained', 'discarded') \
         order by created_at desc, id desc",
    )
    .fetch_all(&store.readers)
    .await?;
    read_all(store, &rows).await
}

pub(super) async fn one(
    store: &SqliteStore,
    id: &HandoffId,
) -> Result<Option<StoredHandoff>, Fault> {
    let rows = sqlx::query("select * from handoffs where id = $1")
        .bind(id.as_str())
        .fetch_all(&store.readers)
        .await?;
    Ok(read_all(store, &rows).await?.pop())
}

/// Reads the rows and moves newly found damaged ones aside.
async fn read_all(store: &SqliteStore, rows: &[SqliteRow]) -> Result<Vec<StoredHandoff>, Fault> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let read = read(row)?;
        if !read.newly_damaged {
            found.push(read.stored);
            continue;
        }
        let mut stored = read.stored;
        // What cannot be written now is found again next time; the list is worth more.
        match move_aside_alone(store, &stored).await {
            Ok(true) => stored.revision += 1,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(id = %stored.handoff.id, ?error, "a damaged handoff could not be marked")
            }
        }
        found.push(stored);
    }
    Ok(found)
}

async fn move_aside_alone(store: &SqliteStore, stored: &StoredHandoff) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let moved = move_aside(&mut tx, stored).await?;
    tx.commit().await?;
    Ok(moved)
}

/// Marks a row corrupt; its text stays as it is until the sweep purges it.
async fn move_aside(tx: &mut Tx, stored: &StoredHandoff) -> Result<bool, Fault> {
    tracing::warn!(id = %stored.handoff.id, "a handoff in the store is damaged and moved aside");
    set_state(
        tx,
        &stored.handoff.id,
        stored.revision,
        HandoffState::Corrupt,
        None,
    )
    .await
}

struct Read {
    stored: StoredHandoff,
    newly_damaged: bool,
}

fn read(row: &SqliteRow) -> Result<Read, Fault> {
    let state = state_of(&row.try_get::<String, _>("state")?);
    let text: Result<String, _> = row.try_get("payload");
    let payload: Option<Handoff> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    let readable = payload.as_ref().is_some_and(rules::is_readable);
    let damaged = payload.is_none();
    let handoff = match payload {
        Some(handoff) => handoff,
        None => from_columns(row)?,
    };
    let claimed_by: Option<String> = row.try_get("claimed_by")?;
    let stored = StoredHandoff {
        handoff,
        state: if readable || rules::is_settled(state) {
            state
        } else {
            HandoffState::Corrupt
        },
        revision: row.try_get("revision")?,
        claimed_by: claimed_by.map(TurnId::new),
    };
    // A payload of a newer baton is not damaged: it is left for that one to read.
    let newly_damaged = damaged && state != HandoffState::Corrupt && !rules::is_settled(state);
    Ok(Read {
        stored,
        newly_damaged,
    })
}

/// What is still known of a handoff whose payload is damaged.
fn from_columns(row: &SqliteRow) -> Result<Handoff, sqlx::Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    Ok(Handoff {
        version: PAYLOAD_VERSION,
        id: HandoffId::new(text("id")?),
        turn: TurnId::new(text("turn")?),
        profile: ProfileId::new(text("profile")?),
        session: SessionKey::new(text("session")?),
        conversation: ConversationId::new(text("conversation")?),
        created_at: from_ms(row.try_get("created_at")?),
        expires_at: from_ms(row.try_get("expires_at")?),
        reason: "damaged in the store".to_owned(),
        route: None,
        request: String::new(),
        request_id: InboundId::new(""),
        progress: String::new(),
        calls: Vec::new(),
        open_todos: Vec::new(),
        next_reset: None,
        earlier_cuts: 0,
    })
}

pub(super) async fn move_to(
    store: &SqliteStore,
    id: &HandoffId,
    revision: i64,
    to: HandoffState,
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let found: Option<(String, Option<String>)> =
        sqlx::query_as("select state, claimed_by from handoffs where id = $1 and revision = $2")
            .bind(id.as_str())
            .bind(revision)
            .fetch_optional(&mut *tx)
            .await?;
    let Some((state, claimed_by)) = found else {
        return Ok(false);
    };
    if !rules::may_move(state_of(&state), to) {
        return Ok(false);
    }
    let claimed_by = claimed_by.filter(|_| super::super::keeps_claim(to));
    let moved = set_state(&mut tx, id, revision, to, claimed_by).await?;
    tx.commit().await?;
    Ok(moved)
}

async fn set_state(
    tx: &mut Tx,
    id: &HandoffId,
    revision: i64,
    to: HandoffState,
    claimed_by: Option<String>,
) -> Result<bool, Fault> {
    let done = sqlx::query(
        "update handoffs set state = $1, claimed_by = $2, revision = revision + 1 \
         where id = $3 and revision = $4",
    )
    .bind(state_text(to))
    .bind(claimed_by)
    .bind(id.as_str())
    .bind(revision)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends each of these rows as `to`; a damaged one goes aside instead. Returns them as they are now.
async fn end_all(
    tx: &mut Tx,
    rows: &[SqliteRow],
    to: HandoffState,
) -> Result<Vec<StoredHandoff>, Fault> {
    let mut ended = Vec::with_capacity(rows.len());
    for row in rows {
        let mut read = read(row)?;
        if read.newly_damaged {
            move_aside(tx, &read.stored).await?;
        } else {
            let (id, revision) = (&read.stored.handoff.id, read.stored.revision);
            set_state(tx, id, revision, to, None).await?;
            if rules::is_readable(&read.stored.handoff) || rules::is_settled(to) {
                read.stored.state = to;
            }
        }
        read.stored.revision += 1;
        read.stored.claimed_by = None;
        ended.push(read.stored);
    }
    Ok(ended)
}

/// Discards what waits on the lane and returns it. What waits in a conversation the lane has left before stays there.
pub(super) async fn discard_of(tx: &mut Tx, lane: &Lane) -> Result<Vec<StoredHandoff>, Fault> {
    let rows = sqlx::query(
        "select * from handoffs where profile = $1 and session = $2 \
         and state in ('armed', 'stopped') and not exists \
         (select 1 from conversations c where c.conversation = handoffs.conversation \
         and c.profile = $1 and c.session = $2 and not exists \
         (select 1 from sessions s where s.conversation = c.conversation)) \
         order by created_at desc, id desc",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .fetch_all(&mut **tx)
    .await?;
    end_all(tx, &rows, HandoffState::Discarded).await
}

pub(super) async fn sweep(
    store: &SqliteStore,
    now: Timestamp,
) -> Result<Vec<StoredHandoff>, Fault> {
    let now = now.as_millisecond();
    let mut tx = store.begin().await?;
    let rows = sqlx::query(
        "select * from handoffs where state = 'armed' and expires_at <= $1 \
         order by created_at desc, id desc",
    )
    .bind(now)
    .fetch_all(&mut *tx)
    .await?;
    let expired = end_all(&mut tx, &rows, HandoffState::Expired).await?;
    purge(&mut tx, now).await?;
    tx.commit().await?;
    Ok(expired)
}

/// Each step with the instant it is given, in milliseconds before now.
const PURGE: &[(&str, i64)] = &[
    (
        "update handoffs set over_since = $1 \
         where over_since is null and state not in ('armed', 'claimed')",
        0,
    ),
    (
        "delete from handoffs where over_since < $1 and state not in ('armed', 'claimed', 'corrupt')",
        rules::KEEP_ENDED_MS,
    ),
    (
        "delete from handoffs where over_since < $1 and state = 'corrupt'",
        rules::KEEP_CORRUPT_MS,
    ),
    (
        "delete from inbound where seen_at < $1",
        rules::KEEP_INBOUND_MS,
    ),
    (
        "delete from actions where expires_at < $1",
        rules::KEEP_ACTIONS_MS,
    ),
    (
        "delete from turns where ended_at < $1 and status <> 'open'",
        rules::KEEP_ENDED_MS,
    ),
    (
        "delete from journal where turn in \
         (select turn from turns where ended_at < $1 and status = 'answered')",
        rules::KEEP_ANSWERED_TEXT_MS,
    ),
    (
        "update turns set request = '' where ended_at < $1 and status = 'answered' and request <> ''",
        rules::KEEP_ANSWERED_TEXT_MS,
    ),
];

async fn purge(tx: &mut Tx, now: i64) -> Result<(), Fault> {
    for (step, age) in PURGE {
        sqlx::query(*step)
            .bind(now - age)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

pub(super) fn state_text(state: HandoffState) -> &'static str {
    match state {
        HandoffState::Armed => "armed",
        HandoffState::Claimed => "claimed",
        HandoffState::Acked => "acked",
        HandoffState::Stopped => "stopped",
        HandoffState::Discarded => "discarded",
        HandoffState::Chained => "chained",
        HandoffState::Expired => "expired",
        HandoffState::Corrupt => "corrupt",
    }
}

/// A word we do not know is of a newer baton or damaged: not ours to act on.
fn state_of(text: &str) -> HandoffState {
    match text {
        "armed" => HandoffState::Armed,
        "claimed" => HandoffState::Claimed,
        "acked" => HandoffState::Acked,
        "stopped" => HandoffState::Stopped,
        "discarded" => HandoffState::Discarded,
        "chained" => HandoffState::Chained,
        "expired" => HandoffState::Expired,
        _ => HandoffState::Corrupt,
    }
}
