//! Discord's OpenAPI 3.1 file as a checker of requests and answers; each schema is compiled once, when first met.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::{Registry, Validator};
use parking_lot::Mutex;
use regex::Regex;
use serde_json::{Value, json};

use super::unknown_keys;

/// Where the document lies for `$ref`s.
const HOME: &str = "https://spec.invalid/openapi.json";

/// Discord's file: `specs/discord/openapi.json`.
pub(crate) fn discord() -> &'static OpenApi {
    static SPEC: LazyLock<OpenApi> =
        LazyLock::new(|| OpenApi::read(include_str!("../../specs/discord/openapi.json")));
    &SPEC
}

pub(crate) struct OpenApi {
    document: Value,
    registry: Registry<'static>,
    operations: Vec<Operation>,
    /// By JSON pointer of the schema.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// One method of one path.
pub(crate) struct Operation {
    pub(crate) method: String,
    /// As written in the file, e.g. `/channels/{channel_id}/messages`.
    pub(crate) template: String,
    pattern: Regex,
    wildcards: usize,
    /// JSON pointer of the operation.
    pointer: String,
    query: Vec<(String, Value)>,
}

impl OpenApi {
    fn read(text: &str) -> Self {
        let document: Value =
            serde_json::from_str(text).expect("the spec in the repository is JSON");
        let mut operations = Vec::new();
        for (template, path) in document["paths"].as_object().expect("a spec has paths") {
            for (method, operation) in path.as_object().expect("a path is an object") {
                if method != "parameters" {
                    operations.push(Operation::new(template, method, operation));
                }
            }
        }
        // The fewest wildcards win: `/messages/@original` before `/messages/{message_id}`.
        operations.sort_by_key(|operation| operation.wildcards);
        let registry = Registry::new()
            .add(HOME, document.clone())
            .and_then(jsonschema::RegistryBuilder::prepare)
            .expect("the spec refers only to itself");
        Self {
            document,
            registry,
            operations,
            validators: Mutex::new(HashMap::new()),
        }
    }

    /// Returns the operation that serves `path` (without `/api/v10`).
    pub(crate) fn find(&self, method: &str, path: &str) -> Option<&Operation> {
        let method = method.to_ascii_lowercase();
        self.operations
            .iter()
            .find(|operation| operation.method == method && operation.pattern.is_match(path))
    }

    /// Checks a request's body. `None` = there was none.
    pub(crate) fn check_request(
        &self,
        operation: &Operation,
        multipart: bool,
        body: Option<&Value>,
    ) -> Vec<String> {
        let declared = self
            .document
            .pointer(&format!("{}/requestBody", operation.pointer));
        let Some(declared) = declared else {
            return match body {
                Some(Value::Object(object)) if object.is_empty() => Vec::new(),
                Some(Value::Null) | None => Vec::new(),
                Some(_) => vec!["a body where none is taken".into()],
            };
        };
        let Some(body) = body else {
            let required = declared["required"].as_bool() == Some(true);
            return if required {
                vec!["the body is missing".into()]
            } else {
                Vec::new()
            };
        };
        // The multipart branch lists the files beside the same JSON; the JSON is what is checked.
        let kind = if multipart {
            "multipart~1form-data"
        } else {
            "application~1json"
        };
        let content = format!("{}/requestBody/content", operation.pointer);
        let pointer = [kind, "application~1json"]
            .map(|kind| format!("{content}/{kind}/schema"))
            .into_iter()
            .find(|pointer| self.document.pointer(pointer).is_some());
        match pointer {
            Some(pointer) => self.check(&pointer, body),
            None => vec!["the spec takes no JSON here".into()],
        }
    }

    /// Checks the names and values of a query string.
    pub(crate) fn check_query(
        &self,
        operation: &Operation,
        query: &[(String, String)],
    ) -> Vec<String> {
        let mut broken = Vec::new();
        for (name, text) in query {
            let Some((_, schema)) = operation.query.iter().find(|(known, _)| known == name) else {
                broken.push(format!("?{name}: unknown query parameter"));
                continue;
            };
            let value = match schema["type"].as_str() {
                Some("integer") => text.parse::<i64>().map_or(json!(text), Value::from),
                Some("boolean") => text.parse::<bool>().map_or(json!(text), Value::from),
                _ => json!(text),
            };
            let mut schema = schema.clone();
            absolute_references(&mut schema);
            let validator = self.compile(&schema);
            broken.extend(
                validator
                    .iter_errors(&value)
                    .map(|error| format!("?{name}: {error}")),
            );
        }
        broken
    }

    /// Checks an answer of the fake itself. Statuses fall back to `4XX` as in the file; 5xx is not described.
    pub(crate) fn check_answer(
        &self,
        operation: &Operation,
        status: u16,
        body: Option<&Value>,
    ) -> Vec<String> {
        if status >= 500 {
            return Vec::new();
        }
        let responses = &self
            .document
            .pointer(&operation.pointer)
            .expect("found before")["responses"];
        let class = format!("{}XX", status / 100);
        let Some((name, mut response)) = [status.to_string(), class]
            .into_iter()
            .find_map(|name| Some((name.clone(), responses.get(&name)?)))
        else {
            return vec![format!("the spec knows no answer {status} here")];
        };
        let mut pointer = format!("{}/responses/{name}", operation.pointer);
        if let Some(reference) = response.get("$ref").and_then(Value::as_str) {
            reference.trim_start_matches('#').clone_into(&mut pointer);
            response = self.document.pointer(&pointer).expect("references resolve");
        }
        let described = response
            .pointer("/content/application~1json/schema")
            .is_some();
        match (described, body) {
            (true, Some(body)) => {
                self.check(&format!("{pointer}/content/application~1json/schema"), body)
            }
            (true, None) => vec![format!("answer {status} without its body")],
            (false, Some(_)) => vec![format!(
                "answer {status} with a body where none is described"
            )],
            (false, None) => Vec::new(),
        }
    }

    fn check(&self, pointer: &str, value: &Value) -> Vec<String> {
        let validator = self.validator(pointer);
        let mut broken: Vec<String> = validator
            .iter_errors(value)
            .map(|error| {
                format!(
                    "{}: {}",
                    error.instance_path(),
                    shortened(&error.to_string())
                )
            })
            .collect();
        let schema = self
            .document
            .pointer(pointer)
            .expect("checked by the caller");
        unknown_keys::check(&self.document, schema, value, "", &mut broken);
        broken
    }

    fn validator(&self, pointer: &str) -> Arc<Validator> {
        if let Some(known) = self.validators.lock().get(pointer) {
            return Arc::clone(known);
        }
        let compiled =
            Arc::new(self.compile(&json!({ "$ref": format!("{HOME}#{}", escaped(pointer)) })));
        self.validators
            .lock()
            .insert(pointer.to_owned(), Arc::clone(&compiled));
        compiled
    }

    fn compile(&self, schema: &Value) -> Validator {
        jsonschema::draft202012::options()
            .with_registry(&self.registry)
            .should_validate_formats(false)
            .build(schema)
            .expect("the spec's schemas compile")
    }
}

impl Operation {
    fn new(template: &str, method: &str, operation: &Value) -> Self {
        let parts: Vec<String> = template
            .split('/')
            .map(|part| {
                if part.starts_with('{') {
                    "[^/]+".to_owned()
                } else {
                    regex::escape(part)
                }
            })
            .collect();
        let query = operation["parameters"].as_array().into_iter().flatten();
        Self {
            method: method.to_owned(),
            template: template.to_owned(),
            pattern: Regex::new(&format!("^{}$", parts.join("/")))
                .expect("built from escaped parts"),
            wildcards: template.matches('{').count(),
            pointer: format!("/paths/{}/{method}", template.replace('/', "~1")),
            query: query
                .filter(|parameter| parameter["in"] == "query")
                .filter_map(|parameter| {
                    Some((
                        parameter["name"].as_str()?.to_owned(),
                        parameter["schema"].clone(),
                    ))
                })
                .collect(),
        }
    }
}

fn absolute_references(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(text) if key == "$ref" => *text = format!("{HOME}{text}"),
                    other => absolute_references(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(absolute_references),
        _ => {}
    }
}

/// A pointer as the fragment of a URI: braces and percent signs are not allowed there as they are.
fn escaped(pointer: &str) -> String {
    pointer
        .replace('%', "%25")
        .replace('{', "%7B")
        .replace('}', "%7D")
}

/// Errors of `oneOf` print the whole value; the head is enough to find it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
