//! Rollouts on disk: `<login folder>/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl` (`session-rollout-file`), and the
//! same below `archived_sessions`.
//!
//! A thread can be resumed exactly when its rollout exists: also after a first turn that failed (`fail-first-*`). Only a
//! UUID is ever looked for: nothing a person writes becomes a path. Names are never resumed: an unknown one silently
//! starts a new thread (`session-resume-missing-name`).

use std::path::{Path, PathBuf};

use gateway_core::ids::ProviderSessionId;
use uuid::Uuid;

/// Folders below the login's one that hold rollouts.
const ROOMS: [&str; 2] = ["sessions", "archived_sessions"];
/// Year, month, day.
const DEPTH: usize = 3;

/// The rollouts of one login.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    /// `None` = no home folder is known, so there are none.
    pub(super) folder: Option<PathBuf>,
}

impl Sessions {
    /// The rollout of a thread; `None` = there is none. Reads directories: call it where blocking is allowed.
    pub(super) fn rollout(&self, session: &ProviderSessionId) -> Option<PathBuf> {
        let ending = format!("-{}.jsonl", id(session)?);
        let folder = self.folder.as_ref()?;
        ROOMS
            .iter()
            .find_map(|room| find(&folder.join(room), &ending, DEPTH))
    }

    /// Whether the rollout holds `marker`; `None` = no such rollout.
    pub(super) fn holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let bytes = std::fs::read(self.rollout(session)?).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let escaped = serde_json::Value::from(marker).to_string();
        let inside = escaped.trim_start_matches('"').trim_end_matches('"');
        Some(text.contains(marker) || text.contains(inside))
    }
}

/// The thread's id as the program writes it; `None` = not one.
pub(super) fn id(session: &ProviderSessionId) -> Option<Uuid> {
    Uuid::try_parse(session.as_str()).ok()
}

/// Looks through the newest days first: names of folders sort by date.
fn find(folder: &Path, ending: &str, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    entries.sort_unstable_by(|a, b| b.cmp(a));
    let is_rollout = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("rollout-") && name.ends_with(ending))
    };
    if let Some(found) = entries.iter().find(|path| is_rollout(path)) {
        return Some(found.clone());
    }
    let below = depth.checked_sub(1)?;
    let mut folders = entries.iter().filter(|path| path.is_dir());
    folders.find_map(|path| find(path, ending, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a229c0-aba4-7913-a2cc-3ee9c667165e";

    fn folder() -> (tempfile::TempDir, Sessions) {
        let folder = tempfile::tempdir().unwrap();
        let day = folder.path().join("sessions/2026/11/30");
        std::fs::create_dir_all(folder.path().join("sessions/2027/01/01")).unwrap();
        std::fs::create_dir_all(&day).unwrap();
        let file = day.join(format!("rollout-2026-11-30T00-00-22-{ID}.jsonl"));
        std::fs::copy(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/captures/codex/session-rollout-file.jsonl"
            ),
            &file,
        )
        .unwrap();
        let sessions = Sessions {
            folder: Some(folder.path().to_owned()),
        };
        (folder, sessions)
    }

    #[test]
    fn a_rollout_is_found_on_any_day_and_asked_for_a_marker() {
        let (_folder, sessions) = folder();
        assert!(sessions.rollout(&ID.into()).is_some());
        assert!(
            sessions
                .rollout(&ID.to_uppercase().as_str().into())
                .is_some()
        );
        assert_eq!(sessions.holds(&ID.into(), "last_agent_message"), Some(true));
        assert_eq!(sessions.holds(&ID.into(), "turn-8"), Some(false));
        let other = "01a229c0-aba4-7913-a2cc-3ee9c6671650";
        assert_eq!(sessions.holds(&other.into(), "x"), None);
    }

    #[test]
    fn what_is_not_a_uuid_is_never_looked_for() {
        let (_folder, sessions) = folder();
        for id in ["../x", "", "title", "--last"] {
            assert!(sessions.rollout(&id.into()).is_none(), "{id}");
        }
        assert!(Sessions { folder: None }.rollout(&ID.into()).is_none());
    }
}
