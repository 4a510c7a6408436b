//! `/new`: a new conversation on the same lane. What the old one had pending is dropped, and said first.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::message::Audience;

use crate::view::View;
use crate::when::clock;
use crate::{Command, count, to_everyone};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "new",
        aliases: &[],
        summary: "Starts a new conversation and says what is dropped.",
        argument: "",
        audience: Audience::Everyone,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    if view.turn.is_some() {
        return to_everyone(
            "A turn is running here. /stop it first, then /new.",
            Vec::new(),
        );
    }
    let dropped = view
        .handoffs
        .iter()
        .filter_map(|stored| dropped(stored, view));
    let lines: Vec<String> = std::iter::once("New conversation.".to_owned())
        .chain(dropped)
        .collect();
    to_everyone(lines.join("\n"), vec![CommandEffect::NewConversation])
}

/// One line for a handoff that goes with the old conversation; `None` = it was over already.
fn dropped(stored: &StoredHandoff, view: &View) -> Option<String> {
    let which = match stored.state {
        HandoffState::Armed => "the saved handoff",
        HandoffState::Stopped => "the turn you stopped",
        _ => return None,
    };
    let handoff = &stored.handoff;
    Some(format!(
        "Dropped: {which} of {}: {}, {}, {}.",
        clock(handoff.created_at, view),
        handoff.reason,
        count(handoff.calls.len(), "tool call"),
        count(handoff.open_todos.len(), "open todo"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at, handoff, view};
    use crate::view::RunningTurn;

    #[test]
    fn nothing_pending_is_one_line() {
        let reply = run("", &view());
        assert_eq!(reply.text, "New conversation.");
        assert_eq!(reply.effects, [CommandEffect::NewConversation]);
    }

    #[test]
    fn what_is_dropped_is_said_and_what_is_over_is_not() {
        let mut view = view();
        view.handoffs = vec![
            handoff(HandoffState::Armed),
            handoff(HandoffState::Stopped),
            handoff(HandoffState::Acked),
        ];
        insta::assert_snapshot!(run("", &view).text, @r"
        New conversation.
        Dropped: the saved handoff of 08:50 (10m ago): rate limit, 0 tool calls, 0 open todos.
        Dropped: the turn you stopped of 08:50 (10m ago): rate limit, 0 tool calls, 0 open todos.
        ");
    }

    #[test]
    fn a_running_turn_is_never_dropped_silently() {
        let mut view = view();
        view.turn = Some(RunningTurn {
            started_at: at(-10),
        });
        let reply = run("", &view);
        assert!(reply.text.contains("/stop"));
        assert!(reply.effects.is_empty());
    }
}
