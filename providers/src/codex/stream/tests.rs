//! Every capture of the real program (0.171.0 against a model API on loopback) is a row of [`ENDS`]; what the richer ones
//! report is written out. `app-server` is the whole of one connection: three turns of one thread.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_796_000_000).unwrap()
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/codex")
}

fn capture(name: &str) -> String {
    std::fs::read_to_string(captures().join(name).with_extension("jsonl")).unwrap()
}

/// Takes a line of a server; a turn that begins after the end of the last one begins a new stream, as in life.
fn push(stream: &mut Stream, line: &str) -> Vec<Event> {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let (Some(method), Some(params)) = (text(&message, "method"), message.get("params")) else {
        return Vec::new();
    };
    stream.push(method, params, now())
}

fn read(lines: &str) -> (Vec<Event>, Stream) {
    let mut stream = Stream::new("sub".into(), TimeZone::UTC);
    let events = lines
        .lines()
        .flat_map(|line| push(&mut stream, line))
        .collect();
    (events, stream)
}

fn end_words(end: Option<&TurnEnd>) -> String {
    match end {
        Some(TurnEnd::Answered(answer)) => format!("answered {:?}", answer.text),
        Some(TurnEnd::Failed(failure)) => {
            let mut words = format!("{:?} {:?}", failure.kind, failure.scope);
            if let Some(window) = &failure.window {
                write!(words, " {window}").unwrap();
            }
            if let Some(at) = failure.retry_at {
                write!(words, " {}", at.as_second()).unwrap();
            }
            words
        }
        Some(TurnEnd::Interrupted) => "interrupted".to_owned(),
        None => "no end".to_owned(),
    }
}

/// What each capture of one turn must mean. (The recorded API ended each delta with a space: what was streamed stands.)
const ENDS: &[(&str, &str)] = &[
    ("app-conn-refused", "Transport NetworkEdge"),
    ("app-err-400-other", "BadRequest Request"),
    ("app-err-401", "Auth Account"),
    ("app-err-403-wall", "Transport NetworkEdge"),
    ("app-err-404-model", "BadRequest AccountModel"),
    ("app-err-500", "Overloaded UpstreamShared"),
    ("app-err-503-overloaded", "Overloaded UpstreamShared"),
    ("app-err-content-filter", "ContentFilter Request"),
    ("app-err-context-length", "ContextOverflow Session"),
    ("app-html-200", "Transport Request"),
    ("app-resumed-usage", "answered \"two \""),
    ("app-rl-429-plain", "RateLimit Burst"),
    ("app-rl-insufficient-quota", "Billing Account"),
    ("app-rl-stream-rate-limit", "RateLimit Burst"),
    (
        "app-rl-usage-limit",
        "RateLimit Account five_hour 1796060000",
    ),
    (
        "app-rl-usage-limit-no-headers",
        "RateLimit Account 1796059980",
    ),
    ("app-rl-usage-limit-no-reset", "RateLimit Account"),
    ("app-rl-usage-not-included", "Billing Account"),
    ("app-stream-cut", "Transport Request"),
    ("app-stream-cut-then-ok", "answered \"second try \""),
    ("app-tools", "answered \"done \""),
];

#[test]
fn every_capture_ends_as_it_must() {
    let named: BTreeSet<String> = std::fs::read_dir(captures())
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .filter(|name| name.starts_with("app-") && name != "app-server")
        .collect();
    let rows: BTreeSet<String> = ENDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named, rows, "every capture has a row");
    for (name, expected) in ENDS {
        let (_, stream) = read(&capture(name));
        assert_eq!(end_words(stream.end()), *expected, "{name}");
    }
}

#[test]
fn one_connection_of_three_turns() {
    let lines = capture("app-server");
    let mut turns = Vec::new();
    let mut stream = Stream::new("sub".into(), TimeZone::UTC);
    let mut events = Vec::new();
    for line in lines.lines() {
        events.extend(push(&mut stream, line));
        if stream.end().is_some() {
            let before = Stream {
                before: Counts {
                    input: 1200,
                    cached: 1024,
                    cache_write: 0,
                    output: 42,
                },
                ..Stream::new("sub".into(), TimeZone::UTC)
            };
            turns.push((
                std::mem::take(&mut events),
                std::mem::replace(&mut stream, before),
            ));
        }
    }
    let ends: Vec<String> = turns
        .iter()
        .map(|(_, stream)| end_words(stream.end()))
        .collect();
    assert_eq!(
        ends,
        [
            "answered \"Hello from the mock.\"",
            "interrupted",
            "RateLimit Account five_hour 1796000930",
        ]
    );
    let deltas = turns[0]
        .0
        .iter()
        .filter(|event| matches!(event, Event::Text { .. }));
    assert_eq!(deltas.count(), 4);
    let usage = |turn: usize| {
        turns[turn].0.iter().find_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        })
    };
    let first = TokenUsage {
        input: Some(176),
        output: Some(42),
        cache_read: Some(1024),
        cache_write: Some(0),
    };
    assert_eq!(usage(0), Some(first));
    assert_eq!(
        usage(1),
        None,
        "an interrupted turn repeats the totals of the one before"
    );
    let limits: Vec<(String, Option<f64>)> = turns[0]
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Limit(reading) => Some((reading.window.clone(), reading.used_pct)),
            _ => None,
        })
        .collect();
    assert_eq!(
        limits,
        [
            ("five_hour".to_owned(), Some(88.0)),
            ("seven_day".to_owned(), Some(40.0))
        ]
    );
}

#[test]
fn tools_their_outcomes_and_the_plan_are_reported() {
    let (events, _) = read(&capture("app-tools"));
    let shown: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCall {
                name, arguments, ..
            } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                Some(format!(
                    "{name} {}",
                    arguments.get("command").unwrap_or(&Value::Null)
                ))
            }
            Event::ToolResult { outcome, text, .. } => Some(format!("{outcome:?} {text:?}")),
            Event::Todos(todos) => {
                let words: Vec<String> = todos
                    .iter()
                    .map(|todo| format!("{} {} {}", todo.id, todo.status.word(), todo.content))
                    .collect();
                Some(words.join("; "))
            }
            Event::Activity { what } => Some(what.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        shown,
        [
            "thinking",
            "exec_command \"/bin/bash -lc 'echo hello'\"",
            "Completed \"hello\\n\"",
            "exec_command \"/bin/bash -lc 'exit 3'\"",
            "Failed \"\"",
            "apply_patch null",
            "Completed \"\"",
            "1 completed one; 2 in_progress two; 3 pending three",
        ]
    );
}

#[test]
fn what_a_broken_stream_left_half_said_goes() {
    let (events, _) = read(&capture("app-stream-cut-then-ok"));
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
    let gone = at(&|event| *event == Event::Retract { from_block: 0 }).unwrap();
    let first = at(&|event| matches!(event, Event::Text { .. })).unwrap();
    assert!(first < gone);
    let again = &events[gone..];
    assert!(
        again
            .iter()
            .any(|event| matches!(event, Event::Text { block: 0, delta } if delta == "second "))
    );
}

#[test]
fn a_resumed_thread_counts_only_its_own_tokens() {
    let (_, stream) = read(&capture("app-resumed-usage"));
    let Some(TurnEnd::Answered(answer)) = stream.end() else {
        panic!("{:?}", stream.end())
    };
    let usage = TokenUsage {
        input: Some(376),
        output: Some(12),
        cache_read: Some(2324),
        cache_write: Some(0),
    };
    assert_eq!(answer.usage, usage);
}

#[test]
fn a_retry_is_a_sign_of_life_until_something_comes() {
    let lines = capture("app-stream-cut-then-ok");
    let mut stream = Stream::new("sub".into(), TimeZone::UTC);
    let retrying: Vec<bool> = lines
        .lines()
        .map(|line| {
            push(&mut stream, line);
            stream.retrying().is_some()
        })
        .collect();
    assert!(retrying.iter().any(|retrying| *retrying) && !retrying.last().unwrap());
}

#[test]
fn other_turns_and_unknown_things_are_nothing() {
    let mut stream = Stream::new("sub".into(), TimeZone::UTC);
    stream.push("turn/started", &json!({"turn": {"id": "mine"}}), now());
    let others = [
        (
            "item/agentMessage/delta",
            json!({"turnId": "other", "itemId": "m", "delta": "x"}),
        ),
        (
            "turn/completed",
            json!({"turn": {"id": "other", "status": "completed"}}),
        ),
        ("newer/thing", json!({"turnId": "mine"})),
        (
            "item/completed",
            json!({"turnId": "mine", "item": {"type": "error", "message": "Model metadata"}}),
        ),
        ("item/completed", json!({"turnId": "mine"})),
        ("turn/plan/updated", json!({"turnId": "mine", "plan": 3})),
    ];
    for (method, params) in others {
        assert_eq!(stream.push(method, &params, now()), [], "{method}");
    }
    assert!(stream.end().is_none());
    stream.push(
        "turn/completed",
        &json!({"turn": {"id": "mine", "status": "failed", "error": null}}),
        now(),
    );
    assert_eq!(end_words(stream.end()), "Crashed Request");
}

proptest! {
    /// Lines in any order, damaged or repeated, never panic, and nothing is reported after the end.
    #[test]
    fn no_order_of_records_breaks_it(order in proptest::collection::vec((0_usize..40, 0_usize..900), 0..60)) {
        let lines: Vec<String> = ["app-tools", "app-rl-usage-limit", "app-stream-cut-then-ok"]
            .iter()
            .flat_map(|name| capture(name).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let mut stream = Stream::new("sub".into(), TimeZone::UTC);
        for (at, cut) in order {
            let line = &lines[at % lines.len()];
            let damaged: String = line.chars().take(if cut < 450 { cut } else { usize::MAX }).collect();
            let over = stream.end().is_some();
            let events = push(&mut stream, &damaged);
            prop_assert!(!over || events.is_empty());
        }
    }
}
