//! Files in and out.

use std::sync::Arc;

use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{Fault, Said};
use platforms::adapter::{Adapter, Content, File};
use platforms::wire::{Body, OutFile, Place, Wire, WireError};

use crate::support::{Bot, answer, settings};

async fn one_file(fake: &FakeSlack, bot: &mut Bot, bytes: &[u8]) -> File {
    let said = Said {
        text: "look".to_owned(),
        files: vec![(
            "notes.txt".to_owned(),
            "text/plain".to_owned(),
            bytes.to_vec(),
        )],
        ..Said::default()
    };
    fake.say(&fake.general(), &fake.person("anna"), said);
    match bot.hear().await.content {
        Content::Text { mut files, .. } => files.remove(0),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_comes_with_the_token_and_within_its_bound() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let file = one_file(&fake, &mut bot, b"some notes").await;
    assert_eq!((file.name.as_str(), file.size), ("notes.txt", 10));
    assert_eq!(bot.slack.fetch(&file, 10).await.unwrap(), b"some notes");
    assert_eq!(bot.slack.fetch(&file, 9).await, Err(WireError::TooLong));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn the_login_page_instead_of_a_file_names_the_missing_scope() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let file = one_file(&fake, &mut bot, b"some notes").await;
    // Another token than the one that may: Slack answers its login page with 200.
    let mut other = settings(&fake);
    other.bot_token = "xoxb-another".into();
    let other = platform_slack::Slack::new(other).unwrap();
    let refused = other.fetch(&file, 10).await.unwrap_err();
    insta::assert_snapshot!(refused, @"the message was refused: notes.txt: Slack showed its login page instead of the file: the scope files:read is missing; add it under OAuth & Permissions and reinstall the app");
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn the_token_goes_to_slacks_hosts_alone() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let mut file = one_file(&fake, &mut bot, b"some notes").await;
    // A host that would fail the test if it were dialled: nothing may be.
    let elsewhere = FakeSlack::start().await;
    for source in [
        file.source.replace(
            &fake.api().replace("/api", ""),
            &elsewhere.api().replace("/api", ""),
        ),
        "http://files.slack.com/a".to_owned(),
        "https://files.slack.com.example.org/a".to_owned(),
        "https://notslack.com/a".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ] {
        file.source = source;
        let refused = bot.slack.fetch(&file, 10).await.unwrap_err();
        assert!(matches!(refused, WireError::Refused(_)), "{refused}");
    }
    assert!(elsewhere.requests().is_empty());
    bot.stop().await.unwrap();
    fake.assert_clean();
    elsewhere.assert_clean();
}

#[tokio::test]
async fn a_long_answer_ends_as_a_file_in_its_thread() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let root = fake.say(&general, &anna, "root");
    bot.hear().await;
    let said = Said {
        text: "and now?".to_owned(),
        thread_ts: Some(root.ts.clone()),
        ..Said::default()
    };
    fake.say(&general, &anna, said);
    let heard = bot.hear().await;
    let long = "a line of the long answer\n".repeat(4_000);
    bot.deliver(&heard, Some("t"), answer(&long, true)).await;
    let shown = fake.wait_for("the file", |fake| {
        let shown = fake.from_bot(&general);
        shown.into_iter().find(|one| !one.files.is_empty())
    });
    let shown = shown.await;
    assert_eq!(shown.files[0].bytes, long.as_bytes());
    assert_eq!(shown.thread_ts, Some(root.ts));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_file_that_fails_on_its_way_is_not_shown_twice() {
    let fake = FakeSlack::start().await;
    let bot = Bot::start(&fake).await;
    let place = Place {
        channel: fake.general(),
        thread: None,
    };
    let file = OutFile {
        name: "answer.md".to_owned(),
        bytes: b"bytes".to_vec(),
    };
    let body = Body {
        file: Some(Arc::new(file)),
        ..Body::text("the answer")
    };
    fake.plan("files.getUploadURLExternal", Fault::ServerError);
    let failed = bot.slack.send(&place, &body, "n1").await.unwrap_err();
    assert!(matches!(failed, WireError::NotDelivered(_)), "{failed}");
    fake.plan("files.completeUploadExternal", Fault::Lost);
    let failed = bot.slack.send(&place, &body, "n1").await.unwrap_err();
    assert!(matches!(failed, WireError::Uncertain(_)), "{failed}");
    assert!(bot.slack.find(&place, "n1").await.unwrap().is_some());
    assert_eq!(bot.slack.find(&place, "n2").await.unwrap(), None);
    bot.stop().await.unwrap();
    fake.assert_clean();
}
