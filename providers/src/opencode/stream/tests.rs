//! Every recorded turn of `opencode serve` (1.18.33, `captures/opencode`) through the reader.

use gateway_core::turn::AttemptEnd;
use serde_json::json;

use super::*;

/// A recorded turn: its events and the answer of its prompt's call.
struct Capture {
    events: Vec<Value>,
    reply: Value,
}

fn capture(name: &str) -> Capture {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/captures/opencode");
    let read = |suffix: &str| std::fs::read_to_string(format!("{folder}/{name}.{suffix}")).unwrap();
    let meta = read("meta.txt");
    let reply = meta
        .lines()
        .find_map(|line| line.strip_prefix("response body: "));
    let events: Vec<Value> = read("jsonl")
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reply: Value = serde_json::from_str(reply.unwrap()).unwrap();
    // The stream is the whole server's: the hub hands on what is the session's.
    let session = reply["info"]["sessionID"].clone();
    let events = events
        .into_iter()
        .filter(|event| event["properties"]["sessionID"] == session);
    Capture {
        events: events.collect(),
        reply,
    }
}

/// When the capture was made, so that its retries are as far away as they were.
fn now(event: &Value, last: Timestamp) -> Timestamp {
    let times = [
        "/properties/time",
        "/properties/info/time/created",
        "/properties/part/time/end",
    ];
    let ms = times.iter().find_map(|path| event.pointer(path)?.as_i64());
    ms.and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(last)
}

fn line(event: &Event) -> String {
    match event {
        Event::Session { .. } | Event::Limit(_) => format!("{event:?}"),
        Event::Text { block, delta } => format!("text {block} {delta:?}"),
        Event::Retract { from_block } => format!("retract {from_block}"),
        Event::ToolCall {
            name, arguments, ..
        } => format!("call {name} {arguments}"),
        Event::ToolResult { outcome, text, .. } => format!("result {outcome:?} {text:?}"),
        Event::Todos(todos) => format!("todos {}", todos.len()),
        Event::Usage(usage) => format!(
            "usage {:?} {:?} {:?} {:?}",
            usage.input, usage.output, usage.cache_read, usage.cache_write
        ),
        Event::Activity { what } => format!("activity {what}"),
    }
}

/// Plays a capture until the turn is over or given up.
fn play(name: &str) -> String {
    let Capture { events, reply } = capture(name);
    let mut stream = Stream::after(&[]);
    let mut lines = Vec::new();
    let mut at = Timestamp::UNIX_EPOCH;
    for event in &events {
        at = now(event, at);
        lines.extend(stream.push(event, at).iter().map(line));
        if let Some(failure) = stream.verdict() {
            lines.push(format!("given up: {}", shown(failure)));
            return lines.join("\n");
        }
    }
    let late = stream.take_stored(std::slice::from_ref(&reply));
    lines.extend(late.iter().map(|event| format!("late {}", line(event))));
    lines.push(match stream.end(&reply["info"], at) {
        Ok(answer) => format!("answered {:?}", answer.text),
        Err(failure) => format!("failed: {}", shown(&failure)),
    });
    lines.join("\n")
}

fn shown(failure: &Failure) -> String {
    let at = failure.retry_at.map_or("-".to_owned(), |at| at.to_string());
    format!(
        "{:?} {:?} {at} {}",
        failure.kind, failure.scope, failure.detail
    )
}

#[test]
fn an_answered_turn() {
    insta::assert_snapshot!(play("serve-ok"), @r###"
    text 0 "Hello "
    text 0 "from "
    text 0 "the "
    text 0 "mock."
    usage Some(176) Some(42) Some(1024) Some(0)
    answered "Hello from the mock."
    "###);
}

#[test]
fn a_turn_with_a_tool() {
    insta::assert_snapshot!(play("serve-tool"), @r###"
    text 0 "Let "
    text 0 "me "
    text 0 "look."
    call bash {"command":"echo hello-from-bash","description":"Say hello"}
    result Completed "hello-from-bash\n"
    usage Some(176) Some(42) Some(1024) Some(0)
    text 1 "Done."
    usage Some(352) Some(84) Some(2048) Some(0)
    answered "Let me look.\n\nDone."
    "###);
}

#[test]
fn two_short_retries_are_waited_for() {
    insta::assert_snapshot!(play("serve-rl429"), @r###"
    activity retry 1 (Rate limit reached, try again in 20s)
    activity retry 2 (Rate limit reached, try again in 20s)
    text 0 "Recovered "
    text 0 "after "
    text 0 "429."
    usage Some(176) Some(42) Some(1024) Some(0)
    answered "Recovered after 429."
    "###);
}

#[test]
fn a_usage_limit_is_given_up_with_its_reset() {
    insta::assert_snapshot!(play("serve-rl429long"), @r###"
    activity retry 1 (You have hit your usage limit)
    given up: RateLimit Account 2026-11-30T01:06:27.823Z You have hit your usage limit
    "###);
}

#[test]
fn a_server_error_is_given_up_after_some_tries() {
    insta::assert_snapshot!(play("serve-e500"), @r###"
    activity retry 1 (boom)
    activity retry 2 (boom)
    activity retry 3 (boom)
    activity retry 4 (boom)
    given up: Overloaded UpstreamShared - boom
    "###);
}

#[test]
fn a_cut_stream_takes_its_text_back() {
    insta::assert_snapshot!(play("serve-cut"), @r###"
    text 0 "Hello "
    text 0 "from "
    text 0 "the "
    retract 0
    activity retry 1 (Connection reset by server)
    text 0 "Hello "
    text 0 "from "
    text 0 "the "
    retract 0
    activity retry 2 (Connection reset by server)
    text 0 "Hello "
    text 0 "from "
    text 0 "the "
    retract 0
    activity retry 3 (Connection reset by server)
    text 0 "Hello "
    text 0 "from "
    text 0 "the "
    retract 0
    activity retry 4 (Connection reset by server)
    given up: Transport Request - Connection reset by server
    "###);
}

#[test]
fn an_endless_loop_is_given_up() {
    insta::assert_snapshot!(play("serve-html"), @r###"
    given up: Transport NetworkEdge - the service answers, but not with a model's answer: something between it and this machine does
    "###);
}

#[test]
fn a_bad_stream() {
    insta::assert_snapshot!(play("serve-bad"), @r###"
    text 0 "Hello "
    failed: Transport Request - JSON parsing failed: Text: {nope. Error message: JSON Parse error: Expected '}'
    "###);
}

#[test]
fn a_wrong_key() {
    insta::assert_snapshot!(play("serve-e401"), @r###"
    failed: Auth Account - Incorrect API key provided
    "###);
}

#[test]
fn a_conversation_too_long() {
    insta::assert_snapshot!(play("serve-e400ctx"), @r###"
    activity compacting the conversation
    failed: ContextOverflow Session - This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens.
    "###);
}

#[test]
fn a_request_too_large() {
    insta::assert_snapshot!(play("serve-e413"), @r###"
    activity compacting the conversation
    failed: ContextOverflow Request - Request too large
    "###);
}

#[test]
fn an_answer_cut_by_its_length_is_an_answer() {
    insta::assert_snapshot!(play("serve-len"), @r###"
    text 0 "Cut "
    text 0 "by "
    text 0 "length"
    usage Some(176) Some(42) Some(1024) Some(0)
    answered "Cut by length"
    "###);
}

#[test]
fn an_aborted_turn_keeps_its_text() {
    insta::assert_snapshot!(play("serve-abort"), @r###"
    text 0 "word0 "
    text 0 "word1 "
    text 0 "word2 "
    text 0 "word3 "
    text 0 "word4 "
    text 0 "word5 "
    text 0 "word6 "
    text 0 "word7 "
    text 0 "word8 "
    text 0 "word9 "
    text 0 "word10 "
    text 0 "word11 "
    text 0 "word12 "
    text 0 "word13 "
    text 0 "word14 "
    failed: Crashed Request - the turn was aborted by somebody else
    "###);
}

fn event(kind: &str, properties: Value) -> Value {
    json!({"type": kind, "properties": properties})
}

fn assistant(id: &str) -> Value {
    event(
        "message.updated",
        json!({"info": {"id": id, "role": "assistant"}}),
    )
}

fn part(message: &str, id: &str, rest: Value) -> Value {
    let mut part = rest;
    part["id"] = id.into();
    part["messageID"] = message.into();
    event("message.part.updated", json!({"part": part}))
}

fn push(stream: &mut Stream, event: &Value) -> Vec<String> {
    let events = stream.push(event, Timestamp::UNIX_EPOCH);
    events.iter().map(line).collect()
}

#[test]
fn what_is_older_than_the_turn_or_no_answer_is_nothing() {
    let known = [json!({"info": {"id": "msg_1", "role": "assistant"}, "parts": []})];
    let mut stream = Stream::after(&known);
    let words = json!({"type": "text", "text": "x", "time": {"start": 1, "end": 2}});
    assert!(push(&mut stream, &assistant("msg_1")).is_empty());
    assert!(push(&mut stream, &part("msg_1", "prt_1", words.clone())).is_empty());
    assert!(push(&mut stream, &part("msg_unknown", "prt_2", words.clone())).is_empty());
    let summary = json!({"info": {"id": "msg_3", "role": "assistant", "summary": true}});
    push(&mut stream, &event("message.updated", summary));
    assert!(push(&mut stream, &part("msg_3", "prt_3", words.clone())).is_empty());
    push(&mut stream, &assistant("msg_4"));
    let synthetic = json!({"type": "text", "text": "x", "synthetic": true, "time": {"end": 2}});
    assert!(push(&mut stream, &part("msg_4", "prt_4", synthetic)).is_empty());
    assert_eq!(
        push(&mut stream, &part("msg_4", "prt_5", words)),
        ["text 0 \"x\""]
    );
    for odd in [
        json!(null),
        json!([]),
        json!({"type": "message.part.updated"}),
        event("todo.x", json!(1)),
    ] {
        assert!(push(&mut stream, &odd).is_empty());
    }
}

#[test]
fn calls_and_results_are_told_once_with_their_outcome() {
    let mut stream = Stream::after(&[]);
    push(&mut stream, &assistant("m"));
    let tool = |id: &str, tool: &str, state: Value| {
        part(
            "m",
            id,
            json!({"type": "tool", "tool": tool, "callID": id, "state": state}),
        )
    };
    let pending = tool(
        "a",
        "bash",
        json!({"status": "pending", "input": {}, "raw": ""}),
    );
    assert!(push(&mut stream, &pending).is_empty());
    let running = tool(
        "a",
        "bash",
        json!({"status": "running", "input": {"command": "ls"}}),
    );
    assert_eq!(
        push(&mut stream, &running),
        ["call bash {\"command\":\"ls\"}"]
    );
    assert!(push(&mut stream, &running).is_empty());
    let done = tool(
        "a",
        "bash",
        json!({"status": "completed", "input": {}, "output": "x", "metadata": {"exit": 0}}),
    );
    assert_eq!(push(&mut stream, &done), ["result Completed \"x\""]);
    assert!(push(&mut stream, &done).is_empty());
    for (id, name, state, expected) in [
        (
            "b",
            "bash",
            json!({"status": "completed", "output": "", "metadata": {"exit": 2}}),
            "Failed",
        ),
        (
            "c",
            "read",
            json!({"status": "error", "error": "File not found"}),
            "Failed",
        ),
        (
            "d",
            "read",
            json!({"status": "error", "error": "The user has specified a rule which prevents you from using this specific tool call."}),
            "Denied",
        ),
        (
            "e",
            "bash",
            json!({"status": "error", "error": "Tool execution aborted", "metadata": {"interrupted": true}}),
            "Cancelled",
        ),
        (
            "f",
            "invalid",
            json!({"status": "completed", "output": "x"}),
            "Failed",
        ),
    ] {
        let told = push(&mut stream, &tool(id, name, state));
        assert!(
            told[0].starts_with("call ") && told[1].contains(expected),
            "{told:?}"
        );
    }
}

#[test]
fn todos_are_told_whole() {
    let mut stream = Stream::after(&[]);
    let list = json!({"todos": [
        {"content": "a", "status": "completed", "priority": "high"},
        {"content": "b", "status": "in_progress"}, {"content": "c", "status": "cancelled"}, {"content": "d"},
    ]});
    let events = stream.push(&event("todo.updated", list), Timestamp::UNIX_EPOCH);
    let [Event::Todos(todos)] = events.as_slice() else {
        panic!("{events:?}");
    };
    let shown: Vec<String> = todos
        .iter()
        .map(|todo| format!("{} {} {}", todo.id, todo.status.word(), todo.content))
        .collect();
    assert_eq!(
        shown,
        [
            "1 completed a",
            "2 in_progress b",
            "3 cancelled c",
            "4 pending d"
        ]
    );
}

#[test]
fn what_the_event_stream_lost_comes_from_the_stored_messages() {
    let Capture { events, reply } = capture("serve-ok");
    let whole = play("serve-ok");
    // Whatever single stretch is lost, the text is told once and the answer is the same.
    for from in 0..events.len() {
        for to in from..events.len() {
            let mut stream = Stream::after(&[]);
            let mut seen = String::new();
            let mut take = |events: Vec<Event>| {
                for event in events {
                    match event {
                        Event::Text { block: 0, delta } => seen.push_str(&delta),
                        Event::Retract { from_block: 0 } => seen.clear(),
                        Event::Text { .. } | Event::Retract { .. } => panic!("one block only"),
                        _ => {}
                    }
                }
            };
            for (at, event) in events.iter().enumerate() {
                if at == to {
                    stream.tear();
                }
                if at < from || at >= to {
                    take(stream.push(event, Timestamp::UNIX_EPOCH));
                }
            }
            take(stream.take_stored(std::slice::from_ref(&reply)));
            let answer = stream.end(&reply["info"], Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(answer.text, "Hello from the mock.");
            assert_eq!(seen, answer.text, "lost {from}..{to}");
            assert!(whole.contains(&answer.text));
        }
    }
}

/// A request that broke and was made again: whatever stretch of the events is lost, the notice of the retry included, the
/// broken one's text does not stay beside the new one's.
#[test]
fn a_request_made_again_is_told_once_whatever_was_lost() {
    let text_part = |id: &str, words: &str, ended: bool| match ended {
        true => {
            json!({"type": "text", "id": id, "messageID": "m", "text": words, "time": {"start": 1, "end": 2}})
        }
        false => {
            json!({"type": "text", "id": id, "messageID": "m", "text": words, "time": {"start": 1}})
        }
    };
    let plain = |id: &str, kind: &str| json!({"type": kind, "id": id, "messageID": "m"});
    let delta = |id: &str, words: &str| {
        event(
            "message.part.delta",
            json!({"partID": id, "field": "text", "delta": words}),
        )
    };
    let updated = |part: Value| event("message.part.updated", json!({ "part": part }));
    let events = [
        assistant("m"),
        updated(plain("s1", "step-start")),
        updated(text_part("p1", "", false)),
        delta("p1", "Hello "),
        delta("p1", "from "),
        event(
            "session.status",
            json!({"status": {"type": "retry", "attempt": 1, "message": "Connection reset by server", "next": 1}}),
        ),
        updated(plain("s2", "step-start")),
        updated(text_part("p2", "", false)),
        delta("p2", "Hello "),
        delta("p2", "again."),
        updated(text_part("p2", "Hello again.", true)),
        updated(plain("f2", "step-finish")),
    ];
    let stored = json!({
        "info": {"id": "m", "role": "assistant"},
        "parts": [plain("s1", "step-start"), text_part("p1", "", false), plain("s2", "step-start"), text_part("p2", "Hello again.", true), plain("f2", "step-finish")],
    });
    for from in 0..events.len() {
        for to in from..events.len() {
            let mut stream = Stream::after(&[]);
            let mut told = Vec::new();
            for (at, event) in events.iter().enumerate() {
                if at == to {
                    stream.tear();
                }
                if at < from || at >= to {
                    told.extend(stream.push(event, Timestamp::UNIX_EPOCH));
                }
            }
            told.extend(stream.take_stored(std::slice::from_ref(&stored)));
            let mut seen = BTreeMap::new();
            for event in told {
                match event {
                    Event::Text { block, delta } => seen
                        .entry(block)
                        .or_insert_with(String::new)
                        .push_str(&delta),
                    Event::Retract { from_block } => drop(seen.split_off(&from_block)),
                    _ => {}
                }
            }
            let seen: Vec<String> = seen.into_values().collect();
            assert_eq!(seen, ["Hello again."], "lost {from}..{to}");
            let answer = stream.end(&stored["info"], Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(answer.text, "Hello again.", "lost {from}..{to}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_json_is_borne(text in "[\\[\\]{}:,\"a-z0-9 ]{0,80}", kind in 0_usize..6) {
        let kinds = ["message.updated", "message.part.updated", "message.part.delta", "session.status", "session.error", "todo.updated"];
        let odd: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let mut stream = Stream::after(&[]);
        stream.push(&event(kinds[kind], odd.clone()), Timestamp::UNIX_EPOCH);
        stream.push(&event(kinds[kind], json!({"part": odd, "info": odd, "status": odd, "todos": odd})), Timestamp::UNIX_EPOCH);
        stream.take_stored(std::slice::from_ref(&odd));
        let _: AttemptEnd = match stream.end(&odd, Timestamp::UNIX_EPOCH) {
            Ok(answer) => AttemptEnd::Answered(answer),
            Err(failure) => AttemptEnd::Failed(failure),
        };
    }
}
