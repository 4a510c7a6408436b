//! Each rule of the fake Discord, broken once: a check that never refuses proves nothing.

use std::time::Duration;

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{Fault, permission};
use reqwest::Method;
use serde_json::{Value, json};

use super::raw_bot::{Raw, command};

#[tokio::test]
async fn bad_requests_are_refused_and_reported() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let row = |buttons: usize| {
        let button =
            |at| json!({ "type": 2, "style": 1, "label": "b", "custom_id": format!("b{at}") });
        json!([{ "type": 1, "components": (0..buttons).map(button).collect::<Vec<_>>() }])
    };
    let long_id = json!([{ "type": 1, "components": [{ "type": 2, "style": 1, "label": "b", "custom_id": "x".repeat(101) }] }]);
    let rows = [
        ("2001 characters", json!({ "content": "x".repeat(2001) })),
        (
            "misspelt key",
            json!({ "content": "x", "allowed_mention": { "parse": [] } }),
        ),
        (
            "nested misspelt key",
            json!({ "content": "x", "allowed_mentions": { "parze": [] } }),
        ),
        (
            "26-character nonce",
            json!({ "content": "x", "nonce": "n".repeat(26) }),
        ),
        (
            "six buttons in a row",
            json!({ "content": "x", "components": row(6) }),
        ),
        (
            "101-character custom_id",
            json!({ "content": "x", "components": long_id }),
        ),
        (
            "one custom_id twice",
            json!({ "content": "x", "components": [row(1)[0], row(1)[0]] }),
        ),
        (
            "contradicting mentions",
            json!({ "content": "x", "allowed_mentions": { "parse": ["users"], "users": ["1"] } }),
        ),
        ("text as a number", json!({ "content": 5 })),
    ];
    for (name, body) in rows {
        let (status, answer) = bot.send(body).await;
        assert_eq!(
            (status, &answer["code"]),
            (400, &json!(50035)),
            "{name}: {answer}"
        );
        assert_eq!(fake.violations().take().len(), 1, "{name}");
    }
    let (status, _) = bot
        .send(json!({ "content": "x", "components": row(5) }))
        .await;
    assert_eq!(status, 200);
    fake.assert_clean();
}

#[tokio::test]
async fn unknown_routes_and_logins() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    assert_eq!(
        bot.call(Method::GET, "/voice/regions", Value::Null).await.0,
        404
    );
    assert!(fake.violations().take()[0].contains("no such route"));
    let url = format!("{}/api/v10/users/@me", fake.base());
    let answer = bot
        .client
        .get(url)
        .header("authorization", "Bot wrong")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(fake.invalid_requests(), 1);
}

#[tokio::test]
async fn deadlines_of_an_interaction() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    bot.register(json!([command("usage")])).await;
    let anna = fake.person("anna");
    let answer = json!({ "type": 4, "data": { "content": "here" } });
    let late = fake.slash(fake.general(), anna, "usage", &[]).unwrap();
    fake.clock().advance(Duration::from_millis(3100));
    let callback = |asked: &gateway_fakes::discord::Asked| {
        format!("/interactions/{}/{}/callback", asked.id, asked.token)
    };
    assert_eq!(
        bot.call(Method::POST, &callback(&late), answer.clone())
            .await
            .1["code"],
        10062
    );
    assert!(fake.interaction(&late).failed(fake.clock().now()));

    let asked = fake.slash(fake.general(), anna, "usage", &[]).unwrap();
    assert_eq!(
        bot.call(Method::POST, &callback(&asked), answer.clone())
            .await
            .0,
        204
    );
    assert_eq!(
        bot.call(Method::POST, &callback(&asked), answer).await.1["code"],
        40060
    );
    let original = format!(
        "/webhooks/{}/{}/messages/@original",
        fake.application(),
        asked.token
    );
    assert_eq!(
        bot.call(Method::PATCH, &original, json!({ "content": "better" }))
            .await
            .0,
        200
    );
    fake.clock().advance(Duration::from_secs(15 * 60));
    assert_eq!(
        bot.call(Method::PATCH, &original, json!({ "content": "late" }))
            .await
            .1["code"],
        50027
    );
    fake.assert_clean();
}

#[tokio::test]
async fn nonces_and_lost_answers() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let body = json!({ "content": "once", "nonce": "chunk-1", "enforce_nonce": true });
    fake.plan("POST", "/channels/{channel_id}/messages", Fault::Lost);
    assert_eq!(bot.send(body.clone()).await.0, 500);
    assert_eq!(bot.send(body.clone()).await.0, 200);
    assert_eq!(fake.from_bot(fake.general()).len(), 1);
    fake.clock().advance(Duration::from_secs(600));
    bot.send(body).await;
    assert_eq!(fake.from_bot(fake.general()).len(), 2);
    fake.assert_clean();
}

#[tokio::test]
async fn limits_tell_when_to_come_back() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    for _ in 0..5 {
        assert_eq!(bot.send(json!({ "content": "x" })).await.0, 200);
    }
    let (status, answer) = bot.send(json!({ "content": "x" })).await;
    assert_eq!((status, &answer["global"]), (429, &json!(false)));
    assert!(answer["retry_after"].as_f64().unwrap() > 3.0);
    fake.clock().advance(Duration::from_secs(5));
    assert_eq!(bot.send(json!({ "content": "x" })).await.0, 200);
    fake.plan("POST", "/channels/{channel_id}/messages", Fault::BareLimit);
    assert_eq!(
        bot.send(json!({ "content": "x" })).await,
        (429, Value::Null)
    );
    fake.plan(
        "POST",
        "/channels/{channel_id}/messages",
        Fault::GlobalLimit {
            retry_after: Duration::from_secs(1),
        },
    );
    assert_eq!(bot.send(json!({ "content": "x" })).await.1["global"], true);
    fake.assert_clean();
}

#[tokio::test]
async fn global_limit_of_fifty_a_second() {
    let fake = FakeDiscord::builder().limit_speed(0.01).start().await;
    let bot = Raw::new(&fake);
    for _ in 0..50 {
        assert_eq!(
            bot.call(Method::GET, "/users/@me", Value::Null).await.0,
            200
        );
    }
    assert_eq!(
        bot.call(Method::GET, "/users/@me", Value::Null).await.1["global"],
        true
    );
}

#[tokio::test]
async fn pings_follow_allowed_mentions_on_send_and_edit() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let (_, quiet) = bot
        .send(json!({ "content": "@everyone", "allowed_mentions": { "parse": [] } }))
        .await;
    assert!(fake.from_bot(fake.general())[0].pings.is_empty());
    let path = format!(
        "/channels/{}/messages/{}",
        fake.general(),
        quiet["id"].as_str().unwrap()
    );
    bot.call(
        Method::PATCH,
        &path,
        json!({ "content": "@everyone again" }),
    )
    .await;
    assert!(
        fake.from_bot(fake.general())[0].pings.everyone,
        "an edit without it is parsed with the defaults"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn rights_and_archived_threads() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let anna = fake.person("anna");
    let mute = fake.channel("mute");
    fake.deny(mute, permission::SEND_MESSAGES);
    let path = format!("/channels/{mute}/messages");
    assert_eq!(
        bot.call(Method::POST, &path, json!({ "content": "x" }))
            .await
            .1["code"],
        50013
    );
    fake.deny(mute, permission::VIEW_CHANNEL);
    assert_eq!(
        bot.call(Method::GET, &path, Value::Null).await.1["code"],
        50001
    );
    let start = fake.say(fake.general(), anna, "start");
    let thread = fake.thread(start, "talk");
    fake.archive(thread);
    let path = format!("/channels/{thread}/messages");
    assert_eq!(
        bot.call(Method::POST, &path, json!({ "content": "x" }))
            .await
            .1["code"],
        50083
    );
    for path in [
        "/users/@me/guilds",
        &format!("/guilds/{}", fake.guild()),
        &format!("/guilds/{}/roles", fake.guild()),
        &format!("/guilds/{}/channels", fake.guild()),
        &format!("/guilds/{}/members/{anna}", fake.guild()),
        "/gateway/bot",
    ] {
        assert_eq!(
            bot.call(Method::GET, path, Value::Null).await.0,
            200,
            "{path}"
        );
    }
    fake.assert_clean();
}

#[tokio::test]
async fn old_messages_take_few_edits() {
    let fake = FakeDiscord::start().await;
    let bot = Raw::new(&fake);
    let (_, sent) = bot.send(json!({ "content": "status" })).await;
    fake.clock().advance(Duration::from_secs(3601));
    let path = format!(
        "/channels/{}/messages/{}",
        fake.general(),
        sent["id"].as_str().unwrap()
    );
    for _ in 0..5 {
        assert_eq!(
            bot.call(Method::PATCH, &path, json!({ "content": "x" }))
                .await
                .0,
            200
        );
    }
    fake.clock().advance(Duration::from_secs(6));
    assert_eq!(
        bot.call(Method::PATCH, &path, json!({ "content": "x" }))
            .await
            .1["code"],
        30046
    );
}

#[tokio::test]
async fn served_over_tls_as_discord_com() {
    super::install_tls();
    let fake = FakeDiscord::builder().tls().start().await;
    let authority = reqwest::Certificate::from_pem(fake.tls_authority().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .resolve("discord.com", fake.tls_address())
        .tls_certs_only([authority]);
    let request = client.build().unwrap().get(format!(
        "https://discord.com:{}/api/v10/gateway",
        fake.tls_address().port()
    ));
    let answer = request
        .header("authorization", format!("Bot {}", fake.token()))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    fake.assert_clean();
}
