//! Transcripts on disk: `<login folder>/projects/<one folder per working directory>/<session id>.jsonl`.
//!
//! A session is resumable exactly when its transcript exists: also after a first turn that failed (`fail-first-*`) and
//! from another working directory (`session-resume-other-cwd`), so every project folder is searched. Only a UUID is ever
//! looked for: nothing a person writes becomes a path or an argument.

use std::path::PathBuf;

use gateway_core::ids::ProviderSessionId;
use uuid::Uuid;

/// The transcripts of one login.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    /// `None` = no home folder is known, so there are none.
    pub(super) folder: Option<PathBuf>,
}

impl Sessions {
    /// The transcript of a session; `None` = there is none. Reads directories: call it where blocking is allowed.
    pub(super) fn transcript(&self, session: &ProviderSessionId) -> Option<PathBuf> {
        let id = Uuid::try_parse(session.as_str()).ok()?;
        let file = format!("{id}.jsonl");
        let projects = std::fs::read_dir(self.folder.as_ref()?.join("projects")).ok()?;
        projects
            .filter_map(Result::ok)
            .map(|project| project.path().join(&file))
            .find(|path| path.is_file())
    }

    /// Whether the transcript holds `marker`; `None` = no such transcript.
    pub(super) fn holds(&self, session: &ProviderSessionId, marker: &str) -> Option<bool> {
        let bytes = std::fs::read(self.transcript(session)?).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let escaped = serde_json::Value::from(marker).to_string();
        let inside = escaped.trim_start_matches('"').trim_end_matches('"');
        Some(text.contains(marker) || text.contains(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-4333-8444-555555555555";

    fn folder_with(text: &str) -> (tempfile::TempDir, Sessions) {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects").join("-srv-other");
        std::fs::create_dir_all(folder.path().join("projects").join("-empty")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        std::fs::copy(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/captures/claude/session-transcript-file.jsonl"
            ),
            project.join(format!("{ID}.jsonl")),
        )
        .unwrap();
        let mut transcript = std::fs::OpenOptions::new()
            .append(true)
            .open(project.join(format!("{ID}.jsonl")))
            .unwrap();
        std::io::Write::write_all(&mut transcript, text.as_bytes()).unwrap();
        let sessions = Sessions {
            folder: Some(folder.path().to_owned()),
        };
        (folder, sessions)
    }

    #[test]
    fn a_transcript_is_found_in_any_project_folder() {
        let (_folder, sessions) = folder_with("");
        assert!(sessions.transcript(&ID.into()).is_some());
        assert!(
            sessions
                .transcript(&ID.to_uppercase().as_str().into())
                .is_some()
        );
        assert!(
            sessions
                .transcript(&"99999999-2222-4333-8444-555555555555".into())
                .is_none()
        );
    }

    #[test]
    fn what_is_not_a_uuid_is_never_looked_for() {
        let (_folder, sessions) = folder_with("");
        for id in ["../x", "--resume", "", "title"] {
            assert!(sessions.transcript(&id.into()).is_none(), "{id}");
        }
        assert!(Sessions { folder: None }.transcript(&ID.into()).is_none());
    }

    #[test]
    fn a_marker_is_found_as_written_and_as_json() {
        let (_folder, sessions) = folder_with("{\"content\":\"turn-7 \\\"quoted\\\"\\nline\"}\n");
        assert_eq!(sessions.holds(&ID.into(), "turn-7"), Some(true));
        assert_eq!(sessions.holds(&ID.into(), "\"quoted\"\nline"), Some(true));
        assert_eq!(sessions.holds(&ID.into(), "turn-8"), Some(false));
        assert_eq!(sessions.holds(&"none".into(), "turn-7"), None);
    }
}
