//! Configuration in its three stages: as written (`written.rs`), resolved (this file), in use (held by who uses it).
//! Unknown keys are errors that suggest the nearest name; a key of a part not built yet is refused with "not yet".
//!
//! The way of a file: `document.rs` parses it and lays profiles' files over the root's, `check.rs` walks it along the
//! schema, `resolve.rs` turns it into [`Settings`]. Each stage adds what it finds to one list of problems, so that a
//! person sees everything at once.

mod chat;
mod check;
mod document;
mod duration;
mod environment;
mod load;
mod nearest;
mod not_yet;
mod opencode_routes;
mod problem;
mod resolve;
mod resolve_routing;
mod secret;
mod show;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::route::{Billing, Chain, ChainEntry, Route};
use providers::Permissions;
use secrecy::SecretString;

use crate::routing::RoutingSettings;

pub use chat::{Account, ChatKind, ChatSettings};
pub use document::{KeyPath, Place};
pub use duration::{parse as parse_duration, show as show_duration};
pub use environment::{CannotExpand, Environment};
pub use load::{Loaded, check_text, load};
pub use nearest::did_you_mean;
pub use problem::{ConfigError, Problem, Severity};
pub use secret::{SecretError, SecretRef};
pub use show::{Origin, Row, rows};
pub use written::schema;

/// `BATON_HOME`, default `~/.baton`: shared by all profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath(pub PathBuf);

impl RootPath {
    /// The root the environment names.
    pub fn find(environment: &Environment) -> Result<Self, CannotExpand> {
        let text = environment.get("BATON_HOME").unwrap_or("~/.baton");
        environment.expand(text, &environment.workdir).map(Self)
    }

    pub fn config_file(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    /// The embedded store.
    pub fn store_file(&self) -> PathBuf {
        self.0.join("state").join("baton.db")
    }

    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    pub fn profiles(&self) -> PathBuf {
        self.0.join("profiles")
    }

    /// Where the registry is published, and read unless `usage.snapshot` says otherwise.
    pub fn usage_file(&self) -> PathBuf {
        self.0.join("var/usage-portal/site/usage.json")
    }

    /// The home of a profile: the root itself for `default`.
    pub fn profile(&self, id: &ProfileId) -> ProfilePath {
        if id.as_str() == DEFAULT_PROFILE {
            ProfilePath(self.0.clone())
        } else {
            ProfilePath(self.profiles().join(id.as_str()))
        }
    }
}

/// A profile's home: the root itself for `default`, else `<root>/profiles/<name>`. Never interchangeable with the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePath(pub PathBuf);

impl ProfilePath {
    /// Where sealed handoffs also stand as plain files for people.
    pub fn handoffs(&self) -> PathBuf {
        self.0.join("state").join("turn-handoff")
    }

    /// Where files that people sent are kept, one folder per conversation.
    pub fn attachments(&self) -> PathBuf {
        self.0.join("state").join("attachments")
    }
}

/// The profile that lives in the root itself.
pub const DEFAULT_PROFILE: &str = "default";

/// The whole configuration, resolved and checked.
#[derive(Debug, Clone)]
pub struct Settings {
    pub root: RootPath,
    pub subscriptions: BTreeMap<SubscriptionId, SubscriptionSettings>,
    pub profiles: BTreeMap<ProfileId, ProfileSettings>,
    pub plugins: BTreeMap<String, PluginFile>,
    /// Where `usage.json` is read from; the default below the root is also where we publish.
    pub usage_snapshot: PathBuf,
}

impl Settings {
    /// The profile of this name; one that is not configured has an empty chain, and so says what is wrong when asked.
    pub fn profile(&self, id: &ProfileId) -> Arc<ProfileSettings> {
        let known = self.profiles.get(id).cloned();
        Arc::new(known.unwrap_or_else(|| ProfileSettings {
            id: id.clone(),
            home: self.root.profile(id),
            chain: Vec::new(),
            workdir: self.root.0.clone(),
            permissions: Some(Permissions::None),
            plugins: BTreeMap::new(),
            chat: BTreeMap::new(),
            attempt_deadline: resolve::ATTEMPT_DEADLINE,
            silence: resolve::SILENCE,
            routing: RoutingSettings::default(),
        }))
    }

    /// A route joined with what decisions need to know of its subscription; `None` = that is not configured.
    pub fn entry(&self, route: &Route) -> Option<ChainEntry> {
        let subscription = self.subscriptions.get(&route.subscription)?;
        Some(ChainEntry {
            route: route.clone(),
            slug: subscription.slug.clone(),
            billing: subscription.billing,
            group: None,
        })
    }
}

#[derive(Debug, Clone)]
pub struct SubscriptionSettings {
    pub id: SubscriptionId,
    /// The registry's join key; the id unless `slug` overrides it.
    pub slug: SubscriptionId,
    pub billing: Billing,
    pub provider: ProviderSettings,
}

impl SubscriptionSettings {
    /// Where the subscription's secret comes from; `None` = it needs none.
    pub fn key(&self) -> Option<&SecretRef> {
        match &self.provider {
            ProviderSettings::Anthropic { key, .. } => Some(key),
            ProviderSettings::OpenAi { key, .. } => key.as_ref(),
            ProviderSettings::Cli { .. } | ProviderSettings::Scripted => None,
        }
    }

    /// The subscription's secret, read now; `None` = it needs none, or it is not usable.
    pub fn secret(&self) -> Option<SecretString> {
        self.key()?.resolve().ok()
    }
}

impl SubscriptionSettings {
    /// Values of the `env` table whose names sound like a secret.
    pub fn written_secrets(&self) -> Vec<String> {
        let ProviderSettings::Cli { env, .. } = &self.provider else {
            return Vec::new();
        };
        let secret = env.iter().filter(|(name, _)| problem::sounds_secret(name));
        secret.map(|(_, value)| value.clone()).collect()
    }
}

/// What a provider needs to be built; owned by its own folder in `providers`.
#[derive(Debug, Clone)]
pub enum ProviderSettings {
    /// `provider = "claude"`, `"codex"` or `"opencode"`: an official program with its own login.
    Cli {
        program: Program,
        /// The program's own config directory; `None` = its default.
        home: Option<PathBuf>,
        binary: Option<PathBuf>,
        env: BTreeMap<String, String>,
    },
    /// `provider = "anthropic"`; the key is named, never written.
    Anthropic {
        base_url: String,
        key: SecretRef,
        max_tokens: u32,
        price: Option<Price>,
    },
    /// `provider = "openai"`.
    OpenAi {
        base_url: String,
        key: Option<SecretRef>,
        price: Option<Price>,
    },
    /// Plays a script; tests and the demo only, never accepted from a file.
    Scripted,
}

/// The programs that are driven with the login they keep themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    Claude,
    Codex,
    OpenCode,
}

impl Program {
    /// Every program there is.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::OpenCode];

    /// Its name in the configuration and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }
}

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

#[derive(Debug, Clone)]
pub struct ProfileSettings {
    pub id: ProfileId,
    pub home: ProfilePath,
    pub chain: Vec<Route>,
    pub workdir: PathBuf,
    /// The level on the console and wherever a surface has none of its own; `None` = `read-only` on the console, `none`
    /// elsewhere. The chat platforms have their own.
    pub permissions: Option<Permissions>,
    pub plugins: BTreeMap<String, PluginUse>,
    /// The chat platforms it is served on.
    pub chat: BTreeMap<ChatKind, ChatSettings>,
    /// The whole attempt; default 30 minutes.
    pub attempt_deadline: Duration,
    /// The longest silence of a provider; default 5 minutes.
    pub silence: Duration,
    pub routing: RoutingSettings,
}

impl ProfileSettings {
    /// The profile's chain joined with what decisions need to know of each subscription.
    pub fn chain_for(&self, settings: &Settings) -> Chain {
        Chain {
            entries: self
                .chain
                .iter()
                .filter_map(|route| settings.entry(route))
                .collect(),
        }
    }

    /// What the agent may do when the local user talks on the console.
    pub fn console_permissions(&self) -> Permissions {
        self.permissions.unwrap_or(Permissions::ReadOnly)
    }
}

/// `[plugins.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginFile {
    pub file: Option<PathBuf>,
    pub sha256: Option<String>,
}

/// `[profiles.P.plugins] NAME = { … }`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginUse {
    /// Where it stands among the profile's plugins, as the files have them; what they do not name stands first.
    pub order: usize,
    pub enabled: bool,
    pub required: bool,
    /// Budget per hook in milliseconds, where it differs from the default.
    pub budget_ms: BTreeMap<String, u64>,
    /// The plugin's own keys, as JSON.
    pub config: serde_json::Value,
}
