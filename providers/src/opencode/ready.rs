//! Everything a prompt needs, made before the word is given: a server, a session with its rules, an ear. Nothing here
//! sends anything to a model.

use std::path::{Path, PathBuf};

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use serde_json::{Value, json};

use super::api::CallError;
use super::hub::Ear;
use super::server::{Lease, Server};
use super::{OpenCode, billing, failure, ground, permissions};
use crate::earlier::unseen;
use crate::{AttemptRequest, Permissions, Provider as _};

/// Longest title passed on, in characters.
const TITLE_CHARS: usize = 200;
/// What a session without a title is called: the program would ask a model for one otherwise.
const UNTITLED: &str = "A conversation";

/// Everything a prompt needs.
pub(super) struct Ready {
    pub(super) lease: Lease,
    pub(super) session: ProviderSessionId,
    pub(super) opened_now: bool,
    pub(super) workdir: PathBuf,
    pub(super) ear: Ear,
    /// The messages the session holds already.
    pub(super) known: Vec<Value>,
    pub(super) provider: String,
    pub(super) model: String,
}

impl Ready {
    /// The body of the prompt's call.
    pub(super) fn prompt(&self, request: &AttemptRequest) -> Value {
        let text = |text: &str| json!({"type": "text", "text": text});
        let mut parts = Vec::new();
        parts.extend(unseen(request, !self.opened_now).as_deref().map(text));
        parts.push(text(&request.prompt));
        json!({
            "model": {"providerID": self.provider, "modelID": self.model},
            "agent": "build",
            "parts": parts,
        })
    }
}

pub(super) async fn prepare(
    opencode: &OpenCode,
    request: &AttemptRequest,
) -> Result<Ready, Failure> {
    let refused = |words: String| {
        Failure::new(
            FailureKind::BadRequest,
            FailureScope::Account,
            failure::one_line(&words),
        )
    };
    opencode
        .check_permissions(request.permissions)
        .map_err(refused)?;
    let workdir = usable_workdir(&request.workdir, request.permissions).map_err(refused)?;
    let target = billing::target(request.model.as_str()).ok_or_else(|| {
        refused(format!(
            "a model of opencode is written provider/model, for example opencode-go/kimi-k3, not \"{}\"",
            request.model
        ))
    })?;
    let lease = opencode.lease().await.map_err(crashed)?;
    let server = lease.server.clone();
    let known = server
        .providers
        .get_or_try_init(|| server.api.providers(&workdir))
        .await
        .map_err(|error| unanswered(&error))?;
    let auth = opencode.auth().await;
    if let Some(words) = billing::refusal(&target, known, &auth, opencode.0.settings.metered) {
        return Err(Failure::new(
            FailureKind::BadRequest,
            FailureScope::AccountModel,
            words,
        ));
    }
    let rules = rules(opencode, &server, request.permissions, &workdir).await?;
    let (session, known) = open(&server, request, &workdir, &rules).await?;
    let ear = server.hub.listen(session.as_str()).await;
    Ok(Ready {
        opened_now: known.is_none(),
        known: known.unwrap_or_default(),
        provider: target.provider.to_owned(),
        model: target.model.to_owned(),
        session,
        workdir,
        ear,
        lease,
    })
}

/// The directory with its links resolved. The whole file system is no confinement at all, so it is refused.
fn usable_workdir(workdir: &Path, permissions: Permissions) -> Result<PathBuf, String> {
    let shown = workdir.display();
    let resolved = workdir
        .canonicalize()
        .map_err(|error| format!("the working directory {shown} cannot be used: {error}"))?;
    if !resolved.is_dir() {
        return Err(format!("the working directory {shown} is not a directory"));
    }
    let confined = matches!(permissions, Permissions::ReadOnly | Permissions::Edit);
    if confined && resolved.parent().is_none() {
        return Err(
            "opencode cannot be confined to the root directory; choose another working directory"
                .to_owned(),
        );
    }
    if resolved.to_str().is_none() {
        return Err(format!("the working directory {shown} is not text"));
    }
    Ok(resolved)
}

async fn rules(
    opencode: &OpenCode,
    server: &Server,
    level: Permissions,
    workdir: &Path,
) -> Result<Value, Failure> {
    if !matches!(level, Permissions::ReadOnly | Permissions::Edit) {
        return Ok(permissions::rules(level, None));
    }
    let worktree = server.api.worktree(workdir).await;
    let worktree = PathBuf::from(worktree.map_err(|error| unanswered(&error))?);
    let (workdir, opencode) = (workdir.to_owned(), opencode.clone());
    let looking = tokio::task::spawn_blocking(move || {
        let hidden = opencode.hidden();
        let mut ground = ground::survey(&workdir, &worktree, &hidden, ground::MAX_ENTRIES)?;
        ground.searchable &= opencode.has_search();
        Ok(ground)
    });
    let ground = looking
        .await
        .unwrap_or_else(|_| Err("the working directory was not looked through".to_owned()))
        .map_err(|words| Failure::new(FailureKind::BadRequest, FailureScope::Account, words))?;
    Ok(permissions::rules(level, Some(&ground)))
}

/// Resumes the session if it is there, with these rules as its last; else opens one. Returns the messages of a resumed
/// one; `None` = it is new.
async fn open(
    server: &Server,
    request: &AttemptRequest,
    workdir: &Path,
    rules: &Value,
) -> Result<(ProviderSessionId, Option<Vec<Value>>), Failure> {
    if let Some(id) = &request.session {
        match server.api.session(id).await {
            Ok(session) => {
                let known = session.get("permission").unwrap_or(&Value::Null);
                if !permissions::stand(known, rules) {
                    let added = server.api.add_rules(id, workdir, rules).await;
                    let added = added.map_err(|error| unanswered(&error))?;
                    // Fails closed: a session that did not take its rules is not used.
                    let now = added.get("permission").unwrap_or(&Value::Null);
                    if !permissions::stand(now, rules) {
                        return Err(crashed("opencode did not take the session's rules".into()));
                    }
                }
                let messages = server.api.messages(id).await;
                let messages = messages.map_err(|error| unanswered(&error))?;
                return Ok((id.clone(), Some(messages)));
            }
            Err(CallError::NotFound) => {}
            Err(error) => return Err(unanswered(&error)),
        }
    }
    let body = json!({"title": title(&request.title), "permission": rules});
    let session = server.api.open(workdir, &body).await;
    let session = session.map_err(|error| unanswered(&error))?;
    let taken = session.get("permission").unwrap_or(&Value::Null);
    match session.get("id").and_then(Value::as_str) {
        Some(id) if permissions::stand(taken, rules) => Ok((ProviderSessionId::new(id), None)),
        _ => Err(crashed("opencode opened no session with its rules".into())),
    }
}

fn title(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(TITLE_CHARS).collect();
    match title.is_empty() {
        true => UNTITLED.to_owned(),
        false => title,
    }
}

pub(super) fn crashed(words: String) -> Failure {
    Failure::new(
        FailureKind::Crashed,
        FailureScope::Request,
        failure::one_line(&words),
    )
}

pub(super) fn unanswered(error: &CallError) -> Failure {
    crashed(format!("opencode serve refused a call: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_always_has_a_title() {
        assert_eq!(title(" --a\ntitle "), "--a title");
        assert_eq!(title(" \n"), UNTITLED);
        assert_eq!(title(&"x".repeat(300)).len(), TITLE_CHARS);
    }

    #[test]
    fn a_directory_that_confines_nothing_is_refused() {
        assert!(usable_workdir(Path::new("/"), Permissions::ReadOnly).is_err());
        assert!(usable_workdir(Path::new("/"), Permissions::None).is_ok());
        assert!(usable_workdir(Path::new("/nonexistent"), Permissions::None).is_err());
    }
}
