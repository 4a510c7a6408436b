//! What the bot may do in a channel, from roles and overwrites: Discord's algorithm (its page on permissions). Pure.

use serde::Deserialize;

const ADMINISTRATOR: u64 = 1 << 3;

/// What is needed, with its name in Discord's settings and what does not work without it.
pub(crate) const NEEDED: [(u64, &str, &str); 5] = [
    (1 << 10, "View Channel", "it hears nothing there"),
    (1 << 11, "Send Messages", "it cannot answer there"),
    (
        1 << 38,
        "Send Messages in Threads",
        "it cannot answer in threads",
    ),
    (
        1 << 16,
        "Read Message History",
        "messages of a lost connection stay lost",
    ),
    (1 << 15, "Attach Files", "long answers cannot end in a file"),
];

/// All of [`NEEDED`], for the address that invites the bot.
pub(crate) fn all_needed() -> u64 {
    NEEDED.iter().map(|(bit, _, _)| bit).sum()
}

/// A role of a server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Role {
    pub(crate) id: String,
    /// Bits, as a decimal text.
    pub(crate) permissions: String,
}

/// What a channel gives and takes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Overwrite {
    /// Of a role or a member.
    pub(crate) id: String,
    /// 0 = of a role, 1 = of a member.
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    #[serde(default)]
    pub(crate) allow: String,
    #[serde(default)]
    pub(crate) deny: String,
}

/// The bot in a server.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) user: String,
    pub(crate) guild: String,
    pub(crate) roles: Vec<String>,
    pub(crate) is_owner: bool,
}

/// What it may do in the whole server.
pub(crate) fn in_guild(standing: &Standing, roles: &[Role]) -> u64 {
    // The role everybody has carries the server's id.
    let has = |role: &&Role| role.id == standing.guild || standing.roles.contains(&role.id);
    let given = roles
        .iter()
        .filter(has)
        .fold(0, |all, role| all | bits(&role.permissions));
    match standing.is_owner || given & ADMINISTRATOR != 0 {
        true => u64::MAX,
        false => given,
    }
}

/// What it may do in one channel of it: everybody's overwrite, then those of its roles together, then its own.
pub(crate) fn in_channel(standing: &Standing, in_guild: u64, overwrites: &[Overwrite]) -> u64 {
    if in_guild == u64::MAX {
        return in_guild;
    }
    let sum = |of: &dyn Fn(&Overwrite) -> bool| {
        overwrites
            .iter()
            .filter(|one| of(one))
            .fold((0, 0), |(allow, deny), one| {
                (allow | bits(&one.allow), deny | bits(&one.deny))
            })
    };
    let steps = [
        sum(&|one| one.kind == 0 && one.id == standing.guild),
        sum(&|one| one.kind == 0 && one.id != standing.guild && standing.roles.contains(&one.id)),
        sum(&|one| one.kind == 1 && one.id == standing.user),
    ];
    steps
        .iter()
        .fold(in_guild, |has, (allow, deny)| (has & !deny) | allow)
}

fn bits(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// What is missing, for people.
pub(crate) fn missing(has: u64) -> impl Iterator<Item = (&'static str, &'static str)> {
    // Without a sight of the channel nothing else counts.
    let blind = has & (1 << 10) == 0;
    let lacks = move |(bit, _, _): &&(u64, _, _)| has & bit == 0 && (!blind || *bit == 1 << 10);
    NEEDED
        .iter()
        .filter(lacks)
        .map(|(_, name, effect)| (*name, *effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: u64 = 1 << 10;
    const SEND: u64 = 1 << 11;

    fn standing(roles: &[&str]) -> Standing {
        Standing {
            user: "9".to_owned(),
            guild: "1".to_owned(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            is_owner: false,
        }
    }

    fn role(id: &str, bits: u64) -> Role {
        Role {
            id: id.to_owned(),
            permissions: bits.to_string(),
        }
    }

    fn overwrite(id: &str, kind: u8, allow: u64, deny: u64) -> Overwrite {
        Overwrite {
            id: id.to_owned(),
            kind,
            allow: allow.to_string(),
            deny: deny.to_string(),
        }
    }

    #[test]
    fn roles_add_up_and_an_administrator_may_everything() {
        let roles = [role("1", VIEW), role("2", SEND), role("3", ADMINISTRATOR)];
        assert_eq!(in_guild(&standing(&[]), &roles), VIEW);
        assert_eq!(in_guild(&standing(&["2"]), &roles), VIEW | SEND);
        assert_eq!(in_guild(&standing(&["3"]), &roles), u64::MAX);
        let owner = Standing {
            is_owner: true,
            ..standing(&[])
        };
        assert_eq!(in_guild(&owner, &roles), u64::MAX);
        let denied = [overwrite("9", 1, 0, VIEW)];
        assert_eq!(in_channel(&owner, u64::MAX, &denied), u64::MAX);
    }

    #[test]
    fn the_more_particular_overwrite_wins() {
        let bot = standing(&["2"]);
        let rows = [
            (vec![overwrite("1", 0, 0, SEND)], VIEW),
            (
                vec![overwrite("1", 0, 0, SEND), overwrite("2", 0, SEND, 0)],
                VIEW | SEND,
            ),
            (
                vec![overwrite("2", 0, SEND, 0), overwrite("9", 1, 0, SEND)],
                VIEW,
            ),
            (
                vec![overwrite("9", 1, 0, SEND), overwrite("2", 0, 0, SEND)],
                VIEW,
            ),
            (
                vec![overwrite("3", 0, 0, SEND), overwrite("8", 1, 0, SEND)],
                VIEW | SEND,
            ),
            (
                vec![overwrite("2", 1, 0, SEND), overwrite("9", 0, 0, SEND)],
                VIEW | SEND,
            ),
        ];
        for (overwrites, want) in rows {
            assert_eq!(
                in_channel(&bot, VIEW | SEND, &overwrites),
                want,
                "{overwrites:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_and_blindness_alone() {
        let names = |has| missing(has).map(|(name, _)| name).collect::<Vec<_>>();
        assert!(names(all_needed()).is_empty());
        // The sum that stands in the address of docs/chat.md.
        assert_eq!(all_needed(), 274_878_008_320);
        assert_eq!(names(all_needed() & !SEND), ["Send Messages"]);
        assert_eq!(names(0), ["View Channel"]);
    }
}
