//! Slash commands: one file each with its spec, its pure `run` and its test. [`COMMANDS`] is the one table every surface,
//! the help and the terminal derive from. A command reads a [`View`] and returns words and effects; it does nothing.

mod handoffs;
mod help;
mod model;
mod nearest;
mod new;
mod pause;
mod plugins;
mod resume;
mod resume_handoff;
mod status;
mod stop;
pub mod surface;
mod switch_back;
pub mod usage;
mod view;
mod when;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use gateway_core::command::{CommandEffect, CommandReply, CommandSpec};
use gateway_core::message::Audience;

pub use view::{
    Because, EarlierConversation, EntryState, PluginLine, RoutingView, RunningTurn, Serving,
    Verdict, View,
};

/// One command: what surfaces show, and what it answers.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub spec: CommandSpec,
    /// From the rest of the line and the view to the reply. Pure.
    pub run: fn(args: &str, view: &View) -> CommandReply,
}

/// Every command of this version, in the order help shows them.
pub const COMMANDS: &[Command] = &[
    resume_handoff::COMMAND,
    status::COMMAND,
    usage::COMMAND,
    model::COMMAND,
    switch_back::COMMAND,
    pause::COMMAND,
    stop::COMMAND,
    new::COMMAND,
    resume::COMMAND,
    handoffs::COMMAND,
    plugins::COMMAND,
    help::COMMAND,
];

/// The specs alone, for platforms that register them.
pub fn specs() -> impl Iterator<Item = &'static CommandSpec> + Clone {
    COMMANDS.iter().map(|command| &command.spec)
}

/// Finds a command by its name or an alias, without regard to case. Never by a beginning: `/resume` is not `/resume-handoff`.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| {
        let mut names = std::iter::once(&command.spec.name).chain(command.spec.aliases);
        names.any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// Whether a plugin's command of this name would stand in the way of one of the gateway's.
pub fn is_taken(name: &str) -> bool {
    find(name).is_some() || surface::BATON.eq_ignore_ascii_case(name)
}

/// Whether every platform takes this name.
pub fn is_name(name: &str) -> bool {
    surface::is_name(name)
}

/// Whether a command looks beyond the running conversation: at earlier ones and at saved handoffs of other lanes. For every
/// other one [`View::earlier`] and [`View::saved`] may be left empty.
pub fn looks_back(name: &str) -> bool {
    find(name).is_some_and(|command| matches!(command.spec.name, resume::NAME | handoffs::NAME))
}

/// Answers a command; an unknown one gets the nearest name, an operators' one is refused to others.
pub fn dispatch(name: &str, args: &str, view: &View) -> CommandReply {
    match find(name) {
        Some(command) if command.spec.operators_only && !view.is_operator() => {
            to_asker(format!("/{} is for operators only.", command.spec.name))
        }
        Some(command) => (command.run)(args.trim(), view),
        None => unknown(name, view),
    }
}

fn unknown(name: &str, view: &View) -> CommandReply {
    let own = specs().map(|spec| spec.name);
    let names = own.chain(view.brought.iter().map(|spec| spec.name));
    to_asker(match nearest::nearest(name, names) {
        Some(near) => {
            format!("There is no command /{name}. Did you mean /{near}? /help lists all of them.")
        }
        None => format!("There is no command /{name}. /help lists all of them."),
    })
}

/// A reply only the asker sees, without effects.
fn to_asker(text: impl Into<String>) -> CommandReply {
    CommandReply {
        text: text.into(),
        audience: Audience::Asker,
        effects: Vec::new(),
        buttons: Vec::new(),
    }
}

/// A reply everyone sees.
fn to_everyone(text: impl Into<String>, effects: Vec<CommandEffect>) -> CommandReply {
    CommandReply {
        text: text.into(),
        audience: Audience::Everyone,
        effects,
        buttons: Vec::new(),
    }
}

/// The first words of a text as a name for it: one line, at most 48 characters. It was redacted before.
fn first_words(text: &str) -> String {
    const MAX: usize = 48;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = match line.chars().count() > MAX {
        true => {
            let cut: String = line.chars().take(MAX - 1).collect();
            format!("{}…", cut.trim_end())
        }
        false => line,
    };
    match shown.is_empty() {
        true => "(no words)".to_owned(),
        false => format!("“{shown}”"),
    }
}

/// `1 message`, `2 messages`.
fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ => format!("{n} {noun}s"),
    }
}
