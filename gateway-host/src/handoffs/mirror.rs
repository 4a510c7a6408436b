//! Each waiting handoff also as a plain file, for people who look into the folder.
//!
//! The store is the truth; nothing here is ever read back into a turn, so nothing here may fail one: what goes wrong comes
//! back as a text to log. Files hold the redacted form, are written whole or not at all, and belong to their owner alone.
//! Everything blocks on the disk: call it from a blocking thread.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use atomic_write_file::OpenOptions;
use atomic_write_file::unix::OpenOptionsExt as _;
use gateway_core::handoff::redact::Redactor;
use gateway_core::handoff::{Handoff, HandoffState, StoredHandoff, name, validity};
use gateway_core::ids::{HandoffId, SessionKey};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::ProfilePath;

/// How long a damaged file is kept beside the others.
const CORRUPT_LIFE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A temporary file this old has no writer any more: writing one takes milliseconds.
const WRITER_LIFE: SignedDuration = SignedDuration::from_mins(10);

/// The folder of plain handoff files of one profile.
#[derive(Debug, Clone)]
pub struct Mirror {
    folder: PathBuf,
}

/// What a sweep did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files removed because their handoff has expired.
    pub expired: usize,
    /// Temporary files of dead writers removed.
    pub reaped: usize,
    /// Damaged files removed a week after they were set aside.
    pub purged: usize,
    /// Damaged files set aside now; each is told once, for it is found once.
    pub set_aside: Vec<PathBuf>,
    /// What could not be done.
    pub warnings: Vec<String>,
}

/// A file as it is written: the redacted handoff with its state in front.
#[derive(Serialize)]
struct Page<'a> {
    state: HandoffState,
    #[serde(flatten)]
    handoff: &'a Handoff,
}

/// What of a file must be readable for it to be one of ours.
#[derive(Deserialize)]
struct Kept {
    id: HandoffId,
    created_at: Timestamp,
    expires_at: Timestamp,
}

/// What stands under a name.
enum Found {
    Nothing,
    Page(Kept),
    Damaged,
}

impl Mirror {
    /// The mirror below a profile's home; nothing is created before the first write.
    pub fn new(home: &ProfilePath) -> Self {
        Self {
            folder: home.0.join(name::FOLDER),
        }
    }

    /// The file of a lane, whether it exists or not.
    pub fn path(&self, session: &SessionKey) -> PathBuf {
        self.folder.join(name::file_name(session))
    }

    /// Brings the lane's file in line with this handoff: written while it can still be picked up or looked at, removed once
    /// it is done. A file of a newer handoff is left alone. `Some` = what went wrong, to be logged; the handoff is safe.
    #[must_use = "a warning nobody reads is a silent failure"]
    pub fn write(&self, stored: &StoredHandoff, redactor: &Redactor) -> Option<String> {
        let path = self.path(&stored.handoff.session);
        let done = match stored.state {
            HandoffState::Armed | HandoffState::Claimed | HandoffState::Stopped => {
                self.put(&path, stored, redactor)
            }
            HandoffState::Corrupt => set_aside_if_present(&path, stored.handoff.created_at),
            HandoffState::Acked
            | HandoffState::Discarded
            | HandoffState::Chained
            | HandoffState::Expired => self.retire(&path, &stored.handoff),
        };
        warning("update", &path, done)
    }

    /// Removes the lane's file, whatever it holds.
    #[must_use = "a warning nobody reads is a silent failure"]
    pub fn remove(&self, session: &SessionKey) -> Option<String> {
        let path = self.path(session);
        warning("remove", &path, remove(&path))
    }

    /// Removes expired files, damaged files set aside a week ago and temporary files of dead writers, and sets damaged ones aside.
    pub fn sweep(&self, now: Timestamp) -> Swept {
        let mut swept = Swept::default();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return swept,
            Err(why) => {
                swept
                    .warnings
                    .extend(warning("list", &self.folder, Err(why)));
                return swept;
            }
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            let done = sweep_one(&path, now, &mut swept);
            swept.warnings.extend(warning("sweep", &path, done));
        }
        swept
    }

    fn put(&self, path: &Path, stored: &StoredHandoff, redactor: &Redactor) -> io::Result<()> {
        let handoff = &stored.handoff;
        match look(path)? {
            Found::Page(kept) if kept.id != handoff.id && kept.created_at > handoff.created_at => {
                return Ok(());
            }
            Found::Damaged => set_aside(path, handoff.created_at)?,
            Found::Page(_) | Found::Nothing => self.prepare()?,
        }
        let page = Page {
            state: stored.state,
            handoff: &redactor.handoff(handoff),
        };
        let mut text = serde_json::to_vec_pretty(&page)?;
        text.push(b'\n');
        let mut file = OpenOptions::new()
            .mode(0o600)
            .preserve_mode(false)
            .open(path)?;
        file.write_all(&text)?;
        file.commit()
    }

    /// Makes the folder, for the owner alone, also where it was left open to others.
    fn prepare(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
    }

    fn retire(&self, path: &Path, handoff: &Handoff) -> io::Result<()> {
        match look(path)? {
            Found::Page(kept) if kept.id == handoff.id => remove(path),
            Found::Damaged => set_aside(path, handoff.created_at),
            Found::Page(_) | Found::Nothing => Ok(()),
        }
    }
}

/// The three kinds of files in the folder; the order matters, for a readable name may begin with a dot of its own.
fn sweep_one(path: &Path, now: Timestamp, swept: &mut Swept) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".json") {
        return sweep_page(path, now, swept);
    }
    if name.ends_with(".json.corrupt") {
        if older_than(path, now, CORRUPT_LIFE)? {
            remove(path)?;
            swept.purged += 1;
        }
    } else if name.starts_with('.')
        && name.contains(".json.")
        && older_than(path, now, WRITER_LIFE)?
    {
        remove(path)?;
        swept.reaped += 1;
    }
    Ok(())
}

fn sweep_page(path: &Path, now: Timestamp, swept: &mut Swept) -> io::Result<()> {
    match look(path)? {
        Found::Page(kept) if made_in_the_future(&kept, now) => {}
        Found::Page(kept) => {
            if now > kept.expires_at {
                remove(path)?;
                swept.expired += 1;
            }
            return Ok(());
        }
        Found::Nothing => return Ok(()),
        Found::Damaged => {}
    }
    set_aside(path, now)?;
    swept.set_aside.push(corrupt(path));
    Ok(())
}

fn made_in_the_future(kept: &Kept, now: Timestamp) -> bool {
    kept.created_at
        .checked_sub(validity::MAX_AHEAD)
        .is_ok_and(|earliest| earliest > now)
}

fn look(path: &Path) -> io::Result<Found> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).map_or(Found::Damaged, Found::Page)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(why) => Err(why),
    }
}

fn set_aside_if_present(path: &Path, now: Timestamp) -> io::Result<()> {
    match look(path)? {
        Found::Nothing => Ok(()),
        Found::Page(_) | Found::Damaged => set_aside(path, now),
    }
}

/// Moves a file to `<name>.corrupt`. Its time of change becomes the time it was set aside: the week counts from there.
fn set_aside(path: &Path, now: Timestamp) -> io::Result<()> {
    let aside = corrupt(path);
    fs::rename(path, &aside)?;
    let file = File::options().write(true).open(&aside)?;
    let now = SystemTime::try_from(now).map_err(io::Error::other)?;
    file.set_modified(file.metadata()?.modified()?.max(now))?;
    sync_folder(path)
}

fn corrupt(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".corrupt");
    PathBuf::from(name)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(path),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
    }
}

/// A name that is gone must stay gone after a power loss.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn older_than(path: &Path, now: Timestamp, life: SignedDuration) -> io::Result<bool> {
    let changed = fs::metadata(path)?.modified()?;
    let changed = Timestamp::try_from(changed).unwrap_or(Timestamp::MAX);
    Ok(now.duration_since(changed) > life)
}

fn warning(what: &str, path: &Path, done: io::Result<()>) -> Option<String> {
    let why = done.err()?;
    Some(format!(
        "Cannot {what} {}, the plain copy of a saved handoff: {why}. The handoff itself is safe in the store; check the space and the permissions of that folder.",
        path.display()
    ))
}

#[cfg(test)]
mod tests;
