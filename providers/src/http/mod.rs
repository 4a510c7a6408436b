//! What the HTTP providers share: one client, URLs, and the judgement of answers. Nothing here knows a protocol.

pub(crate) mod pace;

use std::time::Duration;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes ring the process's TLS provider. `main` and tests call it first; a second call changes nothing.
pub fn install_tls() {
    // `Err` says that one is installed already, which is what we want.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds the one client all HTTP providers share. It follows no redirects: a key must not travel to another host.
/// The whole-request and silence limits are each attempt's own. [`install_tls`] must have run.
///
/// # Errors
/// When the system's TLS roots or proxy settings cannot be read.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
        .build()
}
