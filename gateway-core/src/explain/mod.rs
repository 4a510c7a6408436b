//! `baton explain`: pure functions over JSON lines, one line out per line in whatever comes in. Only the line counts: no
//! clock, no file, no network. What cannot be understood is answered with `{id, error}`.

mod decision;
mod failure;
mod gate;
mod scenario;
mod usage;

use serde_json::{Value, json};

use crate::usage::lenient;

/// Answers one line of `baton explain decision`; `false` = the answer is an error.
pub fn decision_line(line: &str) -> (String, bool) {
    answer(line, decide)
}

/// Answers one line of `baton explain failure`.
pub fn failure_line(line: &str) -> (String, bool) {
    answer(line, failure::verdict)
}

/// Answers one line of `baton explain usage`.
pub fn usage_line(line: &str) -> (String, bool) {
    answer(line, usage::verdict)
}

fn answer(line: &str, explain: impl Fn(&Value) -> Result<Value, String>) -> (String, bool) {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    match understand(line).and_then(|scenario| {
        let id = scenario.get("id").cloned().filter(Value::is_string);
        explain(&scenario).map_err(|error| (id.unwrap_or(Value::Null), error))
    }) {
        Ok(verdict) => (verdict.to_string(), true),
        Err((id, error)) => (json!({ "id": id, "error": error }).to_string(), false),
    }
}

fn understand(line: &str) -> Result<Value, (Value, String)> {
    let scenario = lenient::parse(line).map_err(|why| {
        (
            json!(lenient::salvage_id(line)),
            format!("not a JSON line: {why}"),
        )
    })?;
    if scenario.is_object() {
        Ok(scenario)
    } else {
        Err((Value::Null, "the line is not a JSON object".to_owned()))
    }
}

fn decide(scenario: &Value) -> Result<Value, String> {
    if !scenario.get("id").is_some_and(Value::is_string) {
        return Err("`id` is missing or not a string".to_owned());
    }
    let trigger = scenario.get("trigger").and_then(Value::as_str);
    match trigger.map(str::trim) {
        Some("gate") => gate::verdict(scenario),
        Some(trigger) => decision::verdict(trigger, scenario)
            .unwrap_or_else(|| Err(format!("unknown trigger `{}`", shorten(trigger)))),
        None => Err("`trigger` is missing or not a string".to_owned()),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
