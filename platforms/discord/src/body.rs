//! Our messages in Discord's words. Every body that can hold a text is made here, so that none lacks
//! `allowed_mentions: {parse: []}`: without it Discord parses a message anew with its defaults, edits too.

use platforms::buttons::CUSTOM_ID_MAX;
use platforms::wire::{Body, Button, OutFile};
use serde_json::{Value, json};
use serenity::builder::CreateAttachment;
use serenity::http::{LightMethod, Multipart, MultipartUpload, Request, Route};

/// Only its asker sees it.
const EPHEMERAL: u64 = 1 << 6;

/// The most buttons of one row, and rows of one message (component reference).
const ROW: usize = 5;

const LABEL_MAX: usize = 80;

/// What a message shows, to post or to put in the place of what it showed.
pub(crate) fn message(body: &Body) -> Value {
    let mut shown = json!({
        "content": body.text,
        "allowed_mentions": { "parse": [] },
        "components": rows(&body.buttons),
    });
    if let Some(file) = &body.file {
        put(
            &mut shown,
            "attachments",
            json!([{ "id": 0, "filename": file.name }]),
        );
    }
    shown
}

/// A new message in a channel. Discord returns the one it has for a nonce it has seen in the last minutes.
pub(crate) fn post(body: &Body, nonce: &str) -> Value {
    let mut shown = message(body);
    put(&mut shown, "nonce", json!(nonce));
    put(&mut shown, "enforce_nonce", json!(true));
    shown
}

/// A message by an interaction's token.
pub(crate) fn follow_up(body: &Body, private: bool) -> Value {
    let mut shown = message(body);
    if private {
        put(&mut shown, "flags", json!(EPHEMERAL));
    }
    shown
}

/// The end of a press: no buttons, and another text if there is one.
pub(crate) fn settled(text: Option<&str>) -> Value {
    let mut shown = json!({ "allowed_mentions": { "parse": [] }, "components": [] });
    if let Some(text) = text {
        put(&mut shown, "content", json!(text));
    }
    shown
}

/// Type 5: "is thinking". Who will see the answer is fixed here.
pub(crate) fn deferred_answer(private: bool) -> Value {
    let flags = if private { EPHEMERAL } else { 0 };
    json!({ "type": 5, "data": { "flags": flags, "allowed_mentions": { "parse": [] } } })
}

/// Type 6: the press arrived, the message stays for now.
pub(crate) fn deferred_update() -> Value {
    json!({ "type": 6 })
}

fn put(shown: &mut Value, key: &str, value: Value) {
    if let Some(shown) = shown.as_object_mut() {
        shown.insert(key.to_owned(), value);
    }
}

fn rows(buttons: &[Button]) -> Value {
    let row = |buttons: &[Button]| json!({ "type": 1, "components": buttons.iter().map(button).collect::<Vec<_>>() });
    buttons.chunks(ROW).take(ROW).map(row).collect()
}

fn button(button: &Button) -> Value {
    let cut = |text: &str, max| text.chars().take(max).collect::<String>();
    json!({
        "type": 2, "style": 2, "label": cut(&button.label, LABEL_MAX),
        "custom_id": cut(&button.custom_id, CUSTOM_ID_MAX),
    })
}

/// A request with a JSON body, and the file it carries.
pub(crate) fn request<'a>(
    route: Route<'a>,
    method: LightMethod,
    body: &Value,
    file: Option<&OutFile>,
) -> Request<'a> {
    let request = Request::new(route, method);
    match file {
        None => request.body(Some(body.to_string().into_bytes())),
        Some(file) => request.multipart(Some(Multipart {
            upload: MultipartUpload::Attachments(vec![CreateAttachment::bytes(
                file.bytes.clone(),
                file.name.clone(),
            )]),
            fields: Vec::new(),
            payload_json: Some(body.to_string()),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_can_hold_a_text_pings() {
        let body = Body::text("@everyone <@1>");
        let all = [
            message(&body),
            post(&body, "n"),
            follow_up(&body, true),
            settled(Some("@here")),
            settled(None),
            deferred_answer(true)["data"].clone(),
        ];
        for one in all {
            assert_eq!(one["allowed_mentions"], json!({ "parse": [] }), "{one}");
        }
    }

    #[test]
    fn buttons_fit_whatever_there_are() {
        let button = Button {
            label: "ü".repeat(100),
            custom_id: "x".repeat(200),
        };
        let rows = rows(&vec![button; 40]);
        assert_eq!(rows.as_array().unwrap().len(), 5);
        let first = &rows[0]["components"][0];
        assert_eq!(first["label"].as_str().unwrap().chars().count(), 80);
        assert_eq!(first["custom_id"].as_str().unwrap().len(), 100);
        assert_eq!(message(&Body::text("a"))["components"], json!([]));
    }
}
