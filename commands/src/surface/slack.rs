//! Slack's slash commands: they stand in the app's manifest, not in a call at run time, so this is what the manifest has
//! to list. `/baton` is always among them and reaches every command, also where another app took its name.

use gateway_core::command::CommandSpec;
use serde::Serialize;

use super::{BATON, Demoted, Misfit, Unfit, Why, faults, names};

const PLATFORM: &str = "Slack";

/// Slash commands of one app, `/baton` included.
pub const COMMANDS_MAX: usize = 50;

const DESCRIPTION_MAX: usize = 2_000;

/// Commands that go behind `/baton` by decision; the table has places left, so none does. When it has not, this list is
/// where a name is put: [`fit`] refuses to choose.
pub const BEHIND_BATON: &[&str] = &[];

/// Commands of Slack's own. A manifest that lists one of them is refused whole ("invalid name";
/// github.com/NousResearch/hermes-agent/pull/18456, github.com/openclaw/openclaw/pull/29032), so they too go behind
/// `/baton`, unless a prefix makes another name of them.
pub const RESERVED: &[&str] = &[
    "apps",
    "archive",
    "away",
    "call",
    "collapse",
    "commands",
    "dm",
    "dnd",
    "expand",
    "feed",
    "feedback",
    "invite",
    "join",
    "leave",
    "me",
    "msg",
    "mute",
    "open",
    "prefs",
    "pro",
    "remind",
    "remove",
    "rename",
    "search",
    "shortcuts",
    "shrug",
    "star",
    "status",
    "topic",
    "who",
];

/// One entry of the manifest's `features.slash_commands`, in Slack's names. In Socket Mode it needs no URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlackCommand {
    /// With its slash.
    pub command: String,
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub usage_hint: String,
    /// `false`: user and channel names arrive as typed.
    pub should_escape: bool,
}

/// What the manifest lists, `/baton` last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub commands: Vec<SlackCommand>,
    pub demoted: Vec<Demoted>,
}

/// Fits the table; names in `behind_baton` (without prefix) get no place of their own. Every misfit is reported.
pub fn fit(
    specs: &[&CommandSpec],
    prefix: &str,
    behind_baton: &[&str],
) -> Result<Registration, Vec<Misfit>> {
    let (behind, own): (Vec<&CommandSpec>, Vec<&CommandSpec>) = specs
        .iter()
        .partition(|spec| behind_baton.contains(&spec.name));
    let named = names(&own, prefix);
    let mut misfits = faults(&named, PLATFORM, DESCRIPTION_MAX);
    misfits.extend(listed_unknown(specs, behind_baton));
    misfits.extend(
        named
            .iter()
            .filter(|one| one.name == BATON)
            .map(|one| misfit(&one.name, Unfit::Twice)),
    );
    let mut demoted: Vec<Demoted> = behind
        .into_iter()
        .map(|spec| behind_it(spec.name, Why::Listed))
        .collect();
    let mut commands = Vec::new();
    for one in &named {
        if RESERVED.contains(&one.name.as_str()) {
            demoted.push(behind_it(&one.name, Why::Reserved));
        } else if commands.len() + 1 < COMMANDS_MAX {
            commands.push(entry(&one.name, one.spec.summary, one.spec.argument));
        } else if one.is_alias {
            demoted.push(behind_it(&one.name, Why::AliasBeyondCap));
        } else {
            misfits.push(misfit(&one.name, Unfit::BeyondCap { max: COMMANDS_MAX }));
        }
    }
    commands.push(entry(
        BATON,
        "Reaches every command, also those without a place of their own.",
        "command [argument]",
    ));
    match misfits.is_empty() {
        true => Ok(Registration { commands, demoted }),
        false => Err(misfits),
    }
}

/// What is meant by the text behind `/baton`: a command and the rest of the line; nothing typed is `/help`.
pub fn behind_baton(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (name, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match name.trim_start_matches('/') {
        "" => ("help", ""),
        name => (name, args.trim_start()),
    }
}

fn listed_unknown(specs: &[&CommandSpec], listed: &[&str]) -> Vec<Misfit> {
    let is_known = |name: &&&str| specs.iter().any(|spec| spec.name == **name);
    let unknown = listed.iter().filter(|name| !is_known(name));
    unknown
        .map(|name| misfit(name, Unfit::ListedUnknown))
        .collect()
}

fn misfit(name: &str, why: Unfit) -> Misfit {
    Misfit {
        name: name.to_owned(),
        platform: PLATFORM,
        why,
    }
}

fn behind_it(name: &str, why: Why) -> Demoted {
    Demoted {
        name: name.to_owned(),
        reached_as: format!("/{BATON} {name}"),
        why,
    }
}

fn entry(name: &str, description: &str, usage_hint: &str) -> SlackCommand {
    SlackCommand {
        command: format!("/{name}"),
        description: description.to_owned(),
        usage_hint: usage_hint.chars().take(1_000).collect(),
        should_escape: false,
    }
}
