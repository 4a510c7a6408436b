//! Slack, played by the fake.

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::access::AccessRules;
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::{APP_TOKEN, At, BOT_TOKEN, Fault, Message, Said};
use gateway_host::config::{Account, ChatKind, SecretRef};
use platforms::escape::Shape;

use super::stage::set;
use super::{Answered, ChatUnderTest, Shown, Spot, Stage, Who, until};

/// Every envelope must be acknowledged within this.
const ACK: Duration = Duration::from_secs(3);

/// A workspace with an app behind which a gateway runs.
pub struct SlackRoom {
    pub fake: FakeSlack,
    stage: Stage,
    main: String,
    denied: String,
    /// The roots of the threads.
    threads: [String; 2],
    people: [String; 3],
    /// Somebody else's bot that wrote before anybody listened; only its messages are delivered late.
    bystander: String,
}

impl SlackRoom {
    /// The workspace, the people and the settings; no gateway runs yet.
    pub async fn furnished(subscriptions: &[&str]) -> Self {
        let fake = FakeSlack::start().await;
        let people = ["anna", "olga", "stan"].map(|name| fake.person(name));
        let bystander = fake.other_bot("herald");
        let (main, denied) = (fake.general(), fake.channel("elsewhere", true));
        let threads = ["red", "blue"].map(|name| fake.say(&main, &bystander, name).ts);
        let mut stage = Stage::new(subscriptions);
        let account = Account::Slack {
            app_token: stage.secret("slack-app-token", APP_TOKEN),
            bot_token: stage.secret("slack-bot-token", BOT_TOKEN),
            api_url: Some(fake.api()),
        };
        let access = AccessRules {
            channels: set([main.clone()]),
            users: set([people[0].clone()]),
            operators: set([people[1].clone()]),
            bot_depth: 3,
            ..AccessRules::default()
        };
        stage.section(ChatKind::Slack, account, access);
        Self {
            fake,
            stage,
            main,
            denied,
            threads,
            people,
            bystander,
        }
    }

    /// The profile's section as a person writes it.
    pub fn toml(&self) -> String {
        let Account::Slack {
            app_token: SecretRef::File(app),
            bot_token: SecretRef::File(bot),
            ..
        } = self.stage.account(ChatKind::Slack)
        else {
            panic!("the tokens are in files");
        };
        format!(
            "[profiles.default.slack]\napp_token_file = {app:?}\nbot_token_file = {bot:?}\nchannels = [\"{}\"]\nusers = [\"{}\"]\noperators = [\"{}\"]\napi_url = \"{}\"\n",
            self.main,
            self.people[0],
            self.people[1],
            self.fake.api(),
        )
    }

    fn channel(&self, spot: Spot) -> &str {
        match spot {
            Spot::Main | Spot::Thread(_) => &self.main,
            Spot::Denied => &self.denied,
        }
    }

    fn thread(&self, spot: Spot) -> Option<&String> {
        match spot {
            Spot::Thread(number) => Some(&self.threads[number]),
            Spot::Main | Spot::Denied => None,
        }
    }

    fn person(&self, who: Who) -> &str {
        &self.people[match who {
            Who::Anna => 0,
            Who::Olga => 1,
            Who::Stranger => 2,
        }]
    }
}

/// A message as it stands.
pub(super) fn shown(message: &Message) -> Shown {
    let text = message.text.replace("&lt;", "<").replace("&gt;", ">");
    Shown {
        id: format!("{} {}", message.at.channel, message.at.ts),
        text: text.replace("&amp;", "&").replace('\u{2060}', ""),
        raw: message.text.clone(),
        edits: message.earlier.len(),
        earlier: message.earlier.clone(),
        at: Some(message.edited_at.unwrap_or(message.created_at)),
        pinged: !message.pings.is_empty(),
        private: message.only_for.is_some(),
        buttons: message
            .buttons()
            .into_iter()
            .map(|button| button.action_id)
            .collect(),
        files: message
            .files
            .iter()
            .map(|file| file.bytes.clone())
            .collect(),
    }
}

fn at(id: &str) -> At {
    let (channel, ts) = id.split_once(' ').expect("an id of ours");
    At {
        channel: channel.to_owned(),
        ts: ts.to_owned(),
    }
}

#[async_trait]
impl ChatUnderTest for SlackRoom {
    const NAME: &'static str = "Slack";
    const SKIPS: &'static [(&'static str, &'static str)] = &[];

    fn shape() -> Option<Shape> {
        Some(platform_slack::STYLE.shape)
    }

    async fn open(subscriptions: &[&str]) -> Self {
        let mut room = Self::furnished(subscriptions).await;
        room.stage.run().await;
        room
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }

    async fn restart(&mut self) {
        self.stage.stop().await;
        self.stage.run().await;
    }

    async fn stop(&mut self) {
        self.stage.stop().await;
    }

    fn id(&self, who: Who) -> String {
        self.person(who).to_owned()
    }

    async fn say(&self, spot: Spot, who: Who, text: &str, naming: bool) -> String {
        let text = match naming {
            true => format!("{} {text}", self.fake.mention()),
            false => text.to_owned(),
        };
        let said = Said {
            text,
            thread_ts: self.thread(spot).cloned(),
            files: Vec::new(),
        };
        let at = self.fake.say(self.channel(spot), self.person(who), said);
        format!("{} {}", at.channel, at.ts)
    }

    async fn command(&self, who: Who, line: &str) -> Answered {
        let before = self.private(who).len();
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let name = format!("/{name}");
        let asked = self
            .fake
            .slash(&self.main, self.person(who), &name, argument)
            .unwrap_or_else(|why| panic!("{line}: {why:?}"));
        let shown = until(self, "the answer of a command", |room| {
            room.private(who).into_iter().nth(before)
        })
        .await;
        Answered {
            shown,
            acked: self.fake.acked_after(&asked),
        }
    }

    fn press(&self, who: Who, on: &Shown, button: &str) -> bool {
        self.fake
            .click(self.person(who), &at(&on.id), button)
            .is_ok()
    }

    fn public(&self, spot: Spot) -> Vec<Shown> {
        let all = self.fake.from_bot(self.channel(spot));
        let here = all
            .iter()
            .filter(|message| message.thread_ts.as_ref() == self.thread(spot));
        here.map(shown).collect()
    }

    fn private(&self, who: Who) -> Vec<Shown> {
        let all = self.fake.private(&self.main, self.person(who));
        all.iter().map(shown).collect()
    }

    fn deliver_twice(&self) {
        self.fake.duplicate_envelopes(1_000);
    }

    fn deliver_again(&self, message: &str) {
        self.fake.repeat(&at(message));
    }

    fn limit_next_edit(&self) {
        self.fake.plan(
            "chat.update",
            Fault::RateLimited {
                retry_after: Duration::from_secs(1),
            },
        );
    }

    fn pass(&self, time: Duration) {
        self.fake.clock().advance(time);
    }

    fn late_acks(&self) -> Vec<String> {
        let now = self.fake.clock().now();
        let all = self.fake.envelopes();
        let late = all.iter().filter(|one| {
            // What was sent a moment ago still has its time.
            let acked = one.acked.as_ref().map_or(now, |(at, _)| *at);
            let in_time = acked.duration_since(one.sent_at).unsigned_abs() <= ACK;
            let is_ours = one.payload["event"]["user"] != self.bystander.as_str();
            is_ours && one.socket.is_some() && (!in_time || one.attempt > 0)
        });
        late.map(|one| format!("{one:?}")).collect()
    }

    fn assert_clean(&self) {
        self.fake.assert_clean();
    }
}
