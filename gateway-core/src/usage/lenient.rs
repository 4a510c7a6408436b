//! JSON as other programs really write it. Python prints bare `NaN` and `Infinity`, a cut string leaves half a surrogate
//! pair, a hostile line nests a million lists: one such value becomes `null` (or U+FFFD) instead of voiding the document.
//! What is no JSON even then stays an error.

use serde_json::Value;

/// Deeper values are dropped; well below what the JSON reader itself bears.
const MAX_DEPTH: usize = 96;

/// Reads JSON, mending single values that strict JSON does not allow.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&mend(text)))
}

/// Finds the top-level member `id` of an object that cannot be read as a whole, if it is a string.
pub fn salvage_id(text: &str) -> Option<String> {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, after) = next_token(rest);
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            '"' if depth == 1 && token == "\"id\"" => {
                if let Some(value) = after.trim_start().strip_prefix(':') {
                    let (value, _) = next_token(value.trim_start());
                    return parse(value).ok()?.as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
        rest = after;
    }
    None
}

/// Rewrites the document token by token. Linear, without recursion.
fn mend(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, after) = next_token(rest);
        rest = after;
        match first {
            '{' | '[' => {
                depth += 1;
                if depth <= MAX_DEPTH {
                    out.push(first);
                } else if depth == MAX_DEPTH + 1 {
                    out.push_str("null");
                }
            }
            '}' | ']' => {
                if depth <= MAX_DEPTH {
                    out.push(first);
                }
                depth = depth.saturating_sub(1);
            }
            _ if depth > MAX_DEPTH => {}
            '"' => push_string(token, &mut out),
            _ if is_no_number(token) => out.push_str("null"),
            _ => out.push_str(token),
        }
    }
    out
}

/// Splits off a string, a bare word, or one other character.
fn next_token(text: &str) -> (&str, &str) {
    let end = match text.chars().next() {
        Some('"') => string_end(text),
        Some(c) if is_word(c) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
        Some(c) => c.len_utf8(),
        None => 0,
    };
    text.split_at(end)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')
}

/// Where the string at the head of `text` ends, its closing quote included.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A word of Python's, or a number beyond what a float holds.
fn is_no_number(token: &str) -> bool {
    matches!(token, "NaN" | "Infinity" | "-Infinity" | "+Infinity")
        || (token.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && token.parse::<f64>().is_ok_and(|number| !number.is_finite()))
}

/// Copies a string, its lone surrogates replaced.
fn push_string(token: &str, out: &mut String) {
    let mut rest = token;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let taken = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        let (kept, after) = escape.split_at(taken);
        out.push_str(kept);
        rest = after;
    }
    out.push_str(rest);
}

/// The code unit of a `\uXXXX` at the head of `text`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_value_does_not_void_the_document() {
        let text = r#"{"a": NaN, "b": [-Infinity, Infinity, 1e999], "c": "NaN \ud800 \ud83d\ude00 \\ud800", "d": 1}"#;
        assert_eq!(
            parse(text).unwrap(),
            json!({"a": null, "b": [null, null, null], "c": "NaN \u{fffd} 😀 \\ud800", "d": 1})
        );
    }

    #[test]
    fn values_too_deep_are_dropped_and_the_rest_stays() {
        let deep = format!(
            "{{\"x\": {}{}, \"id\": \"a\"}}",
            "[".repeat(200_000),
            "]".repeat(200_000)
        );
        assert_eq!(parse(&deep).unwrap().get("id"), Some(&json!("a")));
    }

    #[test]
    fn what_is_no_json_stays_an_error() {
        for text in [
            "",
            "{not json",
            "{\"a\":",
            "[1,]",
            "nan",
            "\"\\ud8",
            "}{",
            "{\"a\": tru}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_broken_line_is_found_at_the_top_level_only() {
        assert_eq!(
            salvage_id(r#"{"x": {"id": "no"}, "id" : "yes", "#).as_deref(),
            Some("yes")
        );
        assert_eq!(salvage_id(r#"{"x": "\"id\": \"no\"", [[["#), None);
        assert_eq!(salvage_id(r#"{"id": 7, ]"#), None);
        assert_eq!(salvage_id("\"id\""), None);
    }
}
