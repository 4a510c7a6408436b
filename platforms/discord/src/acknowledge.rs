//! The first answer to a command or a press, before anything else is done with it: Discord waits 3 s for that.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::message::Audience;
use platforms::adapter::Heard;
use serenity::http::{LightMethod, Route};
use serenity::model::id;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::Core;
use crate::body;
use crate::event::Interaction;
use crate::inbound::{self, Me};
use crate::refusal::Trouble;
use crate::settings::snowflake;

/// What is left of the 3 s when the event has arrived, with room to spare.
const ACK_WITHIN: Duration = Duration::from_millis(2_700);

/// One try.
const ACK_TRY: Duration = Duration::from_millis(1_200);

/// Acknowledges a command or a press and hands it on; one that cannot be acknowledged any more is lost, and counted.
pub(crate) async fn acknowledge(
    core: Arc<Core>,
    me: Me,
    asked: Box<Interaction>,
    heard: mpsc::Sender<Heard>,
) {
    let began = Instant::now();
    let parent = snowflake(&asked.channel_id)
        .and_then(|channel| core.rooms.lock().room(channel)?.parent.clone());
    let prefix = &core.settings.command_prefix;
    let Some(told) = inbound::interaction(&asked, &me, parent.as_deref(), prefix) else {
        return; // an autocompletion, a form: nothing of ours asks for those
    };
    let private = match asked.kind {
        Interaction::COMMAND => {
            let name = asked.data.as_ref().map_or("", |data| &data.name);
            let name = inbound::command_name(name, prefix);
            Some(core.audience(name) == Audience::Asker)
        }
        _ => None,
    };
    match first_answer(&core, &asked, private).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(trouble) => {
            core.pulse.gap();
            warn!(id = %asked.id, %trouble, "a command or press could not be acknowledged and is lost");
            return;
        }
    }
    if let Some(id) = snowflake(&asked.id) {
        let token = asked.token.clone();
        core.asked.lock().note(id, token, private, began);
    }
    // The host has gone; nothing can be done with it.
    let _ = heard.send(told).await;
}

/// Whether it is ours to answer now; `false` = somebody else has.
async fn first_answer(
    core: &Core,
    asked: &Interaction,
    private: Option<bool>,
) -> Result<bool, Trouble> {
    let until = Instant::now() + ACK_WITHIN;
    let shown = private.map_or_else(body::deferred_update, body::deferred_answer);
    let Some(id) = snowflake(&asked.id) else {
        return Ok(false);
    };
    let route = Route::InteractionResponse {
        interaction_id: id::InteractionId::new(id),
        token: &asked.token.0,
    };
    let request = body::request(route, LightMethod::Post, &shown, None);
    let mut tried_before = false;
    loop {
        let tried = timeout(ACK_TRY, core.rest.once(request.clone())).await;
        let trouble = match tried {
            Ok(Ok(_)) => return Ok(true),
            // Already acknowledged: by a try of ours whose answer was lost, or by another program with this token.
            Ok(Err(Trouble::Refused(refusal))) if refusal.code == 40_060 => {
                return Ok(tried_before);
            }
            Ok(Err(Trouble::Refused(refusal))) => return Err(Trouble::Refused(refusal)),
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble::Uncertain("no answer in time".to_owned()),
        };
        tried_before |= matches!(trouble, Trouble::Uncertain(_));
        let wait = match &trouble {
            Trouble::Limited { after, .. } => after.unwrap_or(ACK_WITHIN),
            _ => Duration::from_millis(100),
        };
        if Instant::now() + wait >= until {
            return Err(trouble);
        }
        sleep(wait).await;
    }
}
