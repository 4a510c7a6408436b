//! What the HTTP providers share: one client, URLs, and the judgement of answers. Nothing here knows a protocol.

pub(crate) mod ask;
pub(crate) mod exchange;
pub(crate) mod judge;
pub(crate) mod pace;
#[cfg(test)]
pub(crate) mod testing;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Exchange, LoginFacts, LoginSubject};

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

/// Joins a protocol's path to what a person wrote as base: with or without a trailing slash, with or without `/v1`.
/// A base that ends in another version (`/v4`, `/v1beta`) keeps it: the path's own `v1` is then left out.
///
/// # Errors
/// When the base is no `http` or `https` URL.
pub(crate) fn join(base: &str, path: &str) -> Result<reqwest::Url, String> {
    let base = base.trim().trim_end_matches('/');
    let last = base.rsplit('/').next().unwrap_or_default();
    let versioned = last
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let prefix = if versioned { "" } else { "/v1" };
    let url: reqwest::Url = format!("{base}{prefix}/{path}")
        .parse()
        .map_err(|error| format!("`{base}` is not a URL: {error}"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(format!("`{base}` is not an http or https URL")),
    }
}

/// Who an API key is: itself, at the company behind the host of its endpoint. A port is part of who that is: local servers
/// share a host, and often a key that means nothing.
pub(crate) fn key_login(base_url: &str, key: Option<&str>) -> LoginFacts {
    let url = join(base_url, "").ok();
    let upstream = url.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    });
    LoginFacts {
        upstream,
        subject: key.filter(|key| !key.is_empty()).map(LoginSubject::new),
        ..LoginFacts::default()
    }
}

/// The conversation as alternating messages, the prompt last. Empty texts are left out: the APIs refuse them.
pub(crate) fn conversation(history: &[Exchange], prompt: &str) -> Vec<Value> {
    let past = history.iter().flat_map(|exchange| {
        [
            ("user", exchange.request.as_str()),
            ("assistant", exchange.answer.trim_end()),
        ]
    });
    past.chain([("user", prompt)])
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_may_be_written_in_any_usual_way() {
        for (base, url) in [
            ("http://h:1", "http://h:1/v1/messages"),
            ("http://h:1/", "http://h:1/v1/messages"),
            ("http://h:1/v1", "http://h:1/v1/messages"),
            ("http://h:1/v1/", "http://h:1/v1/messages"),
            ("https://h/api/paas/v4", "https://h/api/paas/v4/messages"),
            (
                "https://h/openai/v1beta/",
                "https://h/openai/v1beta/messages",
            ),
            ("https://h/vendor", "https://h/vendor/v1/messages"),
        ] {
            assert_eq!(join(base, "messages").unwrap().as_str(), url);
        }
    }

    #[test]
    fn a_keys_company_is_its_host_and_port() {
        for (base, upstream) in [
            ("https://api.openai.com/v1", Some("api.openai.com")),
            ("https://api.openai.com:443", Some("api.openai.com")),
            ("http://127.0.0.1:11434/v1", Some("127.0.0.1:11434")),
            ("nonsense", None),
        ] {
            assert_eq!(
                key_login(base, Some("k")).upstream.as_deref(),
                upstream,
                "{base}"
            );
        }
        assert_eq!(key_login("http://h", Some("")).subject, None);
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for base in ["", "nonsense", "ftp://h", "file:///etc/passwd"] {
            join(base, "messages").unwrap_err();
        }
    }
}
