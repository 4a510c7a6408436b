//! The command line: one file per command. A command reads what it needs, acts, and writes its answer to stdout through
//! [`answer`]; logs and errors go to stderr. Exit codes are in [`outcome`].

mod answer;
mod args;
mod chat;
pub(crate) mod colour;
mod commands;
mod config;
mod demo;
mod doctor;
mod explain;
mod handoff;
mod import;
mod init;
mod outcome;
mod plugin;
mod run;
mod slack_manifest;
mod usage;
mod why;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::config::{ConfigError, Environment, Loaded, RootPath, load};
use answer::Answer;
use args::{Args, Command, ImportTopic};
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
        Command::Demo { fast, scene } => demo::run(fast, scene, &answer),
        Command::Chat { .. } if args.json => Err(Failure::usage(anyhow::anyhow!(
            "`baton chat` is a conversation and has no --json. For one JSON event per line look at `baton demo --json`."
        ))),
        Command::Chat { profile } => chat::run(profile.as_deref(), &surroundings),
        Command::Handoff(topic) => handoff::run(topic, &surroundings, &mut answer),
        Command::Plugin(topic) => plugin::run(topic, &surroundings, &mut answer),
        Command::Explain(topic) => explain::run(topic, &mut answer),
        Command::Doctor => doctor::run(&surroundings, &mut answer),
        Command::Init { yes } => init::run(yes, &surroundings, &mut answer),
        Command::Run(args) => run::run(&args, &surroundings, &answer),
        Command::Usage(args) => usage::run(&args, &surroundings, &mut answer),
        Command::Why { turn } => why::run(turn.as_deref(), &surroundings, &mut answer),
        Command::SlackManifest { profile } => {
            slack_manifest::run(profile.as_deref(), &surroundings, &mut answer)
        }
        Command::Commands { profile } => {
            commands::run(profile.as_deref(), &surroundings, &mut answer)
        }
        Command::Import(ImportTopic::Hermes { dir, profile, yes }) => {
            let wanted = import::Wanted {
                folder: &dir,
                profile: profile.as_deref(),
                yes,
            };
            import::hermes(&wanted, &surroundings, &mut answer)
        }
    }
}

/// Runs a command's asynchronous part to its end.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::failed(anyhow::Error::from(error).context("cannot start the runtime"))
        })?;
    let output = runtime.block_on(future);
    // A plugin's or a reader's thread that hangs must not hold up the exit.
    runtime.shutdown_background();
    Ok(output)
}

/// This program's own file: plugins lie beside it, and it probes them.
pub(crate) fn executable() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::failed(
            anyhow::Error::from(error)
                .context("cannot find the program's own file; start baton by its full path"),
        )
    })
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

    /// The configuration, for commands that work without one too: `None` = nothing was ever set up here.
    pub(crate) fn loaded_if_any(&self) -> Result<Option<Loaded>, Failure> {
        match load(&self.root()?, &self.environment) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(ConfigError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
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
