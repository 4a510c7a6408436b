//! Keys that no branch of a schema knows.
//!
//! Discord's file forbids unknown properties in one schema only, so a misspelt key would pass. Here a key is unknown
//! when none of the schemas reachable through `$ref`, `allOf`, `anyOf`, `oneOf` names it.

use serde_json::Value;

/// Appends a sentence for each unknown key in `value`, nested ones included.
pub(crate) fn check(
    document: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
    out: &mut Vec<String>,
) {
    walk(document, &[schema], value, at, out);
}

fn walk(document: &Value, schemas: &[&Value], value: &Value, at: &str, out: &mut Vec<String>) {
    let mut leaves = Vec::new();
    for schema in schemas {
        flatten(document, schema, &mut leaves, 0);
    }
    match value {
        Value::Array(items) => {
            let inner: Vec<&Value> = leaves.iter().filter_map(|leaf| leaf.get("items")).collect();
            if inner.is_empty() {
                return;
            }
            for (index, item) in items.iter().enumerate() {
                walk(document, &inner, item, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(object) => {
            if leaves.iter().all(|leaf| leaf.get("properties").is_none()) {
                return;
            }
            for (key, item) in object {
                let named: Vec<&Value> = leaves
                    .iter()
                    .filter_map(|leaf| leaf.get("properties")?.get(key))
                    .collect();
                let place = format!("{at}/{key}");
                if !named.is_empty() {
                    walk(document, &named, item, &place, out);
                } else if !leaves.iter().any(|leaf| is_open(leaf)) {
                    out.push(format!("{place}: unknown key"));
                }
            }
        }
        _ => {}
    }
}

/// Says whether a schema takes further keys on purpose.
fn is_open(schema: &Value) -> bool {
    matches!(
        schema.get("additionalProperties"),
        Some(Value::Bool(true) | Value::Object(_))
    )
}

fn flatten<'a>(document: &'a Value, schema: &'a Value, leaves: &mut Vec<&'a Value>, depth: usize) {
    if depth > 16 {
        return;
    }
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(target) = reference.and_then(|at| document.pointer(at.trim_start_matches('#'))) {
        flatten(document, target, leaves, depth + 1);
    }
    for branch in ["allOf", "anyOf", "oneOf"] {
        for inner in schema
            .get(branch)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            flatten(document, inner, leaves, depth + 1);
        }
    }
    leaves.push(schema);
}
