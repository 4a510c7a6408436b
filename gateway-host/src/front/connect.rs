//! From the configuration to bots: one per distinct token, with every profile that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::Arc;

use gateway_core::access::AccessRules;
use gateway_core::ids::ProfileId;
use platform_discord::{CommandScope, Discord, DiscordSettings};
use platform_slack::{Slack, SlackSettings};
use platforms::adapter::{Adapter, Finding, Severity};
use platforms::chat::{Chat, Style};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::Bot;
use super::switchboard::Mouth;
use crate::config::{Account, ChatKind, ChatSettings, RootPath, SecretRef, Settings};

/// What cannot be connected, by the bot's name.
pub type Unfit = Vec<(String, Finding)>;

/// The bots of these profiles. Dials nobody. `Err` = everything that is wrong, not only the first.
pub fn bots(settings: &Settings, profiles: &BTreeSet<ProfileId>) -> Result<Vec<Bot>, Unfit> {
    let (mut bots, mut unfit) = (Vec::new(), Vec::new());
    for kind in ChatKind::ALL {
        for behind in shared(kind, settings, profiles, &mut unfit).values() {
            match bot(kind, behind, &settings.root) {
                Ok(bot) => bots.push(bot),
                Err(finding) => unfit.push((name(kind, behind), finding)),
            }
        }
    }
    match unfit.is_empty() {
        true => Ok(bots),
        false => Err(unfit),
    }
}

/// A profile behind a bot.
struct Behind<'a> {
    profile: ProfileId,
    chat: &'a ChatSettings,
    /// The account's secrets, in its order.
    secrets: Vec<SecretString>,
}

/// Profiles by their bot's token.
fn shared<'a>(
    kind: ChatKind,
    settings: &'a Settings,
    profiles: &BTreeSet<ProfileId>,
    unfit: &mut Unfit,
) -> BTreeMap<String, Vec<Behind<'a>>> {
    let mut all: BTreeMap<String, Vec<Behind<'a>>> = BTreeMap::new();
    let chosen = settings.profiles.iter();
    for (profile, its) in chosen.filter(|(id, _)| profiles.contains(*id)) {
        let Some(chat) = its.chat.get(&kind) else {
            continue;
        };
        let secrets: Result<Vec<_>, _> = chat
            .account
            .secrets()
            .into_iter()
            .map(SecretRef::resolve)
            .collect();
        match (secrets, chat.account.bot().resolve()) {
            (Ok(secrets), Ok(token)) => {
                let digest = digest(token.expose_secret());
                let behind = Behind {
                    profile: profile.clone(),
                    chat,
                    secrets,
                };
                all.entry(digest).or_default().push(behind);
            }
            (Err(error), _) | (_, Err(error)) => {
                let bot = format!("{} ({profile})", kind.name());
                unfit.push((bot, fatal(error.to_string())));
            }
        }
    }
    all
}

fn bot(kind: ChatKind, behind: &[Behind<'_>], root: &RootPath) -> Result<Bot, Finding> {
    let Some(first) = behind.first() else {
        return Err(fatal("no profile is behind it"));
    };
    let token = first.chat.account.bot().resolve();
    let token = token.map_err(|error| fatal(error.to_string()))?;
    let held = hold(root, kind, &digest(token.expose_secret()))?;
    let all: Vec<&AccessRules> = behind.iter().map(|one| &one.chat.access).collect();
    let tools = behind.iter().any(|one| one.chat.show_tools);
    let (adapter, mouth) = match (&first.chat.account, first.secrets.as_slice()) {
        (
            Account::Discord {
                api_base,
                gateway_url,
                guild_commands,
                ..
            },
            [token],
        ) => {
            let guilds = named(&all, |rules| &rules.guilds);
            let settings = DiscordSettings {
                api_base: api_base.clone(),
                gateway_url: gateway_url.clone(),
                channels: named(&all, |rules| &rules.channels),
                commands: match guild_commands {
                    true => CommandScope::Guilds(guilds.clone()),
                    false => CommandScope::Global,
                },
                guilds,
                command_prefix: first.chat.command_prefix.clone(),
                message_content: all.iter().any(|rules| !rules.channels.is_empty()),
                tools_in_channels: tools,
                ..DiscordSettings::new(token.clone())
            };
            let discord = Discord::new(settings).map_err(|error| fatal(error.to_string()))?;
            wired(discord, platform_discord::STYLE)
        }
        (Account::Slack { api_url, .. }, [app_token, bot_token]) => {
            let settings = SlackSettings {
                api_url: api_url.clone(),
                guilds: named(&all, |rules| &rules.guilds),
                channels: named(&all, |rules| &rules.channels),
                prefix: first.chat.command_prefix.clone(),
                ..SlackSettings::new(app_token.clone(), bot_token.clone())
            };
            wired(Slack::new(settings)?, platform_slack::STYLE)
        }
        _ => return Err(fatal("its tokens are incomplete")),
    };
    Ok(Bot {
        kind,
        adapter,
        mouth,
        profiles: behind.iter().map(|one| one.profile.clone()).collect(),
        held: Some(Arc::new(held)),
    })
}

/// Both sides of an adapter: its ears, and a platform that speaks through it.
fn wired<A: Adapter>(adapter: A, style: Style) -> (Arc<dyn Adapter>, Arc<dyn Mouth>) {
    let adapter = Arc::new(adapter);
    // Two processes must not share it: it begins the nonces by which a repeated post is recognised.
    let random = uuid::Uuid::new_v4().simple().to_string();
    let prefix: String = random.chars().take(10).collect();
    let mouth = Chat::start(Arc::clone(&adapter), style, &prefix);
    (adapter, Arc::new(mouth))
}

/// Everything any of the profiles names; empty if one of them names nothing, which means all.
fn named(all: &[&AccessRules], of: fn(&AccessRules) -> &BTreeSet<String>) -> Vec<String> {
    if all.iter().any(|rules| of(rules).is_empty()) {
        return Vec::new();
    }
    let names: BTreeSet<&String> = all.iter().flat_map(|rules| of(rules)).collect();
    names.into_iter().cloned().collect()
}

/// A lock on the bot, for as long as the file lives: a second process would hear every message too, or take half of them.
fn hold(root: &RootPath, kind: ChatKind, digest: &str) -> Result<File, Finding> {
    let folder = root.0.join("state").join("instances");
    let path = folder.join(format!("{}-{digest}.lock", kind.name()));
    let cannot = |error: io::Error| fatal(format!("cannot make {}: {error}", path.display()));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(cannot)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Finding {
            hint: "End it first, or leave this bot to it.".to_owned(),
            ..fatal("another `baton run` of this root serves this bot.")
        }),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

fn name(kind: ChatKind, behind: &[Behind<'_>]) -> String {
    let profiles: Vec<&str> = behind.iter().map(|one| one.profile.as_str()).collect();
    format!("{} ({})", kind.name(), profiles.join(", "))
}

fn fatal(what: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Fatal,
        what: what.into(),
        hint: String::new(),
    }
}

/// Sixteen hexadecimal digits: enough to tell tokens apart, useless for anything else.
fn digest(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    digest.iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
        hex
    })
}
