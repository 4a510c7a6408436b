//! Who a text notifies: only unescaped control sequences do, unless `parse` or `link_names` asks for more.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::model::Pings;

/// Returns whom `text` and `blocks` notify. `linked` = `link_names` or `parse=full` was set: bare names count too.
/// Mentions inside code count: escaping must not rely on a code block.
pub(crate) fn pings(text: &str, blocks: &Value, linked: bool) -> Pings {
    let mut found = in_text(text, linked);
    in_blocks(blocks, linked, &mut found);
    found
}

fn in_text(text: &str, linked: bool) -> Pings {
    static CONTROL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"<(!channel|!here|!everyone|@|!subteam\^)([A-Z0-9]*)[^<>]*>")
            .expect("a fixed pattern")
    });
    let mut found = Pings::default();
    for control in CONTROL.captures_iter(text) {
        let id = control[2].to_owned();
        match &control[1] {
            "@" if !found.users.contains(&id) => found.users.push(id),
            "@" => {}
            "!subteam^" => found.groups.push(id),
            _ => found.channel = true,
        }
    }
    if linked {
        found.channel |= ["@channel", "@here", "@everyone"]
            .iter()
            .any(|word| text.contains(word));
    }
    found
}

fn in_blocks(node: &Value, linked: bool, found: &mut Pings) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| in_blocks(item, linked, found)),
        Value::Object(object) => {
            let text = object
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default();
            match object.get("type").and_then(Value::as_str) {
                Some("mrkdwn" | "markdown") => found.merge(in_text(text, linked)),
                Some("broadcast") => found.channel = true,
                Some("user") => {
                    let user = object
                        .get("user_id")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned();
                    found.merge(Pings {
                        users: vec![user],
                        ..Pings::default()
                    });
                }
                _ => {}
            }
            object
                .values()
                .for_each(|inner| in_blocks(inner, linked, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_unescaped_sequences_notify() {
        let section =
            json!([{ "type": "section", "text": { "type": "mrkdwn", "text": "<!here>" } }]);
        let plain =
            json!([{ "type": "section", "text": { "type": "plain_text", "text": "<!here>" } }]);
        let rows = [
            ("broadcast", "hi <!channel>", json!([]), false, true, 0),
            (
                "broadcast_with_label",
                "<!here|here>",
                json!([]),
                false,
                true,
                0,
            ),
            (
                "escaped",
                "&lt;!channel&gt; &lt;@U1&gt;",
                json!([]),
                false,
                false,
                0,
            ),
            ("person", "<@U1> <@U1|anna>", json!([]), false, false, 1),
            ("bare_word", "@channel", json!([]), false, false, 0),
            (
                "bare_word_with_link_names",
                "@channel",
                json!([]),
                true,
                true,
                0,
            ),
            ("in_a_block", "", section, false, true, 0),
            ("in_a_plain_block", "", plain, false, false, 0),
        ];
        for (name, text, blocks, linked, channel, users) in rows {
            let found = pings(text, &blocks, linked);
            assert_eq!(
                (found.channel, found.users.len()),
                (channel, users),
                "{name}"
            );
        }
    }
}
