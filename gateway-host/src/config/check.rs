//! The walk over a configuration as written, along the JSON Schema of `written.rs`: unknown keys, wrong types and keys
//! not built yet. Everything is found in one go. What is refused is taken out, so that the rest can still be read and
//! checked; what remains always fits the types.

use serde_json::{Map, Value};

use super::document::{Document, KeyPath};
use super::nearest::{did_you_mean, nearest};
use super::not_yet;
use super::problem::{Problem, Problems, Spot, sounds_secret};

/// Checks `document` against `schema`, takes out what is refused and says why in `problems`.
pub(super) fn check(document: &mut Document, schema: &Value, problems: &mut Problems) {
    let mut top = Value::Object(std::mem::take(&mut document.value));
    let mut walk = Walk {
        root: schema,
        document,
        problems,
    };
    walk.accepts(&mut top, schema, &KeyPath::default());
    if let Value::Object(top) = top {
        document.value = top;
    }
}

struct Walk<'a> {
    root: &'a Value,
    document: &'a Document,
    problems: &'a mut Problems,
}

impl<'a> Walk<'a> {
    /// Whether the value may stay. Entries of tables that may not are taken out here.
    fn accepts(&mut self, value: &mut Value, schema: &'a Value, path: &KeyPath) -> bool {
        let schema = self.resolved(schema);
        if let Some(words) = words_of(schema) {
            return self.accepts_word(value, &words, path);
        }
        let wanted = type_of(schema);
        match (wanted, &mut *value) {
            (None, _) | (Some("boolean"), Value::Bool(_)) | (Some("string"), Value::String(_)) => {
                true
            }
            (Some("number"), Value::Number(number)) => {
                let low = number.as_f64().is_none_or(|number| number < 0.0);
                !low || self.refuse(path, format!("expected a number from 0, found {number}"))
            }
            (Some("integer"), Value::Number(number)) => {
                number.is_u64()
                    || self.refuse(
                        path,
                        format!("expected a whole number from 0, found {number}"),
                    )
            }
            (Some("object"), Value::Object(table)) => {
                self.prune(table, schema, path);
                let missing = required_of(schema).find(|name| !table.contains_key(*name));
                match missing.map(|name| path.join(name)) {
                    Some(key) if !self.problems.mention(&key) => self.refuse(
                        path,
                        format!(
                            "{} is missing",
                            key.names().last().map_or("", String::as_str)
                        ),
                    ),
                    Some(_) => false,
                    None => true,
                }
            }
            (Some("array"), Value::Array(entries)) => {
                let inner = schema.get("items").unwrap_or(&Value::Bool(true));
                let mut all = true;
                for (index, entry) in entries.iter_mut().enumerate() {
                    all &= self.accepts(entry, inner, &path.join(&format!("[{}]", index + 1)));
                }
                all
            }
            (Some(wanted), found) => {
                let message = format!("expected {}, found {}", name_of(wanted), kind_of(found));
                self.refuse(path, message)
            }
        }
    }

    fn prune(&mut self, table: &mut Map<String, Value>, schema: &'a Value, path: &KeyPath) {
        let known = schema.get("properties").and_then(Value::as_object);
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(inner) => Some(inner),
            None if known.is_none() => Some(&Value::Bool(true)),
            None => schema
                .get("unevaluatedProperties")
                .is_none()
                .then_some(&Value::Bool(true)),
        };
        let refused: Vec<String> = table
            .iter_mut()
            .filter_map(|(name, value)| {
                let key = path.join(name);
                let keep = if let Some(sentence) = not_yet::not_yet(&key, value) {
                    self.refuse_key(&key, sentence)
                } else if let Some(inner) = known.and_then(|known| known.get(name)).or(others) {
                    self.accepts(value, inner, &key)
                } else {
                    self.unknown(name, known, path)
                };
                (!keep).then(|| name.clone())
            })
            .collect();
        table.retain(|name, _| !refused.contains(name));
    }

    fn unknown(&mut self, name: &str, known: Option<&Map<String, Value>>, path: &KeyPath) -> bool {
        let mut names: Vec<&str> = known
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        let list = names.join(", ");
        names.extend(not_yet::names_below(path));
        let naming = names.iter().find_map(|name| name.strip_suffix("_env"));
        let hint = if let Some(what) = naming.filter(|_| sounds_secret(name)) {
            Some(format!(
                "secrets are named, never written: put the {} into an environment variable and name it with {what}_env, or into a file of yours alone (0600) and name it with {what}_file",
                what.rsplit('_').next().unwrap_or(what)
            ))
        } else if path.names().len() == 2 && ROOT_ONLY.contains(&name) {
            Some(format!(
                "[{name}] belongs into the root's config.toml, it is shared by all profiles"
            ))
        } else {
            Some(format!("known here: {list}"))
        };
        let message = format!(
            "unknown key {name:?}{}",
            did_you_mean(name, names.iter().copied())
        );
        let at = self.document.places.get(&path.join(name)).map(Spot::key);
        let mut problem = Problem::error(path, message).at(at);
        problem.hint = hint;
        problem.meant = nearest(name, names).map(|meant| path.join(meant));
        self.problems.push(problem);
        false
    }

    fn accepts_word(&mut self, value: &Value, words: &[&str], path: &KeyPath) -> bool {
        let list = words.join(", ");
        match value.as_str() {
            Some(text) if words.contains(&text) => true,
            Some(text) => {
                let guess = did_you_mean(text, words.iter().copied());
                self.refuse(path, format!("{text:?} is not one of {list}{guess}"))
            }
            None => self.refuse(
                path,
                format!("expected one of {list}, found {}", kind_of(value)),
            ),
        }
    }

    fn refuse(&mut self, path: &KeyPath, message: String) -> bool {
        let at = self.document.places.get(path).map(Spot::value);
        self.problems.push(Problem::error(path, message).at(at));
        false
    }

    fn refuse_key(&mut self, path: &KeyPath, message: String) -> bool {
        let at = self.document.places.get(path).map(Spot::key);
        let hint = "take it out of the file until then";
        self.problems
            .push(Problem::error(path, message).at(at).hint(hint));
        false
    }

    /// Follows references and looks past "or null".
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = reference.trim_start_matches('#');
            return self
                .root
                .pointer(pointer)
                .map_or(schema, |found| self.resolved(found));
        }
        let choices = schema.get("anyOf").and_then(Value::as_array);
        let real = choices.and_then(|choices| {
            choices
                .iter()
                .find(|choice| choice.get("type").and_then(Value::as_str) != Some("null"))
        });
        real.map_or(schema, |real| self.resolved(real))
    }
}

/// Sections of the root's file that a profile's file may be thought to hold.
const ROOT_ONLY: &[&str] = &["subscriptions", "profiles", "usage", "http", "store"];

/// The words an enum allows.
fn words_of(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema.get("oneOf").and_then(Value::as_array)?;
    let word = |choice: &'_ Value| choice.get("const").is_some() || choice.get("enum").is_some();
    choices.iter().all(word).then(|| {
        let constants = choices.iter().filter_map(|choice| choice.get("const"));
        let lists = choices
            .iter()
            .filter_map(|choice| choice.get("enum")?.as_array())
            .flatten();
        constants.chain(lists).filter_map(Value::as_str).collect()
    })
}

fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    }
}

fn required_of(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn name_of(wanted: &str) -> &'static str {
    match wanted {
        "boolean" => "true or false",
        "string" => "text in quotes",
        "number" => "a number",
        "integer" => "a whole number",
        "object" => "a section",
        "array" => "a list",
        _ => "something else",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a section",
    }
}
