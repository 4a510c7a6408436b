//! `baton plugin list | install FILE`; the checks themselves are in `plugins/`.

use std::path::Path;

use serde_json::json;

use super::answer::Answer;
use super::args::PluginTopic;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on, executable};
use crate::plugins::facts::PluginState;
use crate::plugins::{PluginSet, install};

pub(crate) fn run(
    topic: PluginTopic,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    match topic {
        PluginTopic::List => list(around, answer),
        PluginTopic::Install { file } => install_file(&file, around, answer),
    }
}

fn list(around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let loaded = around.loaded()?;
    let executable = executable()?;
    let (states, problems) = block_on(async {
        let (set, problems) = PluginSet::load(&loaded.settings, &executable).await;
        let states = set.states();
        set.shutdown().await;
        (states, problems)
    })?;
    for state in &states {
        let said = problems
            .iter()
            .find(|problem| problem.profile == state.profile && problem.name == state.name);
        let error = said
            .map(|problem| problem.message.as_str())
            .or(state.last_error.as_deref());
        if answer.is_json() {
            answer.json(&json!({
                "profile": state.profile, "name": state.name, "state": state.state.to_string(),
                "version": state.version, "file": state.file, "calls": state.calls,
                "failures": state.failures, "last_error": error,
            }))?;
        } else {
            answer.line(&line(state, error))?;
        }
    }
    if states.is_empty() && !answer.is_json() {
        answer.line("No profile names a plugin.")?;
    }
    Ok(Exit::Done)
}

fn line(state: &PluginState, error: Option<&str>) -> String {
    let mut text = format!("{}/{}: {}", state.profile, state.name, state.state);
    if let Some(version) = &state.version {
        text.push_str(&format!(", version {version}"));
    }
    if let Some(file) = &state.file {
        text.push_str(&format!(", from {}", file.display()));
    }
    if let Some(error) = error {
        text.push_str(&format!("\n  because: {error}"));
    }
    text
}

fn install_file(file: &Path, around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let root = around.root()?;
    let executable = executable()?;
    let installed =
        block_on(install::install(file, &root.0, &executable))?.map_err(Failure::failed)?;
    if answer.is_json() {
        answer.json(&json!({
            "name": installed.name, "version": installed.version, "file": installed.file, "sha256": installed.sha256,
        }))?;
    } else {
        answer.line(&format!(
            "Installed {} {} as {} (SHA-256 {}). Enable it with `{} = {{ enabled = true }}` below [profiles.NAME.plugins].",
            installed.name, installed.version, installed.file.display(), installed.sha256, installed.name
        ))?;
    }
    Ok(Exit::Done)
}
