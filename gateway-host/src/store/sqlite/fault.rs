//! What SQLite says, in words that tell people what to do. One table from result codes to faults.

use std::path::Path;

use sqlx::error::DatabaseError;

use super::super::StoreError;

/// What was being done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Read,
    Write,
}

/// Either a fault of the database or an answer that is already ours.
#[derive(Debug)]
pub(super) enum Fault {
    Database(sqlx::Error),
    Ours(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

impl Fault {
    pub(super) fn into_store_error(self, doing: Doing, path: &Path) -> StoreError {
        match self {
            Self::Ours(error) => error,
            Self::Database(error) => translate(&error, doing, path),
        }
    }
}

fn translate(error: &sqlx::Error, doing: Doing, path: &Path) -> StoreError {
    let shown = path.display();
    let kind = kind_of(error);
    if kind == Kind::Damaged {
        return StoreError::Damaged {
            what: format!("the file {shown}"),
            why: format!("{error}. {}", way_out(path)),
        };
    }
    let text = match kind.words() {
        Some(words) => format!("{shown}: {words}"),
        None => format!("{shown}: {error}"),
    };
    match doing {
        Doing::Read => StoreError::Read(text),
        Doing::Write => StoreError::Write(text),
    }
}

/// What to do about a damaged file. We never touch it ourselves: it may be the only copy of somebody's request.
pub(super) fn way_out(path: &Path) -> String {
    let shown = path.display();
    format!(
        "Nothing was changed. Stop baton, keep the file with `mv {shown} {shown}.damaged` (and its -wal beside it, if any), then start again: a new store is made"
    )
}

/// The faults that need words of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Full,
    ReadOnly,
    Damaged,
    Io,
    CannotOpen,
    Busy,
    Other,
}

impl Kind {
    pub(super) fn words(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("the disk is full"),
            Self::ReadOnly => Some("the file or its disk is read-only"),
            Self::Io => Some("the disk reported an input/output error"),
            Self::CannotOpen => Some("the file cannot be opened"),
            Self::Busy => Some("another process has held the write lock for too long"),
            Self::Damaged | Self::Other => None,
        }
    }
}

pub(super) fn kind_of(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::Database(database) => kind_of_code(database.as_ref()),
        sqlx::Error::PoolTimedOut => Kind::Busy,
        _ => Kind::Other,
    }
}

/// Result codes of SQLite 3; the low byte is the primary code (<https://sqlite.org/rescode.html>).
fn kind_of_code(error: &dyn DatabaseError) -> Kind {
    let code: Option<u32> = error.code().and_then(|code| code.parse().ok());
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => Kind::Busy,
        Some(8) => Kind::ReadOnly,
        Some(10) => Kind::Io,
        Some(11 | 26) => Kind::Damaged,
        Some(13) => Kind::Full,
        Some(14) => Kind::CannotOpen,
        _ => Kind::Other,
    }
}
