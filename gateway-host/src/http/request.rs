//! A request body as the surface takes it. What it cannot do is refused by name, never dropped; settings that a
//! subscription's program has no place for are named in a header of the reply.

use gateway_core::bridge::Message;
use serde_json::Value;

use super::error::ApiError;

/// A chat completion that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatRequest {
    pub(super) model: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) user: Option<String>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Settings that were given and have no effect.
    pub(super) ignored: Vec<&'static str>,
}

/// Settings the programs behind a subscription have no place for.
const IGNORED: &[&str] = &[
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "reasoning_effort",
    "verbosity",
    "chat_template_kwargs",
    "prediction",
    "service_tier",
];

/// Reads a body.
pub(super) fn parse(body: &[u8]) -> Result<ChatRequest, ApiError> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        ApiError::new(
            400,
            "invalid_json",
            format!("the body is not JSON: {error}."),
        )
    })?;
    if !body.is_object() {
        return Err(ApiError::new(
            400,
            "invalid_json",
            "the body is not a JSON object.",
        ));
    }
    refuse_unsupported(&body)?;
    let stream_options = body.get("stream_options").unwrap_or(&Value::Null);
    Ok(ChatRequest {
        model: text(&body, "model")?.filter(|model| !model.is_empty()),
        messages: messages(&body)?,
        user: text(&body, "user")?,
        stream: flag(&body, "stream")?,
        include_usage: flag(stream_options, "include_usage")?,
        ignored: IGNORED
            .iter()
            .copied()
            .filter(|name| given(&body, name))
            .collect(),
    })
}

fn given(body: &Value, name: &str) -> bool {
    !matches!(body.get(name), None | Some(Value::Null))
}

fn refuse_unsupported(body: &Value) -> Result<(), ApiError> {
    let refused = |name: &str, why: &str| {
        let message = format!("`{name}` is not supported: {why}.");
        Err(ApiError {
            param: Some(name.to_owned()),
            ..ApiError::new(400, "unsupported_parameter", message)
        })
    };
    for name in ["tools", "functions"] {
        let any = body
            .get(name)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
        if any {
            return refused(
                name,
                "the agent behind a subscription uses its own tools; leave it out",
            );
        }
    }
    if body
        .get("n")
        .and_then(Value::as_u64)
        .is_some_and(|n| n != 1)
    {
        return refused("n", "one answer is given");
    }
    let format = body
        .pointer("/response_format/type")
        .and_then(Value::as_str);
    if format.is_some_and(|format| format != "text") {
        return refused(
            "response_format",
            "answers are text; ask for JSON in the prompt",
        );
    }
    let modalities = body
        .get("modalities")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    if modalities.clone().any(|modality| modality != "text") || given(body, "audio") {
        return refused("modalities", "answers are text");
    }
    if body.get("logprobs").and_then(Value::as_bool) == Some(true) {
        return refused("logprobs", "subscriptions do not tell them");
    }
    Ok(())
}

fn text(body: &Value, name: &str) -> Result<Option<String>, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::invalid(
            name,
            format!("`{name}` is not a string."),
        )),
    }
}

fn flag(body: &Value, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(_) => Err(ApiError::invalid(
            name,
            format!("`{name}` is neither true nor false."),
        )),
    }
}

fn messages(body: &Value) -> Result<Vec<Message>, ApiError> {
    let list = match body.get("messages") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => return Err(ApiError::invalid("messages", "`messages` is empty.")),
        Some(_) => return Err(ApiError::invalid("messages", "`messages` is not a list.")),
        None => return Err(ApiError::invalid("messages", "`messages` is missing.")),
    };
    let messages: Vec<Message> = list
        .iter()
        .enumerate()
        .map(|(at, message)| one(at, message))
        .collect::<Result<_, _>>()?;
    if messages.iter().all(Message::is_instruction) {
        return Err(ApiError::invalid(
            "messages",
            "`messages` holds instructions and nothing to answer.",
        ));
    }
    Ok(messages)
}

fn one(at: usize, message: &Value) -> Result<Message, ApiError> {
    let place = format!("messages[{at}]");
    let Some(role) = message.get("role").and_then(Value::as_str) else {
        return Err(ApiError::invalid(
            &place,
            format!("`{place}` has no `role`."),
        ));
    };
    if role == "tool" || role == "function" || given(message, "tool_calls") {
        let why = format!("`{place}` is about a tool; tools are not supported.");
        return Err(ApiError {
            param: Some(place),
            ..ApiError::new(400, "unsupported_content", why)
        });
    }
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => flattened(&place, parts)?,
        _ => {
            let place = format!("{place}.content");
            return Err(ApiError::invalid(
                &place,
                format!("`{place}` is neither text nor a list of parts."),
            ));
        }
    };
    Ok(Message::new(role, text))
}

/// Text parts, one below the other.
fn flattened(place: &str, parts: &[Value]) -> Result<String, ApiError> {
    let mut texts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let kind = part
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("no type");
        match (kind, part.get("text").and_then(Value::as_str)) {
            ("text" | "input_text" | "output_text", Some(text)) => texts.push(text),
            _ => {
                let place = format!("{place}.content[{at}]");
                let why =
                    format!("`{place}` is a part of type `{kind}`; only `text` is supported.");
                return Err(ApiError {
                    param: Some(place),
                    ..ApiError::new(400, "unsupported_content", why)
                });
            }
        }
    }
    Ok(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(body: &Value) -> Result<ChatRequest, ApiError> {
        parse(body.to_string().as_bytes())
    }

    fn said(content: &Value) -> Value {
        json!({ "messages": [{ "role": "user", "content": content }] })
    }

    #[test]
    fn case_62_text_parts_are_flattened() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let request = parsed(&said(&parts)).unwrap();
        assert_eq!(request.messages, [Message::new("user", "a\nb")]);
        assert_eq!(
            request.messages,
            parsed(&said(&json!("a\nb"))).unwrap().messages
        );
    }

    #[test]
    fn a_request_is_read_with_what_has_no_effect_named() {
        let body = json!({
            "model": "default", "user": "pet", "stream": true, "stream_options": { "include_usage": true },
            "temperature": 0.3, "seed": null, "top_p": 1, "unknown": 1, "tools": [], "n": 1, "metadata": { "a": "b" },
            "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": "q" }],
        });
        let request = parsed(&body).unwrap();
        assert_eq!(request.ignored, ["temperature", "top_p"]);
        assert!(request.stream && request.include_usage);
        assert_eq!(
            (request.model.as_deref(), request.user.as_deref()),
            (Some("default"), Some("pet"))
        );
    }

    #[test]
    fn cases_6_63_and_65_what_cannot_be_done_is_refused_by_name() {
        let image = json!([{ "type": "text", "text": "a" }, { "type": "image_url", "image_url": { "url": "x" } }]);
        let with = |name: &str, value: Value| {
            let mut body = said(&json!("q"));
            body[name] = value;
            body
        };
        let rows: [(Value, &str, &str); 14] = [
            (
                json!({ "messages": [] }),
                "invalid_request",
                "`messages` is empty.",
            ),
            (json!({}), "invalid_request", "`messages` is missing."),
            (
                json!({ "messages": "q" }),
                "invalid_request",
                "`messages` is not a list.",
            ),
            (json!([]), "invalid_json", "the body is not a JSON object."),
            (
                json!({ "messages": [{ "content": "q" }] }),
                "invalid_request",
                "`messages[0]` has no `role`.",
            ),
            (
                json!({ "messages": [{ "role": "system", "content": "s" }] }),
                "invalid_request",
                "`messages` holds instructions and nothing to answer.",
            ),
            (
                said(&Value::Null),
                "invalid_request",
                "`messages[0].content` is neither text nor a list of parts.",
            ),
            (
                said(&image),
                "unsupported_content",
                "`messages[0].content[1]` is a part of type `image_url`; only `text` is supported.",
            ),
            (
                json!({ "messages": [{ "role": "tool", "content": "x" }] }),
                "unsupported_content",
                "`messages[0]` is about a tool; tools are not supported.",
            ),
            (
                with("tools", json!([{}])),
                "unsupported_parameter",
                "`tools` is not supported: the agent behind a subscription uses its own tools; leave it out.",
            ),
            (
                with("n", json!(2)),
                "unsupported_parameter",
                "`n` is not supported: one answer is given.",
            ),
            (
                with("response_format", json!({ "type": "json_object" })),
                "unsupported_parameter",
                "`response_format` is not supported: answers are text; ask for JSON in the prompt.",
            ),
            (
                with("stream", json!("yes")),
                "invalid_request",
                "`stream` is neither true nor false.",
            ),
            (
                with("user", json!(7)),
                "invalid_request",
                "`user` is not a string.",
            ),
        ];
        for (body, code, message) in rows {
            let error = parsed(&body).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (code, message));
            assert_eq!(error.status, 400);
        }
    }

    #[test]
    fn what_is_no_text_is_no_json() {
        for body in [
            &b"\xff\xfe{}"[..],
            b"",
            b"{",
            b"{\"messages\": [{\"role\": \"user\", \"content\": \"\xc3\x28\"}]}",
        ] {
            assert_eq!(parse(body).unwrap_err().code, "invalid_json");
        }
    }
}
