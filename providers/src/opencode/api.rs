//! The calls to one server: JSON over loopback HTTP behind a password. Bounds on time are the caller's.

use std::path::Path;
use std::time::Duration;

use gateway_core::ids::ProviderSessionId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http::ask;
use crate::sse::{Caps, SseEvents, chain};

/// The most of one answer that is read, in bytes: a session's stored messages are the longest.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The user the program's server expects beside its password.
const USER: &str = "opencode";
/// The most bytes of one event: a tool's output stands in it whole.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;
/// How many messages are asked for: a turn is far shorter.
const NEWEST: usize = 200;

/// Why a call brought no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// The server has no such session.
    #[error("not found")]
    NotFound,
    #[error("status {status}: {message}")]
    Refused { status: u16, message: String },
    /// It did not answer, or not in JSON.
    #[error("{0}")]
    Lost(String),
}

/// One server, addressed.
#[derive(Clone)]
pub(super) struct Api {
    client: reqwest::Client,
    base: String,
    password: String,
}

impl Api {
    /// Addresses the server at `base` (`http://127.0.0.1:PORT`).
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub(super) fn new(base: &str, password: &str) -> Result<Self, String> {
        crate::http::install_tls();
        let client = reqwest::Client::builder()
            .no_proxy() // it is on this machine
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(|error| chain(&error))?;
        Ok(Self {
            client,
            base: base.trim_end_matches('/').to_owned(),
            password: password.to_owned(),
        })
    }

    /// The events of the whole server. `alive` is called for every chunk.
    pub(super) async fn events(&self) -> Result<SseEvents, CallError> {
        let request = self.request(Method::GET, "/global/event", None);
        let response = request.send().await.map_err(|error| lost(&error))?;
        if !response.status().is_success() {
            return Err(CallError::Lost(format!("status {}", response.status())));
        }
        let caps = Caps {
            event_bytes: MAX_EVENT_BYTES,
            total_bytes: usize::MAX,
        };
        Ok(SseEvents::new(response.bytes_stream(), caps, || {}))
    }

    /// The repository `directory` lies in (`/` = none), as the program sees it.
    pub(super) async fn worktree(&self, directory: &Path) -> Result<String, CallError> {
        let answer = self
            .call(Method::GET, "/path", Some(directory), None)
            .await?;
        let worktree = answer.get("worktree").and_then(Value::as_str);
        worktree
            .map(str::to_owned)
            .ok_or_else(|| CallError::Lost("it named no worktree".to_owned()))
    }

    /// The providers and models it knows. The first call in a directory also makes it ready, which takes seconds.
    pub(super) async fn providers(&self, directory: &Path) -> Result<Value, CallError> {
        self.call(Method::GET, "/config/providers", Some(directory), None)
            .await
    }

    pub(super) async fn session(&self, id: &ProviderSessionId) -> Result<Value, CallError> {
        self.call(Method::GET, &session_path(id, "")?, None, None)
            .await
    }

    pub(super) async fn open(&self, directory: &Path, body: &Value) -> Result<Value, CallError> {
        self.call(Method::POST, "/session", Some(directory), Some(body))
            .await
    }

    /// Adds rules behind those the session has.
    pub(super) async fn add_rules(
        &self,
        id: &ProviderSessionId,
        directory: &Path,
        rules: &Value,
    ) -> Result<Value, CallError> {
        let body = json!({"permission": rules});
        self.call(
            Method::PATCH,
            &session_path(id, "")?,
            Some(directory),
            Some(&body),
        )
        .await
    }

    /// The newest messages, oldest first.
    pub(super) async fn messages(&self, id: &ProviderSessionId) -> Result<Vec<Value>, CallError> {
        let path = session_path(id, &format!("/message?limit={NEWEST}"))?;
        match self.call(Method::GET, &path, None, None).await? {
            Value::Array(messages) => Ok(messages),
            _ => Err(CallError::Lost("it listed no messages".to_owned())),
        }
    }

    /// The session's todo list.
    pub(super) async fn todos(&self, id: &ProviderSessionId) -> Result<Value, CallError> {
        self.call(Method::GET, &session_path(id, "/todo")?, None, None)
            .await
    }

    /// Every message of the session as text, for looking for a mark in it.
    pub(super) async fn transcript(&self, id: &ProviderSessionId) -> Result<String, CallError> {
        let path = session_path(id, "/message")?;
        let all = self.call(Method::GET, &path, None, None).await?;
        let messages = all.as_array().into_iter().flatten();
        let parts = messages
            .filter_map(|message| message.get("parts").and_then(Value::as_array))
            .flatten();
        let texts: Vec<&str> = parts
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect();
        Ok(texts.join("\n"))
    }

    /// Runs a turn; answers when it is over, with its last message.
    pub(super) async fn prompt(
        &self,
        id: &ProviderSessionId,
        directory: &Path,
        body: &Value,
    ) -> Result<Value, CallError> {
        self.call(
            Method::POST,
            &session_path(id, "/message")?,
            Some(directory),
            Some(body),
        )
        .await
    }

    pub(super) async fn abort(
        &self,
        id: &ProviderSessionId,
        directory: &Path,
    ) -> Result<Value, CallError> {
        self.call(
            Method::POST,
            &session_path(id, "/abort")?,
            Some(directory),
            Some(&json!({})),
        )
        .await
    }

    /// Whether the session has a turn running.
    pub(super) async fn is_busy(
        &self,
        id: &ProviderSessionId,
        directory: &Path,
    ) -> Result<bool, CallError> {
        let all = self
            .call(Method::GET, "/session/status", Some(directory), None)
            .await?;
        let state = all.get(id.as_str()).and_then(|state| state.get("type"));
        Ok(state
            .and_then(Value::as_str)
            .is_some_and(|state| state != "idle"))
    }

    /// Says no to a question the program asks. `kind` is `permission` or `question`.
    pub(super) async fn refuse(&self, kind: &str, id: &str, directory: Option<&Path>) {
        if !is_id(id) {
            return;
        }
        let (path, body) = match kind {
            "permission" => (
                format!("/permission/{id}/reply"),
                json!({"reply": "reject"}),
            ),
            _ => (format!("/question/{id}/reject"), json!({})),
        };
        if let Err(error) = self.call(Method::POST, &path, directory, Some(&body)).await {
            tracing::warn!(%error, kind, "a question of opencode could not be refused");
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        directory: Option<&Path>,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let mut request = self.request(method, path, directory);
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut response = request.send().await.map_err(|error| lost(&error))?;
        let status = response.status();
        let bytes = ask::body(&mut response, MAX_BYTES).await;
        let Some(bytes) = bytes.map_err(|error| lost(&error))? else {
            return Err(CallError::Lost("its answer is too long".to_owned()));
        };
        let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
        match (status, answer) {
            (StatusCode::NOT_FOUND, _) => Err(CallError::NotFound),
            (status, Some(answer)) if status.is_success() => Ok(answer),
            (status, _) if status.is_success() => {
                Err(CallError::Lost("its answer is no JSON".to_owned()))
            }
            (status, answer) => Err(CallError::Refused {
                status: status.as_u16(),
                message: words(answer.as_ref(), &bytes),
            }),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        directory: Option<&Path>,
    ) -> reqwest::RequestBuilder {
        // A base that is no URL is refused by the client as a builder error.
        let url = format!("{}{path}", self.base);
        let url = match reqwest::Url::parse(&url) {
            Ok(mut url) => {
                if let Some(directory) = directory {
                    url.query_pairs_mut()
                        .append_pair("directory", &directory.to_string_lossy());
                }
                String::from(url)
            }
            Err(_) => url,
        };
        self.client
            .request(method, url)
            .basic_auth(USER, Some(&self.password))
    }
}

/// Ids are put into paths, so nothing else than an id may be one.
fn session_path(id: &ProviderSessionId, rest: &str) -> Result<String, CallError> {
    let id = id.as_str();
    if !id.starts_with("ses") || !is_id(id) {
        return Err(CallError::NotFound);
    }
    Ok(format!("/session/{id}{rest}"))
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 100 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn words(answer: Option<&Value>, bytes: &[u8]) -> String {
    let message = answer.and_then(|answer| answer.pointer("/data/message"));
    let text = message.and_then(Value::as_str).map(str::to_owned);
    text.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}

fn lost(error: &reqwest::Error) -> CallError {
    CallError::Lost(chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_becomes_a_path() {
        assert_eq!(
            session_path(&"ses_1aB".into(), "/abort").unwrap(),
            "/session/ses_1aB/abort"
        );
        for id in ["", "ses/../x", "msg_1", "ses_1?x=1", "ses 1", "../ses"] {
            assert_eq!(
                session_path(&id.into(), ""),
                Err(CallError::NotFound),
                "{id}"
            );
        }
    }
}
