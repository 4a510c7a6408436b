//! `/resume`: picks up an earlier conversation of this chat. What waits in a conversation stays with it: leaving one drops
//! nothing, and its handoff is carried by the next message after it was picked up again, not before. It is another command
//! than `/resume-handoff`, which previews.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::{EarlierConversation, View};
use crate::when::distance;
use crate::{Command, count, first_words, to_asker};

pub(crate) const NAME: &str = "resume";

/// Conversations listed at most; older ones are still found by their number.
const LISTED: usize = 10;

/// A beginning of an id shorter than this names nothing.
const ID_MIN: usize = 4;

/// What is shown of an id: enough to name it, and accepted back.
const ID_SHOWN: usize = 8;

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: NAME,
        aliases: &[],
        summary: "Lists the earlier conversations of this chat, or picks one up again.",
        argument: "[number or id]",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(args: &str, view: &View) -> CommandReply {
    if args.is_empty() {
        return to_asker(list(view));
    }
    match find(args, &view.earlier) {
        Found::One(_) if view.turn.is_some() => {
            to_asker("A turn is running here. /stop it first, then /resume.")
        }
        Found::One(earlier) => pick_up(earlier, view),
        Found::Several => to_asker(format!(
            "`{args}` fits several conversations; write more of the id. `/resume` lists them."
        )),
        Found::None => to_asker(format!(
            "There is no earlier conversation `{args}` in this chat. `/resume` lists them."
        )),
    }
}

fn list(view: &View) -> String {
    if view.earlier.is_empty() {
        return "There is no earlier conversation in this chat.".to_owned();
    }
    let head = "Earlier conversations of this chat; `/resume NUMBER` picks one up.".to_owned();
    let lines = view.earlier.iter().take(LISTED).map(|one| line(one, view));
    let more = view.earlier.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("And {more} older, by their number."));
    let lines: Vec<String> = std::iter::once(head).chain(lines).chain(more).collect();
    lines.join("\n")
}

/// `2. “fix the tests”: 3 exchanges, started 2d ago, last used 3h ago, a saved handoff waits (0192ab34)`
fn line(earlier: &EarlierConversation, view: &View) -> String {
    let handoff = match earlier.has_handoff {
        true => ", a saved handoff waits",
        false => "",
    };
    let id: String = earlier.id.as_str().chars().take(ID_SHOWN).collect();
    format!(
        "{}. {}: {}, started {}, last used {}{handoff} ({id})",
        earlier.number,
        first_words(&earlier.first_request),
        exchanges(earlier),
        distance(earlier.started_at, view.now),
        distance(earlier.used_at, view.now),
    )
}

fn exchanges(earlier: &EarlierConversation) -> String {
    let answered = usize::try_from(earlier.exchanges).unwrap_or(usize::MAX);
    count(answered, "exchange")
}

enum Found<'a> {
    One(&'a EarlierConversation),
    Several,
    None,
}

/// The conversation somebody means: its number, or an id or the beginning of one.
fn find<'a>(word: &str, earlier: &'a [EarlierConversation]) -> Found<'a> {
    let number = word.trim_start_matches('#').parse::<u32>().ok();
    if let Some(one) = earlier.iter().find(|one| Some(one.number) == number) {
        return Found::One(one);
    }
    let word = word.to_lowercase();
    let begins =
        |one: &&EarlierConversation| word.len() >= ID_MIN && one.id.as_str().starts_with(&word);
    let mut fitting = earlier.iter().filter(begins);
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Found::One(one),
        (Some(_), Some(_)) => Found::Several,
        (None, _) => Found::None,
    }
}

fn pick_up(earlier: &EarlierConversation, view: &View) -> CommandReply {
    let mut text = format!(
        "Back in conversation {}, {}: {}, last used {}.",
        earlier.number,
        first_words(&earlier.first_request),
        exchanges(earlier),
        distance(earlier.used_at, view.now),
    );
    if earlier.has_handoff && view.handoffs_enabled {
        text.push_str(
            " Its saved handoff waits: the next message carries it, /resume-handoff previews it.",
        );
    }
    if view.pending().next().is_some() {
        text.push_str(" The conversation you leave keeps its saved handoff.");
    }
    let mut reply = to_asker(text);
    reply.effects = vec![CommandEffect::ResumeConversation(earlier.id.clone())];
    reply
}

#[cfg(test)]
mod tests {
    use gateway_core::handoff::HandoffState;

    use super::*;
    use crate::fixture::{at, handoff, view};
    use crate::view::RunningTurn;

    fn earlier(number: u32, id: &str, first_request: &str) -> EarlierConversation {
        EarlierConversation {
            id: id.into(),
            number,
            started_at: at(-172_800),
            used_at: at(-10_800),
            exchanges: u64::from(number),
            first_request: first_request.to_owned(),
            has_handoff: number == 1,
        }
    }

    fn two() -> View {
        let mut view = view();
        view.earlier = vec![
            earlier(2, "ab12cd34-0000", ""),
            earlier(1, "ab99cd34-0000", "fix the tests\nplease"),
        ];
        view
    }

    #[test]
    fn without_an_argument_it_lists_and_changes_nothing() {
        let reply = run("", &two());
        insta::assert_snapshot!(reply.text, @r"
        Earlier conversations of this chat; `/resume NUMBER` picks one up.
        2. (no words): 2 exchanges, started 2d ago, last used 3h ago (ab12cd34)
        1. “fix the tests please”: 1 exchange, started 2d ago, last used 3h ago, a saved handoff waits (ab99cd34)
        ");
        assert!(reply.effects.is_empty());
        let none = run("", &view());
        assert_eq!(none.text, "There is no earlier conversation in this chat.");
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let mut view = view();
        view.earlier = (1..=13).map(|n| earlier(n, "x", "hello")).collect();
        let text = run("", &view).text;
        assert_eq!(text.lines().count(), 12);
        assert!(text.ends_with("And 3 older, by their number."), "{text}");
        assert_eq!(run("13", &view).effects.len(), 1);
    }

    #[test]
    fn one_is_picked_up_by_number_or_by_the_beginning_of_its_id() {
        let rows = [
            ("1", Some("ab99cd34-0000")),
            ("#2", Some("ab12cd34-0000")),
            ("AB12", Some("ab12cd34-0000")),
            ("ab99cd34", Some("ab99cd34-0000")),
            ("ab1", None), // too short to be meant
            ("3", None),
            ("-handoff", None),
            ("handoff", None),
        ];
        for (word, id) in rows {
            let effects = run(word, &two()).effects;
            let want = id.map(|id| CommandEffect::ResumeConversation(id.into()));
            assert_eq!(effects, Vec::from_iter(want), "{word}");
        }
    }

    #[test]
    fn what_fits_several_picks_none() {
        let mut view = two();
        for one in &mut view.earlier {
            one.id = format!("abcd{}", one.number).as_str().into();
        }
        let reply = run("abcd", &view);
        assert!(reply.effects.is_empty());
        assert!(reply.text.contains("several"), "{}", reply.text);
    }

    #[test]
    fn what_waits_on_either_side_is_said() {
        let mut view = two();
        view.handoffs = vec![handoff(HandoffState::Armed)];
        insta::assert_snapshot!(
            run("1", &view).text,
            @"Back in conversation 1, “fix the tests please”: 1 exchange, last used 3h ago. Its saved handoff waits: the next message carries it, /resume-handoff previews it. The conversation you leave keeps its saved handoff."
        );
        view.handoffs = vec![handoff(HandoffState::Acked)];
        insta::assert_snapshot!(
            run("2", &view).text,
            @"Back in conversation 2, (no words): 2 exchanges, last used 3h ago."
        );
    }

    #[test]
    fn nothing_is_picked_up_under_a_running_turn_but_the_list_is_shown() {
        let mut view = two();
        view.turn = Some(RunningTurn {
            started_at: at(-10),
        });
        let refused = run("1", &view);
        assert!(refused.text.contains("/stop"), "{}", refused.text);
        assert!(refused.effects.is_empty());
        assert!(run("", &view).text.contains("fix the tests"));
    }
}
