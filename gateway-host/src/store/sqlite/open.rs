//! Opening the file: modes, connection options, schema. Everything that can be wrong with the place is found here, each
//! with its hint.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::super::StoreError;
use super::SqliteStore;
use super::fault::{Kind, kind_of, way_out};

/// The schema, step by step. A step that was released is never edited: a new one is added.
pub(super) const STEPS: &[Step] = &[
    (1, "first", include_str!("../migrations/0001_first.sql")),
    (
        2,
        "registry",
        include_str!("../migrations/0002_registry.sql"),
    ),
    (
        3,
        "conversations",
        include_str!("../migrations/0003_conversations.sql"),
    ),
    (
        4,
        "operators",
        include_str!("../migrations/0004_operators.sql"),
    ),
    (
        5,
        "generations",
        include_str!("../migrations/0005_generations.sql"),
    ),
    (6, "routing", include_str!("../migrations/0006_routing.sql")),
];

/// Version, name, statements.
pub(super) type Step = (i64, &'static str, &'static str);

/// How long a write waits for another process's transaction; ours take milliseconds.
const BUSY: Duration = Duration::from_secs(10);
const READERS: u32 = 4;

pub(super) async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let place = path.to_owned();
    // File locks block: not on the runtime's threads.
    let lock = tokio::task::spawn_blocking(move || prepare(&place))
        .await
        .map_err(|gone| open_error(path, gone.to_string(), ""))?
        .map_err(|error| io_error(path, &error))?;
    let options = options(path);
    let writer = SqlitePoolOptions::new()
        .max_connections(1)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // A full disk makes SQLite end the transaction by itself; sqlx 0.9.0 still counts it as open and would refuse every
        // later one on that connection. Such a connection is replaced.
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
        .connect_with(
            options
                .clone()
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full),
        )
        .await
        .map_err(|error| database_error(path, &error))?;
    let migrated = migrator(STEPS).run(&writer).await;
    drop(lock);
    migrated.map_err(|error| migrate_error(path, error))?;
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .min_connections(0)
        .test_before_acquire(false)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(SqliteStore {
        path: path.to_owned(),
        writer,
        readers,
    })
}

pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .disable_statement_logging()
}

pub(super) fn migrator(steps: &[Step]) -> Migrator {
    let steps = steps.iter().map(|(version, name, sql)| {
        Migration::new(
            *version,
            (*name).into(),
            MigrationType::Simple,
            (*sql).into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(steps.collect())
}

/// Makes folder and file with their modes and takes the migration lock: SQLite has none that spans several statements
/// of several processes.
fn prepare(path: &Path) -> io::Result<File> {
    let folder = folder_of(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        // The name must survive power loss as the content does.
        Ok(file) => {
            file.sync_all()?;
            File::open(&folder)?.sync_all()?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => tighten(path)?,
        Err(error) => return Err(error),
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(PathBuf::from(name))?;
    lock.lock()?;
    Ok(lock)
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Takes other people's rights off a file that has some.
fn tighten(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

fn open_error(path: &Path, why: String, hint: &'static str) -> StoreError {
    StoreError::Open {
        path: path.display().to_string(),
        why,
        hint,
    }
}

fn io_error(path: &Path, error: &io::Error) -> StoreError {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FREE_SPACE,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => MAKE_WRITABLE,
        _ => CHECK_PLACE,
    };
    open_error(path, error.to_string(), hint)
}

fn database_error(path: &Path, error: &sqlx::Error) -> StoreError {
    let kind = kind_of(error);
    let why = kind
        .words()
        .map_or_else(|| error.to_string(), str::to_owned);
    match kind {
        Kind::Damaged => open_error(path, format!("{error}. {}", way_out(path)), MOVE_ASIDE),
        Kind::Full => open_error(path, why, FREE_SPACE),
        Kind::ReadOnly => open_error(path, why, MAKE_WRITABLE),
        Kind::Busy => open_error(path, why, END_OTHER),
        Kind::Io | Kind::CannotOpen | Kind::Other => open_error(path, why, CHECK_PLACE),
    }
}

fn migrate_error(path: &Path, error: MigrateError) -> StoreError {
    let newest = STEPS.last().map_or(0, |(version, ..)| *version);
    match error {
        MigrateError::VersionMissing(found) if found > newest => open_error(
            path,
            format!("it was made by a newer baton (schema {found}, this one knows {newest})"),
            "Use the newer baton, or another BATON_HOME",
        ),
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            database_error(path, &error)
        }
        other => open_error(
            path,
            format!("its schema is not ours: {other}"),
            CHECK_PLACE,
        ),
    }
}

const FREE_SPACE: &str = "Free space on that disk and start again";
const MAKE_WRITABLE: &str = "Make the state folder and its files writable for this user";
const CHECK_PLACE: &str =
    "Check that the state folder exists, is a folder and belongs to this user";
const END_OTHER: &str = "Look for another baton that hangs (`baton doctor`) and end it";
const MOVE_ASIDE: &str = "The file is kept as it is until you move it";
