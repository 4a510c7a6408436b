//! The Web API: every call goes the same way, whatever it asks for.
//!
//! Order: method known, parameters, login and scope, scripted fault, rate limit, the deed, check of the answer, record.

mod chat;
mod conversations;
mod files;

pub(crate) use conversations::dm_with;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Method as Verb, Response, StatusCode, Uri};
use serde_json::{Map, Value, json};

use super::Shared;
use super::fault::Fault;
use super::methods::{self, Login, Method};
use super::recorder::Requested;
use super::world::World;
use super::{hand, reply};
use crate::limits::Verdict;
use crate::multipart;
use crate::spec;

type Parameters = Map<String, Value>;
/// `Err` = Slack's error word.
type Done = Result<Value, &'static str>;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .fallback(serve)
        .layer(DefaultBodyLimit::max(40 * 1024 * 1024))
        .with_state(shared)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    verb: Verb,
    uri: Uri,
    headers: HeaderMap,
    query: Query<Vec<(String, String)>>,
    bytes: Bytes,
) -> Response<Body> {
    let token = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = token
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::to_owned);
    let path = uri.path();
    let answer = if let Some(file) = path.strip_prefix("/files/") {
        files::download(&shared.world.lock(), file, token.as_deref())
    } else if let Some(id) = path.strip_prefix("/upload/") {
        files::upload(&shared, id, &headers, bytes).await
    } else {
        match parameters(&headers, query.0, bytes).await {
            Err(broken) => {
                shared.violations.add(format!("{verb} {path}: {broken}"));
                json_answer(200, &json!({ "ok": false, "error": "invalid_form_data" }))
            }
            Ok(parameters) => match (path.strip_prefix("/response/"), path.strip_prefix("/api/")) {
                (Some(id), _) => shared.response_url(id, parameters),
                (None, Some(method)) => shared.call(method, parameters, token),
                (None, None) => {
                    shared
                        .violations
                        .add(format!("{verb} {path}: no such route"));
                    json_answer(404, &json!({ "ok": false, "error": "unknown_method" }))
                }
            },
        }
    };
    shared.flush();
    answer
}

/// Parameters come in the query, a form, a multipart form or JSON; JSON inside a form is unpacked.
async fn parameters(
    headers: &HeaderMap,
    query: Vec<(String, String)>,
    bytes: Bytes,
) -> Result<Parameters, String> {
    let mut pairs = query;
    let kind = multipart::content_type(headers).to_owned();
    if kind.starts_with("application/json") && !bytes.is_empty() {
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        return match body {
            Value::Object(object) => Ok(object),
            _ => Err("the JSON body is not an object".into()),
        };
    }
    if multipart::is_multipart(headers) {
        for part in multipart::parts(headers, bytes.to_vec()).await? {
            pairs.push((part.name, String::from_utf8_lossy(&part.bytes).into_owned()));
        }
    } else {
        let uri: Uri = format!("/?{}", String::from_utf8_lossy(&bytes))
            .parse()
            .map_err(|_| "the form is not encoded")?;
        let form: Query<Vec<(String, String)>> =
            Query::try_from_uri(&uri).map_err(|error| error.to_string())?;
        pairs.extend(form.0);
    }
    let unpacked = pairs.into_iter().map(|(key, text)| {
        let packed =
            ["blocks", "attachments", "metadata", "files", "chunks"].contains(&key.as_str());
        let value = if packed {
            serde_json::from_str(&text).unwrap_or(json!(text))
        } else {
            json!(text)
        };
        (key, value)
    });
    Ok(unpacked.collect())
}

impl Shared {
    fn call(
        &self,
        name: &str,
        mut parameters: Parameters,
        token: Option<String>,
    ) -> Response<Body> {
        let mut world = self.world.lock();
        let token = token.or_else(|| parameters.remove("token")?.as_str().map(str::to_owned));
        let Some(method) = methods::find(name) else {
            self.violations.add(format!(
                "{name}: the fake does not know this method, so nothing checks it"
            ));
            return finish(&mut world, name, parameters, Err("unknown_method"));
        };
        let broken = broken_rules(method, &parameters);
        if !broken.is_empty() {
            let word = error_word(&broken);
            for sentence in broken {
                self.violations.add(format!("{name}: {sentence}"));
            }
            return finish(&mut world, name, parameters, Err(word));
        }
        if let Err(word) = login(&world, method, token.as_deref()) {
            return finish(&mut world, name, parameters, Err(word));
        }
        let planned = self.faults.take(name);
        if let Some(fault) = &planned
            && !matches!(fault, Fault::Lost)
        {
            return faulty(&mut world, name, parameters, fault);
        }
        if let Err(retry_after) = count(&mut world, method, &parameters) {
            return limited(&mut world, name, parameters, retry_after);
        }
        let done = route(&mut world, name, &parameters, self);
        if planned.is_some() {
            record(&mut world, name, parameters, 500, Value::Null);
            return json_answer(500, &Value::Null);
        }
        if let Ok(answer) = &done {
            for sentence in spec::slack().check_success(name, &as_of_2021(answer)) {
                self.violations
                    .add(format!("the fake's own answer to {name}: {sentence}"));
            }
        }
        finish(&mut world, name, parameters, done)
    }

    fn response_url(&self, id: &str, parameters: Parameters) -> Response<Body> {
        let mut world = self.world.lock();
        if let Some(fault) = self.faults.take("response_url") {
            return faulty(&mut world, "response_url", parameters, &fault);
        }
        let (status, answer, broken) = reply::respond(&mut world, id, &parameters);
        for sentence in broken {
            self.violations.add(format!("response_url: {sentence}"));
        }
        record(
            &mut world,
            "response_url",
            parameters,
            status,
            answer.clone(),
        );
        json_answer(status, &answer)
    }
}

fn route(world: &mut World, name: &str, parameters: &Parameters, shared: &Shared) -> Done {
    match name.split('.').next() {
        Some("chat") => chat::route(world, name, parameters),
        Some("files") => files::route(world, name, parameters),
        Some("apps") => Ok(json!({ "ok": true, "url": shared.hub.lock().ticket(&world.sockets) })),
        _ => conversations::route(world, name, parameters),
    }
}

fn broken_rules(method: &Method, parameters: &Parameters) -> Vec<String> {
    let known = spec::slack().parameters(method.name).unwrap_or_default();
    let own = method
        .parameters
        .iter()
        .map(|name| (name.trim_start_matches('!'), name.starts_with('!')));
    let known: Vec<(&str, bool)> = known
        .into_iter()
        .chain(own)
        .filter(|(name, _)| *name != "token")
        .collect();
    // bolt puts `team_id` into every call (for tokens of a whole organisation); Slack ignores it elsewhere.
    let named = |key: &str| key == "team_id" || known.iter().any(|(name, _)| *name == key);
    let unknown = parameters.keys().filter(|key| !named(key));
    let mut broken: Vec<String> = unknown
        .map(|key| format!("{key}: unknown parameter"))
        .collect();
    for (name, required) in known {
        if required && parameters.get(name).is_none_or(Value::is_null) {
            broken.push(format!("{name}: missing"));
        }
    }
    if method.name.starts_with("chat.") {
        broken.extend(hand::check_message(parameters));
    }
    broken
}

/// The word in parentheses at the end of a sentence, where there is one.
fn error_word(broken: &[String]) -> &'static str {
    const WORDS: [&str; 5] = [
        "msg_too_long",
        "msg_blocks_too_long",
        "invalid_blocks_format",
        "invalid_blocks",
        "markdown_text_conflict",
    ];
    let named = |word: &&str| {
        broken
            .iter()
            .any(|sentence| sentence.ends_with(&format!("({word})")))
    };
    WORDS.into_iter().find(named).unwrap_or("invalid_arguments")
}

fn login(world: &World, method: &Method, token: Option<&str>) -> Result<(), &'static str> {
    let token = token.ok_or("not_authed")?;
    let (wanted, other) = match method.login {
        Login::Bot => (&world.bot_token, &world.app_token),
        Login::App => (&world.app_token, &world.bot_token),
    };
    if token != wanted {
        return Err(if token == other {
            "not_allowed_token_type"
        } else {
            "invalid_auth"
        });
    }
    let granted = |scope: &&str| world.scopes.iter().any(|known| known == scope);
    let enough =
        method.login == Login::App || method.scopes.is_empty() || method.scopes.iter().any(granted);
    if enough { Ok(()) } else { Err("missing_scope") }
}

/// `Err` = how long to wait.
fn count(world: &mut World, method: &Method, parameters: &Parameters) -> Result<(), Duration> {
    let now = world.now();
    let mut key = method.name.to_owned();
    if method.name == "chat.postMessage" {
        key.push_str(
            parameters
                .get("channel")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        );
    }
    match world.limits.count(&key, method.rate, now) {
        Verdict::Passed { .. } => Ok(()),
        Verdict::Refused { retry_after } => Err(retry_after),
    }
}

fn limited(
    world: &mut World,
    name: &str,
    parameters: Parameters,
    retry_after: Duration,
) -> Response<Body> {
    let answer = json!({ "ok": false, "error": "ratelimited" });
    record(world, name, parameters, 429, answer.clone());
    let mut response = json_answer(429, &answer);
    // Whole seconds, rounded up: Slack sends no fractions.
    let seconds = format!("{:.0}", retry_after.as_secs_f64().ceil());
    response.headers_mut().insert(
        "retry-after",
        HeaderValue::from_str(&seconds).expect("a number"),
    );
    response
}

fn faulty(world: &mut World, name: &str, parameters: Parameters, fault: &Fault) -> Response<Body> {
    match fault {
        Fault::RateLimited { retry_after } => limited(world, name, parameters, *retry_after),
        Fault::Error(word) => {
            let answer = json!({ "ok": false, "error": word });
            record(world, name, parameters, 200, answer.clone());
            json_answer(200, &answer)
        }
        Fault::ServerError | Fault::Lost => {
            record(world, name, parameters, 500, Value::Null);
            json_answer(500, &Value::Null)
        }
        Fault::Cut => {
            record(world, name, parameters, 0, Value::Null);
            let broken =
                futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("scripted"))]);
            let mut response = Response::new(Body::from_stream(broken));
            response
                .headers_mut()
                .insert("content-length", HeaderValue::from_static("100"));
            response
        }
    }
}

fn finish(world: &mut World, name: &str, parameters: Parameters, done: Done) -> Response<Body> {
    let answer = done.unwrap_or_else(|word| {
        let mut answer = json!({ "ok": false, "error": word });
        if word == "missing_scope" {
            let needed = methods::find(name).map(|method| method.scopes.join(","));
            answer["needed"] = json!(needed);
            answer["provided"] = json!(world.scopes.join(","));
        }
        answer
    });
    record(world, name, parameters, 200, answer.clone());
    let mut response = json_answer(200, &answer);
    let scopes = HeaderValue::from_str(&world.scopes.join(",")).expect("scopes are words");
    response.headers_mut().insert("x-oauth-scopes", scopes);
    response
}

fn record(world: &mut World, method: &str, parameters: Parameters, status: u16, answer: Value) {
    let at = world.now();
    world.requests.push(Requested {
        at,
        method: method.to_owned(),
        parameters,
        status,
        answer,
    });
}

fn json_answer(status: u16, answer: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(answer.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status of the fake's own");
    response.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    response
}

/// The answer without what Slack's file is too old for: `metadata` of messages.
fn as_of_2021(answer: &Value) -> Value {
    let mut answer = answer.clone();
    let messages = answer.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        if let Some(message) = message.as_object_mut() {
            message.remove("metadata");
        }
    }
    answer
}

/// A parameter as text; empty when it is missing.
fn text<'a>(parameters: &'a Parameters, name: &str) -> &'a str {
    parameters
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
