//! Asked and answered: mentions, threads, direct messages, commands.

use gateway_core::message::Audience;
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{Fault, Said};
use platforms::adapter::{Adapter, Content, SpeakerKind, Spot};
use platforms::chat::Surface;

use crate::support::{Bot, answer, private, reply};

fn text(heard: &platforms::adapter::Heard) -> &str {
    match &heard.content {
        Content::Text { text, .. } => text,
        other => panic!("no text: {other:?}"),
    }
}

#[tokio::test]
async fn a_mention_is_heard_once_and_answered_in_the_channel() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let said = format!(
        "{} is a &lt; b &amp;&amp; <#{general}|general>?",
        fake.mention()
    );
    fake.say(&general, &anna, said.as_str());
    let heard = bot.hear().await;
    assert_eq!(text(&heard), "is a < b && #general?");
    assert!(heard.called && heard.speaker.kind == SpeakerKind::Person);
    assert_eq!(
        (heard.conversation.as_str(), heard.speaker.id.as_str()),
        (general.as_str(), anna.as_str())
    );
    let Spot::Channel { guild, channel, .. } = &heard.spot else {
        panic!("{:?}", heard.spot);
    };
    assert!(guild.is_some() && *channel == general);
    bot.deliver(
        &heard,
        Some("t"),
        answer("yes, and <!channel> & **more**", true),
    )
    .await;
    let shown = fake
        .wait_for_text(&general, |text| text.contains("yes"))
        .await;
    assert!(shown.pings.is_empty() && shown.markdown && shown.thread_ts.is_none());
    assert_eq!(shown.text, "yes, and &lt;!channel&gt; &amp; **more**");
    // Neither the second event of the mention nor the bot's own message is heard.
    fake.say(&general, &anna, "and without a mention");
    let next = bot.hear().await;
    assert_eq!((text(&next), next.called), ("and without a mention", false));
    assert!(bot.is_silent());
    let health = bot.slack.health();
    assert_eq!(
        (health.connections, health.gaps, health.unreadable),
        (2, 0, 0)
    );
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_thread_has_its_own_conversation_and_its_answers_stay_in_it() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let root = fake.say(&general, &anna, "root");
    bot.hear().await;
    let said = Said {
        text: format!("{} in here", fake.mention()),
        thread_ts: Some(root.ts.clone()),
        ..Said::default()
    };
    fake.say(&general, &anna, said);
    let heard = bot.hear().await;
    assert_eq!(heard.conversation, format!("{general}/{}", root.ts));
    bot.deliver(&heard, Some("t"), answer("in there", true))
        .await;
    let shown = fake
        .wait_for_text(&general, |text| text == "in there")
        .await;
    assert_eq!(shown.thread_ts, Some(root.ts));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_command_is_acknowledged_at_once_and_answered_in_private() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna, ben) = (fake.general(), fake.person("anna"), fake.person("ben"));
    let asked = fake
        .slash(&general, &anna, "/usage", " all of it ")
        .unwrap();
    fake.wait_for_ack(&asked).await;
    let heard = bot.hear().await;
    let want = Content::Command {
        name: "usage".to_owned(),
        args: "all of it".to_owned(),
    };
    assert_eq!(
        (&heard.content, heard.speaker.name.as_str()),
        (&want, "anna")
    );
    assert_eq!(
        (heard.conversation.as_str(), heard.called),
        (general.as_str(), true)
    );
    bot.deliver(&heard, None, private("5 % < 10 % used")).await;
    let shown = fake.wait_for_private(&general, &anna, |_| true).await;
    assert_eq!(shown.text, "5 % &lt; 10 % used");
    assert!(fake.private(&general, &ben).is_empty() && fake.from_bot(&general).is_empty());
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn baton_reaches_every_command_and_public_answers_are_public() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.slash(&general, &anna, "/baton", "new  now").unwrap();
    let heard = bot.hear().await;
    let want = Content::Command {
        name: "new".to_owned(),
        args: "now".to_owned(),
    };
    assert_eq!(heard.content, want);
    bot.deliver(
        &heard,
        None,
        reply("a new conversation", Audience::Everyone, Vec::new()),
    )
    .await;
    fake.wait_for_text(&general, |text| text == "a new conversation")
        .await;
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn direct_messages_need_no_mention() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let anna = fake.person("anna");
    let dm = fake.dm(&anna);
    fake.say(&dm, &anna, "hello");
    let heard = bot.hear().await;
    assert_eq!((text(&heard), heard.called), ("hello", true));
    assert_eq!(
        heard.spot,
        Spot::Direct {
            channel: dm.clone()
        }
    );
    bot.chat.working(&heard.address);
    bot.deliver(&heard, Some("t"), answer("hi", true)).await;
    fake.wait_for_text(&dm, |text| text == "hi").await;
    assert!(fake.statuses().is_empty(), "no thread, no status");
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_thread_of_direct_messages_shows_a_status_and_nothing_else_does() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let dm = fake.dm(&anna);
    for channel in [&general, &dm] {
        let root = fake.say(channel, &anna, "root");
        bot.hear().await;
        let said = Said {
            text: "in a thread".to_owned(),
            thread_ts: Some(root.ts.clone()),
            ..Said::default()
        };
        fake.say(channel, &anna, said);
        let heard = bot.hear().await;
        let place = bot.slack.place(&heard.address).unwrap();
        bot.slack.activity(&place).await.unwrap();
        let statuses = fake.statuses();
        match channel == &dm {
            true => assert_eq!(statuses[0].thread_ts, root.ts),
            false => assert!(statuses.is_empty(), "{statuses:?}"),
        }
        // An app that may not is asked once.
        if channel == &dm {
            fake.plan("assistant.threads.setStatus", Fault::Error("not_allowed"));
            assert!(bot.slack.activity(&place).await.is_err());
            bot.slack.activity(&place).await.unwrap();
            assert_eq!(fake.statuses().len(), 1);
        }
    }
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_private_answer_to_a_message_is_seen_by_its_sender_alone() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let root = fake.say(&general, &anna, "root");
    bot.hear().await;
    let said = Said {
        text: "in a thread".to_owned(),
        thread_ts: Some(root.ts.clone()),
        ..Said::default()
    };
    fake.say(&general, &anna, said);
    let heard = bot.hear().await;
    bot.deliver(&heard, None, private("not for you <!here>"))
        .await;
    let shown = fake.wait_for_private(&general, &anna, |_| true).await;
    assert_eq!(
        (shown.text.as_str(), shown.thread_ts),
        ("not for you &lt;!here&gt;", Some(root.ts))
    );
    assert!(fake.from_bot(&general).is_empty());
    // Nobody else reads direct messages, and a private message would not be kept there.
    let dm = fake.dm(&anna);
    fake.say(&dm, &anna, "hello");
    let heard = bot.hear().await;
    bot.deliver(&heard, None, private("only us")).await;
    fake.wait_for_text(&dm, |text| text == "only us").await;
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn many_messages_of_one_answer_arrive_in_order_and_edits_keep_the_pace() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "go");
    let heard = bot.hear().await;
    let long: String = (0..3_000).map(|n| format!("line {n} of it\n")).collect();
    bot.deliver(&heard, Some("t"), answer(&long, true)).await;
    bot.chat.drained().await;
    let shown = fake.from_bot(&general);
    let together: String = shown.iter().map(|one| one.text.as_str()).collect();
    assert!(shown.len() > 2, "{}", shown.len());
    assert_eq!(together.replace('\n', ""), long.replace('\n', ""));
    let limited = |method: &str| fake.requests_to(method).iter().any(|one| one.status == 429);
    assert!(!limited("chat.postMessage") && !limited("chat.update"));
    bot.stop().await.unwrap();
    fake.assert_clean();
}
