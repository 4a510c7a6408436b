//! One Slack app in one workspace: what its parts share, and the [`Adapter`].

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::command::CommandSpec;
use parking_lot::Mutex;
use platforms::adapter::{Adapter, File, Finding, Health, Heard, Severity};
use platforms::dedupe::Dedupe;
use platforms::wire::WireError;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::api::{Api, Who};
use crate::inbound::{Fresh, Taken, take};
use crate::outbound::Unknown;
use crate::responses::Responses;
use crate::settings::SlackSettings;
use crate::socket::{self, Envelope, Pulse, Timing};
use crate::{check, files, manifest};

/// A connection to Slack.
pub struct Slack {
    settings: SlackSettings,
    timing: Timing,
    api: Arc<Api>,
    who: OnceLock<Who>,
    pulse: Arc<Pulse>,
    responses: Mutex<Responses>,
    unknown: Unknown,
    /// The youngest message known, by its `ts`.
    newest: Mutex<Option<String>>,
    /// Channels whose threads show no status.
    statusless: Mutex<HashSet<String>>,
}

/// Channels of [`Slack::statusless`] that are remembered.
const STATUSLESS_MAX: usize = 10_000;

/// Envelopes that were acknowledged and not yet handed on. When it is full, nothing more is acknowledged: Slack repeats
/// events, and people see that a command timed out.
const BACKLOG: usize = 10_000;

/// How long the end of listening waits for somebody to take what was acknowledged.
const HAND_ON_WITHIN: Duration = Duration::from_secs(2);

impl Slack {
    /// Dials nothing yet.
    ///
    /// # Errors
    /// When `api_url` is no URL, or the system's TLS roots cannot be read.
    pub fn new(settings: SlackSettings) -> Result<Self, Finding> {
        Self::with_timing(settings, Timing::default())
    }

    /// The same with other times than the usual ones: tests, and networks that are unusual.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_timing(settings: SlackSettings, timing: Timing) -> Result<Self, Finding> {
        let api = Api::new(&settings).map_err(|why| Finding {
            severity: Severity::Fatal,
            what: format!("Slack cannot be reached: {why}."),
            hint: "Check api_url.".to_owned(),
        })?;
        Ok(Self {
            settings,
            timing,
            api: Arc::new(api),
            who: OnceLock::new(),
            pulse: Arc::default(),
            responses: Mutex::default(),
            unknown: Unknown::default(),
            newest: Mutex::default(),
            statusless: Mutex::default(),
        })
    }

    /// Connections of this app that are not ours, as Slack counted when one of ours was opened last. Each takes its share
    /// of the events. Those of a process that died are counted for a while too.
    pub fn foreign_connections(&self) -> u32 {
        self.pulse.foreign()
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn responses(&self) -> &Mutex<Responses> {
        &self.responses
    }

    pub(crate) fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    pub(crate) fn newest(&self) -> Option<String> {
        self.newest.lock().clone()
    }

    /// Notes that a message with this `ts` exists. All have ten digits before the dot until the year 2286, so they compare as text.
    pub(crate) fn saw(&self, ts: &str) {
        let mut newest = self.newest.lock();
        if newest.as_deref().is_none_or(|known| known < ts) {
            *newest = Some(ts.to_owned());
        }
    }

    pub(crate) fn shows_no_status(&self, channel: &str) -> bool {
        self.statusless.lock().contains(channel)
    }

    pub(crate) fn show_no_status(&self, channel: &str) {
        let mut known = self.statusless.lock();
        if known.len() < STATUSLESS_MAX {
            known.insert(channel.to_owned());
        }
    }

    /// Reads envelopes and hands on what was not heard before, until nobody listens any more.
    async fn hand_on(
        &self,
        who: &Who,
        mut envelopes: mpsc::Receiver<Envelope>,
        heard: mpsc::Sender<Heard>,
    ) {
        let mut seen = Dedupe::default();
        while let Some(envelope) = envelopes.recv().await {
            match take(
                &envelope.kind,
                &envelope.payload,
                who,
                &self.settings.prefix,
            ) {
                Taken::Heard(fresh) => {
                    if let Some(one) = self.first_sight(*fresh, &mut seen)
                        && heard.send(one).await.is_err()
                    {
                        return;
                    }
                }
                Taken::Ignored => {}
                Taken::Unreadable(why) => {
                    self.pulse.unreadable();
                    warn!(%why, "something from Slack could not be read");
                }
            }
        }
    }

    fn first_sight(&self, fresh: Fresh, seen: &mut Dedupe) -> Option<Heard> {
        let now = Instant::now();
        let ids: Vec<&str> = fresh.ids.iter().map(String::as_str).collect();
        if !seen.first_sight(&ids, now) {
            debug!(id = fresh.heard.id.as_str(), "heard before");
            return None;
        }
        if let Some((key, response)) = fresh.response {
            self.responses.lock().keep(&key, response, now);
        }
        if let Some((_, ts)) = fresh.heard.id.as_str().split_once('/') {
            self.saw(ts);
        }
        Some(fresh.heard)
    }
}

#[async_trait]
impl Adapter for Slack {
    async fn check(&self) -> Result<Vec<Finding>, Finding> {
        let (who, findings) = check::check(&self.settings, &self.api).await?;
        // Checked again later: who the bot is does not change with its token.
        let _ = self.who.set(who);
        Ok(findings)
    }

    async fn register(&self, commands: &[&CommandSpec]) -> Result<Vec<Finding>, Finding> {
        manifest::registered(commands, &self.settings.prefix)
    }

    async fn listen(
        &self,
        heard: mpsc::Sender<Heard>,
        stop: CancellationToken,
    ) -> Result<(), Finding> {
        let who = self.who.get().ok_or_else(|| Finding {
            severity: Severity::Fatal,
            what: "Slack was not checked before listening.".to_owned(),
            hint: String::new(),
        })?;
        let (sender, envelopes) = mpsc::channel(BACKLOG);
        let stop = stop.child_token();
        let sockets = socket::run(&self.api, self.timing, &self.pulse, sender, &stop);
        let hand_on = self.hand_on(who, envelopes, heard);
        tokio::pin!(sockets, hand_on);
        tokio::select! {
            ended = &mut sockets => {
                // What was acknowledged is still handed on: Slack will not send it again.
                let _ = timeout(HAND_ON_WITHIN, hand_on).await;
                ended
            }
            // Nobody listens any more, or the sockets are ending.
            () = &mut hand_on => {
                stop.cancel();
                sockets.await
            }
        }
    }

    async fn fetch(&self, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError> {
        files::fetch(&self.api, file, max_bytes).await
    }

    fn health(&self) -> Health {
        self.pulse.health(Instant::now())
    }
}
