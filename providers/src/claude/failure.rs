//! Why a turn of the program ended badly. Typed fields decide, in the order below; words only where the program gives no
//! field at all, because its wording changes between versions, and then by the gateway's common rules for words. Version seen: 2.1.332; each row has a capture in
//! `stream/tests.rs`.

use gateway_core::failure::{
    Context, Evidence, Failure, FailureKind, FailureScope, judge as judge_words,
};
use jiff::Timestamp;
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
pub(super) fn classify(envelope: &Envelope, refusal: Option<&Refusal>, now: Timestamp) -> Failure {
    let words = words(envelope, now);
    let (kind, scope) = judge(envelope, refusal, words.as_ref());
    let hint = match (kind, envelope.status) {
        // The CLI's own hint names a command of its own prompt.
        (FailureKind::Auth, None) => {
            " (start `claude` once in a terminal and log in there; `baton doctor` says where)"
        }
        _ => "",
    };
    let failure = Failure::new(kind, scope, one_line(&format!("{}{hint}", envelope.text)));
    // The words state a reset only where no field does: they are rounded, and say no more than the hour.
    let stated = words
        .filter(|words| words.kind == kind)
        .and_then(|words| words.retry_at);
    match refusal {
        Some(refusal) if kind == FailureKind::RateLimit => failure
            .retry_at(refusal.retry_at.or(stated))
            .window(refusal.window.clone()),
        _ => failure.retry_at(stated),
    }
}

/// What the words alone would mean; `None` = there are none, or they report no failure.
fn words(envelope: &Envelope, now: Timestamp) -> Option<Failure> {
    let text = Some(envelope.text.as_str()).filter(|text| !text.trim().is_empty())?;
    let context = Context {
        provider: "claude",
        ..Context::at(now)
    };
    judge_words(&Evidence::of_text(text), &context, None).failure()
}

fn judge(
    envelope: &Envelope,
    refusal: Option<&Refusal>,
    words: Option<&Failure>,
) -> (FailureKind, FailureScope) {
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
        ("rate_limit", ..) | (.., Some(429)) => throttled(words, refusal),
        ("model_not_found", ..) => (Kind::BadRequest, Scope::AccountModel),
        // Both ends of output carry the same fields in 2.1.332 (`stop-max-tokens`, `stop-context-window`).
        ("max_output_tokens", ..) if says(&["context window"]) => {
            (Kind::ContextOverflow, Scope::Session)
        }
        ("max_output_tokens", ..) => (Kind::BadRequest, Scope::Request),
        (.., Some(400))
            if let Some(told) = words.filter(|words| words.kind != Kind::Overloaded) =>
        {
            (told.kind, told.scope.clone())
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
fn throttled(words: Option<&Failure>, refusal: Option<&Refusal>) -> (FailureKind, FailureScope) {
    use FailureKind::{Billing, ContextOverflow, Overloaded, RateLimit};
    match (refusal, words) {
        (Some(_), _) => (RateLimit, refused_scope(refusal)),
        (None, Some(told))
            if matches!(
                told.kind,
                Billing | ContextOverflow | Overloaded | RateLimit
            ) =>
        {
            (told.kind, told.scope.clone())
        }
        _ => (RateLimit, FailureScope::Burst),
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
    fn without_a_limit_event_the_words_say_which_limit_and_until_when() {
        let now: Timestamp = "2026-06-15T12:00:00Z".parse().unwrap();
        let told = |text: &str| {
            let envelope = Envelope {
                error: "rate_limit".into(),
                status: Some(429),
                text: text.into(),
                ..Envelope::default()
            };
            let failure = classify(&envelope, None, now);
            (
                failure.kind,
                failure.scope,
                failure.retry_at.map(|at| at.to_string()),
            )
        };
        let at = |text: &str| Some(text.to_owned());
        for (text, kind, scope, retry_at) in [
            (
                "You've hit your session limit · resets 2:42pm (UTC)",
                FailureKind::RateLimit,
                FailureScope::Account,
                at("2026-06-15T14:42:00Z"),
            ),
            (
                "You've hit your Opus limit · resets Jun 18, 11pm (Europe/Berlin)",
                FailureKind::RateLimit,
                FailureScope::AccountModel,
                at("2026-06-18T21:00:00Z"),
            ),
            (
                "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
                FailureKind::RateLimit,
                FailureScope::Account,
                None,
            ),
            (
                "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited",
                FailureKind::Overloaded,
                FailureScope::UpstreamShared,
                None,
            ),
            (
                "API Error: Extra usage is required for long context requests.",
                FailureKind::ContextOverflow,
                FailureScope::Request,
                None,
            ),
            (
                "You've hit your monthly spend limit",
                FailureKind::Billing,
                FailureScope::Account,
                None,
            ),
        ] {
            assert_eq!(told(text), (kind, scope, retry_at), "{text}");
        }
    }

    #[test]
    fn last_words_get_a_hint() {
        let old = without_result("exit 1", "error: unknown option '--restricted'");
        assert!(old.detail.ends_with("update it"), "{}", old.detail);
        assert_eq!(old.kind, FailureKind::Crashed);
    }
}
