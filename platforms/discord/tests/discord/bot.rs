//! A bot of ours in front of the fake.

use std::sync::{Arc, Once};
use std::time::Duration;

use gateway_core::command::CommandSpec;
use gateway_core::message::{Audience, ReplyOp, ReplyTarget};
use gateway_fakes::FakeDiscord;
use platform_discord::{Discord, DiscordSettings, STYLE};
use platforms::Platform;
use platforms::adapter::{Adapter, Content, Finding, Heard};
use platforms::chat::Chat;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long anything may take before it fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// Every client that may open TLS needs this once, before it is built.
pub(crate) fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .expect("nobody else installs one");
    });
}

pub(crate) fn settings(fake: &FakeDiscord) -> DiscordSettings {
    DiscordSettings {
        api_base: Some(fake.base()),
        guilds: vec![fake.guild().to_string()],
        ..DiscordSettings::new(fake.token().into())
    }
}

pub(crate) fn specs() -> Vec<&'static CommandSpec> {
    commands::specs().collect()
}

/// A bot that listens; dropping it aborts it.
pub(crate) struct Bot {
    pub(crate) discord: Arc<Discord>,
    pub(crate) chat: Chat<Discord>,
    pub(crate) heard: mpsc::Receiver<Heard>,
    pub(crate) stop: CancellationToken,
    pub(crate) listening: JoinHandle<Result<(), Finding>>,
}

impl Bot {
    /// Checks, registers, listens, and is ready.
    pub(crate) async fn start(fake: &FakeDiscord) -> Self {
        let bot = Self::with(settings(fake)).await;
        fake.wait_until_ready(1).await;
        bot
    }

    /// Checks, registers, listens.
    pub(crate) async fn with(settings: DiscordSettings) -> Self {
        install_tls();
        let discord = Arc::new(Discord::new(settings).expect("usable settings"));
        discord.check().await.expect("it can serve");
        let specs = specs();
        discord.register(&specs).await.expect("the table fits");
        let (tell, heard) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let listening = tokio::spawn({
            let (discord, stop) = (Arc::clone(&discord), stop.clone());
            async move { discord.listen(tell, stop).await }
        });
        let chat = Chat::start(Arc::clone(&discord), STYLE, "test");
        Self {
            discord,
            chat,
            heard,
            stop,
            listening,
        }
    }

    /// The next thing it hears.
    pub(crate) async fn hear(&mut self) -> Heard {
        let heard = timeout(PATIENCE, self.heard.recv()).await;
        heard.expect("something is heard").expect("it listens")
    }

    /// The next text from a person.
    pub(crate) async fn hear_text(&mut self) -> String {
        loop {
            let heard = self.hear().await;
            if heard.speaker.kind != platforms::adapter::SpeakerKind::Person {
                continue;
            }
            if let Content::Text { text, .. } = heard.content {
                return text;
            }
        }
    }

    /// Answers as the host would.
    pub(crate) async fn deliver(&self, to: &Heard, op: ReplyOp) {
        let target = target(to);
        self.chat
            .deliver(&target, None, &op)
            .await
            .expect("delivered");
    }

    pub(crate) async fn reply(&self, to: &Heard, text: &str, audience: Audience) {
        self.deliver(to, reply(text, audience)).await;
    }

    /// Stops, which takes less than 3 s whatever the gateway does.
    pub(crate) async fn stop(self) -> Result<(), Finding> {
        self.stop.cancel();
        let ended = timeout(Duration::from_secs(3), self.listening).await;
        ended.expect("within 3 s").expect("no panic")
    }
}

pub(crate) fn target(to: &Heard) -> ReplyTarget {
    ReplyTarget {
        platform: platform_discord::NAME.to_owned(),
        address: to.address.clone(),
    }
}

pub(crate) fn reply(text: &str, audience: Audience) -> ReplyOp {
    ReplyOp::Reply {
        text: text.to_owned(),
        audience,
        buttons: Vec::new(),
    }
}

pub(crate) fn text_of(heard: &Heard) -> &str {
    match &heard.content {
        Content::Text { text, .. } => text,
        other => panic!("no text: {other:?}"),
    }
}
