//! Mentions, threads, direct messages, commands and buttons, there and back.

use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, Button, ReplyOp};
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::Callback;
use platforms::Platform;
use platforms::adapter::{Content, SpeakerKind, Spot};
use serde_json::json;

use crate::bot::{Bot, target, text_of};

fn answer(text: &str, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: String::new(),
        replaced: false,
        done,
    }
}

#[tokio::test]
async fn a_mention_is_answered_once_and_pings_nobody() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.say(
        fake.general(),
        anna,
        format!("<@{}> hello", fake.bot()).as_str(),
    );
    let heard = bot.hear().await;
    assert_eq!((text_of(&heard), heard.called), ("hello", true));
    assert_eq!(heard.speaker.id, anna.to_string());
    assert_eq!(heard.speaker.kind, SpeakerKind::Person);
    assert_eq!(heard.conversation, fake.general().to_string());
    let turn = TurnId::new("t1");
    bot.chat.working(&heard.address);
    fake.wait_for("typing", |fake| {
        fake.typing()
            .iter()
            .any(|(channel, _)| *channel == fake.general())
            .then_some(())
    })
    .await;
    let says = answer(&format!("hello @everyone and <@{anna}>"), true);
    bot.chat
        .deliver(&target(&heard), Some(&turn), &says)
        .await
        .unwrap();
    let shown = fake
        .wait_for_text(fake.general(), |text| text.contains("hello"))
        .await;
    assert!(shown.pings.is_empty());
    assert_eq!(shown.allowed_mentions, Some(json!({ "parse": [] })));
    assert_eq!(fake.from_bot(fake.general()).len(), 1);
    assert_eq!(bot.hear().await.speaker.kind, SpeakerKind::Ourselves);
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_private_command_is_acknowledged_at_once_and_answered_to_its_asker() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let asked = fake
        .slash(
            fake.general(),
            anna,
            "model",
            &[("argument", json!("claude/opus"))],
        )
        .unwrap();
    let ack = fake.wait_for_ack(&asked).await;
    assert_eq!((ack.kind, ack.ephemeral), (Callback::DeferredMessage, true));
    assert!(ack.after < Duration::from_secs(1), "{:?}", ack.after);
    let heard = bot.hear().await;
    let command = Content::Command {
        name: "model".to_owned(),
        args: "claude/opus".to_owned(),
    };
    assert_eq!((&heard.content, heard.called), (&command, true));
    let long = "line of the answer\n".repeat(250);
    let op = ReplyOp::Reply {
        text: long.clone(),
        audience: Audience::Asker,
        buttons: vec![Button {
            label: "Undo".to_owned(),
            custom_id: "baton1:undo-model:0123456789abcdef".to_owned(),
        }],
    };
    bot.deliver(&heard, op).await;
    let first = fake.wait_for_answer(&asked).await;
    let more = fake.followups(&asked);
    assert!(
        !more.is_empty()
            && more
                .iter()
                .chain([&first])
                .all(|one| one.only_for == Some(anna))
    );
    let whole: String = [&first]
        .into_iter()
        .chain(&more)
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(whole.matches("line of the answer").count(), 250);
    assert!(fake.from_bot(fake.general()).is_empty());

    let last = more.last().unwrap();
    assert_eq!(last.buttons().len(), 1);
    let pressed = fake
        .click(anna, last.id, "baton1:undo-model:0123456789abcdef")
        .unwrap();
    let ack = fake.wait_for_ack(&pressed).await;
    assert_eq!(ack.kind, Callback::DeferredUpdate);
    let heard = bot.hear().await;
    assert!(
        matches!(&heard.content, Content::Press { custom_id } if custom_id.starts_with("baton1:undo-model"))
    );
    let text = Some("undone".to_owned());
    bot.deliver(&heard, ReplyOp::Settle { text }).await;
    let after = fake.message(last.id).unwrap();
    assert_eq!((after.text.as_str(), after.buttons().len()), ("undone", 0));
    bot.reply(&heard, "said to you", Audience::Asker).await;
    assert_eq!(fake.followups(&pressed)[0].only_for, Some(anna));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_public_command_is_answered_to_all() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let asked = fake.slash(fake.general(), anna, "new", &[]).unwrap();
    assert!(!fake.wait_for_ack(&asked).await.ephemeral);
    let heard = bot.hear().await;
    bot.reply(&heard, "A new conversation.", Audience::Everyone)
        .await;
    let shown = fake.wait_for_answer(&asked).await;
    assert_eq!(
        (shown.text.as_str(), shown.only_for),
        ("A new conversation.", None)
    );
    assert!(fake.followups(&asked).is_empty());
    fake.assert_clean();
}

#[tokio::test]
async fn threads_are_apart_and_know_their_channel() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let early = fake.thread(
        fake.say(fake.general(), anna, "before the bot came"),
        "early",
    );
    let mut bot = Bot::start(&fake).await;
    let late = fake.thread(fake.say(fake.general(), anna, "while it is here"), "late");
    assert_eq!(text_of(&bot.hear().await), "while it is here");
    for thread in [early, late] {
        fake.say(thread, anna, "in the thread");
        let heard = bot.hear().await;
        let spot = Spot::Channel {
            guild: Some(fake.guild().to_string()),
            channel: thread.to_string(),
            parent: Some(fake.general().to_string()),
        };
        assert_eq!((&heard.spot, heard.called), (&spot, false));
        assert_eq!(heard.conversation, thread.to_string());
        let turn = TurnId::new(thread.to_string());
        bot.chat
            .deliver(&target(&heard), Some(&turn), &answer("here", true))
            .await
            .unwrap();
        fake.wait_for_text(thread, |text| text == "here").await;
        assert_eq!(bot.hear().await.speaker.kind, SpeakerKind::Ourselves);
    }
    assert!(fake.from_bot(fake.general()).is_empty());
    let looked_up = fake.requests_to("GET", "/channels/{channel_id}");
    assert!(looked_up.is_empty(), "the gateway told of both threads");
    fake.assert_clean();
}
