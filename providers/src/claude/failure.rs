//! Why a turn of the program ended badly. Typed fields decide, in the order below; words only where the program gives no
//! field at all, because its wording changes between versions. Version seen: 2.1.332; each row has a capture in
//! `stream/tests.rs`.

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use serde_json::Value;

use super::limits::{self, Refusal};

/// The fields of a failed turn, from its synthetic `assistant` record and its `result`.
#[derive(Debug, Default, Clone)]
pub(super) struct Envelope {
    /// `assistant.error`, for example `rate_limit`.
    pub(super) error: String,
    /// The HTTP status of the service; `None` = there was no answer.
    pub(super) status: Option<u64>,
    /// The service's `error.type`.
    pub(super) kind: String,
    /// The program's own finer name, for example `usage_limit_reached`.
    pub(super) detail: String,
    pub(super) terminal: String,
    pub(super) stop_reason: String,
    pub(super) text: String,
}

impl Envelope {
    /// Takes whatever fields a record has; the later record wins.
    pub(super) fn take(&mut self, record: &Value) {
        let fields = [
            ("error", &mut self.error),
            ("api_error_type", &mut self.kind),
            ("api_error", &mut self.detail),
            ("terminal_reason", &mut self.terminal),
            ("stop_reason", &mut self.stop_reason),
            ("result", &mut self.text),
        ];
        for (name, field) in fields {
            if let Some(text) = record.get(name).and_then(Value::as_str) {
                text.clone_into(field);
            }
        }
        let status = record.get("api_error_status").and_then(Value::as_u64);
        self.status = status.or(self.status);
        let first = record.get("errors").and_then(|errors| errors.get(0));
        if let (true, Some(first)) = (self.text.is_empty(), first.and_then(Value::as_str)) {
            first.clone_into(&mut self.text);
        }
    }
}

/// Classifies a failed turn; `refusal` is what a `rate_limit_event` of the same turn said.
pub(super) fn classify(envelope: &Envelope, refusal: Option<&Refusal>) -> Failure {
    let (kind, scope) = judge(envelope, refusal);
    let hint = match (kind, envelope.status) {
        // The CLI's own hint names a command of its own prompt.
        (FailureKind::Auth, None) => {
            " (start `claude` once in a terminal and log in there; `baton doctor` says where)"
        }
        _ => "",
    };
    let failure = Failure::new(kind, scope, one_line(&format!("{}{hint}", envelope.text)));
    match refusal {
        Some(refusal) if kind == FailureKind::RateLimit => failure
            .retry_at(refusal.retry_at)
            .window(refusal.window.clone()),
        _ => failure,
    }
}

fn judge(envelope: &Envelope, refusal: Option<&Refusal>) -> (FailureKind, FailureScope) {
    use FailureKind as Kind;
    use FailureScope as Scope;

    let text = envelope.text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match envelope.terminal.as_str() {
        "prompt_too_long" => return (Kind::ContextOverflow, Scope::Session),
        "blocking_limit" => return (Kind::RateLimit, refused_scope(refusal)),
        _ => {}
    }
    match (
        envelope.error.as_str(),
        envelope.kind.as_str(),
        envelope.status,
    ) {
        _ if envelope.stop_reason == "refusal" => (Kind::ContentFilter, Scope::Request),
        _ if envelope.detail == "usage_limit_reached" => (Kind::RateLimit, refused_scope(refusal)),
        ("billing_error", ..) => (Kind::Billing, Scope::Account),
        // A wall in front of the service (a challenge page) says nothing about the login.
        ("authentication_failed", _, Some(403))
            if says(&["<html", "just a moment", "cf-mitigated"]) =>
        {
            (Kind::Transport, Scope::NetworkEdge)
        }
        ("authentication_failed", ..) => (Kind::Auth, Scope::Account),
        (_, "request_too_large", _) | (.., Some(413)) => (Kind::ContextOverflow, Scope::Session),
        (_, "overloaded_error", _) | (.., Some(529)) => (Kind::Overloaded, Scope::UpstreamShared),
        ("rate_limit", ..) | (.., Some(429)) => throttled(&says, refusal),
        ("model_not_found", ..) => (Kind::BadRequest, Scope::AccountModel),
        // Both ends of output carry the same fields in 2.1.332 (`stop-max-tokens`, `stop-context-window`).
        ("max_output_tokens", ..) if says(&["context window"]) => {
            (Kind::ContextOverflow, Scope::Session)
        }
        ("max_output_tokens", ..) => (Kind::BadRequest, Scope::Request),
        (.., Some(400)) if says(&["credit balance", "extra usage", "usage limits"]) => {
            (Kind::Billing, Scope::Account)
        }
        (.., Some(400..=499)) => (Kind::BadRequest, Scope::Request),
        (.., Some(_)) => (Kind::Overloaded, Scope::UpstreamShared),
        _ if says(&["timed out", "timeout"]) => (Kind::Timeout, Scope::Request),
        _ if says(&["enotfound", "eai_again", "enetunreach"]) => {
            (Kind::Transport, Scope::NetworkEdge)
        }
        ("server_error" | "unknown", ..) => (Kind::Transport, Scope::Request),
        ("invalid_request", ..) => (Kind::BadRequest, Scope::Request),
        _ => (Kind::Crashed, Scope::Request),
    }
}

/// A 429 that is not named a usage limit: with a login the program says whether the plan's windows are meant, with an API
/// key it never does (`rl-unified-rejected-apikey`), so the account stays eligible.
fn throttled(
    says: &dyn Fn(&[&str]) -> bool,
    refusal: Option<&Refusal>,
) -> (FailureKind, FailureScope) {
    match refusal {
        Some(_) => (FailureKind::RateLimit, refused_scope(refusal)),
        None if says(&["spend limit", "insufficient balance"]) => {
            (FailureKind::Billing, FailureScope::Account)
        }
        None if says(&["long context"]) => (FailureKind::BadRequest, FailureScope::Request),
        None if says(&["not your usage limit", "overloaded"]) => {
            (FailureKind::Overloaded, FailureScope::UpstreamShared)
        }
        None => (FailureKind::RateLimit, FailureScope::Burst),
    }
}

fn refused_scope(refusal: Option<&Refusal>) -> FailureScope {
    let window = refusal.and_then(|refusal| refusal.window.as_deref());
    match window.and_then(limits::model_of) {
        Some(_) => FailureScope::AccountModel,
        None => FailureScope::Account,
    }
}

/// Why the program ended without a result, from its exit and its last words.
pub(super) fn without_result(exit: &str, stderr: &str) -> Failure {
    let words = one_line(stderr);
    let hint = if stderr.contains("unknown option") {
        "; this Claude Code is too old for the gateway: update it"
    } else if stderr.contains("root/sudo") {
        "; Claude Code refuses full permissions as root: run the gateway as another user"
    } else {
        ""
    };
    let words = if words.is_empty() {
        words
    } else {
        format!(": {words}")
    };
    let detail = format!("claude ended without a result ({exit}){words}{hint}");
    Failure::new(
        FailureKind::Crashed,
        FailureScope::Request,
        one_line(&detail),
    )
}

/// One line of at most 300 characters without anything that looks like a token.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut after_bearer = false;
    for word in text.split_whitespace() {
        let secret = after_bearer || ["sk-ant-", "eyJ"].iter().any(|mark| word.contains(mark));
        after_bearer = word.ends_with("Bearer");
        line.extend([word, " "].map(|part| {
            if secret && part == word {
                "[redacted]"
            } else {
                part
            }
        }));
    }
    line.trim_end().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_one_short_line_without_tokens() {
        let line = one_line(&format!(
            "a\nkey sk-ant-oat01-secret Bearer abc {}",
            "x".repeat(400)
        ));
        assert!(
            line.starts_with("a key [redacted] Bearer [redacted] x") && line.chars().count() == 300
        );
    }

    #[test]
    fn last_words_get_a_hint() {
        let old = without_result("exit 1", "error: unknown option '--restricted'");
        assert!(old.detail.ends_with("update it"), "{}", old.detail);
        assert_eq!(old.kind, FailureKind::Crashed);
    }
}
