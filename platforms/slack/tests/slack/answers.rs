//! Asked and answered: mentions, threads, direct messages, commands.

use gateway_core::message::Audience;
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::Said;
use platforms::adapter::{Adapter, Content, SpeakerKind, Spot};

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
