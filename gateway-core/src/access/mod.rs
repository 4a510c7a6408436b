//! Who may speak where: deny by default. A sender is admitted if a list names them **and** the place is one of the
//! profile's; channels alone admit nobody unless the profile says so. Nothing here asks a platform anything: ids come in
//! as the platform gave them, the decision goes out with its reason.

mod overlap;
mod pairing;
mod strangers;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::message::Standing;

pub use overlap::{Overlap, Served, overlaps};
pub use pairing::{Pairing, PairingCode, Redeemed};
pub use strangers::{STRANGER_LINE, Strangers};

/// Who and where of one profile on one platform, by the platform's ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// Discord servers or Slack workspaces; empty = any the bot is in.
    pub guilds: BTreeSet<String>,
    /// Channels; a thread counts as its parent. Empty = any channel of the guilds.
    pub channels: BTreeSet<String>,
    pub users: BTreeSet<String>,
    /// Whoever has one of these is admitted; Slack has none.
    pub roles: BTreeSet<String>,
    pub operators: BTreeSet<String>,
    /// Admits everyone in the listed channels; nobody if none are listed.
    pub everyone_in_channels: bool,
    /// Other bots that may speak when they mention ours.
    pub bots: BTreeSet<String>,
    /// How many messages of bots in a row are answered; a person's message starts the count again.
    pub bot_depth: u32,
}

/// Who sent something.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'a> {
    pub id: &'a str,
    /// Their roles in this place; empty in a DM, where platforms tell none.
    pub roles: &'a [String],
    pub kind: SpeakerKind,
}

/// What sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeakerKind {
    Person,
    /// Another bot or a webhook; `in_a_row` counts the bot messages answered in this place since a person last spoke.
    Bot {
        in_a_row: u32,
    },
    /// The bot itself.
    Ourselves,
}

/// Where it was sent.
#[derive(Debug, Clone, Copy)]
pub enum Spot<'a> {
    Direct,
    Channel {
        /// `None` = the platform did not say: counts as not listed where guilds are listed.
        guild: Option<&'a str>,
        channel: &'a str,
        /// The channel a thread hangs on; `None` = it is no thread.
        parent: Option<&'a str>,
    },
}

/// Whether it was meant for the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A command, a button, a mention.
    ByName,
    /// A message that names nobody.
    Overheard,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Admitted(Standing),
    /// Somebody unknown spoke to us: at most one polite line, never a model call. See [`Strangers`].
    Stranger,
    /// As if it had not been said.
    Ignored(Silence),
}

/// Why something is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    Ourselves,
    /// A bot the profile does not name, or one that did not mention us.
    Bot,
    /// Bots have talked with each other for long enough.
    BotDepth,
    /// Not one of the profile's places.
    Elsewhere,
    /// Nobody called us, and not every message here is for us.
    NotAddressed,
}

impl AccessRules {
    /// Decides on one message, command or click.
    pub fn admit(&self, speaker: &Speaker<'_>, spot: &Spot<'_>, call: Call) -> Admission {
        match speaker.kind {
            SpeakerKind::Ourselves => Admission::Ignored(Silence::Ourselves),
            SpeakerKind::Bot { in_a_row } => self.admit_bot(speaker.id, in_a_row, spot, call),
            SpeakerKind::Person => self.admit_person(speaker, spot, call),
        }
    }

    fn admit_bot(&self, id: &str, in_a_row: u32, spot: &Spot<'_>, call: Call) -> Admission {
        let place = self.place(spot);
        let is_named =
            self.bots.contains(id) && call == Call::ByName && !matches!(spot, Spot::Direct);
        Admission::Ignored(match () {
            () if !is_named => Silence::Bot,
            () if place == Listing::Elsewhere => Silence::Elsewhere,
            () if in_a_row >= self.bot_depth => Silence::BotDepth,
            () => return Admission::Admitted(Standing::Member),
        })
    }

    fn admit_person(&self, speaker: &Speaker<'_>, spot: &Spot<'_>, call: Call) -> Admission {
        let place = self.place(spot);
        if place == Listing::Elsewhere {
            return Admission::Ignored(Silence::Elsewhere);
        }
        let is_for_us = call == Call::ByName || place != Listing::Open;
        match self.standing(speaker, place) {
            Some(standing) if is_for_us => Admission::Admitted(standing),
            Some(_) => Admission::Ignored(Silence::NotAddressed),
            None if call == Call::ByName || place == Listing::Direct => Admission::Stranger,
            None => Admission::Ignored(Silence::NotAddressed),
        }
    }

    /// What the lists say of a person; `None` = nothing.
    fn standing(&self, speaker: &Speaker<'_>, place: Listing) -> Option<Standing> {
        let has_role = || speaker.roles.iter().any(|role| self.roles.contains(role));
        if self.operators.contains(speaker.id) {
            Some(Standing::Operator)
        } else if self.users.contains(speaker.id)
            || (place != Listing::Direct && has_role())
            || (place == Listing::Listed && self.everyone_in_channels)
        {
            Some(Standing::Member)
        } else {
            None
        }
    }

    fn place(&self, spot: &Spot<'_>) -> Listing {
        let Spot::Channel {
            guild,
            channel,
            parent,
        } = spot
        else {
            return Listing::Direct;
        };
        let known = guild.is_some_and(|guild| self.guilds.contains(guild));
        if !self.guilds.is_empty() && !known {
            return Listing::Elsewhere;
        }
        let is_listed = self.channels.contains(*channel)
            || parent.is_some_and(|parent| self.channels.contains(parent));
        match (is_listed, self.channels.is_empty()) {
            (true, _) => Listing::Listed,
            (false, true) => Listing::Open,
            (false, false) => Listing::Elsewhere,
        }
    }
}

/// How a place stands in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Named: every message of admitted people is for us.
    Listed,
    /// No channel is named: mentions and commands are for us.
    Open,
    /// Counts as listed, for people named one by one.
    Direct,
    Elsewhere,
}
