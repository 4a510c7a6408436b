//! The gateway's judgement of failures for what came over HTTP.

use gateway_core::failure::{
    Context, Evidence, Failure, FailureKind, FailureScope, Headers, judge,
};
use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// The headers as the judgement reads them; a value that is no text is left out.
pub(crate) fn headers(map: &HeaderMap) -> Headers {
    let texts = map
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    texts.collect()
}

/// Judges a refusal, or what came in the place of an answer. `key` is struck out of the detail line.
pub(crate) fn judged(evidence: &Evidence, key: Option<&str>, now: Timestamp) -> Failure {
    let judgement = judge(evidence, &Context::at(now), key);
    let detail = judgement.detail.clone();
    judgement.failure().unwrap_or_else(|| {
        // Nothing marks it as an error, yet it is no answer either.
        Failure::new(FailureKind::Transport, FailureScope::Request, detail)
    })
}
