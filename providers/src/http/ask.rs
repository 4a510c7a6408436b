//! One question to an official usage endpoint, and bodies that are read no further than they may be long.

use std::time::Duration;

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::ProbeError;
use crate::sse::chain;

/// The most of a usage endpoint's answer that is read, in bytes; real ones have a few hundred.
const MAX_BYTES: usize = 1024 * 1024;

/// Asks within `limit`. `unsupported`: what a status says about a login that has no business there.
pub(crate) async fn usage(
    request: RequestBuilder,
    limit: Duration,
    unsupported: &[(StatusCode, &str)],
) -> Result<Value, ProbeError> {
    let asking = asked(request, unsupported);
    let answer = tokio::time::timeout(limit, asking).await;
    answer.unwrap_or_else(|_| {
        let words = "the usage endpoint did not answer in time";
        Err(ProbeError::Failed(words.to_owned()))
    })
}

async fn asked(
    request: RequestBuilder,
    unsupported: &[(StatusCode, &str)],
) -> Result<Value, ProbeError> {
    // The key is in a header and in no error; the address is nobody's business in a log.
    let failed = |error: reqwest::Error| ProbeError::Failed(chain(&error.without_url()));
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status();
    if let Some((_, why)) = unsupported.iter().find(|(known, _)| *known == status) {
        return Err(ProbeError::Unsupported((*why).to_owned()));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = response.headers().get("retry-after").and_then(|value| {
            let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
            Some(Duration::from_secs(seconds))
        });
        return Err(ProbeError::Throttled {
            retry_after: seconds,
        });
    }
    if status != StatusCode::OK {
        let words = format!("the usage endpoint answered {status}");
        return Err(ProbeError::Failed(words));
    }
    let Some(body) = body(&mut response, MAX_BYTES).await.map_err(failed)? else {
        let words = "the usage endpoint's answer is too long";
        return Err(ProbeError::Failed(words.to_owned()));
    };
    serde_json::from_slice(&body).map_err(|error| {
        ProbeError::Failed(format!("the usage endpoint's answer is no JSON: {error}"))
    })
}

/// Reads a body; `None` = it is longer than `most` bytes, and the rest of it was not read.
pub(crate) async fn body(
    response: &mut Response,
    most: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(body))
}
