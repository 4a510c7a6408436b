//! Turns and their journals: the promise that a request is on disk before it leaves, and the one transaction that ends it.

use gateway_core::handoff::{Handoff, HandoffState};
use gateway_core::ids::{ConversationId, HandoffId, InboundId, ProfileId, SessionKey, TurnId};
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use gateway_core::message::{Origin, ReplyTarget};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::super::rules::from_ms;
use super::super::{Lane, StoreError, TurnClose, check_close, document, sealed_twice, settled_as};
use super::fault::Fault;
use super::handoffs::state_text;
use super::{SqliteStore, Tx, sessions};

pub(super) async fn open_turn(
    store: &SqliteStore,
    row: &TurnRow,
    claims: &[(HandoffId, i64)],
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    if !insert(&mut tx, row).await? {
        return Err(StoreError::TurnExists(row.turn.clone()).into());
    }
    let (platform, message) = (&row.target.platform, &row.inbound);
    if !sessions::see(&mut tx, platform, message, row.started_at).await? {
        return Err(StoreError::SeenBefore(message.clone()).into());
    }
    if !claim(&mut tx, &row.turn, claims).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}

pub(super) async fn claim_for_turn(
    store: &SqliteStore,
    row: &TurnRow,
    claims: &[(HandoffId, i64)],
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let known = sqlx::query(
        "update turns set conversation = $1, carries = $2 where turn = $3 and status = 'open'",
    )
    .bind(row.conversation.as_str())
    .bind(document(&row.carries))
    .bind(row.turn.as_str())
    .execute(&mut *tx)
    .await?;
    if known.rows_affected() != 1 {
        return Err(StoreError::NoSuchTurn(row.turn.clone()).into());
    }
    if !claim(&mut tx, &row.turn, claims).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}

/// `false` = one of them is not armed at that revision (any more): roll back.
async fn claim(tx: &mut Tx, turn: &TurnId, claims: &[(HandoffId, i64)]) -> Result<bool, Fault> {
    for (id, revision) in claims {
        let claimed = sqlx::query(
            "update handoffs set state = 'claimed', claimed_by = $1, revision = revision + 1 \
             where id = $2 and revision = $3 and state = 'armed'",
        )
        .bind(turn.as_str())
        .bind(id.as_str())
        .bind(revision)
        .execute(&mut **tx)
        .await?;
        if claimed.rows_affected() != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) async fn turn(store: &SqliteStore, turn: &TurnId) -> Result<Option<TurnRow>, Fault> {
    let row = sqlx::query(
        "select turn, profile, session, conversation, inbound, origin, platform, address, request, \
         started_at, owner, carries from turns where turn = $1",
    )
    .bind(turn.as_str())
    .fetch_optional(&store.readers)
    .await?;
    Ok(row.as_ref().map(turn_of).transpose()?)
}

/// `false` = a turn of this id is there already.
async fn insert(tx: &mut Tx, row: &TurnRow) -> Result<bool, Fault> {
    let done = sqlx::query(
        "insert into turns (turn, profile, session, conversation, inbound, origin, platform, \
         address, request, started_at, owner, carries, status) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'open') on conflict do nothing",
    )
    .bind(row.turn.as_str())
    .bind(row.profile.as_str())
    .bind(row.session.as_str())
    .bind(row.conversation.as_str())
    .bind(row.inbound.as_str())
    .bind(origin_text(row.origin))
    .bind(&row.target.platform)
    .bind(&row.target.address)
    .bind(&row.request)
    .bind(row.started_at.as_millisecond())
    .bind(&row.owner)
    .bind(document(&row.carries))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn append(
    store: &SqliteStore,
    turn: &TurnId,
    entries: &[JournalEntry],
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    let (open, mut seq): (bool, i64) = sqlx::query_as(
        "select exists (select 1 from turns where turn = $1 and status = 'open'), \
         (select coalesce(max(seq), 0) from journal where turn = $1)",
    )
    .bind(turn.as_str())
    .fetch_one(&mut *tx)
    .await?;
    if !open {
        return Err(StoreError::NoSuchTurn(turn.clone()).into());
    }
    for entry in entries {
        seq += 1;
        sqlx::query("insert into journal (turn, seq, entry) values ($1, $2, $3)")
            .bind(turn.as_str())
            .bind(seq)
            .bind(document(entry))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}

pub(super) async fn journal(
    store: &SqliteStore,
    turn: &TurnId,
) -> Result<Vec<JournalEntry>, Fault> {
    let mut tx = store.readers.begin().await?;
    let known: bool = sqlx::query_scalar("select exists (select 1 from turns where turn = $1)")
        .bind(turn.as_str())
        .fetch_one(&mut *tx)
        .await?;
    if !known {
        return Err(StoreError::NoSuchTurn(turn.clone()).into());
    }
    let rows = sqlx::query("select entry from journal where turn = $1 order by seq")
        .bind(turn.as_str())
        .fetch_all(&mut *tx)
        .await?;
    Ok(rows.iter().filter_map(|row| entry_of(row, turn)).collect())
}

fn entry_of(row: &SqliteRow, turn: &TurnId) -> Option<JournalEntry> {
    let text: Result<String, _> = row.try_get("entry");
    let entry = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    if entry.is_none() {
        tracing::warn!(%turn, "a journal entry in the store is damaged and left out");
    }
    entry
}

pub(super) async fn close_turn(store: &SqliteStore, close: &TurnClose) -> Result<bool, Fault> {
    check_close(close)?;
    let mut tx = store.begin().await?;
    let found: Option<(String, String, String, String)> =
        sqlx::query_as("select profile, session, conversation, status from turns where turn = $1")
            .bind(close.turn.as_str())
            .fetch_optional(&mut *tx)
            .await?;
    let Some((profile, session, conversation, status)) = found else {
        return Err(StoreError::NoSuchTurn(close.turn.clone()).into());
    };
    if status != "open" {
        return Ok(false);
    }
    sqlx::query("update turns set status = $1, ended_at = $2 where turn = $3")
        .bind(status_text(close.status))
        .bind(close.at.as_millisecond())
        .bind(close.turn.as_str())
        .execute(&mut *tx)
        .await?;
    settle_carried(&mut tx, close).await?;
    if let Some((handoff, state)) = &close.seal {
        seal(&mut tx, handoff, *state).await?;
    }
    let lane = Lane {
        profile: ProfileId::new(profile),
        session: SessionKey::new(session),
    };
    sessions::remember(&mut tx, &lane, &ConversationId::new(conversation), close).await?;
    tx.commit().await?;
    Ok(true)
}

async fn settle_carried(tx: &mut Tx, close: &TurnClose) -> Result<(), Fault> {
    let keeps_claim = super::super::keeps_claim(settled_as(close.carried));
    sqlx::query(
        "update handoffs set state = $1, claimed_by = $2, revision = revision + 1 \
         where claimed_by = $3 and state = 'claimed'",
    )
    .bind(state_text(settled_as(close.carried)))
    .bind(keeps_claim.then_some(close.turn.as_str()))
    .bind(close.turn.as_str())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn seal(tx: &mut Tx, handoff: &Handoff, state: HandoffState) -> Result<(), Fault> {
    let done = sqlx::query(
        "insert into handoffs (id, turn, profile, session, conversation, created_at, expires_at, \
         state, revision, payload) values ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9) \
         on conflict do nothing",
    )
    .bind(handoff.id.as_str())
    .bind(handoff.turn.as_str())
    .bind(handoff.profile.as_str())
    .bind(handoff.session.as_str())
    .bind(handoff.conversation.as_str())
    .bind(handoff.created_at.as_millisecond())
    .bind(handoff.expires_at.as_millisecond())
    .bind(state_text(state))
    .bind(document(handoff))
    .execute(&mut **tx)
    .await?;
    match done.rows_affected() {
        0 => Err(sealed_twice(&handoff.id).into()),
        _ => Ok(()),
    }
}

pub(super) async fn open_turns(store: &SqliteStore) -> Result<Vec<TurnRow>, Fault> {
    let rows = sqlx::query(
        "select turn, profile, session, conversation, inbound, origin, platform, address, request, \
         started_at, owner, carries from turns where status = 'open' order by started_at, turn",
    )
    .fetch_all(&store.readers)
    .await?;
    let mut turns = Vec::with_capacity(rows.len());
    for row in &rows {
        match turn_of(row) {
            Ok(turn) => turns.push(turn),
            // One damaged row must not keep the others from being sealed.
            Err(error) => tracing::error!(%error, "an open turn in the store is damaged"),
        }
    }
    Ok(turns)
}

fn turn_of(row: &SqliteRow) -> Result<TurnRow, sqlx::Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    Ok(TurnRow {
        turn: TurnId::new(text("turn")?),
        profile: ProfileId::new(text("profile")?),
        session: SessionKey::new(text("session")?),
        conversation: ConversationId::new(text("conversation")?),
        inbound: InboundId::new(text("inbound")?),
        origin: origin_of(&text("origin")?),
        target: ReplyTarget {
            platform: text("platform")?,
            address: text("address")?,
        },
        request: text("request")?,
        started_at: from_ms(row.try_get("started_at")?),
        owner: text("owner")?,
        // The claims themselves are on the handoffs; closing the turn settles them either way.
        carries: serde_json::from_str(&text("carries")?).unwrap_or_default(),
    })
}

pub(super) async fn adopt_turn(
    store: &SqliteStore,
    turn: &TurnId,
    from_owner: &str,
    to_owner: &str,
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let done = sqlx::query(
        "update turns set owner = $1 where turn = $2 and owner = $3 and status = 'open'",
    )
    .bind(to_owner)
    .bind(turn.as_str())
    .bind(from_owner)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(done.rows_affected() == 1)
}

fn origin_text(origin: Origin) -> &'static str {
    match origin {
        Origin::Human => "human",
        Origin::Synthetic => "synthetic",
    }
}

/// Anything else than a human stays away from saved handoffs.
fn origin_of(text: &str) -> Origin {
    match text {
        "human" => Origin::Human,
        _ => Origin::Synthetic,
    }
}

fn status_text(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Open => "open",
        TurnStatus::Answered => "answered",
        TurnStatus::Cut => "cut",
        TurnStatus::Stopped => "stopped",
        TurnStatus::Failed => "failed",
    }
}
