//! Who may ask. A Unix socket is guarded by its file mode; a TCP listener by a token, and against web pages: a page can
//! make a browser send requests to loopback, but always with its own `Origin`, or under its own name as `Host`.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::error::ApiError;

/// The rules of one listener.
#[derive(Debug, Clone)]
pub(super) enum Guard {
    /// Whoever may open the socket may ask.
    Socket,
    Tcp {
        /// Names under which this listener may be addressed, with the port.
        hosts: Vec<String>,
        token: SecretString,
    },
}

impl Guard {
    /// The rules of a TCP listener at this address.
    pub(super) fn tcp(address: std::net::SocketAddr, token: SecretString) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        Self::Tcp { hosts, token }
    }

    /// Whether a request comes from where it may; asked of every path.
    pub(super) fn place(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Self::Tcp { hosts, .. } = self else {
            return Ok(());
        };
        if headers.contains_key(ORIGIN) {
            let why = "requests of web pages are refused.";
            return Err(ApiError::new(403, "forbidden_origin", why));
        }
        let mut named = headers.get_all(HOST).iter();
        let host = named
            .next()
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default();
        let ours = hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        match ours && named.next().is_none() {
            true => Ok(()),
            false => Err(ApiError::new(
                403,
                "forbidden_host",
                "this is not a name of this server.",
            )),
        }
    }

    /// Whether a request carries the token.
    pub(super) fn token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Self::Tcp { token, .. } = self else {
            return Ok(());
        };
        let given = headers
            .get(AUTHORIZATION)
            .map(|value| value.as_bytes())
            .and_then(|value| value.split_at_checked(BEARER.len()))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER.as_bytes()))
            .map(|(_, given)| given);
        // Digests, so that not even the length shows in the time it takes.
        let same = given.is_some_and(|given| {
            let ours = Sha256::digest(token.expose_secret().as_bytes());
            bool::from(Sha256::digest(given).ct_eq(&ours))
        });
        match same {
            true => Ok(()),
            false => Err(ApiError::new(
                401,
                "invalid_token",
                "the bearer token is missing or wrong; it is the one `http.token_env` or `http.token_file` names.",
            )),
        }
    }
}

const BEARER: &str = "Bearer ";

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(given: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    fn guard() -> Guard {
        Guard::tcp(
            "127.0.0.1:8787".parse().unwrap(),
            SecretString::from("s3cret"),
        )
    }

    #[test]
    fn case_68_foreign_hosts_and_any_origin_are_refused() {
        let ok = |given: &[(HeaderName, &str)]| {
            guard().place(&headers(given)).map_err(|error| error.code)
        };
        for host in [
            "127.0.0.1:8787",
            "localhost:8787",
            "LOCALHOST:8787",
            "[::1]:8787",
        ] {
            assert_eq!(ok(&[(HOST, host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost",
            "localhost:80",
            "127.0.0.1:8787.evil.example",
            "",
            "127.0.0.2:8787",
        ] {
            assert_eq!(ok(&[(HOST, host)]), Err("forbidden_host"), "{host}");
        }
        assert_eq!(ok(&[]), Err("forbidden_host"));
        assert_eq!(
            ok(&[(HOST, "localhost:8787"), (HOST, "evil.example")]),
            Err("forbidden_host")
        );
        for origin in ["http://localhost:8787", "null", "https://evil.example"] {
            assert_eq!(
                ok(&[(HOST, "localhost:8787"), (ORIGIN, origin)]),
                Err("forbidden_origin")
            );
        }
        assert_eq!(Guard::Socket.place(&headers(&[(ORIGIN, "null")])), Ok(()));
    }

    #[test]
    fn the_token_is_asked_for() {
        let ok = |value: &str| guard().token(&headers(&[(AUTHORIZATION, value)])).is_ok();
        assert!(ok("Bearer s3cret") && ok("bearer s3cret"));
        for wrong in [
            "Bearer s3cre",
            "Bearer s3crett",
            "Bearer ",
            "Bearer",
            "s3cret",
            "Basic s3cret",
            "Bearer  s3cret",
            "",
        ] {
            assert!(!ok(wrong), "{wrong}");
        }
        assert_eq!(guard().token(&HeaderMap::new()).unwrap_err().status, 401);
        assert!(Guard::Socket.token(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn case_76_the_token_is_never_printed() {
        assert!(!format!("{:?}", guard()).contains("s3cret"));
    }
}
