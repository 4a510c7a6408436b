//! `/help`: the table, in words.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::View;
use crate::{Command, specs, to_asker};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "help",
        aliases: &[],
        summary: "Lists the commands.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    let lines: Vec<String> = specs()
        .chain(view.brought.iter().copied())
        .filter(|spec| view.is_operator() || !spec.operators_only)
        .map(line)
        .collect();
    to_asker(lines.join("\n"))
}

fn line(spec: &CommandSpec) -> String {
    match spec.argument {
        "" => format!("/{}: {}", spec.name, spec.summary),
        argument => format!("/{} {argument}: {}", spec.name, spec.summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::view;

    #[test]
    fn what_plugins_bring_comes_last() {
        const BROUGHT: CommandSpec = CommandSpec {
            name: "weather",
            aliases: &[],
            summary: "Says how it is outside.",
            argument: "[text]",
            audience: Audience::Asker,
            operators_only: true,
            while_busy: true,
        };
        let mut view = view();
        view.brought = vec![&BROUGHT];
        assert!(!run("", &view).text.contains("weather"));
        view.standing = gateway_core::message::Standing::Operator;
        let text = run("", &view).text;
        assert!(
            text.ends_with("\n/weather [text]: Says how it is outside."),
            "{text}"
        );
    }

    #[test]
    fn help_is_the_table() {
        insta::assert_snapshot!(run("", &view()).text, @"
        /resume-handoff: Previews what a cut turn left behind; consumes nothing.
        /status: Shows what serves this conversation now, since when and why.
        /usage: Shows the windows and resets of the subscriptions, with the age of each reading.
        /model [sub/model | auto]: Shows or chooses the route for this conversation.
        /switch-back: Takes the last automatic switch back.
        /pause [off]: Switches automatic switching off for this conversation; `off` switches it on again.
        /stop: Stops the running turn.
        /new: Starts a new conversation and says what is dropped.
        /resume [number or id]: Lists the earlier conversations of this chat, or picks one up again.
        /handoffs [discard KEY]: Lists your saved handoffs, or drops one.
        /help: Lists the commands.
        ");
    }
}
