//! Every capture of the real program is a row of [`ENDS`] and a snapshot of its events.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// Shortly before the resets of the captures.
const NOW: Timestamp = Timestamp::constant(1_795_996_800, 0);

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/claude")
}

fn capture(name: &str) -> String {
    std::fs::read_to_string(captures().join(name).with_extension("jsonl")).unwrap()
}

fn read(lines: &str) -> (Vec<Event>, Stream) {
    let mut stream = Stream::new("sub".into());
    let events = lines
        .lines()
        .flat_map(|line| stream.push(line, NOW))
        .collect();
    (events, stream)
}

/// One word per end; failures with kind, scope, window and reset.
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
        Some(TurnEnd::SessionMissing) => "session missing".to_owned(),
        None => "no result".to_owned(),
    }
}

/// What each capture must mean.
const ENDS: &[(&str, &str)] = &[
    ("bare", "answered \"Hello from the mock.\""),
    ("close-before-response", "Transport Request"),
    ("compact-always-too-long", "ContextOverflow Session"),
    ("compact-disabled-too-long", "ContextOverflow Session"),
    (
        "compact-reactive",
        "answered \"Answer three after compaction.\"",
    ),
    ("conn-refused", "Transport Request"),
    ("control-requests", "answered \"Hello from the mock.\""),
    ("empty-200", "Transport Request"),
    ("err-400-other", "BadRequest Request"),
    ("err-401", "Auth Account"),
    ("err-402-credit", "Billing Account"),
    ("err-403", "Auth Account"),
    ("err-404-model", "BadRequest AccountModel"),
    ("err-413", "ContextOverflow Session"),
    ("err-429-plain-r0", "RateLimit Burst"),
    ("err-429-plain-r2", "RateLimit Burst"),
    ("err-500-r2", "Overloaded UpstreamShared"),
    ("err-529-r2", "Overloaded UpstreamShared"),
    ("err-prompt-too-long-400", "ContextOverflow Session"),
    (
        "fail-first-then-resume",
        "answered \"Hello from the mock.\"",
    ),
    ("fail-first-then-session-id", "no result"),
    ("fail-first-turn", "RateLimit Account five_hour 1796000298"),
    ("interrupt-control", "interrupted"),
    ("no-credentials", "Auth Account"),
    ("oauth-401", "Auth Account"),
    ("oauth-403-revoked", "Auth Account"),
    ("oauth-429-no-unified-headers", "Overloaded UpstreamShared"),
    ("oauth-credfile", "answered \"Hello from the mock.\""),
    ("oauth-ok", "answered \"Hello from the mock.\""),
    ("ok-basic", "answered \"Hello from the mock.\""),
    ("ok-json", "answered \"Hello from the mock.\""),
    ("ok-partial", "answered \"Hello from the mock.\""),
    ("ok-text", "no result"),
    ("retry-default-429", "RateLimit Burst"),
    ("retry-default-500", "Overloaded UpstreamShared"),
    ("retry-default-529", "Overloaded UpstreamShared"),
    ("rl-429-retry-after-3600-apikey", "RateLimit Burst"),
    (
        "rl-7d-opus-oauth",
        "RateLimit AccountModel seven_day_opus 1796255024",
    ),
    (
        "rl-7d-sonnet-oauth",
        "RateLimit AccountModel seven_day_sonnet 1796255022",
    ),
    (
        "rl-overage-in-use-oauth",
        "answered \"Hello from the mock.\"",
    ),
    (
        "rl-unified-allowed-apikey",
        "answered \"Hello from the mock.\"",
    ),
    (
        "rl-unified-allowed-oauth",
        "answered \"Hello from the mock.\"",
    ),
    ("rl-unified-no-retry-after-apikey", "RateLimit Burst"),
    (
        "rl-unified-no-retry-after-oauth",
        "RateLimit Account five_hour 1796001213",
    ),
    (
        "rl-unified-rejected-7d-oauth",
        "RateLimit Account seven_day 1796254974",
    ),
    ("rl-unified-rejected-apikey", "RateLimit Burst"),
    (
        "rl-unified-rejected-oauth",
        "RateLimit Account five_hour 1795999371",
    ),
    (
        "rl-unified-warning-oauth",
        "answered \"Hello from the mock.\"",
    ),
    ("session-continue", "answered \"42\""),
    ("session-continue-none", "answered \"42\""),
    ("session-id-in-use", "no result"),
    ("session-id-not-uuid", "no result"),
    ("session-new-id-name", "answered \"Noted.\""),
    (
        "session-rename-on-resume",
        "answered \"Hello from the mock.\"",
    ),
    ("session-resume-fork", "answered \"42\""),
    ("session-resume-id", "answered \"42\""),
    ("session-resume-missing", "session missing"),
    ("session-resume-missing-title", "Crashed Request"),
    ("session-resume-other-cwd", "answered \"42\""),
    (
        "session-resume-renamed",
        "answered \"Hello from the mock.\"",
    ),
    ("session-resume-title", "answered \"42\""),
    ("session-resume-title-ambiguous", "Crashed Request"),
    ("session-resume-title-other-cwd", "Crashed Request"),
    ("session-resume-truncated-transcript", "answered \"Two.\""),
    ("sigint", "interrupted"),
    ("sigint-then-resume", "answered \"Resumed fine.\""),
    ("sigterm", "no result"),
    ("sigterm-then-resume", "answered \"Resumed fine.\""),
    (
        "slow-mid-stream-idle",
        "answered \"Hello from the mock with a long answer.\"",
    ),
    ("slow-no-headers", "Timeout Request"),
    ("stdin-open-pipe", "answered \"Hello from the mock.\""),
    ("stdin-two-turns", "answered \"Hello from the mock.\""),
    ("stop-context-window", "ContextOverflow Session"),
    ("stop-max-tokens", "BadRequest Request"),
    ("stop-refusal", "ContentFilter Request"),
    ("stream-clean-eof", "Transport Request"),
    ("stream-cut", "Transport Request"),
    ("stream-cut-no-fallback", "Transport Request"),
    (
        "stream-cut-partial",
        "answered \"Full answer from the non-streaming fallback.\"",
    ),
    ("stream-cut-then-ok", "answered \"Complete second answer.\""),
    ("stream-error-event", "Overloaded UpstreamShared"),
    ("stream-html-200", "Transport Request"),
    (
        "stream-malformed",
        "answered \"Full answer from the non-streaming fallback.\"",
    ),
    ("thinking", "answered \"42\""),
    ("tool-bash-allowed", "answered \"Let me look.\\n\\nDone.\""),
    ("tool-bash-denied", "answered \"Let me look.\\n\\nDone.\""),
    ("tool-bash-dontask", "answered \"Let me look.\\n\\nDone.\""),
    ("tool-bypass-root", "no result"),
    (
        "tool-bypass-root-sandboxenv",
        "answered \"Let me look.\\n\\nDone.\"",
    ),
    ("tool-read", "answered \"Let me look.\\n\\nDone.\""),
    (
        "tool-write-acceptedits",
        "answered \"Let me look.\\n\\nDone.\"",
    ),
    ("tools-none", "answered \"Hello from the mock.\""),
];

#[test]
fn every_capture_ends_as_it_must() {
    for (name, expected) in ENDS {
        let (_, stream) = read(&capture(name));
        assert_eq!(end_words(stream.end()), *expected, "{name}");
    }
}

#[test]
fn no_capture_is_forgotten() {
    let on_disk: BTreeSet<String> = std::fs::read_dir(captures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "session-transcript-file") // a file of the program, not its output
        .collect();
    let listed: BTreeSet<String> = ENDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(on_disk, listed);
}

#[test]
fn the_events_of_every_capture_are_as_recorded() {
    let mut shown = String::new();
    for (name, _) in ENDS {
        writeln!(shown, "== {name}").unwrap();
        for event in read(&capture(name)).0 {
            writeln!(shown, "{}", event_words(&event)).unwrap();
        }
    }
    insta::assert_snapshot!("captures", shown);
}

fn event_words(event: &Event) -> String {
    match event {
        Event::Session { .. } => "session".to_owned(),
        Event::Text { block, delta } => format!("text {block} {delta:?}"),
        Event::Retract { from_block } => format!("retract from {from_block}"),
        Event::ToolCall {
            id,
            name,
            arguments,
        } => format!("call {id} {name} {arguments}"),
        Event::ToolResult { id, outcome, text } => {
            let start: String = text.chars().take(60).collect();
            format!("result {id} {outcome:?} {start:?}")
        }
        Event::Limit(reading) => format!(
            "limit {} {:?} {:?} {:?}",
            reading.window,
            reading.status,
            reading.used_pct,
            reading.resets_at.map(Timestamp::as_second)
        ),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_broken_stream_is_never_shown_twice() {
    for name in ["stream-cut-partial", "stream-cut-then-ok"] {
        let (events, stream) = read(&capture(name));
        let mut blocks: Vec<String> = Vec::new();
        for event in events {
            match event {
                Event::Text { block, delta } => {
                    let at = block as usize;
                    blocks.resize(blocks.len().max(at + 1), String::new());
                    blocks[at].push_str(&delta);
                }
                Event::Retract { from_block } => blocks.truncate(from_block as usize),
                _ => {}
            }
        }
        let Some(TurnEnd::Answered(answer)) = stream.end() else {
            panic!("{name} was answered");
        };
        assert_eq!(blocks.join("\n\n"), answer.text, "{name}");
    }
}

#[test]
fn the_failed_turn_names_its_window_and_keeps_words_for_people() {
    let (_, stream) = read(&capture("rl-unified-rejected-oauth"));
    let Some(TurnEnd::Failed(failure)) = stream.end() else {
        panic!("the turn failed");
    };
    assert_eq!(
        failure.detail,
        "You've hit your 5-hour limit · resets 12:42am (UTC)"
    );
}

#[test]
fn the_payer_and_the_version_are_known() {
    let (_, with_key) = read(&capture("ok-basic"));
    assert_eq!(with_key.billed_key(), Some("ANTHROPIC_API_KEY"));
    let (_, with_login) = read(&capture("oauth-ok"));
    assert_eq!(
        (with_login.billed_key(), with_login.version()),
        (None, Some("2.1.332"))
    );
}

#[test]
fn nothing_of_a_sub_agent_is_shown() {
    let line = r#"{"type":"assistant","parent_tool_use_id":"t","message":{"id":"m","content":[{"type":"text","text":"x"}]}}"#;
    assert_eq!(read(line).0, []);
}

#[test]
fn the_todo_tools_become_the_list() {
    let lines = [
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"TaskCreate","input":{"subject":"first thing","description":"d"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":"Task #1 created successfully: first thing"}]},"tool_use_result":{"task":{"id":"1","subject":"first thing","description":"d"}}}"#,
    ];
    let (events, _) = read(&lines.join("\n"));
    let last = events.last().unwrap();
    assert!(
        matches!(last, Event::Todos(list) if list[0].content == "first thing"),
        "{last:?}"
    );
}

fn all_lines() -> Vec<String> {
    let lines = ENDS
        .iter()
        .flat_map(|(name, _)| capture(name).lines().map(str::to_owned).collect::<Vec<_>>());
    lines.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_line_is_survived(lines in prop::collection::vec(".*", 0..8)) {
        read(&lines.join("\n"));
    }

    #[test]
    fn any_cut_and_any_order_is_survived(picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40)) {
        let lines = all_lines();
        let mut stream = Stream::new("sub".into());
        for (line, cut) in picks {
            let line = line.get(&lines);
            let at = cut.index(line.len() + 1);
            let at = (at..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap();
            stream.push(line.get(..at).unwrap(), NOW);
            stream.push(line, NOW);
        }
    }

    #[test]
    fn any_shape_of_a_known_record_is_survived(
        kind in prop::sample::select(vec!["system", "stream_event", "assistant", "user", "rate_limit_event", "result"]),
        field in prop::sample::select(vec!["subtype", "event", "message", "rate_limit_info", "usage", "errors", "api_error_status", "is_error"]),
        value in prop::sample::select(vec!["null", "1", "-1", "1e400", "\"\"", "[]", "[null]", "{}", "true", "{\"content\":[1,{\"type\":\"tool_use\"}]}"]),
    ) {
        read(&format!("{{\"type\":\"{kind}\",\"{field}\":{value}}}"));
    }
}
