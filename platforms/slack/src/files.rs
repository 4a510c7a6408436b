//! Files that people send. Slack serves them to the bot's token, from its own hosts; the token goes nowhere else.

use platforms::adapter::File;
use platforms::wire::WireError;
use reqwest::header::CONTENT_TYPE;

use crate::api::Api;
use crate::api::refusal::wire_error;

/// What a download without the right to it looks like: not an error but the login page, or a way to it.
const NO_RIGHT: &str = "Slack showed its login page instead of the file: the scope files:read is missing; add it under OAuth & Permissions and reinstall the app";

pub(crate) async fn fetch(api: &Api, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError> {
    let refused = |why: &str| WireError::Refused(format!("{}: {why}", file.name));
    let url: reqwest::Url = file
        .source
        .parse()
        .map_err(|_| refused("Slack gave no address to download it from"))?;
    if !api.is_ours(&url) {
        return Err(refused(
            "it is kept elsewhere, and the bot's token goes only to Slack",
        ));
    }
    let mut response = api
        .download(url)
        .await
        .map_err(|error| wire_error("the download", error))?;
    let status = response.status();
    if status.is_redirection() || status == reqwest::StatusCode::UNAUTHORIZED {
        return Err(refused(NO_RIGHT));
    }
    if status.is_server_error() || status == reqwest::StatusCode::TOO_MANY_REQUESTS {
        return Err(WireError::NotDelivered(format!("Slack answered {status}")));
    }
    if !status.is_success() {
        return Err(refused(&format!("Slack answered {status}")));
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let is_page = |kind: &str| kind.trim_start().starts_with("text/html");
    let came_page = kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(is_page);
    if came_page && !file.media_type.as_deref().is_some_and(is_page) {
        return Err(refused(NO_RIGHT));
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let broke =
            |error: reqwest::Error| WireError::NotDelivered(error.without_url().to_string());
        let Some(chunk) = chunk.map_err(broke)? else {
            return Ok(bytes);
        };
        bytes.extend_from_slice(&chunk);
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max_bytes {
            return Err(WireError::TooLong);
        }
    }
}
