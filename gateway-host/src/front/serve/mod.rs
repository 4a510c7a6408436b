//! `baton run`: checks every bot, starts the gateway behind them, listens until told to stop, and comes to an end whatever
//! the platforms do.

mod listen;
mod said;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use gateway_core::command::CommandSpec;
use gateway_core::ids::ProfileId;
use platforms::Platform;
use platforms::adapter::{Finding, Heard, Severity};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::Bot;
use super::desk::Desk;
use super::switchboard::{Mouth, Switchboard};
use crate::config::ChatKind;
use crate::store::PairedOperator;
use crate::{Gateway, Parts};
pub use said::{Said, Say};

/// How long running turns get to come to their end, unless said otherwise.
pub const DRAIN: Duration = Duration::from_secs(20);

/// How long a bot's check, and the registration of its commands, may take.
const CHECK_MAX: Duration = Duration::from_secs(60);

/// How long what was said last gets to go out.
const SAY_MAX: Duration = Duration::from_secs(10);

/// How long the gateway itself gets to end.
const END_MAX: Duration = Duration::from_secs(20);

/// Things heard and not yet looked at. Looking is quick, so this is only for bursts.
const HEARD_MAX: usize = 1024;

/// How to serve.
pub struct Service {
    /// The gateway's parts; its platforms are made of the bots.
    pub parts: Parts,
    pub bots: Vec<Bot>,
    /// How long running turns get when it is to stop.
    pub drain: Duration,
    /// Forget the paired operators and offer new codes.
    pub pair: bool,
    pub say: Say,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was told to stop, and did in order.
    Stopped,
    /// It could not serve, or no bot was left.
    Failed,
    /// It was told to stop at once.
    CutShort,
}

/// Serves until `stops` says so: once = in order, twice = at once. A dropped sender never stops it.
pub async fn serve(service: Service, mut stops: mpsc::Receiver<()>) -> anyhow::Result<End> {
    let Service {
        mut parts,
        bots,
        drain,
        pair,
        say,
    } = service;
    let fit = tokio::select! {
        fit = all_fit(&bots, &say) => fit,
        () = told(&mut stops) => return Ok(End::Stopped),
    };
    if !fit {
        return Ok(End::Failed);
    }
    parts.platforms.extend(switchboards(&bots));
    let gateway = Arc::new(Gateway::start(parts).await?);
    let paired = paired(&gateway, &bots, pair, &say).await?;
    let desk = Arc::new(Desk::new(Arc::clone(&gateway), &bots, &paired));
    for (kind, profile) in desk.without_operator() {
        let now = gateway.effects().now();
        let code = desk.pairings.offer(kind, &profile, now).shown().to_owned();
        say(Said::Code {
            kind,
            profile,
            code,
        });
    }
    register(&bots, &gateway, &say).await;
    let stop = CancellationToken::new();
    let all_ended = listen_all(&bots, Arc::clone(&desk), &stop, &say);
    tokio::pin!(all_ended);
    let failed = tokio::select! {
        () = &mut all_ended => true,
        () = told(&mut stops) => false,
    };
    say(Said::Stopping {
        seconds: drain.as_secs(),
    });
    stop.cancel();
    let in_order = async {
        if !failed {
            all_ended.await;
        }
        wind_down(desk, gateway, &bots, drain).await;
    };
    let end = tokio::select! {
        () = in_order => match failed {
            true => End::Failed,
            false => End::Stopped,
        },
        () = told(&mut stops) => End::CutShort,
    };
    say(Said::Stopped);
    Ok(end)
}

async fn told(stops: &mut mpsc::Receiver<()>) {
    if stops.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Checks every bot, and says everything that was found. `false` = one of them cannot serve.
async fn all_fit(bots: &[Bot], say: &Say) -> bool {
    let checks = bots.iter().map(async |bot| {
        let checked = timeout(CHECK_MAX, bot.adapter.check()).await;
        checked.unwrap_or_else(|_| {
            Err(Finding {
                severity: Severity::Fatal,
                what: format!("the check did not end within {} s", CHECK_MAX.as_secs()),
                hint: "Look at the network and at the platform's own status.".to_owned(),
            })
        })
    });
    let mut fit = true;
    for (bot, checked) in bots.iter().zip(join_all(checks).await) {
        let findings = checked.unwrap_or_else(|fatal| vec![fatal]);
        fit &= findings
            .iter()
            .all(|finding| finding.severity != Severity::Fatal);
        tell(bot, findings, say);
    }
    fit
}

/// Makes the commands known. What fails here is said; messages are answered all the same.
async fn register(bots: &[Bot], gateway: &Gateway, say: &Say) {
    let registering = bots.iter().map(async |bot| {
        let commands = commands_of(bot, gateway);
        timeout(CHECK_MAX, bot.adapter.register(&commands)).await
    });
    for (bot, done) in bots.iter().zip(join_all(registering).await) {
        let findings = match done {
            Ok(Ok(findings)) => findings,
            Ok(Err(finding)) => vec![Finding {
                severity: Severity::Warning,
                ..finding
            }],
            Err(_) => vec![Finding {
                severity: Severity::Warning,
                what: "the slash commands could not be registered in time".to_owned(),
                hint: "They are tried again at the next start.".to_owned(),
            }],
        };
        tell(bot, findings, say);
    }
}

/// The table's commands, and what plugins bring to any of the bot's profiles.
fn commands_of(bot: &Bot, gateway: &Gateway) -> Vec<&'static CommandSpec> {
    let plugins = &gateway.effects().plugins;
    let profiles = bot.profiles.iter();
    let brought = profiles.flat_map(|profile| plugins.commands(profile));
    let mut all: Vec<&CommandSpec> = commands::specs().collect();
    for spec in brought.map(|one| one.spec) {
        if all.iter().all(|known| known.name != spec.name) {
            all.push(spec);
        }
    }
    all
}

fn tell(bot: &Bot, findings: Vec<Finding>, say: &Say) {
    for finding in findings {
        say(Said::Found {
            bot: bot.name(),
            finding,
        });
    }
}

/// One platform per kind, over all its bots.
fn switchboards(bots: &[Bot]) -> Vec<Arc<dyn Platform>> {
    let board = |kind: ChatKind| {
        let of_kind = bots.iter().filter(|bot| bot.kind == kind);
        let mouths: BTreeMap<ProfileId, Arc<dyn Mouth>> = of_kind
            .flat_map(|bot| {
                let mouth = &bot.mouth;
                let profiles = bot.profiles.iter();
                profiles.map(|profile| (profile.clone(), Arc::clone(mouth)))
            })
            .collect();
        Switchboard::new(kind, mouths)
    };
    let boards = ChatKind::ALL.into_iter().filter_map(board);
    boards
        .map(|board| Arc::new(board) as Arc<dyn Platform>)
        .collect()
}

/// The operators by pairing, where the configuration names none; or nobody, if they are to be forgotten.
async fn paired(
    gateway: &Gateway,
    bots: &[Bot],
    forget: bool,
    say: &Say,
) -> anyhow::Result<Vec<PairedOperator>> {
    let effects = gateway.effects();
    let mut count = Vec::new();
    let all = effects.store.paired_operators().await?;
    for bot in bots {
        for profile in &bot.profiles {
            let settings = effects.profile(profile);
            let chat = settings.chat.get(&bot.kind);
            if chat.is_none_or(|chat| !chat.access.operators.is_empty()) {
                continue;
            }
            if forget {
                let store = &effects.store;
                store.unpair_operators(profile, bot.kind.name()).await?;
                continue;
            }
            let theirs = all
                .iter()
                .filter(|one| one.profile == *profile && one.platform == bot.kind.name());
            for one in theirs {
                say(Said::PairedOperator {
                    kind: bot.kind,
                    profile: profile.clone(),
                    name: one.name.clone(),
                    person: one.person.clone(),
                });
                count.push(one.clone());
            }
        }
    }
    Ok(count)
}

/// Listens with every bot; ends when none is left, or all have stopped and everything heard has reached the desk.
async fn listen_all(bots: &[Bot], desk: Arc<Desk>, stop: &CancellationToken, say: &Say) {
    let mut ears: FuturesUnordered<_> = bots
        .iter()
        .enumerate()
        .map(async |(number, bot)| {
            let (heard_in, heard) = mpsc::channel(HEARD_MAX);
            let hearing =
                AbortOnDropHandle::new(tokio::spawn(hear(number, heard, Arc::clone(&desk))));
            if let Err(finding) = listen::listen(bot, &heard_in, stop, say).await {
                warn!(bot = bot.name(), %finding, "it is heard no more");
                say(Said::Ended {
                    bot: bot.name(),
                    finding,
                });
            }
            drop(heard_in);
            if let Err(error) = hearing.await {
                warn!(bot = bot.name(), %error, "what was heard last was not looked at");
            }
        })
        .collect();
    while ears.next().await.is_some() {}
}

async fn hear(number: usize, mut heard: mpsc::Receiver<Heard>, desk: Arc<Desk>) {
    while let Some(heard) = heard.recv().await {
        desk.hear(number, heard);
    }
}

/// Everything heard goes to the gateway, running turns come to their end or are saved, and what they said goes out.
async fn wind_down(desk: Arc<Desk>, gateway: Arc<Gateway>, bots: &[Bot], drain: Duration) {
    let turns = async {
        desk.cleared().await;
        gateway.sessions().wind_down().await;
    };
    if timeout(drain, turns).await.is_err() {
        info!("running turns are cut and saved");
    }
    drop(desk);
    let ending = async {
        gateway.sessions().drain().await;
        match Arc::into_inner(gateway) {
            Some(gateway) => gateway.shutdown().await,
            None => warn!("something still holds the gateway; its plugins end with the process"),
        }
    };
    if timeout(END_MAX, ending).await.is_err() {
        warn!("the gateway did not end in time; what is open is saved at the next start");
    }
    let said = join_all(bots.iter().map(|bot| bot.mouth.drained()));
    if timeout(SAY_MAX, said).await.is_err() {
        warn!("not everything that was said went out in time");
    }
}
