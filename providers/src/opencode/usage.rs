//! The level of an OpenCode Go plan, from the plan's own endpoint (`GET …/usage` with the plan's key). It is dialled
//! only when there is a login of the plan.

use std::time::Duration;

use gateway_core::usage::source::{Origin, opencode_go};
use gateway_core::usage::{Reading, ReadingSource};
use reqwest::StatusCode;
use serde_json::Value;

use super::config::OpenCodeSettings;
use super::{failure, login};
use crate::ProbeError;
use crate::http::ask;
use crate::sse::chain;

/// The plan's endpoint.
const OFFICIAL: &str = "https://opencode.ai/zen/go/v1";

/// Asks within `limit`.
///
/// # Errors
/// `Unsupported` without a login of the plan, or when the service knows no plan for it (403).
pub(super) async fn probe(
    settings: &OpenCodeSettings,
    auth: &Value,
    limit: Duration,
) -> Result<Vec<Reading>, ProbeError> {
    let Some(key) = login::go_key(auth) else {
        return Err(ProbeError::Unsupported(
            "there is no login of OpenCode Go here".to_owned(),
        ));
    };
    let base = settings.usage_base.as_deref().unwrap_or(OFFICIAL);
    crate::http::install_tls();
    let client = crate::http::client().map_err(|error| failed(&chain(&error)))?;
    let url = format!("{}/usage", base.trim_end_matches('/'));
    let no_plan = "the service knows no OpenCode Go plan for this key";
    let request = client.get(url).bearer_auth(key);
    let payload = ask::usage(request, limit, &[(StatusCode::FORBIDDEN, no_plan)]).await?;
    let origin = Origin::new(
        &settings.subscription,
        (settings.now)(),
        ReadingSource::Probe,
    );
    let readings = opencode_go::usage(&payload, &origin);
    match readings.len() >= WINDOWS {
        true => Ok(readings),
        false => Err(failed("the usage endpoint did not name the plan's windows")),
    }
}

fn failed(words: &str) -> ProbeError {
    ProbeError::Failed(failure::one_line(words))
}

/// How many windows the plan has; fewer means that the endpoint did not tell (it answers 200 to some refusals as well).
const WINDOWS: usize = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gateway_core::usage::WindowStatus;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    /// Plays the endpoint: answers each request the same and counts.
    async fn endpoint(
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        body: Value,
    ) -> (String, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let router = axum::Router::new().fallback(move |request: axum::extract::Request| {
            assert_eq!(request.uri().path(), "/zen/usage");
            assert_eq!(request.headers()["authorization"], "Bearer sk-go");
            counted.fetch_add(1, Ordering::SeqCst);
            let mut response = axum::http::Response::builder().status(status);
            for (name, value) in &headers {
                response = response.header(*name, *value);
            }
            let response = response
                .body(axum::body::Body::from(body.to_string()))
                .unwrap();
            async move { response }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/zen/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (base, asked)
    }

    fn settings(base: String) -> OpenCodeSettings {
        OpenCodeSettings {
            binary: None,
            home: Some("/nonexistent".into()),
            env: BTreeMap::new(),
            subscription: "go".into(),
            metered: false,
            hidden: Vec::new(),
            usage_base: Some(base),
            now: Arc::new(|| Timestamp::from_second(1_796_000_000).unwrap()),
        }
    }

    async fn probed(
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        body: Value,
    ) -> Result<Vec<Reading>, ProbeError> {
        let (base, asked) = endpoint(status, headers, body).await;
        let auth = json!({"opencode-go": {"type": "api", "key": "sk-go"}});
        let result = probe(&settings(base), &auth, Duration::from_secs(20)).await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        result
    }

    #[tokio::test]
    async fn without_a_login_of_the_plan_nothing_is_dialled() {
        let (base, asked) = endpoint(200, Vec::new(), json!({})).await;
        let result = probe(
            &settings(base),
            &json!({"opencode": {"type": "api", "key": "k"}}),
            Duration::from_secs(20),
        )
        .await;
        assert!(matches!(result, Err(ProbeError::Unsupported(_))));
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn the_plans_three_windows_are_read() {
        let readings = probed(
            200,
            Vec::new(),
            json!({"usage": {
                "rolling": {"status": "ok", "percent": 15.0, "resetsAt": "2026-12-01T00:00:00Z"},
                "weekly": {"status": "rate-limited", "percent": 100},
                "monthly": {"percent": 120},
            }}),
        )
        .await
        .unwrap();
        let shown: Vec<_> = readings
            .iter()
            .map(|reading| {
                (
                    reading.window.as_str(),
                    reading.used_pct,
                    reading.status,
                    reading.resets_at.is_some(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("go_rolling", Some(15.0), WindowStatus::Allowed, true),
                ("go_weekly", Some(100.0), WindowStatus::Rejected, false),
                ("go_monthly", Some(120.0), WindowStatus::Unknown, false),
            ]
        );
    }

    #[tokio::test]
    async fn refusals_of_the_endpoint_say_nothing_of_the_plan() {
        let entitlement = json!({"type": "error", "error": {"type": "EntitlementError"}});
        assert!(matches!(
            probed(403, Vec::new(), entitlement.clone()).await,
            Err(ProbeError::Unsupported(_))
        ));
        assert!(matches!(
            probed(200, Vec::new(), entitlement).await,
            Err(ProbeError::Failed(_))
        ));
        assert_eq!(
            probed(429, vec![("retry-after", "60")], json!({})).await,
            Err(ProbeError::Throttled {
                retry_after: Some(Duration::from_secs(60))
            })
        );
        assert!(matches!(
            probed(500, Vec::new(), json!({})).await,
            Err(ProbeError::Failed(_))
        ));
    }
}
