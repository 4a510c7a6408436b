//! Many conversations streaming at once: no final text is lost or late, acknowledgements stay quick, limits are kept.
//! The usual run has twenty; with `BATON_SOAK=1` (scripts/soak) it has two hundred, at Discord's real limits.

use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::ReplyOp;
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{ChannelId, UserId};
use platforms::Platform;
use platforms::adapter::{Content, Heard};
use tokio::time::{Instant, sleep};

use crate::bot::{Bot, target};

/// All writes of a bot in one second.
const WRITES: f64 = 50.0;

/// How long every answer grows.
const GROWS_FOR: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_conversations_stream_at_once() {
    let soaking = std::env::var("BATON_SOAK").as_deref() == Ok("1");
    let (count, ack_within) = match soaking {
        true => (200, Duration::from_millis(300)),
        false => (20, Duration::from_secs(2)),
    };
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut bot = Bot::start(&fake).await;
    let rooms: Vec<ChannelId> = (0..count)
        .map(|n| fake.channel(&format!("room-{n}")))
        .collect();
    for room in &rooms {
        fake.say(*room, anna, "go");
    }
    let mut turns = Vec::new();
    while turns.len() < rooms.len() {
        let heard = bot.hear().await;
        if matches!(&heard.content, Content::Text { text, .. } if text == "go") {
            turns.push(heard);
        }
    }
    let order: Vec<String> = turns.iter().map(|turn| turn.conversation.clone()).collect();
    let want: Vec<String> = rooms.iter().map(ToString::to_string).collect();
    assert_eq!(order, want, "heard in the order they were said");

    let acks = grow(&fake, &bot, &turns, anna).await;
    let ended = Instant::now();
    for turn in &turns {
        say(
            &bot,
            turn,
            &answer(&format!("the end of {}", turn.conversation), true),
        )
        .await;
        say(&bot, turn, &notice()).await;
    }
    bot.chat.drained().await;
    let took = ended.elapsed();

    for room in &rooms {
        let shown = fake.from_bot(*room);
        let texts: Vec<&str> = shown.iter().map(|one| one.text.as_str()).collect();
        let end = format!("the end of {room}");
        assert_eq!(texts, [end.as_str(), "said last"]);
    }
    let (median, p99) = (percentile(&acks, 50), percentile(&acks, 99));
    println!(
        "{count} conversations: all final texts {took:?} after the last word, acknowledgements p50 {median:?} p99 {p99:?}, memory {}",
        memory()
    );
    // Two writes of each: the final edit and the notice.
    let limit = Duration::from_secs_f64(2.0 * f64::from(count) / WRITES + 10.0);
    assert!(took <= limit, "{took:?} of {limit:?}");
    assert!(p99 <= ack_within, "{p99:?}");
    assert_eq!(fake.invalid_requests(), 0, "limits were kept, not met");
    bot.stop().await.unwrap();
    fake.assert_clean();
}

/// Lets every answer grow, and somebody use a command twelve times a second; how long each acknowledgement took.
async fn grow(fake: &FakeDiscord, bot: &Bot, turns: &[Heard], anna: UserId) -> Vec<Duration> {
    let began = Instant::now();
    let mut asked = Vec::new();
    for tick in 0.. {
        if began.elapsed() >= GROWS_FOR {
            break;
        }
        asked.push(fake.slash(fake.general(), anna, "status", &[]).unwrap());
        if tick % 3 == 0 {
            for turn in turns {
                say(bot, turn, &answer(&"word ".repeat(tick + 1), false)).await;
            }
        }
        sleep(Duration::from_millis(80)).await;
    }
    let mut acks = Vec::new();
    for asked in &asked {
        acks.push(fake.wait_for_ack(asked).await.after);
    }
    acks
}

async fn say(bot: &Bot, turn: &Heard, op: &ReplyOp) {
    let id = TurnId::new(turn.conversation.clone());
    bot.chat
        .deliver(&target(turn), Some(&id), op)
        .await
        .expect("taken");
}

fn answer(text: &str, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: String::new(),
        replaced: false,
        done,
    }
}

fn notice() -> ReplyOp {
    ReplyOp::Notice {
        text: "said last".to_owned(),
    }
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    let at = times.len() * percent / 100;
    times[at.min(times.len() - 1)]
}

/// What the kernel says of this process (Linux); the fake and the test are part of it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.unwrap_or("unknown").to_owned()
}
