//! What the gateway may do, one by one: which events arrive, what is counted, how long it takes.

use std::time::Duration;

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::GatewayEvent;
use platform_discord::{Discord, DiscordSettings};
use platforms::adapter::{Adapter, Content, Health, Severity};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::bot::{Bot, install_tls, settings};

/// A fault, and how it is brought about.
type Fault<T> = (&'static str, fn(&FakeDiscord) -> T);

fn identified(fake: &FakeDiscord) -> usize {
    fake.gateway_count(|event| matches!(event, GatewayEvent::Identified { .. }))
}

async fn healthy(bot: &Bot, what: &str, is: impl Fn(&Health) -> bool) {
    let began = Instant::now();
    while !is(&bot.discord.health()) {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{what}: {:?}",
            bot.discord.health()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Op 7, op 9 true, a reset, closes without and with codes that keep the session: every event exactly once.
#[tokio::test]
async fn what_keeps_the_session_loses_nothing_and_repeats_nothing() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let faults: [Fault<usize>; 6] = [
        ("op 7", FakeDiscord::ask_to_reconnect),
        ("op 9 true", |fake| fake.invalidate_sessions(true)),
        ("reset", FakeDiscord::reset_sockets),
        ("close without a code", |fake| fake.close_sockets(None)),
        ("close 4000", |fake| fake.close_sockets(Some(4000))),
        ("close 4008", |fake| fake.close_sockets(Some(4008))),
    ];
    for (round, (name, fault)) in faults.iter().enumerate() {
        assert_eq!(fault(&fake), 1, "{name}");
        let text = format!("after {name}");
        fake.say(fake.general(), anna, text.as_str());
        let asked = fake.slash(fake.general(), anna, "status", &[]).unwrap();
        let mut heard = vec![bot.hear().await.content, bot.hear().await.content];
        heard.sort_by_key(|content| matches!(content, Content::Command { .. }));
        assert!(
            matches!(&heard[0], Content::Text { text: said, .. } if *said == text),
            "{heard:?}"
        );
        assert!(matches!(&heard[1], Content::Command { .. }), "{heard:?}");
        fake.wait_for_ack(&asked).await;
        let resumed = round as u64 + 1;
        healthy(&bot, name, |health| {
            health.resumed == resumed && health.connections == 1
        })
        .await;
        let recovery = bot.discord.last_recovery().unwrap();
        assert!(recovery < Duration::from_secs(3), "{name}: {recovery:?}");
        println!("{name}: heard again after {recovery:?}");
    }
    let more = timeout(Duration::from_millis(300), bot.heard.recv()).await;
    assert!(more.is_err(), "{more:?}");
    assert_eq!(identified(&fake), 1);
    let by_own_address = |event: &GatewayEvent| matches!(event, GatewayEvent::Connected { path } if path.starts_with("/resume"));
    assert_eq!(fake.gateway_count(by_own_address), faults.len());
    let health = bot.discord.health();
    assert_eq!(
        (health.gaps, health.begun_anew, health.back_filled),
        (0, 0, 0)
    );
    bot.stop().await.unwrap();
    fake.assert_clean();
}

/// Heartbeats stay unanswered, nothing arrives, the socket stays open.
#[tokio::test]
async fn a_zombie_is_left_and_its_session_resumed() {
    let fake = FakeDiscord::builder()
        .heartbeat(Duration::from_millis(500))
        .start()
        .await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    assert_eq!(fake.make_zombies(), 1);
    let began = Instant::now();
    fake.say(fake.general(), anna, "are you there?");
    let asked = fake.slash(fake.general(), anna, "status", &[]).unwrap();
    assert_eq!(bot.hear_text().await, "are you there?");
    println!(
        "zombie, heartbeats every 0.5 s: heard after {:?}",
        began.elapsed()
    );
    fake.wait_for_ack(&asked).await;
    healthy(&bot, "resumed", |health| health.resumed == 1).await;
    let recovery = bot.discord.last_recovery().unwrap();
    println!("zombie: deaf for {recovery:?}");
    assert!(recovery < Duration::from_secs(4));
    assert_eq!((bot.discord.health().gaps, identified(&fake)), (0, 1));
    fake.assert_clean();
}

/// Op 9 false, a refused RESUME, closes that end the session: messages are fetched, the gap is counted.
#[tokio::test]
async fn a_lost_session_is_filled_in_from_rest() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let before = fake.say(fake.general(), anna, "before the bot came");
    let thread = fake.thread(before, "thread");
    let elsewhere = fake.channel("elsewhere");
    let mut settings = settings(&fake);
    settings.channels = vec![fake.general().to_string()];
    let mut bot = Bot::with(settings).await;
    fake.wait_until_ready(1).await;
    fake.say(fake.general(), anna, "heard");
    assert_eq!(bot.hear_text().await, "heard");
    fake.say(fake.dm(anna), anna, "directly");
    assert_eq!(bot.hear_text().await, "directly");

    fake.refuse_resumes(1);
    fake.reset_sockets();
    for n in 0..3 {
        fake.say(fake.general(), anna, format!("missed {n}").as_str());
    }
    fake.say(thread, anna, "missed in the thread");
    fake.say(fake.dm(anna), anna, "missed directly");
    fake.say(elsewhere, anna, "not served");
    let opened = fake.thread(
        fake.say(fake.general(), anna, "missed 3"),
        "opened in the gap",
    );
    fake.say(opened, anna, "missed in a new thread");
    let lost = fake.slash(fake.general(), anna, "status", &[]).unwrap();
    let mut texts = Vec::new();
    while texts.len() < 7 {
        texts.push(bot.hear_text().await);
    }
    healthy(&bot, "a new session", |health| health.begun_anew == 1).await;
    fake.say(fake.general(), anna, "live again");
    assert_eq!(bot.hear_text().await, "live again");
    let in_general: Vec<&String> = texts
        .iter()
        .filter(|text| text.len() == "missed 0".len())
        .collect();
    assert_eq!(in_general, ["missed 0", "missed 1", "missed 2", "missed 3"]);
    for text in [
        "missed in the thread",
        "missed directly",
        "missed in a new thread",
    ] {
        assert_eq!(texts.iter().filter(|one| *one == text).count(), 1, "{text}");
    }
    let asked = fake.requests_to("GET", "/channels/{channel_id}/messages");
    assert_eq!(
        asked.len(),
        4,
        "once for general, two threads, the direct conversation"
    );
    let health = bot.discord.health();
    assert_eq!((health.gaps, health.back_filled, health.resumed), (1, 7, 0));
    assert!(
        fake.interaction(&lost).first.is_none(),
        "a command of the gap is lost, and counted as the gap"
    );
    println!(
        "op 9 false: heard again after {:?}",
        bot.discord.last_recovery().unwrap()
    );
    fake.assert_clean();
}

/// At most 100 messages of a room, the oldest first, each with its author's roles.
#[tokio::test]
async fn filling_in_ends_at_a_hundred() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.invalidate_sessions(false);
    for n in 0..120 {
        fake.say(fake.general(), anna, format!("{n}").as_str());
    }
    let live = fake.say(fake.general(), anna, "first of the new session?");
    let mut texts = Vec::new();
    for _ in 0..100 {
        texts.push(bot.hear_text().await);
    }
    let want: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(texts, want);
    let members = fake.requests_to("GET", "/guilds/{guild_id}/members/{user_id}");
    let of_anna = members
        .iter()
        .filter(|request| request.path.ends_with(&anna.to_string()));
    assert_eq!(of_anna.count(), 1);
    assert_eq!(bot.discord.health().back_filled, 100);
    assert!(fake.message(live).is_some());
    fake.assert_clean();
}

#[tokio::test]
async fn what_would_end_the_same_way_for_ever_ends_for_good() {
    for code in [4004_u16, 4010, 4011, 4012, 4013, 4014] {
        let fake = FakeDiscord::start().await;
        let bot = Bot::start(&fake).await;
        fake.close_sockets(Some(code));
        let ended = timeout(Duration::from_secs(5), bot.listening).await;
        let finding = ended.expect("at once").unwrap().expect_err("for good");
        assert_eq!(finding.severity, Severity::Fatal);
        assert!(
            finding.what.contains(&code.to_string()) && !finding.hint.is_empty(),
            "{finding}"
        );
        assert_eq!(identified(&fake), 1);
        fake.assert_clean();
    }
}

#[tokio::test]
async fn a_forgotten_session_begins_anew() {
    let fake = FakeDiscord::start().await;
    let bot = Bot::start(&fake).await;
    fake.close_sockets(Some(4009));
    healthy(&bot, "anew", |health| {
        health.begun_anew == 1 && health.connections == 1
    })
    .await;
    let log = fake.gateway_log();
    let at: Vec<_> = log
        .iter()
        .filter(|note| matches!(note.what, GatewayEvent::Identified { .. }))
        .map(|note| note.at)
        .collect();
    assert!(
        at[1].duration_since(at[0]).as_millis() >= 4_900,
        "IDENTIFYs keep their distance"
    );
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn what_cannot_be_read_is_counted_and_passed() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.send_event("INTERACTION_CREATE", json!({ "id": 5, "type": "new" }));
    fake.send_event("MESSAGE_CREATE", json!({ "id": "7" }));
    fake.send_event("SOMETHING_NEW", json!({ "id": "7" }));
    fake.send_text("not JSON");
    let strange = json!({
        "id": "77", "channel_id": fake.general().to_string(), "guild_id": fake.guild().to_string(), "type": 0,
        "content": "with what is new", "author": { "id": anna.to_string(), "username": "anna", "new": [1] },
        "components": [{ "type": 99, "new": {} }], "embeds": "?", "mentions": [], "attachments": [],
    });
    fake.send_event("MESSAGE_CREATE", strange);
    assert_eq!(bot.hear_text().await, "with what is new");
    assert_eq!(bot.discord.health().unreadable, 3);
    fake.assert_clean();
}

#[tokio::test]
async fn every_delivery_twice_is_heard_once() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    fake.duplicate_events(4);
    let said = fake.say(fake.general(), anna, "one");
    let asked = fake.slash(fake.general(), anna, "status", &[]).unwrap();
    fake.repeat(said);
    fake.say(fake.general(), anna, "two");
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(bot.hear().await.id);
    }
    fake.wait_for_ack(&asked).await;
    let more = timeout(Duration::from_millis(300), bot.heard.recv()).await;
    assert!(more.is_err(), "{more:?}");
    let callbacks = fake.requests_to(
        "POST",
        "/interactions/{interaction_id}/{interaction_token}/callback",
    );
    assert_eq!(callbacks.len(), 1);
    fake.assert_clean();
}

/// Whatever the connection does, stopping takes less than 3 s ([`Bot::stop`] checks it).
#[tokio::test]
async fn stopping_ends() {
    let states: [Fault<()>; 4] = [
        ("live", |_| {}),
        ("zombie", |fake| {
            fake.make_zombies();
        }),
        ("between sessions", |fake| {
            fake.invalidate_sessions(false);
        }),
        ("waiting for READY", |fake| {
            fake.delay_ready(Duration::from_secs(60));
            fake.close_sockets(Some(4009));
        }),
    ];
    for (name, bring_about) in states {
        let fake = FakeDiscord::start().await;
        let bot = Bot::start(&fake).await;
        bring_about(&fake);
        bot.stop()
            .await
            .unwrap_or_else(|finding| panic!("{name}: {finding}"));
        fake.assert_clean();
    }
}

/// A server of the settings' own without a gateway is an end, not a way to another gateway.
#[tokio::test]
async fn a_gateway_that_cannot_be_looked_up_or_is_elsewhere_is_never_replaced() {
    install_tls();
    let fake = FakeDiscord::start().await;
    let discord = Discord::new(settings(&fake)).unwrap();
    discord.check().await.unwrap();
    let answers = [
        (500, json!({ "message": "no", "code": 0 })),
        (
            200,
            json!({ "url": "wss://gateway.discord.gg", "shards": 1 }),
        ),
    ];
    for (status, body) in answers {
        let fault = gateway_fakes::discord::Fault::Answer { status, body };
        fake.plan("GET", "/gateway/bot", fault);
        let (tell, _heard) = mpsc::channel(1);
        let listening = discord.listen(tell, CancellationToken::new());
        let ended = timeout(Duration::from_secs(5), listening).await;
        let finding = ended.expect("at once").expect_err("for good");
        assert!(!finding.hint.is_empty(), "{finding}");
    }
    assert_eq!(fake.gateway_count(|_| true), 0, "nobody was dialled");
    let elsewhere = DiscordSettings {
        gateway_url: Some("wss://gateway.discord.gg".to_owned()),
        ..settings(&fake)
    };
    assert!(Discord::new(elsewhere).is_err());
    fake.assert_clean();
}
