//! `baton chat`: talk in the terminal to a profile's chain.

use std::sync::Arc;

use anyhow::anyhow;
use gateway_core::ids::ProfileId;

use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on, executable};
use crate::config::{DEFAULT_PROFILE, Settings, did_you_mean};
use crate::logging;

pub(crate) fn run(profile: Option<&str>, around: &Surroundings) -> Result<Exit, Failure> {
    let loaded = around.loaded()?;
    let settings = loaded.settings;
    let profile = ProfileId::new(profile.unwrap_or(DEFAULT_PROFILE));
    known(&profile, &settings)?;
    let _logs = logging::init(&settings.root, redact(&settings));
    block_on(crate::chat::run(settings, profile, executable()?))??;
    Ok(Exit::Done)
}

/// Refuses a profile that is not configured, with the names of those that are.
pub(crate) fn known(profile: &ProfileId, settings: &Settings) -> Result<(), Failure> {
    if settings.profiles.contains_key(profile) {
        return Ok(());
    }
    let names: Vec<&str> = settings.profiles.keys().map(ProfileId::as_str).collect();
    let guess = did_you_mean(profile.as_str(), names.iter().copied());
    Err(Failure::usage(anyhow!(
        "there is no profile {:?}{guess}. Configured: {}.",
        profile.as_str(),
        names.join(", ")
    )))
}

/// Takes the secrets the settings name, and whatever looks like one, out of every log line.
pub(crate) fn redact(settings: &Settings) -> logging::Redact {
    let redactor = crate::redactor(settings);
    Arc::new(move |line| redactor.redact(line).into_owned())
}
