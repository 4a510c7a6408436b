//! `/model`: shows or chooses the route of this conversation. Only routes of the profile's chain can be chosen, as they
//! stand there: nothing is substituted. A metered one costs money, so only an operator may choose it.

use gateway_core::action::ActionKind;
use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;
use gateway_core::route::{Billing, Route};

use crate::nearest::nearest;
use crate::usage::verdict;
use crate::view::{EntryState, Verdict, View};
use crate::when::clock;
use crate::{Command, to_asker};

/// The word that gives the choice back to the chain.
const AUTO: &str = "auto";

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "model",
        aliases: &[],
        summary: "Shows or chooses the route for this conversation.",
        argument: "[sub/model | auto]",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(args: &str, view: &View) -> CommandReply {
    match args {
        "" => show(view),
        word if word.eq_ignore_ascii_case(AUTO) => choose_chain(view),
        word => match find(word, &view.chain) {
            Some(entry) => choose(entry, view),
            None => unknown(word, view),
        },
    }
}

fn show(view: &View) -> CommandReply {
    let chosen = match &view.chosen {
        Some(route) => {
            format!("Chosen for this conversation: {route}. `/model auto` goes back to the chain.")
        }
        None => "The chain decides. `/model sub/model` chooses one route for this conversation."
            .to_owned(),
    };
    let lines = view.chain.iter().enumerate().map(|(position, entry)| {
        format!(
            "{}. {}: {}",
            position + 1,
            entry.route,
            verdict(entry, view)
        )
    });
    to_asker(
        std::iter::once(chosen)
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

fn choose_chain(view: &View) -> CommandReply {
    let mut reply = to_asker(match &view.chosen {
        Some(route) => format!(
            "Back to the chain; {route} is no longer chosen.{}",
            later(view)
        ),
        None => "The chain decides already.".to_owned(),
    });
    if view.chosen.is_some() {
        reply.effects = vec![CommandEffect::ChooseRoute(None)];
        reply.buttons = undo(view);
    }
    reply
}

/// The entry somebody means: the whole route, or its subscription or its model alone where only one entry has it.
fn find<'a>(word: &str, chain: &'a [EntryState]) -> Option<&'a EntryState> {
    let exact = word.parse::<Route>().ok();
    if let Some(entry) = chain
        .iter()
        .find(|entry| Some(&entry.route) == exact.as_ref())
    {
        return Some(entry);
    }
    let mut by_part = chain.iter().filter(|entry| {
        entry.route.subscription.as_str().eq_ignore_ascii_case(word)
            || entry.route.model.as_str() == word
    });
    match (by_part.next(), by_part.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn choose(entry: &EntryState, view: &View) -> CommandReply {
    let route = &entry.route;
    if entry.billing == Billing::Metered && !view.is_operator() {
        return to_asker(format!(
            "{route} is metered: each turn on it costs money. Only an operator may choose it."
        ));
    }
    let caution = match (&entry.verdict, entry.billing) {
        (Verdict::Spent { until, .. }, _) => {
            format!(" It is known to be spent until {}.", clock(*until, view))
        }
        (_, Billing::Metered) => " It is metered: each turn on it costs money.".to_owned(),
        _ => String::new(),
    };
    let mut reply = to_asker(format!(
        "{route} is chosen for this conversation.{caution}{} {}",
        later(view),
        way_back(route, view)
    ));
    reply.effects = vec![CommandEffect::ChooseRoute(Some(route.clone()))];
    if view.chosen.as_ref() != Some(route) {
        reply.buttons = undo(view);
    }
    reply
}

/// What can be typed to have it as it was: what the button does, where there are buttons.
fn way_back(route: &Route, view: &View) -> String {
    match view.chosen.as_ref().filter(|former| *former != route) {
        Some(former) => {
            format!("`/model {former}` goes back to the route before, `/model auto` to the chain.")
        }
        None => "`/model auto` goes back to the chain.".to_owned(),
    }
}

/// An undo, where the sender may have back what it leads to.
fn undo(view: &View) -> Vec<ActionKind> {
    let former = view.chosen.as_ref().and_then(|route| view.entry(route));
    let is_metered = former.is_some_and(|entry| entry.billing == Billing::Metered);
    match is_metered && !view.is_operator() {
        true => Vec::new(),
        false => vec![ActionKind::UndoModel],
    }
}

/// A running turn stays where it is.
fn later(view: &View) -> &'static str {
    match view.turn {
        Some(_) => " The running turn stays where it is; this holds from the next one on.",
        None => "",
    }
}

fn unknown(word: &str, view: &View) -> CommandReply {
    let routes: Vec<String> = view
        .chain
        .iter()
        .map(|entry| entry.route.to_string())
        .collect();
    let suggestion = match nearest(word, routes.iter().map(String::as_str)) {
        Some(near) => format!(" Did you mean {near}?"),
        None => String::new(),
    };
    to_asker(format!(
        "`{word}` is not one route of this profile's chain.{suggestion} `/model` lists them."
    ))
}

#[cfg(test)]
mod tests {
    use gateway_core::message::Standing;

    use super::*;
    use crate::fixture::{at, view};
    use crate::view::RunningTurn;

    #[test]
    fn without_an_argument_it_lists_the_chain() {
        insta::assert_snapshot!(run("", &view()).text, @r"
        The chain decides. `/model sub/model` chooses one route for this conversation.
        1. claude-work/opus: spent until 15:00 (in 6h) by five_hour
        2. gpt-plus/gpt-6.1-sol: unknown, so it is tried
        3. fireworks/kimi-k3: metered, passed over
        ");
    }

    #[test]
    fn a_route_is_chosen_whole_or_by_the_part_only_it_has() {
        for word in [
            "gpt-plus/gpt-6.1-sol",
            "GPT-Plus/gpt-6.1-sol",
            "gpt-plus",
            "gpt-6.1-sol",
        ] {
            let reply = run(word, &view());
            assert_eq!(
                reply.effects,
                [CommandEffect::ChooseRoute(Some(Route::new(
                    "gpt-plus",
                    "gpt-6.1-sol"
                )))],
                "{word}"
            );
        }
    }

    #[test]
    fn a_part_two_entries_share_chooses_nothing() {
        let mut view = view();
        view.chain[1].route = Route::new("claude-home", "opus");
        assert!(run("opus", &view).effects.is_empty());
    }

    #[test]
    fn a_spent_route_can_be_chosen_and_the_reset_is_said() {
        insta::assert_snapshot!(
            run("claude-work/opus", &view()).text,
            @"claude-work/opus is chosen for this conversation. It is known to be spent until 15:00 (in 6h). `/model auto` goes back to the chain."
        );
    }

    #[test]
    fn a_metered_route_is_for_operators() {
        let mut view = view();
        let refused = run("fireworks/kimi-k3", &view);
        assert!(refused.effects.is_empty());
        assert!(refused.text.contains("Only an operator"));
        view.standing = Standing::Operator;
        let chosen = run("fireworks/kimi-k3", &view);
        assert_eq!(chosen.effects.len(), 1);
        assert!(chosen.text.contains("costs money"));
    }

    #[test]
    fn auto_goes_back_once() {
        let mut view = view();
        assert!(run("auto", &view).effects.is_empty());
        view.chosen = Some(Route::new("gpt-plus", "gpt-6.1-sol"));
        assert_eq!(
            run("AUTO", &view).effects,
            [CommandEffect::ChooseRoute(None)]
        );
    }

    #[test]
    fn a_choice_can_be_undone_by_a_button_and_by_typing() {
        let plan = Route::new("claude-work", "opus");
        let metered = Route::new("fireworks", "kimi-k3");
        let rows = [
            ("gpt-plus", None, true),
            ("gpt-plus", Some(&plan), true),
            ("claude-work", Some(&plan), false), // nothing changes
            ("auto", Some(&plan), true),
            ("auto", None, false),
            ("weather", Some(&plan), false),
            ("gpt-plus", Some(&metered), false), // a member may not have it back
        ];
        for (word, former, undoable) in rows {
            let mut view = view();
            view.chosen = former.cloned();
            let buttons = run(word, &view).buttons;
            assert_eq!(buttons == [ActionKind::UndoModel], undoable, "{word}");
            view.standing = Standing::Operator;
            let for_operators = undoable || former == Some(&metered);
            let buttons = run(word, &view).buttons;
            assert_eq!(buttons == [ActionKind::UndoModel], for_operators, "{word}");
        }
        let mut view = view();
        view.chosen = Some(plan);
        insta::assert_snapshot!(
            run("gpt-plus", &view).text,
            @"gpt-plus/gpt-6.1-sol is chosen for this conversation. `/model claude-work/opus` goes back to the route before, `/model auto` to the chain."
        );
    }

    #[test]
    fn a_choice_during_a_turn_says_when_it_holds() {
        let mut view = view();
        view.turn = Some(RunningTurn { started_at: at(-5) });
        assert!(run("gpt-plus", &view).text.contains("from the next one on"));
    }

    #[test]
    fn an_unknown_route_suggests_and_chooses_nothing() {
        let reply = run("claude-work/opsu", &view());
        assert_eq!(
            reply.text,
            "`claude-work/opsu` is not one route of this profile's chain. Did you mean claude-work/opus? `/model` lists them."
        );
        assert!(reply.effects.is_empty());
        assert!(!run("weather", &view()).text.contains("Did you mean"));
    }
}
