//! Bodies of uploads: JSON beside files.

use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

/// One part of a form.
pub(crate) struct Part {
    pub(crate) name: String,
    /// `Some` = a file.
    pub(crate) file_name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn is_multipart(headers: &HeaderMap) -> bool {
    content_type(headers).starts_with("multipart/form-data")
}

pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Takes a form apart. The error says what is wrong with it.
pub(crate) async fn parts(headers: &HeaderMap, bytes: Vec<u8>) -> Result<Vec<Part>, String> {
    let mut request = Request::new(Body::from(bytes));
    *request.headers_mut() = headers.clone();
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|error| error.to_string())?;
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| error.to_string())? {
        parts.push(Part {
            name: field.name().unwrap_or_default().to_owned(),
            file_name: field.file_name().map(str::to_owned),
            content_type: field.content_type().map(str::to_owned),
            bytes: field
                .bytes()
                .await
                .map_err(|error| error.to_string())?
                .to_vec(),
        });
    }
    Ok(parts)
}
