//! Answers of commands and presses where time, restarts or Discord are in the way. What is for one person is seen by
//! nobody else, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::message::{Audience, Button, ReplyOp};
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{Asked, Fault, UserId};
use platform_discord::Discord;
use platforms::Platform;
use platforms::adapter::{Adapter, Heard};
use platforms::chat::Surface;
use platforms::wire::Body;
use serde_json::json;

use crate::bot::{Bot, reply, settings, target};

const CALLBACK: &str = "/interactions/{interaction_id}/{interaction_token}/callback";
const ORIGINAL: &str = "/webhooks/{webhook_id}/{webhook_token}/messages/@original";
const FOLLOW_UP: &str = "/webhooks/{webhook_id}/{webhook_token}";

async fn asked(fake: &FakeDiscord, bot: &mut Bot, by: UserId, command: &str) -> (Asked, Heard) {
    let asked = fake.slash(fake.general(), by, command, &[]).unwrap();
    fake.wait_for_ack(&asked).await;
    (asked, bot.hear().await)
}

fn public(fake: &FakeDiscord) -> Vec<String> {
    let shown = fake.from_bot(fake.general()).into_iter();
    shown.map(|message| message.text).collect()
}

#[tokio::test]
async fn after_fifteen_minutes_the_channel_is_told_and_never_the_secret() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let (_, private) = asked(&fake, &mut bot, anna, "status").await;
    let (_, open) = asked(&fake, &mut bot, anna, "new").await;
    fake.clock().advance(Duration::from_secs(16 * 60));
    let late = bot
        .chat
        .deliver(&target(&private), None, &reply("secret", Audience::Asker))
        .await;
    assert!(late.is_err());
    bot.reply(&open, "A new conversation.", Audience::Everyone)
        .await;
    let shown = public(&fake);
    assert_eq!(
        shown
            .iter()
            .filter(|text| text.contains("too late"))
            .count(),
        1
    );
    assert!(shown.contains(&"A new conversation.".to_owned()));
    let everything = fake.history(fake.general());
    assert!(
        !everything
            .iter()
            .any(|message| message.text.contains("secret"))
    );
    fake.assert_clean();
}

#[tokio::test]
async fn in_a_direct_conversation_late_answers_are_plain_messages() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let sent = fake.slash(fake.dm(anna), anna, "status", &[]).unwrap();
    fake.wait_for_ack(&sent).await;
    let heard = bot.hear().await;
    fake.clock().advance(Duration::from_secs(16 * 60));
    bot.reply(&heard, "only you read this", Audience::Asker)
        .await;
    let shown = fake.from_bot(fake.dm(anna));
    assert!(
        shown
            .iter()
            .any(|message| message.text == "only you read this")
    );
    fake.assert_clean();
}

#[tokio::test]
async fn who_sees_it_is_what_the_answer_says_whatever_was_deferred() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let (sent, heard) = asked(&fake, &mut bot, anna, "new").await;
    bot.reply(&heard, "for you alone", Audience::Asker).await;
    let followed = fake.followups(&sent);
    assert_eq!(
        (followed[0].text.as_str(), followed[0].only_for),
        ("for you alone", Some(anna))
    );
    let (sent, heard) = asked(&fake, &mut bot, anna, "status").await;
    bot.reply(&heard, "for all", Audience::Everyone).await;
    assert_eq!(fake.followups(&sent)[0].only_for, None);
    assert_eq!(public(&fake), ["for all"]);
    fake.assert_clean();
}

#[tokio::test]
async fn an_answer_without_text_ends_the_thinking() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let (sent, heard) = asked(&fake, &mut bot, anna, "new").await;
    bot.reply(&heard, " \n ", Audience::Everyone).await;
    let original = fake.interaction(&sent).original.unwrap();
    assert!(fake.message(original).unwrap().deleted);
    fake.assert_clean();
}

#[tokio::test]
async fn an_acknowledgement_survives_what_it_can() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    for fault in [Fault::ServerError, Fault::Lost, Fault::Cut] {
        fake.plan("POST", CALLBACK, fault.clone());
        let (sent, heard) = asked(&fake, &mut bot, anna, "status").await;
        bot.reply(&heard, "answer", Audience::Asker).await;
        let shown = fake.wait_for_answer(&sent).await;
        assert_eq!(shown.only_for, Some(anna), "{fault:?}");
    }
    assert_eq!(bot.discord.health().gaps, 0);
    fake.assert_clean();
}

/// A command that arrives when Discord no longer waits for it is lost: the person was told so, and it is counted.
#[tokio::test]
async fn a_command_that_comes_too_late_is_not_run() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.reset_sockets();
    let sent = fake.slash(fake.general(), anna, "stop", &[]).unwrap();
    fake.clock().advance(Duration::from_secs(5));
    fake.wait_for("the refused acknowledgement", |fake| {
        let tried = fake.requests_to("POST", CALLBACK);
        tried
            .iter()
            .any(|request| request.status == 404)
            .then_some(())
    })
    .await;
    fake.say(fake.general(), anna, "afterwards");
    assert_eq!(bot.hear_text().await, "afterwards");
    assert!(fake.interaction(&sent).first.is_none());
    assert_eq!(bot.discord.health().gaps, 1);
    fake.assert_clean();
}

#[tokio::test]
async fn an_answer_in_parts_keeps_its_order_through_limits() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let (sent, heard) = asked(&fake, &mut bot, anna, "status").await;
    let wait = Duration::from_millis(400);
    fake.plan("PATCH", ORIGINAL, Fault::BucketLimit { retry_after: wait });
    fake.plan("POST", FOLLOW_UP, Fault::BucketLimit { retry_after: wait });
    let bodies: Vec<Body> = (0..8).map(|n| Body::text(format!("part {n}"))).collect();
    bot.discord
        .reply(&heard.address, bodies, Audience::Asker)
        .await
        .unwrap();
    let first = fake.wait_for_answer(&sent).await;
    let rest = fake.followups(&sent);
    let texts: Vec<&str> = [&first]
        .into_iter()
        .chain(&rest)
        .map(|one| one.text.as_str())
        .collect();
    let want: Vec<String> = (0..8).map(|n| format!("part {n}")).collect();
    assert_eq!(texts, want);
    fake.assert_clean();
}

/// A message is not a command: what is private is not said in a channel, and in a direct conversation simply said.
#[tokio::test]
async fn a_private_answer_to_a_message() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.say(fake.general(), anna, "/usage");
    let heard = bot.hear().await;
    let said = bot
        .chat
        .deliver(&target(&heard), None, &reply("secret", Audience::Asker))
        .await;
    assert!(said.is_err());
    assert!(public(&fake)[0].contains("slash command"));
    bot.reply(&heard, "for all", Audience::Everyone).await;
    assert_eq!(public(&fake)[1], "for all");
    fake.say(fake.dm(anna), anna, "/usage");
    while !bot.hear().await.address.starts_with("direct") {}
    fake.assert_clean();
}

/// Between the post and the press the gateway was restarted; between the press and its end once more.
#[tokio::test]
async fn a_button_works_after_a_restart() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let (sent, heard) = asked(&fake, &mut bot, anna, "new").await;
    let op = ReplyOp::Reply {
        text: "chosen".to_owned(),
        audience: Audience::Everyone,
        buttons: vec![Button {
            label: "Undo".to_owned(),
            custom_id: "baton1:undo-model:0123456789abcdef".to_owned(),
        }],
    };
    bot.deliver(&heard, op).await;
    let shown = fake.wait_for_answer(&sent).await;
    bot.stop().await.unwrap();

    let mut bot = Bot::start(&fake).await;
    let pressed = fake
        .click(anna, shown.id, "baton1:undo-model:0123456789abcdef")
        .unwrap();
    fake.wait_for_ack(&pressed).await;
    let press = bot.hear().await;
    bot.stop().await.unwrap();

    let forgetful = Arc::new(Discord::new(settings(&fake)).unwrap());
    forgetful.check().await.unwrap();
    forgetful
        .settle(&press.address, Some("undone"))
        .await
        .unwrap();
    let after = fake.message(shown.id).unwrap();
    assert_eq!((after.text.as_str(), after.buttons().len()), ("undone", 0));
    assert_eq!(after.allowed_mentions, Some(json!({ "parse": [] })));
    fake.assert_clean();
}

#[tokio::test]
async fn a_foreign_address_is_refused() {
    let fake = FakeDiscord::start().await;
    let bot = Bot::start(&fake).await;
    assert!(bot.discord.place("C1:17.1").is_none());
    let said = bot
        .discord
        .reply("C1:17.1", vec![Body::text("a")], Audience::Everyone)
        .await;
    assert!(said.is_err());
    let settled = bot.discord.settle("channel:5", None).await;
    assert!(settled.is_err());
    fake.assert_clean();
}
