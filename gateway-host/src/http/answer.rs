//! An answer in OpenAI's form, whole or as server-sent events.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use axum::response::IntoResponse;
use futures_util::stream;
use gateway_core::event::TokenUsage;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::error::ApiError;
use super::flight::{End, Progress};

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: i64,
    /// The model as the client named it, else the route that answered.
    pub(super) model: String,
    pub(super) text: String,
    pub(super) subscription: String,
    pub(super) route_model: String,
    pub(super) usage: TokenUsage,
    /// The title of the session that answered; empty where the route keeps none.
    pub(super) title: String,
    pub(super) generation: u32,
    pub(super) rotated: bool,
    /// Why the session was opened, where it was.
    pub(super) opened: Option<&'static str>,
}

impl Answered {
    /// `None` = the provider told nothing, and zeros would be a lie.
    fn usage(&self) -> Option<Value> {
        let usage = &self.usage;
        if *usage == TokenUsage::default() {
            return None;
        }
        let of = |tokens: Option<u64>| tokens.unwrap_or(0);
        let prompt = of(usage.input) + of(usage.cache_read) + of(usage.cache_write);
        Some(json!({
            "prompt_tokens": prompt,
            "completion_tokens": of(usage.output),
            "total_tokens": prompt + of(usage.output),
            "prompt_tokens_details": { "cached_tokens": of(usage.cache_read) },
        }))
    }

    /// How much of the prompt came from the cache, 0 to 1; `None` = unknown.
    fn cache_read_share(&self) -> Option<f64> {
        let read = self.usage.cache_read?;
        let prompt = self.usage.input? + read + self.usage.cache_write.unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a share with three digits")]
        (prompt > 0).then(|| read as f64 / prompt as f64)
    }

    fn about(&self) -> Value {
        json!({
            "subscription": self.subscription, "model": self.route_model, "session": self.title,
            "generation": self.generation, "rotated": self.rotated, "opened": self.opened,
            "cache_read_share": self.cache_read_share(),
        })
    }

    fn headers(&self, headers: &mut HeaderMap) {
        let share = self.cache_read_share().map(|share| format!("{share:.3}"));
        let lines = [
            ("x-baton-subscription", Some(self.subscription.clone())),
            ("x-baton-model", Some(self.route_model.clone())),
            (
                "x-baton-session",
                Some(self.title.clone()).filter(|title| !title.is_empty()),
            ),
            ("x-baton-generation", Some(self.generation.to_string())),
            ("x-baton-rotated", Some(self.rotated.to_string())),
            ("x-baton-opened", self.opened.map(str::to_owned)),
            ("x-baton-cache-read-share", share),
        ];
        for (name, value) in lines {
            // A name in a configuration may hold what no header can: it stands in the body in any case.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{
                "index": 0, "finish_reason": "stop", "logprobs": null,
                "message": { "role": "assistant", "content": self.text, "refusal": null },
            }],
            "baton": self.about(),
        });
        if let (Some(usage), Some(members)) = (self.usage(), object.as_object_mut()) {
            members.insert("usage".to_owned(), usage);
        }
        object
    }
}

/// How a client wants its answer.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Settings that were given and have no effect.
    pub(super) ignored: Vec<&'static str>,
    /// The head of streamed chunks, which are sent before it is known who answers.
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
}

/// Waits for a request's end, or for its first text if it is streamed, and answers with it.
pub(super) async fn respond(mut progress: watch::Receiver<Progress>, form: Form) -> Response<Body> {
    let ready =
        |progress: &Progress| progress.end.is_some() || (form.stream && !progress.text.is_empty());
    let end = match progress.wait_for(ready).await {
        Ok(progress) => progress.end.clone(),
        Err(_) => return gone().into_response(),
    };
    let mut response = match (end.as_deref(), form.stream) {
        (Some(Err(error)), _) => error.clone().into_response(),
        (Some(Ok(answered)), false) => whole(answered),
        (_, true) => streamed(progress, &form),
        (None, false) => gone().into_response(),
    };
    if !form.ignored.is_empty()
        && let Ok(names) = HeaderValue::from_str(&form.ignored.join(","))
    {
        response.headers_mut().insert("x-baton-ignored", names);
    }
    response
}

fn gone() -> ApiError {
    let why = "the gateway made a mistake with this request; its log says where.";
    ApiError::new(500, "internal_error", why).may_have_reached(true)
}

fn whole(answered: &Answered) -> Response<Body> {
    let mut response = Response::new(Body::from(answered.object().to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    answered.headers(response.headers_mut());
    response
}

fn streamed(progress: watch::Receiver<Progress>, form: &Form) -> Response<Body> {
    let chunks = Chunks {
        progress,
        form: form.clone(),
        sent: String::new(),
        state: State::Begin,
    };
    let body = stream::unfold(chunks, |mut chunks| async move {
        let bytes = chunks.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), chunks))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The chunks of a streamed answer.
struct Chunks {
    progress: watch::Receiver<Progress>,
    form: Form,
    sent: String,
    state: State,
}

enum State {
    Begin,
    Text,
    Over,
}

/// What comes next.
enum Found {
    Text(String),
    End(Arc<End>),
    Withdrawn,
}

impl Chunks {
    async fn next(&mut self) -> Option<Bytes> {
        match self.state {
            State::Over => return None,
            State::Begin => {
                self.state = State::Text;
                let role = json!({ "role": "assistant", "content": "" });
                return Some(event(&self.chunk(&role, Value::Null)));
            }
            State::Text => {}
        }
        let found = self.find().await;
        Some(match found {
            Some(Found::Text(new)) => {
                self.sent.push_str(&new);
                event(&self.chunk(&json!({ "content": new }), Value::Null))
            }
            Some(Found::End(end)) => self.over(&end),
            Some(Found::Withdrawn) => {
                let why = "the provider withdrew what was streamed already; ask for the answer without `stream`.";
                self.failed(&ApiError::new(502, "provider_failed", why))
            }
            None => self.failed(&gone()),
        })
    }

    async fn find(&mut self) -> Option<Found> {
        loop {
            {
                let progress = self.progress.borrow_and_update();
                match progress.text.strip_prefix(self.sent.as_str()) {
                    None => return Some(Found::Withdrawn),
                    Some("") => {}
                    Some(new) => return Some(Found::Text(new.to_owned())),
                }
                if let Some(end) = &progress.end {
                    return Some(Found::End(Arc::clone(end)));
                }
            }
            self.progress.changed().await.ok()?;
        }
    }

    fn over(&mut self, end: &End) -> Bytes {
        let answered = match end {
            Ok(answered) => answered,
            Err(error) => return self.failed(error),
        };
        self.state = State::Over;
        let mut last = self.chunk(&json!({}), json!("stop"));
        if let Some(members) = last.as_object_mut() {
            members.insert("baton".to_owned(), answered.about());
        }
        let mut events = event(&last).to_vec();
        if let Some(usage) = answered.usage().filter(|_| self.form.include_usage) {
            let mut chunk = self.chunk(&json!({}), Value::Null);
            if let Some(members) = chunk.as_object_mut() {
                members.insert("choices".to_owned(), json!([]));
                members.insert("usage".to_owned(), usage);
            }
            events.extend_from_slice(&event(&chunk));
        }
        events.extend_from_slice(b"data: [DONE]\n\n");
        Bytes::from(events)
    }

    /// An error after the first byte: the SDKs raise it from this event.
    fn failed(&mut self, error: &ApiError) -> Bytes {
        self.state = State::Over;
        event(&error.object())
    }

    fn chunk(&self, delta: &Value, finish: Value) -> Value {
        json!({
            "id": self.form.id, "object": "chat.completion.chunk", "created": self.form.created, "model": self.form.model,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
        })
    }
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered() -> Answered {
        Answered {
            id: "chatcmpl-1".to_owned(),
            created: 7,
            model: "default".to_owned(),
            text: "hello".to_owned(),
            subscription: "one".to_owned(),
            route_model: "m".to_owned(),
            usage: TokenUsage {
                input: Some(10),
                output: Some(5),
                cache_read: Some(30),
                cache_write: None,
            },
            title: "baton-1".to_owned(),
            generation: 1,
            rotated: true,
            opened: None,
        }
    }

    fn form(stream: bool) -> Form {
        Form {
            stream,
            include_usage: true,
            ignored: vec!["seed"],
            id: "chatcmpl-1".to_owned(),
            created: 7,
            model: "default".to_owned(),
        }
    }

    async fn text(response: Response<Body>) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn case_73_usage_counts_what_came_from_the_cache() {
        let (sender, progress) = watch::channel(Progress::default());
        sender.send_modify(|progress| progress.end = Some(Arc::new(Ok(answered()))));
        let response = respond(progress, form(false)).await;
        assert_eq!(response.headers()["x-baton-cache-read-share"], "0.750");
        assert_eq!(response.headers()["x-baton-ignored"], "seed");
        insta::assert_snapshot!(text(response).await, @r#"{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"default","choices":[{"index":0,"finish_reason":"stop","logprobs":null,"message":{"role":"assistant","content":"hello","refusal":null}}],"baton":{"subscription":"one","model":"m","session":"baton-1","generation":1,"rotated":true,"opened":null,"cache_read_share":0.75},"usage":{"prompt_tokens":40,"completion_tokens":5,"total_tokens":45,"prompt_tokens_details":{"cached_tokens":30}}}"#);
    }

    #[test]
    fn unknown_usage_is_left_out() {
        let unknown = Answered {
            usage: TokenUsage::default(),
            ..answered()
        };
        assert!(unknown.object().get("usage").is_none());
        assert_eq!(unknown.cache_read_share(), None);
    }

    #[tokio::test]
    async fn case_64_a_stream_has_role_text_end_usage_and_done() {
        let (sender, progress) = watch::channel(Progress::default());
        sender.send_modify(|progress| progress.text.push_str("hel"));
        let response = respond(progress, form(true)).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        sender.send_modify(|progress| {
            progress.text.push_str("lo");
            progress.end = Some(Arc::new(Ok(answered())));
        });
        let said = text(response).await;
        let data: Vec<&str> = said
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("data: "))
            .collect();
        let parsed: Vec<Value> = data
            .iter()
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        assert_eq!(parsed[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(parsed[1]["choices"][0]["delta"]["content"], "hello");
        assert_eq!(parsed[2]["choices"][0]["finish_reason"], "stop");
        assert_eq!(parsed[2]["baton"]["rotated"], true);
        assert_eq!(parsed[3]["usage"]["total_tokens"], 45);
        assert_eq!((parsed.len(), data.last()), (4, Some(&"[DONE]")));
    }

    #[tokio::test]
    async fn case_64_an_error_before_the_first_byte_has_a_status_and_after_it_is_an_event() {
        let error = || ApiError::new(429, "rate_limit_exceeded", "spent");
        let (sender, progress) = watch::channel(Progress::default());
        sender.send_modify(|progress| progress.end = Some(Arc::new(Err(error()))));
        assert_eq!(respond(progress, form(true)).await.status(), 429);

        let (sender, progress) = watch::channel(Progress::default());
        sender.send_modify(|progress| progress.text.push_str("hel"));
        let response = respond(progress, form(true)).await;
        sender.send_modify(|progress| progress.end = Some(Arc::new(Err(error()))));
        let said = text(response).await;
        assert!(
            said.contains("\"code\":\"rate_limit_exceeded\"") && !said.contains("[DONE]"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn withdrawn_text_ends_a_stream_with_an_error() {
        let (sender, progress) = watch::channel(Progress::default());
        sender.send_modify(|progress| progress.text.push_str("hel"));
        let response = respond(progress, form(true)).await;
        let mut body = response.into_body().into_data_stream();
        use futures_util::StreamExt;
        body.next().await;
        body.next().await;
        sender.send_modify(|progress| progress.text = "other".to_owned());
        let said = body.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&said).contains("provider_failed"));
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn a_request_that_was_dropped_by_us_is_our_fault() {
        let (sender, progress) = watch::channel(Progress::default());
        drop(sender);
        let response = respond(progress, form(false)).await;
        assert_eq!(
            (
                response.status().as_u16(),
                &response.headers()["x-should-retry"]
            ),
            (500, &HeaderValue::from_static("false"))
        );
    }
}
