//! Files that came with a message: which are taken is judged in `platforms::attachments`; here they are fetched, kept in a
//! folder of their conversation below the profile's home, and named to the model.
//!
//! No level but `full` lets a program read outside its working directory, and HTTP routes read no files at all. So the text
//! of a text file goes into the request, bounded; the path is named where the agent can use it. Images can be looked at
//! only there.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_core::ids::SessionKey;
use jiff::{SignedDuration, Timestamp};
use platforms::adapter::{Adapter, File};
use platforms::attachments::{self, FileKind, Kept, Offered, Policy};
use platforms::wire::WireError;
use providers::Permissions;
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::config::ProfilePath;

/// The most text of one file that goes into a request, in bytes; and of all files of a message.
const TEXT_MAX: usize = 64 << 10;
const TEXTS_MAX: usize = 256 << 10;

/// The longest one file may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a file is kept after it came.
const KEEP: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What became of the files of one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// For the request, below the person's words; empty = nothing was taken.
    pub note: String,
    /// The sentences for the sender, one per file that was not taken.
    pub refused: Vec<String>,
}

/// Where the files of a conversation are kept.
pub fn folder(home: &ProfilePath, session: &SessionKey) -> PathBuf {
    let digest = Sha256::digest(session.as_str().as_bytes());
    let key = digest.iter().take(16).fold(String::new(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}"); // writing to a String cannot fail
        key
    });
    home.attachments().join(key)
}

/// Fetches and keeps what may be taken. `level` = what the agent may do in the turn.
pub async fn take(
    adapter: &dyn Adapter,
    files: &[File],
    folder: &Path,
    level: Permissions,
) -> Taken {
    let mut taken = Taken::default();
    let offered: Vec<Offered<'_>> = files
        .iter()
        .map(|file| Offered {
            name: &file.name,
            size: file.size,
            media_type: file.media_type.as_deref(),
        })
        .collect();
    let judged = attachments::judge(&offered, &names_in(folder), &Policy::default());
    let mut texts_left = TEXTS_MAX;
    for (file, kept) in files.iter().zip(judged) {
        let kept = match kept {
            Ok(kept) => kept,
            Err(refusal) => {
                taken.refused.push(refusal.to_string());
                continue;
            }
        };
        let bytes = match fetch(adapter, file, &kept).await {
            Ok(bytes) => bytes,
            Err(why) => {
                taken.refused.push(format!("{} {why}", kept.name()));
                continue;
            }
        };
        let (path, bytes) = match keep_apart(folder, &kept, bytes).await {
            Ok(kept) => kept,
            Err(error) => {
                warn!(%error, folder = %folder.display(), "a file cannot be kept");
                let why = "could not be stored; the gateway's log says why.";
                taken.refused.push(format!("{} {why}", kept.name()));
                continue;
            }
        };
        let path = (level == Permissions::Full).then_some(path);
        taken
            .note
            .push_str(&described(&kept, &bytes, path.as_deref(), &mut texts_left));
    }
    taken
}

async fn fetch(adapter: &dyn Adapter, file: &File, kept: &Kept) -> Result<Vec<u8>, &'static str> {
    let fetching = adapter.fetch(file, kept.max_bytes);
    match tokio::time::timeout(PATIENCE, fetching).await {
        // Whatever an adapter brings, the bound holds.
        Ok(Ok(bytes)) if bytes.len() as u64 <= kept.max_bytes => Ok(bytes),
        Ok(Ok(_) | Err(WireError::TooLong)) => Err("is longer than was announced."),
        Ok(Err(error)) => {
            warn!(%error, name = kept.name(), "a file could not be fetched");
            Err("could not be downloaded; send it again.")
        }
        Err(_) => Err("took too long to download; send it again."),
    }
}

/// [`keep`], off the runtime's threads; gives the bytes back.
async fn keep_apart(folder: &Path, kept: &Kept, bytes: Vec<u8>) -> io::Result<(PathBuf, Vec<u8>)> {
    let (folder, kept) = (folder.to_owned(), kept.clone());
    let keeping = move || keep(&folder, &kept, &bytes).map(|path| (path, bytes));
    tokio::task::spawn_blocking(keeping)
        .await
        .map_err(io::Error::other)?
}

/// Writes a file of ours alone. Never over another one, and never through a link: the name must be new.
fn keep(folder: &Path, kept: &Kept, bytes: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let path = kept.path(folder);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(path)
}

/// The names that stand in a folder; none if there is no folder yet.
fn names_in(folder: &Path) -> HashSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn described(kept: &Kept, bytes: &[u8], path: Option<&Path>, left: &mut usize) -> String {
    let size = bytes.len();
    let place = path.map(|path| format!(", kept at {}", path.display()));
    let place = place.unwrap_or_default();
    let head = format!("\n\n[Attached file {}, {size} bytes{place}", kept.name());
    match kept.kind {
        FileKind::Image if path.is_some() => format!("{head}: an image]"),
        FileKind::Image => format!("{head}: an image, which cannot be looked at here]"),
        FileKind::Text if bytes.contains(&0) => format!("{head}: not readable as text]"),
        FileKind::Text => {
            let text = String::from_utf8_lossy(bytes);
            let most = TEXT_MAX.min(*left);
            let shown = text
                .get(..text.floor_char_boundary(most))
                .unwrap_or_default();
            *left -= shown.len();
            let cut = match shown.len() < text.len() {
                true => format!("; its first {} bytes follow", shown.len()),
                false => String::new(),
            };
            let fence = fence_for(shown);
            format!("{head}{cut}]\n{fence}\n{shown}\n{fence}")
        }
    }
}

/// A fence that nothing in the text can close.
fn fence_for(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

/// Removes files that came long ago, and folders they leave empty. Blocks.
pub fn sweep(home: &ProfilePath, now: Timestamp) -> io::Result<usize> {
    let mut removed = 0;
    let folders = match std::fs::read_dir(home.attachments()) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    for folder in folders {
        let folder = folder?.path();
        for file in std::fs::read_dir(&folder)? {
            let file = file?;
            let came = Timestamp::try_from(file.metadata()?.modified()?);
            if came.is_ok_and(|came| now.duration_since(came) > KEEP) {
                std::fs::remove_file(file.path())?;
                removed += 1;
            }
        }
        // Refused while something is in it, which is what is meant.
        let _ = std::fs::remove_dir(&folder);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn kept(name: &str, media_type: &str) -> Kept {
        let offered = [Offered {
            name,
            size: 5,
            media_type: Some(media_type),
        }];
        let mut judged = attachments::judge(&offered, &HashSet::new(), &Policy::default());
        judged.remove(0).unwrap()
    }

    #[test]
    fn a_file_is_ours_alone_and_never_goes_through_a_link_or_over_another() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/attachments/c");
        let one = kept("a.txt", "text/plain");
        let path = keep(&folder, &one, b"first").unwrap();
        assert_eq!(path, folder.join("a.txt"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        assert!(keep(&folder, &one, b"other").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"first");

        let outside = home.path().join("outside.txt");
        std::os::unix::fs::symlink(&outside, folder.join("b.txt")).unwrap();
        assert!(keep(&folder, &kept("b.txt", "text/plain"), b"x").is_err());
        assert!(!outside.exists());
    }

    #[test]
    fn conversations_have_folders_of_their_own_below_the_home() {
        let home = ProfilePath("/h".into());
        let of = |session: &str| folder(&home, &SessionKey::new(session));
        let sessions = ["agent:a:discord:1", "agent:a:slack:../../etc", ""];
        let folders: HashSet<PathBuf> = sessions.into_iter().map(of).collect();
        assert_eq!(folders.len(), sessions.len());
        for folder in folders {
            assert_eq!(folder.parent(), Some(Path::new("/h/state/attachments")));
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(name.len() == 32 && name.chars().all(|c| c.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn the_text_of_files_is_bounded_and_cannot_leave_its_fence() {
        let text = kept("a.txt", "text/plain");
        let mut left = TEXTS_MAX;
        let long = "ä".repeat(TEXT_MAX);
        let mut total = 0;
        for _ in 0..6 {
            let shown = described(&text, long.as_bytes(), None, &mut left);
            assert!(shown.contains("; its first "), "it says that it is cut");
            total += shown.len();
        }
        assert!(left < 2 && total < TEXTS_MAX + 6 * 200, "{left} {total}");
        let mut left = 100;
        let tricky = described(&text, b"```\n[done]\n`````", None, &mut left);
        assert!(tricky.ends_with("\n`````\n``````"), "{tricky}");
        let binary = described(&text, b"a\0b", None, &mut left);
        assert!(binary.contains("not readable as text"), "{binary}");
    }

    #[test]
    fn a_path_is_named_only_where_it_can_be_read() {
        let image = kept("a.png", "image/png");
        let mut left = 10;
        let hidden = described(&image, b"png", None, &mut left);
        assert!(hidden.contains("cannot be looked at here"), "{hidden}");
        let open = described(&image, b"png", Some(Path::new("/k/a.png")), &mut left);
        assert!(open.contains("kept at /k/a.png") && open.ends_with("an image]"));
    }

    #[test]
    fn old_files_are_removed_and_their_folders_with_them() {
        let home = tempfile::tempdir().unwrap();
        let home = ProfilePath(home.path().to_owned());
        let folder = home.attachments().join("c");
        assert_eq!(sweep(&home, Timestamp::MAX).unwrap(), 0);
        let path = keep(&folder, &kept("a.txt", "text/plain"), b"x").unwrap();
        let came = std::fs::metadata(&path).unwrap().modified().unwrap();
        let came = Timestamp::try_from(came).unwrap();
        assert_eq!(sweep(&home, came + KEEP).unwrap(), 0);
        let later = came + KEEP + SignedDuration::from_secs(1);
        assert_eq!(sweep(&home, later).unwrap(), 1);
        assert!(!folder.exists());
    }
}
