//! The paths of the surface.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::timeout;

use super::error::ApiError;
use super::guard::Guard;
use super::turn::Bridge;
use super::{answer, models, request};

/// What every request needs.
pub(super) struct Doors {
    pub(super) bridge: Arc<Bridge>,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
}

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<BTreeMap<u16, u64>>);

const HEALTH: &str = "/healthz";
/// The longest idempotency key, in bytes.
const IDEMPOTENCY_MAX: usize = 256;

/// Every path, behind the guard.
pub(super) fn router(doors: Arc<Doors>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(list))
        .route("/v1/models/{*name}", get(one))
        .route(HEALTH, get(health))
        .route("/metrics", get(metrics))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&doors), guarded))
        .with_state(doors)
}

/// Counts every reply, and lets only those in who may ask.
async fn guarded(State(doors): State<Arc<Doors>>, request: Request, next: Next) -> Response<Body> {
    let headers = request.headers();
    let allowed = doors.guard.place(headers).and_then(|()| {
        match request.uri().path() == HEALTH {
            true => Ok(()), // whether the process lives is no secret
            false => doors.guard.token(headers),
        }
    });
    let response = match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    *doors
        .metrics
        .0
        .lock()
        .entry(response.status().as_u16())
        .or_default() += 1;
    response
}

async fn chat(State(doors): State<Arc<Doors>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let running = async {
        let body = read(&parts.headers, body, &doors).await?;
        let asked = request::parse(&body)?;
        drop(body);
        let idempotency = idempotency(&parts.headers)?;
        doors.bridge.start(asked, idempotency.as_deref()).await
    };
    match running.await {
        Ok(running) => answer::respond(running.progress, running.form).await,
        Err(error) => error.into_response(),
    }
}

async fn read(headers: &HeaderMap, body: Body, doors: &Doors) -> Result<Vec<u8>, ApiError> {
    let options = &doors.bridge.options;
    let too_large = || {
        let why = format!("the body is larger than {} bytes.", options.body_max);
        ApiError::new(413, "request_too_large", why)
    };
    let declared = headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > options.body_max as u64) {
        return Err(too_large());
    }
    let reading = async {
        let mut whole = Vec::new();
        let mut parts = body.into_data_stream();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| {
                ApiError::new(
                    400,
                    "invalid_request",
                    format!("the body broke off: {error}."),
                )
            })?;
            if whole.len() + part.len() > options.body_max {
                return Err(too_large());
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole)
    };
    timeout(options.body_wait, reading)
        .await
        .unwrap_or_else(|_| {
            let why = format!(
                "the body was not there after {} s.",
                options.body_wait.as_secs()
            );
            Err(ApiError::new(408, "request_timeout", why))
        })
}

fn idempotency(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(given) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match given.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= IDEMPOTENCY_MAX => Ok(Some(key.to_owned())),
        _ => {
            let why = format!("`Idempotency-Key` is no text of 1 to {IDEMPOTENCY_MAX} bytes.");
            Err(ApiError::new(400, "invalid_request", why))
        }
    }
}

async fn list(State(doors): State<Arc<Doors>>) -> Response<Body> {
    Json(models::list(&doors.bridge.effects.settings)).into_response()
}

async fn one(State(doors): State<Arc<Doors>>, Path(name): Path<String>) -> Response<Body> {
    match models::one(&name, &doors.bridge.effects.settings) {
        Some(model) => Json(model).into_response(),
        None => {
            let why = format!("there is no model {name:?}; GET /v1/models lists them.");
            ApiError::new(404, "model_not_found", why).into_response()
        }
    }
}

async fn health() -> Response<Body> {
    Json(json!({ "status": "ok" })).into_response()
}

async fn metrics(State(doors): State<Arc<Doors>>) -> Response<Body> {
    let bridge = &doors.bridge;
    let running = bridge
        .options
        .turns
        .saturating_sub(bridge.turns.available_permits());
    let mut text = String::from("# TYPE baton_http_requests_total counter\n");
    for (status, count) in doors.metrics.0.lock().iter() {
        let _ = writeln!(
            text,
            "baton_http_requests_total{{status=\"{status}\"}} {count}"
        );
    }
    let rotations = bridge.rotations.load(std::sync::atomic::Ordering::Relaxed);
    let _ = write!(
        text,
        "# TYPE baton_http_rotations_total counter\nbaton_http_rotations_total {rotations}\n\
         # TYPE baton_http_turns_running gauge\nbaton_http_turns_running {running}\n\
         # TYPE baton_http_requests_running gauge\nbaton_http_requests_running {}\n",
        bridge.tasks.len()
    );
    let mut response = Response::new(Body::from(text));
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

async fn not_found(request: Request) -> Response<Body> {
    let why = format!(
        "there is nothing at {}; requests go to POST /v1/chat/completions.",
        request.uri().path()
    );
    ApiError::new(404, "not_found", why).into_response()
}

async fn wrong_method(request: Request) -> Response<Body> {
    let why = format!("{} is not for {}.", request.method(), request.uri().path());
    ApiError::new(405, "method_not_allowed", why).into_response()
}
