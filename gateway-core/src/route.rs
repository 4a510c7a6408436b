//! Where a turn can go. A route is authoritative: nothing in it is ever substituted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{ModelId, SubscriptionId};

/// A model on a subscription; written `subscription/model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    pub subscription: SubscriptionId,
    pub model: ModelId,
}

impl Route {
    /// Builds a route from its two names.
    pub fn new(subscription: &str, model: &str) -> Self {
        Self {
            subscription: SubscriptionId::new(subscription),
            model: ModelId::new(model),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.subscription, self.model)
    }
}

/// The text is not `subscription/model`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a route; write it as subscription/model, for example claude-work/opus")]
pub struct NotARoute(pub String);

impl FromStr for Route {
    type Err = NotARoute;

    fn from_str(text: &str) -> Result<Self, NotARoute> {
        match text.trim().split_once('/') {
            Some((sub, model)) if !sub.trim().is_empty() && !model.trim().is_empty() => {
                Ok(Self::new(sub, model.trim()))
            }
            _ => Err(NotARoute(text.to_owned())),
        }
    }
}

impl Serialize for Route {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Route {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Whether a turn on a subscription costs money of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    Plan,
    Metered,
}

/// One entry of a chain with what decisions need to know of its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainEntry {
    pub route: Route,
    /// The join key into the usage registry (`provider_slug`), folded; the subscription's name unless `slug` overrides it.
    pub slug: SubscriptionId,
    pub billing: Billing,
    /// The quota group, if the identity behind the login is known; entries of one group count once.
    pub group: Option<String>,
}

/// The configured order of routes. Never changed by a decision: whatever a turn learns is a value of that turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    pub entries: Vec<ChainEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_contain_slashes() {
        let route: Route = "fireworks/accounts/x/models/kimi".parse().unwrap();
        assert_eq!(
            (route.subscription.as_str(), route.model.as_str()),
            ("fireworks", "accounts/x/models/kimi")
        );
    }

    #[test]
    fn half_a_route_is_refused_with_the_form() {
        for text in ["claude", "/opus", "claude/", ""] {
            assert!(
                text.parse::<Route>()
                    .unwrap_err()
                    .to_string()
                    .contains("subscription/model")
            );
        }
    }
}
