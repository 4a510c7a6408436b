//! Messages out and files in: what each answer of Discord becomes, and what the outbox makes of it.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::{Button, ReplyOp};
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{ChannelId, Fault, Said, permission};
use platform_discord::Discord;
use platforms::Platform;
use platforms::adapter::{Adapter, Content, File};
use platforms::board::ToolsShown;
use platforms::chat::Surface;
use platforms::wire::{Body, MessageId, OutFile, Place, Scope, Wire, WireError};
use serde_json::json;

use crate::bot::{Bot, install_tls, settings, target};

const POST: &str = "/channels/{channel_id}/messages";
const EDIT: &str = "/channels/{channel_id}/messages/{message_id}";

fn discord(fake: &FakeDiscord) -> Discord {
    install_tls();
    Discord::new(settings(fake)).expect("usable settings")
}

fn place(channel: ChannelId) -> Place {
    Place {
        channel: channel.to_string(),
        thread: None,
    }
}

#[tokio::test]
async fn a_message_is_sent_edited_and_deleted_by_one_request_each() {
    let fake = FakeDiscord::start().await;
    let (discord, place) = (discord(&fake), place(fake.general()));
    let body = Body {
        text: "@everyone".to_owned(),
        buttons: vec![Button {
            label: "Undo".to_owned(),
            custom_id: "x".to_owned(),
        }],
        file: Some(Arc::new(OutFile {
            name: "answer.md".to_owned(),
            bytes: b"# all of it".to_vec(),
        })),
    };
    let id = discord.send(&place, &body, "nonce-1").await.unwrap();
    let again = discord.send(&place, &body, "nonce-1").await.unwrap();
    assert_eq!(id, again, "the nonce finds the message");
    discord
        .edit(&place, &id, &Body::text("@here"))
        .await
        .unwrap();
    let shown = &fake.from_bot(fake.general())[0];
    assert_eq!((shown.text.as_str(), shown.buttons().len()), ("@here", 0));
    assert_eq!(shown.files[0].bytes, b"# all of it");
    assert!(shown.pings.is_empty() && shown.allowed_mentions == Some(json!({ "parse": [] })));
    discord.delete(&place, &id).await.unwrap();
    assert!(fake.from_bot(fake.general()).is_empty());
    assert_eq!(fake.requests().len(), 4);
    fake.assert_clean();
}

#[tokio::test]
async fn limits_are_told_and_nothing_is_tried_twice() {
    let fake = FakeDiscord::start().await;
    let (discord, place) = (discord(&fake), place(fake.general()));
    let wait = Duration::from_millis(1_700);
    let rows = [
        (
            Fault::BucketLimit { retry_after: wait },
            Some(wait),
            Scope::Channel,
        ),
        (
            Fault::GlobalLimit { retry_after: wait },
            Some(wait),
            Scope::Everything,
        ),
        (Fault::BareLimit, None, Scope::Everything),
    ];
    for (fault, after, scope) in rows {
        fake.plan("POST", POST, fault);
        let sent = discord.send(&place, &Body::text("a"), "n").await;
        assert_eq!(sent, Err(WireError::RateLimited { after, scope }));
    }
    assert_eq!(fake.requests().len(), 3);
    fake.assert_clean();
}

#[tokio::test]
async fn every_refusal_is_told_from_the_others() {
    let fake = FakeDiscord::start().await;
    let (discord, general) = (discord(&fake), place(fake.general()));
    let body = Body::text("a");
    for (fault, want) in [
        (Fault::ServerError, "unknown whether delivered"),
        (Fault::Cut, "unknown whether delivered"),
        (Fault::InvalidForm, "the message was refused"),
    ] {
        fake.plan("POST", POST, fault);
        let sent = discord.send(&general, &body, "n").await;
        assert!(sent.unwrap_err().to_string().starts_with(want));
    }
    fake.plan("POST", POST, Fault::Lost);
    let lost = discord.send(&general, &body, "lost").await;
    assert!(matches!(lost, Err(WireError::Uncertain(_))));
    let id = discord.send(&general, &body, "lost").await.unwrap();
    assert_eq!(
        fake.from_bot(fake.general()).len(),
        1,
        "sent again, shown once"
    );

    let too_long = json!({ "code": 50035, "message": "Invalid Form Body", "errors": {
        "content": { "_errors": [{ "code": "BASE_TYPE_MAX_LENGTH", "message": "too long" }] } } });
    let fault = Fault::Answer {
        status: 400,
        body: too_long,
    };
    fake.plan("PATCH", EDIT, fault);
    let edited = discord.edit(&general, &id, &body).await;
    assert_eq!(edited, Err(WireError::TooLong));
    let gone = MessageId("1".to_owned());
    assert_eq!(
        discord.edit(&general, &gone, &body).await,
        Err(WireError::MessageGone)
    );
    assert_eq!(
        discord.delete(&general, &gone).await,
        Err(WireError::MessageGone)
    );

    let thread = fake.thread(fake.say(fake.general(), fake.person("anna"), "t"), "t");
    fake.archive(thread);
    let closed = fake.channel("closed");
    fake.deny(closed, permission::SEND_MESSAGES);
    let unseen = fake.channel("unseen");
    fake.deny(unseen, permission::VIEW_CHANNEL);
    let places = [thread, closed, unseen, ChannelId(5)].map(place);
    for place in places {
        let sent = discord.send(&place, &body, "p").await;
        assert!(
            matches!(sent, Err(WireError::PlaceGone(_))),
            "{place:?}: {sent:?}"
        );
    }
    fake.assert_clean();
}

#[tokio::test]
async fn an_old_message_is_edited_no_more() {
    let fake = FakeDiscord::builder().limit_speed(100.0).start().await;
    let (discord, general) = (discord(&fake), place(fake.general()));
    let id = discord.send(&general, &Body::text("0"), "n").await.unwrap();
    fake.clock().advance(jiff_hours(2));
    let mut edited = Ok(());
    for n in 0..10 {
        edited = discord
            .edit(&general, &id, &Body::text(n.to_string()))
            .await;
        if edited.is_err() {
            break;
        }
    }
    assert_eq!(edited, Err(WireError::EditTooOld));
    fake.assert_clean();
}

fn jiff_hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

fn answer(text: &str, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: String::new(),
        replaced: false,
        done,
    }
}

/// A long answer grows through limits and lost answers; the final text stands, once, and nobody was pinged on the way.
#[tokio::test]
async fn a_stream_survives_its_limits() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.say(fake.general(), anna, "go");
    let heard = bot.hear().await;
    let second = Duration::from_secs(1);
    fake.plan("POST", POST, Fault::Lost);
    fake.plan(
        "PATCH",
        EDIT,
        Fault::BucketLimit {
            retry_after: second,
        },
    );
    fake.plan(
        "PATCH",
        EDIT,
        Fault::GlobalLimit {
            retry_after: second,
        },
    );
    let (to, turn) = (target(&heard), TurnId::new("t"));
    let mut text = String::new();
    for n in 0..60 {
        text.push_str(&format!("line {n} for @everyone\n"));
        bot.chat
            .deliver(&to, Some(&turn), &answer(&text, false))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(80)).await;
    }
    text.push_str("the end");
    bot.chat
        .deliver(&to, Some(&turn), &answer(&text, true))
        .await
        .unwrap();
    bot.chat.drained().await;
    let shown = fake.from_bot(fake.general());
    assert_eq!(shown.len(), 1);
    assert!(shown[0].text.ends_with("the end") && shown[0].text.contains("line 59 for"));
    assert!(shown[0].pings.is_empty());
    let written = |method, template| fake.requests_to(method, template);
    for request in written("POST", POST).iter().chain(&written("PATCH", EDIT)) {
        assert_eq!(request.body["allowed_mentions"], json!({ "parse": [] }));
    }
    let edits = written("PATCH", EDIT).len();
    assert!((3..=9).contains(&edits), "{edits} edits");
    fake.assert_clean();
}

#[tokio::test]
async fn files_are_fetched_up_to_their_bound_and_without_a_login() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let said = Said {
        text: "look".into(),
        files: vec![("notes.txt".into(), "text/plain".into(), b"mine".to_vec())],
        ..Default::default()
    };
    fake.say(fake.general(), anna, said);
    let heard = bot.hear().await;
    let Content::Text { files, .. } = &heard.content else {
        panic!("{heard:?}");
    };
    let file = &files[0];
    assert_eq!(
        (file.name.as_str(), file.size, file.media_type.as_deref()),
        ("notes.txt", 4, Some("text/plain"))
    );
    assert_eq!(bot.discord.fetch(file, 4).await.unwrap(), b"mine");
    assert_eq!(bot.discord.fetch(file, 3).await, Err(WireError::TooLong));
    let gone = File {
        source: format!("{}/attachments/1/2/x.txt", fake.base()),
        ..file.clone()
    };
    let elsewhere = File {
        source: "http://127.0.0.1:1/attachments/1/2/x.txt".to_owned(),
        ..file.clone()
    };
    for file in [gone, elsewhere] {
        let fetched = bot.discord.fetch(&file, 10).await;
        assert!(matches!(fetched, Err(WireError::Refused(_))), "{fetched:?}");
    }
    fake.assert_clean();
}

#[tokio::test]
async fn tools_are_shown_in_direct_messages_and_where_the_settings_say() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.say(fake.dm(anna), anna, "hi");
    let heard = bot.hear().await;
    let direct = bot.discord.place(&heard.address).unwrap();
    assert_eq!(bot.discord.tools_shown(&direct), ToolsShown::Yes);
    let shared = place(fake.general());
    assert_eq!(bot.discord.tools_shown(&shared), ToolsShown::No);
    let mut told = settings(&fake);
    told.tools_in_channels = true;
    let told = Discord::new(told).unwrap();
    assert_eq!(told.tools_shown(&shared), ToolsShown::Yes);
    fake.assert_clean();
}
