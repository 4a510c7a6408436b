//! Which gateway processes live. Each holds a lock on a file of its own for as long as it runs; the kernel lets go of it
//! however the process ends, so a turn whose owner's lock can be taken has no owner any more. Process ids are never
//! asked: they are used again.

pub mod leftovers;

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::config::RootPath;

/// The files this process holds. Also asked, not only the kernel: probing our own file would not show it as taken on
/// every file system.
static OURS: LazyLock<Mutex<HashMap<PathBuf, File>>> = LazyLock::new(Mutex::default);

/// This process as an owner of turns. Dropping it ends the ownership.
#[derive(Debug)]
pub struct Instance {
    id: String,
    path: PathBuf,
}

/// The lock of this process could not be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make {path}: {source}. Check that the state folder is writable for this user and has space"
)]
pub struct InstanceError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl Instance {
    /// Takes a new id and its lock; to be done before the first turn row names the id.
    pub fn start(root: &RootPath) -> Result<Self, InstanceError> {
        let folder = folder_of(root);
        let id = Uuid::new_v4().to_string();
        let path = file_of(&folder, &id);
        match hold(&folder, &path) {
            Ok(file) => {
                OURS.lock().insert(path.clone(), file);
                Ok(Self { id, path })
            }
            Err(source) => Err(InstanceError { path, source }),
        }
    }

    /// The name turns are owned by. A UUID.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The file goes first: nobody can find one that is unlocked but alive.
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the lock file of this process was gone already");
        }
        OURS.lock().remove(&self.path);
    }
}

/// Whether the process that goes by this id still runs. An id that was never one is dead; a doubt (a lock file that
/// cannot be read) counts as alive, because a turn taken from the living would run twice.
pub fn is_alive(root: &RootPath, owner_id: &str) -> bool {
    // An id is a name of ours; anything else must not become a path.
    if Uuid::try_parse(owner_id).is_err() {
        return false;
    }
    let path = file_of(&folder_of(root), owner_id);
    !matches!(probe(&path), Probe::Dead(_) | Probe::Gone)
}

/// Ends what dead processes left running, removes their lock files and returns their ids. Call it after their turns were adopted or not at all:
/// an id without a file is dead too.
pub fn remove_dead(root: &RootPath) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder_of(root)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut dead = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let Some(id) = id_of(&path) else { continue };
        if let Probe::Dead(held) = probe(&path) {
            leftovers::end(&id);
            match std::fs::remove_file(&path) {
                Ok(()) => dead.push(id),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            drop(held);
        }
    }
    Ok(dead)
}

enum Probe {
    Ours,
    Alive,
    /// Nobody holds it; we do, while this lives.
    Dead(File),
    Gone,
}

fn probe(path: &Path) -> Probe {
    if OURS.lock().contains_key(path) {
        return Probe::Ours;
    }
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Probe::Gone,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a lock file cannot be read; its owner counts as alive");
            return Probe::Alive;
        }
    };
    match file.try_lock() {
        Ok(()) => Probe::Dead(file),
        Err(TryLockError::WouldBlock) => Probe::Alive,
        Err(TryLockError::Error(error)) => {
            tracing::warn!(path = %path.display(), %error, "a lock cannot be asked; its owner counts as alive");
            Probe::Alive
        }
    }
}

/// Makes the file and locks it. Another process may look between the two and remove it as dead: then a new one is made.
fn hold(folder: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        file.lock()?;
        if is_still_named(&file, path)? {
            return Ok(file);
        }
    }
}

fn is_still_named(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn folder_of(root: &RootPath) -> PathBuf {
    root.0.join("state").join("instances")
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.lock"))
}

fn id_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".lock")?;
    Uuid::try_parse(name).ok()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    const CHILD_ROOT: &str = "BATON_TEST_INSTANCE_ROOT";

    fn temp_root() -> (tempfile::TempDir, RootPath) {
        let dir = tempfile::tempdir().unwrap();
        let root = RootPath(dir.path().to_owned());
        (dir, root)
    }

    #[test]
    fn we_are_alive_until_dropped_and_our_file_is_ours_alone() {
        let (_dir, root) = temp_root();
        let us = Instance::start(&root).unwrap();
        let other = Instance::start(&root).unwrap();
        assert_ne!(us.id(), other.id());
        assert!(is_alive(&root, us.id()));
        assert_eq!(remove_dead(&root).unwrap(), Vec::<String>::new());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&us.path), mode(&folder_of(&root))), (0o600, 0o700));
        let (id, path) = (us.id().to_owned(), us.path.clone());
        drop(us);
        assert!(!is_alive(&root, &id));
        assert!(!path.exists());
        assert!(is_alive(&root, other.id()));
    }

    #[test]
    fn what_is_no_id_is_dead_and_no_path() {
        let (_dir, root) = temp_root();
        for id in [
            "",
            "../../etc/passwd",
            "nobody",
            "9a0e2c3e-0000-4000-8000-000000000000",
        ] {
            assert!(!is_alive(&root, id), "{id}");
        }
        assert_eq!(remove_dead(&root).unwrap(), Vec::<String>::new());
    }

    /// The child of the next test: says its id and waits to be killed.
    #[test]
    fn child_holds_an_instance() {
        let Ok(root) = std::env::var(CHILD_ROOT) else {
            return;
        };
        let instance = Instance::start(&RootPath(root.into())).unwrap();
        println!("id={}", instance.id());
        io::stdin().lines().for_each(drop);
    }

    #[test]
    fn a_killed_process_is_seen_as_dead() {
        let (_dir, root) = temp_root();
        let (mut child, id) = start_child(&root);
        assert!(is_alive(&root, &id));
        assert_eq!(remove_dead(&root).unwrap(), Vec::<String>::new());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(&root, &id));
        assert_eq!(remove_dead(&root).unwrap(), vec![id.clone()]);
        assert!(!is_alive(&root, &id));
    }

    #[expect(clippy::disallowed_methods, reason = "the test kills its own child")]
    fn start_child(root: &RootPath) -> (Child, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "instance::tests::child_holds_an_instance",
                "--nocapture",
            ])
            .env(CHILD_ROOT, &root.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let id = lines
            .map(Result::unwrap)
            .find_map(|line| line.split_once("id=").map(|(_, id)| id.to_owned()))
            .expect("the child says its id");
        (child, id)
    }
}
