//! A bot on twilight 0.18, and the shapes its answers have.

use std::time::Duration;

use gateway_fakes::FakeDiscord;
use twilight_gateway::{ConfigBuilder, Event, EventTypeFlags, Intents, Shard, ShardId, StreamExt};
use twilight_http::Client;
use twilight_model::application::interaction::Interaction;
use twilight_model::channel::message::Component;
use twilight_model::channel::message::component::{ActionRow, Button, ButtonStyle};
use twilight_model::http::interaction::{
    InteractionResponse, InteractionResponseData, InteractionResponseType,
};

/// A bot on twilight.
pub(super) struct Bot {
    pub(super) http: Client,
    pub(super) shard: Shard,
}

impl Bot {
    pub(super) fn new(fake: &FakeDiscord) -> Self {
        Self::asking_for(
            fake,
            Intents::GUILDS
                | Intents::GUILD_MESSAGES
                | Intents::MESSAGE_CONTENT
                | Intents::DIRECT_MESSAGES,
        )
    }

    pub(super) fn asking_for(fake: &FakeDiscord, intents: Intents) -> Self {
        super::install_tls();
        let http = Client::builder()
            .proxy(fake.address().to_string(), true)
            .token(fake.token())
            .build();
        let config = ConfigBuilder::new(fake.token(), intents)
            .proxy_url(fake.gateway_url())
            .build();
        Self {
            http,
            shard: Shard::with_config(ShardId::ONE, config),
        }
    }

    /// The next event that `pick` wants; decoding errors fail the test.
    pub(super) async fn next<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(Event) -> Option<T>,
    ) -> T {
        let waiting = async {
            loop {
                let event = self.shard.next_event(EventTypeFlags::all()).await;
                let event = event
                    .expect("the gateway goes on")
                    .expect("twilight decodes what the fake sends");
                if let Some(found) = pick(event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting)
            .await
            .unwrap_or_else(|_| panic!("waited for {what}"))
    }

    pub(super) async fn ready(&mut self) {
        self.next("GUILD_CREATE", |event| {
            matches!(event, Event::GuildCreate(_)).then_some(())
        })
        .await;
    }

    pub(super) async fn interaction(&mut self) -> Interaction {
        let pick = |event| match event {
            Event::InteractionCreate(created) => Some(created.0),
            _ => None,
        };
        self.next("INTERACTION_CREATE", pick).await
    }

    pub(super) async fn heard(&mut self) -> String {
        let pick = |event| match event {
            Event::MessageCreate(created) if !created.author.bot => Some(created.content.clone()),
            _ => None,
        };
        self.next("MESSAGE_CREATE", pick).await
    }
}

pub(super) fn answer(
    kind: InteractionResponseType,
    data: Option<InteractionResponseData>,
) -> InteractionResponse {
    InteractionResponse { kind, data }
}

pub(super) fn button(custom_id: &str, label: &str) -> Component {
    Component::ActionRow(ActionRow {
        id: None,
        components: vec![Component::Button(Button {
            id: None,
            custom_id: Some(custom_id.into()),
            disabled: false,
            emoji: None,
            label: Some(label.into()),
            style: ButtonStyle::Secondary,
            url: None,
            sku_id: None,
        })],
    })
}
