//! Which window a request counts in, and the headers that tell it.

use std::time::Duration;

use super::Call;
use crate::discord::fault;
use crate::discord::refusal::Refusal;
use crate::discord::world::World;
use crate::limits::{Rate, Verdict};
use crate::spec::Operation;

pub(crate) type Headers = Vec<(&'static str, String)>;

const GLOBAL: Rate = Rate::new(50, Duration::from_secs(1));
/// Observed, not published: sends and edits of a channel share it.
const CHANNEL_MESSAGES: Rate = Rate::new(5, Duration::from_secs(5));
const CHANNEL_DELETES: Rate = Rate::new(5, Duration::from_secs(1));
const WEBHOOK: Rate = Rate::new(5, Duration::from_secs(2));

/// Counts the request. `Err` = 429 with its headers.
pub(crate) fn count(
    world: &mut World,
    operation: &Operation,
    call: &Call,
) -> Result<Headers, (Refusal, Headers)> {
    let now = world.now();
    let template = operation.template.as_str();
    // "Interaction endpoints are not bound to the bot's Global Rate Limit."
    let bound = !template.starts_with("/interactions/") && !template.starts_with("/webhooks/");
    if bound && let Verdict::Refused { retry_after } = world.limits.count("global", GLOBAL, now) {
        return Err(refused(retry_after, true));
    }
    let Some((bucket, rate)) = bucket(operation, call) else {
        return Ok(Vec::new());
    };
    match world.limits.count(&bucket, rate, now) {
        Verdict::Passed {
            remaining,
            resets_after,
        } => {
            let reset = now + resets_after;
            Ok(vec![
                ("x-ratelimit-limit", rate.requests.to_string()),
                ("x-ratelimit-remaining", remaining.to_string()),
                (
                    "x-ratelimit-reset-after",
                    format!("{:.3}", resets_after.as_secs_f64()),
                ),
                ("x-ratelimit-reset", seconds(reset.as_millisecond())),
                ("x-ratelimit-bucket", bucket_name(&bucket)),
            ])
        }
        Verdict::Refused { retry_after } => {
            let (refusal, mut headers) = refused(retry_after, false);
            headers.extend([
                ("x-ratelimit-limit", rate.requests.to_string()),
                ("x-ratelimit-remaining", "0".to_owned()),
                (
                    "x-ratelimit-reset-after",
                    format!("{:.3}", retry_after.as_secs_f64()),
                ),
                (
                    "x-ratelimit-reset",
                    seconds((now + retry_after).as_millisecond()),
                ),
                ("x-ratelimit-bucket", bucket_name(&bucket)),
            ]);
            Err((refusal, headers))
        }
    }
}

/// The headers of a 429; `scope` is `user` or `global`.
pub(crate) fn refused_headers(scope: &str, retry_after: Duration) -> Headers {
    let mut headers = vec![
        // Whole seconds, rounded up; the body has the exact value.
        (
            "retry-after",
            format!("{:.0}", retry_after.as_secs_f64().ceil()),
        ),
        ("x-ratelimit-scope", scope.to_owned()),
    ];
    if scope == "global" {
        headers.push(("x-ratelimit-global", "true".to_owned()));
    }
    headers
}

/// The headers of a scripted 429 for the route's bucket: as full as a real one's.
pub(crate) fn bucket_refused_headers(
    operation: &Operation,
    call: &Call,
    retry_after: Duration,
) -> Headers {
    let name = bucket(operation, call).map_or_else(
        || operation.template.clone(),
        |(bucket, _)| bucket_name(&bucket),
    );
    let mut headers = refused_headers("user", retry_after);
    headers.extend([
        ("x-ratelimit-limit", "5".to_owned()),
        ("x-ratelimit-remaining", "0".to_owned()),
        (
            "x-ratelimit-reset-after",
            format!("{:.3}", retry_after.as_secs_f64()),
        ),
        ("x-ratelimit-bucket", name),
    ]);
    headers
}

fn refused(retry_after: Duration, global: bool) -> (Refusal, Headers) {
    let scope = if global { "global" } else { "user" };
    let refusal = Refusal {
        status: 429,
        body: fault::limited(retry_after, global),
    };
    (refusal, refused_headers(scope, retry_after))
}

fn bucket(operation: &Operation, call: &Call) -> Option<(String, Rate)> {
    let parts = call.parts();
    let major = parts.get(1).copied().unwrap_or_default();
    match (call.method.as_str(), operation.template.as_str()) {
        ("POST", "/channels/{channel_id}/messages")
        | ("PATCH", "/channels/{channel_id}/messages/{message_id}") => {
            Some((format!("messages:{major}"), CHANNEL_MESSAGES))
        }
        ("DELETE", "/channels/{channel_id}/messages/{message_id}") => {
            Some((format!("deletes:{major}"), CHANNEL_DELETES))
        }
        (_, template) if template.starts_with("/webhooks/") => Some((
            format!("webhook:{}", parts.get(2).copied().unwrap_or_default()),
            WEBHOOK,
        )),
        _ => None,
    }
}

/// Clients key their buckets by this name and the major parameter.
fn bucket_name(bucket: &str) -> String {
    bucket.split(':').next().unwrap_or_default().to_owned()
}

fn seconds(milliseconds: i64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}
