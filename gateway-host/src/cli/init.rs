//! `baton init`: looks around, proposes a configuration, writes it if it is wanted. An existing one is never touched.

mod proposal;

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, anyhow};

use super::Surroundings;
use super::answer::Answer;
use super::outcome::{Exit, Failure};
use crate::config::{Environment, Program, RootPath, check_text};
use crate::cooling::login::credential_files;
use proposal::{Cli, Found, Login, propose};

pub(crate) fn run(yes: bool, around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let root = around.root()?;
    let file = root.config_file();
    if file.symlink_metadata().is_ok() {
        return Err(Failure::failed(anyhow!(
            "{} exists and is left as it is. Edit it and run `baton config check`, or move it away and run `baton init` again.",
            file.display()
        )));
    }
    let found = look_around(&around.environment);
    let Some(text) = propose(&found) else {
        return Err(Failure::failed(anyhow!(
            "found nothing to talk to: no `claude` in PATH, no `codex` or `opencode` with a login, no API key in the environment that is enough{}. Install Claude Code and log in, or set ANTHROPIC_API_KEY or OPENAI_API_KEY, then run `baton init` again; `baton demo` needs neither.",
            found.unusable()
        )));
    };
    // What we propose must be accepted by what reads it.
    check_text(&root, &around.environment, &text)?;
    if !answer.is_json() {
        answer.line(&format!(
            "{}\n\nThis would be {}:\n\n{text}",
            found.summary(),
            file.display()
        ))?;
    }
    if !yes && !agreed(answer)? {
        answer.line("Nothing was written.")?;
        return Ok(Exit::Done);
    }
    write_new(&root, &text)
        .with_context(|| format!("cannot write {}; nothing was changed", file.display()))?;
    if answer.is_json() {
        answer.json(&serde_json::json!({"written": file.display().to_string()}))?;
    } else {
        answer.line(&format!(
            "Wrote {}. Next: `baton doctor`, then `baton chat`.",
            file.display()
        ))?;
    }
    Ok(Exit::Done)
}

fn agreed(answer: &mut Answer) -> Result<bool, Failure> {
    if answer.is_json() || !io::stdin().is_terminal() {
        return Err(Failure::usage(anyhow!(
            "there is nobody to ask: stdin is not a terminal, or --json was given. Run `baton init --yes` to write it unasked."
        )));
    }
    answer.text("Write it? [y/N] ")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What is on this machine: programs in PATH and keys in the environment. Only names are looked at, never values.
fn look_around(environment: &Environment) -> Found {
    let cli = |program: Program| {
        let path = which::which_in(
            program.word(),
            environment.get("PATH"),
            &environment.workdir,
        )
        .ok()?;
        Some(Cli {
            login: login(program, environment),
            program,
            path,
        })
    };
    Found {
        clis: Program::ALL.into_iter().filter_map(cli).collect(),
        keys: proposal::KEYS
            .iter()
            .filter(|key| environment.get(key.variable).is_some())
            .collect(),
    }
}

fn login(program: Program, environment: &Environment) -> Login {
    let files = credential_files(program, None, environment);
    match files.into_iter().next() {
        Some(file) if program != Program::Claude && !file.exists() => Login::Missing(file),
        _ => Login::Likely,
    }
}

/// Writes the file durably, 0600 in a folder of 0700, and only if there is none: it appears whole or not at all.
fn write_new(root: &RootPath, text: &str) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&root.0)?;
    let mut file = tempfile::NamedTempFile::new_in(&root.0)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(root.config_file())
        .map_err(|error| error.error)?;
    sync_folder(&root.0)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
