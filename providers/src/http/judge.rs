//! What a refused answer means. Order of judgement: the way out of this machine, typed names and words that lie under
//! any status, money, overload, quota, login, bursts; the HTTP status last, because it lies most often.
//!
//! The table is read from the top and the first row that applies decides. Two gates stand before quota, since no wait
//! helps there: is the request too large, is it a feature the plan lacks.

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use jiff::{SignedDuration, Timestamp};

use super::evidence::Evidence;
use super::{detail, resets};

/// A stated wait above this is a quota, not a burst, if nothing else tells.
const LONGEST_BURST: SignedDuration = SignedDuration::from_mins(5);

/// Judges one refusal. `key` is struck out of the detail line.
pub(crate) fn judge(evidence: &Evidence, key: Option<&str>, now: Timestamp) -> Failure {
    let stated = resets::stated(evidence, now);
    let (kind, scope) = verdict(evidence, stated, now);
    let retry_at = match kind {
        FailureKind::Billing => resets::stated_by_vendor(evidence, now),
        FailureKind::RateLimit | FailureKind::UpstreamRateLimit | FailureKind::Overloaded => stated,
        _ => None,
    };
    let line = detail::line(&evidence.message, evidence.html, key);
    let line = match (line.is_empty(), evidence.status) {
        (false, _) => line,
        (true, Some(status)) => format!("status {status} without a message"),
        (true, None) => "an error without a message".to_owned(),
    };
    Failure::new(kind, scope, line).retry_at(retry_at)
}

/// Whether a limit per day is named; a short delay beside it is false.
pub(crate) fn per_day(evidence: &Evidence) -> bool {
    const WORDS: &[&str] = &["per day", "per-day", "perday", "(tpd)", "(rpd)"];
    let quota_ids = || {
        evidence
            .objects
            .iter()
            .any(|object| object.to_string().to_lowercase().contains("perday"))
    };
    evidence.says(WORDS) || quota_ids()
}

fn verdict(
    evidence: &Evidence,
    stated: Option<Timestamp>,
    now: Timestamp,
) -> (FailureKind, FailureScope) {
    let row = ROWS.iter().find(|row| row.applies(evidence));
    let (kind, scope) = match row {
        Some(row) => (row.kind, row.scope.clone()),
        None => by_status(evidence.status, evidence.html),
    };
    let long = stated.is_some_and(|at| at.duration_since(now) > LONGEST_BURST);
    let minute = evidence.says(MINUTE_WORDS);
    match (kind, scope) {
        (FailureKind::RateLimit, FailureScope::Burst) if long && !minute => {
            (kind, FailureScope::Account)
        }
        verdict => verdict,
    }
}

/// One row: any of the names, any of the words, or the extra test.
struct Row {
    names: &'static [&'static str],
    words: &'static [&'static str],
    also: fn(&Evidence) -> bool,
    /// What must hold besides.
    only: fn(&Evidence) -> bool,
    kind: FailureKind,
    scope: FailureScope,
}

impl Row {
    fn applies(&self, evidence: &Evidence) -> bool {
        (self.only)(evidence)
            && (evidence.named(self.names) || evidence.says(self.words) || (self.also)(evidence))
    }
}

const MINUTE_WORDS: &[&str] = &[
    "per minute",
    "per-minute",
    "perminute",
    "(tpm)",
    "(rpm)",
    "limit_rpm",
    "concurrency",
];

const fn row(kind: FailureKind, scope: FailureScope) -> Row {
    Row {
        names: &[],
        words: &[],
        also: |_| false,
        only: |_| true,
        kind,
        scope,
    }
}

static ROWS: &[Row] = &[
    Row {
        words: &[
            "just a moment",
            "attention required",
            "enable javascript and cookies",
            "errorcode:1015",
            "error 1015",
            "used cloudflare to restrict access",
            "reset reason: overflow",
            "upstream connect error",
        ],
        also: |evidence| evidence.header("cf-mitigated").is_some(),
        ..row(FailureKind::Transport, FailureScope::NetworkEdge)
    },
    Row {
        names: &[
            "content_filter",
            "content_policy_violation",
            "cyber_policy",
            "data_inspection_failed",
            "1301",
        ],
        words: &[
            "sensitive words detected",
            "content filtering policy",
            "content management policy",
            "flagged for possible",
        ],
        ..row(FailureKind::ContentFilter, FailureScope::Request)
    },
    // A feature the plan lacks: a shorter conversation passes, waiting does not help.
    Row {
        words: &[
            "extra usage is required for long context",
            "required for 1m context",
        ],
        ..row(FailureKind::ContextOverflow, FailureScope::Request)
    },
    Row {
        words: &["request too large"],
        ..row(FailureKind::ContextOverflow, FailureScope::Request)
    },
    Row {
        names: &[
            "context_length_exceeded",
            "request_too_large",
            "string_above_max_length",
            "model_context_window_exceeded",
        ],
        words: &[
            "prompt is too long",
            "input is too long",
            "maximum context length",
            "exceeds the context window",
            "exceed context window",
            "available context size",
            "exceeds the maximum size",
            "too large to send",
            "request entity too large",
        ],
        ..row(FailureKind::ContextOverflow, FailureScope::Session)
    },
    // The aggregator's own account with the vendor: ours is fine.
    Row {
        names: &["upstream_provider_shared_pool"],
        words: &[
            "temporarily rate-limited upstream",
            "from provider (",
            "resource exhausted. please try again later",
        ],
        also: |evidence| {
            let shared = |object: &serde_json::Value| {
                object
                    .pointer("/metadata/limit_source")
                    .is_some_and(|source| source == "upstream_provider_shared_pool")
            };
            evidence.objects.iter().any(shared) || (evidence.wrapped && evidence.says(MONEY_WORDS))
        },
        ..row(FailureKind::UpstreamRateLimit, FailureScope::UpstreamShared)
    },
    Row {
        names: &["free_quota_exceeded"],
        ..row(FailureKind::RateLimit, FailureScope::Account)
    },
    Row {
        names: &["insufficient_quota"],
        words: &[],
        only: |evidence| evidence.says(&["resets at", "resets in", "reset at", "reset on"]),
        ..row(FailureKind::RateLimit, FailureScope::Account)
    },
    Row {
        names: &[
            "billing_error",
            "insufficient_balance",
            "payment_required",
            "credits_exhausted",
            "insufficient_quota",
            "exceeded_current_quota_error",
            "1113",
        ],
        words: MONEY_WORDS,
        ..row(FailureKind::Billing, FailureScope::Account)
    },
    Row {
        words: &["exceeded your current quota"],
        only: |evidence| evidence.names.is_empty(),
        ..row(FailureKind::Billing, FailureScope::Account)
    },
    Row {
        names: &[
            "overloaded_error",
            "engine_overloaded",
            "engine_overloaded_error",
            "server_is_overloaded",
            "slow_down",
            "service_unavailable",
            "service_unavailable_error",
            "unavailable",
            "1305",
        ],
        words: &[
            "overloaded",
            "not your usage limit",
            "temporarily unavailable",
            "high demand and cannot process",
        ],
        ..row(FailureKind::Overloaded, FailureScope::UpstreamShared)
    },
    Row {
        also: per_day,
        only: |evidence| evidence.status.is_none_or(|status| status >= 400),
        ..row(FailureKind::RateLimit, FailureScope::AccountModel)
    },
    Row {
        names: &["quota_exhausted"],
        ..row(FailureKind::RateLimit, FailureScope::AccountModel)
    },
    Row {
        names: &[
            "usage_limit_reached",
            "access_terminated_error",
            "usage_not_included",
            "1308",
            "1310",
            "2056",
        ],
        words: &[
            "usage limit",
            "session limit",
            "weekly limit",
            "hit your limit",
            "quota reached",
            "allocated quota exceeded",
            "fair usage policy",
        ],
        also: unified_rejected,
        ..row(FailureKind::RateLimit, FailureScope::Account)
    },
    Row {
        names: &[
            "authentication_error",
            "invalid_api_key",
            "token_expired",
            "refresh_token_reused",
            "invalid_grant",
            "unauthorized",
            "unauthenticated",
            "account_deactivated",
            "1000",
            "1001",
            "1002",
        ],
        words: &[
            "invalid api key",
            "incorrect api key",
            "no auth credentials",
            "invalid x-api-key",
            "invalid bearer token",
        ],
        ..row(FailureKind::Auth, FailureScope::Account)
    },
    Row {
        names: &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limited",
            "too_many_requests",
            "resource_exhausted",
            "throttlingexception",
            "1302",
            "1303",
        ],
        words: &[
            "rate limit",
            "rate-limit",
            "too many requests",
            "too many tokens",
            "per minute",
            "concurrency",
            "rate increased too quickly",
        ],
        ..row(FailureKind::RateLimit, FailureScope::Burst)
    },
    Row {
        names: &["timeout_error", "request_timeout", "deadline_exceeded"],
        ..row(FailureKind::Timeout, FailureScope::Request)
    },
    Row {
        names: &["permission_error", "permission_denied"],
        ..row(FailureKind::Auth, FailureScope::Account)
    },
    Row {
        names: &[
            "invalid_request_error",
            "invalid_request",
            "not_found_error",
            "model_not_found",
            "invalid_argument",
            "not_found",
        ],
        only: |evidence| !matches!(evidence.status, Some(401 | 402 | 403 | 429 | 500..)),
        ..row(FailureKind::BadRequest, FailureScope::Request)
    },
];

/// Words of money; "check your plan and billing details" and "upgrade" stand in plain bursts and are not among them.
const MONEY_WORDS: &[&str] = &[
    "credit balance",
    "insufficient balance",
    "insufficient credit",
    "can only afford",
    "requires more credits",
    "prompt tokens limit exceeded",
    "spend limit",
    "reached for this month",
    "out of extra usage",
    "specified api usage limits",
    "payment required",
];

fn unified_rejected(evidence: &Evidence) -> bool {
    evidence.header("anthropic-ratelimit-unified-status") == Some("rejected")
        && evidence.status.is_none_or(|status| status == 429)
}

fn by_status(status: Option<u16>, html: bool) -> (FailureKind, FailureScope) {
    use FailureKind::{
        Auth, BadRequest, Billing, ContextOverflow, Overloaded, RateLimit, Timeout, Transport,
    };
    match status {
        Some(413) => (ContextOverflow, FailureScope::Session),
        Some(504) if html => (Timeout, FailureScope::NetworkEdge),
        // No API of a model speaks HTML: something between us and it does.
        Some(_) if html => (Transport, FailureScope::NetworkEdge),
        Some(401 | 403) => (Auth, FailureScope::Account),
        Some(402) => (Billing, FailureScope::Account),
        Some(408 | 504) => (Timeout, FailureScope::Request),
        Some(429) => (RateLimit, FailureScope::Burst),
        Some(400..=499) => (BadRequest, FailureScope::Request),
        Some(502 | 520..=526) => (Transport, FailureScope::Request),
        Some(500..) => (Overloaded, FailureScope::UpstreamShared),
        Some(_) => (Transport, FailureScope::Request),
        // An error inside a stream whose type nobody knows is theirs and passes.
        None => (Overloaded, FailureScope::UpstreamShared),
    }
}

#[cfg(test)]
mod tests;
