//! From the configuration as written to [`Settings`]: defaults, paths, routes, and the checks that need more than one
//! key. Defaults stand at the top.

mod chat;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::route::{Billing, Route};

use super::document::{KeyPath, Place};
use super::nearest::did_you_mean;
use super::opencode_routes;
use super::problem::{Problem, Problems, Spot, sounds_secret};
use super::show::Places;
use super::written::{self, BillingName, ProviderName, Written};
use super::{
    Environment, PluginFile, PluginUse, Price, ProfileSettings, Program, ProviderSettings,
    RootPath, SecretRef, Settings, SubscriptionSettings, duration, secret::SecretError,
};

pub(super) const ATTEMPT_DEADLINE: Duration = Duration::from_secs(30 * 60);
pub(super) const SILENCE: Duration = Duration::from_secs(5 * 60);
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";
const MAX_TOKENS: u32 = 8_192;
/// Plugins that come with Baton and are on unless a profile switches them off.
const BUNDLED_PLUGINS: &[&str] = &["quota", "handoff"];

/// Resolves what was written. `names` are all subscriptions the files name, also refused ones. `None` = see `problems`.
pub(super) fn resolve(
    written: &Written,
    names: &[String],
    places: &Places,
    root: &RootPath,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Settings> {
    let mut resolver = Resolver {
        root,
        environment,
        places,
        names,
        problems,
    };
    resolver.no_twins("subscriptions", names);
    let profile_names: Vec<String> = written.profiles.keys().cloned().collect();
    resolver.no_twins("profiles", &profile_names);
    let subscriptions = resolver.subscriptions(written);
    let profiles = resolver.profiles(written);
    resolver.shared_bots(&profiles);
    for profile in profiles.values() {
        let path = KeyPath::of(&["profiles", profile.id.as_str(), "chain"]);
        for doubt in opencode_routes::doubts(&profile.chain, &subscriptions) {
            let at = path.join(&format!("[{}]", doubt.index + 1));
            resolver.warn(&at, doubt.message, doubt.hint);
        }
    }
    let plugins = resolver.plugin_files(written);
    let usage_snapshot = resolver.usage_snapshot(written)?;
    Some(Settings {
        root: root.clone(),
        subscriptions,
        profiles,
        plugins,
        usage_snapshot,
    })
}

pub(super) struct Resolver<'a> {
    root: &'a RootPath,
    environment: &'a Environment,
    places: &'a Places,
    names: &'a [String],
    problems: &'a mut Problems,
}

impl Resolver<'_> {
    /// Names that differ only in case would be one thing to the registry and to some file systems.
    fn no_twins(&mut self, section: &str, names: &[String]) {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for name in names {
            if let Some(other) = seen.insert(SubscriptionId::new(name).key().to_owned(), name) {
                let path = KeyPath::of(&[section, name]);
                let message =
                    format!("{name:?} and {other:?} differ only in case or surrounding space");
                self.error(&path, message, "give one of them another name");
            }
        }
    }

    // --- subscriptions

    fn subscriptions(
        &mut self,
        written: &Written,
    ) -> BTreeMap<SubscriptionId, SubscriptionSettings> {
        let mut all = BTreeMap::new();
        for (name, subscription) in &written.subscriptions {
            let path = KeyPath::of(&["subscriptions", name]);
            if name.trim().is_empty() || name.contains('/') || name.chars().any(char::is_control) {
                let hint = "a route is written subscription/model, so the name holds no slash; rename it, for example my-claude";
                self.error(
                    &path,
                    format!("{name:?} cannot be a subscription's name"),
                    hint,
                );
            }
            if let Some(settings) = self.subscription(name, subscription, &path) {
                all.insert(settings.id.clone(), settings);
            }
        }
        all
    }

    fn subscription(
        &mut self,
        name: &str,
        written: &written::Subscription,
        path: &KeyPath,
    ) -> Option<SubscriptionSettings> {
        let Some(provider) = written.provider else {
            let hint =
                "add provider = \"claude\", \"codex\", \"opencode\", \"anthropic\" or \"openai\"";
            self.missing(&path.join("provider"), "the provider is missing", hint);
            return None;
        };
        self.no_foreign_keys(provider, written, path);
        let id = SubscriptionId::new(name);
        if written
            .slug
            .as_ref()
            .is_some_and(|slug| slug.trim().is_empty())
        {
            self.error(
                &path.join("slug"),
                "the slug is empty",
                "leave it out to use the subscription's name",
            );
        }
        let default = match provider {
            ProviderName::Claude | ProviderName::Codex | ProviderName::Opencode => Billing::Plan,
            ProviderName::Anthropic | ProviderName::Openai => Billing::Metered,
        };
        Some(SubscriptionSettings {
            slug: written
                .slug
                .as_ref()
                .map_or_else(|| id.clone(), SubscriptionId::new),
            id,
            billing: written.billing.map_or(default, |name| match name {
                BillingName::Plan => Billing::Plan,
                BillingName::Metered => Billing::Metered,
            }),
            provider: match provider {
                ProviderName::Claude => self.cli(Program::Claude, written, path)?,
                ProviderName::Codex => self.cli(Program::Codex, written, path)?,
                ProviderName::Opencode => self.cli(Program::OpenCode, written, path)?,
                ProviderName::Anthropic => self.anthropic(written, path)?,
                ProviderName::Openai => self.openai(written, path)?,
            },
        })
    }

    /// A key that only another provider reads is a mistake, not a wish to ignore.
    fn no_foreign_keys(
        &mut self,
        provider: ProviderName,
        written: &written::Subscription,
        path: &KeyPath,
    ) {
        use ProviderName::{Anthropic, Claude, Codex, Openai, Opencode};
        const CLIS: &[ProviderName] = &[Claude, Codex, Opencode];
        let table: [(&str, bool, &[ProviderName]); 8] = [
            ("home", written.home.is_some(), CLIS),
            ("binary", written.binary.is_some(), CLIS),
            ("env", written.env.is_some(), CLIS),
            ("base_url", written.base_url.is_some(), &[Anthropic, Openai]),
            ("key_env", written.key_env.is_some(), &[Anthropic, Openai]),
            ("key_file", written.key_file.is_some(), &[Anthropic, Openai]),
            ("max_tokens", written.max_tokens.is_some(), &[Anthropic]),
            ("price", written.price.is_some(), &[Anthropic, Openai]),
        ];
        for (key, is_written, readers) in table {
            if is_written && !readers.contains(&provider) {
                let readers: Vec<&str> = readers.iter().map(|reader| reader.word()).collect();
                let message = format!("provider = {:?} does not read {key}", provider.word());
                let readers = match readers.split_last() {
                    Some((last, rest)) if !rest.is_empty() => {
                        format!("{} or {last}", rest.join(", "))
                    }
                    _ => readers.concat(),
                };
                let hint = format!("{key} belongs to provider {readers}; take it out");
                self.error(&path.join(key), message, &hint);
            }
        }
    }

    fn cli(
        &mut self,
        program: Program,
        written: &written::Subscription,
        path: &KeyPath,
    ) -> Option<ProviderSettings> {
        let env = written.env.clone().unwrap_or_default();
        for name in env.keys().filter(|name| sounds_secret(name)) {
            let message = "looks like a secret written into the file";
            let hint = "a plan needs no key here: log in with the CLI itself";
            self.warn(&path.join("env").join(name), message, hint);
        }
        let home = self.optional_path(written.home.as_deref(), &path.join("home"));
        let binary = self.optional_path(written.binary.as_deref(), &path.join("binary"));
        Some(ProviderSettings::Cli {
            program,
            home: home.ok()?,
            binary: binary.ok()?,
            env,
        })
    }

    fn anthropic(
        &mut self,
        written: &written::Subscription,
        path: &KeyPath,
    ) -> Option<ProviderSettings> {
        let base_url = self.url(written.base_url.as_deref(), ANTHROPIC_URL, path);
        let max_tokens = self.max_tokens(written.max_tokens, &path.join("max_tokens"));
        let Some(key) = self.key(written, path).ok()? else {
            let hint = "add key_env = \"ANTHROPIC_API_KEY\" or key_file = \"…\"";
            self.missing(&path.join("key_env"), "the key is missing", hint);
            return None;
        };
        Some(ProviderSettings::Anthropic {
            base_url: base_url?,
            key,
            max_tokens: max_tokens?,
            price: written.price.map(price),
        })
    }

    fn openai(
        &mut self,
        written: &written::Subscription,
        path: &KeyPath,
    ) -> Option<ProviderSettings> {
        let base_url = self.url(written.base_url.as_deref(), OPENAI_URL, path);
        let key = self.key(written, path).ok()?;
        if key.is_none() && written.base_url.is_none() {
            let hint =
                "add key_env = \"OPENAI_API_KEY\", or base_url for a server that needs no key";
            self.missing(&path.join("key_env"), "the key is missing", hint);
            return None;
        }
        Some(ProviderSettings::OpenAi {
            base_url: base_url?,
            key,
            price: written.price.map(price),
        })
    }

    fn max_tokens(&mut self, written: Option<u64>, path: &KeyPath) -> Option<u32> {
        let Some(number) = written else {
            return Some(MAX_TOKENS);
        };
        let fits = u32::try_from(number).ok().filter(|number| *number > 0);
        if fits.is_none() {
            self.error(
                path,
                format!("{number} is out of range"),
                "write a number of tokens from 1 to 4294967295",
            );
        }
        fits
    }

    /// The named secret, if there is one; `Err` = it was refused. That it is not set is only a warning: other
    /// subscriptions still work.
    fn key(
        &mut self,
        written: &written::Subscription,
        path: &KeyPath,
    ) -> Result<Option<SecretRef>, Refused> {
        let (at, secret) = match (&written.key_env, &written.key_file) {
            (Some(_), Some(_)) => {
                self.error(
                    &path.join("key_file"),
                    "key_env and key_file are both set",
                    "keep one of them",
                );
                return Err(Refused);
            }
            (Some(name), None) => (
                path.join("key_env"),
                self.variable(name, "OPENAI_API_KEY", &path.join("key_env"))?,
            ),
            (None, Some(file)) => {
                let at = path.join("key_file");
                let file = self.path(file, &at).ok_or(Refused)?;
                (at, SecretRef::File(file))
            }
            (None, None) => return Ok(None),
        };
        match secret.resolve_in(self.environment) {
            Err(error @ SecretError::Exposed { .. }) => {
                self.error(
                    &at,
                    error.to_string(),
                    "a secret others can read is not used",
                );
                Err(Refused)
            }
            Err(error) => {
                let name = path.names().last().map_or("", String::as_str);
                let hint = format!("until then turns skip {name} with an authentication failure");
                self.warn(&at, error.to_string(), &hint);
                Ok(Some(secret))
            }
            Ok(_) => Ok(Some(secret)),
        }
    }

    /// Refuses a key written where the name of a variable belongs, without repeating it.
    fn variable(
        &mut self,
        name: &str,
        example: &str,
        path: &KeyPath,
    ) -> Result<SecretRef, Refused> {
        let first = name.chars().next().unwrap_or('0');
        let is_name =
            !first.is_ascii_digit() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            return Ok(SecretRef::Env(name.to_owned()));
        }
        let hint = format!(
            "write the variable's name, for example {example:?}, and put the key into the variable"
        );
        let message = "this is not the name of an environment variable";
        // Without its place: the line may hold the key itself.
        self.problems.push(Problem::error(path, message).hint(hint));
        Err(Refused)
    }

    fn url(&mut self, written: Option<&str>, default: &str, path: &KeyPath) -> Option<String> {
        let text = written.unwrap_or(default).trim().trim_end_matches('/');
        let path = path.join("base_url");
        let parsed = reqwest::Url::parse(text).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none()
        });
        let Some(url) = parsed else {
            let hint =
                "write it as https://host/path, for example https://api.fireworks.ai/inference/v1";
            self.error(&path, "this is not the address of an API", hint);
            return None;
        };
        if !url.username().is_empty() || url.password().is_some() {
            let hint = "secrets are named, never written: use key_env or key_file";
            self.error(&path, "the address holds a name or a password", hint);
            return None;
        }
        if url.scheme() == "http" && !is_here(url.host_str().unwrap_or_default()) {
            let message =
                "the address is not encrypted: the key and every word can be read on the way";
            self.warn(&path, message, "use https");
        }
        Some(text.to_owned())
    }

    // --- profiles

    fn profiles(&mut self, written: &Written) -> BTreeMap<ProfileId, ProfileSettings> {
        if written.profiles.is_empty() {
            let hint =
                "add [profiles.default] with chain = [\"subscription/model\"], or run `baton init`";
            self.missing(&KeyPath::of(&["profiles"]), "there is no profile", hint);
        }
        let mut all = BTreeMap::new();
        for (name, profile) in &written.profiles {
            let path = KeyPath::of(&["profiles", name]);
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
                let hint = "it is also a folder's name: use letters, digits, - and _, at most 64";
                self.error(&path, format!("{name:?} cannot be a profile's name"), hint);
            } else if let Some(settings) = self.profile(name, profile, &path) {
                all.insert(settings.id.clone(), settings);
            }
        }
        all
    }

    fn profile(
        &mut self,
        name: &str,
        written: &written::Profile,
        path: &KeyPath,
    ) -> Option<ProfileSettings> {
        let id = ProfileId::new(name);
        let chain = self.chain(written.chain.as_deref(), &path.join("chain"));
        let workdir = self.workdir(written.workdir.as_deref(), &path.join("workdir"));
        let deadline = self.duration(
            written.attempt_deadline.as_deref(),
            ATTEMPT_DEADLINE,
            &path.join("attempt_deadline"),
        );
        let silence = self.duration(written.silence.as_deref(), SILENCE, &path.join("silence"));
        let plugins = self.plugins(&written.plugins, &path.join("plugins"));
        let chat = self.chats(written, path);
        let routing = self.routing(&written.routing, &path.join("routing"));
        Some(ProfileSettings {
            home: self.root.profile(&id),
            id,
            chain: chain?,
            workdir: workdir?,
            permissions: written.permissions,
            plugins,
            chat,
            attempt_deadline: deadline?,
            silence: silence?,
            routing: routing?,
        })
    }

    fn chain(&mut self, written: Option<&[String]>, path: &KeyPath) -> Option<Vec<Route>> {
        let Some(entries) = written else {
            let hint =
                "add chain = [\"subscription/model\"]; the first entry that is not spent answers";
            self.missing(path, "the chain is missing", hint);
            return None;
        };
        if entries.is_empty() {
            self.error(
                path,
                "the chain is empty: nothing could answer",
                "name at least one route, as subscription/model",
            );
            return None;
        }
        let routes = entries
            .iter()
            .enumerate()
            .map(|(index, entry)| self.route(entry, &path.join(&format!("[{}]", index + 1))));
        let routes: Vec<Option<Route>> = routes.collect();
        let mut seen: Vec<&Route> = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            let Some(route) = route else { continue };
            if seen.contains(&route) {
                let at = path.join(&format!("[{}]", index + 1));
                self.warn(
                    &at,
                    format!("{route} stands in the chain twice"),
                    "the second is never reached; take it out",
                );
            }
            seen.push(route);
        }
        routes.into_iter().collect()
    }

    /// Whether some file names the route's subscription.
    pub(super) fn knows(&self, route: &Route) -> bool {
        let known = |name: &String| SubscriptionId::new(name) == route.subscription;
        self.names.iter().any(known)
    }

    fn route(&mut self, entry: &str, path: &KeyPath) -> Option<Route> {
        let route: Route = match entry.parse() {
            Ok(route) => route,
            Err(_) => {
                let known = self.names.first().map_or("claude-work", String::as_str);
                let hint = format!("write it as subscription/model, for example {known}/opus");
                self.error(path, format!("{entry:?} is not a route"), &hint);
                return None;
            }
        };
        let known = |name: &String| SubscriptionId::new(name) == route.subscription;
        if self.names.iter().any(known) {
            return Some(route);
        }
        let name = route.subscription.as_str();
        let guess = did_you_mean(name, self.names.iter().map(String::as_str));
        let hint = format!(
            "add [subscriptions.{}], or take the entry out of the chain",
            KeyPath::of(&[name])
        );
        self.error(
            path,
            format!("there is no subscription {name:?}{guess}"),
            &hint,
        );
        None
    }

    fn workdir(&mut self, written: Option<&str>, path: &KeyPath) -> Option<PathBuf> {
        let Some(text) = written else {
            return Some(self.environment.workdir.clone());
        };
        let folder = self.path(text, path)?;
        if !folder.is_dir() {
            let message = format!("the folder {} does not exist", folder.display());
            self.warn(
                path,
                message,
                "make it, or name another: no CLI can start in it",
            );
        }
        Some(folder)
    }

    fn duration(
        &mut self,
        written: Option<&str>,
        default: Duration,
        path: &KeyPath,
    ) -> Option<Duration> {
        let Some(text) = written else {
            return Some(default);
        };
        let parsed = duration::parse(text);
        if parsed.is_none() {
            let hint = "write a number with its unit: \"45s\", \"10m\", \"1h30m\", \"2d\"";
            self.error(path, format!("{text:?} is not a duration"), hint);
        }
        parsed
    }

    // --- plugins and the registry

    fn plugins(
        &mut self,
        written: &BTreeMap<String, written::PluginUse>,
        path: &KeyPath,
    ) -> BTreeMap<String, PluginUse> {
        let bundled = BUNDLED_PLUGINS
            .iter()
            .map(|name| ((*name).to_owned(), PluginUse::bundled()));
        let mut all: BTreeMap<String, PluginUse> = bundled.collect();
        for (name, plugin) in written {
            self.plugin_name(name, &path.join(name));
            let settings = PluginUse {
                order: self.order_of(&path.join(name)),
                enabled: plugin.enabled.unwrap_or(true),
                required: plugin.required.unwrap_or(false),
                budget_ms: plugin.budget_ms.clone(),
                config: serde_json::Value::Object(plugin.config.clone()),
            };
            all.insert(name.clone(), settings);
        }
        all
    }

    /// Where a key stands: after everything the files do not name, the root's file before a profile's own.
    fn order_of(&self, path: &KeyPath) -> usize {
        let Some(place) = self.places.get(path) else {
            return 0;
        };
        let root = self.root.config_file();
        let position = |one: &Place| (one.source.path != root, one.key.start);
        let all = self.places.values();
        1 + all
            .filter(|other| position(other) < position(place))
            .count()
    }

    fn plugin_files(&mut self, written: &Written) -> BTreeMap<String, PluginFile> {
        let mut all = BTreeMap::new();
        for (name, plugin) in &written.plugins {
            let path = KeyPath::of(&["plugins", name]);
            self.plugin_name(name, &path);
            let is_sum =
                |sum: &String| sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit());
            if !plugin.sha256.as_ref().is_none_or(is_sum) {
                let hint = "run `baton plugin install FILE`, which writes it";
                self.error(
                    &path.join("sha256"),
                    "this is not a SHA-256 checksum (64 hex digits)",
                    hint,
                );
            }
            let file = self.optional_path(plugin.file.as_deref(), &path.join("file"));
            let sha256 = plugin.sha256.as_ref().map(|sum| sum.to_lowercase());
            let file = file.ok().flatten();
            all.insert(name.clone(), PluginFile { file, sha256 });
        }
        all
    }

    /// The name becomes part of a file's name.
    fn plugin_name(&mut self, name: &str, path: &KeyPath) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(fits) {
            let hint =
                "the library is libplugin_<name>.so: use lower-case letters, digits, - and _";
            self.error(path, format!("{name:?} cannot be a plugin's name"), hint);
        }
    }

    fn usage_snapshot(&mut self, written: &Written) -> Option<PathBuf> {
        let path = KeyPath::of(&["usage", "snapshot"]);
        let named = self
            .optional_path(written.usage.snapshot.as_deref(), &path)
            .ok()?;
        Some(named.unwrap_or_else(|| self.root.usage_file()))
    }

    // --- small things

    fn optional_path(
        &mut self,
        written: Option<&str>,
        path: &KeyPath,
    ) -> Result<Option<PathBuf>, Refused> {
        match written {
            Some(text) => self.path(text, path).map(Some).ok_or(Refused),
            None => Ok(None),
        }
    }

    /// Relative paths count from the root.
    fn path(&mut self, text: &str, path: &KeyPath) -> Option<PathBuf> {
        match self.environment.expand(text, &self.root.0) {
            Ok(expanded) => Some(expanded),
            Err(error) => {
                self.error(
                    path,
                    error.to_string(),
                    "write the path in full, with ~/, or with a variable that is set",
                );
                None
            }
        }
    }

    fn missing(&mut self, path: &KeyPath, message: &str, hint: &str) {
        if !self.problems.mention(path) {
            self.error(&path.parent(), message, hint);
        }
    }

    pub(super) fn error(&mut self, path: &KeyPath, message: impl Into<String>, hint: &str) {
        let at = self.places.get(path).map(|place| match path.names().len() {
            0..=2 => Spot::key(place),
            _ => Spot::value(place),
        });
        self.problems
            .push(Problem::error(path, message).hint(hint).at(at));
    }

    pub(super) fn warn(&mut self, path: &KeyPath, message: impl Into<String>, hint: &str) {
        let at = self.places.get(path).map(Spot::value);
        self.problems
            .push(Problem::warning(path, message).hint(hint).at(at));
    }
}

/// Something was refused and has been said.
struct Refused;

impl PluginUse {
    /// What a profile gets that does not name a bundled plugin.
    fn bundled() -> Self {
        Self {
            order: 0,
            enabled: true,
            required: false,
            budget_ms: BTreeMap::new(),
            config: serde_json::Value::Object(serde_json::Map::new()),
        }
    }
}

fn price(written: written::Price) -> Price {
    Price {
        input: written.input,
        output: written.output,
    }
}

/// Whether the host is this machine.
fn is_here(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
