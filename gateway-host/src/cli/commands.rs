//! `baton commands`: what is registered where, from the one table, and what a platform's cap demoted. Works without a
//! configuration; with one, each prefix a profile puts before its commands is a place of its own.

use std::collections::BTreeMap;

use commands::surface::{BATON, Demoted, Misfit, discord, slack};
use commands::{find, specs};
use gateway_core::command::CommandSpec;
use serde_json::{Value, json};

use super::Surroundings;
use super::answer::Answer;
use super::outcome::{Exit, Failure};
use crate::config::{ChatKind, ProfileSettings, Settings};

/// One registration: a platform, and the profiles whose commands have the same prefix there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) platform: ChatKind,
    /// Before every name but `/baton`; mostly empty.
    pub(crate) prefix: String,
    /// Empty = no profile asks for it yet.
    pub(crate) profiles: Vec<String>,
}

/// The platform's name for people.
fn name(platform: ChatKind) -> &'static str {
    match platform {
        ChatKind::Discord => "Discord",
        ChatKind::Slack => "Slack",
    }
}

fn cap(platform: ChatKind) -> usize {
    match platform {
        ChatKind::Discord => discord::COMMANDS_MAX,
        ChatKind::Slack => slack::COMMANDS_MAX,
    }
}

pub(crate) fn run(
    profile: Option<&str>,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let loaded = around.loaded_if_any()?;
    let places = places(loaded.as_ref().map(|loaded| &loaded.settings), profile)?;
    show(&places, answer)
}

/// Where commands are registered: once for each prefix the profiles have on a platform, and as they are without a
/// configuration where no profile is served.
pub(crate) fn places(
    settings: Option<&Settings>,
    profile: Option<&str>,
) -> Result<Vec<Place>, Failure> {
    let profiles: Vec<&ProfileSettings> = settings
        .into_iter()
        .flat_map(|settings| settings.profiles.values())
        .filter(|one| profile.is_none_or(|profile| one.id.as_str() == profile))
        .collect();
    if let Some(profile) = profile.filter(|_| profiles.is_empty()) {
        return Err(Failure::usage(anyhow::anyhow!(
            "there is no profile `{profile}`; `baton config show` lists those there are."
        )));
    }
    let all = ChatKind::ALL.into_iter();
    Ok(all
        .flat_map(|platform| places_on(platform, &profiles))
        .collect())
}

fn places_on(platform: ChatKind, profiles: &[&ProfileSettings]) -> Vec<Place> {
    let mut by_prefix: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for profile in profiles {
        if let Some(chat) = profile.chat.get(&platform) {
            let prefix = by_prefix.entry(&chat.command_prefix).or_default();
            prefix.push(profile.id.to_string());
        }
    }
    if by_prefix.is_empty() {
        by_prefix.insert("", Vec::new());
    }
    let place = |(prefix, profiles): (&str, Vec<String>)| Place {
        platform,
        prefix: prefix.to_owned(),
        profiles,
    };
    by_prefix.into_iter().map(place).collect()
}

fn show(places: &[Place], answer: &mut Answer) -> Result<Exit, Failure> {
    let table: Vec<&CommandSpec> = specs().collect();
    let fitted: Vec<(&Place, Result<Fitted, Vec<Misfit>>)> = places
        .iter()
        .map(|place| (place, fit(place, &table)))
        .collect();
    if answer.is_json() {
        let rows: Vec<Value> = fitted
            .iter()
            .map(|(place, fitted)| row(place, fitted))
            .collect();
        answer.json(&json!({ "platforms": rows }))?;
    } else {
        let sheets: Vec<String> = fitted
            .iter()
            .map(|(place, fitted)| sheet(place, fitted))
            .collect();
        answer.line(&sheets.join("\n\n"))?;
    }
    let fits = fitted.iter().all(|(_, fitted)| fitted.is_ok());
    Ok(if fits { Exit::Done } else { Exit::Failed })
}

/// What one place registers.
struct Fitted {
    commands: Vec<Registered>,
    demoted: Vec<Demoted>,
}

struct Registered {
    /// Without a slash, with its prefix.
    name: String,
    /// The command it is another name for; `None` = it is one itself.
    alias_of: Option<&'static str>,
    description: String,
    argument: String,
}

fn fit(place: &Place, table: &[&CommandSpec]) -> Result<Fitted, Vec<Misfit>> {
    let registered = |name: &str, description: &str, argument: &str| {
        let plain = name.strip_prefix(place.prefix.as_str()).unwrap_or(name);
        let own = find(plain).map(|command| command.spec.name);
        Registered {
            name: name.to_owned(),
            alias_of: own.filter(|own| *own != plain),
            description: description.to_owned(),
            argument: argument.to_owned(),
        }
    };
    match place.platform {
        ChatKind::Discord => {
            let fitted = discord::fit(table, &place.prefix)?;
            let one = |command: &discord::DiscordCommand| {
                let option = command.options.first();
                let argument = option.map_or("", |option| option.description.as_str());
                registered(&command.name, &command.description, argument)
            };
            Ok(Fitted {
                commands: fitted.commands.iter().map(one).collect(),
                demoted: fitted.demoted,
            })
        }
        ChatKind::Slack => {
            let fitted = slack::fit(table, &place.prefix, slack::BEHIND_BATON)?;
            let one = |command: &slack::SlackCommand| {
                let name = command.command.trim_start_matches('/');
                registered(name, &command.description, &command.usage_hint)
            };
            Ok(Fitted {
                commands: fitted.commands.iter().map(one).collect(),
                demoted: fitted.demoted,
            })
        }
    }
}

fn sheet(place: &Place, fitted: &Result<Fitted, Vec<Misfit>>) -> String {
    let name = name(place.platform);
    let whose = match place.profiles.as_slice() {
        [] => String::new(),
        profiles => format!(" ({})", profiles.join(", ")),
    };
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(misfits) => {
            let lines = misfits.iter().map(|misfit| format!("\n  {misfit}"));
            return format!(
                "{name}{whose}: nothing is registered{}",
                lines.collect::<String>()
            );
        }
    };
    let commands = fitted.commands.iter();
    let width = commands
        .clone()
        .map(|one| shown(one).len())
        .max()
        .unwrap_or(0);
    let lines = commands.map(|one| {
        let what = match one.alias_of {
            Some(own) => format!("another name for /{}{own}", place.prefix),
            None => one.description.clone(),
        };
        format!("\n  {:<width$}  {what}", shown(one))
    });
    let lines: String = lines.collect();
    let demoted: String = fitted
        .demoted
        .iter()
        .map(|one| format!("\n  {one}"))
        .collect();
    let demoted = match demoted.is_empty() {
        true => "\n  none was demoted".to_owned(),
        false => demoted,
    };
    format!(
        "{name}{whose}: {} of {} commands{lines}{demoted}",
        fitted.commands.len(),
        cap(place.platform)
    )
}

fn shown(one: &Registered) -> String {
    match one.argument.as_str() {
        "" => format!("/{}", one.name),
        argument => format!("/{} {argument}", one.name),
    }
}

fn row(place: &Place, fitted: &Result<Fitted, Vec<Misfit>>) -> Value {
    let (commands, demoted, misfits) = match fitted {
        Ok(fitted) => (&fitted.commands[..], &fitted.demoted[..], &[][..]),
        Err(misfits) => (&[][..], &[][..], &misfits[..]),
    };
    let commands: Vec<Value> = commands
        .iter()
        .map(|one| {
            json!({
                "name": one.name,
                "alias_of": one.alias_of.filter(|_| one.name != BATON),
                "description": one.description,
                "argument": one.argument,
            })
        })
        .collect();
    let demoted: Vec<Value> = demoted
        .iter()
        .map(|one| json!({ "name": one.name, "reached_as": one.reached_as, "why": one.why.to_string() }))
        .collect();
    let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
    json!({
        "platform": place.platform.name(),
        "profiles": place.profiles,
        "prefix": place.prefix,
        "cap": cap(place.platform),
        "commands": commands,
        "demoted": demoted,
        "problems": misfits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<&'static CommandSpec> {
        specs().collect()
    }

    #[test]
    fn every_command_and_every_alias_is_reached_on_both_platforms() {
        for place in places(None, None).unwrap() {
            let fitted = fit(&place, &table()).unwrap();
            let own = fitted.commands.iter().map(|one| one.name.as_str());
            let demoted = fitted.demoted.iter().map(|one| one.name.as_str());
            let names: Vec<&str> = own.chain(demoted).collect();
            for spec in table() {
                for name in std::iter::once(&spec.name).chain(spec.aliases) {
                    assert!(
                        names.contains(name),
                        "{name} is missing on {:?}",
                        place.platform
                    );
                }
            }
            let alias = fitted
                .commands
                .iter()
                .find(|one| one.name == "resume_handoff");
            assert_eq!(alias.unwrap().alias_of, Some("resume-handoff"));
        }
    }

    #[test]
    fn a_prefix_stands_before_every_name_and_is_seen_through() {
        let place = Place {
            platform: ChatKind::Discord,
            prefix: "b-".to_owned(),
            profiles: vec!["default".to_owned(), "work".to_owned()],
        };
        let fitted = fit(&place, &table()).unwrap();
        assert!(fitted.commands.iter().all(|one| one.name.starts_with("b-")));
        let text = sheet(&place, &Ok(fitted));
        assert!(text.starts_with("Discord (default, work): "), "{text}");
        assert!(
            text.contains("another name for /b-resume-handoff"),
            "{text}"
        );
        assert!(text.ends_with("none was demoted"), "{text}");
    }

    #[test]
    fn a_profile_that_is_not_there_is_wrong_usage() {
        let refused = places(None, Some("work")).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert!(refused.error.to_string().contains("`work`"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let place = Place {
            platform: ChatKind::Slack,
            prefix: "No Spaces ".to_owned(),
            profiles: Vec::new(),
        };
        let fitted = fit(&place, &table());
        let text = sheet(&place, &fitted);
        assert!(text.starts_with("Slack: nothing is registered\n"), "{text}");
        let row = row(&place, &fitted);
        assert!(row["commands"].as_array().unwrap().is_empty());
        assert!(!row["problems"].as_array().unwrap().is_empty());
    }
}
