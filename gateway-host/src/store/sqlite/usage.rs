//! The usage registry: the newest reading of each window, and the counter that tells other processes it changed.

use gateway_core::usage::Reading;
use sqlx::Row;

use super::super::{document, rules, scope_text, tidy};
use super::fault::Fault;
use super::{SqliteStore, Tx};

pub(super) async fn readings(store: &SqliteStore) -> Result<Vec<Reading>, Fault> {
    let rows = sqlx::query("select reading from readings order by subscription, window_id, scope")
        .fetch_all(&store.readers)
        .await?;
    let read = |row| {
        let text: Option<String> = Row::try_get(row, "reading").ok();
        let reading = text.and_then(|text| serde_json::from_str(&text).ok());
        if reading.is_none() {
            tracing::warn!("a usage reading in the store is damaged and left out");
        }
        reading
    };
    Ok(rows.iter().filter_map(read).collect())
}

pub(super) async fn put(store: &SqliteStore, readings: &[Reading]) -> Result<(), Fault> {
    if readings.is_empty() {
        return Ok(());
    }
    let mut tx = store.begin().await?;
    let mut changed = false;
    for reading in readings {
        changed |= put_one(&mut tx, &tidy(reading)).await?;
    }
    if changed {
        sqlx::query("update counters set value = value + 1 where name = 'readings'")
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Whether anything changed.
async fn put_one(tx: &mut Tx, new: &Reading) -> Result<bool, Fault> {
    let scope = scope_text(new.scope.as_ref());
    let old = sqlx::query(
        "select reading from readings where subscription = $1 and window_id = $2 and scope = $3",
    )
    .bind(new.subscription.key())
    .bind(&new.window)
    .bind(&scope)
    .fetch_optional(&mut **tx)
    .await?;
    let text = document(new);
    if let Some(old_text) = old.and_then(|row| row.try_get::<String, _>("reading").ok())
        && (old_text == text || outranks(&old_text, new))
    {
        return Ok(false);
    }
    sqlx::query(
        "insert into readings (subscription, window_id, scope, reading) values ($1, $2, $3, $4) \
         on conflict (subscription, window_id, scope) do update set reading = excluded.reading",
    )
    .bind(new.subscription.key())
    .bind(&new.window)
    .bind(&scope)
    .bind(&text)
    .execute(&mut **tx)
    .await?;
    Ok(true)
}

/// Whether the stored reading stays; a damaged one never does.
fn outranks(old: &str, new: &Reading) -> bool {
    serde_json::from_str(old).is_ok_and(|old: Reading| !rules::replaces(&old, new))
}

pub(super) async fn revision(store: &SqliteStore) -> Result<i64, Fault> {
    let revision = sqlx::query_scalar("select value from counters where name = 'readings'")
        .fetch_optional(&store.readers)
        .await?;
    Ok(revision.unwrap_or(0))
}
