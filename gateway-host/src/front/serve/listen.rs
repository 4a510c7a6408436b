//! One bot's ears: listens, and listens again when the connection or our own code breaks.

use std::time::Duration;

use platforms::adapter::{Finding, Heard};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::said::{Said, Say};
use crate::front::Bot;

/// The first wait before listening again; it doubles up to the longest.
const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// After this long without a fault the waits begin anew.
const CALM: Duration = Duration::from_secs(5 * 60);

/// How long an adapter gets to end when it is told to.
const END_MAX: Duration = Duration::from_secs(10);

/// Between two looks whether a bot can hear yet.
const LOOK: Duration = Duration::from_millis(50);

/// Listens until `stop`; `Err` = the platform refused for good.
pub(super) async fn listen(
    bot: &Bot,
    heard: &mpsc::Sender<Heard>,
    stop: &CancellationToken,
    say: &Say,
) -> Result<(), Finding> {
    let mut wait = WAIT_FIRST;
    let ready = say_when_ready(bot.clone(), stop.clone(), say.clone());
    let _ready = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(ready));
    loop {
        let began = Instant::now();
        let (adapter, heard, told) = (bot.adapter.clone(), heard.clone(), stop.clone());
        let mut task = tokio::spawn(async move { adapter.listen(heard, told).await });
        let ended = tokio::select! {
            ended = &mut task => ended,
            () = stop.cancelled() => {
                if tokio::time::timeout(END_MAX, &mut task).await.is_err() {
                    warn!(bot = bot.name(), "it did not stop listening in time");
                    task.abort();
                }
                return Ok(());
            }
        };
        match ended {
            _ if stop.is_cancelled() => return Ok(()),
            Ok(Err(finding)) => return Err(finding),
            Ok(Ok(())) => warn!(bot = bot.name(), "it stopped listening by itself"),
            Err(panic) => error!(bot = bot.name(), %panic, "listening broke off"),
        }
        if began.elapsed() >= CALM {
            wait = WAIT_FIRST;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return Ok(()),
        }
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Says once that the bot can hear.
async fn say_when_ready(bot: Bot, stop: CancellationToken, say: Say) {
    while bot.adapter.health().connections == 0 {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => return,
        }
    }
    say(Said::Ready { bot: bot.name() });
}
