//! Discord, played by the fake.

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::access::AccessRules;
use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::{Asked, ChannelId, Fault, Message, MessageId, UserId};
use gateway_host::config::{Account, ChatKind, SecretRef};
use parking_lot::Mutex;
use platforms::escape::Shape;
use serde_json::json;

use super::stage::set;
use super::{Answered, ChatUnderTest, Shown, Spot, Stage, Who, until};

/// What was given to the bot must be acknowledged within this.
const ACK: Duration = Duration::from_secs(3);

/// A server with a bot behind which a gateway runs.
pub struct DiscordRoom {
    pub fake: FakeDiscord,
    stage: Stage,
    main: ChannelId,
    denied: ChannelId,
    threads: [ChannelId; 2],
    people: [UserId; 3],
    asked: Mutex<Vec<Asked>>,
}

impl DiscordRoom {
    /// The server, the people and the settings; no gateway runs yet.
    pub async fn furnished(subscriptions: &[&str]) -> Self {
        let fake = FakeDiscord::start().await;
        let people = ["anna", "olga", "stan"].map(|name| fake.person(name));
        let bystander = fake.other_bot("herald");
        let (main, denied) = (fake.general(), fake.channel("elsewhere"));
        let threads = ["red", "blue"].map(|name| {
            let root = fake.say(main, bystander, name);
            fake.thread(root, name)
        });
        let mut stage = Stage::new(subscriptions);
        let account = Account::Discord {
            token: stage.secret("discord-token", &fake.token()),
            api_base: Some(fake.base()),
            gateway_url: None,
            guild_commands: false,
        };
        let access = AccessRules {
            guilds: set([fake.guild().to_string()]),
            channels: set([main.to_string()]),
            users: set([people[0].to_string()]),
            operators: set([people[1].to_string()]),
            bot_depth: 3,
            ..AccessRules::default()
        };
        stage.section(ChatKind::Discord, account, access);
        Self {
            fake,
            stage,
            main,
            denied,
            threads,
            people,
            asked: Mutex::default(),
        }
    }

    /// The profile's section as a person writes it.
    pub fn toml(&self) -> String {
        let Account::Discord {
            token: SecretRef::File(token),
            ..
        } = self.stage.account(ChatKind::Discord)
        else {
            panic!("the token is in a file");
        };
        format!(
            "[profiles.default.discord]\ntoken_file = {:?}\nguilds = [\"{}\"]\nchannels = [\"{}\"]\nusers = [\"{}\"]\noperators = [\"{}\"]\napi_base = \"{}\"\n",
            token,
            self.fake.guild(),
            self.main,
            self.people[0],
            self.people[1],
            self.fake.base(),
        )
    }

    fn channel(&self, spot: Spot) -> ChannelId {
        match spot {
            Spot::Main => self.main,
            Spot::Thread(number) => self.threads[number],
            Spot::Denied => self.denied,
        }
    }

    fn person(&self, who: Who) -> UserId {
        self.people[match who {
            Who::Anna => 0,
            Who::Olga => 1,
            Who::Stranger => 2,
        }]
    }
}

/// A message as it stands.
pub(super) fn shown(message: &Message) -> Shown {
    Shown {
        id: message.id.0.to_string(),
        text: message.text.replace('\u{2060}', ""),
        raw: message.text.clone(),
        edits: message.earlier.len(),
        earlier: message.earlier.clone(),
        at: Some(message.edited_at.unwrap_or(message.created_at)),
        pinged: !message.pings.is_empty(),
        private: message.only_for.is_some(),
        buttons: message
            .buttons()
            .into_iter()
            .map(|button| button.custom_id)
            .collect(),
        files: message
            .files
            .iter()
            .map(|file| file.bytes.clone())
            .collect(),
    }
}

#[async_trait]
impl ChatUnderTest for DiscordRoom {
    const NAME: &'static str = "Discord";
    const SKIPS: &'static [(&'static str, &'static str)] = &[];

    fn shape() -> Option<Shape> {
        Some(platform_discord::STYLE.shape)
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
        self.person(who).to_string()
    }

    async fn say(&self, spot: Spot, who: Who, text: &str, naming: bool) -> String {
        let text = match naming {
            true => format!("<@{}> {text}", self.fake.bot()),
            false => text.to_owned(),
        };
        let said = self
            .fake
            .say(self.channel(spot), self.person(who), text.as_str());
        said.0.to_string()
    }

    async fn command(&self, who: Who, line: &str) -> Answered {
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let options = match argument {
            "" => vec![],
            argument => vec![(commands::surface::discord::ARGUMENT, json!(argument))],
        };
        let asked = self.fake.slash(self.main, self.person(who), name, &options);
        let asked = asked.unwrap_or_else(|why| panic!("/{line}: {why:?}"));
        self.asked.lock().push(asked.clone());
        let answer = until(self, "the answer of a command", |room| {
            let original = room.fake.interaction(&asked).original?;
            let answer = room.fake.message(original)?;
            (!answer.loading).then_some(answer)
        })
        .await;
        let first = self.fake.interaction(&asked).first;
        Answered {
            shown: shown(&answer),
            acked: Some(first.expect("it was answered").after),
        }
    }

    fn press(&self, who: Who, on: &Shown, button: &str) -> bool {
        let message = MessageId(on.id.parse().expect("an id of the fake"));
        let pressed = self.fake.click(self.person(who), message, button);
        let is_there = pressed.is_ok();
        self.asked.lock().extend(pressed);
        is_there
    }

    fn public(&self, spot: Spot) -> Vec<Shown> {
        let all = self.fake.from_bot(self.channel(spot));
        let spoken = all.iter().filter(|message| !message.loading);
        spoken.map(shown).collect()
    }

    fn private(&self, who: Who) -> Vec<Shown> {
        let all = self.fake.seen(self.main, Some(self.person(who)));
        let alone = all
            .iter()
            .filter(|message| message.only_for.is_some() && !message.loading);
        alone.map(shown).collect()
    }

    fn deliver_twice(&self) {
        self.fake.duplicate_events(1_000);
    }

    fn deliver_again(&self, message: &str) {
        let message = message.parse().expect("an id of the fake");
        self.fake.repeat(MessageId(message));
    }

    fn limit_next_edit(&self) {
        self.fake.plan(
            "PATCH",
            "/channels/{channel_id}/messages/{message_id}",
            Fault::BucketLimit {
                retry_after: Duration::from_secs(1),
            },
        );
    }

    fn pass(&self, time: Duration) {
        self.fake.clock().advance(time);
    }

    fn late_acks(&self) -> Vec<String> {
        let asked = self.asked.lock();
        let all = asked.iter().map(|asked| self.fake.interaction(asked));
        all.filter(|one| one.first.as_ref().is_none_or(|first| first.after > ACK))
            .map(|one| format!("{one:?}"))
            .collect()
    }

    fn assert_clean(&self) {
        self.fake.assert_clean();
    }
}
