//! `/handoffs`: lists saved handoffs and drops one. Everybody sees those of conversations they took part in, an operator
//! all of the profile. What a running turn carries cannot be dropped, what is over needs no dropping.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::message::Audience;

use crate::view::View;
use crate::when::{clock, distance};
use crate::{Command, count, first_words, to_asker};

pub(crate) const NAME: &str = "handoffs";

/// The word before a key.
const DISCARD: &str = "discard";

/// Handoffs listed at most.
const LISTED: usize = 20;

/// The shortest key that is shown: the part of a UUID v7 that is its time in milliseconds.
const KEY_MIN: usize = 13;

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: NAME,
        aliases: &[],
        summary: "Lists your saved handoffs, or drops one.",
        argument: "[discard KEY]",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(args: &str, view: &View) -> CommandReply {
    let (word, key) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let key = key.trim();
    match (word, key) {
        ("", _) => to_asker(list(view)),
        (word, "") if word.eq_ignore_ascii_case(DISCARD) => {
            to_asker("Which one? `/handoffs discard KEY`; `/handoffs` lists them with their keys.")
        }
        (word, key) if word.eq_ignore_ascii_case(DISCARD) => discard(key, view),
        (word, _) => to_asker(format!(
            "`{word}` is nothing /handoffs does. `/handoffs` lists them, `/handoffs discard KEY` drops one."
        )),
    }
}

fn list(view: &View) -> String {
    if view.saved.is_empty() {
        return match view.is_operator() {
            true => "No saved handoffs in this profile.",
            false => "No saved handoffs of yours.",
        }
        .to_owned();
    }
    let lines = view.saved.iter().take(LISTED).map(|one| line(one, view));
    let more = view.saved.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("And {more} older."));
    let lines: Vec<String> = lines.chain(more).collect();
    lines.join("\n")
}

/// `0192ab34-5678: waits, made 10m ago, 1 tool call, 0 open todos, 2.4 KB, “count the files”`
fn line(stored: &StoredHandoff, view: &View) -> String {
    let handoff = &stored.handoff;
    format!(
        "{}: {}, made {}, {}, {}, {}, {}",
        key(stored, &view.saved),
        state(stored, view),
        distance(handoff.created_at, view.now),
        count(handoff.calls.len(), "tool call"),
        count(handoff.open_todos.len(), "open todo"),
        size(stored),
        first_words(&handoff.request),
    )
}

fn state(stored: &StoredHandoff, view: &View) -> String {
    match stored.standing(view.now) {
        HandoffState::Armed => {
            format!("waits until {}", clock(stored.handoff.expires_at, view))
        }
        HandoffState::Claimed => "carried by a running turn".to_owned(),
        HandoffState::Stopped => "stopped, shown only".to_owned(),
        HandoffState::Expired => "expired".to_owned(),
        HandoffState::Corrupt => "damaged".to_owned(),
        HandoffState::Acked | HandoffState::Chained | HandoffState::Discarded => "over".to_owned(),
    }
}

/// The texts it holds, in thousands of bytes.
fn size(stored: &StoredHandoff) -> String {
    let handoff = &stored.handoff;
    let calls = handoff.calls.iter().map(|call| {
        call.name.len() + call.arguments.len() + call.result.as_ref().map_or(0, String::len)
    });
    let bytes = handoff.request.len() + handoff.progress.len() + calls.sum::<usize>();
    match bytes {
        ..1_000 => format!("{bytes} B"),
        _ => format!("{}.{} KB", bytes / 1_000, bytes % 1_000 / 100),
    }
}

/// The shortest beginning of its id, from [`KEY_MIN`] on, that no other one shares.
fn key<'a>(stored: &'a StoredHandoff, all: &[StoredHandoff]) -> &'a str {
    let id = stored.handoff.id.as_str();
    let is_alone = |key: &str| {
        let mut others = all.iter().map(|other| other.handoff.id.as_str());
        !others.any(|other| other != id && other.starts_with(key))
    };
    (KEY_MIN..id.len())
        .filter_map(|end| id.get(..end))
        .find(|key| is_alone(key))
        .unwrap_or(id)
}

fn discard(key: &str, view: &View) -> CommandReply {
    let is_named = |one: &&StoredHandoff| one.handoff.id.as_str() == key;
    let begins = |one: &&StoredHandoff| one.handoff.id.as_str().starts_with(key);
    let whole = view.saved.iter().find(is_named);
    let fitting: Vec<&StoredHandoff> = match whole {
        Some(one) => vec![one],
        None => view.saved.iter().filter(begins).collect(),
    };
    match fitting.as_slice() {
        [] => to_asker(format!(
            "There is no saved handoff `{key}` that you may drop. `/handoffs` lists them."
        )),
        [one] => discard_one(one, view),
        _ => to_asker(format!(
            "`{key}` fits several handoffs; write more of the key."
        )),
    }
}

fn discard_one(stored: &StoredHandoff, view: &View) -> CommandReply {
    let what = first_words(&stored.handoff.request);
    match stored.standing(view.now) {
        HandoffState::Armed | HandoffState::Stopped => {
            let mut reply = to_asker(format!(
                "Dropped: the handoff of {}, {what}. It will not be injected.",
                clock(stored.handoff.created_at, view)
            ));
            reply.effects = vec![CommandEffect::Discard(stored.handoff.id.clone())];
            reply
        }
        HandoffState::Claimed => to_asker(format!(
            "{what} is carried by a running turn. /stop that turn first, or wait for its end."
        )),
        _ => to_asker(format!(
            "{what} is over already: nothing of it will be injected, and it goes by itself."
        )),
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::message::Standing;

    use super::*;
    use crate::fixture::{handoff, view};

    fn saved(id: &str, state: HandoffState) -> StoredHandoff {
        let mut stored = handoff(state);
        stored.handoff.id = id.into();
        stored
    }

    fn three() -> View {
        let mut view = view();
        view.saved = vec![
            saved("01985f3a-7c2e-7aaa-8000-000000000001", HandoffState::Armed),
            saved(
                "01985f3a-7c2e-7bbb-8000-000000000002",
                HandoffState::Claimed,
            ),
            saved(
                "01985f39-0000-7ccc-8000-000000000003",
                HandoffState::Stopped,
            ),
        ];
        view.saved[2].handoff.progress = "x".repeat(2_400);
        view
    }

    #[test]
    fn the_list_gives_each_a_key_that_names_it_alone() {
        let reply = run("", &three());
        insta::assert_snapshot!(reply.text, @r"
        01985f3a-7c2e-7a: waits until Tue 22 Sep 08:50 (in 23.8h), made 10m ago, 0 tool calls, 0 open todos, 26 B, “count the files”
        01985f3a-7c2e-7b: carried by a running turn, made 10m ago, 0 tool calls, 0 open todos, 26 B, “count the files”
        01985f39-0000: stopped, shown only, made 10m ago, 0 tool calls, 0 open todos, 2.4 KB, “count the files”
        ");
        assert!(reply.effects.is_empty());
        for one in &three().saved {
            let key = key(one, &three().saved).to_owned();
            let said = run(&format!("discard {key}"), &three()).text;
            assert!(
                !said.contains("several") && !said.contains("no saved"),
                "{said}"
            );
        }
    }

    #[test]
    fn none_is_said_as_far_as_the_sender_can_know() {
        let mut view = view();
        assert_eq!(run("", &view).text, "No saved handoffs of yours.");
        view.standing = Standing::Operator;
        assert_eq!(run("", &view).text, "No saved handoffs in this profile.");
    }

    #[test]
    fn what_waits_is_dropped_and_what_does_not_is_explained() {
        let rows = [
            (
                "discard 01985f3a-7c2e-7aaa",
                true,
                "Dropped: the handoff of 08:50",
            ),
            ("DISCARD 01985f39", true, "Dropped"),
            (
                "discard 01985f3a-7c2e-7b",
                false,
                "carried by a running turn",
            ),
            ("discard 01985f3a", false, "several"),
            (
                "discard 0199",
                false,
                "no saved handoff `0199` that you may drop",
            ),
            ("discard", false, "Which one?"),
            ("drop 01985f39", false, "`drop` is nothing"),
        ];
        for (args, dropped, said) in rows {
            let reply = run(args, &three());
            assert!(reply.text.contains(said), "{args}: {}", reply.text);
            assert_eq!(!reply.effects.is_empty(), dropped, "{args}");
        }
        let mut over = three();
        over.saved[0].state = HandoffState::Expired;
        let reply = run("discard 01985f3a-7c2e-7aaa", &over);
        assert!(reply.text.contains("is over already"), "{}", reply.text);
        assert!(reply.effects.is_empty());
    }
}
