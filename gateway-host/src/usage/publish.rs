//! Our readings into the root's `usage.json`, for other processes and for people. Others publish into the same file, so it
//! is read, merged and replaced as a whole, under a lock file that is never deleted (deleting it would let two processes
//! hold two different locks of one name).

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_write_file::AtomicWriteFile;
use atomic_write_file::unix::OpenOptionsExt as _;
use gateway_core::usage::Reading;
use gateway_core::usage::portal::{self, write};
use jiff::Timestamp;
use serde_json::Value;

use super::snapshot::MAX_BYTES;
use crate::config::RootPath;

/// How long another publisher is waited for: 100 times 20 ms.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why readings were not published. They are in the store all the same.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("cannot write the usage registry {path}: {why}. Check free space and the permissions of its folder")]
    Io { path: PathBuf, why: io::Error },
    #[error("the usage registry {path} is held by another program; try again later")]
    Busy { path: PathBuf },
    #[error("the usage registry {path} is a symbolic link: it belongs to somebody else and is left alone")]
    Link { path: PathBuf },
    #[error("the usage registry {path} is larger than {MAX_BYTES} bytes and is left alone")]
    TooLarge { path: PathBuf },
}

/// Where a root publishes: `<root>/var/usage-portal/site/usage.json`.
pub fn place(root: &RootPath) -> PathBuf {
    root.0.join("var/usage-portal/site/usage.json")
}

/// Merges the readings into the root's file; returns whether it changed. Blocks on the disk and on other publishers.
pub fn publish(root: &RootPath, readings: &[Reading], now: Timestamp) -> Result<bool, PublishError> {
    let path = place(root);
    let failed = |why: io::Error| PublishError::Io { path: path.clone(), why };
    let folder = path.parent().unwrap_or(&root.0);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let _lock = lock(&path)?;
    let mut document = current(&path)?;
    if !write::put(&mut document, readings, now) {
        return Ok(false);
    }
    replace(&path, &document).map_err(failed)?;
    Ok(true)
}

/// Held until dropped.
fn lock(path: &Path) -> Result<File, PublishError> {
    let name = path.with_extension("json.lock");
    let failed = |why: io::Error| PublishError::Io { path: name.clone(), why };
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(&name)
        .map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(why)) => return Err(failed(why)),
        }
    }
    Err(PublishError::Busy { path: path.to_owned() })
}

/// The document as published; `Null` = there is none yet. One that is no JSON is moved aside, not overwritten.
fn current(path: &Path) -> Result<Value, PublishError> {
    let failed = |why: io::Error| PublishError::Io { path: path.to_owned(), why };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => return Err(PublishError::Link { path: path.to_owned() }),
        Ok(found) if found.len() > MAX_BYTES => {
            return Err(PublishError::TooLarge { path: path.to_owned() });
        }
        Ok(_) => {}
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Value::Null),
        Err(why) => return Err(failed(why)),
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    match portal::document(&bytes) {
        Ok(document) => Ok(document),
        Err(why) => {
            let aside = path.with_extension("json.damaged");
            tracing::warn!(%why, aside = %aside.display(), "the usage registry is damaged; moved aside");
            std::fs::rename(path, aside).map_err(failed)?;
            Ok(Value::Null)
        }
    }
}

fn replace(path: &Path, document: &Value) -> io::Result<()> {
    let mut file = AtomicWriteFile::options()
        .preserve_mode(false)
        .mode(0o600)
        .open(path)?;
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use gateway_core::usage::{ReadingSource, WindowStatus};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_789_981_200).unwrap()
    }

    fn reading(slug: &str) -> Reading {
        Reading {
            subscription: slug.into(),
            window: "five_hour".into(),
            scope: None,
            used_pct: Some(100.0),
            status: WindowStatus::Rejected,
            resets_at: Timestamp::from_second(1_789_991_200).ok(),
            duration_mins: Some(300),
            observed_at: Some(now()),
            source: ReadingSource::Failure,
        }
    }

    fn read(root: &RootPath) -> Vec<Reading> {
        portal::parse(&std::fs::read(place(root)).unwrap()).readings
    }

    fn seeded(text: &str) -> (tempfile::TempDir, RootPath) {
        let dir = tempfile::tempdir().unwrap();
        let root = RootPath(dir.path().to_owned());
        std::fs::create_dir_all(place(&root).parent().unwrap()).unwrap();
        File::create(place(&root)).unwrap().write_all(text.as_bytes()).unwrap();
        (dir, root)
    }

    #[test]
    fn what_is_published_is_private_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = RootPath(dir.path().join("home"));
        assert!(publish(&root, &[reading("a")], now()).unwrap());
        assert!(!publish(&root, &[reading("a")], now()).unwrap());
        assert_eq!(read(&root), vec![reading("a")]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place(&root)), 0o600);
        assert_eq!(mode(place(&root).parent().unwrap()), 0o700);
    }

    #[test]
    fn accounts_of_others_stay() {
        let (_dir, root) = seeded(r#"{"x":1,"providers":[{"id":"claude","accounts":[{"key":"k","provider_slug":"z","windows":[]}]}]}"#);
        publish(&root, &[reading("a")], now()).unwrap();
        let document: Value = serde_json::from_slice(&std::fs::read(place(&root)).unwrap()).unwrap();
        assert_eq!((&document["x"], &document["providers"][0]["accounts"][0]["key"]), (&1.into(), &"k".into()));
    }

    #[test]
    fn a_damaged_file_is_moved_aside() {
        let (_dir, root) = seeded("{half");
        publish(&root, &[reading("a")], now()).unwrap();
        assert_eq!(read(&root).len(), 1);
        assert_eq!(std::fs::read(place(&root).with_extension("json.damaged")).unwrap(), b"{half");
    }

    #[test]
    fn a_link_to_somebody_elses_file_is_left_alone() {
        let (dir, root) = seeded("{}");
        let real = dir.path().join("real.json");
        std::fs::rename(place(&root), &real).unwrap();
        std::os::unix::fs::symlink(&real, place(&root)).unwrap();
        let refused = publish(&root, &[reading("a")], now()).unwrap_err();
        assert!(matches!(refused, PublishError::Link { .. }));
        assert_eq!(std::fs::read(&real).unwrap(), b"{}");
    }

    #[test]
    fn publishers_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Arc::new(RootPath(dir.path().to_owned()));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let root = Arc::clone(&root);
                std::thread::spawn(move || publish(&root, &[reading(&format!("s{n}"))], now()).unwrap())
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        assert_eq!(read(&root).len(), 8);
    }
}
