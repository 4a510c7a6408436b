//! `baton demo`: shows the product without any account. It takes nothing of yours: no root, no configuration, no variable.

use std::sync::Arc;

use anyhow::anyhow;
use gateway_core::handoff::redact::Redactor;

use super::answer::Answer;
use super::outcome::{Exit, Failure};
use super::{block_on, executable};
use crate::logging;

pub(crate) fn run(fast: bool, answer: &Answer) -> Result<Exit, Failure> {
    let executable = executable()?;
    let _logs = logging::init_stderr(Arc::new(|line| {
        Redactor::shapes().redact(line).into_owned()
    }));
    block_on(play(fast, answer.is_json(), executable))??;
    Ok(Exit::Done)
}

/// The call site of the demo.
async fn play(_fast: bool, _json: bool, _executable: std::path::PathBuf) -> Result<(), Failure> {
    Err(Failure::failed(anyhow!("not wired: the demo itself")))
}
