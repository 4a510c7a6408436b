//! `baton import hermes DIR`: proposes what an existing Hermes root's chain is here, says by name what it cannot bring
//! over, and writes it if that is wanted. The other root is only read, and of its secrets only their names.

mod fragment;
mod hermes;
mod upstreams;

use std::io::{self, BufRead, IsTerminal, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context, anyhow};
use serde_json::json;

use super::Surroundings;
use super::answer::Answer;
use super::outcome::{Exit, Failure};
use crate::config::{RootPath, check_text};
use fragment::{Proposal, propose};

/// What was typed behind `baton import hermes`.
pub(crate) struct Wanted<'a> {
    pub(crate) folder: &'a Path,
    /// `None` = `default`, or `hermes` if that is taken.
    pub(crate) profile: Option<&'a str>,
    pub(crate) yes: bool,
}

pub(crate) fn hermes(
    wanted: &Wanted<'_>,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let root = around.root()?;
    let file = root.config_file();
    let folder = around.environment.workdir.join(wanted.folder);
    let found = hermes::read(&folder).map_err(Failure::failed)?;
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => return Err(anyhow!("cannot read {}: {why}", file.display()).into()),
    };
    let proposal = propose(&found, before.as_deref(), wanted.profile).map_err(Failure::failed)?;
    // What we propose must be accepted by what reads it.
    check_text(&root, &around.environment, &proposal.whole)?;
    if !answer.is_json() {
        show(&proposal, &file, answer)?;
    }
    let write = wanted.yes || (!answer.is_json() && agreed(answer)?);
    if write {
        save(&root, &proposal.whole)
            .with_context(|| format!("cannot write {}; nothing was changed", file.display()))?;
    }
    if answer.is_json() {
        let unmapped: Vec<_> = proposal
            .notes
            .iter()
            .map(|note| json!({"what": note.what, "why": note.why}))
            .collect();
        let written = write.then(|| file.display().to_string());
        answer.json(
            &json!({"config": proposal.added, "not_brought_over": unmapped, "written": written}),
        )?;
    } else if write {
        answer.line(&format!(
            "Wrote {}. Next: `baton doctor`, then `baton chat --profile {}`.",
            file.display(),
            proposal.profile
        ))?;
    } else {
        answer.line("Nothing was written; `baton import hermes DIR --yes` writes it.")?;
    }
    Ok(Exit::Done)
}

fn show(proposal: &Proposal, file: &Path, answer: &mut Answer) -> Result<(), Failure> {
    answer.line(&format!(
        "This would be added to {}:\n\n{}",
        file.display(),
        proposal.added
    ))?;
    if !proposal.notes.is_empty() {
        answer.line("Not brought over, or to be looked at:")?;
    }
    for note in &proposal.notes {
        answer.line(&format!("- {}: {}", note.what, note.why))?;
    }
    Ok(())
}

/// Nobody is asked where nobody sits; then nothing is written.
fn agreed(answer: &mut Answer) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    answer.text("Write it? [y/N] ")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Writes the configuration whole or not at all, 0600 in a folder of 0700.
fn save(root: &RootPath, text: &str) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&root.0)?;
    let mut file = atomic_write_file::AtomicWriteFile::open(root.config_file())?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.commit()
}
