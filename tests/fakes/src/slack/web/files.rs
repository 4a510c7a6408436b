//! Files: the upload in three steps, and downloads with the bot's token.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::super::Shared;
use super::super::model::File;
use super::super::payload;
use super::super::world::{BOT_USER, Draft, Upload, World};
use super::chat::find_channel;
use super::{Done, Parameters, text};
use crate::multipart;

pub(super) fn route(world: &mut World, name: &str, parameters: &Parameters) -> Done {
    if name == "files.getUploadURLExternal" {
        let length = &parameters["length"];
        let length = length
            .as_u64()
            .or_else(|| length.as_str()?.parse().ok())
            .ok_or("invalid_arguments")?;
        let length = usize::try_from(length).map_err(|_| "invalid_arguments")?;
        let id = world.next_id('F');
        let upload = Upload {
            name: text(parameters, "filename").to_owned(),
            length,
            bytes: None,
        };
        world.uploads.insert(id.clone(), upload);
        return Ok(
            json!({ "ok": true, "upload_url": format!("{}/upload/{id}", world.base), "file_id": id }),
        );
    }
    complete(world, parameters)
}

fn complete(world: &mut World, parameters: &Parameters) -> Done {
    let wanted = parameters["files"].as_array().cloned().unwrap_or_default();
    let mut files = Vec::new();
    for entry in &wanted {
        let id = entry["id"].as_str().unwrap_or_default();
        let upload = world.uploads.remove(id).ok_or("file_not_found")?;
        let bytes = upload.bytes.ok_or("file_upload_incomplete")?;
        files.push(File {
            id: id.to_owned(),
            name: upload.name,
            mimetype: "text/plain".to_owned(),
            bytes,
        });
    }
    let shown: Vec<Value> = files
        .iter()
        .map(|file| payload::file(world, file))
        .collect();
    if parameters.contains_key("channel_id") {
        let channel = find_channel(world, text(parameters, "channel_id"))?;
        let thread_ts = parameters
            .get("thread_ts")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let comment = text(parameters, "initial_comment").to_owned();
        world.post(
            &channel,
            BOT_USER,
            Draft {
                text: Some(comment),
                thread_ts,
                files,
                ..Draft::default()
            },
        );
    }
    Ok(json!({ "ok": true, "files": shown }))
}

/// The second step: bytes to the url of the first, raw or as a form.
pub(super) async fn upload(
    shared: &Shared,
    id: &str,
    headers: &HeaderMap,
    bytes: Bytes,
) -> Response<Body> {
    let bytes = if multipart::is_multipart(headers) {
        let parts = multipart::parts(headers, bytes.to_vec())
            .await
            .unwrap_or_default();
        parts
            .into_iter()
            .next()
            .map(|part| part.bytes)
            .unwrap_or_default()
    } else {
        bytes.to_vec()
    };
    let mut world = shared.world.lock();
    let Some(upload) = world.uploads.get_mut(id) else {
        return plain(404, "unknown upload");
    };
    if upload.length != bytes.len() {
        shared.violations.add(format!(
            "upload {id}: {} bytes came, {} were announced",
            bytes.len(),
            upload.length
        ));
        return plain(400, "length");
    }
    let answer = format!("OK - {}", bytes.len());
    upload.bytes = Some(bytes);
    plain(200, &answer)
}

/// `url_private`: without the token Slack answers its login page, not an error.
pub(super) fn download(world: &World, path: &str, token: Option<&str>) -> Response<Body> {
    if token != Some(&world.bot_token) {
        let mut page = plain(200, "<html>Sign in to Slack</html>");
        page.headers_mut()
            .insert("content-type", HeaderValue::from_static("text/html"));
        return page;
    }
    let id = path.split('/').next().unwrap_or_default();
    let file = world
        .messages
        .values()
        .flat_map(|message| &message.files)
        .find(|file| file.id == id);
    let Some(file) = file else {
        return plain(404, "not found");
    };
    let mut response = Response::new(Body::from(file.bytes.clone()));
    if let Ok(kind) = HeaderValue::from_str(&file.mimetype) {
        response.headers_mut().insert("content-type", kind);
    }
    response
}

fn plain(status: u16, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status of the fake's own");
    response
}
