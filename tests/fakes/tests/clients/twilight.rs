//! twilight 0.18 in front of the fake Discord: the whole round trip, decoded by somebody else's types.

use std::time::Duration;

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{Callback, Fault, GatewayEvent};
use serde_json::json;
use twilight_gateway::{Event, EventTypeFlags, Intents, StreamExt};
use twilight_model::application::interaction::InteractionData;
use twilight_model::channel::message::{AllowedMentions, MessageFlags};
use twilight_model::http::interaction::{InteractionResponseData, InteractionResponseType};
use twilight_model::id::Id;

use super::twilight_bot::{Bot, answer, button};

#[tokio::test]
async fn command_private_answer_edit_and_button() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::new(&fake);
    bot.ready().await;
    let app = Id::new(fake.application());
    let me = bot
        .http
        .current_user_application()
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    assert_eq!(me.id, app);
    let interactions = bot.http.interaction(app);
    let created = interactions
        .create_global_command()
        .chat_input("usage", "What is left")
        .await
        .unwrap();
    assert_eq!(created.model().await.unwrap().name, "usage");
    assert_eq!(
        interactions
            .global_commands()
            .await
            .unwrap()
            .models()
            .await
            .unwrap()
            .len(),
        1
    );

    let asked = fake.slash(fake.general(), anna, "usage", &[]).unwrap();
    let command = bot.interaction().await;
    assert!(
        matches!(&command.data, Some(InteractionData::ApplicationCommand(data)) if data.name == "usage")
    );
    let interactions = bot.http.interaction(app);
    let hidden = InteractionResponseData {
        flags: Some(MessageFlags::EPHEMERAL),
        ..Default::default()
    };
    let defer = answer(
        InteractionResponseType::DeferredChannelMessageWithSource,
        Some(hidden),
    );
    interactions
        .create_response(command.id, &command.token, &defer)
        .await
        .unwrap();
    let second = interactions
        .create_response(command.id, &command.token, &defer)
        .await
        .unwrap_err();
    assert!(
        second.to_string().contains("400") || format!("{second:?}").contains("40060"),
        "{second:?}"
    );
    let ack = fake.wait_for_ack(&asked).await;
    assert!(
        ack.ephemeral
            && ack.kind == Callback::DeferredMessage
            && ack.after < Duration::from_secs(3)
    );

    let buttons = [button("more:1", "More")];
    interactions
        .update_response(&command.token)
        .content(Some("4 of 5 left"))
        .components(Some(&buttons))
        .await
        .unwrap();
    let shown = fake.wait_for_answer(&asked).await;
    assert_eq!(
        (shown.text.as_str(), shown.only_for),
        ("4 of 5 left", Some(anna))
    );
    assert!(
        fake.from_bot(fake.general()).is_empty(),
        "an ephemeral answer is only the asker's"
    );
    let by_bot_token = bot
        .http
        .message(Id::new(shown.channel.0), Id::new(shown.id.0))
        .await;
    assert!(by_bot_token.is_err(), "the bot token does not reach it");

    let clicked = fake.click(anna, shown.id, "more:1").unwrap();
    let click = bot.interaction().await;
    assert!(
        matches!(&click.data, Some(InteractionData::MessageComponent(data)) if data.custom_id == "more:1")
    );
    let gone = InteractionResponseData {
        content: Some("4 of 5 left; resets at 15:00".into()),
        components: Some(vec![]),
        ..Default::default()
    };
    let update = answer(InteractionResponseType::UpdateMessage, Some(gone));
    let interactions = bot.http.interaction(app);
    interactions
        .create_response(click.id, &click.token, &update)
        .await
        .unwrap();
    fake.wait_for_ack(&clicked).await;
    let after = fake.message(shown.id).unwrap();
    assert_eq!(after.earlier, ["4 of 5 left"]);
    assert!(after.buttons().is_empty());
    interactions
        .create_followup(&click.token)
        .content("said to all")
        .await
        .unwrap();
    assert_eq!(fake.followups(&clicked)[0].only_for, None);
    fake.assert_clean();
}

#[tokio::test]
async fn reply_in_a_thread_with_edits_within_the_limit() {
    let fake = FakeDiscord::builder().limit_speed(10.0).start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::new(&fake);
    bot.ready().await;
    let asked = fake.say(fake.general(), anna, "hello");
    assert_eq!(bot.heard().await, "hello");
    let (channel, question) = (Id::new(fake.general().0), Id::new(asked.0));
    let thread = bot
        .http
        .create_thread_from_message(channel, question, "hello")
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    assert_eq!(thread.id.get(), asked.0);
    assert!(
        bot.http
            .create_thread_from_message(channel, question, "again")
            .await
            .is_err()
    );
    bot.http.create_typing_trigger(thread.id).await.unwrap();
    let nobody = AllowedMentions::default();
    let sent = bot
        .http
        .create_message(thread.id)
        .content("0")
        .allowed_mentions(Some(&nobody))
        .await
        .unwrap();
    let sent = sent.model().await.unwrap().id;
    let began = std::time::Instant::now();
    for step in 1..=12 {
        let text = step.to_string();
        bot.http
            .update_message(thread.id, sent)
            .content(Some(&text))
            .allowed_mentions(Some(&nobody))
            .await
            .unwrap();
    }
    // 13 requests in windows of 5 per 0.5 s.
    assert!(
        began.elapsed() > Duration::from_millis(800),
        "{:?}",
        began.elapsed()
    );
    // twilight 0.18 reads the headers only beside x-ratelimit-scope, which Discord documents for 429 alone: each full
    // window costs it one 429, which it waits out.
    let refused = fake
        .requests()
        .iter()
        .filter(|request| request.status == 429)
        .count();
    assert!((1..=2).contains(&refused), "{refused}");
    let in_thread = fake.from_bot(fake.threads(fake.general())[0]);
    assert_eq!(in_thread[0].text, "12");
    assert_eq!(in_thread[0].earlier.len(), 12);
    fake.assert_clean();
}

#[tokio::test]
async fn op_7_and_reset_lose_nothing_and_repeat_nothing() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::new(&fake);
    bot.ready().await;
    let faults: [fn(&FakeDiscord) -> usize; 3] = [
        FakeDiscord::ask_to_reconnect,
        FakeDiscord::reset_sockets,
        |fake| fake.close_sockets(Some(4000)),
    ];
    for (round, fault) in faults.iter().enumerate() {
        assert_eq!(fault(&fake), 1);
        let text = format!("in round {round}");
        fake.say(fake.general(), anna, text.as_str());
        // Op 7 leaves the old socket readable for a moment, so the text may come before RESUMED or after it.
        let (mut texts, mut resumed) = (Vec::new(), false);
        let both = |event| {
            match event {
                Event::MessageCreate(created) => texts.push(created.content.clone()),
                Event::Resumed => resumed = true,
                _ => {}
            }
            (resumed && !texts.is_empty()).then_some(())
        };
        bot.next("the text and RESUMED", both).await;
        assert_eq!(texts, [text]);
    }
    assert_eq!(
        fake.gateway_count(|event| matches!(event, GatewayEvent::Resumed { .. })),
        3
    );
    assert_eq!(
        fake.gateway_count(|event| matches!(event, GatewayEvent::Identified { .. })),
        1
    );
    let by_resume_url = |event: &GatewayEvent| matches!(event, GatewayEvent::Connected { path } if path.starts_with("/resume"));
    assert!(
        fake.gateway_count(by_resume_url) > 0,
        "twilight resumes on the READY's URL"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn zombie_is_noticed_by_its_missing_acks() {
    let fake = FakeDiscord::builder()
        .heartbeat(Duration::from_millis(700))
        .start()
        .await;
    let anna = fake.person("anna");
    let mut bot = Bot::new(&fake);
    bot.ready().await;
    assert_eq!(fake.make_zombies(), 1);
    fake.say(fake.general(), anna, "are you there?");
    assert_eq!(bot.heard().await, "are you there?");
    assert_eq!(
        fake.gateway_count(|event| matches!(event, GatewayEvent::Resumed { .. })),
        1
    );
    fake.assert_clean();
}

#[tokio::test]
async fn forgotten_session_identifies_anew_and_misses_the_gap() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::new(&fake);
    bot.ready().await;
    fake.refuse_resumes(1);
    fake.reset_sockets();
    fake.say(fake.general(), anna, "into the gap");
    bot.ready().await;
    fake.say(fake.general(), anna, "after it");
    assert_eq!(bot.heard().await, "after it");
    let general = Id::new(fake.general().0);
    let after = Id::new(1);
    let filled = bot
        .http
        .channel_messages(general)
        .after(after)
        .limit(100)
        .await
        .unwrap()
        .models()
        .await
        .unwrap();
    assert_eq!(
        filled
            .iter()
            .map(|message| message.content.as_str())
            .collect::<Vec<_>>(),
        ["after it", "into the gap"]
    );
    fake.assert_clean();
}

#[tokio::test]
async fn without_the_intent_only_mentions_and_dms_have_text() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::asking_for(
        &fake,
        Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES,
    );
    bot.ready().await;
    let mention = format!("<@{}> hello", fake.bot());
    for (channel, text, heard) in [
        (fake.general(), "secret", ""),
        (fake.general(), mention.as_str(), mention.as_str()),
        (fake.dm(anna), "direct", "direct"),
    ] {
        fake.say(channel, anna, text);
        assert_eq!(bot.heard().await, heard);
    }
    fake.assert_clean();
}

#[tokio::test]
async fn disallowed_intent_is_fatal() {
    let fake = FakeDiscord::builder()
        .without_message_content()
        .start()
        .await;
    let mut bot = Bot::new(&fake);
    let end = async {
        while let Some(event) = bot.shard.next_event(EventTypeFlags::all()).await {
            if let Ok(Event::GatewayClose(Some(frame))) = event {
                return frame.code;
            }
        }
        0
    };
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(20), end)
            .await
            .unwrap(),
        4014
    );
}

#[tokio::test]
async fn scripted_429s_are_waited_out() {
    let fake = FakeDiscord::start().await;
    let bot = Bot::new(&fake);
    let wait = Duration::from_millis(300);
    fake.plan(
        "POST",
        "/channels/{channel_id}/messages",
        Fault::BucketLimit { retry_after: wait },
    );
    let general = Id::new(fake.general().0);
    let began = std::time::Instant::now();
    bot.http
        .create_message(general)
        .content("late")
        .await
        .unwrap();
    assert!(began.elapsed() >= wait);
    assert_eq!(fake.from_bot(fake.general()).len(), 1);
    fake.assert_clean();
}

#[tokio::test]
async fn upload_and_download() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let bot = Bot::new(&fake);
    let general = Id::new(fake.general().0);
    let file = twilight_model::http::attachment::Attachment::from_bytes(
        "long.md".into(),
        b"# all of it".to_vec(),
        0,
    );
    bot.http
        .create_message(general)
        .content("see the file")
        .attachments(&[file])
        .await
        .unwrap();
    let sent = &fake.from_bot(fake.general())[0];
    assert_eq!(
        (sent.files[0].name.as_str(), sent.files[0].bytes.as_slice()),
        ("long.md", &b"# all of it"[..])
    );

    let said = gateway_fakes::discord::Said {
        text: "look".into(),
        files: vec![("notes.txt".into(), "text/plain".into(), b"mine".to_vec())],
        ..Default::default()
    };
    let id = fake.say(fake.general(), anna, said);
    let got = bot
        .http
        .message(general, Id::new(id.0))
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    let body = reqwest::get(&got.attachments[0].url)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(body.as_ref(), b"mine");
    assert_eq!(json!(got.attachments[0].content_type), json!("text/plain"));
    fake.assert_clean();
}
