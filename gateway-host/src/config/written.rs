//! The configuration as a person writes it. These types are the one list of keys: the JSON Schema, the walk that finds
//! unknown keys and the reader all come from them. Keys of parts not built yet stand in `not_yet.rs`, not here.

pub(super) mod chat;

use std::collections::BTreeMap;

use providers::Permissions;
use schemars::JsonSchema;
use serde::Deserialize;

/// Baton's `config.toml`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Baton configuration")]
pub(super) struct Written {
    /// The subscriptions you pay for, by a name of your choice. The name is also the join key `provider_slug` in
    /// usage.json, unless `slug` overrides it.
    pub subscriptions: BTreeMap<String, Subscription>,
    /// Profiles, each with its own chain. `<root>/profiles/<name>/config.toml` may hold the same keys and wins.
    pub profiles: BTreeMap<String, Profile>,
    /// Where plugin libraries are, by plugin name.
    pub plugins: BTreeMap<String, PluginFile>,
    pub usage: Usage,
}

/// One login.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Subscription {
    /// Who serves it.
    pub provider: Option<ProviderName>,
    /// The name of this login in usage.json; default: the subscription's own name.
    pub slug: Option<String>,
    /// "plan" or "metered"; default: plan for the CLIs, metered for anthropic and openai.
    pub billing: Option<BillingName>,
    /// claude, codex, opencode: the CLI's own config directory; default: the CLI's default.
    pub home: Option<String>,
    /// claude, codex, opencode: the program to run; default: the one in PATH.
    pub binary: Option<String>,
    /// claude, codex, opencode: variables set for the CLI beside the allow-listed ones.
    pub env: Option<BTreeMap<String, String>>,
    /// anthropic, openai: where the API is.
    pub base_url: Option<String>,
    /// anthropic, openai: the environment variable that holds the key.
    pub key_env: Option<String>,
    /// anthropic, openai: the file that holds the key; readable by you alone.
    pub key_file: Option<String>,
    /// anthropic: the longest answer in tokens; default 8192.
    pub max_tokens: Option<u64>,
    /// anthropic, openai: USD per million tokens.
    pub price: Option<Price>,
}

/// Who serves a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProviderName {
    Claude,
    Codex,
    Opencode,
    Anthropic,
    Openai,
}

impl ProviderName {
    /// The name as the file writes it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
        }
    }
}

/// Whether a turn costs money of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum BillingName {
    Plan,
    Metered,
}

/// USD per million tokens.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    #[schemars(range(min = 0.0))]
    pub input: f64,
    #[schemars(range(min = 0.0))]
    pub output: f64,
}

/// One profile.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Profile {
    /// Routes `subscription/model` in the order they are tried. A metered entry is passed over unless it is the first.
    pub chain: Option<Vec<String>>,
    /// Where the agent works; default: the folder `baton` was started in.
    pub workdir: Option<String>,
    /// What the agent may do; default: read-only on the console, none elsewhere. Discord and Slack have their own key.
    pub permissions: Option<Permissions>,
    /// Plugins of this profile, in the order they are asked: quota and handoff are on unless switched off here.
    pub plugins: BTreeMap<String, PluginUse>,
    /// The longest one attempt may take, for example "30m" (the default).
    pub attempt_deadline: Option<String>,
    /// The longest a provider may be silent, for example "5m" (the default).
    pub silence: Option<String>,
    pub routing: Routing,
    /// Serves the profile on Discord, with `baton run`.
    pub discord: Option<chat::Discord>,
    /// Serves the profile on Slack, with `baton run`.
    pub slack: Option<chat::Slack>,
}

/// Quota-aware continuation; only switched off for now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Routing {
    pub enabled: Option<bool>,
    pub paid: Paid,
}

/// Metered routes for automatic switches; only switched off for now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Paid {
    pub enabled: Option<bool>,
}

/// Where a plugin's library is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PluginFile {
    pub file: Option<String>,
    /// Written by `baton plugin install`; a file with another checksum is refused.
    pub sha256: Option<String>,
}

/// A plugin in a profile. All other keys are the plugin's own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PluginUse {
    /// Default true.
    pub enabled: Option<bool>,
    /// Whether the profile refuses to start without it; default false.
    pub required: Option<bool>,
    /// Budgets in milliseconds by hook, where they differ from the default.
    pub budget_ms: BTreeMap<String, u64>,
    #[serde(flatten)]
    pub config: serde_json::Map<String, serde_json::Value>,
}

/// The usage registry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Usage {
    /// Where usage.json is read; default: `<root>/var/usage-portal/site/usage.json`.
    pub snapshot: Option<String>,
}

/// The JSON Schema of the file, for editors (`baton config schema`) and for the walk in `check.rs`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Written).to_value()
}
