//! Many conversations stream at once through one adapter, and people give commands meanwhile. Half of the answers end early,
//! so that their final texts compete with the edits of the others. The limits of fake and adapter run 20 times faster than
//! the platforms'; the pace of edits and everything else does not.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use support::chat::Shown;
use support::chat::crowd::{Crowd, DiscordCrowd, SPEED, SlackCrowd};
use support::chat::talker::Talker;

/// A model says a word in this time.
const WORD_EVERY: Duration = Duration::from_millis(100);

/// What nobody waits longer for, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// How much of it.
#[derive(Debug, Clone, Copy)]
struct Size {
    conversations: usize,
    /// Words of a long answer; a short one has half of them.
    words: usize,
    commands: usize,
    /// What 99 of 100 acknowledgements take at most.
    ack: Duration,
}

const SMALL: Size = Size {
    conversations: 24,
    words: 30,
    commands: 12,
    ack: Duration::from_secs(3), // the platforms' own bound: the machine may be busy with other tests
};

const FULL: Size = Size {
    conversations: 200,
    words: 80,
    commands: 200,
    ack: Duration::from_millis(300),
};

#[tokio::test(flavor = "multi_thread")]
async fn two_dozen_conversations_stream_at_once_on_discord() {
    stream::<DiscordCrowd>(SMALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_dozen_conversations_stream_at_once_on_slack() {
    stream::<SlackCrowd>(SMALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn soak_200_conversations_stream_at_once_on_discord() {
    if asked_for() {
        stream::<DiscordCrowd>(FULL).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn soak_200_conversations_stream_at_once_on_slack() {
    if asked_for() {
        stream::<SlackCrowd>(FULL).await;
    }
}

fn asked_for() -> bool {
    let asked = std::env::var_os("BATON_SOAK").is_some();
    if !asked {
        println!("SKIPPED: 200 conversations stream with BATON_SOAK=1 (scripts/soak)");
    }
    asked
}

/// The words of a conversation's answer. Every tenth is longer than one message of the platform.
fn words(number: usize, size: Size, limit: usize) -> Vec<String> {
    let count = match number % 2 {
        0 => size.words / 2,
        _ => size.words,
    };
    let padding = match number % 10 {
        7 => "x".repeat(limit * 3 / 2 / count),
        _ => String::new(),
    };
    let word = |word| format!("{number:03}-{word:03}{padding} ");
    let mut words: Vec<String> = (0..count).map(word).collect();
    words.push(format!("end-{number:03}"));
    words
}

async fn stream<C: Crowd>(size: Size) {
    let limit = C::shape().limit;
    let talker = Talker::new(WORD_EVERY, size.conversations, move |prompt| {
        let number = prompt.trim_start_matches("question ").parse();
        words(number.expect("a number"), size, limit)
    });
    let mut crowd = C::open(size.conversations, &talker).await;
    let began = (Instant::now(), crowd.clock().now());
    for number in 0..size.conversations {
        crowd.ask(number, &format!("question {number}"));
    }
    let all = tokio::time::timeout(PATIENCE, talker.all_asked()).await;
    assert!(
        all.is_ok(),
        "only {} of them reached the model",
        talker.asked()
    );
    for number in 0..size.commands {
        crowd.command(number % size.conversations);
        tokio::time::sleep(Duration::from_millis(20)).await; // people do not type all at once
    }
    let finals = finals(&crowd, size).await;
    let took = began.0.elapsed();
    crowd.stage().stop().await;
    crowd.assert_clean();
    for number in 0..size.conversations {
        check_order(&crowd.shown(number), &words(number, size, limit), limit);
    }
    let late = lateness(&talker, &finals, began);
    report::<C>(&crowd, size, &late, took);
}

/// Waits until every final text stands; when it was shown, by the fake's clock.
async fn finals<C: Crowd>(crowd: &C, size: Size) -> Vec<Timestamp> {
    let end = Instant::now() + PATIENCE;
    let mut left: BTreeSet<usize> = (0..size.conversations).collect();
    let mut finals = vec![Timestamp::UNIX_EPOCH; size.conversations];
    while !left.is_empty() {
        left.retain(|number| {
            let last = format!("end-{number:03}");
            let mut shown = crowd.shown(*number).into_iter();
            let whole = shown.rfind(|one| one.text.ends_with(&last));
            if let Some(at) = whole.and_then(|one| one.at) {
                finals[*number] = at;
            }
            finals[*number] == Timestamp::UNIX_EPOCH
        });
        let traffic = crowd.traffic();
        assert!(
            Instant::now() < end,
            "{} final texts are lost, of {left:?}; {traffic:?}",
            left.len()
        );
        tokio::time::sleep(Duration::from_millis(250)).await; // looking costs the fake more than waiting
    }
    finals
}

/// How long after the model's last word each final text was shown, by the number of the conversation.
fn lateness(
    talker: &Talker,
    finals: &[Timestamp],
    (began, clock): (Instant, Timestamp),
) -> Vec<Duration> {
    let ended = talker.ended();
    let late = finals.iter().enumerate().map(|(number, at)| {
        let model = ended[&format!("question {number}")].duration_since(began);
        let shown = at.duration_since(clock).unsigned_abs();
        shown.saturating_sub(model)
    });
    late.collect()
}

/// The pieces stand in order, joined they are the answer, and no edit ever took anything back.
fn check_order(shown: &[Shown], words: &[String], limit: usize) {
    let joined: Vec<&str> = shown.iter().map(|one| one.text.trim()).collect();
    let whole = words.concat();
    assert_eq!(joined.join(" "), whole, "in order and nothing lost");
    let most = whole.len() / limit + 2;
    assert!(shown.len() <= most, "{} messages", shown.len());
    for one in shown {
        let lengths: Vec<usize> = one.earlier.iter().map(String::len).collect();
        assert!(
            lengths.is_sorted(),
            "an older text came after a newer one: {lengths:?}"
        );
        assert!(lengths.last().is_none_or(|last| *last <= one.raw.len()));
        assert!(!one.pinged);
    }
}

fn share(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted[at.min(sorted.len() - 1)]
}

/// Prints the figures, and fails where a promise is not kept.
fn report<C: Crowd>(crowd: &C, size: Size, late: &[Duration], took: Duration) {
    let mut acks: Vec<Duration> = crowd
        .acks()
        .into_iter()
        .map(|ack| ack.expect("every command is acknowledged"))
        .collect();
    acks.sort();
    let traffic = crowd.traffic();
    // Even ones end while the odd ones still stream.
    let mut early: Vec<Duration> = late.iter().copied().step_by(2).collect();
    let mut all = late.to_vec();
    early.sort();
    all.sort();
    let bound = size.conversations as f64 / C::FINALS_PER_SECOND + 10.0;
    let bound = Duration::from_secs_f64(bound);
    println!(
        "{}: {} conversations at once, limits {SPEED} times faster, {took:.1?} in all\n  \
         final texts after the model's end: p50 {:.1?}, p99 {:.1?}, longest {:.1?} (bound {bound:.1?}); \
         of those that ended while others streamed: longest {:.1?}\n  \
         acks of {} commands: p50 {:.0?}, p99 {:.0?}, longest {:.0?}\n  \
         requests: {} posts, {} edits, {} of them met a limit; memory {} MiB",
        C::NAME,
        size.conversations,
        share(&all, 50),
        share(&all, 99),
        share(&all, 100),
        share(&early, 100),
        acks.len(),
        share(&acks, 50),
        share(&acks, 99),
        share(&acks, 100),
        traffic.posts,
        traffic.edits,
        traffic.limited,
        memory_mib(),
    );
    assert!(share(&all, 100) <= bound, "a final text came too late");
    assert!(share(&acks, 99) < size.ack, "acknowledged too late");
    // Refused by chance where two clocks meet, never as a habit.
    let few = (traffic.posts + traffic.edits) / 20;
    assert!(traffic.limited <= few, "{traffic:?}");
}

/// What this process holds, fakes and all.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
