//! Messages out: each call one request.

use platforms::wire::{Body, MessageId, Place, WireError};
use serde_json::Value;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;

use crate::Core;
use crate::body;
use crate::event::Message;
use crate::refusal::Trouble;
use crate::settings::snowflake;

impl Core {
    pub(crate) async fn send(
        &self,
        place: &Place,
        body: &Body,
        nonce: &str,
    ) -> Result<MessageId, WireError> {
        let route = Route::ChannelMessages {
            channel_id: channel_id(place)?,
        };
        let shown = body::post(body, nonce);
        let request = body::request(route, LightMethod::Post, &shown, body.file.as_deref());
        Ok(posted(self.rest.ask(request).await?)?)
    }

    pub(crate) async fn edit(
        &self,
        place: &Place,
        message: &MessageId,
        body: &Body,
    ) -> Result<(), WireError> {
        let shown = body::message(body);
        self.change(channel_id(place)?, message_id(message)?, &shown, body)
            .await
    }

    /// Puts `shown` in the place of what a message shows.
    pub(crate) async fn change(
        &self,
        channel_id: id::ChannelId,
        message_id: id::MessageId,
        shown: &Value,
        body: &Body,
    ) -> Result<(), WireError> {
        let route = Route::ChannelMessage {
            channel_id,
            message_id,
        };
        let request = body::request(route, LightMethod::Patch, shown, body.file.as_deref());
        self.rest.once(request).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, place: &Place, message: &MessageId) -> Result<(), WireError> {
        let route = Route::ChannelMessage {
            channel_id: channel_id(place)?,
            message_id: message_id(message)?,
        };
        self.rest
            .once(Request::new(route, LightMethod::Delete))
            .await?;
        Ok(())
    }

    /// Looks through the newest messages. Discord recognises a nonce by itself, so the outbox never asks this here.
    pub(crate) async fn find(
        &self,
        place: &Place,
        nonce: &str,
    ) -> Result<Option<MessageId>, WireError> {
        let route = Route::ChannelMessages {
            channel_id: channel_id(place)?,
        };
        let request =
            Request::new(route, LightMethod::Get).params(Some(vec![("limit", "100".to_owned())]));
        let newest: Vec<Message> = self.rest.ask(request).await?;
        let own = self.me().map(|me| me.user);
        let found = newest.into_iter().find(|message| {
            snowflake(&message.author.id) == own
                && message.nonce.as_ref().and_then(Value::as_str) == Some(nonce)
        });
        Ok(found.map(|message| MessageId(message.id)))
    }

    pub(crate) async fn activity(&self, place: &Place) -> Result<(), WireError> {
        let route = Route::ChannelTyping {
            channel_id: channel_id(place)?,
        };
        self.rest
            .once(Request::new(route, LightMethod::Post))
            .await?;
        Ok(())
    }
}

/// The id of a message that was posted.
pub(crate) fn posted(answer: Value) -> Result<MessageId, Trouble> {
    match answer.get("id").and_then(Value::as_str) {
        Some(id) => Ok(MessageId(id.to_owned())),
        None => Err(Trouble::Uncertain("the answer names no message".to_owned())),
    }
}

fn channel_id(place: &Place) -> Result<id::ChannelId, WireError> {
    let channel = snowflake(&place.channel);
    channel.map(id::ChannelId::new).ok_or_else(|| {
        WireError::PlaceGone(format!("{:?} is no channel of Discord's", place.channel))
    })
}

fn message_id(message: &MessageId) -> Result<id::MessageId, WireError> {
    snowflake(&message.0)
        .map(id::MessageId::new)
        .ok_or(WireError::MessageGone)
}
