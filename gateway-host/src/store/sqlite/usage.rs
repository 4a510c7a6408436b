//! The usage registry: the newest reading of each window, who the logins are, when their surfaces may be asked again, and
//! the counter that tells other processes that something changed.
//!
//! A batch of readings costs a few statements whatever its size: turns that stream write here ten thousand times a second.

use std::collections::HashMap;

use gateway_core::usage::Reading;
use gateway_core::usage::identity::Login;
use gateway_core::usage::probe::ProbeState;
use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::{document, rules, scope_text, tidy};
use super::fault::Fault;
use super::{SqliteStore, Tx};

/// Rows per statement: five values each stay far below the 32,766 that one statement may bind.
const ROWS: usize = 500;

/// Subscription, window and scope, as they are keyed.
type Key = (String, String, String);

pub(super) async fn readings(store: &SqliteStore) -> Result<Vec<Reading>, Fault> {
    let rows = sqlx::query("select reading from readings order by subscription, window_id, scope")
        .fetch_all(&store.readers)
        .await?;
    Ok(rows.iter().filter_map(reading).collect())
}

pub(super) async fn since(store: &SqliteStore, seq: i64) -> Result<Vec<(i64, Reading)>, Fault> {
    let rows = sqlx::query("select seq, reading from readings where seq > $1 order by seq, subscription, window_id, scope")
        .bind(seq)
        .fetch_all(&store.readers)
        .await?;
    let read = |row| Some((Row::try_get(row, "seq").ok()?, reading(row)?));
    Ok(rows.iter().filter_map(read).collect())
}

fn reading(row: &SqliteRow) -> Option<Reading> {
    let text: Option<String> = row.try_get("reading").ok();
    let reading = text.and_then(|text| serde_json::from_str(&text).ok());
    if reading.is_none() {
        tracing::warn!("a usage reading in the store is damaged and left out");
    }
    reading
}

pub(super) async fn put(
    store: &SqliteStore,
    readings: &[Reading],
    now: Timestamp,
) -> Result<(), Fault> {
    let batch = newest_of_each(readings, now);
    if batch.is_empty() {
        return Ok(());
    }
    let mut tx = store.begin().await?;
    let stored = stored(&mut tx, &batch).await?;
    let changed: Vec<(&Key, String)> = batch
        .iter()
        .filter_map(|(key, new)| {
            let text = document(new);
            let stays = stored
                .get(key)
                .is_some_and(|old| *old == text || outranks(old, new, now));
            (!stays).then_some((key, text))
        })
        .collect();
    if !changed.is_empty() {
        let seq = grow(&mut tx).await?;
        for rows in changed.chunks(ROWS) {
            write(&mut tx, rows, seq).await?;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// What counts of the batch itself, each window once.
fn newest_of_each(readings: &[Reading], now: Timestamp) -> HashMap<Key, Reading> {
    let mut batch: HashMap<Key, Reading> = HashMap::new();
    for reading in readings {
        let new = tidy(reading);
        let key = (
            new.subscription.key().to_owned(),
            new.window.clone(),
            scope_text(new.scope.as_ref()),
        );
        match batch.get_mut(&key) {
            Some(old) if rules::replaces(old, &new, now) => *old = new,
            Some(_) => {}
            None => drop(batch.insert(key, new)),
        }
    }
    batch
}

/// The rows of the batch's subscriptions.
async fn stored(tx: &mut Tx, batch: &HashMap<Key, Reading>) -> Result<HashMap<Key, String>, Fault> {
    let mut names: Vec<&str> = batch.keys().map(|(name, ..)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut stored = HashMap::new();
    for names in names.chunks(ROWS) {
        let mut query = QueryBuilder::<Sqlite>::new(
            "select subscription, window_id, scope, reading from readings where subscription in (",
        );
        let mut list = query.separated(", ");
        for name in names {
            list.push_bind(*name);
        }
        query.push(")");
        for row in query.build().fetch_all(&mut **tx).await? {
            let key = (
                row.try_get("subscription")?,
                row.try_get("window_id")?,
                row.try_get("scope")?,
            );
            // A row that is no text is damaged, and replaced.
            stored.insert(key, row.try_get("reading").unwrap_or_default());
        }
    }
    Ok(stored)
}

async fn write(tx: &mut Tx, rows: &[(&Key, String)], seq: i64) -> Result<(), Fault> {
    let mut query = QueryBuilder::<Sqlite>::new(
        "insert into readings (subscription, window_id, scope, reading, seq) ",
    );
    query.push_values(rows, |mut row, ((subscription, window, scope), text)| {
        row.push_bind(subscription)
            .push_bind(window)
            .push_bind(scope)
            .push_bind(text)
            .push_bind(seq);
    });
    query.push(
        " on conflict (subscription, window_id, scope) \
         do update set reading = excluded.reading, seq = excluded.seq",
    );
    query.build().execute(&mut **tx).await?;
    Ok(())
}

/// Tells other processes that something changed; the new value of the counter.
async fn grow(tx: &mut Tx) -> Result<i64, Fault> {
    let seq = sqlx::query_scalar(
        "update counters set value = value + 1 where name = 'readings' returning value",
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(seq)
}

/// Whether the stored reading stays; a damaged one never does.
fn outranks(old: &str, new: &Reading, now: Timestamp) -> bool {
    serde_json::from_str(old).is_ok_and(|old: Reading| !rules::replaces(&old, new, now))
}

pub(super) async fn revision(store: &SqliteStore) -> Result<i64, Fault> {
    let revision = sqlx::query_scalar("select value from counters where name = 'readings'")
        .fetch_optional(&store.readers)
        .await?;
    Ok(revision.unwrap_or(0))
}

pub(super) async fn logins(store: &SqliteStore) -> Result<Vec<Login>, Fault> {
    let rows: Vec<String> = sqlx::query_scalar("select login from logins order by subscription")
        .fetch_all(&store.readers)
        .await?;
    let read = |text: &String| {
        let login = serde_json::from_str(text).ok();
        if login.is_none() {
            tracing::warn!("a login's identity in the store is damaged and left out");
        }
        login
    };
    Ok(rows.iter().filter_map(read).collect())
}

pub(super) async fn put_logins(store: &SqliteStore, logins: &[Login]) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    let mut changed = 0;
    for login in logins {
        changed += sqlx::query(
            "insert into logins (subscription, login) values ($1, $2) \
             on conflict (subscription) do update set login = excluded.login where logins.login <> excluded.login",
        )
        .bind(login.id.key())
        .bind(document(login))
        .execute(&mut *tx)
        .await?
        .rows_affected();
    }
    if changed > 0 {
        grow(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

pub(super) async fn probe_state(
    store: &SqliteStore,
    head: &str,
) -> Result<Option<ProbeState>, Fault> {
    let text: Option<String> = sqlx::query_scalar("select state from probes where head = $1")
        .bind(head)
        .fetch_optional(&store.readers)
        .await?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

pub(super) async fn put_probe_state(
    store: &SqliteStore,
    head: &str,
    state: &ProbeState,
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into probes (head, state) values ($1, $2) on conflict (head) do update set state = excluded.state",
    )
    .bind(head)
    .bind(document(state))
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}
