//! The Messages API as a server speaks it; shapes as in `captures/http/anthropic-*`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::RecordedRequest;
use super::reply::{Part, Reply};
use super::step::{Cut, Step, pieces, tokens};

pub(super) fn reply(step: Step, request: &RecordedRequest) -> Reply {
    let id = request.at_seq;
    let reply = match step {
        Step::Answer {
            text,
            deltas,
            headers,
        } => answer(&text, deltas, request).with_headers(headers),
        Step::ToolUse { text, name, input } => tool_use(&text, &name, &input, request),
        Step::Status {
            code,
            headers,
            body,
        } => {
            return Reply {
                headers,
                ..Reply::text(code, "", body)
            };
        }
        Step::UnifiedRejected { window, resets_at } => rejected(&window, resets_at, id),
        Step::CutAfter {
            text,
            deltas,
            after,
            cut,
        } => match cut {
            Cut::Abrupt => broken(&text, deltas, after, Some(Part::Cut), request),
            Cut::CleanEof => broken(&text, deltas, after, None, request),
        },
        Step::StreamError {
            text,
            deltas,
            after,
            error,
        } => stream_error(&text, deltas, after, error, request),
        Step::Stall {
            text,
            deltas,
            after,
            until,
        } => {
            let mut reply = answer(&text, deltas, request);
            let place = if request.wants_stream() {
                LEAD + after
            } else {
                0
            };
            reply
                .parts
                .insert(place.min(reply.parts.len()), Part::Stall(until));
            reply
        }
        Step::Hang { until, then } => {
            let mut later = reply(*then, request);
            later.hang = Some(until);
            return later;
        }
    };
    reply.with_headers([("request-id".to_owned(), request_id(id))])
}

pub(super) fn count_tokens(request: &RecordedRequest) -> Reply {
    Reply::json(200, &json!({"input_tokens": tokens(&request.text)}))
}

pub(super) fn not_found(request: &RecordedRequest) -> Reply {
    let message = format!("Not Found: {} {}", request.method, request.path);
    Reply::json(
        404,
        &error_object(
            &json!({"type": "not_found_error", "message": message}),
            request.at_seq,
        ),
    )
}

/// Events before the first text delta: `message_start`, `ping`, `content_block_start`.
const LEAD: usize = 3;

fn answer(text: &str, deltas: usize, request: &RecordedRequest) -> Reply {
    if !request.wants_stream() {
        let content = json!([{"type": "text", "text": text}]);
        return Reply::json(200, &message(&content, "end_turn", text, request));
    }
    let mut parts = opening(request);
    parts.extend(text_block(text, deltas));
    parts.extend(closing("end_turn", text, request));
    Reply::stream(parts)
}

fn tool_use(text: &str, name: &str, input: &Value, request: &RecordedRequest) -> Reply {
    let call = format!("toolu_loopback_{:04}", request.at_seq);
    let block = json!({"type": "tool_use", "id": call, "name": name, "input": input});
    if !request.wants_stream() {
        let content = match text {
            "" => json!([block]),
            text => json!([{"type": "text", "text": text}, block]),
        };
        return Reply::json(200, &message(&content, "tool_use", text, request));
    }
    let mut parts = opening(request);
    let index = usize::from(!text.is_empty());
    if index == 1 {
        parts.extend(text_block(text, 1));
    }
    let started = json!({"type": "tool_use", "id": call, "name": name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    parts.extend([
        event(
            "content_block_start",
            json!({"index": index, "content_block": started}),
        ),
        event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        ),
        event("content_block_stop", json!({"index": index})),
    ]);
    parts.extend(closing("tool_use", text, request));
    Reply::stream(parts)
}

fn broken(
    text: &str,
    deltas: usize,
    after: usize,
    ending: Option<Part>,
    request: &RecordedRequest,
) -> Reply {
    let mut reply = answer(text, deltas, request);
    if request.wants_stream() {
        reply.parts.truncate(LEAD + after);
    } else if let Some(Part::Frame(body)) = reply.parts.front_mut() {
        *body = body.chars().take(body.chars().count() / 2).collect();
    }
    reply.parts.extend(ending);
    reply
}

fn stream_error(
    text: &str,
    deltas: usize,
    after: usize,
    error: Value,
    request: &RecordedRequest,
) -> Reply {
    let object = error_object(&error, request.at_seq);
    if !request.wants_stream() {
        return Reply::json(200, &object);
    }
    broken(text, deltas, after, Some(event("error", object)), request)
}

fn rejected(window: &str, resets_at: Timestamp, id: u64) -> Reply {
    let (short, other) = match window {
        "seven_day" => ("7d", "5h"),
        _ => ("5h", "7d"),
    };
    let reset = resets_at.as_second().to_string();
    let unified = |name: &str| format!("anthropic-ratelimit-unified-{name}");
    let headers = [
        (unified("status"), "rejected".to_owned()),
        (unified(&format!("{short}-status")), "rejected".to_owned()),
        (unified(&format!("{short}-reset")), reset.clone()),
        (unified(&format!("{short}-utilization")), "1.02".to_owned()),
        (unified(&format!("{other}-status")), "allowed".to_owned()),
        (unified(&format!("{other}-utilization")), "0.41".to_owned()),
        (unified("representative-claim"), window.to_owned()),
        (unified("reset"), reset),
        (unified("fallback-percentage"), "0.5".to_owned()),
        (unified("overage-status"), "rejected".to_owned()),
        (
            unified("overage-disabled-reason"),
            "org_level_disabled".to_owned(),
        ),
    ];
    let error = json!({
        "type": "rate_limit_error",
        "message": "This request would exceed your account's rate limit. Please try again later.",
    });
    Reply::json(429, &error_object(&error, id)).with_headers(headers)
}

fn error_object(error: &Value, id: u64) -> Value {
    json!({"type": "error", "error": error, "request_id": request_id(id)})
}

fn request_id(id: u64) -> String {
    format!("req_loopback_{id:04}")
}

fn message(content: &Value, stop_reason: &str, text: &str, request: &RecordedRequest) -> Value {
    json!({
        "id": format!("msg_loopback_{:04}", request.at_seq),
        "type": "message",
        "role": "assistant",
        "model": request.model(),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(text, request),
    })
}

fn usage(text: &str, request: &RecordedRequest) -> Value {
    json!({
        "input_tokens": tokens(&request.text),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens(text).max(1),
    })
}

fn opening(request: &RecordedRequest) -> Vec<Part> {
    let mut message = message(&json!([]), "", "", request);
    if let Some(reason) = message.get_mut("stop_reason") {
        *reason = Value::Null;
    }
    vec![
        event("message_start", json!({"message": message})),
        event("ping", json!({})),
    ]
}

fn text_block(text: &str, deltas: usize) -> Vec<Part> {
    let start = json!({"index": 0, "content_block": {"type": "text", "text": ""}});
    let mut parts = vec![event("content_block_start", start)];
    parts.extend(pieces(text, deltas).into_iter().map(|piece| {
        let delta = json!({"type": "text_delta", "text": piece});
        event("content_block_delta", json!({"index": 0, "delta": delta}))
    }));
    parts.push(event("content_block_stop", json!({"index": 0})));
    parts
}

fn closing(stop_reason: &str, text: &str, request: &RecordedRequest) -> [Part; 2] {
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    [
        event(
            "message_delta",
            json!({"delta": delta, "usage": usage(text, request)}),
        ),
        event("message_stop", json!({})),
    ]
}

/// An event whose data begins with its type, as the real API writes it.
fn event(name: &str, fields: Value) -> Part {
    let mut data = serde_json::Map::new();
    data.insert("type".into(), name.into());
    if let Value::Object(fields) = fields {
        data.extend(fields.into_iter().filter(|(key, _)| key != "type"));
    }
    Part::Frame(format!("event: {name}\ndata: {}\n\n", Value::Object(data)))
}
