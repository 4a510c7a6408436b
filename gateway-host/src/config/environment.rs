//! The process's surroundings as values, read once: variables, the home folder and the folder we were started in.
//! Configuration is resolved against these, so that tests can say what they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the process was started with.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The person's home folder; `None` = there is none.
    pub home: Option<PathBuf>,
    /// The folder `baton` was started in.
    pub workdir: PathBuf,
}

impl Environment {
    /// The surroundings of this process. Variables that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            home: etcetera::home_dir().ok(),
            workdir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }

    /// Surroundings made up for a test or the demo.
    pub fn of(home: &Path, variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            home: Some(home.to_owned()),
            workdir: home.to_owned(),
        }
    }

    /// The variable's value; one set to nothing counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Expands `~` at the front and `$NAME` or `${NAME}` anywhere. A relative path counts from `base`.
    pub fn expand(&self, text: &str, base: &Path) -> Result<PathBuf, CannotExpand> {
        if text.trim().is_empty() {
            return Err(CannotExpand::Empty);
        }
        let (front, rest) = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.home.as_ref().ok_or(CannotExpand::NoHome)?;
                (home.to_string_lossy().into_owned(), rest)
            }
            Some(_) => return Err(CannotExpand::OtherHome(text.to_owned())),
            None => (String::new(), text),
        };
        let mut path = front;
        let mut pieces = rest.split('$');
        path.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (name, tail) =
                variable(piece).ok_or_else(|| CannotExpand::BadVariable(text.to_owned()))?;
            let value = self
                .get(name)
                .ok_or_else(|| CannotExpand::NotSet(name.to_owned()))?;
            path.push_str(value);
            path.push_str(tail);
        }
        Ok(base.join(path))
    }
}

/// Splits `NAME/rest` or `{NAME}/rest`.
fn variable(piece: &str) -> Option<(&str, &str)> {
    let (name, tail) = match piece.strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            piece.split_at(piece.find(|c| !is_name(c)).unwrap_or(piece.len()))
        }
    };
    (!name.is_empty()).then_some((name, tail))
}

/// Why a path cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotExpand {
    #[error("the path is empty")]
    Empty,
    #[error("`~` cannot be expanded: there is no home folder (HOME is not set)")]
    NoHome,
    #[error("{0:?}: only `~/…` is understood, not another person's home")]
    OtherHome(String),
    #[error("the variable ${0} in the path is not set")]
    NotSet(String),
    #[error("{0:?}: `$` must be followed by a variable's name")]
    BadVariable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_expand() {
        let environment =
            Environment::of(Path::new("/home/p"), &[("XDG", "/run/x"), ("EMPTY", "")]);
        let expand = |text: &str| environment.expand(text, Path::new("/root"));
        for (text, path) in [
            ("~", "/home/p"),
            ("~/src", "/home/p/src"),
            ("$XDG/b.sock", "/run/x/b.sock"),
            ("${XDG}y", "/run/xy"),
            ("sub/dir", "/root/sub/dir"),
            ("/abs", "/abs"),
        ] {
            assert_eq!(expand(text), Ok(PathBuf::from(path)), "{text}");
        }
        assert_eq!(
            expand("$EMPTY/x"),
            Err(CannotExpand::NotSet("EMPTY".into()))
        );
        assert_eq!(expand("$/x"), Err(CannotExpand::BadVariable("$/x".into())));
        assert_eq!(
            expand("~bob/x"),
            Err(CannotExpand::OtherHome("~bob/x".into()))
        );
        assert_eq!(expand(" "), Err(CannotExpand::Empty));
    }
}
