//! chat/completions as a server speaks it; shapes as in `captures/http/chat-completions-*`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::RecordedRequest;
use super::reply::{Part, Reply};
use super::step::{Cut, Step, pieces, tokens};

pub(super) fn reply(step: Step, request: &RecordedRequest) -> Reply {
    let reply = match step {
        Step::Answer {
            text,
            deltas,
            headers,
        } => answer(&text, deltas, request).with_headers(headers),
        Step::ToolUse { text, name, input } => tool_call(&text, &name, &input, request),
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
        Step::UnifiedRejected { resets_at, .. } => usage_limit(resets_at),
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
        } => stream_error(&text, deltas, after, &error, request),
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
    reply.with_headers([(
        "x-request-id".to_owned(),
        format!("req_loopback_{:04}", request.at_seq),
    )])
}

pub(super) fn not_found(request: &RecordedRequest) -> Reply {
    let message = format!("Invalid URL ({} {})", request.method, request.path);
    Reply::json(
        404,
        &json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}}),
    )
}

/// Chunks before the first text: the one that names the role.
const LEAD: usize = 1;

fn answer(text: &str, deltas: usize, request: &RecordedRequest) -> Reply {
    if !request.wants_stream() {
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        return Reply::json(200, &completion(&message, "stop", text, request));
    }
    let mut parts = vec![opening(request)];
    parts.extend(texts(text, deltas, request));
    parts.extend(closing("stop", text, request));
    Reply::stream(parts)
}

fn tool_call(text: &str, name: &str, input: &Value, request: &RecordedRequest) -> Reply {
    let function = json!({"name": name, "arguments": input.to_string()});
    let id = format!("call_loopback_{:04}", request.at_seq);
    if !request.wants_stream() {
        let content = Some(text).filter(|text| !text.is_empty());
        let call = json!({"id": id, "type": "function", "function": function});
        let message = json!({"role": "assistant", "content": content, "tool_calls": [call]});
        return Reply::json(200, &completion(&message, "tool_calls", text, request));
    }
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    let mut parts = vec![opening(request)];
    if !text.is_empty() {
        parts.extend(texts(text, 1, request));
    }
    parts.push(chunk(&json!({"tool_calls": [call]}), None, request));
    parts.extend(closing("tool_calls", text, request));
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
    error: &Value,
    request: &RecordedRequest,
) -> Reply {
    let object = json!({"error": error});
    if !request.wants_stream() {
        return Reply::json(200, &object);
    }
    broken(text, deltas, after, Some(data(&object)), request)
}

fn usage_limit(resets_at: Timestamp) -> Reply {
    Reply::json(
        429,
        &json!({"error": {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": resets_at.as_second(),
        }}),
    )
}

fn completion(message: &Value, finish: &str, text: &str, request: &RecordedRequest) -> Value {
    json!({
        "id": id(request),
        "object": "chat.completion",
        "created": CREATED,
        "model": request.model(),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": usage(text, request),
    })
}

fn opening(request: &RecordedRequest) -> Part {
    chunk(&json!({"role": "assistant", "content": ""}), None, request)
}

fn texts(text: &str, deltas: usize, request: &RecordedRequest) -> Vec<Part> {
    let pieces = pieces(text, deltas).into_iter();
    pieces
        .map(|piece| chunk(&json!({"content": piece}), None, request))
        .collect()
}

/// The finishing chunk, then, only if `stream_options.include_usage` asked for it, a chunk with usage and no choices.
fn closing(finish: &str, text: &str, request: &RecordedRequest) -> Vec<Part> {
    let mut parts = vec![chunk(&json!({}), Some(finish), request)];
    let asked = request.body.pointer("/stream_options/include_usage");
    if asked.and_then(Value::as_bool) == Some(true) {
        let mut object = chunk_object(&json!([]), request);
        if let Value::Object(fields) = &mut object {
            fields.insert("usage".into(), usage(text, request));
        }
        parts.push(data(&object));
    }
    parts.push(Part::Frame("data: [DONE]\n\n".into()));
    parts
}

fn usage(text: &str, request: &RecordedRequest) -> Value {
    let (prompt, completion) = (tokens(&request.text), tokens(text).max(1));
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

fn chunk(delta: &Value, finish: Option<&str>, request: &RecordedRequest) -> Part {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    data(&chunk_object(&choices, request))
}

fn chunk_object(choices: &Value, request: &RecordedRequest) -> Value {
    json!({
        "id": id(request),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": request.model(),
        "choices": choices,
    })
}

/// The servers read no clock.
const CREATED: u64 = 1_700_000_000;

fn id(request: &RecordedRequest) -> String {
    format!("chatcmpl-loopback-{:04}", request.at_seq)
}

fn data(object: &Value) -> Part {
    Part::Frame(format!("data: {object}\n\n"))
}
