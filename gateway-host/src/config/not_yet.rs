//! Keys of the product that are known and not built yet. They are refused with "not yet" and with what brings them,
//! never as unknown; what already holds when a part is off (`enabled = false`) is accepted.

use serde_json::Value;

use super::document::KeyPath;

/// One row: where it stands (`*` = any name), which values it is about, and what brings it.
struct Row {
    path: &'static [&'static str],
    refused: fn(&Value) -> bool,
    comes: &'static str,
}

const ROWS: &[Row] = &[
    row(
        &["http"],
        any,
        "the HTTP surface comes with the session bridge; `baton chat` talks in the terminal",
    ),
    row(
        &["store"],
        any,
        "store = \"postgres://…\" for several hosts comes later; the embedded store needs no key",
    ),
    row(
        &["profiles", "*", "routing", "paid", "enabled"],
        on,
        "paid routes are not switched to by themselves yet; a metered route that stands first in the chain, or is chosen with /model, is used",
    ),
];

const fn row(
    path: &'static [&'static str],
    refused: fn(&Value) -> bool,
    comes: &'static str,
) -> Row {
    Row {
        path,
        refused,
        comes,
    }
}

/// The sentence for a key of a part not built yet; `None` = not such a key, or its value asks for nothing.
pub(super) fn not_yet(path: &KeyPath, value: &Value) -> Option<String> {
    let comes = ROWS
        .iter()
        .find(|row| matches(row.path, path) && (row.refused)(value))
        .map(|row| row.comes)?;
    Some(format!("not yet: {comes}"))
}

/// Names of parts not built yet that may stand below `parent`, for suggestions.
pub(super) fn names_below(parent: &KeyPath) -> Vec<&'static str> {
    ROWS.iter()
        .filter_map(|row| row.path.split_last())
        .filter(|(_, above)| matches(above, parent))
        .map(|(name, _)| *name)
        .collect()
}

fn matches(pattern: &[&str], path: &KeyPath) -> bool {
    pattern.len() == path.names().len()
        && pattern
            .iter()
            .zip(path.names())
            .all(|(wanted, name)| *wanted == "*" || wanted == name)
}

fn any(_: &Value) -> bool {
    true
}

fn on(value: &Value) -> bool {
    value == &Value::Bool(true)
}
