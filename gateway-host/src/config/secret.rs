//! Secrets are named in the configuration and read only here, at the moment of use.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::environment::Environment;

/// Where a secret comes from: `*_env` or `*_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    Env(String),
    File(PathBuf),
}

/// Why a secret cannot be used. The sentences end with what to do.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "the environment variable {0} is not set; set it to the key, for example with `export {0}=…`"
    )]
    NotSet(String),
    #[error("cannot read the key file {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the key file {} can be read by others (mode {mode:o}); run `chmod 600 {}`", path.display(), path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the key file {} is empty; write the key into it", .0.display())]
    Empty(PathBuf),
}

impl SecretRef {
    /// Reads the secret now, from this process's environment or its file. One trailing line break is cut.
    pub fn resolve(&self) -> Result<SecretString, SecretError> {
        match self {
            Self::Env(name) => std::env::var(name)
                .ok()
                .and_then(present)
                .ok_or_else(|| SecretError::NotSet(name.clone())),
            Self::File(path) => read(path),
        }
    }

    /// Reads the secret with the variables of `environment`.
    pub fn resolve_in(&self, environment: &Environment) -> Result<SecretString, SecretError> {
        match self {
            Self::Env(name) => environment
                .get(name)
                .and_then(|text| present(text.to_owned()))
                .ok_or_else(|| SecretError::NotSet(name.clone())),
            Self::File(path) => read(path),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "${name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

fn read(path: &Path) -> Result<SecretString, SecretError> {
    let unreadable = |source| SecretError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mode = std::fs::metadata(path).map_err(unreadable)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    present(text).ok_or_else(|| SecretError::Empty(path.to_owned()))
}

fn present(text: String) -> Option<SecretString> {
    let cut = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(&text);
    (!cut.trim().is_empty()).then(|| SecretString::from(cut.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use secrecy::ExposeSecret;

    use super::*;

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn one_trailing_line_break_is_cut() {
        for (text, key) in [("k\n", "k"), ("k\r\n", "k"), ("k\n\n", "k\n"), (" k", " k")] {
            let file = file(text, 0o600);
            let secret = SecretRef::File(file.path().to_owned()).resolve().unwrap();
            assert_eq!(secret.expose_secret(), key, "{text:?}");
        }
    }

    #[test]
    fn a_file_others_can_read_is_refused() {
        let file = file("k", 0o640);
        let error = SecretRef::File(file.path().to_owned())
            .resolve()
            .unwrap_err();
        assert!(matches!(error, SecretError::Exposed { mode: 0o640, .. }));
        assert!(error.to_string().contains("chmod 600"));
    }

    #[test]
    fn an_empty_variable_is_not_a_key() {
        let environment = Environment::of(Path::new("/"), &[("A", ""), ("B", "b")]);
        assert!(SecretRef::Env("A".into()).resolve_in(&environment).is_err());
        let secret = SecretRef::Env("B".into()).resolve_in(&environment).unwrap();
        assert_eq!(secret.expose_secret(), "b");
    }
}
