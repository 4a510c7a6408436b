//! How a command ends: the exit codes of the product, and errors that carry theirs.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use super::colour::{self, Colour};
use crate::config::{CannotExpand, ConfigError};
use crate::store::StoreError;

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: failed, or a check found something.
    Failed,
    /// 2: wrong usage, a check that could not run, a bad configuration under any other command.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::from(0),
            Exit::Failed => Self::from(1),
            Exit::Usage => Self::from(2),
        }
    }
}

/// A command that did not get to its answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub exit: Exit,
    pub error: anyhow::Error,
}

impl Failure {
    /// The command was used wrongly, or cannot run as things are.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Usage,
            error: error.into(),
        }
    }

    /// The command ran and failed.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Failed,
            error: error.into(),
        }
    }

    /// Whether the reader of our output went away, which is no failure of ours.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
    }

    /// The error and its causes as a person reads them, ending with a line break.
    pub(crate) fn render(&self) -> String {
        let head = colour::paint("error", Colour::Red, colour::on_stderr());
        let message = self.error.to_string();
        // Findings in a configuration bring their own heads.
        let mut text = if message.starts_with("error: ") || message.starts_with("warning: ") {
            message
        } else {
            format!("{head}: {message}")
        };
        let mut said = text.clone();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !said.contains(&cause) {
                let _ = write!(text, "\n  because: {cause}"); // writing to a String cannot fail
                said.push_str(&cause);
            }
        }
        text.push('\n');
        text
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl From<CannotExpand> for Failure {
    fn from(error: CannotExpand) -> Self {
        let message = "cannot find the root; set BATON_HOME to a folder of yours";
        Self::usage(anyhow::Error::from(error).context(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once() {
        let inner = io::Error::other("disk is full");
        let error = anyhow::Error::from(inner)
            .context("cannot save")
            .context("cannot save: disk is full");
        let text = Failure::failed(error).render();
        assert_eq!(text, "error: cannot save: disk is full\n");
        let error = anyhow::Error::from(io::Error::other("x")).context("cannot y");
        assert_eq!(
            Failure::failed(error).render(),
            "error: cannot y\n  because: x\n"
        );
    }
}
