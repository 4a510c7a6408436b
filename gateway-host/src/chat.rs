//! `baton chat`: the terminal as a platform. The person at it is the local user, an operator of the profile.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use gateway_core::ids::{InboundId, ProfileId, SessionKey};
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use jiff::Timestamp;
use platforms::console::{self, Console, ConsoleInput, ConsoleLine, InputOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::clock::{Clock, SystemClock};
use crate::config::Settings;
use crate::store::Lane;
use crate::store::sqlite::SqliteStore;
use crate::{Gateway, Parts};

/// Talks until the person leaves; returns when everything running is sealed.
pub async fn run(
    settings: Settings,
    profile: ProfileId,
    executable: PathBuf,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        settings.profiles.contains_key(&profile),
        "there is no profile `{profile}`; configured: {}",
        settings
            .profiles
            .keys()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let root = settings.root.clone();
    let store = SqliteStore::open(&root.store_file()).await?;
    let history = Some(root.0.join("state").join("console-history"));
    let ConsoleInput {
        mut lines,
        terminal,
    } = ConsoleInput::start(InputOptions {
        prompt: "› ".into(),
        history,
    })
    .context("cannot read the terminal")?;
    let console = Arc::new(Console::new(terminal));
    let gateway = Gateway::start(Parts {
        settings,
        clock: Arc::new(SystemClock),
        store: Arc::new(store),
        platforms: vec![console.clone()],
        providers: BTreeMap::new(),
        executable,
    })
    .await?;
    let _ = console.say(&greeting(&gateway, &profile)); // a closed screen shows with the first line read
    let lane = Lane {
        profile,
        session: SessionKey::new("agent:main:console:local"),
    };
    let ended = talk(&gateway, &lane, &mut lines).await;
    gateway.shutdown().await;
    ended
}

async fn talk(
    gateway: &Gateway,
    lane: &Lane,
    lines: &mut tokio::sync::mpsc::Receiver<ConsoleLine>,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    loop {
        let line = tokio::select! {
            line = lines.recv() => line.unwrap_or(ConsoleLine::End),
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => ConsoleLine::Interrupt,
        };
        let now = SystemClock.now();
        match line {
            ConsoleLine::Text(text) => {
                gateway
                    .receive(inbound(lane, Content::Text(text), now))
                    .await
            }
            ConsoleLine::Command { name, args } => {
                gateway
                    .receive(inbound(lane, Content::Command { name, args }, now))
                    .await;
            }
            ConsoleLine::Interrupt if gateway.sessions().stop(lane) => {}
            ConsoleLine::Interrupt => return Ok(()),
            ConsoleLine::End => {
                // The input is over, not the work: what was asked is answered first, unless the gateway is told to end.
                tokio::select! {
                    () = gateway.idle() => {}
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                return Ok(());
            }
        }
    }
}

fn inbound(lane: &Lane, content: Content, now: Timestamp) -> Inbound {
    Inbound {
        id: InboundId::new(uuid::Uuid::now_v7().to_string()),
        profile: lane.profile.clone(),
        session: lane.session.clone(),
        sender: Sender {
            id: "local".into(),
            name: "you".into(),
            standing: Standing::Operator,
        },
        origin: Origin::Human,
        target: ReplyTarget {
            platform: console::NAME.into(),
            address: "local".into(),
        },
        received_at: now,
        content,
    }
}

fn greeting(gateway: &Gateway, profile: &ProfileId) -> String {
    let profile = gateway.effects().profile(profile);
    let chain = profile
        .chain
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", then ");
    format!(
        "Talking to {chain}. /help lists the commands, /stop or Ctrl-C stops a turn, Ctrl-D leaves."
    )
}
