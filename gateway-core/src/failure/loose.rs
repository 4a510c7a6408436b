//! JSON as it stands inside prose: behind a prefix, in Python's quotes, broken over lines by a terminal, cut off at the end.

use serde_json::Value;

/// How many opening braces are tried: log lines hold others before the error.
const MAX_TRIES: usize = 6;
/// An error object longer than this is no error object.
const MAX_BYTES: usize = 64 * 1024;
/// The reader's own bound on nesting is 128.
const MAX_DEPTH: usize = 100;

/// The first object written somewhere in the text, and from where to where it goes.
pub(super) fn embedded(text: &str) -> Option<(std::ops::Range<usize>, Value)> {
    let braces = text.match_indices('{').map(|(at, _)| at);
    braces.take(MAX_TRIES).find_map(|at| {
        let rest = head(text.get(at..)?);
        let (length, value) = strict(rest)
            .or_else(|| quoted(rest))
            .or_else(|| loose(rest))?;
        let holds_something = value.as_object().is_some_and(|fields| !fields.is_empty());
        holds_something.then_some((at..at + length, value))
    })
}

/// The beginning of a text, cut at a character.
pub(super) fn head(text: &str) -> &str {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let mut end = MAX_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Whether an event stream says that it is over and nothing else.
pub(super) fn ends_without_beginning(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| {
        // A line of a colon alone, or with a comment behind it, keeps the connection alive.
        !line.is_empty() && !line.starts_with(':')
    });
    match lines.next() {
        Some(line) => line == "data: [DONE]" && lines.next().is_none(),
        None => !text.trim().is_empty(),
    }
}

fn strict(text: &str) -> Option<(usize, Value)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((values.byte_offset(), value))
}

/// An object inside a string of JSON that stands in prose: `body: "{\"error\": …}"`.
fn quoted(text: &str) -> Option<(usize, Value)> {
    let behind = text.get(1..)?.trim_start_matches("\\n").trim_start();
    if !behind.starts_with("\\\"") {
        return None;
    }
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    // Cut off: what is there is still escaped.
    let length = end.unwrap_or(text.len());
    let inside: String = serde_json::from_str(&format!("\"{}\"", text.get(..length)?))
        .ok()
        .or_else(|| end.is_none().then(|| text.replace("\\\"", "\"")))?;
    let (_, value) = strict(&inside).or_else(|| loose(&inside))?;
    Some((length, value))
}

fn loose(text: &str) -> Option<(usize, Value)> {
    let (length, mended) = mend(text)?;
    Some((length, serde_json::from_str(&mended).ok()?))
}

/// Rewrites one object: quotes of either kind, Python's words, raw line breaks, missing ends; how long it was. `None` = it
/// is no object.
fn mend(text: &str) -> Option<(usize, String)> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' | '"' => {
                let rest = text.get(at + 1..)?;
                let taken = string(rest, c, &mut out);
                while chars.next_if(|(next, _)| *next < at + 1 + taken).is_some() {}
            }
            '{' | '[' | '(' => {
                if open.len() >= MAX_DEPTH {
                    return None;
                }
                let (opening, closing) = if c == '{' { ('{', '}') } else { ('[', ']') };
                open.push(closing);
                out.push(opening);
            }
            '}' | ']' | ')' => {
                drop_dangling(&mut out);
                out.push(open.pop()?);
                if open.is_empty() {
                    return Some((at + c.len_utf8(), out));
                }
            }
            _ if c.is_alphabetic() => {
                let mut word = String::from(c);
                while let Some((_, next)) =
                    chars.next_if(|(_, next)| next.is_alphanumeric() || *next == '_')
                {
                    word.push(next);
                }
                push_word(&word, &mut out);
            }
            _ => out.push(c),
        }
    }
    // Cut off: what is open is closed.
    drop_dangling(&mut out);
    out.extend(open.iter().rev());
    Some((text.len(), out))
}

/// A bare word is a constant, else a key or value without its quotes.
fn push_word(word: &str, out: &mut String) {
    match word {
        "None" | "null" | "undefined" | "nil" => out.push_str("null"),
        "True" | "true" => out.push_str("true"),
        "False" | "false" => out.push_str("false"),
        _ if out.ends_with(|c: char| c.is_ascii_digit()) => out.push_str(word),
        _ => {
            out.push('"');
            out.push_str(word);
            out.push('"');
        }
    }
}

/// Copies a string behind its opening quote; how many bytes it and its closing quote took.
fn string(rest: &str, quote: char, out: &mut String) -> usize {
    out.push('"');
    let mut escaped = false;
    let mut taken = rest.len();
    for (at, c) in rest.char_indices() {
        if escaped {
            escaped = false;
            match c {
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' => out.extend(['\\', c]),
                _ => out.push(c),
            }
            continue;
        }
        match c {
            '\\' => escaped = true,
            _ if c == quote => {
                taken = at + c.len_utf8();
                break;
            }
            '"' => out.push_str("\\\""),
            '\n' | '\r' | '\t' => out.push(' '),
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    out.push('"');
    taken
}

/// A key without its value, or a comma, at the end of what was written.
fn drop_dangling(out: &mut String) {
    let end = out.trim_end().len();
    out.truncate(end);
    if out.ends_with(',') {
        out.pop();
    } else if out.ends_with(':') {
        out.push_str("null");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_found_as_people_paste_them() {
        let want = json!({"error": {"message": "a b's", "code": 429, "x": null}});
        for text in [
            r#"429 {"error": {"message": "a b's", "code": 429, "x": null}} at line {3}"#,
            r#"Error code: 429 - {'error': {'message': "a b's", 'code': 429, 'x': None}}"#,
            "API Error {\"error\": {\"message\": \"a\nb's\", \"code\": 429, \"x\": null",
            r#"status 429, body: "{\"error\": {\"message\": \"a b's\", \"code\": 429, \"x\": null}}" (x)"#,
            r#"f() { x } {"error": {"message": "a b's", "code": 429, "x":"#,
        ] {
            let found = embedded(text).map(|(_, value)| value);
            if text.starts_with('f') {
                assert!(found.is_some(), "{text}");
            } else {
                assert_eq!(found.as_ref(), Some(&want), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in ["", "{", "{}", "a } b {", &"{[".repeat(100_000), "no braces"] {
            assert_eq!(embedded(text), None);
        }
    }
}
