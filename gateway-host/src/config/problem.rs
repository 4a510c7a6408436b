//! What is wrong with a configuration, as values, and how a person is shown it: which key, what, where, what next.
//! A line of the file is never quoted where it may hold a secret somebody wrote by mistake.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::document::{KeyPath, NotToml, Place, Source};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The gateway starts, something will not work.
    Warning,
    /// The configuration is refused.
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// The section or key it is about; empty = the whole file.
    pub path: KeyPath,
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// `None` = the key is written nowhere.
    pub at: Option<Spot>,
    /// The key somebody probably meant; it is not reported as missing as well.
    pub meant: Option<KeyPath>,
}

/// A stretch of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub source: Arc<Source>,
    pub span: Range<usize>,
}

impl Spot {
    /// Where the name of the key stands.
    pub fn key(place: &Place) -> Self {
        Self {
            source: place.source.clone(),
            span: place.key.clone(),
        }
    }

    /// Where the value of the key stands.
    pub fn value(place: &Place) -> Self {
        Self {
            source: place.source.clone(),
            span: place.value.clone(),
        }
    }

    /// Line and column, both from 1; columns count characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |start| start.chars().count())
            + 1;
        (line, column)
    }
}

impl Problem {
    /// An error about `path`.
    pub fn error(path: &KeyPath, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            path: path.clone(),
            message: message.into(),
            hint: None,
            at: None,
            meant: None,
        }
    }

    /// A warning about `path`.
    pub fn warning(path: &KeyPath, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, message)
        }
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where it stands.
    pub fn at(mut self, at: Option<Spot>) -> Self {
        self.at = at;
        self
    }

    /// The finding in one line, without its place.
    pub fn line(&self) -> String {
        if self.path.names().is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.path, self.message)
        }
    }
}

impl From<NotToml> for Problem {
    fn from(error: NotToml) -> Self {
        let spot = Spot {
            source: error.source,
            span: error.span,
        };
        Problem::error(
            &KeyPath::default(),
            format!("this is not TOML: {}", error.message),
        )
        .at(Some(spot))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{word}: {}", self.line())?;
        let margin = match &self.at {
            Some(spot) => show(spot, f)?,
            None => 1,
        };
        if let Some(hint) = &self.hint {
            write!(f, "\n{:margin$} = next: {hint}", "")?;
        }
        Ok(())
    }
}

/// Writes file, line and caret; returns how wide the line number is.
fn show(spot: &Spot, f: &mut fmt::Formatter<'_>) -> Result<usize, fmt::Error> {
    let (line, column) = spot.line_and_column();
    let margin = line.to_string().len();
    write!(
        f,
        "\n{:margin$}--> {}:{line}:{column}",
        "",
        spot.source.path.display()
    )?;
    let Some(text) = spot.source.text.lines().nth(line - 1) else {
        return Ok(margin);
    };
    if may_hold_a_secret(text) {
        write!(
            f,
            "\n{:margin$} | (not shown: the line may hold a secret)",
            ""
        )?;
        return Ok(margin);
    }
    let marked = spot.source.text.get(spot.span.clone()).unwrap_or_default();
    let first_line = marked.lines().next().unwrap_or_default();
    let indent: String = text
        .chars()
        .take(column - 1)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let carets = "^".repeat(first_line.chars().count().max(1));
    write!(
        f,
        "\n{:margin$} |\n{line} | {text}\n{:margin$} | {indent}{carets}",
        "", ""
    )?;
    Ok(margin)
}

/// Whether a key that sounds like a secret is given a value on this line, or an address holds a password. `key_env = …` names one and is harmless.
fn may_hold_a_secret(line: &str) -> bool {
    let mut addresses = line.split("://").skip(1);
    if addresses.any(|address| address.contains('@')) {
        return true;
    }
    line.to_lowercase()
        .split('=')
        .rev()
        .skip(1)
        .any(|before| sounds_secret(before.trim_end_matches(['"', '\'', ' ', '\t'])))
}

/// Whether a key's name says that its value is a secret.
pub(super) fn sounds_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["key", "token", "secret", "password", "passwd"]
        .iter()
        .any(|word| name.ends_with(word))
}

/// Everything found in one go.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(super) fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.0.extend(problems);
    }

    /// Whether an error was already found in this key or in one that was probably meant to be it: then it is not missing.
    pub(super) fn mention(&self, path: &KeyPath) -> bool {
        self.0.iter().any(|problem| {
            problem.severity == Severity::Error
                && (problem.path.is_within(path) || problem.meant.as_ref() == Some(path))
        })
    }

    /// Splits into errors and warnings, each in the order of the files.
    pub(super) fn split(mut self) -> (Vec<Problem>, Vec<Problem>) {
        self.0.sort_by_key(|problem| {
            problem.at.as_ref().map(|spot| {
                let root_first = spot.source.path.components().count();
                (root_first, spot.source.path.clone(), spot.span.start)
            })
        });
        self.0
            .into_iter()
            .partition(|problem| problem.severity == Severity::Error)
    }
}

/// Why there is no configuration to work with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nothing was ever set up here.
    #[error(
        "there is no configuration at {}. Run `baton init` to write one, or set BATON_HOME to where yours is.", .0.display()
    )]
    Missing(PathBuf),
    /// The file is there and cannot be read.
    #[error("cannot read the configuration {}: {source}. Check its owner and mode (0600).", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file was read and is refused; every finding is in here, warnings last.
    #[error("{}", render(.0))]
    Refused(Vec<Problem>),
}

fn render(problems: &[Problem]) -> String {
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    shown.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_literal_secret_is_not_quoted() {
        for (line, hidden) in [
            (r#"api_key = "sk-1""#, true),
            (r#"x = { provider = "openai", "token" = "t" }"#, true),
            (r#"key_env = "OPENAI_API_KEY""#, false),
            (r#"key_file = "k=v""#, false),
            (r#"store = "postgres://me:pw@host/db""#, true),
            (r#"base_url = "https://host/v1""#, false),
            (r#"chain = ["a/b"]"#, false),
        ] {
            assert_eq!(may_hold_a_secret(line), hidden, "{line}");
        }
    }
}
