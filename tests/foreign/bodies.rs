//! What every parser of foreign text promises, whatever it is fed: it ends, it does not panic, it invents no instant
//! outside the plausible, and what it shows is what was there. One body per parser; property tests run them for a
//! minute, the fuzzer for as long as it is given.

use std::collections::BTreeMap;

use gateway_core::event::Event;
use gateway_core::explain;
use gateway_core::handoff::{redact::Redactor, think};
use gateway_core::usage::portal::{self, write};
use jiff::{SignedDuration, Timestamp};
use platforms::adapter::{Content, Heard, Spot};
use platforms::split::{Unit, split};
use platforms::wire::Place;
use providers::foreign;
use serde_json::{Value, json};

/// The clock of every body: an instant like any other.
const NOW: i64 = 1_790_000_000;
/// No window of any provider is longer than a year; a stated instant beyond is nonsense.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 400);

/// One parser with its promises, and where its seeds are: folders of the repository and the ends of file names.
pub(crate) struct Body {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
    pub(crate) seeds: &'static [(&'static str, &'static str)],
}

const JUDGED: (&str, &str) = ("gateway-core/cases", ".jsonl");
const CASES: &[(&str, &str)] = &[JUDGED];
const CLAUDE: (&str, &str) = ("providers/captures/claude", ".jsonl");
const HTTP: (&str, &str) = ("providers/captures/http", "");

/// Every body there is.
pub(crate) const BODIES: &[Body] = &[
    Body {
        name: "failure_line",
        run: failure_line,
        seeds: CASES,
    },
    Body {
        name: "failure_text",
        run: failure_text,
        seeds: &[JUDGED, HTTP],
    },
    Body {
        name: "failure_body",
        run: failure_body,
        seeds: &[JUDGED, HTTP],
    },
    Body {
        name: "failure_headers",
        run: failure_headers,
        seeds: &[JUDGED, HTTP],
    },
    Body {
        name: "usage_line",
        run: usage_line,
        seeds: CASES,
    },
    Body {
        name: "decision_line",
        run: decision_line,
        seeds: CASES,
    },
    Body {
        name: "portal",
        run: portal_document,
        seeds: CASES,
    },
    Body {
        name: "claude_stream",
        run: claude_stream,
        seeds: &[CLAUDE],
    },
    Body {
        name: "codex_stream",
        run: codex_stream,
        seeds: &[("providers/captures/codex", ".jsonl")],
    },
    Body {
        name: "opencode_stream",
        run: opencode_stream,
        seeds: &[("providers/captures/opencode", ".jsonl")],
    },
    Body {
        name: "anthropic_stream",
        run: anthropic_stream,
        seeds: &[HTTP],
    },
    Body {
        name: "openai_stream",
        run: openai_stream,
        seeds: &[HTTP],
    },
    Body {
        name: "visible_text",
        run: visible_text,
        seeds: &[HTTP],
    },
    Body {
        name: "discord_frame",
        run: discord_frame,
        seeds: &[("tests/foreign", "discord.jsonl")],
    },
    Body {
        name: "slack_envelope",
        run: slack_envelope,
        seeds: &[("tests/foreign", "slack.jsonl")],
    },
];

/// The body of that name.
pub(crate) fn body(name: &str) -> &'static Body {
    BODIES
        .iter()
        .find(|body| body.name == name)
        .unwrap_or_else(|| panic!("no body is called {name}"))
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW).expect("a plain instant")
}

/// `baton explain failure` with the bytes as its line.
fn failure_line(data: &[u8]) {
    let line = String::from_utf8_lossy(data);
    let (answer, _) = explain::failure_line(&line);
    check_answer(&answer);
}

/// The same with the bytes as the text a program printed.
fn failure_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_failure(json!({ "text": text }));
}

/// The same with the bytes as the body of a refusal; the first one chooses the status and the provider.
fn failure_body(data: &[u8]) {
    let (choice, body) = data.split_first().unwrap_or((&0, &[]));
    let status = [400, 401, 402, 403, 404, 413, 429, 500, 503, 529, 200]
        .get(usize::from(choice & 15))
        .copied();
    let provider = [
        "anthropic",
        "openai",
        "codex",
        "openrouter",
        "zai",
        "gemini",
        "opencode",
    ]
    .get(usize::from(choice >> 4))
    .copied();
    let text = String::from_utf8_lossy(body);
    let body = serde_json::from_slice::<Value>(body).unwrap_or_else(|_| json!(text));
    check_failure(json!({ "status": status, "provider": provider, "body": body }));
}

/// The same with the bytes as headers, one a line.
fn failure_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let headers: serde_json::Map<String, Value> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), json!(value.trim())))
        .collect();
    check_failure(json!({ "status": 429, "headers": headers }));
}

/// Judges and checks what no failure may break: known words, and no instant out of the plausible.
fn check_failure(mut line: Value) {
    line["id"] = json!("foreign");
    line["now"] = json!(now().to_string());
    let (answer, _) = explain::failure_line(&line.to_string());
    let answer = check_answer(&answer);
    check_instant(&answer["retry_at"]);
    let wait = answer["retry_after_s"].as_f64();
    assert!(
        wait.is_none_or(|wait| wait >= 0.0),
        "a wait below zero: {answer}"
    );
}

/// `baton explain usage` with the bytes as its line, and as its snapshot.
fn usage_line(data: &[u8]) {
    let line = String::from_utf8_lossy(data);
    check_answer(&explain::usage_line(&line).0);
    if let Ok(snapshot) = serde_json::from_str::<Value>(&line) {
        let line = json!({ "id": "foreign", "now": now().to_string(), "snapshot": snapshot });
        let answer = check_answer(&explain::usage_line(&line.to_string()).0);
        check_instant(&answer["retry_at"]);
        for (window, used) in answer["used_percent"].as_object().into_iter().flatten() {
            let used = used.as_f64();
            assert!(
                used.is_none_or(|used| used.is_finite() && used >= 0.0),
                "{window}: {answer}"
            );
        }
    }
}

/// `baton explain decision` with the bytes as its line.
fn decision_line(data: &[u8]) {
    check_answer(&explain::decision_line(&String::from_utf8_lossy(data)).0);
}

/// One line of JSON, whatever came in.
fn check_answer(answer: &str) -> Value {
    assert!(!answer.contains('\n'), "one line out per line in: {answer}");
    let answer: Value = serde_json::from_str(answer).expect("an answer is JSON");
    assert!(answer.is_object(), "{answer}");
    answer
}

fn check_instant(instant: &Value) {
    let Some(text) = instant.as_str() else {
        assert!(instant.is_null(), "an instant is text or null: {instant}");
        return;
    };
    let at: Timestamp = text.parse().expect("an instant is RFC 3339");
    assert!(at >= now(), "{at} is before now");
    assert!(
        at.duration_since(now()) <= LONGEST,
        "{at} is beyond any window"
    );
}

/// A published `usage.json`, and ours written into it: what we put in is read out again, whatever stood there.
fn portal_document(data: &[u8]) {
    let portal = portal::parse(data);
    for reading in &portal.readings {
        let used = reading.used_pct;
        assert!(used.is_none_or(f64::is_finite), "{reading:?}");
    }
    if let Ok(mut document) = portal::document(data) {
        write::put(&mut document, &portal.readings, now());
        let text = document.to_string();
        assert!(
            portal::document(text.as_bytes()).is_ok(),
            "what is written can be read"
        );
    }
}

/// The lines of `claude`. What was shown and not taken back is the answer.
fn claude_stream(data: &[u8]) {
    let outcome = foreign::claude(&String::from_utf8_lossy(data), now());
    check_outcome(&outcome);
    if let Some(answer) = &outcome.answer {
        assert_eq!(
            *answer,
            visible(&outcome.events),
            "shown and answered differ"
        );
    }
}

/// The messages of `codex app-server`.
fn codex_stream(data: &[u8]) {
    check_outcome(&foreign::codex(&String::from_utf8_lossy(data), now()));
}

/// The events of `opencode serve`.
fn opencode_stream(data: &[u8]) {
    check_outcome(&foreign::opencode(&String::from_utf8_lossy(data), now()));
}

/// The stream of the Messages API; where it is cut into pieces changes nothing.
fn anthropic_stream(data: &[u8]) {
    let whole = foreign::anthropic(&[data], now());
    check_outcome(&whole);
    let cut = foreign::anthropic(&pieces(data), now());
    assert_eq!(whole.events, cut.events);
}

/// The stream of a chat completion; where it is cut into pieces changes nothing.
fn openai_stream(data: &[u8]) {
    let whole = foreign::openai(&[data], now());
    check_outcome(&whole);
    let cut = foreign::openai(&pieces(data), now());
    assert_eq!(whole.events, cut.events);
}

fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let size = usize::from(data.first().copied().unwrap_or(7) % 61) + 3;
    data.chunks(size).collect()
}

/// What a person sees after these events, block by block.
fn visible(events: &[Event]) -> String {
    let mut blocks: BTreeMap<u32, String> = BTreeMap::new();
    for event in events {
        match event {
            Event::Text { block, delta } => blocks.entry(*block).or_default().push_str(delta),
            Event::Retract { from_block } => drop(blocks.split_off(from_block)),
            _ => {}
        }
    }
    blocks.into_values().collect::<Vec<_>>().join("\n\n")
}

fn check_outcome(outcome: &foreign::Outcome) {
    if let Some(at) = outcome
        .failure
        .as_ref()
        .and_then(|failure| failure.retry_at)
    {
        check_instant(&json!(at.to_string()));
    }
    for reading in outcome.readings() {
        assert!(
            reading.used_pct.is_none_or(f64::is_finite),
            "a percentage is a number: {reading:?}"
        );
    }
}

/// What a model says: stripped of reasoning, split for a platform, redacted.
fn visible_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let visible = think::strip(&text);
    assert!(visible.len() <= text.len());
    for unit in [Unit::Chars, Unit::Utf16, Unit::SlackEscaped] {
        for part in split(&text, 2_000, unit) {
            assert!(
                unit.length(&part) <= 2_000,
                "a part is longer than its limit"
            );
        }
    }
    let redacted = Redactor::shapes().redact(&text).into_owned();
    assert_eq!(
        Redactor::shapes().redact(&redacted),
        redacted,
        "redacting twice changes nothing"
    );
}

/// A frame of Discord's gateway.
fn discord_frame(data: &[u8]) {
    let frame = String::from_utf8_lossy(data);
    if let Some(heard) = platform_discord::foreign::hear(&frame) {
        check_heard(
            &heard,
            platform_discord::foreign::place(&heard.address),
            &frame,
        );
    }
}

/// An envelope of Slack's Socket Mode.
fn slack_envelope(data: &[u8]) {
    let envelope = String::from_utf8_lossy(data);
    if let Some(heard) = platform_slack::foreign::hear(&envelope) {
        check_heard(
            &heard,
            platform_slack::foreign::place(&heard.address),
            &envelope,
        );
    }
}

/// What was heard can be told from everything else, its answer finds back, and its address, which is stored and logged,
/// holds no way in for others.
fn check_heard(heard: &Heard, place: Option<Place>, told: &str) {
    let place = place.expect("the address is one of ours");
    assert!(!heard.id.as_str().is_empty() && !heard.conversation.is_empty());
    let (Spot::Direct { channel } | Spot::Channel { channel, .. }) = &heard.spot;
    assert_eq!(place.channel, *channel, "the answer goes where it was said");
    assert!(!heard.address.contains("://"), "{}", heard.address);
    assert!(heard.address.len() <= told.len() + 64);
    if let Content::Text { text, .. } = &heard.content {
        assert!(text.len() <= told.len() * 3 + 64, "more was read than told");
    }
}
