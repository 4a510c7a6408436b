//! `baton slack-manifest`: the Slack app's manifest, to be pasted where an app is made. Slack has no registration at run time:
//! scopes, events and slash commands are what this says. Works without a configuration.

use std::io::Write;

use commands::specs;
use gateway_core::command::CommandSpec;
use platform_slack::{App, manifest};

use super::Surroundings;
use super::answer::Answer;
use super::commands::{Place, places};
use super::outcome::{Exit, Failure};
use crate::config::ChatKind;

pub(crate) fn run(
    profile: Option<&str>,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let loaded = around.loaded_if_any()?;
    let places = places(loaded.as_ref().map(|loaded| &loaded.settings), profile)?;
    let app = App {
        prefix: prefix_of(&places)?,
        ..App::default()
    };
    let table: Vec<&CommandSpec> = specs().collect();
    let (text, fitted) = manifest(&table, app).map_err(|misfits| {
        let said: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        Failure::failed(anyhow::anyhow!(
            "Slack cannot take the commands: {}.",
            said.join("; ")
        ))
    })?;
    if answer.is_json() {
        let value: serde_json::Value = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
        answer.json(&value)?;
    } else {
        answer.line(&text)?;
    }
    for demoted in &fitted.demoted {
        let _ = writeln!(std::io::stderr(), "{demoted}"); // a note nobody reads stops nothing
    }
    Ok(Exit::Done)
}

/// One app has one manifest: profiles with different prefixes are different apps.
fn prefix_of(places: &[Place]) -> Result<&str, Failure> {
    let on_slack = places
        .iter()
        .filter(|place| place.platform == ChatKind::Slack);
    let on_slack: Vec<&Place> = on_slack.collect();
    match on_slack.as_slice() {
        [] => Ok(""),
        [one] => Ok(&one.prefix),
        several => {
            let profiles: Vec<String> = several
                .iter()
                .map(|place| format!("{} ({:?})", place.profiles.join(", "), place.prefix))
                .collect();
            Err(Failure::usage(anyhow::anyhow!(
                "the profiles have different command prefixes on Slack: {}. Name one with --profile.",
                profiles.join("; ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(prefix: &str, profile: &str) -> Place {
        Place {
            platform: ChatKind::Slack,
            prefix: prefix.to_owned(),
            profiles: vec![profile.to_owned()],
        }
    }

    #[test]
    fn different_prefixes_are_different_apps() {
        assert_eq!(prefix_of(&[]).unwrap(), "");
        assert_eq!(prefix_of(&[place("b-", "work")]).unwrap(), "b-");
        let refused = prefix_of(&[place("", "default"), place("b-", "work")]).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        let said = refused.error.to_string();
        assert!(said.contains("default (\"\"); work (\"b-\")"), "{said}");
    }
}
