//! `baton run`: serve the configured platforms until stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use gateway_core::ids::ProfileId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::answer::Answer;
use super::args::RunArgs;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on, chat, executable};
use crate::clock::SystemClock;
use crate::config::{Settings, parse_duration};
use crate::front::connect;
use crate::front::serve::{self, End, Said, Say, Service};
use crate::store::sqlite::SqliteStore;
use crate::{Parts, logging};

pub(crate) fn run(args: &RunArgs, around: &Surroundings, answer: &Answer) -> Result<Exit, Failure> {
    let drain = match &args.drain {
        None => serve::DRAIN,
        Some(text) => parse_duration(text).ok_or_else(|| {
            Failure::usage(anyhow!(
                "--drain {text:?} is not a duration; write a number with its unit: \"20s\", \"2m\""
            ))
        })?,
    };
    let settings = around.loaded()?.settings;
    let profiles = chosen(&args.profile, &settings)?;
    let _logs = logging::init(&settings.root, chat::redact(&settings));
    let say = teller(&settings, answer.is_json());
    let executable = executable()?;
    let pair = args.pair;
    let end = block_on(async move {
        let bots = match connect::bots(&settings, &profiles) {
            Ok(bots) => bots,
            Err(unfit) => {
                for (bot, finding) in unfit {
                    say(Said::Found { bot, finding });
                }
                return Ok(End::Failed);
            }
        };
        let stops = stop_signals()?;
        let store = SqliteStore::open(&settings.root.store_file()).await?;
        let parts = Parts {
            settings,
            clock: Arc::new(SystemClock),
            store: Arc::new(store),
            platforms: Vec::new(),
            providers: BTreeMap::new(),
            executable,
        };
        let service = Service {
            parts,
            bots,
            drain,
            pair,
            say,
        };
        serve::serve(service, stops).await
    })??;
    Ok(match end {
        End::Stopped => Exit::Done,
        End::Failed | End::CutShort => Exit::Failed,
    })
}

/// The profiles to serve, each with a platform.
fn chosen(named: &[String], settings: &Settings) -> Result<BTreeSet<ProfileId>, Failure> {
    let mut chosen = BTreeSet::new();
    for name in named {
        let id = ProfileId::new(name);
        chat::known(&id, settings)?;
        if settings.profile(&id).chat.is_empty() {
            let section = format!("[profiles.{name}.discord] or [profiles.{name}.slack]");
            return Err(Failure::usage(anyhow!(
                "the profile {name:?} has no platform to serve: it needs a section {section} in {}",
                settings.root.config_file().display()
            )));
        }
        chosen.insert(id);
    }
    if !named.is_empty() {
        return Ok(chosen);
    }
    let all = settings.profiles.values();
    chosen.extend(
        all.filter(|one| !one.chat.is_empty())
            .map(|one| one.id.clone()),
    );
    if chosen.is_empty() {
        return Err(Failure::usage(anyhow!(
            "there is nothing to serve: no profile has a platform. Add to {}, for example:\n\n  [profiles.default.discord]\n  token_env = \"DISCORD_TOKEN\"\n  guilds = [\"…\"]\n\n  [profiles.default.slack]\n  app_token_env = \"SLACK_APP_TOKEN\"\n  bot_token_env = \"SLACK_BOT_TOKEN\"\n\nor talk in the terminal with `baton chat`.",
            settings.root.config_file().display()
        )));
    }
    Ok(chosen)
}

/// People read it on stderr, programs on stdout. A reader who went away stops nothing.
fn teller(settings: &Settings, json: bool) -> Say {
    let redact = chat::redact(settings);
    Arc::new(move |said| {
        let _ = match json {
            true => {
                let mut line = redact(&said.json().to_string());
                line.push('\n');
                let mut out = std::io::stdout().lock();
                out.write_all(line.as_bytes()).and_then(|()| out.flush())
            }
            false => writeln!(std::io::stderr(), "{}", redact(&said.to_string())),
        };
    })
}

/// One message per SIGTERM or SIGINT.
fn stop_signals() -> anyhow::Result<mpsc::Receiver<()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let (told, stops) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if told.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(stops)
}
