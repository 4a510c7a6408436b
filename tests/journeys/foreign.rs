//! Foreign text: what the fuzzer feeds for an hour, fed here for a minute in all, from the same seeds. A failure prints
//! the smallest input that shows it. `BATON_FOREIGN_SECONDS` sets the seconds per parser.

#[path = "../foreign/bodies.rs"]
mod bodies;
#[path = "../foreign/seeds.rs"]
mod seeds;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bodies::{BODIES, Body, body};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use seeds::seeds_of;

/// The longest input that is made; longer ones teach nothing and cost time.
const LONGEST: usize = 64 * 1024;
const CASES_PER_LOOK_AT_THE_CLOCK: u32 = 32;

macro_rules! every_body {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                fed(body(stringify!($name)));
            }
        )*

        #[test]
        fn every_parser_is_fed() {
            let fed = [$(stringify!($name)),*];
            let all: Vec<&str> = BODIES.iter().map(|body| body.name).collect();
            assert_eq!(all, fed);
        }
    };
}

every_body!(
    failure_line,
    failure_text,
    failure_body,
    failure_headers,
    usage_line,
    decision_line,
    portal,
    claude_stream,
    codex_stream,
    opencode_stream,
    anthropic_stream,
    openai_stream,
    visible_text,
    discord_frame,
    slack_envelope,
);

/// Feeds the body its seeds as they are, then changed, until its time is over.
fn fed(body: &Body) {
    let seeds = Arc::new(seeds_of(body));
    assert!(!seeds.is_empty(), "{} has no seeds", body.name);
    for seed in seeds.iter() {
        (body.run)(seed);
    }
    let seconds = std::env::var("BATON_FOREIGN_SECONDS").map_or(1.0, |text| {
        text.parse::<f64>().expect("a number of seconds")
    });
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let config = Config {
        cases: CASES_PER_LOOK_AT_THE_CLOCK,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let mut cases = 0;
    while cases == 0 || Instant::now() < until {
        let inputs = changed(Arc::clone(&seeds));
        let outcome = runner.run(&inputs, |input| {
            (body.run)(&input);
            Ok(())
        });
        if let Err(why) = outcome {
            panic!("{}: {why}", body.name);
        }
        cases += CASES_PER_LOOK_AT_THE_CLOCK;
        // A runner counts its cases once; the next one goes on where its dice lie.
        runner = TestRunner::new_with_rng(config.clone(), runner.new_rng());
    }
    println!(
        "{}: {} seeds, {cases} changed inputs",
        body.name,
        seeds.len()
    );
}

/// One way to spoil a text.
#[derive(Debug, Clone)]
enum Change {
    Cut(Index, u16),
    Repeat(Index, u16, u8),
    Insert(Index, &'static str),
    Byte(Index, u8),
    Splice(Index, Index, u16),
}

/// What breaks parsers of other people.
const TOKENS: &[&str] = &[
    "null",
    "{}",
    "[]",
    "[[[[[[[[",
    "{\"a\":",
    "\"",
    "\\ud800",
    "\u{0}",
    "NaN",
    "1e400",
    "-1",
    "0",
    "1",
    "99999-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "18446744073709551616",
    "1e-9",
    "true",
    "<html>",
    "data: ",
    "\n\n",
    "event: error\n",
    "\u{202e}",
    "🦀",
    "e\u{301}",
    "resets ",
    " (Europe/Berlin)",
    "in 5 hours",
    "99999h",
    "0s",
    "12:60",
    "Feb 30",
    "\\\\\\\"",
    "```",
    "<think>",
    "</think>",
    ":",
    ";",
    "%",
    "429",
];

fn changed(seeds: Arc<Vec<Vec<u8>>>) -> impl Strategy<Value = Vec<u8>> {
    let change = prop_oneof![
        (any::<Index>(), any::<u16>()).prop_map(|(at, bytes)| Change::Cut(at, bytes)),
        (any::<Index>(), any::<u16>(), 1_u8..24)
            .prop_map(|(at, bytes, times)| Change::Repeat(at, bytes, times)),
        (any::<Index>(), proptest::sample::select(TOKENS))
            .prop_map(|(at, token)| Change::Insert(at, token)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<Index>(), any::<Index>(), any::<u16>())
            .prop_map(|(at, from, bytes)| Change::Splice(at, from, bytes)),
    ];
    (any::<Index>(), vec(change, 0..8)).prop_map(move |(seed, changes)| {
        let mut text = seed.get(&seeds).clone();
        for change in &changes {
            apply(change, &mut text, &seeds);
        }
        text.truncate(LONGEST);
        text
    })
}

fn apply(change: &Change, text: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let end =
        |from: usize, bytes: u16, len: usize| from.saturating_add(usize::from(bytes)).min(len);
    let place = |at: &Index, len: usize| at.index(len + 1);
    match change {
        Change::Cut(at, bytes) => {
            let from = place(at, text.len());
            let to = end(from, *bytes, text.len());
            text.drain(from..to);
        }
        Change::Repeat(at, bytes, times) => {
            let from = place(at, text.len());
            let part = text[from..end(from, *bytes, text.len())].repeat(usize::from(*times));
            text.splice(from..from, part);
        }
        Change::Insert(at, token) => {
            let from = place(at, text.len());
            text.splice(from..from, token.bytes());
        }
        Change::Byte(at, byte) => {
            if !text.is_empty() {
                let from = at.index(text.len());
                text[from] = *byte;
            }
        }
        Change::Splice(at, other, bytes) => {
            let other = other.get(seeds);
            let from = at.index(other.len() + 1);
            let part = other[from..end(from, *bytes, other.len())].to_vec();
            let into = place(at, text.len());
            text.splice(into..into, part);
        }
    }
    text.truncate(LONGEST);
}

/// Sixteen times the text may cost about sixteen times the time. Timed, so it runs in `scripts/soak` alone; both sizes in
/// the same run, the fastest of several, and a whole order of magnitude of room.
#[test]
fn soak_foreign_text_costs_time_in_proportion() {
    if std::env::var_os("BATON_SOAK").is_none() {
        println!("SKIPPED: timing runs with BATON_SOAK=1 (scripts/soak)");
        return;
    }
    for body in BODIES {
        let mut worst = (0.0_f64, 0);
        let seeds = seeds_of(body);
        let every = seeds.len().div_ceil(TIMED_SEEDS).max(1);
        for (number, seed) in seeds.iter().enumerate().step_by(every) {
            let grown = |bytes: usize| seed.repeat(bytes.div_ceil(seed.len()));
            let (small, large) = (grown(16 * 1024), grown(256 * 1024));
            let growth = large.len() as f64 / small.len() as f64;
            let ratio = fastest(body, &large) / fastest(body, &small).max(20e-6);
            if ratio / growth > worst.0 {
                worst = (ratio / growth, number);
            }
        }
        println!(
            "{}: at worst {:.1} times the proportion (seed {})",
            body.name, worst.0, worst.1
        );
        assert!(worst.0 < 8.0, "{} grows faster than its text", body.name);
    }
}

/// How many seeds of each parser are timed, spread over all of them.
const TIMED_SEEDS: usize = 30;

fn fastest(body: &Body, text: &[u8]) -> f64 {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            (body.run)(text);
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}
