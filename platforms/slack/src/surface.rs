//! Answers of commands and presses, and the sign that somebody is working.
//!
//! **Private answers** go by the `response_url` of what was asked, and by `chat.postEphemeral` once that is spent; in direct
//! messages, where nobody else reads, as an ordinary message then. **Public ones** go the same way, shown to all, and by
//! `chat.postMessage` once it is spent. A `response_url` takes no `markdown_text` (seen by others: it answers `no_text`,
//! github.com/vercel/chat/pull/440) and is not known to take `markdown` blocks, so text goes there as `text`.
//!
//! **Working sign**: Slack has no typing for apps. Threads of direct messages can show an assistant's status
//! (`assistant.threads.setStatus`), which goes away with the next message; there it is used. Elsewhere nothing is shown
//! until the first text, about a second later: a reaction would have to be taken away again, would need a scope of its own,
//! and would stand as noise in the channel.

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::message::Audience;
use platforms::board::ToolsShown;
use platforms::chat::Surface;
use platforms::escape::is_blank;
use platforms::wire::{Body, MessageId, Place, WireError};
use serde::Serialize;
use serde_json::{Value, json};
use slack_morphism::api::{
    SlackApiAssistantThreadsSetStatusRequest, SlackApiChatPostEphemeralRequest,
};
use slack_morphism::blocks::{
    SlackBlock, SlackBlockMarkDownText, SlackBlockText, SlackSectionBlock,
};
use slack_morphism::errors::SlackClientError;
use slack_morphism::{SlackChannelId, SlackTs, SlackUserId};
use tokio::time::{Instant, sleep};

use crate::address::{Address, is_direct};
use crate::api::refusal::wire_error;
use crate::outbound::{Done, KeepText, buttons, content};
use crate::responses::Pressed;
use crate::slack::Slack;
use crate::text::pieces;
use crate::{NAME, STYLE};

/// Tries of one message of an answer that Slack limits.
const TRIES: u32 = 3;

/// The longest pause of Slack's an answer waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Text of one `section` block: 3,000 characters.
const SECTION_MAX: usize = 3_000;

/// What a `response_url` takes.
#[derive(Serialize)]
struct Response {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_type: Option<&'static str>,
    replace_original: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_ts: Option<String>,
}

#[async_trait]
impl Surface for Slack {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place(&self, address: &str) -> Option<Place> {
        Address::parse(address).map(|address| address.place())
    }

    fn tools_shown(&self, place: &Place) -> ToolsShown {
        match is_direct(&place.channel) {
            true => ToolsShown::Yes,
            false => ToolsShown::No,
        }
    }

    async fn reply(
        &self,
        address: &str,
        bodies: Vec<Body>,
        audience: Audience,
    ) -> Result<MessageId, WireError> {
        let address = known(address)?;
        let mut last = MessageId(String::new());
        for body in bodies {
            last = self.reply_once(&address, &body, audience).await?;
        }
        Ok(last)
    }

    async fn settle(&self, address: &str, text: Option<&str>) -> Result<(), WireError> {
        let address = known(address)?;
        let Address::Press {
            place,
            message,
            private,
            key,
            ..
        } = &address
        else {
            return Err(WireError::Refused("nothing was pressed there".to_owned()));
        };
        let pressed = self.responses().lock().pressed(key);
        let text = text.map(|text| STYLE.shape.messages(text).into_iter().next());
        let shown = shown_instead(text.map(Option::unwrap_or_default), pressed)?;
        if *private {
            return self.replace(key, &shown).await;
        }
        match self.update(place, message, &shown).await {
            // The bot is not where a command of it was answered; the press can still change that answer.
            Err(WireError::PlaceGone(_) | WireError::EditTooOld) => self.replace(key, &shown).await,
            settled => settled,
        }
    }

    async fn activity(&self, place: &Place) -> Result<(), WireError> {
        let Some(root) = place.thread.clone().filter(|_| is_direct(&place.channel)) else {
            return Ok(());
        };
        if self.shows_no_status(&place.channel) {
            return Ok(());
        }
        let request = SlackApiAssistantThreadsSetStatusRequest::new(
            SlackChannelId(place.channel.clone()),
            "is working…".to_owned(),
            SlackTs(root),
        );
        let method = "assistant.threads.setStatus";
        let done: Result<Done, _> = self.api().post(method, &request).await;
        let done = done.map_err(|error| wire_error(method, error));
        if let Err(WireError::Refused(_) | WireError::PlaceGone(_)) = done {
            // A thread that is no assistant's, or an app that may not: asked once.
            self.show_no_status(&place.channel);
        }
        done.map(drop)
    }
}

impl Slack {
    /// One message of an answer, by the first way that is open.
    async fn reply_once(
        &self,
        address: &Address,
        body: &Body,
        audience: Audience,
    ) -> Result<MessageId, WireError> {
        let url = address
            .key()
            .and_then(|key| Some((key, self.responses().lock().take(key, Instant::now())?)));
        if let Some((key, url)) = url {
            let response = response(address, body, audience);
            match self.respond(key, &url, &response).await {
                // It gives no id of the message; what asked for it stands for it.
                Ok(true) => return Ok(MessageId(key.to_owned())),
                Ok(false) => {}
                Err(error) => return Err(error),
            }
        }
        let place = address.place();
        if audience == Audience::Everyone || is_direct(&place.channel) {
            let post = || self.post_message(&place, content(body, &KeepText::No));
            return patiently(post).await;
        }
        patiently(|| self.post_private(&place, address.user(), body)).await
    }

    async fn post_private(
        &self,
        place: &Place,
        user: &str,
        body: &Body,
    ) -> Result<MessageId, WireError> {
        #[derive(serde::Deserialize)]
        struct Shown {
            #[serde(default)]
            message_ts: String,
        }
        let method = "chat.postEphemeral";
        let request = SlackApiChatPostEphemeralRequest::new(
            SlackChannelId(place.channel.clone()),
            SlackUserId(user.to_owned()),
            content(body, &KeepText::Yes),
        )
        .opt_thread_ts(place.thread.clone().map(SlackTs));
        let shown: Shown = self
            .api()
            .post(method, &request)
            .await
            .map_err(|error| wire_error(method, error))?;
        Ok(MessageId(shown.message_ts))
    }

    /// Changes a message by its id.
    async fn update(&self, place: &Place, message: &str, shown: &Shown) -> Result<(), WireError> {
        let request = json!({
            "channel": place.channel, "ts": message, "text": shown.text, "blocks": shown.blocks,
        });
        let update = || async {
            let method = "chat.update";
            let done: Result<Done, _> = self.api().post(method, &request).await;
            done.map_err(|error| wire_error(method, error))
        };
        patiently(update).await.map(drop)
    }

    /// Replaces the pressed message by the URL of the press on it; for a private one nothing else can.
    async fn replace(&self, key: &str, shown: &Shown) -> Result<(), WireError> {
        let gone = || WireError::Refused("the message can no longer be changed".to_owned());
        let url = self.responses().lock().take(key, Instant::now());
        let url = url.ok_or_else(gone)?;
        let response = Response {
            text: shown.text.clone(),
            blocks: shown.rich.then(|| shown.blocks.clone()),
            response_type: None,
            replace_original: true,
            thread_ts: None,
        };
        match self.respond(key, &url, &response).await? {
            true => Ok(()),
            false => Err(gone()),
        }
    }

    /// Posts to a `response_url`; `false` = it takes no more, and nothing was shown.
    async fn respond(&self, key: &str, url: &str, response: &Response) -> Result<bool, WireError> {
        let post = || async {
            match self.api().post_to(url, response).await {
                Ok(()) => Ok(true),
                // Used up or expired: 404 (Slack's documentation), with a word that changed over the years.
                Err(SlackClientError::HttpError(answered))
                    if matches!(answered.status_code.as_u16(), 404 | 410) =>
                {
                    Ok(false)
                }
                Err(SlackClientError::ApiError(refused))
                    if matches!(refused.code.as_str(), "used_url" | "expired_url") =>
                {
                    Ok(false)
                }
                Err(error) => Err(wire_error("response_url", error)),
            }
        };
        let shown = patiently(post).await?;
        if !shown {
            self.responses().lock().spent(key);
        }
        Ok(shown)
    }
}

fn known(address: &str) -> Result<Address, WireError> {
    Address::parse(address)
        .ok_or_else(|| WireError::PlaceGone(format!("Slack made no such address: {address}")))
}

fn response(address: &Address, body: &Body, audience: Audience) -> Response {
    let in_thread = matches!(address, Address::Press { .. });
    Response {
        text: body.text.clone(),
        blocks: (!body.buttons.is_empty()).then(|| blocks(body, audience)),
        response_type: Some(match audience {
            Audience::Asker => "ephemeral",
            Audience::Everyone => "in_channel",
        }),
        replace_original: false,
        thread_ts: address.place().thread.filter(|_| in_thread),
    }
}

fn blocks(body: &Body, audience: Audience) -> Value {
    let sections = pieces(&body.text, SECTION_MAX).into_iter().map(|piece| {
        let text = SlackBlockText::MarkDown(SlackBlockMarkDownText::new(piece));
        SlackBlock::from(SlackSectionBlock::new().with_text(text))
    });
    let keep = match audience {
        Audience::Asker => KeepText::Yes,
        Audience::Everyone => KeepText::No,
    };
    let rows = buttons(&body.buttons, &body.text, keep);
    json!(sections.chain(rows).collect::<Vec<_>>())
}

/// What a pressed message shows from now on, without its buttons.
struct Shown {
    text: String,
    blocks: Value,
    /// Whether the blocks are more than the text.
    rich: bool,
}

fn shown_instead(text: Option<String>, pressed: Option<Pressed>) -> Result<Shown, WireError> {
    let text = match (text, pressed) {
        (None, Some(Pressed::Blocks { blocks, text })) => {
            let blocks = without_buttons(blocks);
            let rich = true;
            return Ok(Shown { text, blocks, rich });
        }
        (Some(text), _) | (None, Some(Pressed::Text(text))) => text,
        (None, None) => {
            let why = "what the message said is not known any more";
            return Err(WireError::Refused(why.to_owned()));
        }
    };
    // Slack refuses a message of nothing.
    let text = if is_blank(&text) {
        "✓".to_owned()
    } else {
        text
    };
    Ok(Shown {
        blocks: json!([{ "type": "markdown", "text": text }]),
        text,
        rich: false,
    })
}

fn without_buttons(blocks: Vec<Value>) -> Value {
    let stays = |block: &Value| block.get("type").is_none_or(|kind| kind != "actions");
    blocks.into_iter().filter(stays).collect()
}

/// Tries again after the pauses Slack asks for: an answer does not go through the outbox, which would do so.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T, WireError>
where
    F: Future<Output = Result<T, WireError>>,
{
    let mut tries = 1;
    loop {
        match ask().await {
            Err(WireError::RateLimited { after, scope }) => {
                let pause = after.unwrap_or(Duration::from_secs(5));
                if tries == TRIES || pause > PATIENCE {
                    return Err(WireError::RateLimited { after, scope });
                }
                tries += 1;
                sleep(pause).await;
            }
            other => return other,
        }
    }
}
