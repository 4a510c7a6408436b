//! One bot token may serve several profiles if no message could belong to two of them.

use std::fmt;

use super::AccessRules;
use crate::ids::ProfileId;

/// One profile's use of a bot token.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    pub profile: &'a ProfileId,
    /// Anything that is equal exactly where the token is: a digest of it, never shown.
    pub token: &'a str,
    pub rules: &'a AccessRules,
}

/// Two profiles that would both answer. The text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    pub first: ProfileId,
    pub second: ProfileId,
    /// A channel both list; `None` = one of them lists none, so it serves every channel.
    pub channel: Option<String>,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, .. } = self;
        write!(
            f,
            "the profiles {first} and {second} use the same bot token and "
        )?;
        match &self.channel {
            Some(channel) => write!(f, "both list the channel {channel}; list it in one of them only"),
            None => f.write_str("at least one of them lists no channels, so both would answer; list channels in both, none of them twice"),
        }
    }
}

/// Every pair that overlaps, each once, in the order given. Direct messages do not count: the first profile that names
/// the person answers those.
pub fn overlaps(served: &[Served<'_>]) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (at, first) in served.iter().enumerate() {
        for second in served.iter().skip(at + 1) {
            if let Some(channel) = overlap(first, second) {
                found.push(Overlap {
                    first: first.profile.clone(),
                    second: second.profile.clone(),
                    channel,
                });
            }
        }
    }
    found
}

fn overlap(first: &Served<'_>, second: &Served<'_>) -> Option<Option<String>> {
    let (a, b) = (first.rules, second.rules);
    if first.token != second.token || are_apart(a, b) {
        return None;
    }
    if a.channels.is_empty() || b.channels.is_empty() {
        return Some(None);
    }
    let both = a.channels.intersection(&b.channels).next();
    both.map(|channel| Some(channel.clone()))
}

/// Whether their guilds alone keep them apart.
fn are_apart(a: &AccessRules, b: &AccessRules) -> bool {
    !a.guilds.is_empty() && !b.guilds.is_empty() && a.guilds.is_disjoint(&b.guilds)
}
