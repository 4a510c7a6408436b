//! Where an answer goes, as one line of text that travels with what was heard and may be kept on disk. The `response_url`
//! of a command or press is not in it: whoever knows that URL can write as the app. It is [kept in
//! memory](crate::responses) under the key that stands here.

use std::fmt;

use platforms::wire::Place;

/// What an address says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// Of a message.
    Message { place: Place, user: String },
    /// Of a slash command; Slack does not say from which thread it came.
    Command {
        channel: String,
        user: String,
        key: String,
    },
    /// Of a press.
    Press {
        place: Place,
        user: String,
        /// The `ts` of the message with the button.
        message: String,
        /// Whether only the presser sees that message.
        private: bool,
        key: String,
    },
}

/// Stands for "no thread".
const NONE: &str = "-";

impl Address {
    /// Reads an address this adapter made; `None` = it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        if !parts.iter().all(|part| is_word(part)) {
            return None;
        }
        match *parts.as_slice() {
            ["message", channel, thread, user] => Some(Self::Message {
                place: place(channel, thread)?,
                user: id(user)?,
            }),
            ["command", channel, user, key] => Some(Self::Command {
                channel: id(channel)?,
                user: id(user)?,
                key: id(key)?,
            }),
            ["press", channel, thread, user, message, seen, key] => Some(Self::Press {
                place: place(channel, thread)?,
                user: id(user)?,
                message: id(message)?,
                private: match seen {
                    "private" => true,
                    "public" => false,
                    _ => return None,
                },
                key: id(key)?,
            }),
            _ => None,
        }
    }

    /// Where messages to it go.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Message { place, .. } | Self::Press { place, .. } => place.clone(),
            Self::Command { channel, .. } => Place {
                channel: channel.clone(),
                thread: None,
            },
        }
    }

    /// Who sent what it came with.
    pub(crate) fn user(&self) -> &str {
        match self {
            Self::Message { user, .. } | Self::Command { user, .. } | Self::Press { user, .. } => {
                user
            }
        }
    }

    /// The key of its `response_url`; messages have none.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Message { .. } => None,
            Self::Command { key, .. } | Self::Press { key, .. } => Some(key),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = |place: &Place| place.thread.clone().unwrap_or_else(|| NONE.to_owned());
        match self {
            Self::Message { place, user } => {
                write!(f, "message {} {} {user}", place.channel, thread(place))
            }
            Self::Command { channel, user, key } => write!(f, "command {channel} {user} {key}"),
            Self::Press {
                place,
                user,
                message,
                private,
                key,
            } => {
                let seen = if *private { "private" } else { "public" };
                let thread = thread(place);
                write!(
                    f,
                    "press {} {thread} {user} {message} {seen} {key}",
                    place.channel
                )
            }
        }
    }
}

/// Whether `text` can be an id of Slack's: visible ASCII without spaces, and not what stands for "none".
pub(crate) fn is_id(text: &str) -> bool {
    is_word(text) && text != NONE
}

/// The conversation a place belongs to: the channel, or the thread by its root.
pub(crate) fn conversation(place: &Place) -> String {
    match &place.thread {
        Some(root) => format!("{}/{root}", place.channel),
        None => place.channel.clone(),
    }
}

/// Direct messages with the bot, and of other people, are in channels whose id begins so.
pub(crate) fn is_direct(channel: &str) -> bool {
    channel.starts_with('D')
}

fn is_word(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic())
}

fn id(text: &str) -> Option<String> {
    is_id(text).then(|| text.to_owned())
}

fn place(channel: &str, thread: &str) -> Option<Place> {
    Some(Place {
        channel: id(channel)?,
        thread: id(thread),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids() -> impl Strategy<Value = String> {
        "[A-Z][A-Z0-9]{2,12}"
    }

    fn places() -> impl Strategy<Value = Place> {
        (ids(), prop::option::of("[0-9]{10}\\.[0-9]{6}"))
            .prop_map(|(channel, thread)| Place { channel, thread })
    }

    fn addresses() -> impl Strategy<Value = Address> {
        let key = "[0-9a-f.]{1,60}";
        prop_oneof![
            (places(), ids()).prop_map(|(place, user)| Address::Message { place, user }),
            (ids(), ids(), key).prop_map(|(channel, user, key)| Address::Command {
                channel,
                user,
                key
            }),
            (places(), ids(), any::<bool>(), key).prop_map(|(place, user, private, key)| {
                Address::Press {
                    place,
                    user,
                    message: "17.1".to_owned(),
                    private,
                    key,
                }
            }),
        ]
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "message",
            "message C1 - ",
            "message - - U1",
            "message C1 - -",
            "command C1 U1",
            "press C1 - U1 1.1 seen k",
            "message C1 - U1 more",
            "console",
        ] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_address_comes_back(address in addresses()) {
            prop_assert_eq!(Address::parse(&address.to_string()), Some(address));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            if let Some(address) = Address::parse(&text) {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
