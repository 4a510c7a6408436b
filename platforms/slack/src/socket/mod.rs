//! Socket Mode: two sockets, each kept by a keeper that opens the next one when its own leaves or breaks.
//!
//! **Acknowledging** is the first thing that happens to an envelope, before it is read any further than its id; then it is
//! queued. Slack repeats an event that is not acknowledged within 3 s (at once, after 1 and after 5 minutes), but sends
//! commands and presses once. If the queue is full, nothing is acknowledged.
//!
//! **Leaving** (`disconnect` with `warning` or `refresh_requested`, about every five hours): the next socket is opened while
//! the old one is still read and acknowledged for [`Timing::linger`], so nothing is lost. `link_disabled` means that somebody
//! switched Socket Mode off: the end. `too_many_websockets` means that ten sockets are open, most of them not ours: a long
//! pause, for each try would break another one.
//!
//! **Breaking** (reset, closed without notice, silent): events are repeated by Slack and told apart above; what was sent as a
//! command or press to that socket is lost. Each break counts as a gap. Whether a socket still hears is not what TCP says:
//! we send pings, and a socket that brings nothing, not even a pong, for [`Timing::silent_after`] is dropped.
//!
//! Ways through a proxy are not known to this client; the Web API goes through the system's.

mod link;
mod pulse;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use platforms::adapter::{Finding, Severity};
use platforms::wire::WireError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::api::Api;
use crate::api::refusal::{Refusal, refusal};
use link::Ending;
pub(crate) use pulse::Pulse;

/// Sockets that are kept open. Slack gives each event to one of them; ten are allowed.
const SOCKETS: usize = 2;

/// How long the end of everything may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// The times a connection goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How often a socket is pinged.
    pub ping_every: Duration,
    /// After how long without any sign a socket counts as dead.
    pub silent_after: Duration,
    /// How long a socket that was asked to leave is still read.
    pub linger: Duration,
    /// How long opening a socket may take, Slack's `hello` included.
    pub open_within: Duration,
    /// The pause before the first new try, at most; it doubles with each failure.
    pub retry_first: Duration,
    /// The longest pause between tries.
    pub retry_longest: Duration,
    /// The pause after `too_many_websockets`.
    pub crowded_pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_secs(10),
            silent_after: Duration::from_secs(30),
            linger: Duration::from_secs(30),
            open_within: Duration::from_secs(15),
            retry_first: Duration::from_millis(500),
            retry_longest: Duration::from_secs(30),
            crowded_pause: Duration::from_secs(300),
        }
    }
}

/// One envelope, acknowledged.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) kind: String,
    /// JSON.
    pub(crate) payload: String,
}

/// Keeps the sockets until `stop`. `Err` = Slack refused for good.
pub(crate) async fn run(
    api: &Arc<Api>,
    timing: Timing,
    pulse: &Arc<Pulse>,
    envelopes: mpsc::Sender<Envelope>,
    stop: &CancellationToken,
) -> Result<(), Finding> {
    // Ends the sockets also when this future is dropped.
    let stop = stop.child_token();
    let _ends = stop.clone().drop_guard();
    let mut keepers = JoinSet::new();
    for _ in 0..SOCKETS {
        let keeper = Keeper {
            api: Arc::clone(api),
            timing,
            pulse: Arc::clone(pulse),
            envelopes: envelopes.clone(),
            stop: stop.clone(),
            links: JoinSet::new(),
        };
        keepers.spawn(keeper.keep());
    }
    drop(envelopes);
    let mut refused = Ok(());
    while let Some(ended) = keepers.join_next().await {
        let ended = ended.unwrap_or_else(|fault| Err(fatal(format!("Slack: {fault}."), "")));
        if ended.is_err() && refused.is_ok() {
            refused = ended;
            stop.cancel();
        }
    }
    refused
}

struct Keeper {
    api: Arc<Api>,
    timing: Timing,
    pulse: Arc<Pulse>,
    envelopes: mpsc::Sender<Envelope>,
    stop: CancellationToken,
    /// The current socket, and those that linger.
    links: JoinSet<()>,
}

impl Keeper {
    async fn keep(mut self) -> Result<(), Finding> {
        let stop = self.stop.clone();
        let kept = tokio::select! {
            kept = self.keep_one() => kept,
            () = stop.cancelled() => Ok(()),
        };
        // Each says goodbye by itself, and is dropped if that takes too long.
        let all = async { while self.links.join_next().await.is_some() {} };
        let _ = timeout(GOODBYE, all).await;
        kept
    }

    async fn keep_one(&mut self) -> Result<(), Finding> {
        let mut failures = 0;
        loop {
            while self.links.try_join_next().is_some() {}
            let began = Instant::now();
            let ending = self.one_socket().await?;
            if began.elapsed() > self.timing.retry_longest {
                failures = 0;
            }
            let pause = match ending {
                // The first time at once; when it is asked again right away, something is wrong over there.
                Ending::Asked if failures == 0 => {
                    failures = 1;
                    Duration::ZERO
                }
                Ending::Asked => self.backed_off(&mut failures, Duration::ZERO),
                Ending::Crowded => {
                    let pause = jittered(self.timing.crowded_pause);
                    error!(
                        "Slack has ten sockets of this app open and takes no more; the next try is in {} s. \
                         Stop other instances that use the same app token.",
                        pause.as_secs()
                    );
                    pause
                }
                Ending::SwitchedOff => return Err(switched_off()),
                Ending::Broke(why) => {
                    warn!(%why, "a socket to Slack broke");
                    self.backed_off(&mut failures, Duration::ZERO)
                }
                Ending::NotOpened { why, after } => {
                    warn!(%why, "no socket to Slack could be opened");
                    self.backed_off(&mut failures, after)
                }
            };
            sleep(pause).await;
        }
    }

    /// Opens a socket and returns when the next one is to be opened; the old one may linger.
    async fn one_socket(&mut self) -> Result<Ending, Finding> {
        let opening = self.pulse.opening();
        let method = "apps.connections.open";
        let address = match self.api.socket_address().await {
            Ok(address) => address,
            Err(error) => {
                return match refusal(method, "app token", error) {
                    Refusal::ForGood(finding) => Err(finding),
                    Refusal::ForNow(error) => Ok(Ending::not_opened(error)),
                };
            }
        };
        let (ended, ending) = oneshot::channel();
        self.links.spawn(link::run(
            address,
            self.timing,
            Arc::clone(&self.pulse),
            opening,
            self.envelopes.clone(),
            self.stop.clone(),
            ended,
        ));
        let ended = ending.await;
        Ok(ended.unwrap_or_else(|_| Ending::Broke("its task ended".to_owned())))
    }

    /// The pause before the next try: a random part of a span that doubles with each failure, and `at_least`.
    fn backed_off(&self, failures: &mut u32, at_least: Duration) -> Duration {
        let span = self.timing.retry_first * 2_u32.saturating_pow((*failures).min(16));
        *failures += 1;
        at_least + jittered_below(span.min(self.timing.retry_longest))
    }
}

impl Ending {
    fn not_opened(error: WireError) -> Self {
        let after = match error {
            WireError::RateLimited { after, .. } => after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        Self::NotOpened {
            why: error.to_string(),
            after,
        }
    }
}

fn switched_off() -> Finding {
    fatal(
        "Slack says that Socket Mode was switched off for this app.".to_owned(),
        "Switch it on (app settings > Socket Mode) and start again.",
    )
}

fn fatal(what: String, hint: &str) -> Finding {
    info!(%what, "listening to Slack ends");
    Finding {
        severity: Severity::Fatal,
        what,
        hint: hint.to_owned(),
    }
}

/// Between nine tenths and eleven tenths of `span`.
fn jittered(span: Duration) -> Duration {
    span * 9 / 10 + jittered_below(span / 5)
}

/// A random part of `span`, so that instances that broke together do not come back together.
fn jittered_below(span: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random % millis.saturating_add(1))
}
