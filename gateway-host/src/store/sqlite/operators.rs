//! Paired operators.

use gateway_core::ids::ProfileId;
use sqlx::Row;

use super::super::PairedOperator;
use super::super::rules::from_ms;
use super::SqliteStore;
use super::fault::Fault;

pub(super) async fn pair(store: &SqliteStore, one: &PairedOperator) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "insert into operators (profile, platform, person, name, paired_at) \
         values ($1, $2, $3, $4, $5) on conflict (profile, platform, person) \
         do update set name = excluded.name, paired_at = excluded.paired_at",
    )
    .bind(one.profile.as_str())
    .bind(&one.platform)
    .bind(&one.person)
    .bind(&one.name)
    .bind(one.paired_at.as_millisecond())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

pub(super) async fn unpair(
    store: &SqliteStore,
    profile: &ProfileId,
    platform: &str,
) -> Result<u64, Fault> {
    let mut tx = store.begin().await?;
    let done = sqlx::query("delete from operators where profile = $1 and platform = $2")
        .bind(profile.as_str())
        .bind(platform)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(done.rows_affected())
}

pub(super) async fn all(store: &SqliteStore) -> Result<Vec<PairedOperator>, Fault> {
    let rows = sqlx::query(
        "select profile, platform, person, name, paired_at from operators \
         order by profile, platform, person",
    )
    .fetch_all(&store.readers)
    .await?;
    let read = |row: &sqlx::sqlite::SqliteRow| -> Result<PairedOperator, sqlx::Error> {
        Ok(PairedOperator {
            profile: ProfileId::new(row.try_get::<String, _>("profile")?),
            platform: row.try_get("platform")?,
            person: row.try_get("person")?,
            name: row.try_get("name")?,
            paired_at: from_ms(row.try_get("paired_at")?),
        })
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
