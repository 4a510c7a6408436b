//! Buttons: pressed once, settled, also after a restart, for all and for one.

use gateway_core::message::{Audience, Button, ReplyOp};
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{Fault, NotPossible};
use platforms::adapter::{Content, Heard};

use crate::support::{Bot, private, reply};

const UNDO: &str = "baton1:undo-model:0123456789abcdef";

fn undo() -> Vec<Button> {
    vec![Button {
        label: "Undo".to_owned(),
        custom_id: UNDO.to_owned(),
    }]
}

fn settle(text: Option<&str>) -> ReplyOp {
    ReplyOp::Settle {
        text: text.map(str::to_owned),
    }
}

async fn command(fake: &FakeSlack, bot: &mut Bot, channel: &str, user: &str) -> Heard {
    fake.slash(channel, user, "/model", "claude/opus").unwrap();
    bot.hear().await
}

fn assert_pressed(heard: &Heard) {
    let want = Content::Press {
        custom_id: UNDO.to_owned(),
    };
    assert_eq!(heard.content, want);
}

#[tokio::test]
async fn a_private_button_is_settled_also_after_a_restart() {
    for (text, want) in [
        (Some("undone <!here>"), "undone &lt;!here&gt;"),
        (None, "from a &lt; b"),
    ] {
        let fake = FakeSlack::start().await;
        let mut bot = Bot::start(&fake).await;
        let (general, anna) = (fake.general(), fake.person("anna"));
        let heard = command(&fake, &mut bot, &general, &anna).await;
        bot.deliver(&heard, None, reply("from a < b", Audience::Asker, undo()))
            .await;
        let shown = fake
            .wait_for_private(&general, &anna, |text| text == "from a &lt; b")
            .await;
        assert_eq!(shown.buttons()[0].label, "Undo");
        bot.stop().await.unwrap();

        let mut bot = Bot::start(&fake).await;
        let asked = fake.click(&anna, &shown.at, UNDO).unwrap();
        fake.wait_for_ack(&asked).await;
        let press = bot.hear().await;
        assert_pressed(&press);
        assert_eq!(press.conversation, general);
        bot.deliver(&press, None, settle(text)).await;
        let left = fake
            .wait_for_private(&general, &anna, |text| text == want)
            .await;
        assert!(left.buttons().is_empty() && left.at == shown.at);
        assert_eq!(
            fake.click(&anna, &shown.at, UNDO),
            Err(NotPossible::NoSuchButton)
        );
        bot.deliver(&press, None, private("said beside it")).await;
        fake.wait_for_private(&general, &anna, |text| text == "said beside it")
            .await;
        bot.stop().await.unwrap();
        fake.assert_clean();
    }
}

#[tokio::test]
async fn a_public_button_is_settled_and_the_text_stays() {
    for (text, want) in [(Some("undone"), "undone"), (None, "switched")] {
        let fake = FakeSlack::start().await;
        let mut bot = Bot::start(&fake).await;
        let (general, anna, ben) = (fake.general(), fake.person("anna"), fake.person("ben"));
        let heard = command(&fake, &mut bot, &general, &anna).await;
        bot.deliver(&heard, None, reply("switched", Audience::Everyone, undo()))
            .await;
        let shown = fake
            .wait_for_text(&general, |text| text == "switched")
            .await;
        fake.click(&ben, &shown.at, UNDO).unwrap();
        let press = bot.hear().await;
        assert_pressed(&press);
        assert_eq!(press.speaker.id, ben);
        bot.deliver(&press, None, settle(text)).await;
        let left = fake.wait_for("the settled message", |fake| {
            let shown = fake.from_bot(&general);
            shown
                .into_iter()
                .find(|one| one.buttons().is_empty() && one.text == want)
        });
        assert_eq!(left.await.at, shown.at);
        bot.stop().await.unwrap();
        fake.assert_clean();
    }
}

#[tokio::test]
async fn where_the_bot_is_not_a_press_still_changes_its_message() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let heard = command(&fake, &mut bot, &general, &anna).await;
    bot.deliver(&heard, None, reply("switched", Audience::Everyone, undo()))
        .await;
    let shown = fake
        .wait_for_text(&general, |text| text == "switched")
        .await;
    fake.click(&anna, &shown.at, UNDO).unwrap();
    let press = bot.hear().await;
    fake.plan("chat.update", Fault::Error("not_in_channel"));
    bot.deliver(&press, None, settle(Some("undone"))).await;
    let left = fake.wait_for_text(&general, |text| text == "undone").await;
    assert!(left.buttons().is_empty());
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn many_buttons_and_a_long_text_keep_slacks_limits() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    let heard = command(&fake, &mut bot, &general, &anna).await;
    let buttons: Vec<Button> = (0..30)
        .map(|n| Button {
            label: format!("{n} {}", "long label ".repeat(20)),
            custom_id: format!("id{n}"),
        })
        .collect();
    let text = "a <b> && c ".repeat(600);
    for audience in [Audience::Asker, Audience::Everyone] {
        bot.deliver(&heard, None, reply(&text, audience, buttons.clone()))
            .await;
    }
    let shown = fake.wait_for("both", |fake| {
        let shown = fake.seen(&general, Some(&anna));
        let with_buttons: Vec<_> = shown
            .into_iter()
            .filter(|one| one.buttons().len() == 30)
            .collect();
        (with_buttons.len() == 2).then_some(with_buttons)
    });
    assert!(shown.await.iter().all(|one| one.pings.is_empty()));
    bot.stop().await.unwrap();
    fake.assert_clean();
}
