//! Rules of the whole table.

use gateway_core::message::Standing;

use super::*;
use crate::fixture::view;

#[test]
fn names_and_summaries_fit_every_platform() {
    for spec in specs() {
        for name in std::iter::once(&spec.name).chain(spec.aliases) {
            assert!((1..=32).contains(&name.len()), "{name}");
            assert!(
                name.bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')),
                "{name}"
            );
        }
        assert!(
            (1..=100).contains(&spec.summary.chars().count()),
            "{}",
            spec.name
        );
    }
}

#[test]
fn no_name_or_alias_stands_twice_and_none_takes_a_later_commands_name() {
    let mut all: Vec<&str> = specs()
        .flat_map(|spec| std::iter::once(&spec.name).chain(spec.aliases))
        .copied()
        .collect();
    all.push("baton");
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn a_commands_reply_goes_to_the_audience_its_spec_names() {
    for command in COMMANDS {
        let mut view = view();
        view.standing = Standing::Operator;
        let reply = (command.run)("", &view);
        assert_eq!(
            reply.audience, command.spec.audience,
            "{}",
            command.spec.name
        );
        assert!(!reply.text.trim().is_empty(), "{}", command.spec.name);
    }
}

#[test]
fn names_are_found_exactly_and_without_case() {
    let rows = [
        ("status", Some("status")),
        ("STATUS", Some("status")),
        ("resume-handoff", Some("resume-handoff")),
        ("resume_handoff", Some("resume-handoff")),
        ("resume", Some("resume")),
        ("resume-", None),
        ("resume_", None),
        ("stat", None),
        ("", None),
    ];
    for (typed, name) in rows {
        assert_eq!(
            find(typed).map(|command| command.spec.name),
            name,
            "{typed}"
        );
    }
}

#[test]
fn an_unknown_command_is_answered_kindly_and_changes_nothing() {
    let rows = [
        (
            "stats",
            "There is no command /stats. Did you mean /status? /help lists all of them.",
        ),
        (
            "resume-hand",
            "There is no command /resume-hand. Did you mean /resume-handoff? /help lists all of them.",
        ),
        (
            "weather",
            "There is no command /weather. /help lists all of them.",
        ),
    ];
    for (typed, text) in rows {
        let reply = dispatch(typed, "", &view());
        assert_eq!(reply.text, text);
        assert_eq!(reply.audience, Audience::Asker);
        assert!(reply.effects.is_empty());
    }
}

#[test]
fn what_is_for_operators_is_refused_to_others_and_not_shown_to_them() {
    let mut view = view();
    let reply = dispatch("plugins", "", &view);
    assert_eq!(reply.text, "/plugins is for operators only.");
    assert_eq!(reply.audience, Audience::Asker);
    assert!(!dispatch("help", "", &view).text.contains("/plugins"));
    view.standing = Standing::Operator;
    assert!(dispatch("help", "", &view).text.contains("/plugins"));
    assert_ne!(dispatch("plugins", "", &view).text, reply.text);
}

#[test]
fn first_words_are_one_short_line() {
    let rows = [
        ("", "(no words)"),
        (" \n ", "(no words)"),
        ("fix\n  the tests", "“fix the tests”"),
        (
            "please go through every file of the project and fix it",
            "“please go through every file of the project and…”",
        ),
    ];
    for (text, want) in rows {
        assert_eq!(first_words(text), want);
    }
}
