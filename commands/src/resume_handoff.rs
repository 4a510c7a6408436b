//! `/resume-handoff`: previews the saved handoff. It consumes nothing: the next message still carries it.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::handoff::render::resume_reply;
use gateway_core::message::Audience;

use crate::view::View;
use crate::{Command, to_asker};

/// Said where the handoff plugin is off; never "none".
pub(crate) const SWITCHED_OFF: &str = "Handoffs are switched off for this profile.";

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "resume-handoff",
        aliases: &["resume_handoff"],
        summary: "Previews what a cut turn left behind; consumes nothing.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    if !view.handoffs_enabled {
        return to_asker(SWITCHED_OFF);
    }
    to_asker(resume_reply(&view.handoffs, view.now, view.message_chars))
}

#[cfg(test)]
mod tests {
    use gateway_core::handoff::HandoffState;

    use super::*;
    use crate::fixture::{handoff, view};

    #[test]
    fn switched_off_is_its_own_answer_even_with_one_saved() {
        let mut view = view();
        view.handoffs_enabled = false;
        view.handoffs = vec![handoff(HandoffState::Armed)];
        assert_eq!(run("", &view).text, SWITCHED_OFF);
    }

    #[test]
    fn a_saved_one_is_shown_within_one_message_and_nothing_is_asked_of_the_host() {
        let mut view = view();
        view.handoffs = vec![handoff(HandoffState::Armed)];
        let whole = run("", &view);
        assert!(whole.text.contains("count the files"), "{}", whole.text);
        assert!(whole.effects.is_empty());
        view.message_chars = Some(120);
        assert!(run("", &view).text.chars().count() <= 120);
    }

    #[test]
    fn none_is_none() {
        assert_eq!(run("", &view()).text, "No saved handoff for this chat.");
    }
}
