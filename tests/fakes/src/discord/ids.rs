//! Snowflakes: one newtype per kind of thing, so that a user cannot be passed for a channel.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// First second of 2015: what Discord counts from.
const EPOCH_MS: i64 = 1_420_070_400_000;

macro_rules! snowflake {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

snowflake!(
    /// A person or a bot.
    UserId,
    /// A server ("guild" in the API).
    GuildId,
    /// A text channel, a thread or a DM.
    ChannelId,
    /// A message.
    MessageId,
    /// A role of a guild.
    RoleId
);

/// Hands out ids that grow with time, as Discord's do.
pub(crate) struct Snowflakes(u64);

impl Snowflakes {
    pub(crate) fn new() -> Self {
        Self(0)
    }

    pub(crate) fn next(&mut self, now: Timestamp) -> u64 {
        let since = u64::try_from(now.as_millisecond() - EPOCH_MS).unwrap_or_default();
        self.0 = (since << 22).max(self.0 + 1);
        self.0
    }
}
