//! `baton demo`: shows the product without any account. It takes nothing of yours: no root, no configuration, no variable.

use std::sync::Arc;

use gateway_core::handoff::redact::Redactor;

use super::answer::Answer;
use super::outcome::{Exit, Failure};
use super::{block_on, executable};
use crate::demo::{Options, Scene};
use crate::logging;

pub(crate) fn run(fast: bool, scene: Scene, answer: &Answer) -> Result<Exit, Failure> {
    let options = Options {
        fast,
        scene,
        json: answer.is_json(),
        executable: executable()?,
    };
    let _logs = logging::init_stderr(Arc::new(|line| {
        Redactor::shapes().redact(line).into_owned()
    }));
    block_on(crate::demo::run(options, Box::new(std::io::stdout())))??;
    Ok(Exit::Done)
}
