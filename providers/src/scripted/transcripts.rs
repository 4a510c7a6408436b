//! The scripted provider's sessions: one list of lines per session, in memory or as a JSON-lines file each.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gateway_core::ids::ProviderSessionId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) role: String,
    pub(super) text: String,
}

pub(super) enum Transcripts {
    Memory(Mutex<HashMap<ProviderSessionId, Vec<Line>>>),
    Folder(PathBuf),
}

impl Transcripts {
    pub(super) fn in_memory() -> Self {
        Self::Memory(Mutex::default())
    }

    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self::Folder(folder)
    }

    pub(super) fn exists(&self, session: &ProviderSessionId) -> bool {
        match self {
            Self::Memory(sessions) => sessions.lock().contains_key(session),
            Self::Folder(folder) => file(folder, session).is_some_and(|path| path.exists()),
        }
    }

    /// Whether any line of the session holds the marker; `None` = no such session.
    pub(super) fn holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let lines = self.lines(session)?;
        Some(lines.iter().any(|line| line.text.contains(marker)))
    }

    pub(super) fn append(
        &self,
        session: &ProviderSessionId,
        role: &str,
        text: &str,
    ) -> std::io::Result<()> {
        let line = Line {
            role: role.to_owned(),
            text: text.to_owned(),
        };
        match self {
            Self::Memory(sessions) => {
                sessions
                    .lock()
                    .entry(session.clone())
                    .or_default()
                    .push(line);
                Ok(())
            }
            Self::Folder(folder) => append_line(folder, session, &line),
        }
    }

    pub(super) fn remove(&self, session: &ProviderSessionId) {
        match self {
            Self::Memory(sessions) => drop(sessions.lock().remove(session)),
            Self::Folder(folder) => {
                // A transcript that is not there is what the caller wants.
                let _ = file(folder, session).map(fs::remove_file);
            }
        }
    }

    fn lines(&self, session: &ProviderSessionId) -> Option<Vec<Line>> {
        match self {
            Self::Memory(sessions) => sessions.lock().get(session).cloned(),
            Self::Folder(folder) => {
                let text = fs::read_to_string(file(folder, session)?).ok()?;
                // A line cut by a crash is skipped, like the real CLIs do.
                let lines = text
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok());
                Some(lines.collect())
            }
        }
    }
}

/// The session's file; `None` for an id that is not a plain name.
fn file(folder: &Path, session: &ProviderSessionId) -> Option<PathBuf> {
    let id = session.as_str();
    let plain = id
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    (plain && !id.is_empty()).then(|| folder.join(format!("{id}.jsonl")))
}

fn append_line(folder: &Path, session: &ProviderSessionId, line: &Line) -> std::io::Result<()> {
    let path = file(folder, session)
        .ok_or_else(|| std::io::Error::other(format!("`{session}` cannot name a transcript")))?;
    fs::create_dir_all(folder)?;
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
