//! Commands of the product that later issues bring.

use super::outcome::{Exit, Failure};

const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "run",
        "Discord and Slack",
        "talk in the terminal with `baton chat`",
    ),
    (
        "slack-manifest",
        "Discord and Slack",
        "talk in the terminal with `baton chat`",
    ),
];

/// Refuses the command by name, with what brings it and what does until then.
pub(crate) fn answer(name: &str) -> Result<Exit, Failure> {
    let row = COMMANDS.iter().find(|(command, ..)| *command == name);
    let (issue, until_then) = row.map_or(("a later issue", ""), |(_, issue, hint)| (issue, hint));
    Err(Failure::usage(anyhow::anyhow!(
        "not yet: `baton {name}` comes with the issue \"{issue}\"; until then {until_then}."
    )))
}
