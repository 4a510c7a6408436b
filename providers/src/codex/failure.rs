//! Why a turn of the program ended badly. `codexErrorInfo` decides; words only where it says `other` or names one thing for
//! two. Version seen: 0.171.0; each row has a capture in `stream/tests.rs`.

use gateway_core::failure::{
    Context, Evidence, Failure, FailureKind, FailureScope, Headers, judge as common,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::limits::{Limits, Spent};
use FailureKind as Kind;
use FailureScope as Scope;

/// The fields of a `TurnError`.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Trouble {
    /// The name of `codexErrorInfo`, whether it stands alone or with fields; empty = not given.
    pub(super) info: String,
    /// The HTTP status of the service; `None` = there was no answer, or it is not told.
    pub(super) status: Option<u64>,
    pub(super) message: String,
    /// `additionalDetails`: the cause of a retry.
    pub(super) details: String,
}

impl Trouble {
    pub(super) fn read(error: &Value) -> Self {
        let text = |name: &str| {
            let text = error.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (info, fields) = match error.get("codexErrorInfo") {
            Some(Value::String(name)) => (name.clone(), None),
            Some(Value::Object(object)) => object
                .iter()
                .next()
                .map(|(name, fields)| (name.clone(), Some(fields)))
                .unwrap_or_default(),
            _ => (String::new(), None),
        };
        let status = fields
            .and_then(|fields| fields.get("httpStatusCode"))
            .and_then(Value::as_u64);
        Self {
            info,
            status,
            message: text("message"),
            details: text("additionalDetails"),
        }
    }
}

/// Classifies a failed turn with what it heard of its limits. The reset is what the headers stated, else what the words
/// state.
pub(super) fn classify(
    trouble: &Trouble,
    limits: &Limits,
    now: Timestamp,
    zone: &TimeZone,
) -> Failure {
    let spent = limits.spent(now);
    let (kind, scope) = judge(trouble, limits, spent.as_ref());
    let hint = match kind {
        Kind::Auth => " (run `codex login`; `baton doctor` says where)",
        _ => "",
    };
    let failure = Failure::new(kind, scope, one_line(&format!("{}{hint}", trouble.message)));
    if kind != Kind::RateLimit || trouble.info != "usageLimitExceeded" {
        return failure;
    }
    let in_words = || stated(&trouble.message, now, zone);
    match spent {
        Some(spent) => failure
            .retry_at(spent.retry_at.or_else(in_words))
            .window(Some(spent.window)),
        None => failure.retry_at(in_words()),
    }
}

/// The reset in the words of a usage limit, which are in the program's own zone: the body's `resets_at` written as `try
/// again at 5:33 PM.` on the same day, else as `Nov 30th, 2026 12:59 AM.` (0.171). `None` = they state none.
fn stated(words: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let context = Context {
        provider: "codex",
        host_zone: Some(zone.clone()),
        ..Context::at(now)
    };
    let judgement = common(&Evidence::of_text(words), &context, None);
    judgement.failure()?.retry_at
}

/// The end of a turn that only ever reconnects, from the last retry notice.
pub(super) fn gave_up_waiting(trouble: &Trouble, after_s: u64) -> Failure {
    let (kind, scope) = match by_status(trouble.status) {
        Some(known) => known,
        None if is_connecting(&trouble.details) || is_connecting(&trouble.message) => {
            (Kind::Transport, Scope::NetworkEdge)
        }
        None => by_words(&trouble.details),
    };
    let words = format!(
        "codex kept reconnecting for {after_s} s: {} {}",
        trouble.message, trouble.details
    );
    Failure::new(kind, scope, one_line(&words))
}

fn judge(trouble: &Trouble, limits: &Limits, spent: Option<&Spent>) -> (FailureKind, FailureScope) {
    match trouble.info.as_str() {
        "usageLimitExceeded" => usage_limit(&trouble.message, limits, spent),
        "contextWindowExceeded" => (Kind::ContextOverflow, Scope::Session),
        "rateLimitExceeded" => (Kind::RateLimit, Scope::Burst),
        "serverOverloaded"
        | "internalServerError"
        | "flexUnavailable"
        | "policyCapacityUnavailable" => (Kind::Overloaded, Scope::UpstreamShared),
        "unauthorized" => (Kind::Auth, Scope::Account),
        "modelNotFound" => (Kind::BadRequest, Scope::AccountModel),
        "cyberPolicy" | "bioPolicy" | "misalignmentPolicyViolation" | "inferenceHookDenied" => {
            (Kind::ContentFilter, Scope::Request)
        }
        "badRequest" | "tooManyDenials" => (Kind::BadRequest, Scope::Request),
        "sessionBudgetExceeded" => (Kind::BadRequest, Scope::Session),
        "sandboxError" | "threadRollbackFailed" | "activeTurnNotSteerable" => {
            (Kind::Crashed, Scope::Request)
        }
        "httpConnectionFailed" | "responseStreamConnectionFailed" => {
            with_status(trouble).unwrap_or((Kind::Transport, Scope::NetworkEdge))
        }
        "responseStreamDisconnected" | "responseTooManyFailedAttempts" => {
            with_status(trouble).unwrap_or_else(|| by_words(&trouble.message))
        }
        _ => with_status(trouble).unwrap_or_else(|| by_words(&trouble.message)),
    }
}

/// One name for three things (`rl-insufficient-quota`, `rl-usage-not-included`, a spent window); only the words, and
/// sometimes `rateLimitReachedType`, tell them apart.
fn usage_limit(
    message: &str,
    limits: &Limits,
    spent: Option<&Spent>,
) -> (FailureKind, FailureScope) {
    let words = message.to_lowercase();
    let money = words.contains("billing") || words.contains("upgrade to plus");
    match spent {
        _ if limits.wants_money() => (Kind::Billing, Scope::Account),
        None if money && !words.contains("usage limit") => (Kind::Billing, Scope::Account),
        Some(spent) if spent.bucket => (Kind::RateLimit, Scope::AccountModel),
        _ => (Kind::RateLimit, Scope::Account),
    }
}

/// A 403 may be a wall in front of the service, a spent quota or the login: its words are judged as any answer's.
fn with_status(trouble: &Trouble) -> Option<(FailureKind, FailureScope)> {
    if trouble.status != Some(403) {
        return by_status(trouble.status);
    }
    let context = Context {
        provider: "codex",
        ..Context::at(Timestamp::UNIX_EPOCH) // only what it is about is asked, not when it ends
    };
    let answer = Evidence::of_answer(403, Headers::default(), &trouble.message);
    let failure = common(&answer, &context, None).failure();
    failure
        .map(|failure| (failure.kind, failure.scope))
        .or_else(|| by_status(trouble.status))
}

fn by_status(status: Option<u64>) -> Option<(FailureKind, FailureScope)> {
    Some(match status? {
        401 | 403 => (Kind::Auth, Scope::Account),
        402 => (Kind::Billing, Scope::Account),
        404 => (Kind::BadRequest, Scope::AccountModel),
        408 => (Kind::Timeout, Scope::Request),
        413 => (Kind::ContextOverflow, Scope::Session),
        429 => (Kind::RateLimit, Scope::Burst),
        400..=499 => (Kind::BadRequest, Scope::Request),
        _ => (Kind::Overloaded, Scope::UpstreamShared),
    })
}

/// For `other`: the program's own wrapping words, and the body of a 400 as it came (`err-400-other`).
fn by_words(message: &str) -> (FailureKind, FailureScope) {
    let words = message.to_lowercase();
    let says = |wanted: &[&str]| wanted.iter().any(|word| words.contains(word));
    if says(&["reason: content_filter", "content_policy"]) {
        (Kind::ContentFilter, Scope::Request)
    } else if says(&["idle timeout", "timed out"]) {
        (Kind::Timeout, Scope::Request)
    } else if says(&[
        "missing environment variable",
        "unauthorized",
        "not logged in",
        "log out and sign in",
    ]) {
        (Kind::Auth, Scope::Account)
    } else if says(&["rate limit"]) {
        (Kind::RateLimit, Scope::Burst)
    } else if is_connecting(&words) {
        (Kind::Transport, Scope::NetworkEdge)
    } else if says(&["disconnected", "stream closed"]) {
        (Kind::Transport, Scope::Request)
    } else if message.trim_start().starts_with('{') || says(&["bad request", "unsupported"]) {
        (Kind::BadRequest, Scope::Request)
    } else if says(&["high demand", "at capacity", "overloaded"]) {
        (Kind::Overloaded, Scope::UpstreamShared)
    } else {
        (Kind::Crashed, Scope::Request)
    }
}

/// Whether it never came to an answer at all (`conn-refused`).
fn is_connecting(words: &str) -> bool {
    let words = words.to_lowercase();
    [
        "connection failed",
        "waiting for network",
        "error sending request",
        "dns error",
    ]
    .iter()
    .any(|mark| words.contains(mark))
}

/// One line of at most 300 characters without anything that looks like a token.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut after_bearer = false;
    for word in text.split_whitespace() {
        let secret = after_bearer || ["sk-", "eyJ"].iter().any(|mark| word.contains(mark));
        after_bearer = word.ends_with("Bearer");
        line.push_str(if secret { "[redacted]" } else { word });
        line.push(' ');
    }
    line.trim_end().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_detail_is_one_short_line_without_tokens() {
        let line = one_line(&format!("a\nkey sk-proj-x Bearer abc {}", "x".repeat(400)));
        assert!(
            line.starts_with("a key [redacted] Bearer [redacted] x"),
            "{line}"
        );
        assert_eq!(line.chars().count(), 300);
    }

    #[test]
    fn an_error_that_only_repeats_is_named_by_its_cause() {
        let row = |info: Value, details: &str| {
            let error = json!({"message": "Reconnecting... 2/5", "codexErrorInfo": info, "additionalDetails": details});
            let failure = gave_up_waiting(&Trouble::read(&error), 20);
            (failure.kind, failure.scope)
        };
        let cut = |status: Value| json!({"responseStreamDisconnected": {"httpStatusCode": status}});
        assert_eq!(
            row(cut(Value::Null), "Connection failed: error sending request"),
            (Kind::Transport, Scope::NetworkEdge)
        );
        assert_eq!(row(cut(json!(429)), ""), (Kind::RateLimit, Scope::Burst));
        assert_eq!(
            row(cut(json!(503)), ""),
            (Kind::Overloaded, Scope::UpstreamShared)
        );
        assert_eq!(
            row(cut(Value::Null), "stream disconnected before completion: …"),
            (Kind::Transport, Scope::Request)
        );
    }

    #[test]
    fn every_name_of_the_protocol_has_a_meaning() {
        let rows = [
            ("sandboxError", Kind::Crashed),
            ("cyberPolicy", Kind::ContentFilter),
            ("unauthorized", Kind::Auth),
            ("flexUnavailable", Kind::Overloaded),
            ("badRequest", Kind::BadRequest),
            ("newerThanThis", Kind::Crashed),
        ];
        for (info, kind) in rows {
            let trouble = Trouble::read(&json!({"message": "m", "codexErrorInfo": info}));
            assert_eq!(
                classify(
                    &trouble,
                    &Limits::default(),
                    Timestamp::UNIX_EPOCH,
                    &TimeZone::UTC
                )
                .kind,
                kind,
                "{info}"
            );
        }
    }

    #[test]
    fn a_403_is_what_its_words_say() {
        for (message, expected) in [
            (
                "unexpected status 403 Forbidden: Just a moment...",
                (Kind::Transport, Scope::NetworkEdge),
            ),
            (
                "unexpected status 403 Forbidden: {\"error\":{\"message\":\"You have reached your usage limit for this billing cycle.\",\"type\":\"access_terminated_error\"}}",
                (Kind::RateLimit, Scope::Account),
            ),
            (
                "unexpected status 403 Forbidden: Forbidden",
                (Kind::Auth, Scope::Account),
            ),
        ] {
            let trouble = Trouble {
                status: Some(403),
                message: message.to_owned(),
                ..Trouble::default()
            };
            assert_eq!(with_status(&trouble), Some(expected), "{message}");
        }
    }

    #[test]
    fn the_words_are_read_in_the_zone_of_the_program() {
        let now: Timestamp = "2026-11-30T16:35:00Z".parse().unwrap();
        let visit = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at";
        for (words, zone, expected) in [
            ("5:33 PM.", "UTC", Some("2026-11-30T17:33:00Z")),
            ("5:33 PM.", "America/New_York", Some("2026-11-30T22:33:00Z")),
            (
                "Dec 1st, 2026 12:59 AM.",
                "UTC",
                Some("2026-12-01T00:59:00Z"),
            ),
            (
                "Dec 3rd, 2026 12:59 PM.",
                "Europe/Berlin",
                Some("2026-12-03T11:59:00Z"),
            ),
            ("Nov 30th, 2025 12:59 AM.", "UTC", None),
            ("Nov 30th, 9999 12:59 AM.", "UTC", None),
            ("later.", "UTC", None),
            ("Smarch 1st, 2026 1:00 AM.", "UTC", None),
        ] {
            let zone = TimeZone::get(zone).unwrap();
            let at = stated(&format!("{visit} {words}"), now, &zone).map(|at| at.to_string());
            assert_eq!(at.as_deref(), expected, "{words}");
        }
        assert_eq!(
            stated(
                "You’ve hit your usage limit. Try again later.",
                now,
                &TimeZone::UTC
            ),
            None
        );
    }
}
