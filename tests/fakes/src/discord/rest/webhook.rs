//! Interactions: the first answer, `@original`, follow-ups. The token in the path is the login.

use serde_json::{Value, json};

use super::message::{draft, is_empty};
use super::{Call, Done};
use crate::discord::ids::MessageId;
use crate::discord::interaction::{
    Callback, FIRST_ANSWER_WITHIN, FirstAnswer, Interaction, TOKEN_LIVES,
};
use crate::discord::payload;
use crate::discord::refusal::Refusal;
use crate::discord::world::{Draft, World};

const EPHEMERAL: u64 = 64;

pub(super) fn route(world: &mut World, call: &Call) -> Result<Done, Refusal> {
    let parts = call.parts();
    match (call.method.as_str(), parts.as_slice()) {
        ("POST", ["interactions", id, token, "callback"]) => first(world, call, id, token),
        (method, ["webhooks", application, token, rest @ ..]) => {
            if *application != world.application.to_string() {
                return Err(Refusal::unknown_webhook());
            }
            let interaction = live(world, token)?;
            match (method, rest) {
                ("POST", []) => follow_up(world, call, &interaction),
                (_, ["messages", id]) => existing(world, call, &interaction, id),
                _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
            }
        }
        _ => Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
}

fn first(world: &mut World, call: &Call, id: &str, token: &str) -> Result<Done, Refusal> {
    let now = world.now();
    let interaction = world.interactions.get(token).cloned();
    let interaction = interaction
        .filter(|known| known.id.to_string() == id)
        .ok_or_else(Refusal::unknown_interaction)?;
    if interaction.first.is_some() {
        return Err(Refusal::already_acknowledged());
    }
    let after = interaction.age(now);
    if after > FIRST_ANSWER_WITHIN {
        return Err(Refusal::unknown_interaction());
    }
    let body = call.body();
    let invalid = |why: &str| Refusal::invalid_form(&[why.to_owned()]);
    let kind = body["type"]
        .as_u64()
        .and_then(Callback::from_wire)
        .ok_or_else(|| invalid("/type: not an answer to this"))?;
    let on_button = interaction.kind == 3;
    if matches!(kind, Callback::DeferredUpdate | Callback::Update) && !on_button {
        return Err(invalid(
            "/type: only a component's interaction can be answered by an update",
        ));
    }
    let data = &body["data"];
    let ephemeral = data["flags"].as_u64().unwrap_or_default() & EPHEMERAL != 0;
    let mut wanted = draft(world, call, data);
    if kind == Callback::Message && is_empty(&wanted) {
        return Err(Refusal::empty_message());
    }
    let original = match kind {
        Callback::Message | Callback::DeferredMessage => {
            wanted.loading = kind == Callback::DeferredMessage;
            Some(post(world, &interaction, wanted, ephemeral))
        }
        Callback::Update => {
            if let Some(on) = interaction.on {
                world.edit(on, wanted);
            }
            interaction.on
        }
        Callback::DeferredUpdate => interaction.on,
        Callback::Autocomplete | Callback::Modal => None,
    };
    let ephemeral = ephemeral && matches!(kind, Callback::Message | Callback::DeferredMessage);
    if let Some(known) = world.interactions.get_mut(token) {
        known.first = Some(FirstAnswer {
            kind,
            after,
            ephemeral,
            data: data.clone(),
        });
        known.original = original;
    }
    if call.query("with_response") != Some("true") {
        return Ok((204, None));
    }
    Ok((
        200,
        Some(with_response(
            world,
            &interaction,
            kind,
            original,
            ephemeral,
        )),
    ))
}

fn with_response(
    world: &World,
    interaction: &Interaction,
    kind: Callback,
    original: Option<MessageId>,
    ephemeral: bool,
) -> Value {
    let mut answer = json!({ "interaction": {
        "id": interaction.id.to_string(), "type": interaction.kind, "channel_id": interaction.channel.to_string(),
        "response_message_loading": kind == Callback::DeferredMessage, "response_message_ephemeral": ephemeral,
    }});
    if let Some(id) = original {
        answer["interaction"]["response_message_id"] = json!(id.to_string());
        let kind = match kind {
            Callback::Message => Some(4),
            Callback::Update => Some(7),
            _ => None,
        };
        if let Some(kind) = kind {
            answer["resource"] =
                json!({ "type": kind, "message": payload::message(world, &world.messages[&id]) });
        }
    }
    answer
}

/// The interaction behind a token that still lives and was answered once.
fn live(world: &World, token: &str) -> Result<Interaction, Refusal> {
    let interaction = world
        .interactions
        .get(token)
        .ok_or_else(Refusal::unknown_webhook)?;
    if interaction.age(world.now()) > TOKEN_LIVES {
        return Err(Refusal::expired_token());
    }
    if interaction.first.is_none() {
        return Err(Refusal::unknown_webhook());
    }
    Ok(interaction.clone())
}

fn follow_up(world: &mut World, call: &Call, interaction: &Interaction) -> Result<Done, Refusal> {
    let wanted = draft(world, call, call.body());
    if is_empty(&wanted) {
        return Err(Refusal::empty_message());
    }
    // The first follow-up to a deferred answer becomes that answer and takes its visibility.
    let waits = |id: &MessageId| world.messages[id].loading && !world.messages[id].deleted;
    let loading = interaction.original.filter(waits);
    let id = match loading {
        Some(original) => {
            world.edit(
                original,
                Draft {
                    from_interaction: origin(interaction),
                    ..wanted
                },
            );
            original
        }
        None => {
            let ephemeral = wanted.flags & EPHEMERAL != 0;
            let id = post(world, interaction, wanted, ephemeral);
            if let Some(known) = world.interactions.get_mut(&interaction.token) {
                known.followups.push(id);
            }
            id
        }
    };
    Ok((200, Some(payload::message(world, &world.messages[&id]))))
}

fn existing(
    world: &mut World,
    call: &Call,
    interaction: &Interaction,
    id: &str,
) -> Result<Done, Refusal> {
    let id = match id {
        "@original" => interaction.original,
        id => id
            .parse()
            .ok()
            .filter(|id| interaction.followups.contains(id) || interaction.original == Some(*id)),
    };
    let id = id
        .filter(|id| !world.messages[id].deleted)
        .ok_or_else(Refusal::unknown_message)?;
    match call.method.as_str() {
        "GET" => {}
        "PATCH" => {
            let wanted = draft(world, call, call.body());
            world.edit(
                id,
                Draft {
                    from_interaction: origin(interaction),
                    ..wanted
                },
            );
        }
        "DELETE" => {
            world.delete(id);
            return Ok((204, None));
        }
        _ => return Err(Refusal::new(501, 0, "the fake does not serve this route")),
    }
    Ok((200, Some(payload::message(world, &world.messages[&id]))))
}

fn post(world: &mut World, interaction: &Interaction, wanted: Draft, ephemeral: bool) -> MessageId {
    let only_for = ephemeral.then_some(interaction.asker);
    let draft = Draft {
        only_for,
        from_interaction: origin(interaction),
        ..wanted
    };
    world.post(interaction.channel, world.bot, draft)
}

fn origin(interaction: &Interaction) -> Option<(u64, crate::discord::ids::UserId, u8)> {
    Some((interaction.id, interaction.asker, interaction.kind))
}
