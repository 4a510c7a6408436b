//! What a person sees, and waiting for it without sleeping.

use std::time::Duration;

use serde_json::Value;

use super::FakeSlack;
use super::model::Message;
use super::people::Asked;
use super::recorder::{Requested, Status};
use super::socket::Envelope;
use super::world::BOT_USER;
use crate::clock::between;

/// How long a wait may take before it fails the test, in real time.
const PATIENCE: Duration = Duration::from_secs(30);

impl FakeSlack {
    /// Returns what `look` finds as soon as it finds it.
    ///
    /// # Panics
    /// After 30 s, with `what` and everything in sight.
    pub async fn wait_for<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = look(self) {
                    return found;
                }
                // Deadlines pass without a change, hence the tick.
                let _ = tokio::time::timeout(Duration::from_millis(100), changes.changed()).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!(
                "waited {PATIENCE:?} for {what}; there is:\n{}",
                self.overview()
            ),
        }
    }

    /// Everything in a channel that `viewer` can see now, threads included, oldest first. `None` = nothing ephemeral.
    pub fn seen(&self, channel: &str, viewer: Option<&str>) -> Vec<Message> {
        let world = self.shared.world.lock();
        let visible = world.messages.values().filter(|message| {
            let mine = message
                .only_for
                .as_deref()
                .is_none_or(|who| viewer == Some(who));
            message.at.channel == channel && !message.deleted && mine
        });
        visible.cloned().collect()
    }

    /// The bot's own visible messages in a channel.
    pub fn from_bot(&self, channel: &str) -> Vec<Message> {
        self.seen(channel, None)
            .into_iter()
            .filter(|message| message.user == BOT_USER)
            .collect()
    }

    /// What only `viewer` sees.
    pub fn private(&self, channel: &str, viewer: &str) -> Vec<Message> {
        self.seen(channel, Some(viewer))
            .into_iter()
            .filter(|message| message.only_for.is_some())
            .collect()
    }

    /// Waits for a visible message of the bot whose text satisfies `is`.
    pub async fn wait_for_text(&self, channel: &str, is: impl Fn(&str) -> bool) -> Message {
        self.wait_for("a text of the bot", |fake| {
            fake.from_bot(channel)
                .into_iter()
                .find(|message| !message.streaming && is(&message.text))
        })
        .await
    }

    /// Waits for a message that only `viewer` sees.
    pub async fn wait_for_private(
        &self,
        channel: &str,
        viewer: &str,
        is: impl Fn(&str) -> bool,
    ) -> Message {
        self.wait_for("a private text", |fake| {
            fake.private(channel, viewer)
                .into_iter()
                .find(|message| is(&message.text))
        })
        .await
    }

    /// Waits for the ack of a command or click; how long it took. Above 3 s the person read "operation_timeout".
    pub async fn wait_for_ack(&self, asked: &Asked) -> Duration {
        self.wait_for("an ack", |fake| fake.acked_after(asked))
            .await
    }

    /// `None` = not acked yet.
    pub fn acked_after(&self, asked: &Asked) -> Option<Duration> {
        let hub = self.shared.hub.lock();
        let envelope = hub.envelope(&asked.envelope)?;
        envelope
            .acked
            .as_ref()
            .map(|(at, _)| between(envelope.sent_at, *at))
    }

    /// Every envelope so far, redeliveries included.
    pub fn envelopes(&self) -> Vec<Envelope> {
        self.shared.hub.lock().envelopes.clone()
    }

    /// Sockets that are open now.
    pub fn sockets(&self) -> usize {
        self.shared.hub.lock().sockets()
    }

    pub async fn wait_for_sockets(&self, count: usize) {
        self.wait_for("open sockets", |fake| {
            (fake.sockets() >= count).then_some(())
        })
        .await;
    }

    /// Every call so far.
    pub fn requests(&self) -> Vec<Requested> {
        self.shared.world.lock().requests.clone()
    }

    pub fn requests_to(&self, method: &str) -> Vec<Requested> {
        self.requests()
            .into_iter()
            .filter(|request| request.method == method)
            .collect()
    }

    /// What `assistant.threads.setStatus` said, in order.
    pub fn statuses(&self) -> Vec<Status> {
        self.shared.world.lock().statuses.clone()
    }

    fn overview(&self) -> String {
        let world = self.shared.world.lock();
        let messages = world.messages.values();
        let messages = messages.map(|message| {
            format!(
                "  {} in {}: {:?}",
                message.user, message.at.channel, message.text
            )
        });
        let requests = world.requests.iter().rev().take(10);
        let requests = requests.map(|request| {
            let error = request.answer.get("error").unwrap_or(&Value::Null);
            format!("  {} -> {} {error}", request.method, request.status)
        });
        let broken = self.shared.violations.list();
        let broken = broken
            .into_iter()
            .map(|sentence| format!("  broken: {sentence}"));
        messages
            .chain(requests)
            .chain(broken)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
