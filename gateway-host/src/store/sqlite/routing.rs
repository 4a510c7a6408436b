//! Routing on disk: one transaction per step, the audit beside it, promises that nobody can make on old knowledge.

use async_trait::async_trait;
use gateway_core::ids::{ConversationId, TurnId};
use gateway_core::spend::{Overspend, SpendCaps, Spent, Usd};
use gateway_core::switch::facts::Burn;
use gateway_core::switch::machine::AuditKind;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::document;
use super::super::routing::{
    AuditRow, Promise, RoutingRow, RoutingStep, RoutingStore, day_of, is_settled,
};
use super::super::rules::from_ms;
use super::fault::Fault;
use super::{SqliteStore, StoreError, Tx};

/// A promise that nobody cleared is forgotten after this: it has long ceased to count.
const FORGET_PROMISES_MS: i64 = 2 * 60 * 60 * 1000;

#[async_trait]
impl RoutingStore for SqliteStore {
    async fn routing(
        &self,
        conversation: &ConversationId,
    ) -> Result<Option<RoutingRow>, StoreError> {
        routing(self, conversation).await.map_err(self.on_read())
    }

    async fn record_step(&self, step: &RoutingStep) -> Result<bool, StoreError> {
        record(self, step).await.map_err(self.on_write())
    }

    async fn unsettled_routing(&self) -> Result<Vec<RoutingRow>, StoreError> {
        unsettled(self).await.map_err(self.on_read())
    }

    async fn audit_of(&self, conversation: &ConversationId) -> Result<Vec<AuditRow>, StoreError> {
        let done = audit(self, "conversation", conversation.as_str()).await;
        done.map_err(self.on_read())
    }

    async fn audit_of_turn(&self, turn: Option<&TurnId>) -> Result<Vec<AuditRow>, StoreError> {
        let done = of_turn(self, turn.map(TurnId::as_str)).await;
        done.map_err(self.on_read())
    }

    async fn switches_since(&self, from: Timestamp) -> Result<Vec<Timestamp>, StoreError> {
        switches_since(self, from).await.map_err(self.on_read())
    }

    async fn promises(&self) -> Result<(Vec<Promise>, i64), StoreError> {
        promises(self).await.map_err(self.on_read())
    }

    async fn burn(&self) -> Result<Vec<Burn>, StoreError> {
        burn(self).await.map_err(self.on_read())
    }

    async fn put_burn(&self, burn: &[Burn]) -> Result<(), StoreError> {
        put_burn(self, burn).await.map_err(self.on_write())
    }

    async fn reserve_spend(
        &self,
        attempt: &str,
        conversation: &ConversationId,
        worst: Option<Usd>,
        caps: &SpendCaps,
        at: Timestamp,
    ) -> Result<Result<Usd, Overspend>, StoreError> {
        let done = reserve(self, attempt, conversation, worst, caps, at).await;
        done.map_err(self.on_write())
    }

    async fn settle_spend(
        &self,
        attempt: &str,
        cost: Option<Usd>,
        _at: Timestamp,
    ) -> Result<(), StoreError> {
        settle(self, attempt, cost).await.map_err(self.on_write())
    }

    async fn spent(
        &self,
        conversation: &ConversationId,
        at: Timestamp,
    ) -> Result<Spent, StoreError> {
        let rows = spend_rows().fetch(day_of(at)).fetch_all(&self.readers);
        let rows = rows.await.map_err(Fault::from).map_err(self.on_read())?;
        Ok(sum(&rows, conversation))
    }
}

async fn routing(
    store: &SqliteStore,
    conversation: &ConversationId,
) -> Result<Option<RoutingRow>, Fault> {
    let row = sqlx::query("select revision, document from routing where conversation = $1")
        .bind(conversation.as_str())
        .fetch_optional(&store.readers)
        .await?;
    Ok(row.as_ref().and_then(routing_row))
}

async fn unsettled(store: &SqliteStore) -> Result<Vec<RoutingRow>, Fault> {
    let rows = sqlx::query(
        "select revision, document from routing where settled = 0 order by conversation",
    )
    .fetch_all(&store.readers)
    .await?;
    Ok(rows.iter().filter_map(routing_row).collect())
}

/// A damaged row counts as none: the conversation starts over at rest, which neither moves nor spends.
fn routing_row(row: &SqliteRow) -> Option<RoutingRow> {
    let read: Option<RoutingRow> = read(row, "a conversation's routing");
    let revision = row.try_get("revision").ok()?;
    Some(RoutingRow { revision, ..read? })
}

fn read<T: DeserializeOwned>(row: &SqliteRow, what: &str) -> Option<T> {
    let text: Option<String> = row.try_get("document").ok();
    let read = text.and_then(|text| serde_json::from_str(&text).ok());
    if read.is_none() {
        tracing::warn!("{what} in the store is damaged and left out");
    }
    read
}

async fn record(store: &SqliteStore, step: &RoutingStep) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    if !write_row(&mut tx, &step.row).await? {
        return Ok(false); // dropping the transaction undoes it
    }
    if !step.reserve.is_empty() && !promise(&mut tx, step).await? {
        return Ok(false);
    }
    for id in &step.release {
        sqlx::query("delete from promises where id = $1")
            .bind(id)
            .execute(&mut *tx)
            .await?;
    }
    for id in &step.begun {
        begin(&mut tx, id, step.at).await?;
    }
    append(&mut tx, &step.audit).await?;
    tx.commit().await?;
    Ok(true)
}

async fn write_row(tx: &mut Tx, row: &RoutingRow) -> Result<bool, Fault> {
    let written = sqlx::query(
        "insert into routing (conversation, revision, settled, document) values ($1, $2 + 1, $3, $4) \
         on conflict (conversation) do update \
         set revision = excluded.revision, settled = excluded.settled, document = excluded.document \
         where routing.revision = $2",
    )
    .bind(row.conversation.as_str())
    .bind(row.revision)
    .bind(i64::from(is_settled(&row.machine)))
    .bind(document(row))
    .execute(&mut **tx)
    .await?;
    Ok(written.rows_affected() == 1)
}

async fn promise(tx: &mut Tx, step: &RoutingStep) -> Result<bool, Fault> {
    let grown =
        sqlx::query("update counters set value = value + 1 where name = 'promises' and value = $1")
            .bind(step.promises_seen)
            .execute(&mut **tx)
            .await?;
    if grown.rows_affected() != 1 {
        return Ok(false);
    }
    sqlx::query("delete from promises where at < $1")
        .bind(step.at.as_millisecond().saturating_sub(FORGET_PROMISES_MS))
        .execute(&mut **tx)
        .await?;
    for promise in &step.reserve {
        sqlx::query(
            "insert into promises (id, at, document) values ($1, $2, $3) on conflict (id) do nothing",
        )
        .bind(&promise.id)
        .bind(promise.at.as_millisecond())
        .bind(document(promise))
        .execute(&mut **tx)
        .await?;
    }
    Ok(true)
}

async fn begin(tx: &mut Tx, id: &str, at: Timestamp) -> Result<(), Fault> {
    let row = sqlx::query("select document from promises where id = $1")
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?;
    let known = row.and_then(|row| read::<Promise>(&row, "promised room"));
    if let Some(promise) = known {
        let begun = Promise {
            begun_at: Some(at),
            ..promise
        };
        sqlx::query("update promises set document = $2 where id = $1")
            .bind(id)
            .bind(document(&begun))
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

async fn append(tx: &mut Tx, audit: &[AuditRow]) -> Result<(), Fault> {
    for row in audit {
        let seq: i64 = sqlx::query_scalar(
            "update counters set value = value + 1 where name = 'routing_audit' returning value",
        )
        .fetch_one(&mut **tx)
        .await?;
        let row = AuditRow { seq, ..row.clone() };
        sqlx::query("insert into routing_audit (seq, at, conversation, turn, kind, document) values ($1, $2, $3, $4, $5, $6)")
            .bind(seq)
            .bind(row.at.as_millisecond())
            .bind(row.conversation.as_str())
            .bind(row.turn.as_ref().map(TurnId::as_str))
            .bind(row.kind.word())
            .bind(document(&row))
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

async fn audit(store: &SqliteStore, column: &str, value: &str) -> Result<Vec<AuditRow>, Fault> {
    let mut query = QueryBuilder::<Sqlite>::new("select document from routing_audit where ");
    query.push(column).push(" = ").push_bind(value);
    query.push(" order by seq");
    let rows = query.build().fetch_all(&store.readers).await?;
    let row = |row| read(row, "a row of the audit");
    Ok(rows.iter().filter_map(row).collect())
}

async fn of_turn(store: &SqliteStore, turn: Option<&str>) -> Result<Vec<AuditRow>, Fault> {
    let turn =
        match turn {
            Some(turn) => Some(turn.to_owned()),
            None => sqlx::query_scalar(
                "select turn from routing_audit where turn is not null order by seq desc limit 1",
            )
            .fetch_optional(&store.readers)
            .await?,
        };
    match turn {
        Some(turn) => audit(store, "turn", &turn).await,
        None => Ok(Vec::new()),
    }
}

async fn switches_since(store: &SqliteStore, from: Timestamp) -> Result<Vec<Timestamp>, Fault> {
    let at: Vec<i64> = sqlx::query_scalar(
        "select at from routing_audit where kind = $1 and at >= $2 order by seq",
    )
    .bind(AuditKind::Switched.word())
    .bind(from.as_millisecond())
    .fetch_all(&store.readers)
    .await?;
    Ok(at.into_iter().map(from_ms).collect())
}

/// Both of one moment: the promises are at least as new as the counter says.
async fn promises(store: &SqliteStore) -> Result<(Vec<Promise>, i64), Fault> {
    let revision = sqlx::query_scalar("select value from counters where name = 'promises'")
        .fetch_optional(&store.readers)
        .await?;
    let rows = sqlx::query("select document from promises order by id")
        .fetch_all(&store.readers)
        .await?;
    let row = |row| read(row, "promised room");
    Ok((rows.iter().filter_map(row).collect(), revision.unwrap_or(0)))
}

async fn burn(store: &SqliteStore) -> Result<Vec<Burn>, Fault> {
    let rows = sqlx::query("select document from burn order by subscription, window_id")
        .fetch_all(&store.readers)
        .await?;
    let row = |row| read(row, "what turns burnt");
    Ok(rows.iter().filter_map(row).collect())
}

async fn put_burn(store: &SqliteStore, burn: &[Burn]) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    for one in burn {
        sqlx::query(
            "insert into burn (subscription, window_id, document) values ($1, $2, $3) \
             on conflict (subscription, window_id) do update set document = excluded.document",
        )
        .bind(one.subscription.key())
        .bind(&one.window)
        .bind(document(one))
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(())
}

// === money ===

struct SpendRows(&'static str);

fn spend_rows() -> SpendRows {
    SpendRows("select conversation, coalesce(cost, worst) as amount from spend where day = $1")
}

impl SpendRows {
    fn fetch(
        self,
        day: i64,
    ) -> sqlx::query::Query<'static, Sqlite, <Sqlite as sqlx::Database>::Arguments> {
        sqlx::query(self.0).bind(day)
    }
}

/// An amount that cannot be read counts as too much.
fn sum(rows: &[SqliteRow], conversation: &ConversationId) -> Spent {
    let mut spent = Spent::default();
    for row in rows {
        let amount: Option<i64> = row.try_get("amount").ok();
        let amount = amount.and_then(|micros| u64::try_from(micros).ok());
        let amount = amount.map_or(Usd::UNREADABLE, Usd::from_micros);
        spent.day = spent.day.plus(amount);
        let of: Option<&str> = row.try_get("conversation").ok();
        if of.is_none_or(|of| of == conversation.as_str()) {
            spent.thread = spent.thread.plus(amount);
        }
    }
    spent
}

async fn reserve(
    store: &SqliteStore,
    attempt: &str,
    conversation: &ConversationId,
    worst: Option<Usd>,
    caps: &SpendCaps,
    at: Timestamp,
) -> Result<Result<Usd, Overspend>, Fault> {
    let mut tx = store.begin().await?;
    let known: Option<i64> = sqlx::query_scalar("select worst from spend where attempt = $1")
        .bind(attempt)
        .fetch_optional(&mut *tx)
        .await?;
    if let Some(known) = known {
        return Ok(Ok(Usd::from_micros(u64::try_from(known).unwrap_or(0))));
    }
    let rows = spend_rows().fetch(day_of(at)).fetch_all(&mut *tx).await?;
    let amount = match caps.admit(sum(&rows, conversation), worst) {
        Ok(amount) => amount,
        Err(over) => return Ok(Err(over)),
    };
    sqlx::query(
        "insert into spend (attempt, conversation, day, worst, cost) values ($1, $2, $3, $4, null)",
    )
    .bind(attempt)
    .bind(conversation.as_str())
    .bind(day_of(at))
    .bind(micros(amount))
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Ok(amount))
}

async fn settle(store: &SqliteStore, attempt: &str, cost: Option<Usd>) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    match cost {
        Some(cost) => {
            sqlx::query("update spend set cost = $2 where attempt = $1 and cost is null")
                .bind(attempt)
                .bind(micros(cost))
                .execute(&mut *tx)
                .await?
        }
        None => {
            sqlx::query("delete from spend where attempt = $1 and cost is null")
                .bind(attempt)
                .execute(&mut *tx)
                .await?
        }
    };
    tx.commit().await?;
    Ok(())
}

fn micros(amount: Usd) -> i64 {
    i64::try_from(amount.micros()).unwrap_or(i64::MAX)
}
