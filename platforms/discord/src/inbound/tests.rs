use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn me() -> Me {
    Me {
        user: 9,
        application: 8,
        name: "baton".to_owned(),
    }
}

fn told(changes: &Value) -> Message {
    let mut message = json!({
        "id": "70", "channel_id": "50", "guild_id": "10", "type": 0, "content": "hi",
        "author": { "id": "1", "username": "anna", "global_name": "Anna", "bot": false },
        "member": { "nick": null, "roles": ["3"] },
    });
    for (key, value) in changes.as_object().unwrap() {
        message[key] = value.clone();
    }
    serde_json::from_value(message).unwrap()
}

fn heard(changes: &Value) -> Option<Heard> {
    message(&told(changes), &me(), None)
}

fn text(heard: &Heard) -> &str {
    match &heard.content {
        Content::Text { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_mention_it_begins_with_is_no_part_of_the_text() {
    let rows = [
        ("hello", "hello", false),
        ("<@9> hello", "hello", true),
        ("  <@!9>, hello", "hello", true),
        ("<@9>: hello <@9>", "hello <@9>", true),
        ("hello <@9>", "hello <@9>", true),
        ("<@90> hello", "<@90> hello", false),
        ("<@9>", "", true),
        ("<@&9> hello", "<@&9> hello", false),
    ];
    for (said, want, called) in rows {
        let heard = heard(&json!({ "content": said })).unwrap();
        assert_eq!((text(&heard), heard.called), (want, called), "{said}");
    }
}

#[test]
fn who_is_called_and_who_speaks() {
    let reply = |to: &str| json!({ "type": 19, "referenced_message": { "author": { "id": to } } });
    assert!(heard(&reply("9")).unwrap().called);
    assert!(!heard(&reply("2")).unwrap().called);
    assert!(
        !heard(&json!({ "type": 19, "referenced_message": null }))
            .unwrap()
            .called
    );
    let direct = heard(&json!({ "guild_id": null })).unwrap();
    assert!(direct.called && matches!(direct.spot, Spot::Direct { .. }));
    assert_eq!(direct.address, "direct:50");
    let person = heard(&json!({})).unwrap();
    assert_eq!(
        (
            person.speaker.name.as_str(),
            person.speaker.roles.as_slice()
        ),
        ("Anna", ["3".to_owned()].as_slice())
    );
    assert_eq!(person.address, "channel:50");
    let kinds = [
        (json!({}), SpeakerKind::Person),
        (
            json!({ "author": { "id": "2", "username": "b", "bot": true } }),
            SpeakerKind::Bot,
        ),
        (json!({ "webhook_id": "4" }), SpeakerKind::Bot),
        (
            json!({ "author": { "id": "9", "username": "b", "bot": true }, "type": 20, "webhook_id": "8" }),
            SpeakerKind::Ourselves,
        ),
    ];
    for (changes, kind) in kinds {
        assert_eq!(heard(&changes).unwrap().speaker.kind, kind, "{changes}");
    }
}

#[test]
fn what_nobody_wrote_is_not_heard() {
    for kind in [1, 6, 7, 18, 20, 21, 23, 24, 46] {
        assert_eq!(heard(&json!({ "type": kind })), None, "{kind}");
    }
    assert_eq!(heard(&json!({ "content": "" })), None);
    assert_eq!(heard(&json!({ "channel_id": "general" })), None);
    let file = json!({ "content": "", "attachments": [
        { "id": "1", "filename": "a.txt", "size": 5, "url": "https://cdn.discordapp.com/a", "content_type": "text/plain" }
    ]});
    let heard = heard(&file).unwrap();
    assert!(
        matches!(&heard.content, Content::Text { files, .. } if files[0].name == "a.txt" && files[0].size == 5)
    );
}

fn asked(changes: &Value) -> Interaction {
    let mut asked = json!({
        "id": "70", "token": "secret", "type": 2, "channel_id": "50", "guild_id": "10",
        "data": { "name": "b-model", "options": [
            { "name": "other", "value": "no" }, { "name": "argument", "value": " claude/opus " }
        ]},
        "member": { "user": { "id": "1", "username": "anna" }, "roles": [] },
    });
    for (key, value) in changes.as_object().unwrap() {
        asked[key] = value.clone();
    }
    serde_json::from_value(asked).unwrap()
}

#[test]
fn a_command_keeps_its_argument_and_loses_its_prefix_and_its_token() {
    let heard = interaction(&asked(&json!({})), &me(), Some("40"), "b-").unwrap();
    let command = Content::Command {
        name: "model".to_owned(),
        args: " claude/opus ".to_owned(),
    };
    assert_eq!(
        (&heard.content, heard.address.as_str()),
        (&command, "command:70@channel:50")
    );
    let parent = Spot::Channel {
        guild: Some("10".to_owned()),
        channel: "50".to_owned(),
        parent: Some("40".to_owned()),
    };
    assert_eq!(heard.spot, parent);
    assert!(!format!("{heard:?}").contains("secret"));
    for nothing in [
        json!({ "type": 4 }),
        json!({ "type": 5 }),
        json!({ "data": null }),
        json!({ "member": null }),
    ] {
        assert_eq!(
            interaction(&asked(&nothing), &me(), None, ""),
            None,
            "{nothing}"
        );
    }
}

#[test]
fn a_press_names_its_message() {
    let press = json!({ "type": 3, "data": { "custom_id": "x" }, "message": { "id": "60" }, "guild_id": null });
    let heard = interaction(&asked(&press), &me(), None, "").unwrap();
    let custom_id = "x".to_owned();
    assert_eq!(heard.content, Content::Press { custom_id });
    assert_eq!(heard.address, "press:70:60@direct:50");
    let unknown = json!({ "type": 3, "data": { "custom_id": "x" } });
    assert_eq!(interaction(&asked(&unknown), &me(), None, ""), None);
}

proptest! {
    /// Whatever stands in a message: what is heard has an address that comes back, and no mention at its beginning.
    #[test]
    fn any_message_is_heard_or_passed(
        content in "(<@!?9>|[,: ]|[a-z<@>]|\\PC){0,12}",
        ids in prop::array::uniform3("[0-9]{0,21}|[a-z]{3}"),
        kind in 0_u8..50,
        direct in any::<bool>(),
    ) {
        let [id, channel, author] = ids;
        let guild = if direct { Value::Null } else { json!("10") };
        let changes = json!({
            "id": id, "channel_id": channel, "type": kind, "content": content, "guild_id": guild,
            "author": { "id": author, "username": "u" },
        });
        if let Some(heard) = heard(&changes) {
            let address = Address::decode(&heard.address).expect("an address of ours");
            prop_assert_eq!(address.channel.to_string(), channel.trim_start_matches('0'));
            prop_assert_eq!(address.direct, direct);
            let began = content.trim_start();
            let named = began.starts_with("<@9>") || began.starts_with("<@!9>");
            prop_assert!(!named || (heard.called && text(&heard).len() < began.len()));
        }
    }

    /// Events as bytes that came from anywhere are read or refused, never a panic.
    #[test]
    fn any_event_is_read_or_refused(name in "READY|MESSAGE_CREATE|INTERACTION_CREATE|GUILD_CREATE|CHANNEL_DELETE|[A-Z_]{1,9}", data in "\\PC{0,60}") {
        let _ = crate::event::Event::read(&name, &data);
    }
}
