//! Items of a turn that are tool calls, as calls and results (`ThreadItem` of app-server 0.171). What the model asked for
//! and the program refused before it began is no item: it never ran, and only the model is told.

use gateway_core::event::{CallOutcome, Event};
use serde_json::{Value, json};

/// The call an item is; `None` = it is none (text, reasoning, a notice), or unknown.
pub(super) fn call(item: &Value) -> Option<Event> {
    let (name, arguments) = named(item)?;
    Some(Event::ToolCall {
        id: text(item, "id")?.to_owned(),
        name,
        arguments: arguments.to_string(),
    })
}

/// How the call of a finished item ended.
pub(super) fn result(item: &Value) -> Option<Event> {
    named(item)?;
    Some(Event::ToolResult {
        id: text(item, "id")?.to_owned(),
        outcome: outcome(item),
        text: output(item),
    })
}

fn named(item: &Value) -> Option<(String, Value)> {
    let own = |name: &str| item.get(name).cloned().unwrap_or(Value::Null);
    let plain = |name: &str, arguments: Value| Some((name.to_owned(), arguments));
    match text(item, "type")? {
        "commandExecution" => plain(
            "exec_command",
            json!({"command": own("command"), "cwd": own("cwd")}),
        ),
        "fileChange" => plain("apply_patch", json!({"changes": own("changes")})),
        "webSearch" => plain("web_search", json!({"query": own("query")})),
        "imageView" => plain("view_image", json!({"path": own("path")})),
        "imageGeneration" => plain("image_generation", json!({"prompt": own("revisedPrompt")})),
        "mcpToolCall" => {
            let name = format!("{}.{}", text(item, "server")?, text(item, "tool")?);
            Some((name, own("arguments")))
        }
        "dynamicToolCall" | "collabAgentToolCall" => {
            Some((text(item, "tool")?.to_owned(), own("arguments")))
        }
        _ => None,
    }
}

fn outcome(item: &Value) -> CallOutcome {
    let failed = item.get("success").and_then(Value::as_bool) == Some(false)
        || item
            .get("failure")
            .is_some_and(|failure| !failure.is_null());
    match text(item, "status") {
        Some("declined") => CallOutcome::Denied,
        Some("failed") => CallOutcome::Failed,
        Some("inProgress") => CallOutcome::Unknown,
        _ if failed => CallOutcome::Failed,
        _ => CallOutcome::Completed,
    }
}

fn output(item: &Value) -> String {
    if let Some(output) = text(item, "aggregatedOutput") {
        return output.to_owned();
    }
    let error = item.get("error").and_then(|error| text(error, "message"));
    let content = item.get("result").and_then(|result| result.get("content"));
    let parts = content.or_else(|| item.get("contentItems"));
    let texts = parts.and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = texts
        .filter_map(|part| text(part, "text"))
        .chain(error)
        .collect();
    texts.join("\n")
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_tool_has_a_name_and_an_outcome() {
        let rows = [
            (
                json!({"type": "commandExecution", "id": "1", "command": "ls", "cwd": "/", "status": "completed",
                "aggregatedOutput": "a\n"}),
                "exec_command",
                CallOutcome::Completed,
                "a\n",
            ),
            (
                json!({"type": "commandExecution", "id": "1", "status": "failed", "aggregatedOutput": null}),
                "exec_command",
                CallOutcome::Failed,
                "",
            ),
            (
                json!({"type": "fileChange", "id": "1", "changes": [], "status": "declined"}),
                "apply_patch",
                CallOutcome::Denied,
                "",
            ),
            (
                json!({"type": "webSearch", "id": "1", "query": "q"}),
                "web_search",
                CallOutcome::Completed,
                "",
            ),
            (
                json!({"type": "mcpToolCall", "id": "1", "server": "s", "tool": "t", "arguments": {}, "status": "failed",
                "error": {"message": "no"}}),
                "s.t",
                CallOutcome::Failed,
                "no",
            ),
            (
                json!({"type": "mcpToolCall", "id": "1", "server": "s", "tool": "t", "status": "completed",
                "result": {"content": [{"type": "text", "text": "yes"}]}}),
                "s.t",
                CallOutcome::Completed,
                "yes",
            ),
            (
                json!({"type": "dynamicToolCall", "id": "1", "tool": "d", "status": "completed", "success": false}),
                "d",
                CallOutcome::Failed,
                "",
            ),
            (
                json!({"type": "commandExecution", "id": "1", "status": "inProgress"}),
                "exec_command",
                CallOutcome::Unknown,
                "",
            ),
        ];
        for (item, name, outcome, words) in rows {
            assert!(
                matches!(call(&item), Some(Event::ToolCall { name: found, .. }) if found == name),
                "{item}"
            );
            let ended = Event::ToolResult {
                id: "1".to_owned(),
                outcome,
                text: words.to_owned(),
            };
            assert_eq!(result(&item), Some(ended), "{item}");
        }
    }

    #[test]
    fn what_is_no_tool_is_nothing() {
        for item in [
            json!({"type": "agentMessage", "id": "1"}),
            json!({"type": "error", "id": "1"}),
            json!({"type": "newer", "id": "1"}),
            json!({}),
        ] {
            assert_eq!((call(&item), result(&item)), (None, None), "{item}");
        }
    }
}
