//! HTTP for slack-morphism, over reqwest: one request, tried once. Follows no redirects, so that a token stays where it was
//! sent.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slack_morphism::errors::{
    SlackClientApiError, SlackClientError, SlackClientHttpError, SlackClientHttpProtocolError,
    SlackClientProtocolError, SlackClientSystemError, SlackRateLimitError,
};
use slack_morphism::multipart_form::FileMultipartData;
use slack_morphism::{
    ClientResult, SlackApiToken, SlackClientApiCallContext, SlackClientHttpApiUri,
    SlackClientHttpConnector, SlackClientId, SlackClientSecret, SlackEnvelopeMessage,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longer answers are cut off: the longest that is asked for is a page of 200 messages.
const ANSWER_MAX: usize = 16 << 20;

pub(crate) struct Connector {
    http: reqwest::Client,
    /// Without a slash at its end.
    base: Url,
}

/// What Slack answered with `ok: true`, or with nothing.
pub(crate) struct Answer {
    body: Vec<u8>,
    /// `x-oauth-scopes`: what the token was granted, comma-separated.
    pub(crate) scopes: Option<String>,
}

impl Answer {
    pub(crate) fn read<A: DeserializeOwned>(&self) -> ClientResult<A> {
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

impl Connector {
    pub(crate) fn new(base: &str) -> Result<Self, String> {
        let base = base.trim().trim_end_matches('/');
        let url: Url = base
            .parse()
            .map_err(|error| format!("`{base}` is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(format!("`{base}` is not an http or https URL"));
        }
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { http, base: url })
    }

    pub(crate) fn method(&self, name: &str) -> ClientResult<Url> {
        let base = self.base.as_str().trim_end_matches('/');
        Ok(format!("{base}/{name}").parse()?)
    }

    pub(crate) async fn post(
        &self,
        url: &Url,
        body: Vec<u8>,
        token: Option<&SlackApiToken>,
    ) -> ClientResult<Answer> {
        let request = self
            .http
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .body(body);
        ask(with_token(request, token)).await
    }

    pub(crate) async fn upload(&self, url: &Url, bytes: Vec<u8>) -> ClientResult<()> {
        let request = self
            .http
            .post(url.clone())
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(bytes);
        ask(request).await.map(drop)
    }

    pub(crate) async fn download(
        &self,
        url: Url,
        token: &SlackApiToken,
    ) -> ClientResult<reqwest::Response> {
        let request = with_token(self.http.get(url), Some(token));
        request.send().await.map_err(undelivered)
    }

    pub(crate) fn is_ours(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_slack = host == "slack.com" || host.ends_with(".slack.com");
        (url.scheme() == "https" && is_slack) || url.origin() == self.base.origin()
    }
}

fn with_token(request: RequestBuilder, token: Option<&SlackApiToken>) -> RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(&token.token_value.0),
        None => request,
    }
}

/// Sends a request and judges the answer.
async fn ask(request: RequestBuilder) -> ClientResult<Answer> {
    let mut response = request.send().await.map_err(undelivered)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(undelivered)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_MAX {
            let why = format!("the answer is longer than {ANSWER_MAX} bytes");
            return Err(system(why.into()));
        }
    }
    judge(status, &headers, body)
}

fn judge(status: StatusCode, headers: &HeaderMap, body: Vec<u8>) -> ClientResult<Answer> {
    let text = || String::from_utf8_lossy(&body).into_owned();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if status == StatusCode::TOO_MANY_REQUESTS {
        let after = header(RETRY_AFTER.as_str()).and_then(|seconds| seconds.trim().parse().ok());
        let limited = SlackRateLimitError::new().opt_retry_after(after.map(Duration::from_secs));
        return Err(SlackClientError::RateLimitError(limited));
    }
    if !status.is_success() {
        let refused = SlackClientHttpError::new(status).with_http_response_body(text());
        return Err(SlackClientError::HttpError(refused));
    }
    let is_json = header(CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("json"));
    // A `response_url` answers "ok" or nothing, an upload "OK - 12": both without being JSON.
    if !is_json || body.is_empty() {
        let body = b"{}".to_vec();
        return Ok(Answer { body, scopes: None });
    }
    let envelope: SlackEnvelopeMessage = serde_json::from_slice(&body).map_err(unreadable)?;
    match envelope.error {
        Some(word) => Err(SlackClientError::ApiError(
            SlackClientApiError::new(word).with_http_response_body(text()),
        )),
        None if !envelope.ok => Err(SlackClientError::ApiError(
            SlackClientApiError::new("unknown_error".to_owned()).with_http_response_body(text()),
        )),
        None => Ok(Answer {
            scopes: header("x-oauth-scopes").map(str::to_owned),
            body,
        }),
    }
}

pub(crate) fn json<Q: Serialize>(request: &Q) -> ClientResult<Vec<u8>> {
    serde_json::to_vec(request).map_err(unreadable)
}

fn undelivered(error: reqwest::Error) -> SlackClientError {
    // The address may be a secret: a `response_url`, a file.
    let cause = Box::new(error.without_url());
    SlackClientError::HttpProtocolError(SlackClientHttpProtocolError::new().with_cause(cause))
}

fn unreadable(error: serde_json::Error) -> SlackClientError {
    SlackClientError::ProtocolError(SlackClientProtocolError::new(error))
}

fn system(cause: Box<dyn std::error::Error + Send + Sync>) -> SlackClientError {
    SlackClientError::SystemError(SlackClientSystemError::new().with_cause(cause))
}

impl SlackClientHttpConnector for Connector {
    fn create_method_uri_path(&self, method: &str) -> ClientResult<Url> {
        self.method(method)
    }

    fn http_get_uri<'a, A>(
        &'a self,
        url: Url,
        context: SlackClientApiCallContext<'a>,
    ) -> BoxFuture<'a, ClientResult<A>>
    where
        A: for<'de> serde::de::Deserialize<'de> + Send + 'a,
    {
        let request = with_token(self.http.get(url), context.token);
        async move { ask(request).await?.read() }.boxed()
    }

    fn http_get_with_client_secret<'a, A>(
        &'a self,
        url: Url,
        client_id: &'a SlackClientId,
        client_secret: &'a SlackClientSecret,
    ) -> BoxFuture<'a, ClientResult<A>>
    where
        A: for<'de> serde::de::Deserialize<'de> + Send + 'a,
    {
        let request = self.http.get(url);
        let request = request.basic_auth(&client_id.0, Some(&client_secret.0));
        async move { ask(request).await?.read() }.boxed()
    }

    fn http_post_uri<'a, Q, A>(
        &'a self,
        url: Url,
        request: &'a Q,
        context: SlackClientApiCallContext<'a>,
    ) -> BoxFuture<'a, ClientResult<A>>
    where
        Q: Serialize + Send + Sync,
        A: for<'de> serde::de::Deserialize<'de> + Send + 'a,
    {
        let body = json(request);
        async move { self.post(&url, body?, context.token).await?.read() }.boxed()
    }

    /// A form without a file in its middle; files go to upload addresses.
    fn http_post_uri_multipart_form<'a, 'p, A, P, T>(
        &'a self,
        url: Url,
        file: Option<FileMultipartData<'p>>,
        parameters: &'p P,
        context: SlackClientApiCallContext<'a>,
    ) -> BoxFuture<'a, ClientResult<A>>
    where
        A: for<'de> serde::de::Deserialize<'de> + Send + 'a,
        P: IntoIterator<Item = (&'p str, Option<T>)> + Clone,
        T: AsRef<str> + 'p + Send,
    {
        if file.is_some() {
            let why = "files are uploaded by address, never in a form";
            return std::future::ready(Err(system(why.into()))).boxed();
        }
        let url = SlackClientHttpApiUri::create_url_with_params(url, parameters);
        async move {
            let request = self.http.post(url?);
            ask(with_token(request, context.token)).await?.read()
        }
        .boxed()
    }

    fn http_post_uri_binary<'a, 'p, A>(
        &'a self,
        url: Url,
        content_type: String,
        data: &'a [u8],
        context: SlackClientApiCallContext<'a>,
    ) -> BoxFuture<'a, ClientResult<A>>
    where
        A: for<'de> serde::de::Deserialize<'de> + Send + 'a,
    {
        let request = self.http.post(url).header(CONTENT_TYPE, content_type);
        let request = with_token(request.body(data.to_vec()), context.token);
        async move { ask(request).await?.read() }.boxed()
    }
}
