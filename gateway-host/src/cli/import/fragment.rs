//! A Hermes chain in our words: subscriptions, chain, registry. Joined to what stands in config.toml already, and never
//! over it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gateway_core::ids::SubscriptionId;

use super::hermes::{Endpoint, Entry, Hermes, Key, Note};
use super::upstreams::{self, Upstream};
use crate::config::Program;

/// What is to be written, and what is to be said.
#[derive(Debug)]
pub(super) struct Proposal {
    /// What is new.
    pub(super) added: String,
    /// The file as it will be.
    pub(super) whole: String,
    pub(super) profile: String,
    pub(super) notes: Vec<Note>,
}

/// Why nothing can be proposed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("nothing of this chain can be brought over:{0}")]
    Nothing(String),
    #[error(
        "subscription(s) {0} stand in config.toml already and are left as they are; nothing was written. Rename them there, then try again"
    )]
    Taken(String),
    #[error(
        "the profile {0} stands in config.toml already and is left as it is; nothing was written. Name another one with --profile"
    )]
    ProfileTaken(String),
    #[error("config.toml is not TOML: {0}. `baton config check` says where")]
    NotToml(String),
}

/// A subscription to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscription {
    name: String,
    /// The registry's join key, where the name is not it.
    slug: Option<String>,
    served_by: ServedBy,
    /// The registry lists it, so it may be a plan although it has an address.
    listed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ServedBy {
    Cli(Program),
    Http {
        provider: &'static str,
        base_url: Option<String>,
        key_env: Option<String>,
    },
}

/// Proposes what to add to `before`, the text of config.toml; `None` = there is none.
pub(super) fn propose(
    hermes: &Hermes,
    before: Option<&str>,
    profile: Option<&str>,
) -> Result<Proposal, Refused> {
    let mut notes = hermes.notes.clone();
    let mut subscriptions: Vec<Subscription> = Vec::new();
    let mut chain: Vec<String> = Vec::new();
    for entry in &hermes.chain {
        match map(entry, hermes, &mut notes) {
            Ok((subscription, model)) => {
                let name = settle(subscription, &mut subscriptions);
                let route = format!("{name}/{model}");
                if !chain.contains(&route) {
                    chain.push(route);
                }
            }
            Err(why) => notes.push(Note::new(shown(entry), why)),
        }
    }
    if chain.is_empty() {
        let lines = notes
            .iter()
            .map(|note| format!("\n- {}: {}", note.what, note.why));
        return Err(Refused::Nothing(lines.collect()));
    }
    let present = Present::of(before)?;
    let taken: Vec<&str> = subscriptions
        .iter()
        .map(|subscription| subscription.name.as_str())
        .filter(|name| {
            present
                .subscriptions
                .contains(SubscriptionId::new(*name).key())
        })
        .collect();
    if !taken.is_empty() {
        return Err(Refused::Taken(taken.join(", ")));
    }
    let profile = present.free_profile(profile)?;
    let usage = match present.usage {
        Some(snapshot) => {
            let why = format!(
                "config.toml has {snapshot} and it is left as it is; the registry of this root is {}",
                hermes.usage.display()
            );
            notes.push(Note::new("usage.json", why));
            None
        }
        None => Some(&hermes.usage),
    };
    if !hermes.usage.exists() {
        let why = format!(
            "nothing is published at {} yet; until then every subscription is tried",
            hermes.usage.display()
        );
        notes.push(Note::new("usage.json", why));
    }
    let added = render(
        hermes,
        &subscriptions,
        &chain,
        usage.map(|path| path.as_path()),
        &profile,
    );
    let whole = match before {
        Some(before) if !before.trim().is_empty() => format!("{}\n\n{added}", before.trim_end()),
        _ => added.clone(),
    };
    Ok(Proposal {
        added,
        whole,
        profile,
        notes,
    })
}

fn shown(entry: &Entry) -> String {
    match (entry.provider.as_str(), entry.model.as_str()) {
        ("", "") => entry.place.clone(),
        (provider, model) => format!("{} ({provider}/{model})", entry.place),
    }
}

/// What serves an entry here, and the model's name there.
fn map(
    entry: &Entry,
    hermes: &Hermes,
    notes: &mut Vec<Note>,
) -> Result<(Subscription, String), String> {
    let provider = entry.provider.trim();
    let short = provider.strip_prefix("custom:").unwrap_or(provider);
    let named = hermes
        .endpoints
        .iter()
        .find(|(name, _)| name == short || name == provider)
        .map(|(_, endpoint)| endpoint.clone())
        .unwrap_or_default();
    let endpoint = over(&entry.endpoint, named);
    let model = match (entry.model.as_str(), &endpoint.model) {
        ("", None) => return Err("no model is named".to_owned()),
        ("", Some(model)) => model.clone(),
        (model, _) => model.to_owned(),
    };
    let name = match short {
        "" | "auto" => match &endpoint.base_url {
            Some(url) if url.contains("openrouter.ai") => "openrouter",
            Some(_) => "custom",
            None => {
                return Err(
                    "the provider is chosen while Hermes runs; name it in config.yaml or write the subscription by hand"
                        .to_owned(),
                );
            }
        },
        short => short,
    };
    let (served_by, prefix) = served_by(name, &endpoint, hermes, &shown(entry), notes)?;
    let own = plain_name(name);
    let slug = (!provider.is_empty() && provider != "auto" && provider != own)
        .then(|| provider.to_owned());
    let subscription = Subscription {
        name: own,
        slug,
        served_by,
        listed: hermes.slugs.contains(provider),
    };
    Ok((subscription, format!("{prefix}{model}")))
}

/// What an entry says itself wins over what the named endpoint says.
fn over(own: &Endpoint, named: Endpoint) -> Endpoint {
    Endpoint {
        base_url: own.base_url.clone().or(named.base_url),
        key: match &own.key {
            Key::Unstated => named.key,
            key => key.clone(),
        },
        api_mode: own.api_mode.clone().or(named.api_mode),
        model: named.model,
    }
}

fn served_by(
    name: &str,
    endpoint: &Endpoint,
    hermes: &Hermes,
    shown: &str,
    notes: &mut Vec<Note>,
) -> Result<(ServedBy, &'static str), String> {
    let mode = endpoint.api_mode.as_deref().unwrap_or_default();
    let upstream = upstreams::find(name);
    if let Some(Upstream::Cli {
        program,
        model_prefix,
    }) = upstream
    {
        return Ok((ServedBy::Cli(program), model_prefix));
    }
    if let Some(Upstream::Nothing { why }) = upstream {
        return Err(why.to_owned());
    }
    if let Some(Upstream::Anthropic { key_env }) = upstream
        && endpoint.base_url.is_none()
        && endpoint.key == Key::Unstated
        && !hermes.env_names.contains(key_env)
    {
        // Without a key Hermes uses Claude Code's login; that is the program's to use.
        return Ok((ServedBy::Cli(Program::Claude), ""));
    }
    let messages = matches!(upstream, Some(Upstream::Anthropic { .. })) && mode.is_empty()
        || mode == "anthropic_messages"
        || mode.is_empty()
            && endpoint
                .base_url
                .as_deref()
                .is_some_and(|url| url.trim_end_matches('/').ends_with("/anthropic"));
    let provider = match mode {
        _ if messages => "anthropic",
        "" | "chat_completions" | "openai_chat" => "openai",
        other => return Err(format!("its API ({other}) is not spoken here")),
    };
    let (default_url, key_envs): (Option<&str>, &[&str]) = match &upstream {
        Some(Upstream::OpenAi { base_url, key_envs }) => (Some(base_url), key_envs),
        Some(Upstream::Anthropic { key_env }) => (None, std::slice::from_ref(key_env)),
        _ => (None, &[]),
    };
    let base_url = endpoint
        .base_url
        .clone()
        .or_else(|| default_url.map(str::to_owned));
    if base_url.is_none() && !matches!(upstream, Some(Upstream::Anthropic { .. })) {
        return Err(
            "its address is not known here; write the subscription with its base_url by hand"
                .to_owned(),
        );
    }
    if base_url.as_deref().is_some_and(holds_secret) {
        return Err("its address holds a secret, which is not copied; write it by hand with the key in a variable".to_owned());
    }
    let key_env = key_env(name, endpoint, key_envs, hermes, shown, notes)?;
    if provider == "anthropic" && key_env.is_none() {
        return Err("no key is named for it; add key_env there or write it by hand".to_owned());
    }
    let http = ServedBy::Http {
        provider,
        base_url,
        key_env,
    };
    Ok((http, ""))
}

fn key_env(
    name: &str,
    endpoint: &Endpoint,
    usual: &[&str],
    hermes: &Hermes,
    shown: &str,
    notes: &mut Vec<Note>,
) -> Result<Option<String>, String> {
    let named = match &endpoint.key {
        Key::Env(name) => Some(name.clone()),
        Key::Command => {
            return Err(
                "its key is printed by a command (key_cmd), which is not run here".to_owned(),
            );
        }
        Key::Written => {
            let variable =
                format!("{}_API_KEY", plain_name(name).to_uppercase()).replace(['-', '.'], "_");
            let why = format!(
                "its key stands in config.yaml and is not copied; put it into the variable {variable}"
            );
            notes.push(Note::new(shown, why));
            return Ok(Some(variable));
        }
        Key::Unstated => {
            let set = usual.iter().find(|name| hermes.env_names.contains(**name));
            set.or(usual.first()).map(|name| (*name).to_owned())
        }
    };
    if let Some(variable) = &named
        && hermes.env_names.contains(variable)
    {
        let why = format!(
            "it is set in {}, which Baton does not read; set it where Baton runs",
            hermes.folder.join(".env").display()
        );
        let note = Note::new(variable.as_str(), why);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(named)
}

/// `https://user:password@host/…` or a query that may hold a key.
fn holds_secret(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.contains('@') || rest.contains('?')
}

/// A name that a route can begin with.
fn plain_name(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '-',
    };
    name.chars().map(plain).collect()
}

/// Adds the subscription unless it is there already; returns its name, which differs if another one has it.
fn settle(mut subscription: Subscription, all: &mut Vec<Subscription>) -> String {
    let wanted = subscription.name.clone();
    let original = subscription.slug.clone().unwrap_or_else(|| wanted.clone());
    for number in 2.. {
        let same = all.iter().find(|other| {
            SubscriptionId::new(&other.name) == SubscriptionId::new(&subscription.name)
        });
        match same {
            Some(other) if other.served_by == subscription.served_by => return other.name.clone(),
            Some(_) => {
                subscription.name = format!("{wanted}-{number}");
                subscription.slug = Some(original.clone());
            }
            None => break,
        }
    }
    all.push(subscription.clone());
    subscription.name
}

/// What config.toml holds already.
struct Present {
    /// Folded.
    subscriptions: BTreeSet<String>,
    profiles: BTreeSet<String>,
    /// The table `usage`, as people would look for it.
    usage: Option<&'static str>,
}

impl Present {
    fn of(before: Option<&str>) -> Result<Self, Refused> {
        let table: toml::Table = before
            .unwrap_or_default()
            .parse()
            .map_err(|error: toml::de::Error| Refused::NotToml(error.message().to_owned()))?;
        let names = |section: &str| -> Vec<String> {
            let section = table.get(section).and_then(toml::Value::as_table);
            section
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect()
        };
        Ok(Self {
            subscriptions: names("subscriptions")
                .iter()
                .map(|name| SubscriptionId::new(name).key().to_owned())
                .collect(),
            profiles: names("profiles").into_iter().collect(),
            usage: table.contains_key("usage").then_some("a [usage] section"),
        })
    }

    fn free_profile(&self, wanted: Option<&str>) -> Result<String, Refused> {
        let free = |name: &&str| !self.profiles.contains(*name);
        let names = match wanted {
            Some(name) => vec![name],
            None => vec!["default", "hermes"],
        };
        match names.iter().copied().find(free) {
            Some(name) => Ok(name.to_owned()),
            None => Err(Refused::ProfileTaken(
                names.last().copied().unwrap_or_default().to_owned(),
            )),
        }
    }
}

fn render(
    hermes: &Hermes,
    subscriptions: &[Subscription],
    chain: &[String],
    usage: Option<&std::path::Path>,
    profile: &str,
) -> String {
    let mut text = format!(
        "# Brought over from {} by `baton import hermes`.\n",
        one_line(&hermes.folder.display().to_string())
    );
    if let Some(usage) = usage {
        push(
            &mut text,
            format_args!(
                "\n[usage]\nsnapshot = {}\n",
                quoted(&usage.display().to_string())
            ),
        );
    }
    for subscription in subscriptions {
        render_one(subscription, &mut text);
    }
    push(&mut text, format_args!("\n[profiles.{}]\n", key(profile)));
    text.push_str(
        "# Tried from left to right. A metered entry is passed over unless it is the first.\n",
    );
    let routes: Vec<String> = chain
        .iter()
        .map(|route| format!("    {},\n", quoted(route)))
        .collect();
    push(&mut text, format_args!("chain = [\n{}]\n", routes.concat()));
    text
}

fn render_one(subscription: &Subscription, text: &mut String) {
    push(
        text,
        format_args!("\n[subscriptions.{}]\n", key(&subscription.name)),
    );
    match &subscription.served_by {
        ServedBy::Cli(program) => push(
            text,
            format_args!("provider = {}\n", quoted(program.word())),
        ),
        ServedBy::Http {
            provider,
            base_url,
            key_env,
        } => {
            push(text, format_args!("provider = {}\n", quoted(provider)));
            if let Some(url) = base_url {
                push(text, format_args!("base_url = {}\n", quoted(url)));
            }
            if let Some(variable) = key_env {
                push(text, format_args!("key_env = {}\n", quoted(variable)));
            }
            if subscription.listed {
                text.push_str("# usage.json lists it: if it is a plan and a turn costs nothing extra, add billing = \"plan\"\n");
            }
        }
    }
    if let Some(slug) = &subscription.slug {
        push(text, format_args!("slug = {}\n", quoted(slug)));
    }
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(piece); // writing to a String cannot fail
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A key, in quotes if it needs them.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
