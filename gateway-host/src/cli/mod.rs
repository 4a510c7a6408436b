//! The command line: one file per command. A command reads what it needs, acts, and writes its answer to stdout through
//! [`answer`]; logs and errors go to stderr. Exit codes are in [`outcome`].

mod answer;
mod args;
pub(crate) mod colour;
mod config;
mod init;
mod not_yet;
mod outcome;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::config::{Environment, Loaded, RootPath, load};
use answer::Answer;
use args::{Args, Command};
use outcome::{Exit, Failure};

/// Keeps other processes of the same user out of our memory, and our files to ourselves.
pub fn harden_process() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Refused only by a kernel without prctl; there is nothing better to do then.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Runs the command line and says how it ended.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers (0), everything else is wrong usage (2).
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            let _ = error.print(); // nobody is left to tell
            return exit.into();
        }
    };
    match command(args) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Done.into(),
        Err(failure) => {
            let _ = std::io::stderr().write_all(failure.render().as_bytes()); // nobody is left to tell
            failure.exit.into()
        }
    }
}

fn command(args: Args) -> Result<Exit, Failure> {
    let mut answer = Answer::new(args.json);
    let surroundings = Surroundings::of_process();
    match args.command {
        Command::Config(topic) => config::run(topic, &surroundings, &mut answer),
        Command::Init { yes } => init::run(yes, &surroundings, &mut answer),
        Command::Run(_) => not_yet::answer("run"),
        Command::Usage(_) => not_yet::answer("usage"),
        Command::Why(_) => not_yet::answer("why"),
        Command::SlackManifest(_) => not_yet::answer("slack-manifest"),
        Command::Commands(_) => not_yet::answer("commands"),
        Command::Import(_) => not_yet::answer("import"),
    }
}

/// What every command starts from.
pub(crate) struct Surroundings {
    pub(crate) environment: Environment,
}

impl Surroundings {
    fn of_process() -> Self {
        Self {
            environment: Environment::of_process(),
        }
    }

    pub(crate) fn root(&self) -> Result<RootPath, Failure> {
        Ok(RootPath::find(&self.environment)?)
    }

    /// The configuration, for commands that need one; its warnings go to stderr.
    pub(crate) fn loaded(&self) -> Result<Loaded, Failure> {
        let loaded = load(&self.root()?, &self.environment)?;
        for warning in &loaded.warnings {
            let _ = writeln!(std::io::stderr(), "{warning}"); // a warning nobody reads stops nothing
        }
        Ok(loaded)
    }
}
