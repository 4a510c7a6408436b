//! Rules the OpenAPI file does not know, each from Discord's documentation.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Call, MAX_FILE};
use crate::discord::mentions;
use crate::discord::world::World;
use crate::spec::Operation;

/// A bot's limit; the file says 4000.
const CONTENT: usize = 2000;
const COMMAND_CHARACTERS: usize = 8000;

/// Returns what is wrong with a request, beyond the file.
pub(super) fn check(world: &World, operation: &Operation, call: &Call) -> Vec<String> {
    let mut broken = Vec::new();
    let body = call.body();
    if operation.template.ends_with("/commands") && call.method != "GET" {
        let commands = match body {
            Value::Array(commands) => commands.iter().collect(),
            one => vec![one],
        };
        check_commands(&commands, &mut broken);
    } else if operation.template.ends_with("/callback") {
        check_message(&body["data"], &mut broken);
    } else {
        check_message(body, &mut broken);
    }
    if !call.files.is_empty() && !call.multipart {
        broken.push("files outside a multipart body".into());
    }
    if let Some((_, file)) = call
        .files
        .iter()
        .find(|(_, file)| file.bytes.len() > MAX_FILE)
    {
        broken.push(format!("file {:?}: larger than 10 MiB", file.name));
    }
    check_reference(world, call, &mut broken);
    broken
}

/// Evens out what Discord accepts and its file does not: numbers as snowflakes in `attachments` (the documentation's own
/// examples), and keys of the answer that clients echo in a command (twilight sends `application_id`).
pub(super) fn as_the_file_wants(operation: &Operation, mut body: Value) -> Value {
    if let Some(data) = body.get_mut("data") {
        number_attachments(data);
    }
    number_attachments(&mut body);
    if operation.template.contains("/commands") {
        let commands = match &mut body {
            Value::Array(commands) => commands.iter_mut().collect(),
            one => vec![one],
        };
        for command in commands.into_iter().filter_map(Value::as_object_mut) {
            command.retain(|key, _| {
                !["application_id", "guild_id", "version"].contains(&key.as_str())
            });
        }
    }
    body
}

fn number_attachments(message: &mut Value) {
    let attachments = message.get_mut("attachments").and_then(Value::as_array_mut);
    for id in attachments
        .into_iter()
        .flatten()
        .filter_map(|file| file.get_mut("id"))
    {
        if id.is_u64() {
            *id = Value::String(id.to_string());
        }
    }
}

fn check_message(message: &Value, broken: &mut Vec<String>) {
    if let Some(text) = message["content"].as_str() {
        let length = text.chars().count();
        if length > CONTENT {
            broken.push(format!(
                "/content: {length} characters, at most {CONTENT} (BASE_TYPE_MAX_LENGTH)"
            ));
        }
    }
    if let Some(wrong) = message
        .get("allowed_mentions")
        .and_then(mentions::contradiction)
    {
        broken.push(wrong);
    }
    let embeds: usize = message["embeds"]
        .as_array()
        .into_iter()
        .flatten()
        .map(embed_characters)
        .sum();
    if embeds > 6000 {
        broken.push(format!(
            "/embeds: {embeds} characters together, at most 6000"
        ));
    }
    check_components(&message["components"], broken);
    if message["enforce_nonce"] == true && message["nonce"].is_null() {
        broken.push("/enforce_nonce: there is no nonce".into());
    }
}

fn check_components(rows: &Value, broken: &mut Vec<String>) {
    let mut ids = HashSet::new();
    let mut count = 0;
    for (at, row) in rows.as_array().into_iter().flatten().enumerate() {
        count += 1;
        let inner = row["components"].as_array().map_or(&[][..], Vec::as_slice);
        count += inner.len();
        if row["type"] == 1 && inner.is_empty() {
            broken.push(format!(
                "/components/{at}: an action row without components"
            ));
        }
        for component in inner {
            if let Some(id) = component["custom_id"].as_str()
                && !ids.insert(id)
            {
                broken.push(format!(
                    "/components/{at}: custom_id {id:?} twice in one message"
                ));
            }
            let is_button = component["type"] == 2;
            let link = component["style"] == 5;
            if is_button && !link && component["custom_id"].is_null() {
                broken.push(format!("/components/{at}: a button without custom_id"));
            }
            if is_button && component["label"].is_null() && component["emoji"].is_null() {
                broken.push(format!("/components/{at}: a button without label or emoji"));
            }
        }
    }
    if rows.as_array().is_some_and(|rows| rows.len() > 5) {
        broken.push("/components: at most 5 rows without the components-v2 flag".into());
    }
    if count > 40 {
        broken.push(format!("/components: {count} in all, at most 40"));
    }
}

fn embed_characters(embed: &Value) -> usize {
    let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    let fields = embed["fields"].as_array().into_iter().flatten();
    length(&embed["title"])
        + length(&embed["description"])
        + length(&embed["footer"]["text"])
        + length(&embed["author"]["name"])
        + fields
            .map(|field| length(&field["name"]) + length(&field["value"]))
            .sum::<usize>()
}

fn check_commands(commands: &[&Value], broken: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for command in commands {
        let name = command["name"].as_str().unwrap_or_default();
        let kind = command["type"].as_u64().unwrap_or(1);
        if !seen.insert((name, kind)) {
            broken.push(format!(
                "command {name:?}: APPLICATION_COMMANDS_DUPLICATE_NAME"
            ));
        }
        if kind == 1 {
            check_name("command", name, broken);
            if command["description"].as_str().is_none_or(str::is_empty) {
                broken.push(format!("command {name:?}: no description"));
            }
        }
        check_options(name, &command["options"], broken);
        let size = characters(command);
        if size > COMMAND_CHARACTERS {
            broken.push(format!(
                "command {name:?}: {size} characters in all, at most {COMMAND_CHARACTERS}"
            ));
        }
    }
}

fn check_options(command: &str, options: &Value, broken: &mut Vec<String>) {
    let mut optional_came = false;
    let mut seen = HashSet::new();
    for option in options.as_array().into_iter().flatten() {
        let name = option["name"].as_str().unwrap_or_default();
        check_name("option", name, broken);
        if !seen.insert(name) {
            broken.push(format!("command {command:?}: option {name:?} twice"));
        }
        let required = option["required"] == true;
        if required && optional_came {
            broken.push(format!(
                "command {command:?}: required option {name:?} after an optional one"
            ));
        }
        optional_came |= !required;
        check_options(command, &option["options"], broken);
    }
}

/// `^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$`, lower case where it exists. Combining marks of the two scripts are
/// left out: our commands are ASCII.
fn check_name(what: &str, name: &str, broken: &mut Vec<String>) {
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[-_'\p{L}\p{N}]{1,32}$").expect("a fixed pattern"));
    if !NAME.is_match(name) || name.to_lowercase() != name {
        broken.push(format!(
            "{what} name {name:?}: APPLICATION_COMMAND_INVALID_NAME"
        ));
    }
}

/// Names, descriptions and values, as the 8000-character rule counts.
fn characters(node: &Value) -> usize {
    let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    let inner = [&node["options"], &node["choices"]];
    length(&node["name"])
        + length(&node["description"])
        + length(&node["value"])
        + inner
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .map(characters)
            .sum::<usize>()
}

/// A reply to a message that is gone is refused unless `fail_if_not_exists` is false.
fn check_reference(world: &World, call: &Call, broken: &mut Vec<String>) {
    let reference = &call.body()["message_reference"];
    let Some(id) = reference["message_id"].as_str() else {
        return;
    };
    let exists = id
        .parse()
        .ok()
        .and_then(|id| world.messages.get(&id))
        .is_some_and(|message| !message.deleted);
    if !exists && reference["fail_if_not_exists"] != false {
        broken.push(format!(
            "/message_reference: unknown message {id} (MESSAGE_REFERENCE_UNKNOWN_MESSAGE)"
        ));
    }
}
