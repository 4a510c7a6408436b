//! Slash commands plugins bring: which of them are offered, and what comes of one. Built-in names are never taken over, and
//! of two plugins with one name the first in the configuration has it.

use std::collections::BTreeSet;

use gateway_core::command::CommandSpec;
use gateway_core::handoff::HandoffState;
use gateway_core::ids::HandoffId;
use gateway_core::message::Audience;
use plugin_api::command;

use super::facts::{CommandAdvice, CommandFacts};
use super::merge::{Misbehaviour, Notes, Said, one_line, paragraph};

/// The longest line of help, in characters: what every platform takes.
const ABOUT_CHARS: usize = 100;

/// How many commands of one plugin are looked at.
const OFFERED: usize = 50;

/// A command a plugin brings to a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brought {
    /// The plugin's name.
    pub plugin: &'static str,
    pub spec: &'static CommandSpec,
}

/// The commands that can be offered. Kept until the process ends, as libraries are: platforms register them by reference.
pub(super) fn offered(
    said: Vec<Said<Vec<command::CommandSpec>>>,
) -> (Vec<Brought>, Vec<Misbehaviour>) {
    let (mut offered, mut bad) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for (plugin, specs) in said {
        let mut notes = Notes::of(&plugin, &mut bad);
        if specs.len() > OFFERED {
            notes.say(format!("more than {OFFERED} commands"));
        }
        for spec in specs.into_iter().take(OFFERED) {
            let name = spec.name.as_str();
            let about = one_line(spec.about.as_str(), &mut notes);
            let fault = match &about {
                _ if !commands::is_name(name) => "is no name of a command",
                _ if commands::is_taken(name) => "is a command of the gateway",
                _ if names.contains(name) => "is brought twice",
                None => "has no line of help",
                Some(_) => {
                    names.insert(name.to_owned());
                    let about = about.unwrap_or_default();
                    offered.push(kept(&plugin, name, &about, spec.operators_only));
                    continue;
                }
            };
            notes.say(format!("its command {name:?} {fault}"));
        }
    }
    (offered, bad)
}

fn kept(plugin: &str, name: &str, about: &str, operators_only: bool) -> Brought {
    let summary: String = about.chars().take(ABOUT_CHARS).collect();
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let spec = CommandSpec {
        name: leaked(name.to_owned()),
        aliases: &[],
        summary: leaked(summary),
        argument: "[text]",
        audience: Audience::Asker,
        operators_only,
        while_busy: true,
    };
    Brought {
        plugin: leaked(plugin.to_owned()),
        spec: Box::leak(Box::new(spec)),
    }
}

/// One answer without what no plugin may say or do: only what waits in this conversation can be discarded.
pub(super) fn answer(
    plugin: &str,
    said: command::CommandAdvice,
    facts: &CommandFacts,
) -> (CommandAdvice, Vec<Misbehaviour>) {
    let mut bad = Vec::new();
    let mut notes = Notes::of(plugin, &mut bad);
    let text = said.text.map(|text| paragraph(&text, &mut notes));
    let mut discards: Vec<HandoffId> = Vec::new();
    for id in said.discards {
        let waits = facts.documents.iter().find(|stored| {
            let state = stored.state;
            stored.handoff.id.as_str() == id
                && matches!(state, HandoffState::Armed | HandoffState::Stopped)
        });
        match waits {
            Some(stored) if !discards.contains(&stored.handoff.id) => {
                discards.push(stored.handoff.id.clone());
            }
            _ => notes.say("a document to discard that does not wait here"),
        }
    }
    let text = text.filter(|text| !text.trim().is_empty());
    (CommandAdvice { text, discards }, bad)
}

#[cfg(test)]
mod tests {
    use gateway_core::message::ReplyTarget;
    use jiff::Timestamp;

    use super::*;

    fn spec(name: &str, about: &str) -> command::CommandSpec {
        command::CommandSpec {
            name: name.into(),
            about: about.into(),
            operators_only: false,
        }
    }

    #[test]
    fn the_gateways_own_names_are_never_taken_and_the_first_plugin_wins() {
        let (offered, bad) = offered(vec![
            (
                "one".to_owned(),
                vec![
                    spec("weather", "Says how it is outside."),
                    spec("resume", "Mine now."),
                    spec("Resume_Handoff", "Mine now."),
                    spec("resume_handoff", "Mine now."),
                    spec("baton", "Mine now."),
                    spec("switch-back", "A name of a later version."),
                    spec("no name", "x"),
                    spec("silent", " \n"),
                ],
            ),
            (
                "two".to_owned(),
                vec![spec("weather", "Another."), spec("tide", "When.\nAnd how.")],
            ),
        ]);
        let names: Vec<_> = offered
            .iter()
            .map(|one| (one.plugin, one.spec.name, one.spec.summary))
            .collect();
        assert_eq!(
            names,
            [
                ("one", "weather", "Says how it is outside."),
                ("two", "tide", "When.")
            ]
        );
        assert_eq!(bad.len(), 7 + 1 + 1, "{bad:?}");
    }

    #[test]
    fn an_answer_is_cut_and_discards_nothing_of_others() {
        let facts = CommandFacts {
            name: "weather".to_owned(),
            argument: String::new(),
            profile: "p".into(),
            session: "s".into(),
            user: "ann".to_owned(),
            target: ReplyTarget {
                platform: "console".to_owned(),
                address: "local".to_owned(),
            },
            now: Timestamp::UNIX_EPOCH,
            documents: Vec::new(),
        };
        let said = command::CommandAdvice {
            text: Some("x".repeat(3_000)),
            discards: vec!["somebody's".to_owned()],
        };
        let (advice, bad) = answer("one", said, &facts);
        assert_eq!(advice.text.map(|text| text.len()), Some(2_000));
        assert!(advice.discards.is_empty());
        assert_eq!(bad.len(), 2, "{bad:?}");
        let silent = command::CommandAdvice {
            text: Some("\u{7}\n".to_owned()),
            discards: Vec::new(),
        };
        assert_eq!(answer("one", silent, &facts).0, CommandAdvice::default());
    }
}
