use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::responses::Pressed;

fn who() -> Who {
    Who {
        user_id: "UBOT".to_owned(),
        bot_id: "BBOT".to_owned(),
        team_id: "T1".to_owned(),
        ..Who::default()
    }
}

fn event(fields: Value) -> Value {
    let mut event = json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "hi", "ts": "17.000200",
    });
    for (key, value) in fields.as_object().unwrap() {
        event[key] = value.clone();
    }
    json!({ "type": "event_callback", "event_id": "Ev1", "team_id": "T1", "event": event })
}

fn taken(kind: &str, payload: &Value) -> Taken {
    take(kind, &payload.to_string(), &who(), "b-")
}

fn heard(kind: &str, payload: &Value) -> Fresh {
    match taken(kind, payload) {
        Taken::Heard(fresh) => *fresh,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_spoke_where_is_told_apart() {
    let rows = [
        ("in_a_channel", json!({}), "Person false C1"),
        (
            "a_mention_as_a_message",
            json!({ "text": "hey <@UBOT|b>" }),
            "Person true C1",
        ),
        (
            "a_mention",
            json!({ "type": "app_mention", "channel_type": null }),
            "Person true C1",
        ),
        (
            "in_a_thread",
            json!({ "thread_ts": "16.000100" }),
            "Person false C1/16.000100",
        ),
        (
            "the_root_of_a_thread",
            json!({ "thread_ts": "17.000200" }),
            "Person false C1",
        ),
        (
            "direct",
            json!({ "channel": "D1", "channel_type": "im" }),
            "Person true D1",
        ),
        (
            "to_several",
            json!({ "channel": "G1", "channel_type": "mpim" }),
            "Person false G1",
        ),
        (
            "a_file",
            json!({ "subtype": "file_share" }),
            "Person false C1",
        ),
        (
            "shown_in_the_channel_too",
            json!({ "subtype": "thread_broadcast", "thread_ts": "16.1" }),
            "Person false C1/16.1",
        ),
        ("another_bot", json!({ "bot_id": "B2" }), "Bot false C1"),
        (
            "an_old_bot",
            json!({ "bot_id": "B2", "user": null, "subtype": "bot_message" }),
            "Bot false C1",
        ),
    ];
    for (name, fields, want) in rows {
        let fresh = heard("events_api", &event(fields));
        let said = &fresh.heard;
        let line = format!(
            "{:?} {} {}",
            said.speaker.kind, said.called, said.conversation
        );
        assert_eq!(line, want, "{name}");
        assert_eq!(
            said.id.as_str().split_once('/').unwrap().1,
            "17.000200",
            "{name}"
        );
        assert_eq!(fresh.ids.len(), 2, "{name}");
        let address = Address::parse(&said.address).unwrap();
        assert_eq!(conversation(&address.place()), said.conversation, "{name}");
    }
}

#[test]
fn notices_edits_and_our_own_words_are_left_out() {
    let rows = [
        json!({ "subtype": "channel_join" }),
        json!({ "subtype": "message_changed", "hidden": true, "message": {} }),
        json!({ "subtype": "message_deleted", "user": null }),
        json!({ "subtype": "a_subtype_of_next_year" }),
        json!({ "hidden": true }),
        json!({ "user": "UBOT" }),
        json!({ "user": "U9", "bot_id": "BBOT" }),
        json!({ "type": "reaction_added", "item": {} }),
        json!({ "type": "channel_rename", "channel": { "id": "C1" } }),
    ];
    for fields in rows {
        let payload = event(fields.clone());
        assert!(
            matches!(taken("events_api", &payload), Taken::Ignored),
            "{fields}"
        );
    }
    let shortcut = json!({ "type": "shortcut", "user": { "id": "U1" }, "trigger_id": "1" });
    assert!(matches!(taken("interactive", &shortcut), Taken::Ignored));
}

#[test]
fn what_is_not_as_documented_is_counted() {
    let rows = [
        ("events_api", json!(null)),
        ("events_api", json!({ "event_id": "Ev1" })),
        ("events_api", event(json!({ "channel": null }))),
        ("events_api", event(json!({ "user": "U 1" }))),
        ("events_api", event(json!({ "ts": "" }))),
        ("slash_commands", json!({ "command": "/usage" })),
        ("interactive", json!([])),
        ("of_next_year", json!({})),
    ];
    for (kind, payload) in rows {
        assert!(
            matches!(taken(kind, &payload), Taken::Unreadable(_)),
            "{kind} {payload}"
        );
    }
}

#[test]
fn files_come_with_what_a_download_needs() {
    let files = json!([
        { "name": "a.txt", "mimetype": "text/plain", "size": 3, "url_private": "https://files.slack.com/p",
          "url_private_download": "https://files.slack.com/d" },
        { "id": "F2", "mode": "tombstone" },
        { "title": "by title", "url_private": "https://files.slack.com/p" },
        "nonsense",
    ]);
    let fresh = heard(
        "events_api",
        &event(json!({ "files": files, "text": null })),
    );
    let Content::Text { text, files } = fresh.heard.content else {
        panic!("no text");
    };
    assert_eq!(text, "");
    let said: Vec<String> = files
        .iter()
        .map(|file| {
            format!(
                "{} {} {:?} {}",
                file.name, file.size, file.media_type, file.source
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            r#"a.txt 3 Some("text/plain") https://files.slack.com/d"#,
            "by title 0 None https://files.slack.com/p",
            " 0 None ",
        ]
    );
}

fn command(name: &str, text: &str) -> Value {
    json!({
        "command": name, "text": text, "user_id": "U1", "user_name": "anna", "channel_id": "C1", "channel_name": "general",
        "team_id": "T1", "response_url": "https://hooks.slack.com/commands/1", "trigger_id": "13.4.abc",
    })
}

#[test]
fn commands_are_meant_by_any_of_their_names() {
    let rows = [
        ("/usage", "all", "usage", "all"),
        ("/b-usage", "all", "usage", "all"),
        ("/baton", "b-usage all", "usage", "all"),
        ("/baton", "/usage", "usage", ""),
        ("/baton", "", "help", ""),
        ("/model", "a &lt; b", "model", "a < b"),
        ("/b-", "", "b-", ""),
    ];
    for (typed, text, name, args) in rows {
        let fresh = heard("slash_commands", &command(typed, text));
        let want = Content::Command {
            name: name.to_owned(),
            args: args.to_owned(),
        };
        assert_eq!(fresh.heard.content, want, "{typed} {text}");
        assert_eq!(fresh.heard.speaker.name, "anna");
        let (key, response) = fresh.response.unwrap();
        assert_eq!((key.as_str(), response.pressed), ("13.4.abc", None));
        assert!(
            !fresh.heard.address.contains("hooks"),
            "a secret in the address"
        );
    }
}

fn press(ephemeral: bool) -> Value {
    json!({
        "type": "block_actions", "user": { "id": "U1", "username": "anna" }, "team": { "id": "T1" },
        "channel": { "id": "C1" }, "response_url": "https://hooks.slack.com/actions/1", "trigger_id": "9.9.abc",
        "container": { "type": "message", "message_ts": "17.1", "channel_id": "C1", "is_ephemeral": ephemeral },
        "message": { "ts": "17.1", "thread_ts": "16.1", "text": "sure?", "blocks": [{ "type": "actions" }] },
        "actions": [{ "action_id": "baton1:x:1", "value": "kept", "type": "button" }],
    })
}

#[test]
fn a_press_names_its_message_and_what_it_showed() {
    for private in [false, true] {
        let fresh = heard("interactive", &press(private));
        let Content::Press { custom_id } = &fresh.heard.content else {
            panic!("no press");
        };
        assert_eq!(custom_id, "baton1:x:1");
        assert_eq!(fresh.heard.conversation, "C1/16.1");
        let want = match private {
            true => Pressed::Text("kept".to_owned()),
            false => Pressed::Blocks {
                blocks: vec![json!({ "type": "actions" })],
                text: "sure?".to_owned(),
            },
        };
        assert_eq!(fresh.response.unwrap().1.pressed, Some(want));
        let Some(Address::Press {
            message,
            private: seen,
            ..
        }) = Address::parse(&fresh.heard.address)
        else {
            panic!("no press: {}", fresh.heard.address);
        };
        assert_eq!((message.as_str(), seen), ("17.1", private));
    }
}

/// JSON that looks a little like an envelope's payload, and is not.
fn mangled() -> impl Strategy<Value = (&'static str, Value)> {
    let good = prop_oneof![
        Just((
            "events_api",
            event(json!({ "thread_ts": "1.2", "files": [{ "name": "a" }] }))
        )),
        Just(("slash_commands", command("/usage", "x"))),
        Just(("interactive", press(true))),
    ];
    let junk = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([{}])),
        any::<i64>().prop_map(|n| json!(n)),
        "\\PC{0,20}".prop_map(|text| json!(text)),
    ];
    (good, any::<prop::sample::Index>(), junk).prop_map(|((kind, mut value), at, junk)| {
        let mut paths = Vec::new();
        pointers(&value, String::new(), &mut paths);
        let path = at.get(&paths);
        *value.pointer_mut(path).unwrap() = junk;
        (kind, value)
    })
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, inner)| pointers(inner, format!("{at}/{key}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(key, inner)| pointers(inner, format!("{at}/{key}"), found)),
        _ => {}
    }
    found.push(at);
}

proptest! {
    #[test]
    fn a_mangled_payload_is_read_left_out_or_counted((kind, payload) in mangled()) {
        if let Taken::Heard(fresh) = taken(kind, &payload) {
            prop_assert!(Address::parse(&fresh.heard.address).is_some(), "{payload}");
            prop_assert!(!fresh.heard.conversation.is_empty());
        }
    }

    #[test]
    fn any_text_is_read_left_out_or_counted(kind in "(events_api|slash_commands|interactive|x)", text in "\\PC{0,60}") {
        let taken = take(&kind, &text, &who(), "");
        prop_assert!(!matches!(taken, Taken::Heard(_)));
    }
}
