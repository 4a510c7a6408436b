//! `/switch-back`: takes the last automatic switch back. Files stay as they are; only the next message runs elsewhere.

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::View;
use crate::{Command, to_everyone};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "switch-back",
        aliases: &["switch_back"],
        summary: "Takes the last automatic switch back.",
        argument: "",
        audience: Audience::Everyone,
        operators_only: false,
        while_busy: false,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    let Some(routing) = &view.routing else {
        return to_everyone(crate::pause::OFF, Vec::new());
    };
    match &routing.came_from {
        Some(place) => to_everyone(
            format!("Switched back to {place}."),
            vec![CommandEffect::SwitchBack],
        ),
        None => to_everyone(
            "There is no automatic switch to take back here.",
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
    fn it_goes_where_the_last_switch_came_from() {
        let mut view = view();
        assert!(run("", &view).text.contains("off for this profile"));
        view.routing = Some(RoutingView::default());
        assert!(run("", &view).effects.is_empty());
        view.routing = Some(RoutingView {
            came_from: Some("claude opus".to_owned()),
            ..RoutingView::default()
        });
        let reply = run("", &view);
        assert_eq!(reply.text, "Switched back to claude opus.");
        assert_eq!(reply.effects, [CommandEffect::SwitchBack]);
    }
}
