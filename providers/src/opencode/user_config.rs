//! What is taken from the person's own configuration: which providers there are, and nothing else. Agents, commands,
//! plugins, MCP servers and instructions stay out.

use std::path::Path;

use serde_json::{Map, Value};

/// The files in the order the program reads them (1.18.33); later ones win.
const FILES: &[&str] = &["config.json", "opencode.json", "opencode.jsonc"];
/// The keys that say which providers there are.
const KEYS: &[&str] = &["provider", "enabled_providers", "disabled_providers"];
/// The most of one file that is read, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The providers named in this folder's files. A file that cannot be read names none. Blocks on three small files.
pub(super) fn providers(folder: &Path) -> Map<String, Value> {
    let mut found = Map::new();
    for file in FILES {
        let path = folder.join(file);
        let small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= MAX_BYTES);
        let text = small.then(|| std::fs::read_to_string(&path).ok()).flatten();
        let Some(Value::Object(mut config)) = text.as_deref().and_then(parse) else {
            continue;
        };
        for key in KEYS {
            if let Some(mut value) = config.remove(*key) {
                anchor(&mut value, folder);
                join(&mut found, key, value);
            }
        }
    }
    found
}

fn join(found: &mut Map<String, Value>, key: &str, value: Value) {
    match (found.get_mut(key), value) {
        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
        (_, value) => drop(found.insert(key.to_owned(), value)),
    }
}

/// `{file:name}` counts from the file it stands in, and ours stands elsewhere.
fn anchor(value: &mut Value, folder: &Path) {
    match value {
        Value::String(text) => {
            if let Some(name) = text
                .strip_prefix("{file:")
                .and_then(|rest| rest.strip_suffix('}'))
                .filter(|name| !name.starts_with(['/', '~']))
            {
                *text = format!("{{file:{}}}", folder.join(name).display());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| anchor(item, folder)),
        Value::Object(fields) => fields.values_mut().for_each(|item| anchor(item, folder)),
        _ => {}
    }
}

/// Reads JSON with comments and trailing commas; `None` = it is none.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&plain(text)))
        .ok()
}

/// The same text without comments and trailing commas. Strings are kept as they are.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                plain.push(c);
                while let Some(inside) = chars.next() {
                    plain.push(inside);
                    match inside {
                        '\\' => plain.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut star = false;
                for inside in chars.by_ref() {
                    if star && inside == '/' {
                        break;
                    }
                    star = inside == '*';
                }
            }
            ('}' | ']', _) => {
                let kept = plain.trim_end();
                if let Some(before) = kept.strip_suffix(',') {
                    plain.truncate(before.len());
                }
                plain.push(c);
            }
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read() {
        let text = "{ // a \"comment\"\n \"a\": [1, 2, ], /* b */ \"b\": \"// no, }\\\"\", }";
        assert_eq!(parse(text), Some(json!({"a": [1, 2], "b": "// no, }\""})));
        for text in ["", "{", "/*", "\"", "nonsense"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_providers_are_taken_and_their_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let mut file = std::fs::File::create(folder.path().join(name)).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        };
        write(
            "opencode.json",
            r#"{"provider": {"a": {"x": 1}, "b": {}}, "mcp": {"m": {}}, "permission": "allow"}"#,
        );
        write(
            "opencode.jsonc",
            r#"{"provider": {"a": {"options": {"apiKey": "{file:key.txt}"}},}, "plugin": ["p"], "disabled_providers": ["c"]}"#,
        );
        let found = Value::Object(providers(folder.path()));
        let key = format!("{{file:{}}}", folder.path().join("key.txt").display());
        assert_eq!(
            found,
            json!({
                "provider": {"a": {"options": {"apiKey": key}}, "b": {}},
                "disabled_providers": ["c"],
            })
        );
        assert!(providers(Path::new("/nonexistent")).is_empty());
    }
}
