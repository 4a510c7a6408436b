//! The way it is in production: `https://discord.com`, serenity's rate limiter in the loop.

use std::time::Duration;

use gateway_core::message::Audience;
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::Fault;
use platform_discord::{Detour, Discord, DiscordSettings};
use platforms::wire::{Body, Place, Scope, Wire, WireError};

use crate::bot::{Bot, install_tls};

const POST: &str = "/channels/{channel_id}/messages";

fn production(fake: &FakeDiscord) -> DiscordSettings {
    DiscordSettings {
        detour: Some(Detour {
            discord_com: fake.tls_address(),
            authority: fake.tls_authority().to_owned(),
        }),
        ..DiscordSettings::new(fake.token().into())
    }
}

fn general(fake: &FakeDiscord) -> Place {
    Place {
        channel: fake.general().to_string(),
        thread: None,
    }
}

#[tokio::test]
async fn a_command_and_its_answer() {
    let fake = FakeDiscord::builder().tls().start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::with(production(&fake)).await;
    fake.wait_until_ready(1).await;
    let asked = fake.slash(fake.general(), anna, "status", &[]).unwrap();
    let heard = bot.hear().await;
    assert!(fake.wait_for_ack(&asked).await.after < Duration::from_secs(1));
    bot.reply(&heard, "well", Audience::Asker).await;
    let shown = fake.wait_for_answer(&asked).await;
    assert_eq!((shown.text.as_str(), shown.only_for), ("well", Some(anna)));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

/// The limiter knows from the headers that the bucket is used up, and nothing is sent; the outbox is told how long.
#[tokio::test]
async fn a_used_up_bucket_is_known_before_discord_has_to_say_so() {
    install_tls();
    let fake = FakeDiscord::builder().tls().start().await;
    let discord = Discord::new(production(&fake)).unwrap();
    let place = general(&fake);
    for n in 0..5 {
        let sent = discord
            .send(&place, &Body::text("a"), &format!("n{n}"))
            .await;
        assert!(sent.is_ok(), "{sent:?}");
    }
    let began = tokio::time::Instant::now();
    let sixth = discord.send(&place, &Body::text("a"), "n5").await;
    let Err(WireError::RateLimited {
        after: Some(after),
        scope: Scope::Channel,
    }) = sixth
    else {
        panic!("{sixth:?}");
    };
    assert!(began.elapsed() < Duration::from_secs(2), "it did not sleep");
    assert!(after > Duration::ZERO && after <= Duration::from_secs(5));
    assert_eq!(fake.requests_to("POST", POST).len(), 5);
    assert_eq!(fake.invalid_requests(), 0);
    tokio::time::sleep(after).await;
    let later = discord.send(&place, &Body::text("a"), "n5").await;
    assert!(later.is_ok(), "{later:?}");
    fake.assert_clean();
}

#[tokio::test]
async fn a_429_is_told_and_not_slept_out() {
    install_tls();
    let fake = FakeDiscord::builder().tls().start().await;
    let discord = Discord::new(production(&fake)).unwrap();
    let place = general(&fake);
    let wait = Duration::from_secs(20);
    let rows = [
        (Fault::GlobalLimit { retry_after: wait }, Scope::Everything),
        (Fault::BucketLimit { retry_after: wait }, Scope::Channel),
    ];
    for (fault, scope) in rows {
        fake.plan("POST", POST, fault);
        let sent = discord.send(&place, &Body::text("a"), "n").await;
        let after = Some(wait);
        assert_eq!(sent, Err(WireError::RateLimited { after, scope }));
    }
    assert_eq!(fake.requests_to("POST", POST).len(), 2);
    fake.assert_clean();
}
