//! The resolved configuration as rows of key, value and origin, for `baton config show`.

mod chat;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_core::route::Billing;
use gateway_core::switch::settings::ChainOrder;
use serde_json::{Value, json};

use super::document::{KeyPath, Place};
use super::problem::{Spot, sounds_secret};
use super::{
    Environment, Loaded, PluginUse, Price, ProfileSettings, ProviderSettings, SecretRef,
    SubscriptionSettings, show_duration,
};
use crate::routing::RoutingSettings;

/// Where each written key stands.
pub(super) type Places = BTreeMap<KeyPath, Place>;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File { path: PathBuf, line: usize },
    Environment(&'static str),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One value with where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub key: KeyPath,
    pub value: Value,
    pub origin: Origin,
}

/// Every resolved value. Secrets are shown by name, and whether they are there.
pub fn rows(loaded: &Loaded, environment: &Environment) -> Vec<Row> {
    let mut table = Table {
        places: &loaded.places,
        environment,
        rows: Vec::new(),
    };
    let settings = &loaded.settings;
    let root_origin = match environment.get("BATON_HOME") {
        Some(_) => Origin::Environment("BATON_HOME"),
        None => Origin::Default,
    };
    table.rows.push(Row {
        key: KeyPath::of(&["root"]),
        value: path(&settings.root.0),
        origin: root_origin,
    });
    for subscription in settings.subscriptions.values() {
        table.subscription(subscription);
    }
    for profile in settings.profiles.values() {
        table.profile(profile);
    }
    for (name, file) in &settings.plugins {
        let section = KeyPath::of(&["plugins", name]);
        table.some(&section, "file", file.file.as_deref().map(path));
        table.some(
            &section,
            "sha256",
            file.sha256.as_ref().map(|sum| json!(sum)),
        );
    }
    table.row(
        &KeyPath::of(&["usage"]),
        "snapshot",
        path(&settings.usage_snapshot),
    );
    table.rows
}

struct Table<'a> {
    places: &'a Places,
    environment: &'a Environment,
    rows: Vec<Row>,
}

impl Table<'_> {
    fn subscription(&mut self, subscription: &SubscriptionSettings) {
        let section = KeyPath::of(&["subscriptions", subscription.id.as_str()]);
        let provider = match &subscription.provider {
            ProviderSettings::Cli { program, .. } => program.word(),
            ProviderSettings::Anthropic { .. } => "anthropic",
            ProviderSettings::OpenAi { .. } => "openai",
            ProviderSettings::Scripted => "scripted",
        };
        let billing = match subscription.billing {
            Billing::Plan => "plan",
            Billing::Metered => "metered",
        };
        self.row(&section, "provider", json!(provider));
        self.row(&section, "slug", json!(subscription.slug.as_str()));
        self.row(&section, "billing", json!(billing));
        match &subscription.provider {
            ProviderSettings::Cli {
                home, binary, env, ..
            } => {
                self.some(&section, "home", home.as_deref().map(path));
                self.some(&section, "binary", binary.as_deref().map(path));
                for (name, value) in env {
                    let shown = if sounds_secret(name) {
                        "(not shown)"
                    } else {
                        value
                    };
                    self.row(&section.join("env"), name, json!(shown));
                }
            }
            ProviderSettings::Anthropic {
                base_url,
                key,
                max_tokens,
                price,
            } => {
                self.row(&section, "base_url", json!(base_url));
                self.secret(&section, key);
                self.row(&section, "max_tokens", json!(max_tokens));
                self.price(&section, *price);
            }
            ProviderSettings::OpenAi {
                base_url,
                key,
                price,
            } => {
                self.row(&section, "base_url", json!(base_url));
                if let Some(key) = key {
                    self.secret(&section, key);
                }
                self.price(&section, *price);
            }
            ProviderSettings::Scripted => {}
        }
    }

    fn profile(&mut self, profile: &ProfileSettings) {
        let section = KeyPath::of(&["profiles", profile.id.as_str()]);
        let chain: Vec<String> = profile.chain.iter().map(ToString::to_string).collect();
        self.row(&section, "chain", json!(chain));
        self.row(&section, "workdir", path(&profile.workdir));
        let permissions = profile.permissions.map_or_else(
            || json!("read-only on the console, none elsewhere"),
            |level| json!(level),
        );
        self.row(&section, "permissions", permissions);
        self.row(
            &section,
            "attempt_deadline",
            json!(show_duration(profile.attempt_deadline)),
        );
        self.row(&section, "silence", json!(show_duration(profile.silence)));
        self.routing(&section.join("routing"), &profile.routing);
        for (name, plugin) in &profile.plugins {
            self.plugin(&section.join("plugins").join(name), plugin);
        }
        for (kind, chat) in &profile.chat {
            self.chat(&section.join(kind.name()), chat);
        }
    }

    fn routing(&mut self, section: &KeyPath, routing: &RoutingSettings) {
        let set = &routing.settings;
        let span = |ms: i64| {
            let ms = u64::try_from(ms).unwrap_or(0);
            match show_duration(Duration::from_millis(ms)) {
                none if none.is_empty() => json!("0m"),
                span => json!(span),
            }
        };
        let order = match set.order {
            ChainOrder::Tiered => "tiered",
            ChainOrder::Absolute => "absolute",
        };
        self.row(section, "enabled", json!(set.enabled));
        self.row(section, "auto_resume", json!(set.auto_resume));
        if !routing.candidates.is_empty() {
            let chain: Vec<String> = routing.candidates.iter().map(ToString::to_string).collect();
            self.row(section, "chain", json!(chain));
        }
        self.row(section, "chain_order", json!(order));
        self.row(section, "fresh_max", span(set.fresh_max_ms));
        self.row(section, "wait_if_reset_within", span(set.wait_within_ms));
        self.row(
            section,
            "weekly_nearly_gone",
            json!(set.weekly_nearly_gone_pct),
        );
        let guard = section.join("guard");
        self.row(&guard, "margin", json!(set.guard.margin_pct));
        self.row(&guard, "safety", json!(set.guard.safety));
        self.row(&guard, "K", json!(set.guard.samples));
        self.row(&guard, "min_samples", json!(set.guard.min_samples));
        self.row(&guard, "hard", json!(set.guard.hard_pct));
        let reserve = section.join("reserve");
        self.row(&reserve, "interactive", json!(set.reserve_interactive_pct));
        self.row(&reserve, "background", json!(set.reserve_background_pct));
        self.row(&section.join("cap"), "thread", json!(set.cap_thread));
        self.row(&section.join("cap"), "env", json!(set.cap_environment));
        self.row(&section.join("paid"), "enabled", json!(set.paid.enabled));
        self.row(section, "drain_timeout", span(set.drain_ms));
        self.row(section, "interrupt_ack", span(set.interrupt_ack_ms));
        self.row(
            &section.join("handoff"),
            "cap",
            json!(set.handoff_cap_tokens),
        );
    }

    fn plugin(&mut self, section: &KeyPath, plugin: &PluginUse) {
        self.row(section, "enabled", json!(plugin.enabled));
        self.row(section, "required", json!(plugin.required));
        for (hook, budget) in &plugin.budget_ms {
            self.row(&section.join("budget_ms"), hook, json!(budget));
        }
        for (name, value) in plugin.config.as_object().into_iter().flatten() {
            let shown = if sounds_secret(name) {
                json!("(not shown)")
            } else {
                value.clone()
            };
            self.row(section, name, shown);
        }
    }

    fn secret(&mut self, section: &KeyPath, secret: &SecretRef) {
        self.secret_of(section, "key", secret);
    }

    /// The key that names a secret, `<what>_env` or `<what>_file`, and whether the secret is there.
    fn secret_of(&mut self, section: &KeyPath, what: &str, secret: &SecretRef) {
        let there = match secret.resolve_in(self.environment) {
            Ok(_) => "set",
            Err(_) => "not usable: see `baton config check`",
        };
        let (key, name) = match secret {
            SecretRef::Env(name) => (format!("{what}_env"), name.clone()),
            SecretRef::File(file) => (format!("{what}_file"), file.display().to_string()),
        };
        self.row(section, &key, json!(format!("{name} ({there})")));
    }

    fn price(&mut self, section: &KeyPath, price: Option<Price>) {
        let shown = price.map(|price| json!({"input": price.input, "output": price.output}));
        self.some(section, "price", shown);
    }

    fn some(&mut self, section: &KeyPath, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.row(section, name, value);
        }
    }

    fn row(&mut self, section: &KeyPath, name: &str, value: Value) {
        let key = section.join(name);
        let origin = self
            .places
            .get(&key)
            .map_or(Origin::Default, |place| Origin::File {
                path: place.source.path.clone(),
                line: Spot::key(place).line_and_column().0,
            });
        self.rows.push(Row { key, value, origin });
    }
}

fn path(path: &Path) -> Value {
    json!(path.display().to_string())
}
