//! Slack's Swagger 2.0 file of 2021, where it covers a method: parameter names and the shape of successes.
//!
//! Newer methods and parameters are in the fake's own table (`slack/methods.rs`). Error answers are not checked against
//! the file: its lists of error words are out of date.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::{Registry, Validator};
use parking_lot::Mutex;
use serde_json::{Value, json};

const HOME: &str = "https://spec.invalid/slack.json";

/// `specs/slack/slack_web_openapi_v2_subset.json`.
pub(crate) fn slack() -> &'static Swagger {
    static SPEC: LazyLock<Swagger> = LazyLock::new(|| {
        Swagger::read(include_str!(
            "../../specs/slack/slack_web_openapi_v2_subset.json"
        ))
    });
    &SPEC
}

/// Checks the wrapper of an event the fake sends. Slack no longer sends `authed_users`, which the file still requires.
pub(crate) fn check_event(wrapped: &Value) -> Vec<String> {
    static WRAPPER: LazyLock<Validator> = LazyLock::new(|| {
        let text = include_str!("../../specs/slack/slack_common_event_wrapper_schema.json");
        let mut schema: Value =
            serde_json::from_str(text).expect("the schema in the repository is JSON");
        if let Some(required) = schema["required"].as_array_mut() {
            required.retain(|name| name != "authed_users");
        }
        jsonschema::draft7::new(&schema).expect("the schema compiles")
    });
    let errors = WRAPPER.iter_errors(wrapped);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

pub(crate) struct Swagger {
    document: Value,
    registry: Registry<'static>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Swagger {
    fn read(text: &str) -> Self {
        let document: Value =
            serde_json::from_str(text).expect("the spec in the repository is JSON");
        let registry = Registry::new()
            .draft(jsonschema::Draft::Draft4)
            .add(HOME, document.clone())
            .and_then(jsonschema::RegistryBuilder::prepare)
            .expect("the spec refers only to itself");
        Self {
            document,
            registry,
            validators: Mutex::new(HashMap::new()),
        }
    }

    fn operation(&self, method: &str) -> Option<(&str, &Value)> {
        let path = self.document["paths"]
            .get(format!("/{method}"))?
            .as_object()?;
        path.iter()
            .next()
            .map(|(verb, operation)| (verb.as_str(), operation))
    }

    /// Parameters of a method and whether each is required. `None` = the file does not know the method.
    pub(crate) fn parameters(&self, method: &str) -> Option<Vec<(&str, bool)>> {
        let (_, operation) = self.operation(method)?;
        let parameters = operation["parameters"].as_array()?.iter();
        let named = parameters.filter(|parameter| parameter["in"] != "header");
        Some(
            named
                .filter_map(|one| Some((one["name"].as_str()?, one["required"] == true)))
                .collect(),
        )
    }

    /// Checks a success of the fake. Nothing is said about methods the file does not know.
    pub(crate) fn check_success(&self, method: &str, answer: &Value) -> Vec<String> {
        let Some((verb, operation)) = self.operation(method) else {
            return Vec::new();
        };
        if operation.pointer("/responses/200/schema").is_none() {
            return Vec::new();
        }
        let pointer = format!("/paths/~1{method}/{verb}/responses/200/schema");
        let errors = self.validator(&pointer);
        errors
            .iter_errors(answer)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    fn validator(&self, pointer: &str) -> Arc<Validator> {
        if let Some(known) = self.validators.lock().get(pointer) {
            return Arc::clone(known);
        }
        let compiled = jsonschema::draft4::options()
            .with_registry(&self.registry)
            .should_validate_formats(false)
            .build(&json!({ "$ref": format!("{HOME}#{pointer}") }))
            .expect("the spec's schemas compile");
        let compiled = Arc::new(compiled);
        self.validators
            .lock()
            .insert(pointer.to_owned(), Arc::clone(&compiled));
        compiled
    }
}
