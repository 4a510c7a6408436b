//! What a request is told when it gets no answer: an error object in OpenAI's form, with a code that stays the same.
//!
//! | status | codes |
//! |---|---|
//! | 400 | `invalid_json` `invalid_request` `unsupported_parameter` `unsupported_content` `content_filter` `provider_refused` |
//! | 401, 403 | `invalid_token`, `forbidden_host` `forbidden_origin` |
//! | 404, 405 | `not_found` `model_not_found`, `method_not_allowed` |
//! | 408, 413 | `request_timeout`, `request_too_large` (the body), `context_length_exceeded` (the transcript does not fit a new session either), `session_full` (this session was full and could not be retired) |
//! | 429 | `rate_limit_exceeded` `insufficient_quota` |
//! | 500 | `internal_error` |
//! | 502 | `upstream_auth` `upstream_unreachable` `provider_failed` |
//! | 503 | `busy` `overloaded` `no_route` `shutting_down` |
//! | 504 | `timeout` |
//!
//! The official SDKs send a request again on 408, 409, 429 and 5xx unless told otherwise. Where the turn may have reached
//! a provider they are told so: it may have had effects, and it is in the session already.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// The parameter that is wrong.
    pub param: Option<String>,
    /// Seconds after which asking again makes sense.
    pub retry_after: Option<u64>,
    /// `Some(false)` = asking again by itself is wrong. `None` = as the status says.
    pub should_retry: Option<bool>,
}

/// The longest message, in characters.
const MESSAGE_MAX: usize = 600;

impl ApiError {
    /// An error of this status and code.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// A request that is wrong in this parameter.
    pub fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.to_owned()),
            ..Self::new(400, "invalid_request", message)
        }
    }

    /// Adds when to ask again, in seconds.
    pub fn retry_after(mut self, seconds: Option<u64>) -> Self {
        self.retry_after = seconds;
        self
    }

    /// Says that the turn may have reached a provider.
    pub fn may_have_reached(mut self, reached: bool) -> Self {
        if reached {
            self.should_retry = Some(false);
        }
        self
    }

    /// OpenAI's `type` for the status.
    fn kind(&self) -> &'static str {
        match self.status {
            401 | 403 => "authentication_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    /// The error object.
    pub fn object(&self) -> serde_json::Value {
        let message: String = match self.message.char_indices().nth(MESSAGE_MAX) {
            None => self.message.clone(),
            Some(_) => self
                .message
                .chars()
                .take(MESSAGE_MAX)
                .chain(['…'])
                .collect(),
        };
        json!({ "error": {
            "message": message, "type": self.kind(), "param": self.param, "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.object().to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(retry) = self.should_retry {
            let word = if retry { "true" } else { "false" };
            headers.insert("x-should-retry", HeaderValue::from_static(word));
        }
        if self.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_openais_form() {
        let error = ApiError::invalid("messages", "`messages` is empty.").object();
        insta::assert_snapshot!(error.to_string(), @r#"{"error":{"message":"`messages` is empty.","type":"invalid_request_error","param":"messages","code":"invalid_request"}}"#);
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let error = ApiError::new(500, "internal_error", "ä".repeat(2000)).object();
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!(message.chars().count(), MESSAGE_MAX + 1);
    }

    #[test]
    fn headers_say_when_and_whether_to_ask_again() {
        let error = ApiError::new(429, "rate_limit_exceeded", "x")
            .retry_after(Some(7))
            .may_have_reached(true);
        let response = error.into_response();
        assert_eq!(response.headers()["retry-after"], "7");
        assert_eq!(response.headers()["x-should-retry"], "false");
        let plain = ApiError::new(503, "busy", "x").may_have_reached(false);
        assert!(
            !plain
                .into_response()
                .headers()
                .contains_key("x-should-retry")
        );
    }
}
