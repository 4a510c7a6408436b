//! How much an OpenRouter key may still spend: `GET /key`, which costs nothing. No other compatible endpoint documents one
//! for its keys, so no other is asked.

use std::time::Duration;

use gateway_core::usage::ReadingSource;
use gateway_core::usage::source::{Origin, openrouter};
use reqwest::{StatusCode, Url};
use secrecy::ExposeSecret;

use super::OpenAiSettings;
use crate::http::{ask, join};
use crate::{LoginFacts, ProbeError, Probed};

const HOST: &str = "openrouter.ai";

/// The address to ask; `None` = this endpoint has none.
pub(super) fn address(base_url: &str) -> Option<Url> {
    let url = join(base_url, "key").ok()?;
    let host = url.host_str()?;
    let is_theirs = host == HOST
        || host
            .strip_suffix(HOST)
            .is_some_and(|sub| sub.ends_with('.'));
    is_theirs.then_some(url)
}

/// Who the key is: itself, at the company behind the host.
pub(super) fn login(settings: &OpenAiSettings) -> LoginFacts {
    let key = settings.key.as_ref().map(|key| key.expose_secret().trim());
    crate::http::key_login(&settings.base_url, key)
}

/// Asks, within `limit`.
pub(super) async fn capped(
    settings: &OpenAiSettings,
    address: Url,
    limit: Duration,
) -> Result<Probed, ProbeError> {
    let Some(key) = &settings.key else {
        return Err(ProbeError::Unsupported(
            "there is no key to ask about".to_owned(),
        ));
    };
    let request = settings
        .client
        .get(address)
        .bearer_auth(key.expose_secret().trim());
    const NOT_ACCEPTED: &str = "the key is not accepted there";
    let unsupported = [
        (StatusCode::UNAUTHORIZED, NOT_ACCEPTED),
        (StatusCode::FORBIDDEN, NOT_ACCEPTED),
    ];
    let payload = ask::usage(request, limit, &unsupported).await?;
    let origin = Origin::new(
        &settings.subscription,
        (settings.now)(),
        ReadingSource::Probe,
    );
    Ok(Probed {
        readings: openrouter::key(&payload, &origin),
        login: login(settings),
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::HeaderMap;
    use axum::response::IntoResponse;
    use axum::routing::get;
    use jiff::Timestamp;

    use super::*;
    use crate::LoginSubject;
    use crate::http::{client, install_tls, testing};

    fn settings(base_url: &str) -> OpenAiSettings {
        install_tls();
        OpenAiSettings {
            subscription: "router".into(),
            base_url: base_url.to_owned(),
            key: Some("sk-or-1".to_owned().into()),
            max_tokens: None,
            client: client().unwrap(),
            now: testing::clock(),
        }
    }

    /// Asks a server on loopback that answers like this to our key, and 401 to any other.
    async fn asked(
        status: u16,
        headers: &[(&'static str, &'static str)],
        body: &'static str,
    ) -> Result<Probed, ProbeError> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let answer = move |given: HeaderMap| async move {
            let ours = given
                .get("authorization")
                .is_some_and(|value| value == "Bearer sk-or-1");
            let status = if ours { status } else { 401 };
            (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let router = Router::new().route("/api/v1/key", get(answer));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        let address = join(&base, "key").unwrap();
        let probed = capped(&settings(&base), address, Duration::from_secs(5)).await;
        serving.abort();
        probed
    }

    #[test]
    fn only_openrouter_is_asked() {
        let rows = [
            (
                "https://openrouter.ai/api/v1",
                Some("https://openrouter.ai/api/v1/key"),
            ),
            (
                "https://eu.openrouter.ai/api/v1/",
                Some("https://eu.openrouter.ai/api/v1/key"),
            ),
            ("https://notopenrouter.ai/api/v1", None),
            ("https://openrouter.ai.example.com/v1", None),
            ("https://api.openai.com/v1", None),
            ("http://127.0.0.1:1/v1", None),
            ("nonsense", None),
        ];
        for (base, want) in rows {
            assert_eq!(address(base).as_ref().map(Url::as_str), want, "{base}");
        }
    }

    #[tokio::test]
    async fn a_keys_cap_becomes_a_reading() {
        let body = r#"{"data":{"label":"k","limit":20,"limit_remaining":5,"limit_reset":"monthly","usage":15}}"#;
        let probed = asked(200, &[], body).await.unwrap();
        assert_eq!(probed.readings.len(), 1);
        assert_eq!(probed.readings[0].used_pct, Some(75.0));
        assert_eq!(probed.readings[0].observed_at, Some(testing::now()));
        assert!(probed.readings[0].resets_at > Some(Timestamp::UNIX_EPOCH));
    }

    #[tokio::test]
    async fn refusals_say_whether_to_ask_again() {
        let throttled = |seconds: u64| ProbeError::Throttled {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(
            asked(429, &[("retry-after", "0")], "").await,
            Err(throttled(0))
        );
        assert_eq!(
            asked(429, &[("retry-after", " 90 ")], "").await,
            Err(throttled(90))
        );
        assert_eq!(
            asked(429, &[], "").await,
            Err(ProbeError::Throttled { retry_after: None })
        );
        assert!(matches!(
            asked(401, &[], "").await,
            Err(ProbeError::Unsupported(_))
        ));
        assert!(matches!(
            asked(503, &[], "").await,
            Err(ProbeError::Failed(_))
        ));
        assert!(matches!(
            asked(200, &[], "<html>").await,
            Err(ProbeError::Failed(_))
        ));
        assert_eq!(asked(200, &[], "{}").await.unwrap().readings, []);
    }

    #[test]
    fn the_login_is_the_key_at_its_host() {
        let facts = login(&settings("https://openrouter.ai/api/v1"));
        assert_eq!(facts.upstream.as_deref(), Some("openrouter.ai"));
        assert_eq!(facts.subject, Some(LoginSubject::new("sk-or-1")));
    }
}
