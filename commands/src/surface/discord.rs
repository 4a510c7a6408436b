//! Discord's application commands: what to register, and the way there from what is registered.

use gateway_core::command::CommandSpec;
use serde::{Deserialize, Serialize};

use super::{Demoted, Misfit, Unfit, Why, faults, names};

const PLATFORM: &str = "Discord";

/// CHAT_INPUT commands of one scope.
pub const COMMANDS_MAX: usize = 100;

/// Names, descriptions and values of one command together.
pub const SIZE_MAX: usize = 8_000;

const DESCRIPTION_MAX: usize = 100;

/// The body of one command, in Discord's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscordCommand {
    pub name: String,
    /// 1 = CHAT_INPUT.
    #[serde(rename = "type")]
    pub kind: u8,
    pub description: String,
    #[serde(default)]
    pub options: Vec<DiscordOption>,
    /// 0 = in servers, 1 = in direct messages with the bot.
    #[serde(default)]
    pub contexts: Vec<u8>,
}

/// One option: the rest of the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscordOption {
    /// 3 = STRING.
    #[serde(rename = "type")]
    pub kind: u8,
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub required: bool,
}

/// The name of the one option a command with an argument has.
pub const ARGUMENT: &str = "argument";

impl DiscordCommand {
    fn new(name: &str, spec: &CommandSpec) -> Self {
        let option = DiscordOption {
            kind: 3,
            name: ARGUMENT.to_owned(),
            description: spec.argument.chars().take(DESCRIPTION_MAX).collect(),
            required: false,
        };
        Self {
            name: name.to_owned(),
            kind: 1,
            description: spec.summary.to_owned(),
            options: Vec::from_iter((!spec.argument.is_empty()).then_some(option)),
            contexts: vec![0, 1],
        }
    }

    /// What counts against [`SIZE_MAX`], in bytes.
    pub fn size(&self) -> usize {
        let options = self
            .options
            .iter()
            .map(|option| option.name.len() + option.description.len());
        self.name.len() + self.description.len() + options.sum::<usize>()
    }
}

/// What to register, in the table's order with aliases last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub commands: Vec<DiscordCommand>,
    pub demoted: Vec<Demoted>,
}

/// Fits the table. `prefix` stands before every name, for servers where another bot has the same ones; mostly empty.
/// Every misfit is reported, not only the first.
pub fn fit(specs: &[&CommandSpec], prefix: &str) -> Result<Registration, Vec<Misfit>> {
    let named = names(specs, prefix);
    let mut misfits = faults(&named, PLATFORM, DESCRIPTION_MAX);
    let mut fitted = Registration {
        commands: Vec::new(),
        demoted: Vec::new(),
    };
    for one in &named {
        let command = DiscordCommand::new(&one.name, one.spec);
        let bytes = command.size();
        let misfit = |why| Misfit {
            name: one.name.clone(),
            platform: PLATFORM,
            why,
        };
        if bytes > SIZE_MAX {
            let max = SIZE_MAX;
            misfits.push(misfit(Unfit::Size { bytes, max }));
        }
        if fitted.commands.len() < COMMANDS_MAX {
            fitted.commands.push(command);
        } else if one.is_alias {
            fitted.demoted.push(Demoted {
                name: one.name.clone(),
                reached_as: format!("/{prefix}{}", one.spec.name),
                why: Why::AliasBeyondCap,
            });
        } else {
            misfits.push(misfit(Unfit::BeyondCap { max: COMMANDS_MAX }));
        }
    }
    match misfits.is_empty() {
        true => Ok(fitted),
        false => Err(misfits),
    }
}

/// A command as Discord lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Registered {
    /// Discord's id of the command.
    pub id: String,
    #[serde(flatten)]
    pub command: DiscordCommand,
}

/// One step from what is registered to what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Delete { id: String, name: String },
    Change { id: String, command: DiscordCommand },
    Create(DiscordCommand),
}

/// The steps, deletions before everything else: at the cap a creation before them would be refused. Empty = nothing to
/// do, and then nothing must be sent, because Discord counts creations (200 a day and server). With an empty `want` this
/// cleans a scope. Commands of other kinds (user and message menus) are deleted too: this gateway has none.
pub fn steps(want: &[DiscordCommand], have: &[Registered]) -> Vec<Step> {
    let wanted = |one: &&Registered| want.iter().any(|command| is_same(command, &one.command));
    let delete = have
        .iter()
        .filter(|one| !wanted(one))
        .map(|one| Step::Delete {
            id: one.id.clone(),
            name: one.command.name.clone(),
        });
    let found = |command: &DiscordCommand| have.iter().find(|one| is_same(command, &one.command));
    let change = want.iter().filter_map(|command| {
        let one = found(command).filter(|one| one.command != *command)?;
        Some(Step::Change {
            id: one.id.clone(),
            command: command.clone(),
        })
    });
    let create = want
        .iter()
        .filter(|command| found(command).is_none())
        .cloned()
        .map(Step::Create);
    delete.chain(change).chain(create).collect()
}

/// Discord tells commands apart by kind and name.
fn is_same(one: &DiscordCommand, other: &DiscordCommand) -> bool {
    (one.kind, &one.name) == (other.kind, &other.name)
}
