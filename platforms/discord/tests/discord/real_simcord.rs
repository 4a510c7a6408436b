//! In front of simcord, a Discord written by others (`tests/fakes/python/simcord_bridge.py`).

use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, Button, ReplyOp};
use gateway_fakes::python::Script;
use platform_discord::DiscordSettings;
use platforms::Platform;
use platforms::adapter::Content;
use serde_json::{Value, json};

use crate::bot::{Bot, target, text_of};

/// Asks the bridge until its answer fits.
async fn ask_until(simcord: &mut Script, order: &Value, fits: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let answer: Value = serde_json::from_str(&simcord.ask(&order.to_string()).await).unwrap();
        if fits(&answer["ok"]) {
            return answer["ok"].clone();
        }
        // The bridge is asked again; it has nothing to wait on.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{order}: never as expected");
}

#[tokio::test]
async fn a_round_of_everything() {
    crate::bot::install_tls();
    let Some(mut simcord) = Script::start("simcord", "simcord_bridge.py", &[]).await else {
        return;
    };
    let world: Value = serde_json::from_str(&simcord.line().await).unwrap();
    let text = |key: &str| world[key].as_str().unwrap().to_owned();
    let settings = DiscordSettings {
        api_base: Some(text("base")),
        guilds: vec![text("guild")],
        channels: vec![text("channel")],
        message_content: false, // its application has no flags
        ..DiscordSettings::new(text("token").into())
    };
    let mut bot = Bot::with(settings).await;
    wait_until_live(&bot).await;

    ask_until(
        &mut simcord,
        &json!({ "say": format!("<@{}> hello", text("bot")) }),
        |ok| *ok == true,
    )
    .await;
    let heard = bot.hear().await;
    assert_eq!((text_of(&heard), heard.called), ("hello", true));
    let says = ReplyOp::Answer {
        text: "hello there".to_owned(),
        delta: String::new(),
        replaced: false,
        done: true,
    };
    let turn = TurnId::new("t");
    bot.chat
        .deliver(&target(&heard), Some(&turn), &says)
        .await
        .unwrap();
    ask_until(&mut simcord, &json!({ "seen": true }), |seen| {
        seen[1]["content"] == "hello there"
    })
    .await;

    let order = json!({ "slash": "status" });
    ask_until(&mut simcord, &order, |ok| *ok == true).await;
    let command = loop {
        let heard = bot.hear().await;
        if matches!(heard.content, Content::Command { .. }) {
            break heard;
        }
    };
    bot.reply(&command, "all is well", Audience::Asker).await;
    let last = ask_until(&mut simcord, &json!({ "last": true }), |last| {
        last["content"] == "all is well"
    })
    .await;
    assert_eq!(
        (&last["responded"], &last["ephemeral"]),
        (&json!(true), &json!(true))
    );

    let order = json!({ "slash": "new" });
    ask_until(&mut simcord, &order, |ok| *ok == true).await;
    let command = bot.hear().await;
    let op = ReplyOp::Reply {
        text: "A new conversation.".to_owned(),
        audience: Audience::Everyone,
        buttons: vec![Button {
            label: "Undo".to_owned(),
            custom_id: "baton1:undo-model:0123456789abcdef".to_owned(),
        }],
    };
    bot.deliver(&command, op).await;
    let order = json!({ "click": "baton1:undo-model:0123456789abcdef" });
    ask_until(&mut simcord, &order, |ok| *ok == true).await;
    let press = loop {
        let heard = bot.hear().await;
        if matches!(heard.content, Content::Press { .. }) {
            break heard;
        }
    };
    let text = Some("undone".to_owned());
    bot.deliver(&press, ReplyOp::Settle { text }).await;
    ask_until(&mut simcord, &json!({ "seen": true }), |seen| {
        seen.as_array()
            .is_some_and(|all| all.iter().any(|one| one["content"] == "undone"))
    })
    .await;
    bot.stop().await.unwrap();
}

async fn wait_until_live(bot: &Bot) {
    use platforms::adapter::Adapter;
    for _ in 0..1_000 {
        if bot.discord.health().connections == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never live");
}
