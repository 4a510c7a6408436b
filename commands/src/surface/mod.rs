//! Fits the command table to what each platform can register, and says what does not fit: nothing goes missing silently.
//! Pure data; the adapters send it and the host prints it (`baton commands`, `baton slack-manifest`).
//!
//! Caps: Discord 100 commands of a scope, names `^[-_'\p{L}\p{N}…]{1,32}$` in lower case, descriptions of 1 to 100
//! characters, 8,000 in all names, descriptions and values of one command (its application commands page; counted here in
//! bytes, which is never less). Slack 50 commands of an app, `/` and 32 characters, descriptions up to 2,000, usage hints
//! up to 1,000 (the manifest typings of `@slack/web-api` 8.2).

pub mod discord;
pub mod slack;

#[cfg(test)]
mod tests;

use std::fmt;

use gateway_core::command::CommandSpec;

/// The command that reaches every other one where a platform has too few places.
pub const BATON: &str = "baton";

/// A name that is not registered by itself, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demoted {
    pub name: String,
    pub reached_as: String,
    pub why: Why,
}

/// Why a name is not registered by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It stands in the explicit list of what goes behind `/baton`.
    Listed,
    /// The platform has a command of this name itself.
    Reserved,
    /// An alias, and the platform has no place left; its command is registered.
    AliasBeyondCap,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed for it",
            Self::Reserved => "the platform has its own",
            Self::AliasBeyondCap => "an alias beyond the platform's cap",
        })
    }
}

impl fmt::Display for Demoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            reached_as,
            why,
        } = self;
        write!(f, "/{name} is reached as {reached_as} ({why})")
    }
}

/// A command that a platform would refuse or miss: a fault of the table, found before anything is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pub name: String,
    pub platform: &'static str,
    pub why: Unfit,
}

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    Name,
    Twice,
    Description {
        max: usize,
    },
    Size {
        bytes: usize,
        max: usize,
    },
    BeyondCap {
        max: usize,
    },
    /// The explicit list names something that is no command.
    ListedUnknown,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            platform,
            why,
        } = self;
        match why {
            Unfit::Name => write!(
                f,
                "/{name}: {platform} takes names of 1 to 32 of a-z, 0-9, _ and - only"
            ),
            Unfit::Twice => write!(
                f,
                "/{name} would be registered twice on {platform}; rename one of the two"
            ),
            Unfit::Description { max } => write!(
                f,
                "/{name}: {platform} takes descriptions of 1 to {max} characters"
            ),
            Unfit::Size { bytes, max } => write!(
                f,
                "/{name} is {bytes} bytes long in all; {platform} takes {max}"
            ),
            Unfit::BeyondCap { max } => write!(
                f,
                "/{name} does not fit: {platform} takes {max} commands; put it or another one into the list of what goes behind /{BATON}"
            ),
            Unfit::ListedUnknown => write!(
                f,
                "/{name} is listed to go behind /{BATON} on {platform}, but there is no such command"
            ),
        }
    }
}

/// A name to register: of a command, or an alias of it.
#[derive(Debug, Clone)]
struct Named<'a> {
    name: String,
    spec: &'a CommandSpec,
    is_alias: bool,
}

/// Every name, those of commands before aliases, so that aliases are what a cap cuts.
fn names<'a>(specs: &[&'a CommandSpec], prefix: &str) -> Vec<Named<'a>> {
    let named = |name: &str, spec: &'a CommandSpec, is_alias| Named {
        name: format!("{prefix}{name}"),
        spec,
        is_alias,
    };
    let commands = specs.iter().map(|spec| named(spec.name, spec, false));
    let aliases = specs.iter().flat_map(|spec| {
        spec.aliases
            .iter()
            .map(move |alias| named(alias, spec, true))
    });
    commands.chain(aliases).collect()
}

pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    (1..=32).contains(&name.len()) && name.chars().all(fits)
}

/// Faults that are the same on every platform.
fn faults(names: &[Named<'_>], platform: &'static str, description_max: usize) -> Vec<Misfit> {
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for Named { name, spec, .. } in names {
        let mut fault = |why| {
            found.push(Misfit {
                name: name.clone(),
                platform,
                why,
            });
        };
        if !is_name(name) {
            fault(Unfit::Name);
        }
        if !seen.insert(name.as_str()) {
            fault(Unfit::Twice);
        }
        if !(1..=description_max).contains(&spec.summary.chars().count()) {
            fault(Unfit::Description {
                max: description_max,
            });
        }
    }
    found
}
