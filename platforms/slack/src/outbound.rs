//! Messages out: each call of [`Wire`] is one request, tried once. A file takes three, of which only the last shows anything.
//!
//! Text goes out as `markdown_text`, which cannot be combined with blocks; a message with buttons is a `markdown` block and
//! an `actions` block. Never set: `link_names` and `parse`, which would make bare `@names` ping, and `reply_broadcast`.
//!
//! **Was it posted?** Slack does not recognise a repeated post. Each message carries its nonce in its metadata, and
//! [`find`](Wire::find) looks for it among what stands in the place since the last thing that was known to be there before the post. This takes
//! no scope beyond those that hear messages. A file's message has no metadata; it is found by the file's id.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use platforms::escape::is_blank;
use platforms::split::{Unit, shorten};
use platforms::wire::{Body, Button, MessageId, OutFile, Place, Wire, WireError};
use serde::Deserialize;
use slack_morphism::api::{
    SlackApiChatDeleteRequest, SlackApiChatPostMessageRequest, SlackApiChatUpdateRequest,
    SlackApiFilesComplete, SlackApiFilesCompleteUploadExternalRequest,
};
use slack_morphism::blocks::{
    SlackActionBlockElement, SlackActionsBlock, SlackBlock, SlackBlockButtonElement,
    SlackBlockPlainTextOnly, SlackMarkdownBlock,
};
use slack_morphism::{
    SlackActionId, SlackChannelId, SlackFileId, SlackMessageContent, SlackMessageMetadata, SlackTs,
};

use crate::api::refusal::wire_error;
use crate::slack::Slack;
use crate::text::plain;

/// What a message's metadata says it is.
const MESSAGE_KIND: &str = "baton_message";

const NONCE: &str = "nonce";

/// The most elements of an `actions` block.
const ELEMENTS_MAX: usize = 25;
const LABEL_MAX: usize = 75;

/// How much older than the last known message one may be and still be new: clocks of Slack's machines.
const SLACK_OF_CLOCKS: f64 = 60.0;

/// How many messages are looked through for one of unknown fate.
const LOOK_THROUGH: u32 = 200;

/// Posts of unknown fate that are remembered.
const UNKNOWN_MAX: usize = 1_000;

/// The message of a file has no id of its own that Slack would tell at once, so the file's stands for it.
const FILE_PREFIX: char = 'F';

/// Posts of unknown fate, by nonce.
#[derive(Debug, Default)]
pub(crate) struct Unknown(Mutex<HashMap<String, Trace>>);

/// How a post of unknown fate would be recognised.
#[derive(Debug, Clone, Default)]
struct Trace {
    /// The `ts` it must be younger than.
    since: Option<String>,
    file: Option<String>,
}

impl Unknown {
    fn keep(&self, nonce: &str, trace: Trace) {
        let mut known = self.0.lock();
        if known.len() < UNKNOWN_MAX {
            known.insert(nonce.to_owned(), trace);
        }
    }

    fn look(&self, nonce: &str) -> Trace {
        self.0.lock().get(nonce).cloned().unwrap_or_default()
    }

    fn forget(&self, nonce: &str) {
        self.0.lock().remove(nonce);
    }
}

#[derive(Deserialize)]
struct Posted {
    ts: String,
}

/// An answer of which nothing is needed.
#[derive(Deserialize)]
pub(crate) struct Done {}

#[async_trait]
impl Wire for Slack {
    async fn send(&self, place: &Place, body: &Body, nonce: &str) -> Result<MessageId, WireError> {
        let since = self.newest();
        if let Some(file) = &body.file {
            return self.send_file(place, &body.text, file, nonce, since).await;
        }
        let metadata = SlackMessageMetadata::new(MESSAGE_KIND.to_owned())
            .with_event_payload(HashMap::from([(NONCE.to_owned(), nonce.to_owned())]));
        let content = content(body, &KeepText::No).with_metadata(metadata);
        let posted = self.post_message(place, content).await;
        if let Err(WireError::Uncertain(_)) = posted {
            self.unknown().keep(nonce, Trace { since, file: None });
        }
        posted
    }

    async fn edit(&self, place: &Place, message: &MessageId, body: &Body) -> Result<(), WireError> {
        if message.0.starts_with(FILE_PREFIX) {
            return Err(WireError::Refused(
                "the message of a file stays as it is".to_owned(),
            ));
        }
        let request = SlackApiChatUpdateRequest::new(
            SlackChannelId(place.channel.clone()),
            content(body, &KeepText::No),
            SlackTs(message.0.clone()),
        );
        let method = "chat.update";
        let _: Done = self
            .api()
            .post(method, &request)
            .await
            .map_err(|error| wire_error(method, error))?;
        Ok(())
    }

    async fn delete(&self, place: &Place, message: &MessageId) -> Result<(), WireError> {
        if message.0.starts_with(FILE_PREFIX) {
            return Err(WireError::Refused("the message of a file stays".to_owned()));
        }
        let request = SlackApiChatDeleteRequest::new(
            SlackChannelId(place.channel.clone()),
            SlackTs(message.0.clone()),
        );
        let method = "chat.delete";
        let _: Done = self
            .api()
            .post(method, &request)
            .await
            .map_err(|error| wire_error(method, error))?;
        Ok(())
    }

    async fn find(&self, place: &Place, nonce: &str) -> Result<Option<MessageId>, WireError> {
        let trace = self.unknown().look(nonce);
        let method = match place.thread {
            Some(_) => "conversations.replies",
            None => "conversations.history",
        };
        let parameters = [
            ("channel", Some(place.channel.clone())),
            ("ts", place.thread.clone()),
            ("oldest", trace.since.as_deref().and_then(before)),
            ("limit", Some(LOOK_THROUGH.to_string())),
            ("include_all_metadata", Some("true".to_owned())),
        ];
        let page: Page = self
            .api()
            .get(method, &parameters)
            .await
            .map_err(|error| wire_error(method, error))?;
        let found = page.messages.into_iter().find(|one| one.is(nonce, &trace));
        self.unknown().forget(nonce);
        Ok(found.map(|one| MessageId(trace.file.unwrap_or(one.ts))))
    }
}

impl Slack {
    /// `chat.postMessage`, tried once.
    pub(crate) async fn post_message(
        &self,
        place: &Place,
        content: SlackMessageContent,
    ) -> Result<MessageId, WireError> {
        let method = "chat.postMessage";
        let request =
            SlackApiChatPostMessageRequest::new(SlackChannelId(place.channel.clone()), content)
                .opt_thread_ts(place.thread.clone().map(SlackTs))
                .with_unfurl_links(false)
                .with_unfurl_media(false);
        let posted: Posted = self
            .api()
            .post(method, &request)
            .await
            .map_err(|error| wire_error(method, error))?;
        self.saw(&posted.ts);
        Ok(MessageId(posted.ts))
    }

    async fn send_file(
        &self,
        place: &Place,
        text: &str,
        file: &OutFile,
        nonce: &str,
        since: Option<String>,
    ) -> Result<MessageId, WireError> {
        let id = self.upload(file).await?;
        let method = "files.completeUploadExternal";
        let complete = SlackApiFilesComplete::new(SlackFileId(id.clone()));
        let complete = complete.with_title(file.name.clone());
        let request = SlackApiFilesCompleteUploadExternalRequest::new(vec![complete])
            .with_channel_id(SlackChannelId(place.channel.clone()))
            .opt_initial_comment((!is_blank(text)).then(|| text.to_owned()))
            .opt_thread_ts(place.thread.clone().map(SlackTs));
        let done: Result<Done, WireError> = self
            .api()
            .post(method, &request)
            .await
            .map_err(|error| wire_error(method, error));
        if let Err(WireError::Uncertain(_)) = done {
            let file = Some(id.clone());
            self.unknown().keep(nonce, Trace { since, file });
        }
        done.map(|_| MessageId(id))
    }

    /// Brings a file to Slack, where nobody sees it yet; whatever fails, nothing was shown.
    async fn upload(&self, file: &OutFile) -> Result<String, WireError> {
        #[derive(Deserialize)]
        struct Upload {
            upload_url: String,
            file_id: String,
        }
        let unseen = |method: &str, error| match wire_error(method, error) {
            WireError::Uncertain(why) => WireError::NotDelivered(why),
            // These limits are the methods' own and no business of the messages in between.
            other => other,
        };
        let method = "files.getUploadURLExternal";
        let parameters = [
            ("filename", Some(file.name.clone())),
            ("length", Some(file.bytes.len().to_string())),
        ];
        let upload: Upload = self
            .api()
            .get(method, &parameters)
            .await
            .map_err(|error| unseen(method, error))?;
        self.api()
            .upload(&upload.upload_url, file.bytes.clone())
            .await
            .map_err(|error| unseen("the upload", error))?;
        Ok(upload.file_id)
    }
}

/// Whether buttons carry the text of their message, which Slack does not send back for private ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepText {
    Yes,
    No,
}

/// A body as `markdown_text`, or as blocks if it has buttons.
pub(crate) fn content(body: &Body, keep: &KeepText) -> SlackMessageContent {
    if body.buttons.is_empty() {
        return SlackMessageContent::new().with_markdown_text(body.text.clone());
    }
    let mut blocks: Vec<SlackBlock> = vec![SlackMarkdownBlock::new(body.text.clone()).into()];
    blocks.extend(buttons(&body.buttons, &body.text, *keep));
    SlackMessageContent::new()
        .with_text(body.text.clone())
        .with_blocks(blocks)
}

/// Rows of buttons under `text`.
pub(crate) fn buttons(buttons: &[Button], text: &str, keep: KeepText) -> Vec<SlackBlock> {
    let value = (keep == KeepText::Yes).then(|| kept(text));
    let element = |button: &Button| -> SlackActionBlockElement {
        let label = shorten(&button.label, LABEL_MAX, Unit::Utf16);
        SlackBlockButtonElement::new(SlackBlockPlainTextOnly::from(label))
            .with_action_id(SlackActionId(button.custom_id.clone()))
            .opt_value(value.clone())
            .into()
    };
    let rows = buttons.chunks(ELEMENTS_MAX);
    rows.map(|row| SlackActionsBlock::new(row.iter().map(element).collect()).into())
        .collect()
}

/// The most a button's `value` holds.
const VALUE_MAX: usize = 2_000;

/// As much of the text as a button can carry, escaped as it stood.
fn kept(text: &str) -> String {
    let short = shorten(&plain(text), VALUE_MAX - 1, Unit::SlackEscaped);
    platforms::escape::Dialect::Slack
        .disarm(&short)
        .into_owned()
}

/// A little before `ts`.
fn before(ts: &str) -> Option<String> {
    let seconds: f64 = ts.parse().ok()?;
    Some(format!("{:.6}", seconds - SLACK_OF_CLOCKS))
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    messages: Vec<Standing>,
}

/// A message that stands in a place.
#[derive(Deserialize)]
struct Standing {
    ts: String,
    metadata: Option<Metadata>,
    #[serde(default)]
    files: Vec<WithId>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    event_type: String,
    #[serde(default)]
    event_payload: serde_json::Value,
}

#[derive(Deserialize)]
struct WithId {
    id: String,
}

impl Standing {
    fn is(&self, nonce: &str, trace: &Trace) -> bool {
        if let Some(file) = &trace.file {
            return self.files.iter().any(|one| one.id == *file);
        }
        self.metadata.as_ref().is_some_and(|metadata| {
            metadata.event_type == MESSAGE_KIND
                && metadata.event_payload.get(NONCE) == Some(&nonce.into())
        })
    }
}
