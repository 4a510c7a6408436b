//! The REST side: every request goes the same way, whatever it asks for.
//!
//! Order: route, checks of the request, login, scripted fault, rate limits, the deed, check of the answer, record, events.

mod application;
mod channel;
mod hand;
mod limits;
mod message;
mod webhook;

pub(crate) use application::application_flags;
pub(crate) use channel::dm_with;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::Value;

use super::Shared;
use super::fault::{self, Fault};
use super::model::File;
use super::recorder::Requested;
use super::refusal::Refusal;
use super::world::World;
use crate::multipart;
use crate::spec::{self, Operation};

const PREFIX: &str = "/api/v10";
/// Larger uploads are refused with 413; Discord's limit for an unboosted guild.
const MAX_FILE: usize = 10 * 1024 * 1024;

/// One request, taken apart.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) multipart: bool,
    /// Index (`files[n]`) and file.
    pub(crate) files: Vec<(usize, File)>,
    pub(crate) authorization: Option<String>,
}

/// A success: status and body.
pub(crate) type Done = (u16, Option<Value>);

impl Call {
    /// The parts of the path, e.g. `["channels", "5", "messages"]`.
    fn parts(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }

    fn body(&self) -> &Value {
        self.body.as_ref().unwrap_or(&Value::Null)
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .fallback(serve)
        .layer(DefaultBodyLimit::max(40 * 1024 * 1024))
        .with_state(shared)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    query: Query<Vec<(String, String)>>,
    bytes: Bytes,
) -> Response<Body> {
    if let Some(download) = uri.path().strip_prefix("/attachments/") {
        return shared.download(download);
    }
    let Some(path) = uri.path().strip_prefix(PREFIX) else {
        shared
            .violations
            .add(format!("{method} {}: not below {PREFIX}", uri.path()));
        return plain(404, "not found");
    };
    let (body, files) = match read_body(&headers, bytes).await {
        Ok(read) => read,
        Err(broken) => {
            shared.violations.add(format!("{method} {path}: {broken}"));
            return plain(400, &broken);
        }
    };
    let call = Call {
        method: method.to_string(),
        path: path.to_owned(),
        query: query.0,
        body,
        multipart: multipart::is_multipart(&headers),
        files,
        authorization: headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    };
    let answer = shared.answer(&call);
    shared.flush();
    answer
}

async fn read_body(
    headers: &HeaderMap,
    bytes: Bytes,
) -> Result<(Option<Value>, Vec<(usize, File)>), String> {
    let json = |bytes: &[u8]| {
        serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))
    };
    if !multipart::is_multipart(headers) {
        return Ok((
            if bytes.is_empty() {
                None
            } else {
                Some(json(&bytes)?)
            },
            Vec::new(),
        ));
    }
    let (mut body, mut files) = (None, Vec::new());
    for part in multipart::parts(headers, bytes.to_vec()).await? {
        let index = part
            .name
            .strip_prefix("files[")
            .and_then(|rest| rest.strip_suffix(']'));
        match index.and_then(|index| index.parse().ok()) {
            Some(index) => {
                let name = part.file_name.ok_or("a file without a name")?;
                files.push((
                    index,
                    File {
                        id: 0,
                        name,
                        content_type: part.content_type,
                        bytes: part.bytes,
                    },
                ));
            }
            None if part.name == "payload_json" => body = Some(json(&part.bytes)?),
            None => {
                return Err(format!(
                    "form part {:?}: neither payload_json nor files[n]",
                    part.name
                ));
            }
        }
    }
    Ok((body, files))
}

impl Shared {
    fn answer(&self, call: &Call) -> Response<Body> {
        let mut world = self.world.lock();
        let Some(operation) = spec::discord().find(&call.method, &call.path) else {
            self.violations.add(format!(
                "{} {}: the spec in use has no such route",
                call.method, call.path
            ));
            return finish(
                &mut world,
                call,
                None,
                Err(Refusal::not_found()),
                Vec::new(),
            );
        };
        let broken = self.check(&world, operation, call);
        if !broken.is_empty() {
            let refusal = Refusal::invalid_form(&broken);
            return finish(&mut world, call, Some(operation), Err(refusal), Vec::new());
        }
        if !is_by_token(operation)
            && call.authorization.as_deref() != Some(&format!("Bot {}", world.token))
        {
            return finish(
                &mut world,
                call,
                Some(operation),
                Err(Refusal::unauthorized()),
                Vec::new(),
            );
        }
        let planned = self.faults.take(&call.method, &operation.template);
        if let Some(fault) = &planned
            && !matches!(fault, Fault::Lost)
        {
            return faulty(&mut world, call, operation, fault);
        }
        let headers = match limits::count(&mut world, operation, call) {
            Ok(headers) => headers,
            Err((refusal, headers)) => {
                return finish(&mut world, call, Some(operation), Err(refusal), headers);
            }
        };
        let done = route(&mut world, call, operation);
        if planned.is_some() {
            return finish(
                &mut world,
                call,
                Some(operation),
                Err(Refusal::new(500, 0, "500: Internal Server Error")),
                headers,
            );
        }
        let (status, body) = match &done {
            Ok((status, body)) => (*status, body.as_ref()),
            Err(refusal) => (refusal.status, Some(&refusal.body)),
        };
        for broken in spec::discord().check_answer(operation, status, body) {
            let Operation {
                method, template, ..
            } = operation;
            self.violations.add(format!(
                "the fake's own answer {status} to {method} {template}: {broken}"
            ));
        }
        finish(&mut world, call, Some(operation), done, headers)
    }

    fn check(&self, world: &World, operation: &Operation, call: &Call) -> Vec<String> {
        let spec = spec::discord();
        let body = call
            .body
            .clone()
            .map(|body| hand::as_the_file_wants(operation, body));
        let mut broken = spec.check_request(operation, call.multipart, body.as_ref());
        broken.extend(spec.check_query(operation, &call.query));
        broken.extend(hand::check(world, operation, call));
        for sentence in &broken {
            self.violations
                .add(format!("{} {}: {sentence}", call.method, call.path));
        }
        broken
    }

    fn download(&self, path: &str) -> Response<Body> {
        let world = self.world.lock();
        let id = path.split('/').nth(1).and_then(|id| id.parse::<u64>().ok());
        let file = world
            .messages
            .values()
            .flat_map(|message| &message.files)
            .find(|file| Some(file.id) == id);
        let Some(file) = file else {
            return plain(404, "This content is no longer available.");
        };
        let mut response = Response::new(Body::from(file.bytes.clone()));
        if let Some(kind) = file
            .content_type
            .as_deref()
            .and_then(|kind| HeaderValue::from_str(kind).ok())
        {
            response.headers_mut().insert("content-type", kind);
        }
        response
    }
}

/// Answers by the token in the path instead of the bot's.
fn is_by_token(operation: &Operation) -> bool {
    operation.template.starts_with("/interactions/") || operation.template.starts_with("/webhooks/")
}

fn route(world: &mut World, call: &Call, operation: &Operation) -> Result<Done, Refusal> {
    let template = operation.template.as_str();
    if template.starts_with("/webhooks/") || template.starts_with("/interactions/") {
        webhook::route(world, call)
    } else if template.contains("/messages") && !template.ends_with("/threads") {
        message::route(world, call)
    } else if template.starts_with("/channels/") || template == "/users/@me/channels" {
        channel::route(world, call)
    } else {
        application::route(world, call)
    }
}

fn faulty(world: &mut World, call: &Call, operation: &Operation, fault: &Fault) -> Response<Body> {
    let refused = |status, body| Err(Refusal { status, body });
    let (refusal, headers) = match fault {
        Fault::BucketLimit { retry_after } => (
            refused(429, fault::limited(*retry_after, false)),
            limits::bucket_refused_headers(operation, call, *retry_after),
        ),
        Fault::GlobalLimit { retry_after } => (
            refused(429, fault::limited(*retry_after, true)),
            limits::refused_headers("global", *retry_after),
        ),
        Fault::BareLimit => {
            record(world, call, Some(operation), 429, None);
            return plain(429, "error code: 1015");
        }
        Fault::Cut => {
            record(world, call, Some(operation), 0, None);
            return cut();
        }
        Fault::InvalidForm => (
            Err(Refusal::invalid_form(&["scripted".to_owned()])),
            Vec::new(),
        ),
        Fault::Answer { status, body } => (refused(*status, body.clone()), Vec::new()),
        Fault::ServerError | Fault::Lost => (
            Err(Refusal::new(500, 0, "500: Internal Server Error")),
            Vec::new(),
        ),
    };
    finish(world, call, Some(operation), refusal, headers)
}

fn finish(
    world: &mut World,
    call: &Call,
    operation: Option<&Operation>,
    done: Result<Done, Refusal>,
    headers: Vec<(&'static str, String)>,
) -> Response<Body> {
    let (status, body) = done.unwrap_or_else(|refusal| (refusal.status, Some(refusal.body)));
    record(world, call, operation, status, body.clone());
    let text = body.map(|body| body.to_string());
    let mut response = Response::new(text.map_or_else(Body::empty, Body::from));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status of the fake's own");
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let value = HeaderValue::from_str(&value).expect("numbers and words");
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
    response
}

fn record(
    world: &mut World,
    call: &Call,
    operation: Option<&Operation>,
    status: u16,
    answer: Option<Value>,
) {
    let at = world.now();
    world.requests.push(Requested {
        at,
        method: call.method.clone(),
        path: call.path.clone(),
        template: operation.map(|operation| operation.template.clone()),
        query: call.query.clone(),
        body: call.body().clone(),
        files: call.files.iter().map(|(_, file)| file.clone()).collect(),
        status,
        answer: answer.unwrap_or(Value::Null),
    });
}

fn plain(status: u16, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status of the fake's own");
    response
}

/// An answer that breaks off: hyper closes the connection when a body fails.
fn cut() -> Response<Body> {
    let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("scripted"))]);
    let mut response = Response::new(Body::from_stream(broken));
    response
        .headers_mut()
        .insert("content-length", HeaderValue::from_static("100"));
    response
}
