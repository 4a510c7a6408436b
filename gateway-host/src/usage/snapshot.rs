//! The snapshot file, read once per change. Its identity (device, inode, size, time of change) is asked before each use,
//! which costs one `stat`; only another identity costs a read.
//!
//! Publishers are not all atomic, so a text that is no JSON is read again shortly after, and if it stays so the last good
//! one is kept. A missing file is an empty registry.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::usage::Reading;
use gateway_core::usage::portal::{self, PortalFault};

/// A larger snapshot is not read: 10,000 accounts need a tenth of this.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How often a torn text is read again, and how long apart. Bounded well below what a person would notice.
const TORN_READS: u32 = 3;
const TORN_PAUSE: Duration = Duration::from_millis(15);

/// Why the snapshot was not (wholly) used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotFault {
    #[error("the usage snapshot {path} cannot be read: {why}. Check the permissions of the file and its folders")]
    Unreadable { path: PathBuf, why: String },
    #[error("the usage snapshot {path} is not a regular file")]
    NotAFile { path: PathBuf },
    #[error("the usage snapshot {path} has {bytes} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("the usage snapshot {path} is damaged: {why}")]
    Damaged { path: PathBuf, why: PortalFault },
}

/// The snapshot's readings as last read.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    seen: Option<Identity>,
    readings: Arc<[Reading]>,
    fault: Option<SnapshotFault>,
}

/// What tells one content of the file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Snapshot {
    /// Remembers where the snapshot is; nothing is read yet. The file may be a symbolic link, and may be missing.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), seen: None, readings: Arc::new([]), fault: None }
    }

    /// The readings of the last [`refresh`](Self::refresh).
    pub fn readings(&self) -> Arc<[Reading]> {
        Arc::clone(&self.readings)
    }

    /// Why the file was not used as it is; `None` = it was, or there is none.
    pub fn fault(&self) -> Option<&SnapshotFault> {
        self.fault.as_ref()
    }

    /// Whether the file is another one than the one last read; one `stat`.
    pub fn is_outdated(&self) -> bool {
        let identity = std::fs::metadata(&self.path).ok().as_ref().map(Identity::of);
        identity != self.seen || matches!(self.fault, Some(SnapshotFault::Unreadable { .. }))
    }

    /// Reads the file if it has changed; returns whether the readings may differ now. Blocks on the disk.
    pub fn refresh(&mut self) -> bool {
        if !self.is_outdated() {
            return false;
        }
        let (seen, read) = read_settled(&self.path);
        self.seen = seen;
        match read {
            Ok(readings) => {
                self.readings = readings.into();
                self.fault = None;
            }
            // The last good one is better than nothing; its age is judged reading by reading.
            Err(fault @ SnapshotFault::Damaged { .. }) => self.fault = Some(fault),
            Err(fault) => {
                self.readings = Arc::new([]);
                self.fault = Some(fault);
            }
        }
        true
    }
}

/// Reads, and reads again where the text was caught half written.
fn read_settled(path: &Path) -> (Option<Identity>, Result<Vec<Reading>, SnapshotFault>) {
    let mut read = read_once(path);
    for _ in 1..TORN_READS {
        if !matches!(read.1, Err(SnapshotFault::Damaged { .. })) {
            break;
        }
        std::thread::sleep(TORN_PAUSE);
        read = read_once(path);
    }
    read
}

fn read_once(path: &Path) -> (Option<Identity>, Result<Vec<Reading>, SnapshotFault>) {
    match read_bytes(path) {
        Ok(None) => (None, Ok(Vec::new())),
        Ok(Some((identity, bytes))) => {
            let portal = portal::parse(&bytes);
            let read = match portal.fault {
                None => Ok(portal.readings),
                Some(why) => Err(SnapshotFault::Damaged { path: path.to_owned(), why }),
            };
            (Some(identity), read)
        }
        Err((identity, fault)) => (identity, Err(fault)),
    }
}

type Bytes = Option<(Identity, Vec<u8>)>;

/// The file's bytes with the identity they were read under; `None` = there is no file.
fn read_bytes(path: &Path) -> Result<Bytes, (Option<Identity>, SnapshotFault)> {
    let unreadable = |why: io::Error| {
        let identity = std::fs::metadata(path).ok().as_ref().map(Identity::of);
        (identity, SnapshotFault::Unreadable { path: path.to_owned(), why: why.to_string() })
    };
    // Asked before it is opened: opening a named pipe would wait for a writer.
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(unreadable(why)),
    };
    if !found.is_file() {
        return Err((Some(Identity::of(&found)), SnapshotFault::NotAFile { path: path.to_owned() }));
    }
    let file = File::open(path).map_err(unreadable)?;
    let identity = Identity::of(&file.metadata().map_err(unreadable)?);
    let mut bytes = Vec::new();
    // The cap holds for what is read, not for what was promised: the file may grow meanwhile.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if identity.bytes.max(bytes.len() as u64) > MAX_BYTES {
        let bytes = identity.bytes.max(bytes.len() as u64);
        return Err((Some(identity), SnapshotFault::TooLarge { path: path.to_owned(), bytes }));
    }
    Ok(Some((identity, bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use super::*;

    const ONE: &str = r#"{"providers":[{"accounts":[{"provider_slug":"a","observed_at":1789981200,
        "windows":[{"key":"five_hour","status":"rejected","resets_at":1789991200}]}]}]}"#;

    fn put(path: &Path, text: &str) {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_missing_file_is_an_empty_registry_and_its_appearance_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.json");
        let mut snapshot = Snapshot::at(&path);
        snapshot.refresh();
        assert!(snapshot.readings().is_empty() && snapshot.fault().is_none());
        assert!(!snapshot.is_outdated());
        put(&path, ONE);
        assert!(snapshot.refresh());
        assert_eq!(snapshot.readings().len(), 1);
        assert!(!snapshot.refresh(), "unchanged: nothing is read");
        fs::remove_file(&path).unwrap();
        assert!(snapshot.refresh());
        assert!(snapshot.readings().is_empty());
    }

    #[test]
    fn a_symbolic_link_is_followed_and_a_replaced_target_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("usage.json"));
        put(&real, ONE);
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut snapshot = Snapshot::at(&link);
        snapshot.refresh();
        assert_eq!(snapshot.readings().len(), 1);
        let other = dir.path().join("other");
        put(&other, r#"{"providers":[]}"#);
        fs::rename(&other, &real).unwrap();
        snapshot.refresh();
        assert!(snapshot.readings().is_empty());
    }

    #[test]
    fn a_damaged_text_keeps_the_last_good_one_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.json");
        put(&path, ONE);
        let mut snapshot = Snapshot::at(&path);
        snapshot.refresh();
        put(&path, ONE.get(..90).unwrap());
        snapshot.refresh();
        assert_eq!(snapshot.readings().len(), 1);
        assert!(snapshot.fault().unwrap().to_string().contains("usage.json is damaged: not JSON"));
        put(&path, ONE);
        snapshot.refresh();
        assert!(snapshot.fault().is_none());
    }

    #[test]
    fn a_hundred_megabytes_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.json");
        File::create(&path).unwrap().set_len(100 * 1024 * 1024).unwrap();
        let mut snapshot = Snapshot::at(&path);
        snapshot.refresh();
        assert!(matches!(snapshot.fault(), Some(SnapshotFault::TooLarge { bytes: 104_857_600, .. })));
        assert!(!snapshot.is_outdated());
    }

    #[test]
    fn a_folder_or_a_pipe_is_named_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut snapshot = Snapshot::at(dir.path());
        snapshot.refresh();
        assert!(matches!(snapshot.fault(), Some(SnapshotFault::NotAFile { .. })));
    }
}
