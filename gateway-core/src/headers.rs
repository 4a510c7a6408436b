//! A small header map: names without case, several values each, order kept. Not an HTTP library's, because headers also
//! come inside JSON bodies and websocket messages.

use std::collections::BTreeSet;

use serde_json::Value;

/// Longer maps are cut: no server sends so many, and every lookup walks the list.
const MOST: usize = 256;

/// Response headers, wherever they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds a value; earlier ones of the same name win on [`Headers::get`].
    pub fn add(&mut self, name: &str, value: &str) {
        if self.0.len() < MOST {
            let pair = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
            self.0.push(pair);
        }
    }

    /// Takes headers as programs print them: an object of text, numbers, or lists of either; a list of pairs or of objects
    /// with `name` and `value`; or lines of `name: value`.
    pub fn of_json(headers: &Value) -> Self {
        match headers {
            Value::Object(members) => members
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), text(value)?)))
                .collect(),
            Value::Array(items) => items.iter().filter_map(pair).collect(),
            Value::String(lines) => lines
                .lines()
                .filter_map(|line| line.split_once(':'))
                .collect(),
            _ => Self::default(),
        }
    }

    /// Returns the first value of a lower-case name that is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find_map(|(known, value)| (known == name && !value.is_empty()).then_some(value))
    }

    /// A header's number; `None` = absent, not a number, or not finite.
    pub fn number(&self, name: &str) -> Option<f64> {
        let number: f64 = self.get(name)?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// What follows `prefix` in the names that begin with it, in alphabetical order, each once.
    pub fn after<'h>(&'h self, prefix: &str) -> impl Iterator<Item = &'h str> + use<'h> {
        let names: BTreeSet<&str> = self
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(prefix))
            .collect();
        names.into_iter()
    }

    /// Every pair, names in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            headers.add(name.as_ref(), value.as_ref());
        }
        headers
    }
}

/// `["name", "value"]`, `{"name": …, "value": …}`, or a line of text.
fn pair(item: &Value) -> Option<(&str, String)> {
    if let Some(line) = item.as_str() {
        let (name, value) = line.split_once(':')?;
        return Some((name, value.to_owned()));
    }
    let (name, value) = match item.as_array().map(Vec::as_slice) {
        Some([name, value]) => (name, value),
        _ => (
            item.get("name").or_else(|| item.get("key"))?,
            item.get("value")?,
        ),
    };
    Some((name.as_str()?, text(value)?))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(items) => text(items.last()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_have_no_case_and_the_first_value_wins() {
        let headers: Headers = [("Retry-After", " 5 "), ("retry-after", "9")]
            .into_iter()
            .collect();
        assert_eq!(headers.get("retry-after"), Some("5"));
        assert_eq!(headers.iter().count(), 2);
        assert_eq!(headers.get("Retry-After"), None);
    }

    #[test]
    fn headers_are_read_in_every_print() {
        let prints = [
            json!({"Retry-After": 5}),
            json!([["Retry-After", "5"], ["odd"], 3]),
            json!([{"name": "Retry-After", "value": "5"}, {"key": "x"}]),
            json!(["Retry-After: 5", "no header"]),
            json!("HTTP/1.1 429\r\nRetry-After: 5\r\n"),
        ];
        for print in prints {
            assert_eq!(
                Headers::of_json(&print).get("retry-after"),
                Some("5"),
                "{print}"
            );
        }
        assert!(Headers::of_json(&json!(7)).is_empty());
    }

    #[test]
    fn a_flood_of_headers_is_cut() {
        let headers: Headers = (0..100_000).map(|n| (format!("x-{n}"), "v")).collect();
        assert_eq!(headers.iter().count(), MOST);
    }
}
