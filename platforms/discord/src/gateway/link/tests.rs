use proptest::prelude::*;
use serde_json::Value;

use super::*;

const HELLO: &str = r#"{"op":10,"d":{"heartbeat_interval":41250}}"#;
const READY: &str = r#"{"op":0,"s":1,"t":"READY","d":{"session_id":"s","resume_gateway_url":"wss://r.example","guilds":[]}}"#;

fn link(session: Option<Session>, now: Instant) -> Link {
    let identity = Identity {
        token: Token("t".to_owned()),
        intents: 7,
    };
    Link::new(identity, session, 0.5, now)
}

fn sent(act: Act) -> Value {
    match act {
        Act::Send(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn session(sequence: u64) -> Session {
    Session {
        id: "s".to_owned(),
        resume_url: Some("wss://r.example".to_owned()),
        sequence,
    }
}

#[test]
fn a_new_session_identifies_and_counts_its_events() {
    let now = Instant::now();
    let mut link = link(None, now);
    let said = sent(link.hear(HELLO, now));
    assert_eq!((&said["op"], &said["d"]["intents"]), (&json!(2), &json!(7)));
    assert!(!link.is_live());
    assert!(matches!(link.hear(READY, now), Act::Tell(_)) && link.is_live());
    let event = r#"{"op":0,"s":9,"t":"TYPING_START","d":{}}"#;
    assert!(matches!(link.hear(event, now), Act::Nothing));
    assert_eq!(sent(link.hear(r#"{"op":1,"d":null}"#, now))["d"], 9);
    assert_eq!(link.into_session(), Some(session(9)));
}

#[test]
fn a_known_session_is_resumed_and_an_invalid_one_forgotten() {
    let now = Instant::now();
    let mut link = link(Some(session(4)), now);
    let said = sent(link.hear(HELLO, now));
    let resume = json!({ "token": "t", "session_id": "s", "seq": 4 });
    assert_eq!((&said["op"], &said["d"]), (&json!(6), &resume));
    let kept = link.hear(r#"{"op":9,"d":true}"#, now);
    assert!(matches!(kept, Act::Leave(Leave::AskedToResume)));
    let gone = link.hear(r#"{"op":9,"d":false}"#, now);
    assert!(matches!(gone, Act::Leave(Leave::AskedToBeginAnew)));
    assert_eq!(link.into_session(), None);
}

#[test]
fn a_connection_that_only_looks_alive_is_left_within_25_seconds() {
    let start = Instant::now();
    let mut link = link(None, start);
    link.hear(HELLO, start);
    link.hear(READY, start);
    let mut now;
    let mut acknowledged = 0;
    let left = loop {
        now = link.due().expect("heartbeats go on");
        match link.tick(now) {
            Act::Send(_) if acknowledged < 3 => {
                acknowledged += 1;
                link.hear(r#"{"op":11}"#, now);
            }
            Act::Send(_) => {}
            Act::Leave(leave) => break leave,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((left, acknowledged), (Leave::Silent, 3));
    let last_sign = BEAT_AT_MOST.mul_f64(0.5) + BEAT_AT_MOST * 2;
    assert_eq!(now - start - last_sign, BEAT_AT_MOST + ACK_DEADLINE);
}

#[test]
fn a_gateway_that_says_nothing_is_left() {
    let now = Instant::now();
    let mut silent = link(None, now);
    assert_eq!(silent.due(), Some(now + GREETING_DEADLINE));
    let act = silent.tick(now + GREETING_DEADLINE);
    assert!(matches!(act, Act::Leave(Leave::Silent)));
    let mut unready = link(None, now);
    unready.hear(HELLO, now);
    let act = unready.tick(now + ANSWER_DEADLINE);
    assert!(matches!(act, Act::Leave(Leave::Silent)));
}

#[test]
fn an_unreadable_event_is_said_and_passed() {
    let now = Instant::now();
    let mut link = link(None, now);
    link.hear(HELLO, now);
    link.hear(READY, now);
    let broken = r#"{"op":0,"s":5,"t":"INTERACTION_CREATE","d":{"id":17}}"#;
    assert!(
        matches!(link.hear(broken, now), Act::Unreadable(what) if what.starts_with("INTERACTION_CREATE"))
    );
    assert!(matches!(link.hear("{", now), Act::Unreadable(_)));
    assert_eq!(
        link.into_session(),
        Some(session(5)),
        "it is not asked for again"
    );
}

proptest! {
    /// Whatever comes, the link goes on and never claims an event it was not sent.
    #[test]
    fn anything_may_come(frames in prop::collection::vec(frame(), 0..40)) {
        let now = Instant::now();
        let mut link = link(None, now);
        let mut most = 0;
        for (text, sequence) in &frames {
            most = most.max(*sequence);
            if let Act::Send(said) = link.hear(text, now) {
                let said: Value = serde_json::from_str(&said).unwrap();
                prop_assert!(said["op"] != 1 || said["d"].as_u64().unwrap_or(0) <= most);
            }
        }
        prop_assert!(link.into_session().is_none_or(|session| session.sequence <= most));
    }
}

fn frame() -> impl Strategy<Value = (String, u64)> {
    let names = vec!["READY", "RESUMED", "MESSAGE_CREATE", "GUILD_CREATE", "NEW"];
    let event = (
        prop::sample::select(names),
        1_u64..100,
        "[a-z0-9:\"{},]{0,20}",
    );
    let event = event.prop_map(|(name, sequence, rest)| {
        let data = json!({ "session_id": rest, "id": "5", "guilds": [] });
        let frame = json!({ "op": 0, "s": sequence, "t": name, "d": data });
        (frame.to_string(), sequence)
    });
    let other = (0_u8..13, any::<bool>())
        .prop_map(|(op, flag)| (json!({ "op": op, "d": flag }).to_string(), 0));
    prop_oneof![
        event,
        other,
        "\\PC{0,30}".prop_map(|text| (text, 0)),
        Just((HELLO.to_owned(), 0))
    ]
}
