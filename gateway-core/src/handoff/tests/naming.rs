use crate::handoff::name::file_name;

use super::*;

#[test]
fn file_names_table() {
    let long = "k".repeat(200);
    let rows = [
        (
            "B25 no way out of the folder",
            "../../etc/passwd",
            ".._.._etc_passwd.3754d6cb3a38.json",
        ),
        (
            "B26 slash",
            "discord:123/456",
            "discord_123_456.6961fe2480ab.json",
        ),
        (
            "B26 colon",
            "discord:123:456",
            "discord_123_456.83e69780c09a.json",
        ),
        ("B27 space", "a b", "a_b.c8687a08aa5d.json"),
        ("B27 underscore", "a_b", "a_b.648fa9b31bc7.json"),
        ("B28 other letters", "слак:чат", "_.e56b80fa29b2.json"),
        ("empty", "", "unknown.e3b0c44298fc.json"),
    ];
    for (rule, key, expected) in rows {
        assert_eq!(file_name(&SessionKey::new(key)), expected, "{rule}");
    }
    let (safe, _) = file_name(&SessionKey::new(&long))
        .split_once('.')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(safe, "k".repeat(80), "B28 a long key");
}

/// B24 (the least life), B53, and what the precedence adds: a known reset prolongs, eight days bound.
#[test]
fn validity_table() {
    const DAY: i64 = 86_400;
    let rows = [
        (
            "B24 no reset: to the second",
            None,
            0,
            DAY,
            HandoffState::Armed,
        ),
        (
            "B24 no reset: one second more",
            None,
            0,
            DAY + 1,
            HandoffState::Expired,
        ),
        ("B24 fresh", None, 0, 60, HandoffState::Armed),
        (
            "a near reset shortens nothing",
            Some(600),
            0,
            DAY,
            HandoffState::Armed,
        ),
        (
            "an hour after a far reset",
            Some(5 * DAY),
            0,
            5 * DAY + 3_600,
            HandoffState::Armed,
        ),
        (
            "more than an hour after it",
            Some(5 * DAY),
            0,
            5 * DAY + 3_601,
            HandoffState::Expired,
        ),
        (
            "at most eight days",
            Some(30 * DAY),
            0,
            8 * DAY,
            HandoffState::Armed,
        ),
        (
            "no longer than eight days",
            Some(30 * DAY),
            0,
            8 * DAY + 1,
            HandoffState::Expired,
        ),
        (
            "B53 made in a year",
            None,
            365 * DAY,
            0,
            HandoffState::Corrupt,
        ),
        (
            "a clock set back a little",
            None,
            3_600,
            0,
            HandoffState::Armed,
        ),
    ];
    for (rule, reset, made, looked_at, expected) in rows {
        let mut handoff = cut("r", &[]);
        handoff.created_at = after(made);
        handoff.expires_at = validity::expires_at(after(made), reset.map(after));
        assert_eq!(
            stored(handoff, HandoffState::Armed).standing(after(looked_at)),
            expected,
            "{rule}"
        );
    }
}

#[test]
fn a_newer_payload_is_corrupt_and_a_final_state_stays() {
    let mut handoff = cut("r", &[]);
    handoff.version = PAYLOAD_VERSION + 1;
    assert_eq!(
        stored(handoff.clone(), HandoffState::Armed).standing(now()),
        HandoffState::Corrupt
    );
    assert_eq!(
        stored(handoff, HandoffState::Acked).standing(after(9 * 86_400)),
        HandoffState::Acked
    );
}
