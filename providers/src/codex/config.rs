//! What the Codex provider needs to know, and what follows from it: where its files are, which program is run and which
//! environment it gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_core::ids::SubscriptionId;
use gateway_core::route::Billing;
use jiff::Timestamp;

use crate::environment::child_environment;

/// One `codex` subscription.
#[derive(Clone)]
pub struct CodexSettings {
    /// The program; `None` = `codex` on PATH.
    pub binary: Option<PathBuf>,
    /// The login's own folder (`CODEX_HOME`); `None` = where `codex` looks by itself.
    pub home: Option<PathBuf>,
    /// Extra variables for the program. The only way an API key can reach it.
    pub env: BTreeMap<String, String>,
    /// The name readings carry (the registry's join key).
    pub subscription: SubscriptionId,
    /// Who pays. `Plan` = a login; a key that would be billed instead is refused (`account.rs`).
    pub billing: Billing,
    /// Folders commands must never reach, even inside a working directory: the gateway's own root. The login's folder is
    /// always among them.
    pub hidden: Vec<PathBuf>,
    /// The time, for readings.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl CodexSettings {
    /// The environment of the program, from the gateway's own one.
    pub(super) fn environment(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut fixed: Vec<(&str, &OsStr)> = vec![("NO_COLOR", OsStr::new("1"))];
        let folder = self.chosen_folder();
        if let Some(folder) = &folder {
            fixed.push(("CODEX_HOME", folder.as_os_str()));
        }
        child_environment(own, &fixed, &self.env)
    }

    /// Where the program keeps login and rollouts; `None` = no home folder is known.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let named = self.env.get("CODEX_HOME").map(PathBuf::from);
        let home = || {
            let named = self.env.get("HOME").map(OsString::from);
            named.or_else(|| std::env::var_os("HOME"))
        };
        named
            .or_else(|| self.chosen_folder())
            .or_else(|| Some(PathBuf::from(home()?).join(".codex")))
    }

    fn chosen_folder(&self) -> Option<PathBuf> {
        let inherited = || std::env::var_os("CODEX_HOME").map(PathBuf::from);
        self.home.clone().or_else(inherited)
    }

    /// The program to run.
    ///
    /// # Errors
    /// With a sentence for the operator, when there is none.
    pub(super) fn program(&self) -> Result<PathBuf, String> {
        let named = match &self.binary {
            Some(path) => path.clone(),
            None => which::which("codex").map_err(|_| NOT_FOUND.to_owned())?,
        };
        Ok(native(&named))
    }
}

const NOT_FOUND: &str =
    "`codex` was not found on PATH; install Codex, or name the program with `binary`";

/// Packages of the native program, as npm installs them beside the launcher (0.171.0).
const NATIVE: &[&str] = &[
    "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    "codex-darwin-arm64/vendor/aarch64-apple-darwin/bin/codex",
    "codex-darwin-x64/vendor/x86_64-apple-darwin/bin/codex",
];

/// The native program behind npm's launcher script, links resolved: it takes signals itself, and the sandbox has to be
/// allowed to read it. What is no launcher stays as it is.
fn native(program: &Path) -> PathBuf {
    let resolved = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    if resolved.extension() != Some(OsStr::new("js")) {
        return resolved;
    }
    let ancestors = resolved.ancestors();
    let rooms =
        ancestors.flat_map(|folder| [folder.join("@openai"), folder.join("node_modules/@openai")]);
    rooms
        .flat_map(|room| NATIVE.iter().map(move |file| room.join(file)))
        .find(|file| file.is_file())
        .unwrap_or(resolved)
}

/// The variables may hold keys: their names are shown, their values are not.
impl fmt::Debug for CodexSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodexSettings")
            .field("binary", &self.binary)
            .field("home", &self.home)
            .field("env", &self.env.keys())
            .field("subscription", &self.subscription)
            .field("billing", &self.billing)
            .field("hidden", &self.hidden)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> CodexSettings {
        CodexSettings {
            binary: None,
            home: Some("/logins/one".into()),
            env: BTreeMap::from([("MOCK_API_KEY".to_owned(), "sk-x".to_owned())]),
            subscription: "one".into(),
            billing: Billing::Plan,
            hidden: Vec::new(),
            now: Arc::new(|| Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn the_environment_has_the_login_folder_and_no_key_of_ours() {
        let own = [
            ("PATH".into(), "/bin".into()),
            ("OPENAI_API_KEY".into(), "sk-x".into()),
        ];
        let built = settings().environment(own);
        let names: Vec<_> = built
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, ["CODEX_HOME", "MOCK_API_KEY", "NO_COLOR", "PATH"]);
    }

    #[test]
    fn debug_output_has_no_key() {
        assert!(!format!("{:?}", settings()).contains("sk-x"));
    }

    #[test]
    fn the_launcher_of_npm_leads_to_the_native_program() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let modules = root.join("node_modules/@openai");
        let launcher = modules.join("codex/bin/codex.js");
        let program = modules.join(NATIVE[0]);
        for file in [&launcher, &program] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::File::create(file).unwrap();
        }
        let link = root.join("codex");
        std::os::unix::fs::symlink(&launcher, &link).unwrap();
        assert_eq!(native(&link), program);
        assert_eq!(native(&program), program);
        std::fs::remove_file(&program).unwrap();
        assert_eq!(native(&link), launcher);
    }
}
