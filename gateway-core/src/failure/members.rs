//! Which members of an object say what, in the dialects of all vendors. Names in lower case.

use serde_json::Value;

/// Members that name the error.
pub(super) const NAME_KEYS: &[&str] = &[
    "type",
    "error_type",
    "errortype",
    "code",
    "error_code",
    "errorcode",
    "status",
    "name",
    "reason",
    "category",
    "kind",
    "__type",
    "exception",
    "api_error",
    "api_error_type",
    "terminal_reason",
    "limit_source",
    "limitname",
    "quotaid",
    "quotametric",
    "ratelimittype",
    "codexerrorinfo",
    "codex_error_info",
    "ratelimitreachedtype",
    "rate_limit_reached_type",
    "status_code",
];
/// Members whose text is the message.
pub(super) const MESSAGE_KEYS: &[&str] = &[
    "title",
    "detail",
    "error_description",
    "description",
    "status_msg",
    "msg",
    "errormessage",
    "error_message",
    "errmsg",
    "text",
    "result",
    "message",
];
/// Members that hold an HTTP status.
pub(super) const STATUS_KEYS: &[&str] = &[
    "code",
    "status",
    "status_code",
    "statuscode",
    "http_code",
    "httpstatuscode",
    "http_status",
    "api_error_status",
    "error_status",
    "error_code",
];
/// Members that hold another error, outermost first.
pub(super) const INNER_KEYS: &[&str] = &[
    "properties",
    "params",
    "payload",
    "turn",
    "info",
    "data",
    "response",
    "status",
    "message",
    "content",
    "details",
    "detail",
    "errors",
    "base_resp",
    "rate_limit_info",
    "unifiedwindows",
    "rate_limits",
    "ratelimits",
    "rate_limit",
    "primary",
    "secondary",
    "primary_window",
    "secondary_window",
    "codexerrorinfo",
    "codex_error_info",
    "five_hour",
    "seven_day",
    "quotalimits",
    "error",
    "innererror",
    "inner_error",
    "cause",
    "body",
    "responsebody",
    "upstream_error",
    "metadata",
    "raw",
    "violations",
];

/// What a status word of the unified windows says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Rejected,
}

/// `rate_limit_info` of the Claude program (2.1.332): its word, and the window it names. `rejected` is a refusal only with a
/// window or a reset, and not while paid overage carries the account. `None` = no such event.
pub(super) fn limit_event<'v>(
    get: &impl Fn(&str) -> Option<&'v Value>,
) -> Option<(Verdict, Option<String>)> {
    let info = get("rate_limit_info").or_else(|| get("quotalimits"))?;
    let status = info
        .get("status")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let yes = |key: &str| info.get(key).and_then(Value::as_bool) == Some(true);
    let kind = info.get("rateLimitType").and_then(Value::as_str);
    let stated = kind.is_some() || info.get("resetsAt").is_some_and(|at| !at.is_null());
    let verdict = match status {
        "rejected" | "denied" if stated && !yes("overageInUse") && !yes("isUsingOverage") => {
            Verdict::Rejected
        }
        _ => Verdict::Allowed,
    };
    Some((verdict, kind.map(str::to_owned)))
}

/// Whether an event of a stream carries text of the answer: a delta of any of the three protocols.
pub(super) fn has_answer_text<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> bool {
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    let delta = |delta: &Value| {
        text(delta)
            || ["text", "content"]
                .iter()
                .any(|key| delta.get(key).is_some_and(text))
    };
    let choice = get("choices").and_then(|choices| choices.pointer("/0/delta"));
    get("delta").or(choice).is_some_and(delta)
}

/// Whether an answer came to its end without a word and without a token: an empty success.
pub(super) fn is_hollow<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> bool {
    let is = |key: &str, wanted: &str| get(key).and_then(Value::as_str) == Some(wanted);
    let bare = |key: &str| {
        get(key)
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
    };
    let unspent = || {
        let tokens = get("usage").and_then(|usage| usage.get("output_tokens")?.as_f64());
        tokens == Some(0.0)
    };
    let ended = || get("stop_reason").is_some_and(|reason| !reason.is_null());
    is("object", "chat.completion") && bare("choices")
        || is("type", "message") && bare("content") && ended() && unspent()
        || is("type", "result") && is("result", "") && unspent()
}

/// An HTTP status that says "failed", as a number or as text.
pub(super) fn status_number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// The status whose standard words (RFC 9110) stand where a typed name would: they say no more than the number.
pub(super) fn reason_phrase(text: &str) -> Option<u16> {
    Some(match text {
        "Bad Request" => 400,
        "Unauthorized" => 401,
        "Payment Required" => 402,
        "Forbidden" => 403,
        "Not Found" => 404,
        "Request Timeout" => 408,
        "Payload Too Large" | "Content Too Large" => 413,
        "Unprocessable Entity" | "Unprocessable Content" => 422,
        "Too Many Requests" => 429,
        "Internal Server Error" => 500,
        "Bad Gateway" => 502,
        "Service Unavailable" => 503,
        "Gateway Timeout" => 504,
        _ => return None,
    })
}

/// Why an answer that came with a success status is none: Google's `promptFeedback.blockReason` and `finishReason`, the
/// `finish_reason` of chat completions where it names a filter or a failure instead of an end.
pub(super) fn no_answer<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> Option<String> {
    let text = |from: &str, pointer: &str| get(from)?.pointer(pointer)?.as_str();
    if let Some(reason) = text("promptfeedback", "/blockReason") {
        return Some(format!("block reason {reason}"));
    }
    let finish = text("candidates", "/0/finishReason").or(text("choices", "/0/finish_reason"))?;
    let failed = [
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "content_filter",
        "malformed_function_call",
        "network_error",
        "network-error",
        "error",
    ];
    failed
        .contains(&finish.to_ascii_lowercase().as_str())
        .then(|| format!("finish reason {finish}"))
}
