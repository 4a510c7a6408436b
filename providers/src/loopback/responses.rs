//! The Responses API as a server speaks it to Codex: always a stream; shapes as accepted by Codex 0.171. A spent window is
//! told by the body (`usage_limit_reached`) and by `x-codex-*` headers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::RecordedRequest;
use super::reply::{Part, Reply};
use super::step::{Cut, Step, pieces, tokens};

pub(super) fn reply(step: Step, request: &RecordedRequest) -> Reply {
    match step {
        Step::Answer {
            text,
            deltas,
            headers,
        } => Reply::stream(answer(&text, deltas, request)).with_headers(headers),
        Step::ToolUse { text, name, input } => {
            Reply::stream(tool_call(&text, &name, &input, request))
        }
        Step::Status {
            code,
            headers,
            body,
        } => Reply {
            headers,
            ..Reply::text(code, "", body)
        },
        Step::UnifiedRejected { window, resets_at } => usage_limit(&window, resets_at),
        Step::CutAfter {
            text,
            deltas,
            after,
            cut,
        } => {
            let mut parts = begun(&text, deltas, after, request);
            parts.extend((cut == Cut::Abrupt).then_some(Part::Cut));
            Reply::stream(parts)
        }
        Step::StreamError {
            text,
            deltas,
            after,
            error,
        } => {
            let mut parts = begun(&text, deltas, after, request);
            parts.push(event(
                &json!({"type": "response.failed", "response": {"id": id(request), "status": "failed", "error": error}}),
            ));
            Reply::stream(parts)
        }
        Step::Stall {
            text,
            deltas,
            after,
            until,
        } => {
            let mut parts = answer(&text, deltas, request);
            let place = (LEAD + after).min(parts.len());
            parts.insert(place, Part::Stall(until));
            Reply::stream(parts)
        }
        Step::Hang { until, then } => {
            let mut reply = reply(*then, request);
            reply.hang = Some(until);
            reply
        }
    }
}

/// Events before the first text: the response and its message.
const LEAD: usize = 2;

fn answer(text: &str, deltas: usize, request: &RecordedRequest) -> Vec<Part> {
    let (mut parts, message) = said(text, deltas, request);
    parts.insert(0, created(request));
    parts.push(completed(&[message], text, request));
    parts
}

fn begun(text: &str, deltas: usize, after: usize, request: &RecordedRequest) -> Vec<Part> {
    let mut parts = answer(text, deltas, request);
    parts.truncate(LEAD + after);
    parts
}

fn tool_call(text: &str, name: &str, input: &Value, request: &RecordedRequest) -> Vec<Part> {
    let call = format!("call_loopback_{:04}", request.at_seq);
    let item = match input {
        Value::String(input) => json!({
            "type": "custom_tool_call", "id": format!("ctc_{call}"), "call_id": call, "name": name,
            "input": input, "status": "completed",
        }),
        input => json!({
            "type": "function_call", "id": format!("fc_{call}"), "call_id": call, "name": name,
            "arguments": input.to_string(), "status": "completed",
        }),
    };
    let mut parts = vec![created(request)];
    let mut items = Vec::new();
    if !text.is_empty() {
        let (said, message) = said(text, 1, request);
        parts.extend(said);
        items.push(message);
    }
    parts.extend(
        ["response.output_item.added", "response.output_item.done"]
            .map(|kind| event(&json!({"type": kind, "output_index": items.len(), "item": item}))),
    );
    items.push(item);
    parts.push(completed(&items, text, request));
    parts
}

/// The events of one message, and the message.
fn said(text: &str, deltas: usize, request: &RecordedRequest) -> (Vec<Part>, Value) {
    let id = format!("msg_loopback_{:04}", request.at_seq);
    let message = |status: &str, content: Value| {
        json!({
            "type": "message", "id": id, "role": "assistant", "status": status, "content": content,
        })
    };
    let whole = message(
        "completed",
        json!([{"type": "output_text", "text": text, "annotations": []}]),
    );
    let mut parts = vec![event(&json!({
        "type": "response.output_item.added", "output_index": 0, "item": message("in_progress", json!([])),
    }))];
    parts.extend(pieces(text, deltas).into_iter().map(|delta| {
        event(&json!({
            "type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0, "delta": delta,
        }))
    }));
    parts.push(event(
        &json!({"type": "response.output_item.done", "output_index": 0, "item": whole}),
    ));
    (parts, whole)
}

fn created(request: &RecordedRequest) -> Part {
    let response =
        json!({"id": id(request), "object": "response", "status": "in_progress", "output": []});
    event(&json!({"type": "response.created", "response": response}))
}

fn completed(items: &[Value], text: &str, request: &RecordedRequest) -> Part {
    let (input, output) = (tokens(&request.text), tokens(text).max(1));
    let response = json!({
        "id": id(request), "object": "response", "status": "completed", "output": items,
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        },
    });
    event(&json!({"type": "response.completed", "response": response}))
}

fn usage_limit(window: &str, resets_at: Timestamp) -> Reply {
    let (slot, minutes) = match window {
        "seven_day" => ("secondary", "10080"),
        _ => ("primary", "300"),
    };
    let seconds = resets_at.as_second();
    let headers = [
        ("used-percent", "100".to_owned()),
        ("window-minutes", minutes.to_owned()),
        ("reset-at", seconds.to_string()),
    ];
    let body = json!({"error": {
        "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
        "resets_at": seconds,
    }});
    Reply::json(429, &body)
        .with_headers(headers.map(|(name, value)| (format!("x-codex-{slot}-{name}"), value)))
}

fn id(request: &RecordedRequest) -> String {
    format!("resp_loopback_{:04}", request.at_seq)
}

fn event(data: &Value) -> Part {
    let kind = data.get("type").and_then(Value::as_str).unwrap_or_default();
    Part::Frame(format!("event: {kind}\ndata: {data}\n\n"))
}
