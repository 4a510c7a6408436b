//! Many conversations on one bot, each in a channel of its own, on a fake whose limits run [`SPEED`] times faster than the
//! platform's; the adapter's pace is set to the same speed, and nothing else is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::access::AccessRules;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN};
use gateway_fakes::{FakeDiscord, FakeSlack, MovedClock};
use gateway_fakes::{discord, slack};
use gateway_host::config::{Account, ChatKind};
use gateway_host::front::Bot;
use parking_lot::Mutex;
use platform_discord::{Discord, DiscordSettings};
use platform_slack::{Slack, SlackSettings};
use platforms::adapter::Adapter;
use platforms::chat::{Chat, Style};
use platforms::escape::Shape;
use platforms::outbox::Rate;

use super::stage::{profile, set};
use super::talker::Talker;
use super::{Shown, Stage};

/// How much faster the limits run.
pub const SPEED: u32 = 20;

/// The adapter's limits at that speed.
fn faster(mut style: Style) -> Style {
    let shrink = |rate: &mut Option<Rate>| {
        if let Some(rate) = rate {
            rate.per /= SPEED;
        }
    };
    shrink(&mut style.pace.channel_writes);
    shrink(&mut style.pace.channel_posts);
    shrink(&mut style.pace.all_writes);
    shrink(&mut style.pace.all_edits);
    style
}

/// Requests of the bot as the fake counted them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Traffic {
    pub posts: usize,
    pub edits: usize,
    /// Of both, the ones that met a limit.
    pub limited: usize,
}

/// A platform with many channels.
#[async_trait]
pub trait Crowd: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    /// How many final texts the platform's limits let out in a second, at [`SPEED`].
    const FINALS_PER_SECOND: f64;

    fn shape() -> Shape;

    /// A platform with so many channels, and a gateway over this model that hears all of them.
    async fn open(channels: usize, talker: &Talker) -> Self;

    fn stage(&mut self) -> &mut Stage;

    fn clock(&self) -> MovedClock;

    /// The person asks in a channel.
    fn ask(&self, channel: usize, text: &str);

    /// The person gives `/status` in a channel.
    fn command(&self, channel: usize);

    /// How long each acknowledgement of a command took; `None` = there was none.
    fn acks(&self) -> Vec<Option<Duration>>;

    /// What the bot has said in a channel.
    fn shown(&self, channel: usize) -> Vec<Shown>;

    fn traffic(&self) -> Traffic;

    fn assert_clean(&self);
}

fn bot<A: Adapter>(kind: ChatKind, adapter: A, style: Style) -> Bot {
    let adapter = Arc::new(adapter);
    let mouth = Chat::start(Arc::clone(&adapter), faster(style), "load");
    Bot {
        kind,
        adapter,
        mouth: Arc::new(mouth),
        profiles: vec![profile()],
        held: None,
    }
}

fn stage(talker: &Talker) -> Stage {
    let mut stage = Stage::new(&["a"]);
    stage.serve_by("a", Arc::new(talker.clone()));
    stage
}

/// See [`Crowd`].
pub struct DiscordCrowd {
    fake: FakeDiscord,
    stage: Stage,
    anna: discord::UserId,
    channels: Vec<discord::ChannelId>,
    asked: Mutex<Vec<discord::Asked>>,
}

#[async_trait]
impl Crowd for DiscordCrowd {
    const NAME: &'static str = "Discord";
    /// 50 requests a second for the whole bot.
    const FINALS_PER_SECOND: f64 = 50.0 * SPEED as f64;

    fn shape() -> Shape {
        platform_discord::STYLE.shape
    }

    async fn open(channels: usize, talker: &Talker) -> Self {
        let builder = FakeDiscord::builder().limit_speed(f64::from(SPEED));
        let fake = builder.start().await;
        let anna = fake.person("anna");
        let channels = (0..channels).map(|n| fake.channel(&format!("c{n}")));
        let channels = channels.collect();
        let mut stage = stage(talker);
        let account = Account::Discord {
            token: stage.secret("discord-token", &fake.token()),
            api_base: Some(fake.base()),
            gateway_url: None,
            guild_commands: false,
        };
        let access = AccessRules {
            users: set([anna.to_string()]),
            operators: set([anna.to_string()]),
            ..AccessRules::default()
        };
        stage.section(ChatKind::Discord, account, access);
        let settings = DiscordSettings {
            api_base: Some(fake.base()),
            message_content: false,
            ..DiscordSettings::new(fake.token().into())
        };
        let adapter = Discord::new(settings).expect("usable settings");
        let bots = vec![bot(ChatKind::Discord, adapter, platform_discord::STYLE)];
        stage.run_bots(bots).await;
        Self {
            fake,
            stage,
            anna,
            channels,
            asked: Mutex::default(),
        }
    }

    fn stage(&mut self) -> &mut Stage {
        &mut self.stage
    }

    fn clock(&self) -> MovedClock {
        self.fake.clock()
    }

    fn ask(&self, channel: usize, text: &str) {
        let text = format!("<@{}> {text}", self.fake.bot());
        self.fake
            .say(self.channels[channel], self.anna, text.as_str());
    }

    fn command(&self, channel: usize) {
        let asked = self
            .fake
            .slash(self.channels[channel], self.anna, "status", &[]);
        self.asked.lock().push(asked.expect("it is registered"));
    }

    fn acks(&self) -> Vec<Option<Duration>> {
        let asked = self.asked.lock();
        let all = asked.iter().map(|asked| self.fake.interaction(asked));
        all.map(|one| one.first.map(|first| first.after)).collect()
    }

    fn shown(&self, channel: usize) -> Vec<Shown> {
        let all = self.fake.from_bot(self.channels[channel]);
        all.iter().map(super::discord::shown).collect()
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for request in self.fake.requests() {
            let template = request.template.as_deref().unwrap_or_default();
            match (request.method.as_str(), template) {
                ("POST", "/channels/{channel_id}/messages") => traffic.posts += 1,
                ("PATCH", "/channels/{channel_id}/messages/{message_id}") => traffic.edits += 1,
                _ => continue,
            }
            traffic.limited += usize::from(request.status == 429);
        }
        traffic
    }

    fn assert_clean(&self) {
        self.fake.assert_clean();
    }
}

/// See [`Crowd`].
pub struct SlackCrowd {
    fake: FakeSlack,
    stage: Stage,
    anna: String,
    channels: Vec<String>,
    asked: Mutex<Vec<slack::Asked>>,
}

#[async_trait]
impl Crowd for SlackCrowd {
    const NAME: &'static str = "Slack";
    /// `chat.update`: 50 a minute for the workspace.
    const FINALS_PER_SECOND: f64 = 50.0 / 60.0 * SPEED as f64;

    fn shape() -> Shape {
        platform_slack::STYLE.shape
    }

    async fn open(channels: usize, talker: &Talker) -> Self {
        let builder = FakeSlack::builder().limit_speed(f64::from(SPEED));
        let fake = builder.start().await;
        let anna = fake.person("anna");
        let channels = (0..channels).map(|n| fake.channel(&format!("c{n}"), true));
        let channels = channels.collect();
        let mut stage = stage(talker);
        let account = Account::Slack {
            app_token: stage.secret("slack-app-token", APP_TOKEN),
            bot_token: stage.secret("slack-bot-token", BOT_TOKEN),
            api_url: Some(fake.api()),
        };
        let access = AccessRules {
            users: set([anna.clone()]),
            operators: set([anna.clone()]),
            ..AccessRules::default()
        };
        stage.section(ChatKind::Slack, account, access);
        let settings = SlackSettings {
            api_url: Some(fake.api()),
            ..SlackSettings::new(APP_TOKEN, BOT_TOKEN)
        };
        let adapter = Slack::new(settings).expect("usable settings");
        let bots = vec![bot(ChatKind::Slack, adapter, platform_slack::STYLE)];
        stage.run_bots(bots).await;
        Self {
            fake,
            stage,
            anna,
            channels,
            asked: Mutex::default(),
        }
    }

    fn stage(&mut self) -> &mut Stage {
        &mut self.stage
    }

    fn clock(&self) -> MovedClock {
        self.fake.clock()
    }

    fn ask(&self, channel: usize, text: &str) {
        let text = format!("{} {text}", self.fake.mention());
        self.fake
            .say(&self.channels[channel], &self.anna, text.as_str());
    }

    fn command(&self, channel: usize) {
        let asked = self
            .fake
            .slash(&self.channels[channel], &self.anna, "/status", "");
        self.asked.lock().push(asked.expect("any command is"));
    }

    fn acks(&self) -> Vec<Option<Duration>> {
        let asked = self.asked.lock();
        asked.iter().map(|one| self.fake.acked_after(one)).collect()
    }

    fn shown(&self, channel: usize) -> Vec<Shown> {
        let all = self.fake.from_bot(&self.channels[channel]);
        let public = all.iter().filter(|one| one.only_for.is_none());
        public.map(super::slack::shown).collect()
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for request in self.fake.requests() {
            match request.method.as_str() {
                "chat.postMessage" => traffic.posts += 1,
                "chat.update" => traffic.edits += 1,
                _ => continue,
            }
            traffic.limited += usize::from(request.status == 429);
        }
        traffic
    }

    fn assert_clean(&self) {
        self.fake.assert_clean();
    }
}
