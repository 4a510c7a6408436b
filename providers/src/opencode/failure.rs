//! Why a turn of the program ended badly. Its typed name comes first, then the service's own answer, which the program
//! hands on and the judgement common to all providers reads; words only where neither is given. Version seen: 1.18.33.

use gateway_core::failure::{
    Evidence, Failure, FailureKind, FailureScope, Headers, detail, plausible,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::http::judge::judged;

/// The longest wait between two tries of the program that is still waited for.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(30);
/// The longest the program may go on trying without anything new.
const LONGEST_TRYING: SignedDuration = SignedDuration::from_secs(40);
/// Tries after which a service that cannot be reached is given up; the program makes five (1.18.33).
const UNREACHABLE: u32 = 2;
/// Tries after which anything else is.
const TRIES: u32 = 4;
/// A `next` beyond this was stated by the service: the program's own waits are shorter.
const STATED: SignedDuration = SignedDuration::from_secs(45);

/// Words of a connection that was never made, as the program's runtime and the system say them.
const UNREACHED: &[&str] = &[
    "unable to connect",
    "econnrefused",
    "connection refused",
    "connectionrefused",
    "enotfound",
    "getaddrinfo",
    "eai_again",
    "enetunreach",
    "network is unreachable",
];
/// Words of a connection that broke.
const BROKEN: &[&str] = &[
    "connection reset",
    "socket connection was closed",
    "socket hang up",
    "terminated",
    "json parsing failed",
    "connection closed",
    "fetch failed",
    "econnreset",
];

/// Judges the `error` of a message or of `session.error`. `earlier` is the newest error of the turn before it, which
/// may hold the service's answer where the last one has none (a failed compaction).
pub(super) fn of_error(error: &Value, earlier: Option<&Value>, now: Timestamp) -> Failure {
    let name = error
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let message = error.pointer("/data/message").and_then(Value::as_str);
    let message = message.unwrap_or_default();
    let line = || match one_line(message) {
        empty if empty.is_empty() => format!("opencode says {name}"),
        line => line,
    };
    let failure = |kind, scope| Failure::new(kind, scope, line());
    match name {
        "APIError" => of_answer(error, now),
        "ContextOverflowError" => of_overflow(error, earlier, now),
        "ProviderAuthError" => failure(FailureKind::Auth, FailureScope::Account),
        "ContentFilterError" => failure(FailureKind::ContentFilter, FailureScope::Request),
        "MessageOutputLengthError" | "StructuredOutputError" => {
            failure(FailureKind::BadRequest, FailureScope::Request)
        }
        "MessageAbortedError" => Failure::new(
            FailureKind::Crashed,
            FailureScope::Request,
            "the turn was aborted by somebody else",
        ),
        _ => of_words(message)
            .unwrap_or_else(|| failure(FailureKind::Crashed, FailureScope::Request)),
    }
}

/// The service's answer, handed on with its status, headers and body.
fn of_answer(error: &Value, now: Timestamp) -> Failure {
    let data = error.get("data").unwrap_or(&Value::Null);
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let message = text("message").unwrap_or_default();
    let status = data.get("statusCode").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let body = text("responseBody").filter(|body| !body.trim().is_empty());
    match (status, body) {
        (Some(status), Some(body)) => {
            judged(&Evidence::of_answer(status, headers(data), body), None, now)
        }
        (Some(status), None) => {
            let body = json!({"message": message}).to_string();
            judged(
                &Evidence::of_answer(status, headers(data), &body),
                None,
                now,
            )
        }
        (None, _) => of_words(message).unwrap_or_else(|| {
            judged(
                &Evidence::of_object(headers(data), &json!({"message": message})),
                None,
                now,
            )
        }),
    }
}

/// Every 413 is taken for an overflow by the program, and some are not: the body tells (`serve-e413`, `serve-e400ctx`).
fn of_overflow(error: &Value, earlier: Option<&Value>, now: Timestamp) -> Failure {
    let body = |error: &Value| {
        let body = error.pointer("/data/responseBody").and_then(Value::as_str);
        body.map(str::to_owned)
    };
    match body(error).or_else(|| earlier.and_then(body)) {
        Some(body) => judged(
            &Evidence::of_answer(413, Headers::default(), &body),
            None,
            now,
        ),
        None => {
            let message = error.pointer("/data/message").and_then(Value::as_str);
            let line = one_line(message.unwrap_or("the conversation no longer fits"));
            Failure::new(FailureKind::ContextOverflow, FailureScope::Session, line)
        }
    }
}

fn headers(data: &Value) -> Headers {
    let named = data.get("responseHeaders").and_then(Value::as_object);
    let pairs = named.into_iter().flatten();
    pairs
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
        .collect()
}

/// What the runtime's own words mean; `None` = they are not among the known.
fn of_words(message: &str) -> Option<Failure> {
    let text = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let (kind, scope) = if says(UNREACHED) {
        (FailureKind::Transport, FailureScope::NetworkEdge)
    } else if says(BROKEN) {
        (FailureKind::Transport, FailureScope::Request)
    } else if says(&["model not found", "modelnotfound"]) {
        (FailureKind::BadRequest, FailureScope::AccountModel)
    } else if says(&["timed out", "timeout"]) {
        (FailureKind::Timeout, FailureScope::Request)
    } else {
        return None;
    };
    Some(Failure::new(kind, scope, one_line(message)))
}

/// The program's tries of one model request, since something last came of one.
#[derive(Debug, Default)]
pub(super) struct Tries {
    since: Option<Timestamp>,
}

impl Tries {
    /// Something came: the next failure is a new one.
    pub(super) fn progress(&mut self) {
        self.since = None;
    }

    /// Takes one `session.status` of type `retry`. `Some` = there is no point in waiting, and why.
    pub(super) fn retry(&mut self, status: &Value, now: Timestamp) -> Option<Failure> {
        let since = *self.since.get_or_insert(now);
        let attempt = status.get("attempt").and_then(Value::as_u64).unwrap_or(1);
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        let next = status.get("next").and_then(Value::as_i64);
        let next = next.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let wait = next.map_or(SignedDuration::ZERO, |next| next.duration_since(now));
        let stated = next.filter(|_| wait > STATED);
        let failure = of_retry(status, stated, now);
        let passes = matches!(
            (failure.kind, &failure.scope),
            (FailureKind::RateLimit, FailureScope::Burst)
                | (
                    FailureKind::Overloaded
                        | FailureKind::Transport
                        | FailureKind::Timeout
                        | FailureKind::UpstreamRateLimit,
                    _
                )
        );
        let tries = match failure.scope {
            FailureScope::NetworkEdge => UNREACHABLE,
            _ => TRIES,
        };
        let waits = passes
            && wait <= LONGEST_WAIT
            && attempt < tries
            && now.duration_since(since) + wait <= LONGEST_TRYING;
        (!waits).then_some(failure)
    }
}

/// What one retry notice says: a typed reason where the program knows the limit, else the service's message.
fn of_retry(status: &Value, stated: Option<Timestamp>, now: Timestamp) -> Failure {
    let stated = stated.and_then(|at| plausible(at, now));
    let message = status.get("message").and_then(Value::as_str);
    let message = message.unwrap_or_default();
    let reason = status.pointer("/action/reason").and_then(Value::as_str);
    // A wait of minutes is stated by a 429 and by nothing else; without one the words alone count.
    let seconds = stated.map(|at| at.duration_since(now).as_secs());
    let told = json!({"message": message});
    let told = match seconds {
        Some(seconds) => {
            let wait = Headers::from_iter([("retry-after", seconds.to_string())]);
            Evidence::of_answer(429, wait, &told.to_string())
        }
        None => Evidence::of_object(Headers::default(), &told),
    };
    let judged = judged(&told, None, now);
    let limit = |window: Option<String>| {
        Failure::new(
            FailureKind::RateLimit,
            FailureScope::Account,
            one_line(message),
        )
        .retry_at(stated.or(judged.retry_at))
        .window(window)
    };
    match reason {
        Some("account_rate_limit") => limit(window(message)),
        Some("free_tier_limit") => limit(None),
        _ => match of_words(message) {
            Some(failure) => failure,
            None => {
                let at = stated.or(judged.retry_at);
                judged.retry_at(at)
            }
        },
    }
}

/// The window of OpenCode Go a message names, by the registry's key.
fn window(message: &str) -> Option<String> {
    let text = message.to_lowercase();
    let first = text.split_whitespace().next()?;
    let key = match first {
        "weekly" => "go_weekly",
        "monthly" => "go_monthly",
        "rolling" | "hourly" | "5-hour" | "5" => "go_rolling",
        _ => return None,
    };
    Some(key.to_owned())
}

/// An answer of the service that is no event stream makes the program ask again without end (`serve-html`).
pub(super) fn nothing_comes() -> Failure {
    Failure::new(
        FailureKind::Transport,
        FailureScope::NetworkEdge,
        "the service answers, but not with a model's answer: something between it and this machine does",
    )
}

/// One line of at most 300 characters without anything that looks like a key.
pub(super) fn one_line(text: &str) -> String {
    detail::line(text, false, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn retry(attempt: u32, message: &str, in_seconds: i64) -> Value {
        json!({"type": "retry", "attempt": attempt, "message": message, "next": (NOW + in_seconds) * 1000})
    }

    fn verdict(failure: &Failure) -> (FailureKind, FailureScope, Option<i64>) {
        let at = failure.retry_at.map(|at| at.as_second() - NOW);
        (failure.kind, failure.scope.clone(), at)
    }

    #[test]
    fn near_retries_are_awaited_and_far_ones_are_not() {
        use FailureKind::{Overloaded, RateLimit, Transport};
        use FailureScope::{Account, Burst, NetworkEdge, Request, UpstreamShared};
        for (status, expected) in [
            (retry(1, "Rate limit reached for requests", 2), None),
            (retry(1, "Rate limit reached for requests", 20), None),
            (
                retry(1, "Too Many Requests", 3600),
                Some((RateLimit, Account, Some(3600))),
            ),
            (
                retry(1, "Too Many Requests", 120),
                Some((RateLimit, Burst, Some(120))),
            ),
            (
                retry(1, "You have hit your usage limit", 3600),
                Some((RateLimit, Account, Some(3600))),
            ),
            (
                retry(1, "You have hit your usage limit", 2),
                Some((RateLimit, Account, None)),
            ),
            (retry(1, "Provider is overloaded", 3), None),
            (
                retry(4, "Provider is overloaded", 16),
                Some((Overloaded, UpstreamShared, None)),
            ),
            (
                retry(
                    1,
                    "Unable to connect. Is the computer able to access the url?",
                    2,
                ),
                None,
            ),
            (
                retry(
                    2,
                    "Unable to connect. Is the computer able to access the url?",
                    4,
                ),
                Some((Transport, NetworkEdge, None)),
            ),
            (retry(3, "Connection reset by server", 9), None),
            (
                retry(4, "Connection reset by server", 18),
                Some((Transport, Request, None)),
            ),
        ] {
            let failure = Tries::default().retry(&status, now());
            assert_eq!(failure.as_ref().map(verdict), expected, "{status}");
        }
    }

    #[test]
    fn trying_has_a_bound_in_time_as_well() {
        let mut tries = Tries::default();
        assert_eq!(tries.retry(&retry(1, "Rate limit", 25), now()), None);
        let later = now() + SignedDuration::from_secs(25);
        assert!(tries.retry(&retry(2, "Rate limit", 50), later).is_some());
        tries.progress();
        assert_eq!(tries.retry(&retry(1, "Rate limit", 50), later), None);
    }

    #[test]
    fn the_limits_the_program_knows_are_typed() {
        let mut status = retry(
            1,
            "weekly usage limit reached. It will reset in 19 hours. To continue using this model now, enable usage from your available balance",
            68_400,
        );
        status["action"] = json!({"reason": "account_rate_limit", "provider": "opencode-go"});
        let failure = Tries::default().retry(&status, now()).unwrap();
        assert_eq!(
            verdict(&failure),
            (FailureKind::RateLimit, FailureScope::Account, Some(68_400))
        );
        assert_eq!(failure.window.as_deref(), Some("go_weekly"));
        let mut free = retry(1, "Free usage exceeded, subscribe to Go", 2);
        free["action"] = json!({"reason": "free_tier_limit"});
        let failure = Tries::default().retry(&free, now()).unwrap();
        assert_eq!(
            verdict(&failure),
            (FailureKind::RateLimit, FailureScope::Account, None)
        );
    }

    #[test]
    fn errors_are_judged_by_name_then_answer_then_words() {
        use FailureKind::{
            Auth, BadRequest, ContentFilter, ContextOverflow, Crashed, RateLimit, Transport,
        };
        use FailureScope::{Account, AccountModel, NetworkEdge, Request, Session};
        let api = |status: u16, body: &str| json!({"name": "APIError", "data": {"message": "m", "statusCode": status, "isRetryable": false, "responseBody": body}});
        let named = |name: &str, message: &str| json!({"name": name, "data": {"message": message}});
        for (error, kind, scope) in [
            (
                api(
                    401,
                    r#"{"error": {"code": "invalid_api_key", "message": "Incorrect API key provided"}}"#,
                ),
                Auth,
                Account,
            ),
            (
                api(
                    429,
                    r#"{"error": {"type": "GoUsageLimitError", "message": "Weekly usage limit reached. Resets in 19hr"}}"#,
                ),
                RateLimit,
                Account,
            ),
            (
                api(403, "<html><title>Just a moment</title></html>"),
                Transport,
                NetworkEdge,
            ),
            (
                named(
                    "APIError",
                    "Unable to connect. Is the computer able to access the url?",
                ),
                Transport,
                NetworkEdge,
            ),
            (named("ProviderAuthError", "no key"), Auth, Account),
            (named("ContentFilterError", "no"), ContentFilter, Request),
            (
                named("ContextOverflowError", "too long"),
                ContextOverflow,
                Session,
            ),
            (named("MessageOutputLengthError", ""), BadRequest, Request),
            (
                named("UnknownError", "JSON parsing failed: Text: {nope."),
                Transport,
                Request,
            ),
            (
                named("UnknownError", "Model not found: a/b"),
                BadRequest,
                AccountModel,
            ),
            (named("UnknownError", "something else"), Crashed, Request),
            (named("MessageAbortedError", "Aborted"), Crashed, Request),
            (Value::Null, Crashed, Request),
        ] {
            let failure = of_error(&error, None, now());
            assert_eq!((failure.kind, failure.scope), (kind, scope), "{error}");
        }
    }

    #[test]
    fn an_overflow_is_what_the_service_said_it_is() {
        let last = json!({"name": "ContextOverflowError", "data": {"message": "Session too large to compact"}});
        let said = |body: &str| json!({"name": "ContextOverflowError", "data": {"message": "m", "responseBody": body}});
        for (body, kind) in [
            (
                r#"{"error": {"code": "context_length_exceeded", "message": "maximum context length"}}"#,
                FailureKind::ContextOverflow,
            ),
            (
                r#"{"error": {"type": "request_too_large", "message": "Request too large"}}"#,
                FailureKind::ContextOverflow,
            ),
            (
                r#"{"error": {"type": "insufficient_quota", "message": "Your credit balance is too low"}}"#,
                FailureKind::Billing,
            ),
        ] {
            let failure = of_error(&last, Some(&said(body)), now());
            assert_eq!(failure.kind, kind, "{body}: {failure:?}");
        }
    }
}
