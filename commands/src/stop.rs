//! `/stop`: ends the running turn cleanly. The host seals it quietly: shown by `/resume-handoff`, never injected.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::View;
use crate::{Command, to_everyone};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "stop",
        aliases: &[],
        summary: "Stops the running turn.",
        argument: "",
        audience: Audience::Everyone,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    match view.turn {
        Some(_) => to_everyone("Stopping the running turn.", vec![CommandEffect::StopTurn]),
        None => to_everyone("No turn is running here.", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at, view};
    use crate::view::RunningTurn;

    #[test]
    fn a_running_turn_is_stopped() {
        let mut view = view();
        view.turn = Some(RunningTurn {
            started_at: at(-10),
        });
        assert_eq!(run("", &view).effects, [CommandEffect::StopTurn]);
    }

    #[test]
    fn nothing_running_is_said_and_nothing_is_asked_for() {
        let reply = run("", &view());
        assert_eq!(reply.text, "No turn is running here.");
        assert!(reply.effects.is_empty());
    }
}
