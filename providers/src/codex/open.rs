//! Opening the thread of a turn: resumed by id, or new. A thread that is not there, or that another account made, is
//! replaced by a new one, which is told the conversation as text.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::command::{self, Confinement, Terms};
use super::config::CodexSettings;
use super::server::{CallError, Listening, Server};
use super::sessions;
use crate::{AttemptRequest, Permissions};

/// How often a thread that is still being closed is asked for again, and how long between. 0.171 closes in 10 ms.
const TRIES: u32 = 60;
const BETWEEN: Duration = Duration::from_millis(50);

/// An open thread, listened to.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: String,
    /// The program knows the conversation up to its last turn.
    pub(super) resumed: bool,
    pub(super) notices: Listening,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NotOpen {
    Failed(Failure),
    /// The program is gone, and nothing was sent: another one may be started.
    Gone(String),
}

/// The directory with its links resolved.
///
/// # Errors
/// With the sentence for the operator when nothing could be confined to it.
pub(super) fn usable_workdir(
    settings: &CodexSettings,
    workdir: &Path,
    permissions: Permissions,
) -> Result<PathBuf, String> {
    let shown = workdir.display();
    let resolved = workdir
        .canonicalize()
        .map_err(|error| format!("the working directory {shown} cannot be used: {error}"))?;
    if !resolved.is_dir() {
        return Err(format!("the working directory {shown} is not a directory"));
    }
    if !matches!(permissions, Permissions::ReadOnly | Permissions::Edit) {
        return Ok(resolved);
    }
    if resolved.parent().is_none() {
        return Err(
            "codex cannot be confined to the root directory; choose another working directory"
                .to_owned(),
        );
    }
    match hidden(settings)
        .into_iter()
        .find(|path| resolved.starts_with(path))
    {
        Some(path) => Err(format!(
            "the working directory {shown} lies inside {}, which no command may reach; choose another one",
            path.display()
        )),
        None => Ok(resolved),
    }
}

/// Opens the thread with the permissions of the request.
///
/// # Errors
/// When the program refuses, or gives other permissions than it was asked for: then nothing is sent to it.
pub(super) async fn open(
    server: &Server,
    settings: &CodexSettings,
    program: &Path,
    workdir: &Path,
    request: &AttemptRequest,
) -> Result<Thread, NotOpen> {
    let servers = foreign_servers(server, workdir).await?;
    let denied = denied(settings, workdir);
    let terms = Terms::new(&Confinement {
        permissions: request.permissions,
        workdir,
        program,
        denied: &denied,
        servers: &servers,
    });
    let model = request.model.as_str();
    if let Some(id) = request.session.as_ref().and_then(sessions::id) {
        let id = id.to_string();
        if let Some(thread) = resume(server, &terms, model, &id).await? {
            return Ok(thread);
        }
    }
    start(server, &terms, model, &request.title).await
}

async fn resume(
    server: &Server,
    terms: &Terms,
    model: &str,
    id: &str,
) -> Result<Option<Thread>, NotOpen> {
    let notices = server.listen(id);
    for _ in 0..TRIES {
        match server
            .call("thread/resume", terms.open(model, Some(id)))
            .await
        {
            Ok(opened) if thread_id(&opened) != Some(id) => return Ok(None),
            Ok(opened) if terms.accepted(&opened) => {
                return Ok(Some(Thread {
                    id: id.to_owned(),
                    resumed: true,
                    notices,
                }));
            }
            // It is still loaded from an earlier turn with other permissions.
            Ok(_) => drop(
                server
                    .call("thread/unsubscribe", json!({"threadId": id}))
                    .await,
            ),
            Err(CallError::Refused { message, .. }) if message.contains("closing") => {}
            Err(CallError::Refused { message, .. }) => {
                tracing::info!(
                    message,
                    "codex does not resume the thread; a new one is opened"
                );
                return Ok(None);
            }
            Err(gone) => return Err(NotOpen::Gone(gone.words())),
        }
        sleep(BETWEEN).await;
    }
    Err(other_permissions())
}

async fn start(
    server: &Server,
    terms: &Terms,
    model: &str,
    title: &str,
) -> Result<Thread, NotOpen> {
    let opened = server
        .call("thread/start", terms.open(model, None))
        .await
        .map_err(not_open)?;
    let Some(id) = thread_id(&opened).map(str::to_owned) else {
        return Err(failed(
            FailureKind::Crashed,
            "codex opened a thread without an id",
        ));
    };
    let notices = server.listen(&id);
    if !terms.accepted(&opened) {
        drop(
            server
                .call("thread/unsubscribe", json!({"threadId": id}))
                .await,
        );
        return Err(other_permissions());
    }
    if let Some(name) = command::title(title) {
        // A name is for people only: a refusal changes nothing.
        drop(
            server
                .call("thread/name/set", json!({"threadId": id, "name": name}))
                .await,
        );
    }
    Ok(Thread {
        id,
        resumed: false,
        notices,
    })
}

fn thread_id(opened: &Value) -> Option<&str> {
    opened.pointer("/thread/id").and_then(Value::as_str)
}

/// The MCP servers the settings of the person and of this directory name.
async fn foreign_servers(server: &Server, workdir: &Path) -> Result<Vec<String>, NotOpen> {
    let params = json!({"cwd": workdir, "includeLayers": false});
    let read = server.call("config/read", params).await.map_err(not_open)?;
    let named = read
        .pointer("/config/mcp_servers")
        .and_then(Value::as_object);
    Ok(named
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect())
}

fn not_open(error: CallError) -> NotOpen {
    match error {
        CallError::Gone(words) => NotOpen::Gone(words),
        refused => failed(
            FailureKind::BadRequest,
            &format!("codex refuses the thread: {}", refused.words()),
        ),
    }
}

fn other_permissions() -> NotOpen {
    failed(
        FailureKind::BadRequest,
        "codex did not take the permissions it was asked for, so nothing was sent; this version may not know permission profiles (0.171.0 does)",
    )
}

fn failed(kind: FailureKind, words: &str) -> NotOpen {
    NotOpen::Failed(Failure::new(kind, FailureScope::Account, words))
}

/// What no command may reach: the settings' folders and the login's own, links resolved. What does not exist is left out.
fn hidden(settings: &CodexSettings) -> Vec<PathBuf> {
    let named = settings.hidden.iter().cloned().chain(settings.folder());
    named.filter_map(|path| path.canonicalize().ok()).collect()
}

/// What has to be denied by name: hidden folders inside the working directory, and what `/etc` does not show to every
/// user (a gateway that runs as root must not read it for a chat). The rest is out of reach anyway.
fn denied(settings: &CodexSettings, workdir: &Path) -> Vec<PathBuf> {
    let inside = hidden(settings)
        .into_iter()
        .filter(|path| path.starts_with(workdir));
    let system = std::fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let private = system.filter_map(|entry| {
        let metadata = entry.metadata().ok()?; // of a link itself, which never is private
        (metadata.permissions().mode() & 0o004 == 0).then(|| entry.path())
    });
    let mut paths: Vec<PathBuf> = inside.chain(private).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use gateway_core::route::Billing;

    use super::*;

    fn settings(hidden: &Path) -> CodexSettings {
        CodexSettings {
            binary: None,
            home: Some("/nonexistent/login".into()),
            env: BTreeMap::new(),
            subscription: "one".into(),
            billing: Billing::Plan,
            hidden: vec![hidden.to_owned()],
            now: Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn a_directory_that_confines_nothing_or_is_hidden_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let hidden = root.join("gateway");
        std::fs::create_dir_all(hidden.join("work")).unwrap();
        let settings = settings(&hidden);
        let usable = |path: &Path, level| usable_workdir(&settings, path, level);
        assert!(usable(Path::new("/"), Permissions::ReadOnly).is_err());
        assert!(usable(Path::new("/"), Permissions::None).is_ok());
        assert!(usable(Path::new("/nonexistent"), Permissions::None).is_err());
        assert!(
            usable(&hidden.join("work"), Permissions::Edit)
                .unwrap_err()
                .contains("lies inside")
        );
        assert_eq!(usable(&root, Permissions::Edit), Ok(root.clone()));
        assert!(denied(&settings, &root).contains(&hidden));
        assert!(!denied(&settings, &hidden.join("work")).contains(&hidden));
    }
}
