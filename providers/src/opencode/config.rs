//! What the OpenCode provider needs to know, and what follows from it: where the login's folders are and which
//! environment the server gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_core::ids::SubscriptionId;
use jiff::Timestamp;
use serde_json::Value;

use super::{content, user_config};
use crate::environment::child_environment;

/// Set for every server: no self-update, no traffic but the model's, nothing of the person's other tools. Without the
/// last two the program runs npm by itself in its first minute (1.18.33); a provider package that is not built in has
/// to be in the login's cache already. Its own plugins stay: they are how it uses a Copilot or ChatGPT login; those of
/// other people are out (`OPENCODE_PURE`). The settings' `env` wins over all of them.
const FIXED: &[(&str, &str)] = &[
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_PURE", "1"),
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    ("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
    ("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT", "1"),
    ("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", "1"),
    ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
    ("npm_config_offline", "true"),
    ("npm_config_registry", "http://127.0.0.1:9/"),
];

/// Never taken from the settings: they are ours, or they are merged into ours.
const OURS: &[&str] = &[
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_PERMISSION",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_SERVER_USERNAME",
    "OPENCODE_TEST_HOME",
];

/// One `opencode` subscription.
#[derive(Clone)]
pub struct OpenCodeSettings {
    /// The program; `None` = `opencode` on PATH.
    pub binary: Option<PathBuf>,
    /// The folder with the login's `config`, `data`, `state` and `cache`; `None` = the user's own XDG folders.
    pub home: Option<PathBuf>,
    /// Extra variables for the program.
    pub env: BTreeMap<String, String>,
    /// The name readings carry (the registry's join key).
    pub subscription: SubscriptionId,
    /// Whether the person said that this subscription may cost money per token (`billing = "metered"`).
    pub metered: bool,
    /// Folders the file tools must never reach, even inside a working directory: the gateway's own root. The login's
    /// folders are always among them.
    pub hidden: Vec<PathBuf>,
    /// The base of the plan's own usage endpoint; `None` = the official one.
    pub usage_base: Option<String>,
    /// The time, for readings and far retries.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The login's four folders, each holding an `opencode` folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folders {
    pub(super) config: PathBuf,
    pub(super) data: PathBuf,
    pub(super) state: PathBuf,
    pub(super) cache: PathBuf,
}

impl Folders {
    /// Where `auth.json` and the sessions are.
    pub(super) fn auth_file(&self) -> PathBuf {
        self.data.join("opencode").join("auth.json")
    }

    /// A folder of ours beside the login's state. The program gets it as its home and its configuration, so that the
    /// person's agents, commands, plugins, servers and instructions are not found.
    pub(super) fn private(&self) -> PathBuf {
        self.state.join("baton-opencode")
    }

    pub(super) fn all(&self) -> [&Path; 4] {
        [&self.config, &self.data, &self.state, &self.cache]
    }
}

impl OpenCodeSettings {
    /// Where the login's files are; `None` = no home folder is known.
    pub(super) fn folders(&self) -> Option<Folders> {
        if let Some(home) = &self.home {
            return Some(Folders {
                config: home.join("config"),
                data: home.join("data"),
                state: home.join("state"),
                cache: home.join("cache"),
            });
        }
        let folder = |variable: &str, below: &str| {
            let named = self.variable(variable).map(PathBuf::from);
            named.or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(below)))
        };
        Some(Folders {
            config: folder("XDG_CONFIG_HOME", ".config")?,
            data: folder("XDG_DATA_HOME", ".local/share")?,
            state: folder("XDG_STATE_HOME", ".local/state")?,
            cache: folder("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// A variable as the program would see it without us.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let named = self.env.get(name).map(OsString::from);
        named
            .or_else(|| std::env::var_os(name))
            .filter(|value| !value.is_empty())
    }

    /// The environment of the program, from the gateway's own one. `password` opens its server; `None` = it serves nobody.
    pub(super) fn environment(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
        password: Option<&str>,
    ) -> Vec<(OsString, OsString)> {
        let mut fixed: Vec<(&str, &OsStr)> = FIXED
            .iter()
            .map(|(name, value)| (*name, OsStr::new(*value)))
            .collect();
        let folders = self.folders();
        let private = folders.as_ref().map(Folders::private);
        if let (Some(folders), Some(private)) = (&folders, &private) {
            fixed.push(("XDG_CONFIG_HOME", private.as_os_str()));
            fixed.push(("OPENCODE_TEST_HOME", private.as_os_str()));
            fixed.push(("XDG_DATA_HOME", folders.data.as_os_str()));
            fixed.push(("XDG_STATE_HOME", folders.state.as_os_str()));
            fixed.push(("XDG_CACHE_HOME", folders.cache.as_os_str()));
        }
        let content = self.content().to_string();
        fixed.push(("OPENCODE_CONFIG_CONTENT", OsStr::new(&content)));
        fixed.extend(password.map(|word| ("OPENCODE_SERVER_PASSWORD", OsStr::new(word))));
        let mut named = self.env.clone();
        named.retain(|name, _| !OURS.contains(&name.as_str()));
        child_environment(own, &fixed, &named)
    }

    /// The configuration the program gets: the providers of the person's own one, what the settings' `env` says besides,
    /// and ours on top.
    fn content(&self) -> Value {
        let folder = self
            .folders()
            .map(|folders| folders.config.join("opencode"));
        let providers = folder.map(|folder| user_config::providers(&folder));
        let said = self.env.get("OPENCODE_CONFIG_CONTENT");
        content::joined(
            providers.unwrap_or_default(),
            said.and_then(|text| user_config::parse(text)),
        )
    }
}

/// The variables may hold keys: their names are shown, their values are not.
impl fmt::Debug for OpenCodeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCodeSettings")
            .field("binary", &self.binary)
            .field("home", &self.home)
            .field("env", &self.env.keys())
            .field("subscription", &self.subscription)
            .field("metered", &self.metered)
            .field("hidden", &self.hidden)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> OpenCodeSettings {
        OpenCodeSettings {
            binary: None,
            home: Some("/logins/one".into()),
            env: BTreeMap::from([
                ("OPENROUTER_API_KEY".to_owned(), "tok".to_owned()),
                ("XDG_CONFIG_HOME".to_owned(), "/theirs".to_owned()),
                ("OPENCODE_DISABLE_MODELS_FETCH".to_owned(), "0".to_owned()),
                ("OPENCODE_PERMISSION".to_owned(), "{}".to_owned()),
                (
                    "OPENCODE_CONFIG_CONTENT".to_owned(),
                    r#"{"share": "auto", "username": "ann"}"#.to_owned(),
                ),
            ]),
            subscription: "one".into(),
            metered: false,
            hidden: Vec::new(),
            usage_base: None,
            now: Arc::new(|| Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn the_environment_has_the_login_folders_our_configuration_and_no_key_of_ours() {
        let own = [
            ("PATH".into(), "/bin".into()),
            ("ANTHROPIC_API_KEY".into(), "sk-ant-x".into()),
            ("OPENCODE_API_KEY".into(), "sk-x".into()),
        ];
        let built: BTreeMap<String, String> = settings()
            .environment(own, Some("word"))
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect();
        let of = |name: &str| built.get(name).map(String::as_str);
        assert_eq!(of("XDG_DATA_HOME"), Some("/logins/one/data"));
        assert_eq!(
            of("XDG_CONFIG_HOME"),
            Some("/logins/one/state/baton-opencode")
        );
        assert_eq!(of("OPENCODE_DISABLE_MODELS_FETCH"), Some("0"));
        assert_eq!(of("OPENROUTER_API_KEY"), Some("tok"));
        assert_eq!(of("OPENCODE_SERVER_PASSWORD"), Some("word"));
        for absent in [
            "ANTHROPIC_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_PERMISSION",
        ] {
            assert_eq!(of(absent), None, "{absent}");
        }
        let content: Value = serde_json::from_str(of("OPENCODE_CONFIG_CONTENT").unwrap()).unwrap();
        assert_eq!(content["share"], "disabled");
        assert_eq!(content["username"], "ann");
    }

    #[test]
    fn without_a_home_the_folders_are_the_users_own() {
        let mut settings = settings();
        settings.home = None;
        settings.env = BTreeMap::from([
            ("HOME".to_owned(), "/h".to_owned()),
            ("XDG_DATA_HOME".to_owned(), "/d".to_owned()),
            ("XDG_CONFIG_HOME".to_owned(), "/c".to_owned()),
            ("XDG_STATE_HOME".to_owned(), "/s".to_owned()),
            ("XDG_CACHE_HOME".to_owned(), "/k".to_owned()),
        ]);
        let folders = settings.folders().unwrap();
        assert_eq!(folders.auth_file(), PathBuf::from("/d/opencode/auth.json"));
        assert_eq!(folders.config, PathBuf::from("/c"));
    }

    #[test]
    fn debug_output_has_no_key() {
        assert!(!format!("{:?}", settings()).contains("tok\""));
    }
}
