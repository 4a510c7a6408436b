//! The chat sections of the profiles: ids that are ids, tokens that are named, and no message that two profiles would
//! both answer.

use std::collections::{BTreeMap, BTreeSet};

use gateway_core::access::{AccessRules, Served, overlaps};
use gateway_core::ids::ProfileId;
use secrecy::ExposeSecret;

use super::{Refused, Resolver, is_here};
use crate::config::document::KeyPath;
use crate::config::secret::{SecretError, SecretRef};
use crate::config::written::Profile;
use crate::config::written::chat::{Discord, ScopeName, Slack};
use crate::config::{Account, ChatKind, ChatSettings, ProfileSettings};

/// Messages of bots in a row that are answered.
const BOT_DEPTH: u32 = 3;

/// What an id of a list looks like.
struct IdKind {
    key: &'static str,
    fits: fn(&str) -> bool,
    hint: &'static str,
}

const SNOWFLAKE: &str = "Discord ids are numbers written as text, for example \"80351110224678912\": switch on the developer mode in Discord's settings, then right-click and copy the id";
const SLACK_PERSON: &str = "write the member id, for example \"U012AB3CD\": open the person's profile in Slack, then \"Copy member ID\"";
const SLACK_CHANNEL: &str = "write the channel id, for example \"C012AB3CD\": it stands at the end of the channel's details in Slack";
const SLACK_WORKSPACE: &str = "write the workspace id, for example \"T012AB3CD\": it stands in the address of Slack in a browser";

impl Resolver<'_> {
    /// The platforms of a profile. What is refused is left out and stands in the problems.
    pub(super) fn chats(
        &mut self,
        written: &Profile,
        path: &KeyPath,
    ) -> BTreeMap<ChatKind, ChatSettings> {
        let mut all = BTreeMap::new();
        if let Some(section) = &written.discord {
            let settings = self.discord(section, &path.join("discord"));
            all.extend(settings.ok().map(|settings| (ChatKind::Discord, settings)));
        }
        if let Some(section) = &written.slack {
            let settings = self.slack(section, &path.join("slack"));
            all.extend(settings.ok().map(|settings| (ChatKind::Slack, settings)));
        }
        all
    }

    fn discord(&mut self, written: &Discord, path: &KeyPath) -> Result<ChatSettings, Refused> {
        let token = self.token(
            ("token_env", written.token_env.as_deref()),
            ("token_file", written.token_file.as_deref()),
            "DISCORD_TOKEN",
            path,
        );
        let ids = |key| IdKind {
            key,
            fits: is_snowflake,
            hint: SNOWFLAKE,
        };
        let access = AccessRules {
            guilds: self.ids(&written.guilds, &ids("guilds"), path),
            channels: self.ids(&written.channels, &ids("channels"), path),
            users: self.ids(&written.users, &ids("users"), path),
            roles: self.ids(&written.roles, &ids("roles"), path),
            operators: self.ids(&written.operators, &ids("operators"), path),
            everyone_in_channels: written.everyone_in_channels.unwrap_or(false),
            bots: self.ids(&written.bots, &ids("bots"), path),
            bot_depth: self.bot_depth(written.bot_depth, path)?,
        };
        self.somebody_may_speak(&access, path);
        let guild_commands = written.commands == Some(ScopeName::Guild);
        if guild_commands && access.guilds.is_empty() {
            let hint = "list the servers in guilds, or take the key out to register everywhere";
            let message = "commands = \"guild\" needs to know the servers, and none is listed";
            self.error(&path.join("commands"), message, hint);
        }
        let at = path.join("api_base");
        let api_base = self.endpoint(written.api_base.as_deref(), &at, HTTP);
        let has_path = |base: &String| {
            base.split("://")
                .nth(1)
                .is_some_and(|rest| rest.contains('/'))
        };
        if api_base
            .as_ref()
            .is_ok_and(|base| base.as_ref().is_some_and(has_path))
        {
            let hint = "name the host alone, for example http://127.0.0.1:8080; /api/v10 is added";
            self.error(&at, "the address has a path", hint);
        }
        let gateway = self.endpoint(
            written.gateway_url.as_deref(),
            &path.join("gateway_url"),
            WS,
        );
        let command_prefix = self.command_prefix(written.command_prefix.as_deref(), path);
        Ok(ChatSettings {
            account: Account::Discord {
                token: token?,
                api_base: api_base?,
                gateway_url: gateway?,
                guild_commands,
            },
            access,
            permissions: written.permissions.unwrap_or_default(),
            show_tools: written.show_tools.unwrap_or(false),
            command_prefix: command_prefix?,
        })
    }

    fn slack(&mut self, written: &Slack, path: &KeyPath) -> Result<ChatSettings, Refused> {
        let app_token = self.token(
            ("app_token_env", written.app_token_env.as_deref()),
            ("app_token_file", written.app_token_file.as_deref()),
            "SLACK_APP_TOKEN",
            path,
        );
        let bot_token = self.token(
            ("bot_token_env", written.bot_token_env.as_deref()),
            ("bot_token_file", written.bot_token_file.as_deref()),
            "SLACK_BOT_TOKEN",
            path,
        );
        let ids = |key, fits, hint| IdKind { key, fits, hint };
        let person = |key| ids(key, |id| is_slack_id(id, "UW"), SLACK_PERSON);
        let workspaces = ids("workspaces", |id| is_slack_id(id, "TE"), SLACK_WORKSPACE);
        let channels = ids("channels", |id| is_slack_id(id, "CGD"), SLACK_CHANNEL);
        let bots = ids("bots", |id| is_slack_id(id, "UWB"), SLACK_PERSON);
        let access = AccessRules {
            guilds: self.ids(&written.workspaces, &workspaces, path),
            channels: self.ids(&written.channels, &channels, path),
            users: self.ids(&written.users, &person("users"), path),
            roles: BTreeSet::new(),
            operators: self.ids(&written.operators, &person("operators"), path),
            everyone_in_channels: written.everyone_in_channels.unwrap_or(false),
            bots: self.ids(&written.bots, &bots, path),
            bot_depth: self.bot_depth(written.bot_depth, path)?,
        };
        self.somebody_may_speak(&access, path);
        let api_url = self.endpoint(written.api_url.as_deref(), &path.join("api_url"), HTTP);
        let command_prefix = self.command_prefix(written.command_prefix.as_deref(), path);
        let (app_token, bot_token) = (app_token?, bot_token?);
        self.not_swapped(&app_token, &bot_token, path)?;
        Ok(ChatSettings {
            account: Account::Slack {
                app_token,
                bot_token,
                api_url: api_url?,
            },
            access,
            permissions: written.permissions.unwrap_or_default(),
            show_tools: written.show_tools.unwrap_or(false),
            command_prefix: command_prefix?,
        })
    }

    /// The named token. That it is not set is only a warning here: `baton chat` needs none of it.
    fn token(
        &mut self,
        (env_key, env): (&str, Option<&str>),
        (file_key, file): (&str, Option<&str>),
        example: &str,
        path: &KeyPath,
    ) -> Result<SecretRef, Refused> {
        let (at, secret) = match (env, file) {
            (Some(_), Some(_)) => {
                let message = format!("{env_key} and {file_key} are both set");
                self.error(&path.join(file_key), message, "keep one of them");
                return Err(Refused);
            }
            (Some(name), None) => {
                let at = path.join(env_key);
                (at.clone(), self.variable(name, example, &at)?)
            }
            (None, Some(file)) => {
                let at = path.join(file_key);
                let file = self.path(file, &at).ok_or(Refused)?;
                (at, SecretRef::File(file))
            }
            (None, None) => {
                let what = env_key.trim_end_matches("_env").replace('_', " ");
                let hint = format!("add {env_key} = \"{example}\" or {file_key} = \"…\"");
                self.missing(
                    &path.join(env_key),
                    &format!("the {what} is missing"),
                    &hint,
                );
                return Err(Refused);
            }
        };
        match secret.resolve_in(self.environment) {
            Err(error @ SecretError::Exposed { .. }) => {
                let hint = "a secret others can read is not used";
                self.error(&at, error.to_string(), hint);
                Err(Refused)
            }
            Err(error) => {
                self.warn(
                    &at,
                    error.to_string(),
                    "`baton run` cannot serve it until then",
                );
                Ok(secret)
            }
            Ok(_) => Ok(secret),
        }
    }

    fn not_swapped(
        &mut self,
        app: &SecretRef,
        bot: &SecretRef,
        path: &KeyPath,
    ) -> Result<(), Refused> {
        let begins = |secret: &SecretRef, with: &str| {
            let text = secret.resolve_in(self.environment);
            text.is_ok_and(|text| text.expose_secret().starts_with(with))
        };
        if !begins(app, "xoxb-") && !begins(bot, "xapp-") {
            return Ok(());
        }
        let message = "the app-level token (xapp-…) and the bot token (xoxb-…) are swapped";
        let hint = "the app token is made under \"Basic Information\", the bot token under \"OAuth & Permissions\"";
        // Without its place: the section may hold more than names.
        let problem = crate::config::Problem::error(path, message).hint(hint);
        self.problems.push(problem);
        Err(Refused)
    }

    fn ids(&mut self, written: &[String], kind: &IdKind, path: &KeyPath) -> BTreeSet<String> {
        let path = path.join(kind.key);
        let mut all = BTreeSet::new();
        for (index, id) in written.iter().enumerate() {
            let at = path.join(&format!("[{}]", index + 1));
            if !(kind.fits)(id) {
                self.error(&at, format!("{id:?} is no id"), kind.hint);
            } else if !all.insert(id.clone()) {
                self.warn(&at, format!("{id} is listed twice"), "take one of them out");
            }
        }
        all
    }

    fn bot_depth(&mut self, written: Option<u64>, path: &KeyPath) -> Result<u32, Refused> {
        let Some(depth) = written else {
            return Ok(BOT_DEPTH);
        };
        u32::try_from(depth).map_err(|_| {
            let message = format!("{depth} is out of range");
            self.error(&path.join("bot_depth"), message, "a small number is meant");
            Refused
        })
    }

    fn somebody_may_speak(&mut self, access: &AccessRules, path: &KeyPath) {
        if access.everyone_in_channels && access.channels.is_empty() {
            let message =
                "everyone_in_channels needs channels, and none is listed: it would admit nobody";
            let hint = "list the channels, or name people in users";
            self.error(&path.join("everyone_in_channels"), message, hint);
            return;
        }
        let named = [&access.users, &access.roles, &access.operators];
        if named.iter().all(|list| list.is_empty()) && !access.everyone_in_channels {
            let hint = "name people in users or operators, or start `baton run` and type its pairing code in a direct message to the bot";
            let names = self.places.get(path).map(super::Spot::key);
            let problem = crate::config::Problem::warning(
                path,
                "nobody may speak to it: no users, roles or operators are named",
            )
            .hint(hint)
            .at(names);
            self.problems.push(problem);
        }
    }

    fn command_prefix(&mut self, written: Option<&str>, path: &KeyPath) -> Result<String, Refused> {
        let prefix = written.unwrap_or_default();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        // With the longest command name it has to stay within 32 characters.
        if prefix.len() <= 16 && prefix.chars().all(fits) {
            return Ok(prefix.to_owned());
        }
        let hint = "use at most 16 lower-case letters, digits, - and _, for example \"baton-\"";
        let message = format!("{prefix:?} cannot stand before a command's name");
        self.error(&path.join("command_prefix"), message, hint);
        Err(Refused)
    }

    fn endpoint(
        &mut self,
        written: Option<&str>,
        path: &KeyPath,
        schemes: [&str; 2],
    ) -> Result<Option<String>, Refused> {
        let Some(text) = written else {
            return Ok(None);
        };
        let text = text.trim().trim_end_matches('/');
        let url = reqwest::Url::parse(text).ok();
        let Some(url) = url.filter(|url| schemes.contains(&url.scheme()) && url.has_host()) else {
            let hint = format!("write it as {}://host/path", schemes[0]);
            self.error(path, "this is not an address of that kind", &hint);
            return Err(Refused);
        };
        if !url.username().is_empty() || url.password().is_some() {
            let hint = "secrets are named, never written";
            self.error(path, "the address holds a name or a password", hint);
            return Err(Refused);
        }
        if url.scheme() == schemes[1] && !is_here(url.host_str().unwrap_or_default()) {
            let message =
                "the address is not encrypted: the token and every word can be read on the way";
            self.warn(path, message, &format!("use {}", schemes[0]));
        }
        Ok(Some(text.to_owned()))
    }

    /// Profiles behind one bot: no message may belong to two, and what concerns the bot itself must be the same.
    pub(super) fn shared_bots(&mut self, profiles: &BTreeMap<ProfileId, ProfileSettings>) {
        for kind in ChatKind::ALL {
            let of_kind = |profile: &ProfileSettings| profile.chat.get(&kind).cloned();
            let all: Vec<(&ProfileId, String, ChatSettings)> = profiles
                .iter()
                .filter_map(|(id, profile)| Some((id, of_kind(profile)?)))
                .map(|(id, settings)| (id, self.bot_of(&settings.account), settings))
                .collect();
            let served: Vec<Served<'_>> = all
                .iter()
                .map(|(profile, token, settings)| Served {
                    profile,
                    token,
                    rules: &settings.access,
                })
                .collect();
            for overlap in overlaps(&served) {
                let path = section(&overlap.second, kind);
                let hint = "one message is answered by one profile";
                self.error(&path.join("channels"), overlap.to_string(), hint);
            }
            for (at, (first, token, one)) in all.iter().enumerate() {
                let later = all.iter().skip(at + 1);
                for (second, _, other) in later.filter(|(_, other, _)| other == token) {
                    self.one_bot(first, one, second, other, kind);
                }
            }
        }
    }

    fn one_bot(
        &mut self,
        first: &ProfileId,
        one: &ChatSettings,
        second: &ProfileId,
        other: &ChatSettings,
        kind: ChatKind,
    ) {
        let differs = match (&one.account, &other.account) {
            (
                Account::Discord {
                    api_base: a,
                    gateway_url: b,
                    guild_commands: c,
                    ..
                },
                Account::Discord {
                    api_base: d,
                    gateway_url: e,
                    guild_commands: f,
                    ..
                },
            ) => [
                ("api_base", a != d),
                ("gateway_url", b != e),
                ("commands", c != f),
            ]
            .to_vec(),
            (
                Account::Slack {
                    app_token: a,
                    api_url: b,
                    ..
                },
                Account::Slack {
                    app_token: c,
                    api_url: d,
                    ..
                },
            ) => {
                let same_app = self.value_of(a) == self.value_of(c);
                [("app_token_env", !same_app), ("api_url", b != d)].to_vec()
            }
            _ => Vec::new(),
        };
        let always = [
            ("command_prefix", one.command_prefix != other.command_prefix),
            ("show_tools", one.show_tools != other.show_tools),
        ];
        for (key, _) in differs
            .into_iter()
            .chain(always)
            .filter(|(_, differs)| *differs)
        {
            let message = format!(
                "the profiles {first} and {second} use the same bot token, so {key} must be the same in both"
            );
            self.error(
                &section(second, kind).join(key),
                message,
                "write the same in both sections",
            );
        }
    }

    /// Equal exactly where the bot is, as far as can be known here: by the token if it is there, else by its name.
    fn bot_of(&self, account: &Account) -> String {
        self.value_of(account.bot())
    }

    fn value_of(&self, secret: &SecretRef) -> String {
        match secret.resolve_in(self.environment) {
            Ok(value) => format!("={}", value.expose_secret()),
            Err(_) => secret.to_string(),
        }
    }
}

const HTTP: [&str; 2] = ["https", "http"];
const WS: [&str; 2] = ["wss", "ws"];

fn section(profile: &ProfileId, kind: ChatKind) -> KeyPath {
    KeyPath::of(&["profiles", profile.as_str(), kind.name()])
}

/// Discord's ids are unsigned 64-bit numbers (its reference, "Snowflakes").
fn is_snowflake(id: &str) -> bool {
    id.chars().all(|c| c.is_ascii_digit()) && id.parse::<u64>().is_ok_and(|id| id > 0)
}

/// Slack's ids are upper-case letters and digits; the first letter says what it is.
fn is_slack_id(id: &str, first: &str) -> bool {
    let mut letters = id.chars();
    letters.next().is_some_and(|letter| first.contains(letter))
        && id.len() > 1
        && letters.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}
