//! An adapter that listens to a fake.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, Button, ReplyOp, ReplyTarget};
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN};
use platform_slack::{STYLE, Slack, SlackSettings, Timing};
use platforms::Platform;
use platforms::adapter::{Adapter, Finding, Heard};
use platforms::chat::Chat;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Short enough for tests, long enough for a busy machine.
pub(crate) const TIMING: Timing = Timing {
    ping_every: Duration::from_millis(200),
    silent_after: Duration::from_secs(2),
    linger: Duration::from_secs(3),
    open_within: Duration::from_secs(10),
    retry_first: Duration::from_millis(50),
    retry_longest: Duration::from_millis(400),
    crowded_pause: Duration::from_secs(2),
};

pub(crate) fn settings(fake: &FakeSlack) -> SlackSettings {
    SlackSettings {
        api_url: Some(fake.api()),
        ..SlackSettings::new(APP_TOKEN, BOT_TOKEN)
    }
}

pub(crate) struct Bot {
    pub(crate) slack: Arc<Slack>,
    pub(crate) chat: Chat<Slack>,
    pub(crate) heard: mpsc::Receiver<Heard>,
    stop: CancellationToken,
    listening: JoinHandle<Result<(), Finding>>,
}

impl Bot {
    /// A checked adapter with both sockets open. `waiting` = how much of what is heard waits for the test.
    pub(crate) async fn start(fake: &FakeSlack) -> Self {
        Self::start_with(fake, settings(fake), 1_000).await
    }

    pub(crate) async fn start_with(
        fake: &FakeSlack,
        settings: SlackSettings,
        waiting: usize,
    ) -> Self {
        let slack = Arc::new(Slack::with_timing(settings, TIMING).unwrap());
        slack.check().await.unwrap();
        let (sender, heard) = mpsc::channel(waiting);
        let stop = CancellationToken::new();
        let listening = tokio::spawn({
            let (slack, stop) = (Arc::clone(&slack), stop.clone());
            async move { slack.listen(sender, stop).await }
        });
        fake.wait_for("two sockets that said hello", |_| {
            (slack.health().connections == 2).then_some(())
        })
        .await;
        Self {
            chat: Chat::start(Arc::clone(&slack), STYLE, "test"),
            slack,
            heard,
            stop,
            listening,
        }
    }

    /// The next thing heard.
    pub(crate) async fn hear(&mut self) -> Heard {
        let next = tokio::time::timeout(Duration::from_secs(20), self.heard.recv());
        next.await.expect("something is heard").expect("it listens")
    }

    /// Whether anything is waiting.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }

    pub(crate) async fn deliver(&self, heard: &Heard, turn: Option<&str>, op: ReplyOp) {
        let to = ReplyTarget {
            platform: "slack".to_owned(),
            address: heard.address.clone(),
        };
        let turn = turn.map(TurnId::new);
        self.chat.deliver(&to, turn.as_ref(), &op).await.unwrap();
    }

    /// Ends listening; what `listen` said.
    pub(crate) async fn stop(self) -> Result<(), Finding> {
        self.chat.drained().await;
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(5), self.listening);
        ended.await.expect("it ends within seconds").unwrap()
    }

    /// Asks it to stop listening.
    pub(crate) fn cancel(&self) {
        self.stop.cancel();
    }

    /// What `listen` says when it ends by itself.
    pub(crate) async fn ended(self) -> Result<(), Finding> {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.listening);
        ended.await.expect("it ends by itself").unwrap()
    }
}

pub(crate) fn answer(text: &str, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: String::new(),
        replaced: false,
        done,
    }
}

pub(crate) fn private(text: &str) -> ReplyOp {
    reply(text, Audience::Asker, Vec::new())
}

pub(crate) fn reply(text: &str, audience: Audience, buttons: Vec<Button>) -> ReplyOp {
    ReplyOp::Reply {
        text: text.to_owned(),
        audience,
        buttons,
    }
}
