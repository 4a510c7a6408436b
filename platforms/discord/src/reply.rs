//! Answers of commands and presses, by their own reply channel: the deferred answer gets the first text, more follow it.
//!
//! What only the asker may see goes through the interaction's token or, in a direct conversation, as a plain message.
//! Where neither is left (15 minutes are over, or a restart lost the token) the text is not sent; the channel is told that
//! the answer came too late, without a word of it.

use std::time::Duration;

use gateway_core::message::Audience;
use platforms::wire::{Body, MessageId, WireError};
use serde_json::Value;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;
use tokio::time::Instant;

use crate::Core;
use crate::address::{Address, CameBy};
use crate::asked::Asked;
use crate::body;
use crate::outbound::posted;
use crate::refusal::Trouble;

/// How long limits and broken connections are put up with before an answer is reported as not given.
const PATIENCE: Duration = Duration::from_secs(60);

const TOO_LATE: &str =
    "The answer came too late to be shown to you alone. Please use the command again.";

const NOT_ALONE: &str =
    "That answer is for you alone. Use the slash command: Discord shows its answer to nobody else.";

impl Core {
    pub(crate) async fn reply(
        &self,
        address: &str,
        bodies: Vec<Body>,
        audience: Audience,
    ) -> Result<MessageId, WireError> {
        let Some(address) = Address::decode(address) else {
            return Err(WireError::PlaceGone(format!(
                "{address} is no address of Discord's"
            )));
        };
        let private = audience == Audience::Asker;
        let interaction = match address.came_by {
            CameBy::Message => return self.in_channel(&address, &bodies, private, NOT_ALONE).await,
            CameBy::Command { interaction } | CameBy::Press { interaction, .. } => interaction,
        };
        let asked = self.asked.lock().live(interaction, Instant::now());
        let Some(asked) = asked else {
            return self.in_channel(&address, &bodies, private, TOO_LATE).await;
        };
        let mut answer = Answer {
            core: self,
            interaction,
            asked,
            private,
            until: Instant::now() + PATIENCE,
            first: None,
        };
        let mut left = bodies.as_slice();
        while let Some((body, rest)) = left.split_first() {
            match answer.say(body).await {
                Ok(()) => left = rest,
                Err(Trouble::Refused(refusal)) if refusal.is_dead_token() => {
                    self.asked.lock().dead(interaction);
                    let later = self.in_channel(&address, left, private, TOO_LATE).await?;
                    return Ok(answer.first.unwrap_or(later));
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        match answer.first.take() {
            Some(first) => Ok(first),
            None => answer.say_nothing().await,
        }
    }

    /// Says it as plain messages; what is private, only where nobody else reads.
    async fn in_channel(
        &self,
        address: &Address,
        bodies: &[Body],
        private: bool,
        instead: &str,
    ) -> Result<MessageId, WireError> {
        if private && !address.direct {
            self.plain(address, &Body::text(instead)).await?;
            return Err(WireError::Refused(
                "it is for one person alone and can no longer be shown so; the channel was told"
                    .to_owned(),
            ));
        }
        let mut first = None;
        for body in bodies {
            let message = self.plain(address, body).await?;
            first.get_or_insert(message);
        }
        first.ok_or_else(|| WireError::Refused("it is empty".to_owned()))
    }

    async fn plain(&self, address: &Address, body: &Body) -> Result<MessageId, WireError> {
        let route = Route::ChannelMessages {
            channel_id: id::ChannelId::new(address.channel),
        };
        let shown = body::post(body, &nonce());
        let request = body::request(route, LightMethod::Post, &shown, body.file.as_deref());
        let until = Instant::now() + PATIENCE;
        Ok(posted(self.rest.ask_patiently(request, until).await?)?)
    }

    pub(crate) async fn settle(&self, address: &str, text: Option<&str>) -> Result<(), WireError> {
        let Some(Address {
            channel,
            came_by:
                CameBy::Press {
                    interaction,
                    message,
                },
            ..
        }) = Address::decode(address)
        else {
            return Err(WireError::PlaceGone(format!(
                "{address} is no press of a button"
            )));
        };
        let (shown, until) = (body::settled(text), Instant::now() + PATIENCE);
        let asked = self.asked.lock().live(interaction, Instant::now());
        if let (Some(asked), Some(me)) = (asked, self.me()) {
            // Also the only way to a message that one person alone sees.
            let route = Route::WebhookOriginalInteractionResponse {
                application_id: id::ApplicationId::new(me.application),
                token: &asked.token.0,
            };
            let request = body::request(route, LightMethod::Patch, &shown, None);
            match self.rest.patiently(request, until).await {
                Err(Trouble::Refused(refusal)) if refusal.is_dead_token() => {
                    self.asked.lock().dead(interaction);
                }
                done => return done.map(drop).map_err(WireError::from),
            }
        }
        let route = Route::ChannelMessage {
            channel_id: id::ChannelId::new(channel),
            message_id: id::MessageId::new(message),
        };
        let request = body::request(route, LightMethod::Patch, &shown, None);
        self.rest.patiently(request, until).await?;
        Ok(())
    }
}

/// One answer, by an interaction's token.
struct Answer<'a> {
    core: &'a Core,
    interaction: u64,
    asked: Asked,
    private: bool,
    until: Instant,
    /// What was said first.
    first: Option<MessageId>,
}

impl Answer<'_> {
    async fn say(&mut self, body: &Body) -> Result<(), Trouble> {
        let message = match self.takes_deferred().await? {
            true => self.complete(body).await?,
            false => self.follow(body).await?,
        };
        self.first.get_or_insert(message);
        Ok(())
    }

    /// Whether the deferred answer takes the next text. Who sees it was fixed when it was deferred: if this answer is for
    /// others it is taken away, because the first follow-up would become it.
    async fn takes_deferred(&mut self) -> Result<bool, Trouble> {
        if !self.asked.waiting {
            return Ok(false);
        }
        if self.asked.deferred_private == Some(self.private) {
            return Ok(true);
        }
        self.take_away().await?;
        Ok(false)
    }

    async fn complete(&mut self, body: &Body) -> Result<MessageId, Trouble> {
        let shown = body::message(body);
        let route = self.original()?;
        let request = body::request(route, LightMethod::Patch, &shown, body.file.as_deref());
        let answer: Value = self.core.rest.ask_patiently(request, self.until).await?;
        self.completed();
        posted(answer)
    }

    async fn follow(&self, body: &Body) -> Result<MessageId, Trouble> {
        let shown = body::follow_up(body, self.private);
        let route = Route::WebhookFollowupMessages {
            application_id: self.application()?,
            token: &self.asked.token.0,
        };
        let request = body::request(route, LightMethod::Post, &shown, body.file.as_deref());
        // A follow-up has no nonce: one of unknown fate is not said again.
        let answer: Value = loop {
            match self.core.rest.ask(request.clone()).await {
                Err(Trouble::Limited { after, .. }) => {
                    let wait = after.unwrap_or(Duration::from_secs(2));
                    if Instant::now() + wait >= self.until {
                        return Err(Trouble::NotDelivered("limits lasted too long".to_owned()));
                    }
                    tokio::time::sleep(wait).await;
                }
                done => break done?,
            }
        };
        posted(answer)
    }

    /// An answer without a text: the deferred one must not "think" for ever.
    async fn say_nothing(&mut self) -> Result<MessageId, WireError> {
        if self.asked.waiting {
            self.take_away().await?;
        }
        Ok(MessageId(self.interaction.to_string()))
    }

    async fn take_away(&mut self) -> Result<(), Trouble> {
        let request = Request::new(self.original()?, LightMethod::Delete);
        self.core.rest.patiently(request, self.until).await?;
        self.completed();
        Ok(())
    }

    fn completed(&mut self) {
        self.asked.waiting = false;
        self.core.asked.lock().completed(self.interaction);
    }

    fn original(&self) -> Result<Route<'_>, Trouble> {
        Ok(Route::WebhookOriginalInteractionResponse {
            application_id: self.application()?,
            token: &self.asked.token.0,
        })
    }

    fn application(&self) -> Result<id::ApplicationId, Trouble> {
        let me = self.core.me();
        let me = me.ok_or_else(|| Trouble::NotDelivered("nothing was checked yet".to_owned()))?;
        Ok(id::ApplicationId::new(me.application))
    }
}

/// One per text: a try that is repeated after a lost answer is not shown twice.
fn nonce() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!("r{:016x}", RandomState::new().build_hasher().finish())
}
