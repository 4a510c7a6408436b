//! Where answers go, as text: the address that travels with what was heard, through the journal too. Tokens of interactions
//! never stand in it (it is stored and logged); they are in [`crate::asked`], found by the interaction's id.

use std::fmt;

use crate::settings::snowflake;

/// An address of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) channel: u64,
    /// Whether the channel is a direct conversation, where nothing has to be kept from anybody.
    pub(crate) direct: bool,
    pub(crate) came_by: CameBy,
}

/// What brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CameBy {
    Message,
    Command {
        interaction: u64,
    },
    Press {
        interaction: u64,
        /// The message whose button it was.
        message: u64,
    },
}

impl Address {
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let (by, place) = match text.split_once('@') {
            Some((by, place)) => (Some(by), place),
            None => (None, text),
        };
        let (kind, channel) = place.split_once(':')?;
        let direct = match kind {
            "direct" => true,
            "channel" => false,
            _ => return None,
        };
        let parts: Vec<&str> = by.map_or(Vec::new(), |by| by.split(':').collect());
        let came_by = match parts.as_slice() {
            [] => CameBy::Message,
            ["command", id] => CameBy::Command {
                interaction: number(id)?,
            },
            ["press", id, message] => CameBy::Press {
                interaction: number(id)?,
                message: number(message)?,
            },
            _ => return None,
        };
        Some(Self {
            channel: number(channel)?,
            direct,
            came_by,
        })
    }
}

/// Digits as they are written out, so that an address has one form only.
fn number(text: &str) -> Option<u64> {
    snowflake(text).filter(|_| !text.starts_with('0'))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.came_by {
            CameBy::Message => {}
            CameBy::Command { interaction } => write!(f, "command:{interaction}@")?,
            CameBy::Press {
                interaction,
                message,
            } => write!(f, "press:{interaction}:{message}@")?,
        }
        let kind = if self.direct { "direct" } else { "channel" };
        write!(f, "{kind}:{}", self.channel)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_ours_is_no_address() {
        for text in [
            "",
            "channel:",
            "channel:0",
            "channel:01",
            "channel:-1",
            "thread:1",
            "@channel:1",
            "press:1@channel:1",
            "command:1:2@channel:1",
            "command:x@channel:1",
            "console",
            "channel:18446744073709551616",
        ] {
            assert_eq!(Address::decode(text), None, "{text}");
        }
    }

    fn address() -> impl Strategy<Value = Address> {
        let id = 1_u64..;
        let came_by = prop_oneof![
            Just(CameBy::Message),
            id.clone()
                .prop_map(|interaction| CameBy::Command { interaction }),
            (id.clone(), id.clone()).prop_map(|(interaction, message)| CameBy::Press {
                interaction,
                message
            }),
        ];
        (id, any::<bool>(), came_by).prop_map(|(channel, direct, came_by)| Address {
            channel,
            direct,
            came_by,
        })
    }

    proptest! {
        #[test]
        fn every_address_comes_back(address in address()) {
            prop_assert_eq!(Address::decode(&address.to_string()), Some(address));
        }

        #[test]
        fn a_text_that_decodes_is_the_address_it_names(text in "(command|press|channel|direct|[0-9]{1,3}|[:@]|\\PC){0,8}") {
            if let Some(address) = Address::decode(&text) {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
