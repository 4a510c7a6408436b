//! What `baton run` needs of the chat platforms, as far as it can be told without dialling them: tokens that are there and
//! look like ones, and somebody who may speak. No token is ever shown.

use gateway_core::access::AccessRules;
use secrecy::ExposeSecret;

use super::Check;
use crate::config::{Account, ChatKind, ChatSettings, Environment, SecretRef, Settings};

/// One check per platform of a profile.
pub(super) fn chats(settings: &Settings, environment: &Environment) -> Vec<Check> {
    let profiles = settings.profiles.values();
    let chats = profiles.flat_map(|profile| {
        let chats = profile.chat.iter();
        chats.map(move |(kind, chat)| (profile.id.as_str(), *kind, chat))
    });
    chats
        .map(|(profile, kind, chat)| {
            let name = format!("{} of {profile}", kind.name());
            one(name, kind, chat, environment)
        })
        .collect()
}

fn one(name: String, kind: ChatKind, chat: &ChatSettings, environment: &Environment) -> Check {
    for (secret, look) in tokens(&chat.account) {
        let value = match secret.resolve_in(environment) {
            Ok(value) => value,
            Err(error) => {
                let hint = "until then `baton run` cannot serve it; `baton chat` needs none of it";
                return Check::fail(name, error.to_string(), hint);
            }
        };
        if !(look.fits)(value.expose_secret()) {
            let detail = format!("what {secret} holds does not look like {}", look.what);
            return Check::warn(name, detail, look.hint);
        }
    }
    let people = people(&chat.access);
    if nobody(&chat.access) {
        let hint = match kind {
            ChatKind::Discord => {
                "name people in users, roles or operators; while there is no operator, `baton run` offers a pairing code"
            }
            ChatKind::Slack => {
                "name people in users or operators; while there is no operator, `baton run` offers a pairing code"
            }
        };
        return Check::warn(name, "nobody may speak to it", hint);
    }
    Check::ok(name, format!("its tokens look right; {people}"))
}

/// What a token looks like.
struct Look {
    what: &'static str,
    fits: fn(&str) -> bool,
    hint: &'static str,
}

fn tokens(account: &Account) -> Vec<(&SecretRef, Look)> {
    match account {
        Account::Discord { token, .. } => {
            let look = Look {
                what: "a bot token",
                fits: is_discord_token,
                hint: "copy the token of \"Bot\" in Discord's developer portal, without \"Bot \" before it; it is shown once, after \"Reset Token\"",
            };
            vec![(token, look)]
        }
        Account::Slack {
            app_token,
            bot_token,
            ..
        } => {
            let app = Look {
                what: "an app-level token (xapp-…)",
                fits: |token| token.starts_with("xapp-"),
                hint: "make one under \"Basic Information\" of the app, with the scope connections:write",
            };
            let bot = Look {
                what: "a bot token (xoxb-…)",
                fits: |token| token.starts_with("xoxb-"),
                hint: "copy the bot token under \"OAuth & Permissions\" of the app, after it was installed",
            };
            vec![(app_token, app), (bot_token, bot)]
        }
    }
}

/// Three parts with dots between them, of the letters of base64 for addresses (as the tokens of 2026 are).
fn is_discord_token(token: &str) -> bool {
    let parts: Vec<&str> = token.split('.').collect();
    let is_part = |part: &&str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=');
        !part.is_empty() && part.chars().all(fits)
    };
    parts.len() == 3 && parts.iter().all(is_part)
}

fn nobody(access: &AccessRules) -> bool {
    let everyone = access.everyone_in_channels && !access.channels.is_empty();
    let listed = access.users.len() + access.roles.len() + access.operators.len();
    !everyone && listed == 0
}

fn people(access: &AccessRules) -> String {
    let channels = match access.channels.len() {
        0 => "any channel".to_owned(),
        n => format!("{n} channel(s)"),
    };
    let who = match access.everyone_in_channels {
        true => "everyone there".to_owned(),
        false => format!(
            "{} person(s), {} role(s)",
            access.users.len(),
            access.roles.len()
        ),
    };
    format!("{channels}, {who}, {} operator(s)", access.operators.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use providers::Permissions;

    use super::super::Status;
    use super::*;

    fn slack(users: &[&str]) -> ChatSettings {
        ChatSettings {
            account: Account::Slack {
                app_token: SecretRef::Env("APP".to_owned()),
                bot_token: SecretRef::Env("BOT".to_owned()),
                api_url: None,
            },
            access: AccessRules {
                users: users.iter().map(|user| (*user).to_owned()).collect(),
                ..AccessRules::default()
            },
            permissions: Permissions::None,
            show_tools: false,
            command_prefix: String::new(),
        }
    }

    fn look(chat: &ChatSettings, variables: &[(&str, &str)]) -> Check {
        let environment = Environment::of(Path::new("/home"), variables);
        one(
            "slack of default".to_owned(),
            ChatKind::Slack,
            chat,
            &environment,
        )
    }

    #[test]
    fn a_missing_token_fails_and_a_strange_one_is_said_without_being_shown() {
        let missing = look(&slack(&["U1"]), &[("APP", "xapp-1")]);
        assert_eq!(missing.status, Status::Fail);
        assert!(missing.detail.contains("BOT"), "{}", missing.detail);
        let strange = look(
            &slack(&["U1"]),
            &[("APP", "secret-value"), ("BOT", "xoxb-1")],
        );
        assert_eq!(strange.status, Status::Warn);
        assert!(strange.detail.contains("$APP") && !strange.detail.contains("secret-value"));
        let good = look(&slack(&["U1"]), &[("APP", "xapp-1"), ("BOT", "xoxb-1")]);
        assert_eq!(good.status, Status::Ok, "{}", good.detail);
    }

    #[test]
    fn a_bot_nobody_may_speak_to_is_said() {
        let tokens = [("APP", "xapp-1"), ("BOT", "xoxb-1")];
        assert_eq!(look(&slack(&[]), &tokens).status, Status::Warn);
        let mut open = slack(&[]);
        open.access.everyone_in_channels = true;
        assert_eq!(
            look(&open, &tokens).status,
            Status::Warn,
            "no channel is listed"
        );
        open.access.channels = BTreeSet::from(["C1".to_owned()]);
        assert_eq!(look(&open, &tokens).status, Status::Ok);
    }

    #[test]
    fn discord_tokens_have_three_parts() {
        let rows = [
            ("abcDEF123.gh-I.jk_L", true),
            ("Bot abc.def.ghi", false),
            ("abc.def", false),
            ("a..b", false),
            ("", false),
        ];
        for (token, fits) in rows {
            assert_eq!(is_discord_token(token), fits, "{token}");
        }
    }
}
