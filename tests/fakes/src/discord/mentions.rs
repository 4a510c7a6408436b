//! Who a text notifies, given `allowed_mentions`.
//!
//! Rules of resources/message "Allowed Mentions Object". Stricter than Discord in one point: mentions inside code are
//! counted too, because escaping that relies on a code block breaks when the block does.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::ids::{RoleId, UserId};
use super::model::Pings;

/// What holds when a request names no `allowed_mentions`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Defaults {
    /// A normal message or its edit: everything is parsed.
    Message,
    /// Through an interaction's token: people only.
    Interaction,
}

/// Returns whom `text` notifies. `replied` = author of the message it answers.
pub(crate) fn pings(
    text: &str,
    allowed: Option<&Value>,
    defaults: Defaults,
    replied: Option<UserId>,
) -> Pings {
    let allowed = Allowed::read(allowed, defaults);
    let mut found = Pings {
        everyone: allowed.everyone && (text.contains("@everyone") || text.contains("@here")),
        ..Pings::default()
    };
    static MENTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"<@(!|&)?([0-9]{1,20})>").expect("a fixed pattern"));
    for mention in MENTION.captures_iter(text) {
        let Ok(id) = mention[2].parse::<u64>() else {
            continue;
        };
        let is_role = mention.get(1).is_some_and(|sign| sign.as_str() == "&");
        if is_role && allowed.roles.admits(id) && !found.roles.contains(&RoleId(id)) {
            found.roles.push(RoleId(id));
        }
        if !is_role && allowed.users.admits(id) && !found.users.contains(&UserId(id)) {
            found.users.push(UserId(id));
        }
    }
    if let Some(user) = replied.filter(|user| allowed.replied && !found.users.contains(user)) {
        found.users.push(user);
    }
    found
}

/// Says what is contradictory in an `allowed_mentions` object: Discord answers 50035.
pub(crate) fn contradiction(allowed: &Value) -> Option<String> {
    let parse = allowed["parse"].as_array().into_iter().flatten();
    parse.filter_map(Value::as_str).find_map(|kind| {
        let listed = allowed
            .get(kind)
            .and_then(Value::as_array)
            .is_some_and(|ids| !ids.is_empty());
        listed.then(|| {
            format!(
                "allowed_mentions: parse:[\"{kind}\"] and {kind}: [ids...] are mutually exclusive."
            )
        })
    })
}

struct Allowed {
    everyone: bool,
    users: Which,
    roles: Which,
    replied: bool,
}

enum Which {
    All,
    These(Vec<u64>),
}

impl Which {
    fn admits(&self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::These(ids) => ids.contains(&id),
        }
    }
}

impl Allowed {
    fn read(allowed: Option<&Value>, defaults: Defaults) -> Self {
        let Some(allowed) = allowed.filter(|allowed| !allowed.is_null()) else {
            let all = defaults == Defaults::Message;
            return Self {
                everyone: all,
                users: Which::All,
                roles: if all {
                    Which::All
                } else {
                    Which::These(Vec::new())
                },
                replied: all,
            };
        };
        let parses = |kind: &str| {
            let parse = allowed["parse"].as_array();
            parse.is_some_and(|kinds| kinds.iter().any(|known| known == kind))
        };
        let which = |kind: &str| {
            if parses(kind) {
                return Which::All;
            }
            let ids = allowed[kind].as_array().into_iter().flatten();
            Which::These(ids.filter_map(|id| id.as_str()?.parse().ok()).collect())
        };
        Self {
            everyone: parses("everyone"),
            users: which("users"),
            roles: which("roles"),
            replied: allowed["replied_user"].as_bool().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn allowed_mentions_table() {
        let text = "@everyone <@1> <@!2> <@&3>";
        let users = |ids: &[u64]| ids.iter().copied().map(UserId).collect::<Vec<_>>();
        let rows = [
            (
                "absent_in_a_message_pings_all",
                None,
                Defaults::Message,
                true,
                users(&[1, 2, 7]),
                1,
            ),
            (
                "absent_in_an_interaction_pings_people",
                None,
                Defaults::Interaction,
                false,
                users(&[1, 2]),
                0,
            ),
            (
                "empty_parse_pings_nobody",
                Some(json!({"parse": []})),
                Defaults::Message,
                false,
                vec![],
                0,
            ),
            (
                "empty_object_pings_nobody",
                Some(json!({})),
                Defaults::Message,
                false,
                vec![],
                0,
            ),
            (
                "listed_people_only",
                Some(json!({"users": ["2"]})),
                Defaults::Message,
                false,
                users(&[2]),
                0,
            ),
            (
                "replied_user_on_request",
                Some(json!({"parse": [], "replied_user": true})),
                Defaults::Message,
                false,
                users(&[7]),
                0,
            ),
        ];
        for (name, allowed, defaults, everyone, people, roles) in rows {
            let found = pings(text, allowed.as_ref(), defaults, Some(UserId(7)));
            assert_eq!(found.everyone, everyone, "{name}");
            assert_eq!(found.users, people, "{name}");
            assert_eq!(found.roles.len(), roles, "{name}");
        }
    }

    #[test]
    fn parse_and_list_of_one_kind_contradict() {
        let both = json!({"parse": ["users"], "users": ["1"]});
        assert!(contradiction(&both).is_some());
        assert!(contradiction(&json!({"parse": ["users"], "roles": ["1"]})).is_none());
    }
}
