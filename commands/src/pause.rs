//! `/pause` and `/pause off`: automatic switching for this conversation. While it is paused everything is as if routing were
//! off: the chain is walked.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::View;
use crate::{Command, to_everyone};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "pause",
        aliases: &[],
        summary: "Switches automatic switching off for this conversation; `off` switches it on again.",
        argument: "[off]",
        audience: Audience::Everyone,
        operators_only: false,
        while_busy: true,
    },
    run,
};

/// What is said where routing has no part.
pub(crate) const OFF: &str = "Automatic switching is off for this profile (`routing.enabled`).";

fn run(args: &str, view: &View) -> CommandReply {
    let Some(routing) = &view.routing else {
        return to_everyone(OFF, Vec::new());
    };
    match (args, routing.paused) {
        ("" | "on", true) => to_everyone("Automatic switching is paused here already.", Vec::new()),
        ("" | "on", false) => to_everyone(
            "Automatic switching is paused for this conversation. `/pause off` switches it on again.",
            vec![CommandEffect::PauseRouting(true)],
        ),
        ("off", false) => to_everyone("Automatic switching is not paused here.", Vec::new()),
        ("off", true) => to_everyone(
            "Automatic switching is on again for this conversation.",
            vec![CommandEffect::PauseRouting(false)],
        ),
        (other, _) => to_everyone(
            format!("/pause takes nothing or `off`, not {other:?}."),
            Vec::new(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::view;
    use crate::view::RoutingView;

    #[test]
    fn it_pauses_once_and_goes_on_once() {
        let mut view = view();
        assert_eq!(run("", &view).text, OFF);
        let rows = [
            (false, "", Some(true)),
            (true, "", None),
            (true, "off", Some(false)),
            (false, "off", None),
            (false, "maybe", None),
        ];
        for (paused, args, want) in rows {
            view.routing = Some(RoutingView {
                paused,
                ..RoutingView::default()
            });
            let effects: Vec<_> = want.map(CommandEffect::PauseRouting).into_iter().collect();
            assert_eq!(run(args, &view).effects, effects, "{paused} {args}");
        }
    }
}
