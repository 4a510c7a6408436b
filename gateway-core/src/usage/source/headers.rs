//! Response headers as the parsers see them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names in lower case to trimmed values; of a repeated name the last value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Takes an object of text, numbers, or lists of either (as some programs print headers).
    pub fn of_json(object: &Value) -> Self {
        let members = object.as_object().into_iter().flatten();
        members
            .filter_map(|(name, value)| Some((name.as_str(), text(value)?)))
            .collect()
    }

    /// A header by its lower-case name; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// A header's number; `None` = absent, not a number, or not finite.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let number: f64 = self.get(name)?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// What follows `prefix` in the names that begin with it, in alphabetical order.
    pub(super) fn after<'h>(&'h self, prefix: &'h str) -> impl Iterator<Item = &'h str> {
        self.0
            .keys()
            .filter_map(move |name| name.strip_prefix(prefix))
    }

    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| {
                    let name = name.as_ref().trim().to_ascii_lowercase();
                    (name, value.as_ref().trim().to_owned())
                })
                .collect(),
        )
    }
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
