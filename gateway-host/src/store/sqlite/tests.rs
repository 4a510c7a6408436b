//! What can be wrong with the file: each a clear message with a hint, and nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gateway_core::handoff::HandoffState;
use gateway_core::ids::{HandoffId, InboundId, TurnId};
use gateway_core::journal::{JournalEntry, TurnStatus};
use jiff::Timestamp;
use tempfile::TempDir;

use super::super::contract::samples::{at, close, handoff, lane, turn};
use super::super::{Store, StoreError};
use super::SqliteStore;

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state").join("baton.db");
    (dir, path)
}

async fn sight(store: &SqliteStore, id: &str) -> Result<bool, StoreError> {
    let id = InboundId::new(id);
    store
        .first_sight("console", &id, Timestamp::UNIX_EPOCH)
        .await
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(sight(&store, "m").await.unwrap());
    let wal = path.with_extension("db-wal");
    assert_eq!(
        (mode(path.parent().unwrap()), mode(&path), mode(&wal)),
        (0o700, 0o600, 0o600)
    );
    store.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    SqliteStore::open(&path).await.unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn the_promises_of_sqlite_are_switched_on() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    let mode: String = sqlx::query_scalar("pragma journal_mode")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    let sync: i64 = sqlx::query_scalar("pragma synchronous")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    let keys: i64 = sqlx::query_scalar("pragma foreign_keys")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    assert_eq!((mode.as_str(), sync, keys), ("wal", 2, 1));
    let refused = sqlx::query("delete from turns")
        .execute(&store.readers)
        .await;
    assert!(refused.is_err(), "readers do not write");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_kept_and_the_way_out_is_said() {
    let (_dir, path) = place();
    fs::create_dir(path.parent().unwrap()).unwrap();
    let junk = vec![b'x'; 8192];
    fs::File::create(&path).unwrap();
    std::io::copy(
        &mut junk.as_slice(),
        &mut fs::File::options().write(true).open(&path).unwrap(),
    )
    .unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");
    assert!(
        error.contains(&format!("mv {0} {0}.damaged", path.display())),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), junk);
    fs::rename(&path, path.with_extension("damaged")).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(sight(&store, "m").await.unwrap());
}

#[tokio::test]
async fn a_damaged_page_is_reported_not_repaired() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(sight(&store, "m").await.unwrap());
    let root: i64 = sqlx::query_scalar("select rootpage from sqlite_schema where name = 'inbound'")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    let size: i64 = sqlx::query_scalar("pragma page_size")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    store.close().await;
    let mut bytes = fs::read(&path).unwrap();
    let start = usize::try_from((root - 1) * size).unwrap();
    bytes[start..start + 512].fill(0xee);
    std::io::copy(&mut bytes.as_slice(), &mut fs::File::create(&path).unwrap()).unwrap();

    let store = SqliteStore::open(&path).await.unwrap();
    let error = sight(&store, "n").await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("mv "), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_full_disk_fails_the_write_and_the_store_goes_on() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(sight(&store, "before").await.unwrap());
    // SQLite's own limit gives the same answer as a disk without space.
    let pages: i64 = sqlx::query_scalar("pragma page_count")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    let limit = format!("pragma max_page_count = {pages}");
    sqlx::query(sqlx::AssertSqlSafe(limit))
        .execute(&store.writer)
        .await
        .unwrap();
    let error = sight(&store, &"long".repeat(5000)).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Write(why) if why.contains("the disk is full")),
        "{error}"
    );
    // The next write gets a sound connection, which has no such limit: as if space had been made.
    assert!(sight(&store, &"long".repeat(5000)).await.unwrap());
    assert!(!sight(&store, "before").await.unwrap());
    let sync: i64 = sqlx::query_scalar("pragma synchronous")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    assert_eq!(sync, 2, "the new connection promises the same");
}

#[tokio::test]
async fn a_read_only_database_is_named() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    sqlx::query("pragma query_only = on")
        .execute(&store.writer)
        .await
        .unwrap();
    let error = sight(&store, "m").await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Write(why) if why.contains("read-only")),
        "{error}"
    );
}

#[tokio::test]
async fn a_place_that_is_no_folder_is_said() {
    let (dir, _) = place();
    let file = dir.path().join("state");
    fs::File::create(&file).unwrap();
    let error = SqliteStore::open(file.join("baton.db")).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Open { hint, .. } if hint.contains("state folder")),
        "{error}"
    );
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    sqlx::query("insert into _sqlx_migrations (version, description, success, checksum, execution_time) values (99, 'later', true, x'00', 0)").execute(&store.writer).await.unwrap();
    store.close().await;
    let error = SqliteStore::open(&path).await.unwrap_err().to_string();
    assert!(error.contains("newer baton (schema 99"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_new_file_at_once() {
    let (_dir, path) = place();
    let opening: Vec<_> = (0..8)
        .map(|_| tokio::spawn(SqliteStore::open(path.clone())))
        .collect();
    for handle in opening {
        handle.await.unwrap().unwrap();
    }
}

/// Two sealed handoffs, the first damaged in this way.
async fn with_damage(store: &SqliteStore, damage: &'static str) {
    for (id, seal) in [("t1", "h1"), ("t2", "h2")] {
        assert!(store.open_turn(&turn(&lane("a"), id), &[]).await.unwrap());
        let mut end = close(id, TurnStatus::Cut);
        end.seal = Some((handoff(&lane("a"), id, seal), HandoffState::Armed));
        assert!(store.close_turn(&end).await.unwrap());
    }
    sqlx::query(damage).execute(&store.writer).await.unwrap();
}

#[tokio::test]
async fn a_damaged_handoff_is_moved_aside_alone_and_its_text_kept() {
    for damage in [
        "update handoffs set payload = '{\"version\":1,' where id = 'h1'",
        "update handoffs set payload = cast(x'ff00fe' as text) where id = 'h1'",
    ] {
        let (_dir, path) = place();
        let store = SqliteStore::open(&path).await.unwrap();
        with_damage(&store, damage).await;
        for _ in 0..2 {
            let found = store.handoffs_of(&lane("a")).await.unwrap();
            let seen: Vec<_> = found
                .iter()
                .map(|h| (h.handoff.id.as_str(), h.state, h.revision))
                .collect();
            assert_eq!(
                seen,
                [
                    ("h2", HandoffState::Armed, 1),
                    ("h1", HandoffState::Corrupt, 2)
                ]
            );
            assert_eq!(found[1].handoff.turn, TurnId::new("t1"));
        }
        let claim = [(HandoffId::new("h1"), 2)];
        assert!(
            !store
                .open_turn(&turn(&lane("a"), "t3"), &claim)
                .await
                .unwrap()
        );
        store.sweep(at(1)).await.unwrap();
        store.sweep(at(8)).await.unwrap();
        let kept: i64 = sqlx::query_scalar(
            "select length(cast(payload as blob)) from handoffs where id = 'h1'",
        )
        .fetch_one(&store.writer)
        .await
        .unwrap();
        assert!(kept > 2);
        store.sweep(at(9)).await.unwrap();
        assert!(
            store
                .handoff(&HandoffId::new("h1"))
                .await
                .unwrap()
                .is_none()
        );
    }
}

#[tokio::test]
async fn a_damaged_handoff_is_not_expired_or_dropped_unseen() {
    let damage = "update handoffs set payload = 'x' where id = 'h1'";
    for by_sweep in [true, false] {
        let (_dir, path) = place();
        let store = SqliteStore::open(&path).await.unwrap();
        with_damage(&store, damage).await;
        let (ended, as_what) = if by_sweep {
            (store.sweep(at(3)).await.unwrap(), HandoffState::Expired)
        } else {
            let (_, dropped) = store.new_conversation(&lane("a"), at(3)).await.unwrap();
            (dropped, HandoffState::Discarded)
        };
        let states: Vec<_> = ended.iter().map(|h| h.state).collect();
        assert_eq!(states, [as_what, HandoffState::Corrupt]);
        assert_eq!(store.handoffs_of(&lane("a")).await.unwrap(), ended);
    }
}

#[tokio::test]
async fn a_damaged_journal_entry_costs_only_itself() {
    let (_dir, path) = place();
    let store = SqliteStore::open(&path).await.unwrap();
    store.open_turn(&turn(&lane("a"), "t1"), &[]).await.unwrap();
    let stopped = |day| JournalEntry::Stopped { at: at(day) };
    let id = TurnId::new("t1");
    store
        .append(&id, &[stopped(1), stopped(2), stopped(3)])
        .await
        .unwrap();
    sqlx::query("update journal set entry = '?' where seq = 2")
        .execute(&store.writer)
        .await
        .unwrap();
    assert_eq!(store.journal(&id).await.unwrap(), [stopped(1), stopped(3)]);
}

#[tokio::test]
async fn conversations_left_before_there_was_a_list_are_in_it() {
    use sqlx::sqlite::SqlitePoolOptions;

    let (_dir, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(&path).unwrap();
    let old = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(super::open::options(&path))
        .await
        .unwrap();
    let steps = super::open::STEPS.get(..2).unwrap();
    super::open::migrator(steps).run(&old).await.unwrap();
    let rows = "insert into turns (turn, profile, session, conversation, inbound, origin, platform, \
        address, request, started_at, owner, carries, status, ended_at) values \
        ('t1', 'default', 'lane', 'c1', '', 'human', 'console', '', 'one', 1000, '', '[]', 'answered', 2000), \
        ('t2', 'default', 'lane', 'c1', '', 'human', 'console', '', 'two', 3000, '', '[]', 'cut', 4000), \
        ('t3', 'default', 'lane', 'c2', '', 'human', 'console', '', 'three', 2500, '', '[]', 'open', null), \
        ('t4', 'default', 'lane', 'now', '', 'human', 'console', '', 'four', 9000, '', '[]', 'open', null), \
        ('t5', 'default', 'other', 'c3', '', 'human', 'console', '', 'five', 1000, '', '[]', 'open', null)";
    sqlx::query(rows).execute(&old).await.unwrap();
    let current = "insert into sessions (profile, session, conversation, started_at) \
        values ('default', 'lane', 'now', 9000)";
    sqlx::query(current).execute(&old).await.unwrap();
    old.close().await;

    let store = SqliteStore::open(&path).await.unwrap();
    let of = |session: &str| super::super::Lane {
        profile: "default".into(),
        session: session.into(),
    };
    let found = store.earlier_conversations(&of("lane")).await.unwrap();
    let short: Vec<_> = found
        .iter()
        .map(|row| {
            let at = (row.started_at.as_second(), row.used_at.as_second());
            (
                row.number,
                row.conversation.as_str(),
                at,
                row.first_request.as_str(),
            )
        })
        .collect();
    assert_eq!(
        short,
        [(1, "c1", (1, 4), "one"), (2, "c2", (2, 2), "three")]
    );
    let other = store.earlier_conversations(&of("other")).await.unwrap();
    assert_eq!(other.len(), 1);
}
