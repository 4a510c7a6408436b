//! A TOML file as a tree of plain values in which every key still knows where it stands. Files are laid over each other
//! key by key; the place of a key is the place of the value that won. Nothing here knows what a key means.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// The names from the top of the configuration down to one key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The path of these names.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// This path and one name more.
    pub fn join(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// The path without its last name; the top's parent is the top.
    pub fn parent(&self) -> Self {
        let mut names = self.0.clone();
        names.pop();
        Self(names)
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether this is `other` or lies below it.
    pub fn is_within(&self, other: &KeyPath) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            let dot = if index == 0 || name.starts_with('[') {
                ""
            } else {
                "."
            };
            if is_bare(name) {
                write!(f, "{dot}{name}")?;
            } else {
                write!(f, "{dot}{name:?}")?;
            }
        }
        Ok(())
    }
}

/// Whether TOML lets the name stand without quotes; positions in lists (`[2]`) are shown as they are.
fn is_bare(name: &str) -> bool {
    !name.is_empty()
        && (name.starts_with('[')
            || name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
}

/// One file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

/// Where a key and its value stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub source: Arc<Source>,
    /// Bytes of the key; for an entry of a list those of the value.
    pub key: Range<usize>,
    pub value: Range<usize>,
}

/// Values with their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    pub value: Map<String, Value>,
    pub places: BTreeMap<KeyPath, Place>,
}

/// The text is not TOML.
#[derive(Debug)]
pub struct NotToml {
    pub source: Arc<Source>,
    pub span: Range<usize>,
    pub message: String,
}

impl Document {
    /// Parses one file whose keys belong below `prefix`. All syntax errors are returned, in the order of the file.
    pub(super) fn parse(path: &Path, text: &str, prefix: &KeyPath) -> Result<Self, Vec<NotToml>> {
        let source = Arc::new(Source {
            path: path.to_owned(),
            text: text.to_owned(),
        });
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(errors
                .iter()
                .map(|error| NotToml {
                    source: source.clone(),
                    span: error.span().unwrap_or(0..0),
                    message: error.message().to_owned(),
                })
                .collect());
        }
        let mut places = BTreeMap::new();
        let mut value = plain_table(table.get_ref(), prefix, &source, &mut places);
        for name in prefix.names().iter().rev() {
            value = Map::from_iter([(name.clone(), Value::Object(value))]);
        }
        Ok(Self { value, places })
    }

    /// Lays `over` on top: tables are joined, everything else is replaced whole.
    pub(super) fn lay(&mut self, over: Document) {
        join(
            &mut self.value,
            over.value,
            &KeyPath::default(),
            &mut self.places,
        );
        self.places.extend(over.places);
    }
}

fn join(
    below: &mut Map<String, Value>,
    over: Map<String, Value>,
    at: &KeyPath,
    places: &mut BTreeMap<KeyPath, Place>,
) {
    for (name, value) in over {
        let path = at.join(&name);
        match (below.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => join(old, new, &path, places),
            (_, value) => {
                places.retain(|known, _| !known.is_within(&path));
                below.insert(name, value);
            }
        }
    }
}

fn plain_table(
    table: &DeTable<'_>,
    at: &KeyPath,
    source: &Arc<Source>,
    places: &mut BTreeMap<KeyPath, Place>,
) -> Map<String, Value> {
    let mut plain_map = Map::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = at.join(name);
        let place = Place {
            source: source.clone(),
            key: key.span(),
            value: value.span(),
        };
        places.insert(path.clone(), place);
        plain_map.insert(
            name.to_owned(),
            plain(value.get_ref(), &path, source, places),
        );
    }
    plain_map
}

fn plain(
    value: &DeValue<'_>,
    at: &KeyPath,
    source: &Arc<Source>,
    places: &mut BTreeMap<KeyPath, Place>,
) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.as_ref().to_owned()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Value::String(digits.to_string()), Value::from),
        DeValue::Float(digits) => digits
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map_or_else(|| Value::String(digits.to_string()), Value::Number),
        DeValue::Datetime(moment) => Value::String(moment.to_string()),
        DeValue::Array(entries) => {
            let plain_entry = |(index, entry): (usize, &toml::Spanned<DeValue<'_>>)| {
                let path = at.join(&format!("[{}]", index + 1));
                let place = Place {
                    source: source.clone(),
                    key: entry.span(),
                    value: entry.span(),
                };
                places.insert(path.clone(), place);
                plain(entry.get_ref(), &path, source, places)
            };
            Value::Array(entries.iter().enumerate().map(plain_entry).collect())
        }
        DeValue::Table(table) => Value::Object(plain_table(table, at, source, places)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(file: &str, text: &str, prefix: &[&str]) -> Document {
        Document::parse(Path::new(file), text, &KeyPath::of(prefix)).expect("the text is TOML")
    }

    #[test]
    fn the_profile_file_wins_key_by_key() {
        let mut root = parsed(
            "root",
            "[profiles.work]\nchain = [\"a/1\", \"b/2\"]\nworkdir = \"/w\"\n",
            &[],
        );
        root.lay(parsed("work", "chain = [\"c/3\"]\n", &["profiles", "work"]));
        let chain = KeyPath::of(&["profiles", "work", "chain"]);
        assert_eq!(
            Value::Object(root.value),
            serde_json::json!({"profiles": {"work": {"chain": ["c/3"], "workdir": "/w"}}})
        );
        assert_eq!(root.places[&chain].source.path, Path::new("work"));
        assert!(!root.places.contains_key(&chain.join("[2]")));
    }

    #[test]
    fn a_path_quotes_what_toml_would_quote() {
        assert_eq!(
            KeyPath::of(&["subscriptions", "my sub", "env"]).to_string(),
            r#"subscriptions."my sub".env"#
        );
    }
}
