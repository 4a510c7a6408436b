//! Newtypes that cannot be mixed up. Each is a name somebody else chose (a person, a platform, a CLI) or an id of ours;
//! none carries meaning beyond equality, except [`SubscriptionId`], which compares trimmed and without regard to case.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id! {
    /// The chat lane a conversation lives on, for example `agent:default:console:local`.
    SessionKey
}
text_id! {
    /// One conversation on a lane; `/new` opens another one under the same [`SessionKey`].
    ConversationId
}
text_id! {
    /// One request answered, from [`Inbound`](crate::message::Inbound) to [`Outcome`](crate::turn::Outcome). A UUID v7.
    TurnId
}
text_id! {
    /// One try on one route. A UUID v7.
    AttemptId
}
text_id! {
    /// One saved handoff. A UUID v7.
    HandoffId
}
text_id! {
    /// The id a platform gave a message or command; the key of inbound dedupe.
    InboundId
}
text_id! {
    /// The session id of a CLI (a UUID for Claude). Sessions are kept by id, never by title.
    ProviderSessionId
}
text_id! {
    /// A model name as the config writes it; passed to the provider unchanged.
    ModelId
}
text_id! {
    /// A profile's name; `default` lives in the root itself.
    ProfileId
}

/// A subscription's name as the config writes it. Equality, order and hash ignore case and surrounding space.
#[derive(Clone)]
pub struct SubscriptionId {
    shown: String,
    key: String,
}

impl SubscriptionId {
    /// Trims the name and remembers it as written.
    pub fn new(text: impl AsRef<str>) -> Self {
        let shown = text.as_ref().trim().to_owned();
        let key = shown.to_lowercase();
        Self { shown, key }
    }

    /// The name as written, trimmed: what people are shown.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The folded name: what is compared, stored and joined on.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl PartialEq for SubscriptionId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for SubscriptionId {}
impl PartialOrd for SubscriptionId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SubscriptionId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}
impl Hash for SubscriptionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}
impl fmt::Debug for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}
impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
impl From<&str> for SubscriptionId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
impl Serialize for SubscriptionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}
impl<'de> Deserialize<'de> for SubscriptionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscription_ids_compare_trimmed_and_without_case() {
        assert_eq!(
            SubscriptionId::new(" Claude-APX-1 "),
            SubscriptionId::new("claude-apx-1")
        );
        assert_eq!(
            SubscriptionId::new(" Claude-APX-1 ").as_str(),
            "Claude-APX-1"
        );
    }
}
