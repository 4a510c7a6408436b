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

/// Quota-aware continuation: before a turn that would not fit and after a limit, the work moves to a subscription that is
/// freshly known to have room, or waits for the reset. Off unless switched on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Routing {
    pub enabled: Option<bool>,
    /// While routing is off: whether a limited conversation goes on by itself at the reset; default false.
    pub auto_resume: Option<bool>,
    /// Where the work may go, as subscription/model; default: the profile's chain.
    pub chain: Option<Vec<String>>,
    /// "tiered" (the same model on another login first, paid ones last; the default) or "absolute" (as written).
    pub chain_order: Option<ChainOrderName>,
    /// The oldest reading that proves room; 1m to 60m, default "10m".
    pub fresh_max: Option<String>,
    /// A reset this near is waited for instead of moving; 0m to 60m, default "10m".
    pub wait_if_reset_within: Option<String>,
    /// The same before money is spent; 0m to 5h, default "1h".
    pub paid_wait_if_reset_within: Option<String>,
    /// From here on a weekly window counts when a session window is out; 80 to 100, default 95.
    pub weekly_nearly_gone: Option<f64>,
    pub guard: Guard,
    pub reserve: Reserve,
    pub cap: Cap,
    pub paid: Paid,
    /// How long an open tool may finish after the limit; default "2m".
    pub drain_timeout: Option<String>,
    /// How long a stop may stay unanswered; default "30s".
    pub interrupt_ack: Option<String>,
    /// How long a refused turn may take to end by itself; default "15s".
    pub hold_grace: Option<String>,
    /// How long after a reset a conversation wakes, least and most; default ["30s", "1m30s"].
    pub reset_jitter: Option<[String; 2]>,
    pub admission: Admission,
    pub handoff: HandoffSize,
}

/// How the candidates are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChainOrderName {
    Tiered,
    Absolute,
}

/// The prediction before a turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Guard {
    /// Points that must be left after the turn; default 10.
    pub margin: Option<f64>,
    /// Factor on the expected burn; default 1.25.
    pub safety: Option<f64>,
    /// How many of the newest samples count; default 3.
    #[serde(rename = "K")]
    pub samples: Option<u8>,
    /// With fewer, only `hard` trips; default 2.
    pub min_samples: Option<u8>,
    /// Default 97.
    pub hard: Option<f64>,
}

/// Points a candidate must keep free.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Reserve {
    /// 0 to 20, default 5.
    pub interactive: Option<f64>,
    /// 10 to 20, default 15.
    pub background: Option<f64>,
}

/// Automatic switches in any 24 hours.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Cap {
    /// Per conversation; 0 to 20, default 3.
    pub thread: Option<u32>,
    /// Over everything; default 20.
    pub env: Option<u32>,
}

/// Metered routes for automatic switches; off unless switched on, and only within the caps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Paid {
    pub enabled: Option<bool>,
    /// The metered subscriptions opted in; default: all of them.
    pub accounts: Option<Vec<String>>,
    /// US dollars per day; default 5.
    pub cap_day: Option<f64>,
    /// US dollars per conversation and day; default 2.
    pub cap_thread: Option<f64>,
}

/// Work in the background.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Admission {
    /// How long it waits for capacity; default "1d".
    pub max_wait: Option<String>,
}

/// What a handover between routes may take of the next model's window.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HandoffSize {
    /// Tokens; default 32000.
    pub cap: Option<u64>,
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
