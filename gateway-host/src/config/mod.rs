//! Configuration in its three stages: as written (`written.rs`), resolved (this file), in use (held by who uses it).
//! Unknown keys are errors that suggest the nearest name; a key of a part not built yet is refused with "not yet".

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::route::{Billing, Route};
use providers::Permissions;

/// `BATON_HOME`, default `~/.baton`: shared by all profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath(pub PathBuf);

/// A profile's home: the root itself for `default`, else `<root>/profiles/<name>`. Never interchangeable with the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePath(pub PathBuf);

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

#[derive(Debug, Clone)]
pub struct SubscriptionSettings {
    pub id: SubscriptionId,
    /// The registry's join key; the id unless `slug` overrides it.
    pub slug: SubscriptionId,
    pub billing: Billing,
    pub provider: ProviderSettings,
}

/// What a provider needs to be built; owned by its own folder in `providers`.
#[derive(Debug, Clone)]
pub enum ProviderSettings {
    /// `provider = "claude"`.
    Claude {
        home: Option<PathBuf>,
        binary: Option<PathBuf>,
        env: BTreeMap<String, String>,
    },
    /// `provider = "anthropic"`; the key is named, never written.
    Anthropic {
        base_url: String,
        key: SecretRef,
        max_tokens: u32,
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

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

/// Where a secret comes from: `*_env` or `*_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    Env(String),
    File(PathBuf),
}

#[derive(Debug, Clone)]
pub struct ProfileSettings {
    pub id: ProfileId,
    pub home: ProfilePath,
    pub chain: Vec<Route>,
    pub workdir: PathBuf,
    /// `None` = the surface's default (`read-only` on the console, `none` elsewhere).
    pub permissions: Option<Permissions>,
    pub plugins: BTreeMap<String, PluginUse>,
    /// The whole attempt; default 30 minutes.
    pub attempt_deadline: Duration,
    /// The longest silence of a provider; default 5 minutes.
    pub silence: Duration,
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
    pub enabled: bool,
    pub required: bool,
    /// Budget per hook in milliseconds, where it differs from the default.
    pub budget_ms: BTreeMap<String, u64>,
    /// The plugin's own keys, as JSON.
    pub config: serde_json::Value,
}
