use super::*;
use crate::ids::ProfileId;
use jiff::{SignedDuration, Timestamp};

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn rules() -> AccessRules {
    AccessRules {
        guilds: set(&["g"]),
        channels: set(&["c"]),
        users: set(&["ann"]),
        roles: set(&["team"]),
        operators: set(&["op"]),
        bots: set(&["friend"]),
        bot_depth: 2,
        ..AccessRules::default()
    }
}

const CHANNEL: Spot<'static> = Spot::Channel {
    guild: Some("g"),
    channel: "c",
    parent: None,
};
const THREAD: Spot<'static> = Spot::Channel {
    guild: Some("g"),
    channel: "t",
    parent: Some("c"),
};
const OTHER_CHANNEL: Spot<'static> = Spot::Channel {
    guild: Some("g"),
    channel: "d",
    parent: None,
};
const OTHER_GUILD: Spot<'static> = Spot::Channel {
    guild: Some("h"),
    channel: "c",
    parent: None,
};

fn admit(
    rules: &AccessRules,
    id: &str,
    kind: SpeakerKind,
    spot: Spot<'_>,
    call: Call,
) -> Admission {
    let team = ["team".to_owned()];
    let speaker = Speaker {
        id,
        roles: if id == "mate" { &team } else { &[] },
        kind,
    };
    rules.admit(&speaker, &spot, call)
}

const MEMBER: Admission = Admission::Admitted(Standing::Member);
const OPERATOR: Admission = Admission::Admitted(Standing::Operator);

#[test]
fn people_are_admitted_by_name_and_place() {
    use Call::{ByName, Overheard};
    use Silence::{Elsewhere, NotAddressed};
    let ignored = Admission::Ignored;
    let rows = [
        ("ann", CHANNEL, Overheard, MEMBER),
        ("ann", THREAD, Overheard, MEMBER),
        ("ann", OTHER_CHANNEL, ByName, ignored(Elsewhere)),
        ("ann", OTHER_GUILD, ByName, ignored(Elsewhere)),
        ("ann", Spot::Direct, Overheard, MEMBER),
        ("mate", CHANNEL, Overheard, MEMBER),
        ("mate", Spot::Direct, ByName, Admission::Stranger),
        ("op", CHANNEL, Overheard, OPERATOR),
        ("op", Spot::Direct, Overheard, OPERATOR),
        ("bob", CHANNEL, Overheard, ignored(NotAddressed)),
        ("bob", CHANNEL, ByName, Admission::Stranger),
        ("bob", OTHER_CHANNEL, ByName, ignored(Elsewhere)),
        ("bob", Spot::Direct, Overheard, Admission::Stranger),
    ];
    for (id, spot, call, want) in rows {
        let got = admit(&rules(), id, SpeakerKind::Person, spot, call);
        assert_eq!(got, want, "{id} {spot:?} {call:?}");
    }
}

#[test]
fn nobody_is_admitted_by_default_or_by_channels_alone() {
    let closed = AccessRules::default();
    let channels_alone = AccessRules {
        channels: set(&["c"]),
        ..AccessRules::default()
    };
    for rules in [&closed, &channels_alone] {
        for id in ["ann", "mate", "op", ""] {
            for spot in [CHANNEL, Spot::Direct] {
                let got = admit(rules, id, SpeakerKind::Person, spot, Call::ByName);
                assert_eq!(got, Admission::Stranger, "{id}");
            }
        }
    }
}

#[test]
fn everyone_in_channels_means_the_listed_ones() {
    let open = AccessRules {
        everyone_in_channels: true,
        ..rules()
    };
    let none_listed = AccessRules {
        channels: BTreeSet::new(),
        ..open.clone()
    };
    let bob = |rules, spot| admit(rules, "bob", SpeakerKind::Person, spot, Call::ByName);
    assert_eq!(bob(&open, THREAD), MEMBER);
    assert_eq!(bob(&open, Spot::Direct), Admission::Stranger);
    assert_eq!(bob(&none_listed, CHANNEL), Admission::Stranger);
}

#[test]
fn without_listed_channels_only_what_names_us_is_for_us() {
    let open = AccessRules {
        channels: BTreeSet::new(),
        ..rules()
    };
    let ann = |call| admit(&open, "ann", SpeakerKind::Person, OTHER_CHANNEL, call);
    assert_eq!(ann(Call::ByName), MEMBER);
    assert_eq!(
        ann(Call::Overheard),
        Admission::Ignored(Silence::NotAddressed)
    );
}

#[test]
fn bots_speak_only_if_named_and_not_for_ever() {
    let bot = |in_a_row| SpeakerKind::Bot { in_a_row };
    let ignored = Admission::Ignored;
    let rows = [
        ("friend", bot(0), CHANNEL, Call::ByName, MEMBER),
        ("friend", bot(1), CHANNEL, Call::ByName, MEMBER),
        (
            "friend",
            bot(2),
            CHANNEL,
            Call::ByName,
            ignored(Silence::BotDepth),
        ),
        (
            "friend",
            bot(0),
            CHANNEL,
            Call::Overheard,
            ignored(Silence::Bot),
        ),
        (
            "friend",
            bot(0),
            Spot::Direct,
            Call::ByName,
            ignored(Silence::Bot),
        ),
        (
            "friend",
            bot(0),
            OTHER_CHANNEL,
            Call::ByName,
            ignored(Silence::Elsewhere),
        ),
        (
            "other",
            bot(0),
            CHANNEL,
            Call::ByName,
            ignored(Silence::Bot),
        ),
        ("op", bot(0), CHANNEL, Call::ByName, ignored(Silence::Bot)),
        (
            "op",
            SpeakerKind::Ourselves,
            CHANNEL,
            Call::ByName,
            ignored(Silence::Ourselves),
        ),
    ];
    for (id, kind, spot, call, want) in rows {
        assert_eq!(
            admit(&rules(), id, kind, spot, call),
            want,
            "{id} {kind:?} {call:?}"
        );
    }
}

#[test]
fn a_stranger_is_told_once_a_day() {
    let mut strangers = Strangers::default();
    let start = Timestamp::UNIX_EPOCH;
    let after = |hours| start + SignedDuration::from_hours(hours);
    let told: Vec<bool> = [
        ("a", 0),
        ("a", 1),
        ("b", 1),
        ("a", 23),
        ("a", 24),
        ("a", 25),
    ]
    .into_iter()
    .map(|(who, hours)| strangers.may_tell(who, after(hours)))
    .collect();
    assert_eq!(told, [true, false, true, false, true, false]);
    let crowd = (0..20_000)
        .filter(|n| strangers.may_tell(&n.to_string(), after(30)))
        .count();
    assert!(crowd < 10_001, "{crowd}");
}

#[test]
fn profiles_of_one_token_may_not_share_a_place() {
    let named = |guilds: &[&str], channels: &[&str]| AccessRules {
        guilds: set(guilds),
        channels: set(channels),
        ..AccessRules::default()
    };
    let (one, two) = (ProfileId::from("one"), ProfileId::from("two"));
    let rows = [
        (
            named(&["g"], &["a", "b"]),
            named(&["g"], &["b"]),
            "t",
            Some(Some("b")),
        ),
        (named(&["g"], &["a"]), named(&["g"], &["b"]), "t", None),
        (named(&["g"], &[]), named(&["g"], &["b"]), "t", Some(None)),
        (named(&["g"], &[]), named(&["h"], &[]), "t", None),
        (named(&[], &[]), named(&["h"], &[]), "t", Some(None)),
        (named(&["g"], &["a"]), named(&["g"], &["a"]), "other", None),
    ];
    for (a, b, token, want) in rows {
        let served = [
            Served {
                profile: &one,
                token: "t",
                rules: &a,
            },
            Served {
                profile: &two,
                token,
                rules: &b,
            },
        ];
        let got: Vec<Option<String>> = overlaps(&served)
            .into_iter()
            .map(|one| one.channel)
            .collect();
        let want: Vec<Option<String>> = want
            .into_iter()
            .map(|channel| channel.map(str::to_owned))
            .collect();
        assert_eq!(got, want, "{a:?} {b:?}");
    }
}

#[test]
fn an_overlap_names_both_profiles() {
    let overlap = |channel: Option<&str>| Overlap {
        first: "one".into(),
        second: "two".into(),
        channel: channel.map(str::to_owned),
    };
    insta::assert_snapshot!(overlap(Some("456")).to_string(), @"the profiles one and two use the same bot token and both list the channel 456; list it in one of them only");
    insta::assert_snapshot!(overlap(None).to_string(), @"the profiles one and two use the same bot token and at least one of them lists no channels, so both would answer; list channels in both, none of them twice");
}

#[test]
fn a_pairing_code_works_once_and_not_for_long() {
    let start = Timestamp::UNIX_EPOCH;
    let after = |minutes| start + SignedDuration::from_mins(minutes);
    let (code, offered) = Pairing::offer([0, 1, 31, 32, 255, 18, 10, 9], start);
    assert_eq!(code.shown(), "01Z0-ZJA9");
    assert!(!format!("{code:?}{offered:?}").contains("01Z0"));

    let mut pairing = offered.clone();
    assert_eq!(pairing.redeem(" o1z0 zja9 ", after(14)), Redeemed::Paired);
    assert_eq!(pairing.redeem("01Z0-ZJA9", after(14)), Redeemed::Used);

    let mut late = offered.clone();
    assert_eq!(late.redeem("01Z0-ZJA9", after(15)), Redeemed::Expired);

    let mut guessed = offered;
    for tries_left in [4, 3, 2, 1] {
        assert_eq!(
            guessed.redeem("0000-0000", start),
            Redeemed::Wrong { tries_left }
        );
    }
    assert_eq!(guessed.redeem("", start), Redeemed::Locked);
    assert_eq!(guessed.redeem("01Z0-ZJA9", start), Redeemed::Locked);
}
