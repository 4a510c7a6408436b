//! What a person sees, and waiting for it without sleeping.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::FakeDiscord;
use super::gateway::{GatewayEvent, GatewayNote};
use super::ids::{ChannelId, GuildId, MessageId, UserId};
use super::interaction::{FirstAnswer, Interaction};
use super::model::Message;
use super::people::Asked;
use super::recorder::Requested;

/// How long a wait may take before it fails the test, in real time.
const PATIENCE: Duration = Duration::from_secs(30);

impl FakeDiscord {
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

    /// Everything in a channel that `viewer` can see now, oldest first. `None` = everything that is not ephemeral.
    pub fn seen(&self, channel: ChannelId, viewer: Option<UserId>) -> Vec<Message> {
        let world = self.shared.world.lock();
        let visible = world.messages.values().filter(|message| {
            message.channel == channel
                && !message.deleted
                && message.only_for.is_none_or(|who| viewer == Some(who))
        });
        visible.cloned().collect()
    }

    /// Every message ever in a channel, ephemeral and deleted ones too.
    pub fn history(&self, channel: ChannelId) -> Vec<Message> {
        let world = self.shared.world.lock();
        world
            .messages
            .values()
            .filter(|message| message.channel == channel)
            .cloned()
            .collect()
    }

    /// The bot's own visible messages in a channel.
    pub fn from_bot(&self, channel: ChannelId) -> Vec<Message> {
        let bot = self.bot();
        self.seen(channel, None)
            .into_iter()
            .filter(|message| message.author == bot)
            .collect()
    }

    pub fn message(&self, id: MessageId) -> Option<Message> {
        self.shared.world.lock().messages.get(&id).cloned()
    }

    /// Waits for a visible message of the bot whose text satisfies `is`.
    pub async fn wait_for_text(&self, channel: ChannelId, is: impl Fn(&str) -> bool) -> Message {
        self.wait_for("a text of the bot", |fake| {
            fake.from_bot(channel)
                .into_iter()
                .find(|message| !message.loading && is(&message.text))
        })
        .await
    }

    /// Threads below a channel, oldest first.
    pub fn threads(&self, parent: ChannelId) -> Vec<ChannelId> {
        let world = self.shared.world.lock();
        let below = world.channels.values().filter(
            |channel| matches!(channel.kind, super::model::ChannelKind::Thread { parent: above, .. } if above == parent),
        );
        below.map(|channel| channel.id).collect()
    }

    /// A command or click as the platform tracks it.
    pub fn interaction(&self, asked: &Asked) -> Interaction {
        self.shared.world.lock().interactions[&asked.token].clone()
    }

    /// Waits for the first answer (the ack).
    pub async fn wait_for_ack(&self, asked: &Asked) -> FirstAnswer {
        self.wait_for("the first answer to an interaction", |fake| {
            fake.interaction(asked).first
        })
        .await
    }

    /// Waits until the answer of a command has text: not "… is thinking" any more.
    pub async fn wait_for_answer(&self, asked: &Asked) -> Message {
        self.wait_for("the answer to an interaction", |fake| {
            let original = fake.interaction(asked).original?;
            fake.message(original)
                .filter(|message| !message.loading && !message.deleted)
        })
        .await
    }

    /// Follow-ups of an interaction, as they stand.
    pub fn followups(&self, asked: &Asked) -> Vec<Message> {
        self.interaction(asked)
            .followups
            .into_iter()
            .filter_map(|id| self.message(id))
            .collect()
    }

    /// Registered commands. `None` = the global ones.
    pub fn commands(&self, scope: Option<GuildId>) -> Vec<Value> {
        self.shared
            .world
            .lock()
            .commands
            .get(&scope)
            .cloned()
            .unwrap_or_default()
    }

    /// Channels where the bot showed that it types, and when.
    pub fn typing(&self) -> Vec<(ChannelId, Timestamp)> {
        self.shared.world.lock().typing.clone()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Requested> {
        self.shared.world.lock().requests.clone()
    }

    /// Requests of one route; `template` as in Discord's file.
    pub fn requests_to(&self, method: &str, template: &str) -> Vec<Requested> {
        let wanted = |request: &Requested| {
            request.method == method && request.template.as_deref() == Some(template)
        };
        self.requests().into_iter().filter(wanted).collect()
    }

    /// 401, 403 and 429 so far: 10,000 in 10 min ban the address.
    pub fn invalid_requests(&self) -> usize {
        self.requests()
            .iter()
            .filter(|request| matches!(request.status, 401 | 403 | 429))
            .count()
    }

    pub fn gateway_log(&self) -> Vec<GatewayNote> {
        self.shared.hub.lock().log.clone()
    }

    /// How often the gateway saw something.
    pub fn gateway_count(&self, is: impl Fn(&GatewayEvent) -> bool) -> usize {
        self.shared
            .hub
            .lock()
            .log
            .iter()
            .filter(|note| is(&note.what))
            .count()
    }

    /// Waits until `count` sessions hear events.
    pub async fn wait_until_ready(&self, count: usize) {
        self.wait_for("READY", |fake| {
            (fake.shared.hub.lock().ready() >= count).then_some(())
        })
        .await;
    }

    fn overview(&self) -> String {
        let world = self.shared.world.lock();
        let messages = world.messages.values().map(|message| {
            format!(
                "  message in {} by {}: {:?}",
                message.channel, world.users[&message.author].name, message.text
            )
        });
        let requests = world.requests.iter().rev().take(10);
        let requests = requests.map(|request| {
            format!(
                "  {} {} -> {}",
                request.method, request.path, request.status
            )
        });
        let mut lines: Vec<String> = messages.chain(requests).collect();
        lines.extend(
            self.shared
                .hub
                .lock()
                .log
                .iter()
                .map(|note| format!("  gateway: {:?}", note.what)),
        );
        let broken = self.shared.violations.list();
        lines.extend(
            broken
                .into_iter()
                .map(|sentence| format!("  broken: {sentence}")),
        );
        lines.join("\n")
    }
}
