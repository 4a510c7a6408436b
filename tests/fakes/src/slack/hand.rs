//! Limits of messages and blocks, which Slack's file does not have. Each sentence is one broken rule.

use std::collections::HashSet;

use serde_json::{Map, Value};

const TEXT: usize = 40_000;
const MARKDOWN: usize = 12_000;
const BLOCKS: usize = 50;
const SECTION: usize = 3000;
/// `msg_blocks_too_long` above this: all texts of the blocks together.
const BLOCKS_TEXT: usize = 13_200;

/// Checks a message's parameters.
pub(crate) fn check_message(parameters: &Map<String, Value>) -> Vec<String> {
    let mut broken = Vec::new();
    let length = |key: &str| parameters.get(key).map_or(0, characters);
    if length("text") > TEXT {
        broken.push(format!(
            "text: {} characters, at most {TEXT} (msg_too_long)",
            length("text")
        ));
    }
    if length("markdown_text") > MARKDOWN {
        broken.push(format!(
            "markdown_text: {} characters, at most {MARKDOWN}",
            length("markdown_text")
        ));
    }
    let has = |key: &str| {
        parameters
            .get(key)
            .is_some_and(|value| !value.is_null() && *value != "")
    };
    if has("markdown_text") && (has("text") || has("blocks")) {
        broken.push(
            "markdown_text: not together with text or blocks (markdown_text_conflict)".into(),
        );
    }
    if let Some(blocks) = parameters.get("blocks") {
        check_blocks(blocks, &mut broken);
    }
    broken
}

fn check_blocks(blocks: &Value, broken: &mut Vec<String>) {
    let Some(blocks) = blocks.as_array() else {
        broken.push("blocks: not a list (invalid_blocks_format)".into());
        return;
    };
    if blocks.len() > BLOCKS {
        broken.push(format!(
            "blocks: {}, at most {BLOCKS} (invalid_blocks)",
            blocks.len()
        ));
    }
    let mut ids = HashSet::new();
    for (at, block) in blocks.iter().enumerate() {
        let mut wrong = |what: String| broken.push(format!("blocks/{at}: {what} (invalid_blocks)"));
        if let Some(id) = block["block_id"].as_str()
            && (id.chars().count() > 255 || !ids.insert(id))
        {
            wrong(format!("block_id {id:?}: longer than 255 or twice"));
        }
        match block["type"].as_str() {
            Some("section") => check_section(block, &mut wrong),
            Some("actions") => check_elements(block, 25, &mut wrong),
            Some("context") => check_elements(block, 10, &mut wrong),
            Some("header") if characters(&block["text"]["text"]) > 150 => {
                wrong("a header above 150 characters".into())
            }
            Some("markdown") if characters(&block["text"]) > MARKDOWN => {
                wrong("markdown above 12000 characters".into())
            }
            Some(
                "header" | "markdown" | "divider" | "rich_text" | "image" | "context_actions"
                | "table",
            ) => {}
            other => wrong(format!("unknown type {other:?}")),
        }
    }
    let all: usize = blocks.iter().map(all_text).sum();
    if all > BLOCKS_TEXT {
        broken.push(format!(
            "blocks: {all} characters together, at most {BLOCKS_TEXT} (msg_blocks_too_long)"
        ));
    }
}

fn check_section(block: &Value, wrong: &mut impl FnMut(String)) {
    let length = characters(&block["text"]["text"]);
    if length > SECTION {
        wrong(format!(
            "section text of {length} characters, at most {SECTION}"
        ));
    }
    if length == 0 && block["fields"].is_null() {
        wrong("a section without text".into());
    }
    if !block["accessory"].is_null() {
        check_element(&block["accessory"], wrong);
    }
}

fn check_elements(block: &Value, most: usize, wrong: &mut impl FnMut(String)) {
    let elements = block["elements"].as_array().map_or(&[][..], Vec::as_slice);
    if elements.is_empty() || elements.len() > most {
        wrong(format!("{} elements, 1 to {most}", elements.len()));
    }
    let mut ids = HashSet::new();
    for element in elements {
        check_element(element, wrong);
        if let Some(id) = element["action_id"].as_str()
            && !ids.insert(id)
        {
            wrong(format!("action_id {id:?} twice in one block"));
        }
    }
}

fn check_element(element: &Value, wrong: &mut impl FnMut(String)) {
    if element["type"] != "button" {
        return;
    }
    if element["text"]["type"] != "plain_text" {
        wrong("a button's text is plain_text".into());
    }
    for (what, length, most) in [
        ("label", characters(&element["text"]["text"]), 75),
        ("action_id", characters(&element["action_id"]), 255),
        ("value", characters(&element["value"]), 2000),
    ] {
        if length > most {
            wrong(format!(
                "a button's {what} of {length} characters, at most {most}"
            ));
        }
    }
}

fn characters(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

fn all_text(node: &Value) -> usize {
    match node {
        Value::Array(items) => items.iter().map(all_text).sum(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| {
                if key == "text" && value.is_string() {
                    characters(value)
                } else {
                    all_text(value)
                }
            })
            .sum(),
        _ => 0,
    }
}
