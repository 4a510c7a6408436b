//! Answers as public reports show them, and what they mean. The status is on purpose the least reliable column.

use super::super::*;
use FailureKind::{
    Auth, BadRequest, Billing, ContentFilter, ContextOverflow, Overloaded, RateLimit, Timeout,
    Transport, UpstreamRateLimit,
};
use FailureScope::{Account, AccountModel, Burst, NetworkEdge, Request, Session, UpstreamShared};
use jiff::SignedDuration;
use serde_json::{Value, json};

const NOW: &str = "2026-06-01T00:00:00Z";

/// (name, status, headers, body, kind, scope, seconds until the stated retry)
type Case = (
    &'static str,
    u16,
    &'static [(&'static str, &'static str)],
    &'static str,
    FailureKind,
    FailureScope,
    Option<i64>,
);

fn judged(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    let headers: Headers = headers.iter().copied().collect();
    let evidence = Evidence::of_answer(status, headers, body);
    let context = Context::at(NOW.parse().unwrap());
    let judgement = judge(&evidence, &context, Some("the-key-itself"));
    judgement.failure().expect("a refusal is a failure")
}

#[test]
fn status_codes_lie() {
    let cases: &[Case] = &[
        (
            "credit under 400",
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "limits with a date under 400",
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-06-02 at 00:00 UTC."}}"#,
            Billing,
            Account,
            Some(86_400),
        ),
        (
            "month used up under 400",
            400,
            &[],
            r#"{"message":"Maximum requests reached for this month.","code":"ThrottlingException"}"#,
            Billing,
            Account,
            None,
        ),
        (
            "can only afford",
            402,
            &[],
            r#"{"error":{"message":"You requested up to 32000 tokens, but can only afford 27342.","code":402}}"#,
            Billing,
            Request,
            None,
        ),
        (
            "balance, not window",
            402,
            &[],
            r#"{"error":{"message":"Prompt tokens limit exceeded: 9000 > 100","code":402}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "clock quota under 402",
            402,
            &[],
            r#"{"error":{"message":"Free quota used (30 requests / 5h). Resets at 10:00 UTC.","type":"insufficient_quota","code":"free_quota_exceeded"}}"#,
            RateLimit,
            Account,
            Some(36_000),
        ),
        (
            "quota under 403",
            403,
            &[],
            r#"{"error":{"message":"You've reached your weekly (7-day) usage limit.","type":"access_terminated_error"}}"#,
            RateLimit,
            Account,
            None,
        ),
        (
            "permission error with a usage limit",
            403,
            &[],
            r#"{"error":{"message":"usage limit reached","type":"permission_error"}}"#,
            RateLimit,
            Account,
            None,
        ),
        (
            "challenge page",
            403,
            &[("cf-mitigated", "challenge")],
            "<html><title>Just a moment...</title>",
            Transport,
            NetworkEdge,
            None,
        ),
        (
            "attention required",
            403,
            &[],
            "<!DOCTYPE html>\n<title>Attention Required! | Cloudflare</title>",
            Transport,
            NetworkEdge,
            None,
        ),
        (
            "request too large for the minute",
            413,
            &[],
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 10338","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ContextOverflow,
            Request,
            None,
        ),
        (
            "proxy limit in html",
            413,
            &[],
            "<html><head><title>413 Request Entity Too Large</title></head>",
            ContextOverflow,
            Session,
            None,
        ),
        (
            "bytes",
            413,
            &[],
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ContextOverflow,
            Session,
            None,
        ),
        (
            "tier gate",
            429,
            &[],
            r#"{"error":{"message":"Extra usage is required for long context requests.","type":"rate_limit_error"}}"#,
            ContextOverflow,
            Request,
            None,
        ),
        (
            "429 overloaded",
            429,
            &[],
            r#"{"error":{"code":"1305","message":"The service may be temporarily overloaded, please try again later"}}"#,
            Overloaded,
            UpstreamShared,
            None,
        ),
        (
            "not your usage limit",
            429,
            &[],
            r#"{"error":{"type":"rate_limit_error","message":"Server is temporarily limiting requests (not your usage limit)"}}"#,
            Overloaded,
            UpstreamShared,
            None,
        ),
        (
            "monthly spend; its retry-after is no reset",
            429,
            &[("retry-after", "600")],
            r#"{"error":{"type":"rate_limit_error","message":"This request would exceed your account's monthly spend limit."}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "suspended",
            429,
            &[],
            r#"{"error":{"message":"Your account is suspended due to insufficient balance","type":"exceeded_current_quota_error"}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "too large, never wait",
            429,
            &[("retry-after", "20")],
            r#"{"error":{"message":"Request too large for gpt-4o: Limit 30000, Requested 35064","code":"rate_limit_exceeded"}}"#,
            ContextOverflow,
            Request,
            None,
        ),
        (
            "balance under 500",
            500,
            &[],
            r#"{"error":{"type":"api_error","message":"insufficient balance (1008)"}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "filter under 500",
            500,
            &[],
            r#"{"error":{"message":"sensitive words detected","type":"new_api_error"}}"#,
            ContentFilter,
            Request,
            None,
        ),
        (
            "overloaded under 500",
            500,
            &[],
            r#"{"error":{"type":"api_error","message":"Overloaded"}}"#,
            Overloaded,
            UpstreamShared,
            None,
        ),
        (
            "circuit breaker",
            503,
            &[],
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
            Transport,
            NetworkEdge,
            None,
        ),
        (
            "throttle, not overflow",
            429,
            &[],
            r#"{"error":{"name":"ThrottlingException","message":"Too many tokens, please wait before trying again."}}"#,
            RateLimit,
            Burst,
            None,
        ),
        (
            "per day is quota",
            429,
            &[],
            r#"{"message":"Too many tokens per day, please wait before trying again."}"#,
            RateLimit,
            AccountModel,
            None,
        ),
        (
            "per-day id beats a short delay",
            429,
            &[],
            r#"[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"quotaId":"RequestsPerDayPerUser"},{"retryDelay":"9s"}]}}]"#,
            RateLimit,
            AccountModel,
            None,
        ),
        (
            "gateway timeout",
            504,
            &[],
            "<html><title>504 Gateway Time-out</title>",
            Timeout,
            NetworkEdge,
            None,
        ),
        (
            "html is never a login failure",
            401,
            &[],
            "<html><title>Sign in to the network</title>",
            Transport,
            NetworkEdge,
            None,
        ),
    ];
    check(cases);
}

#[test]
fn vendors_say_it_their_way() {
    let cases: &[Case] = &[
        (
            "openai money",
            429,
            &[],
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Billing,
            Account,
            None,
        ),
        (
            "openai usage limit, both resets",
            429,
            &[],
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1780279200,"resets_in_seconds":5}}"#,
            RateLimit,
            Account,
            Some(7_200),
        ),
        (
            "openai burst from prose",
            429,
            &[],
            r#"{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Rate limit reached on tokens per min (TPM): Limit 200000. Please try again in 1.574s."}}"#,
            RateLimit,
            Burst,
            Some(1),
        ),
        (
            "budget headers: only the empty one counts",
            429,
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-remaining-tokens", "10"),
                ("x-ratelimit-reset-tokens", "23h47m36.648s"),
            ],
            r#"{"error":{"message":"Rate limit reached: 3 requests per minute"}}"#,
            RateLimit,
            Burst,
            Some(360),
        ),
        (
            "openai wrong key",
            401,
            &[],
            r#"{"error":{"message":"Incorrect API key provided: the-key-itself.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Auth,
            Account,
            None,
        ),
        (
            "openai unknown model",
            404,
            &[],
            r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
            BadRequest,
            AccountModel,
            None,
        ),
        (
            "openrouter shared pool",
            429,
            &[],
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly","limit_source":"upstream_provider_shared_pool"}}}"#,
            UpstreamRateLimit,
            UpstreamShared,
            None,
        ),
        (
            "openrouter passes on another's money",
            429,
            &[],
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"suspended due to insufficient balance\"}}"}}}"#,
            UpstreamRateLimit,
            AccountModel,
            None,
        ),
        (
            "openrouter ms in metadata headers",
            429,
            &[],
            r#"{"error":{"message":"Rate limit exceeded: limit_rpm/x. limited to 8 requests per minute.","code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1780272020000"}}}}"#,
            RateLimit,
            Burst,
            Some(20),
        ),
        (
            "openrouter login",
            401,
            &[],
            r#"{"error":{"message":"No auth credentials found","code":401}}"#,
            Auth,
            Account,
            None,
        ),
        (
            "groq per day",
            429,
            &[("retry-after", "578")],
            r#"{"error":{"message":"Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 9m38.016s."}}"#,
            RateLimit,
            AccountModel,
            Some(578),
        ),
        (
            "glm five hours, their zone",
            429,
            &[],
            r#"{"error":{"code":"1308","message":"已达到 5小时的使用上限。您的限额将在 2026-06-01 09:30:00 重置。"}}"#,
            RateLimit,
            Account,
            Some(5_400),
        ),
        (
            "glm concurrency",
            429,
            &[],
            r#"{"error":{"code":"1302","message":"High concurrency usage of this API"}}"#,
            RateLimit,
            Burst,
            None,
        ),
        (
            "google absolute beats relative",
            429,
            &[],
            r#"{"error":{"code":429,"message":"Individual quota reached. Resets in 10h0m0s.","status":"RESOURCE_EXHAUSTED","details":[{"reason":"QUOTA_EXHAUSTED","metadata":{"model":"m","quotaResetDelay":"10h","quotaResetTimeStamp":"2026-06-01T09:00:00Z"}}]}}"#,
            RateLimit,
            AccountModel,
            Some(32_400),
        ),
        (
            "google burst with a billing trap",
            429,
            &[],
            r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34.07s"}]}}"#,
            RateLimit,
            Burst,
            Some(34),
        ),
        (
            "anthropic minute budget",
            429,
            &[("retry-after", "12")],
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"rate limit of 30,000 input tokens per minute"}}"#,
            RateLimit,
            Burst,
            Some(12),
        ),
        (
            "anthropic overloaded",
            529,
            &[],
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
            UpstreamShared,
            None,
        ),
        (
            "anthropic window",
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209840 tokens > 200000 maximum"}}"#,
            ContextOverflow,
            Session,
            None,
        ),
        (
            "json in prose in python quotes",
            400,
            &[],
            r#"Error code: 400 - {'error': {'message': 'input is too long', 'code': None}}"#,
            ContextOverflow,
            Session,
            None,
        ),
        (
            "bare error string",
            400,
            &[],
            r#"{"error":"model 'x' not found, try pulling it first"}"#,
            BadRequest,
            AccountModel,
            None,
        ),
        ("nothing but a status", 429, &[], "", RateLimit, Burst, None),
        (
            "a long wait with no other sign is a quota",
            429,
            &[("retry-after", "3600")],
            "",
            RateLimit,
            Account,
            Some(3_600),
        ),
    ];
    check(cases);
}

fn check(cases: &[Case]) {
    let now: Timestamp = NOW.parse().unwrap();
    let mut misses = Vec::new();
    for (name, status, headers, body, kind, scope, wait) in cases {
        let failure = judged(*status, headers, body);
        let stated = failure.retry_at.map(|at| at.duration_since(now).as_secs());
        if (failure.kind, &failure.scope, stated) != (*kind, scope, *wait) {
            misses.push(format!(
                "{name}: {failure:?}, not {kind:?} {scope:?} {wait:?}"
            ));
        }
        assert!(
            !failure.detail.contains("the-key-itself") && !failure.detail.contains('<'),
            "{name}: {}",
            failure.detail
        );
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn a_retry_after_is_read_in_every_form_and_never_invented() {
    type Row = (&'static [(&'static str, &'static str)], Option<i64>);
    let cases: &[Row] = &[
        (&[("retry-after", "1.5")], Some(1)),
        (
            &[("retry-after-ms", "2000"), ("retry-after", "60")],
            Some(2),
        ),
        (
            &[("retry-after", "Mon, 01 Jun 2026 00:05:00 GMT")],
            Some(300),
        ),
        // By the server's own clock, whatever ours says.
        (
            &[
                ("retry-after", "Sat, 25 Jul 2026 12:05:00 GMT"),
                ("date", "Sat, 25 Jul 2026 12:00:00 GMT"),
            ],
            Some(300),
        ),
        (&[("retry-after", "0")], None),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "99999999999")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], None),
        (
            &[
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "2026-06-01T00:00:30Z"),
            ],
            Some(30),
        ),
        (
            &[
                ("anthropic-ratelimit-tokens-remaining", "5"),
                ("anthropic-ratelimit-tokens-reset", "2026-06-01T00:00:30Z"),
            ],
            None,
        ),
    ];
    let now: Timestamp = NOW.parse().unwrap();
    for (headers, wait) in cases {
        let stated = judged(429, headers, "").retry_at;
        assert_eq!(
            stated.map(|at| at.duration_since(now).as_secs()),
            *wait,
            "{headers:?}"
        );
    }
}

#[test]
fn instants_scale_by_their_digits() {
    let now: Timestamp = NOW.parse().unwrap();
    let hour = now + SignedDuration::from_hours(1);
    let second = hour.as_second();
    let stated = |value: &Value| {
        let body = json!({"error": {"type": "usage_limit_reached", "resets_at": value}});
        judged(429, &[], &body.to_string()).retry_at
    };
    for value in [
        json!(second),
        json!(second.to_string()),
        json!([second.to_string()]),
        json!(second * 1_000),
        json!(second * 1_000_000_000),
        json!(3_600),
        json!("2026-06-01T03:00:00+02:00"),
    ] {
        assert_eq!(stated(&value), Some(hour), "{value}");
    }
    for value in [json!(0), json!(-1), json!(""), json!(null), json!(1e300)] {
        assert_eq!(stated(&value), None, "{value}");
    }
}
