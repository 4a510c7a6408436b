use std::sync::Arc;

use gateway_core::handoff::StoredHandoff;
use gateway_core::ids::TurnId;
use gateway_core::journal::TurnRow;
use gateway_core::message::{Origin, ReplyTarget};
use plugin_api::advice::Skip as Said1;

use super::super::facts::{FactSheet, TurnFacts};
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn turn(positions: u32) -> TurnFacts {
    let facts = plugin_api::testing::Facts::with_routes(positions);
    TurnFacts {
        turn: "turn".into(),
        profile: "p".into(),
        session: "lane".into(),
        conversation: "conversation".into(),
        origin: Origin::Human,
        sheet: Arc::new(FactSheet {
            routes: facts.routes,
            windows: Vec::new(),
        }),
        now: at(0),
    }
}

fn handoff(id: &str, request: &str) -> Handoff {
    Handoff {
        version: PAYLOAD_VERSION,
        id: id.into(),
        turn: "turn".into(),
        profile: "p".into(),
        session: "lane".into(),
        conversation: "conversation".into(),
        created_at: at(0),
        expires_at: at(1_000),
        reason: "rate limit".into(),
        route: None,
        request: request.into(),
        request_id: "inbound".into(),
        progress: String::new(),
        calls: Vec::new(),
        open_todos: Vec::new(),
        next_reset: None,
        earlier_cuts: 0,
    }
}

fn facts(documents: &[(&str, HandoffState)]) -> PrologueFacts {
    let documents = documents.iter().map(|(id, state)| StoredHandoff {
        handoff: handoff(id, "do it"),
        state: *state,
        revision: 1,
        claimed_by: None,
    });
    PrologueFacts {
        turn: turn(3),
        documents: documents.collect(),
    }
}

fn carrying(ids: &[&str], text: &str) -> prologue::PrologueAdvice {
    prologue::PrologueAdvice {
        inject: Some(text.replace("{}", REQUEST_PLACEHOLDER)),
        claims: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..prologue::PrologueAdvice::default()
    }
}

#[test]
fn skips_are_a_union_and_the_later_known_reset_holds() {
    let say = |skips: Vec<Said1>, line: &str| prologue::PrologueAdvice {
        skips,
        status_line: Some(line.into()),
        ..prologue::PrologueAdvice::default()
    };
    let answers = vec![
        (
            "a".into(),
            say(
                vec![Said1::until(2, 5_000), Said1::until(0, 1_000)],
                "first",
            ),
        ),
        ("b".into(), say(vec![Said1::until(0, 9_000)], "second")),
    ];
    let (merged, bad) = prologue(answers, &facts(&[]));
    assert_eq!(bad, []);
    assert_eq!(
        merged.skips,
        [
            Skip {
                position: 0,
                until: Some(at(9))
            },
            Skip {
                position: 2,
                until: Some(at(5))
            }
        ]
    );
    assert_eq!(merged.status_line.as_deref(), Some("first"));
}

#[test]
fn a_text_and_its_documents_are_taken_together_or_not_at_all() {
    use HandoffState::{Armed, Claimed};
    let documents = [("one", Armed), ("two", Armed), ("busy", Claimed)];
    let rows: [(&str, prologue::PrologueAdvice, bool); 7] = [
        ("one document", carrying(&["one"], "x {}"), true),
        (
            "two documents",
            carrying(&["one", "two"], "x {} y {}"),
            true,
        ),
        ("a note without documents", carrying(&[], "note"), true),
        ("no place for the request", carrying(&["one"], "x"), false),
        ("a place too many", carrying(&["one"], "{} {}"), false),
        ("not armed", carrying(&["busy"], "x {}"), false),
        ("claimed twice", carrying(&["one", "one"], "{} {}"), false),
    ];
    for (name, said, taken) in rows {
        let claims: Vec<HandoffId> = said.claims.iter().map(|id| id.as_str().into()).collect();
        let (merged, bad) = prologue(vec![("p".into(), said)], &facts(&documents));
        assert_eq!(merged.inject.is_some(), taken, "{name}");
        assert_eq!(
            merged.claims,
            if taken { claims } else { Vec::new() },
            "{name}"
        );
        assert_eq!(bad.is_empty(), taken, "{name}");
    }
    let (merged, bad) = prologue(
        vec![
            ("a".into(), carrying(&["one"], "A {}")),
            ("b".into(), carrying(&["one"], "B {}")),
            ("c".into(), carrying(&[], "C")),
        ],
        &facts(&documents),
    );
    assert_eq!(
        merged.inject.unwrap(),
        format!("A {REQUEST_PLACEHOLDER}\n\nC")
    );
    assert_eq!(
        bad.len(),
        2,
        "the second claim, and the text that needed it"
    );
}

#[test]
fn only_this_turns_document_with_the_whole_request_is_sealed() {
    let facts = TerminalFacts {
        turn: turn(1),
        row: TurnRow {
            turn: TurnId::new("turn"),
            profile: "p".into(),
            session: "lane".into(),
            conversation: "conversation".into(),
            inbound: "inbound".into(),
            origin: Origin::Human,
            target: ReplyTarget {
                platform: "console".into(),
                address: String::new(),
            },
            request: "do it".into(),
            started_at: at(0),
            owner: String::new(),
            carries: Vec::new(),
        },
        entries: Vec::new(),
        carried: Vec::new(),
        reason: "rate limit".into(),
        next_reset: None,
        handoff: "h".into(),
    };
    let sealed = |handoff: &Handoff| {
        let said = terminal::TerminalAdvice {
            seal: serde_json::to_string(handoff).ok(),
            ..terminal::TerminalAdvice::default()
        };
        terminal(vec![("p".into(), said)], &facts)
    };
    assert!(sealed(&handoff("h", "do it")).0.seal.is_some());
    let newer = Handoff {
        version: PAYLOAD_VERSION + 1,
        ..handoff("h", "do it")
    };
    let elsewhere = Handoff {
        conversation: "other".into(),
        ..handoff("h", "do it")
    };
    for wrong in [handoff("h", "do"), handoff("x", "do it"), newer, elsewhere] {
        let (merged, bad) = sealed(&wrong);
        assert_eq!((merged.seal, bad.len()), (None, 1));
    }
}
