//! `baton plugin …`: hands the arguments to `plugins/cli.rs` and says what it answers. `probe` and `check-one` are what the
//! gateway starts itself to look at a library in a process of its own.

use super::answer::Answer;
use super::args::PluginTopic;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on, executable};
use crate::plugins::cli::{self, Said};

pub(crate) fn run(
    topic: PluginTopic,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let json = answer.is_json();
    let said = match topic {
        PluginTopic::List => {
            let loaded = around.loaded()?;
            let executable = executable()?;
            block_on(cli::list(&loaded.settings, &executable, json))?
        }
        PluginTopic::Check { file, config } => {
            let executable = executable()?;
            block_on(cli::check(&file, config.as_deref(), json, &executable))?
        }
        PluginTopic::Install { file } => {
            let (root, executable) = (around.root()?, executable()?);
            block_on(cli::install(&file, &root.0, &executable))?
        }
        PluginTopic::Probe { file } => cli::probe(&file),
        PluginTopic::CheckOne { file, test, config } => {
            cli::check_one(&file, &test, config.as_deref())
        }
    };
    tell(&said, answer)
}

fn tell(said: &Said, answer: &mut Answer) -> Result<Exit, Failure> {
    answer.text(&said.out)?;
    let exit = match said.code {
        0 => Exit::Done,
        1 => Exit::Failed,
        _ => Exit::Usage,
    };
    if said.err.is_empty() {
        return Ok(exit);
    }
    Err(Failure {
        exit,
        error: anyhow::anyhow!("{}", said.err),
    })
}
