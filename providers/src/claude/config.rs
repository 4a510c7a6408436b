//! What the Claude provider needs to know, and what follows from it: where its files are and which environment it gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use gateway_core::ids::SubscriptionId;
use jiff::Timestamp;

use crate::environment::child_environment;

/// Set for every run: no self-update, no traffic but the model's, few retries of its own (the gateway has other routes).
const FIXED: &[(&str, &str)] = &[
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
];

/// One `claude` subscription.
#[derive(Clone)]
pub struct ClaudeSettings {
    /// The program; `None` = `claude` on PATH.
    pub binary: Option<PathBuf>,
    /// The login's own folder (`CLAUDE_CONFIG_DIR`); `None` = where `claude` looks by itself.
    pub home: Option<PathBuf>,
    /// Extra variables for the program. The only way an API key can reach it.
    pub env: BTreeMap<String, String>,
    /// The name readings carry (the registry's join key).
    pub subscription: SubscriptionId,
    /// Folders the file tools must never reach, even inside a working directory: the gateway's own root. The login's
    /// folder is always among them.
    pub hidden: Vec<PathBuf>,
    /// The time, for readings.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl ClaudeSettings {
    /// The environment of the program, from the gateway's own one.
    pub(super) fn environment(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut fixed: Vec<(&str, &OsStr)> = FIXED
            .iter()
            .map(|(name, value)| (*name, OsStr::new(*value)))
            .collect();
        // Only when it is not the default: the program keeps its account file elsewhere once the variable is set.
        let folder = self.chosen_folder();
        if let Some(folder) = &folder {
            fixed.push(("CLAUDE_CONFIG_DIR", folder.as_os_str()));
        }
        child_environment(own, &fixed, &self.env)
    }

    /// Where the program keeps login and transcripts; `None` = no home folder is known.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let named = self.env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let home = || {
            let named = self.env.get("HOME").map(OsString::from);
            named.or_else(|| std::env::var_os("HOME"))
        };
        named
            .or_else(|| self.chosen_folder())
            .or_else(|| Some(PathBuf::from(home()?).join(".claude")))
    }

    /// Where the program keeps who is logged in: inside a folder that was chosen, beside the default one.
    pub(super) fn account_file(&self) -> Option<PathBuf> {
        const NAME: &str = ".claude.json";
        let named = self.env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        match named.or_else(|| self.chosen_folder()) {
            Some(folder) => Some(folder.join(NAME)),
            None => Some(self.folder()?.parent()?.join(NAME)),
        }
    }

    fn chosen_folder(&self) -> Option<PathBuf> {
        let inherited = || std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        self.home.clone().or_else(inherited)
    }
}

/// The variables may hold tokens: their names are shown, their values are not.
impl fmt::Debug for ClaudeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaudeSettings")
            .field("binary", &self.binary)
            .field("home", &self.home)
            .field("env", &self.env.keys())
            .field("subscription", &self.subscription)
            .field("hidden", &self.hidden)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ClaudeSettings {
        ClaudeSettings {
            binary: None,
            home: Some("/logins/one".into()),
            env: BTreeMap::from([("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "tok".to_owned())]),
            subscription: "one".into(),
            hidden: Vec::new(),
            now: Arc::new(|| Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn the_environment_has_the_login_folder_and_no_key_of_ours() {
        let own = [
            ("PATH".into(), "/bin".into()),
            ("ANTHROPIC_API_KEY".into(), "sk-ant-x".into()),
        ];
        let built = settings().environment(own);
        let names: Vec<_> = built
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                "CLAUDE_CODE_MAX_RETRIES",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CONFIG_DIR",
                "DISABLE_AUTOUPDATER",
                "DISABLE_ERROR_REPORTING",
                "DISABLE_TELEMETRY",
                "PATH"
            ]
        );
    }

    #[test]
    fn debug_output_has_no_token() {
        assert!(!format!("{:?}", settings()).contains("tok\""));
    }
}
