//! One provider attempt: events are journalled, folded and shown as they come; its end is a value. Bounded in time twice,
//! by the provider and by a backstop here.

use std::time::Duration;

use gateway_core::event::{CallOutcome, Event};
use gateway_core::failure::{AttemptLimits, Failure, FailureKind, FailureScope};
use gateway_core::handoff::Handoff;
use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::handoff::render;
use gateway_core::ids::{AttemptId, HandoffId};
use gateway_core::journal::JournalEntry;
use gateway_core::turn::{Answer, AttemptEnd};
use providers::{AttemptHandle, AttemptRequest, Exchange};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Turn;
use super::rotation;
use crate::effects::Effects;
use crate::routing::{ride, running};
use crate::store::{ProviderSessionRow, StoreError};

/// Stands for the answer of an attempt that worked with tools and said nothing.
const NO_TEXT: &str = "(Done; no text came with it.)";

/// Over the provider's own deadline: how long it may take to reap what it started.
const BACKSTOP: Duration = Duration::from_secs(30);

/// Drives one attempt on the route at `position`. `Err` = the record is broken; the attempt was stopped and reaped.
pub async fn run(
    turn: &mut Turn,
    position: usize,
    effects: &Effects,
) -> Result<AttemptEnd, StoreError> {
    let Some(route) = turn.route(position).cloned() else {
        return Ok(AttemptEnd::Failed(gone(
            "this position is not in the chain",
        )));
    };
    turn.voice.settle();
    let Some(provider) = effects.providers.get(&route.subscription).cloned() else {
        turn.first_row.durable().await?;
        return Ok(AttemptEnd::Failed(gone(&format!(
            "{} could not be set up; see `baton doctor`",
            route.subscription
        ))));
    };
    let known = effects
        .store
        .provider_session(&turn.conversation, &route.subscription)
        .await?;
    let known = known.filter(|_| !turn.shared); // two writers of one session lose one branch
    let words = prompt(turn, known.as_ref(), provider.as_ref(), effects).await?;
    let keeps = provider.keeps_sessions();
    let (prompt, history) =
        rotation::opening(turn, &route, known.as_ref(), keeps, words, effects).await?;
    let (go, gate) = oneshot::channel();
    let attempt = AttemptId::new(uuid::Uuid::now_v7().to_string());
    turn.journal.record(JournalEntry::Attempt {
        attempt: attempt.clone(),
        route: route.clone(),
        at: effects.now(),
    });
    let limits = AttemptLimits {
        deadline: turn.profile.attempt_deadline,
        silence: turn.profile.silence,
    };
    running::attempt_begins(turn, position, effects).await;
    let seen = known.as_ref().map_or(0, |row| row.seen);
    let handle = provider.start(AttemptRequest {
        attempt,
        conversation: turn.conversation.clone(),
        model: route.model.clone(),
        session: known.map(|row| row.id),
        title: turn.rotation.title(),
        prompt,
        unseen: usize::try_from(turn.history_len.saturating_sub(seen))
            .unwrap_or(usize::MAX)
            .min(history.len()),
        history,
        workdir: turn.profile.workdir.clone(),
        permissions: turn.permissions,
        limits,
        go: gate,
    });
    turn.first_row.durable().await?; // an error drops the handle and the gate: nothing was sent
    let _ = go.send(()); // the provider may have ended already
    drive(turn, handle, &route.subscription, limits, effects).await
}

/// What another provider answered goes on without the secrets the gateway knows.
pub(super) fn known_only(history: &[Exchange], effects: &Effects) -> Vec<Exchange> {
    let clean = |text: &str| effects.redactor.redact_known(text).into_owned();
    let exchange = |exchange: &Exchange| Exchange {
        request: clean(&exchange.request),
        answer: clean(&exchange.answer),
    };
    history.iter().map(exchange).collect()
}

async fn drive(
    turn: &mut Turn,
    mut handle: AttemptHandle,
    subscription: &gateway_core::ids::SubscriptionId,
    limits: AttemptLimits,
    effects: &Effects,
) -> Result<AttemptEnd, StoreError> {
    let mut fold = Fold::default();
    turn.session = None;
    let (user_stop, shutdown) = (turn.stop.stop.clone(), turn.stop.shutdown.clone());
    let backstop = tokio::time::sleep(limits.deadline.saturating_add(BACKSTOP));
    tokio::pin!(backstop);
    let mut asked = false;
    let mut stopped = false; // by routing, at a boundary
    loop {
        if !stopped && turn.rider.as_ref().is_some_and(ride::Rider::has_stopped) {
            stopped = true;
            backstop
                .as_mut()
                .reset(tokio::time::Instant::now() + BACKSTOP);
        }
        let wake = turn.rider.as_ref().and_then(|rider| rider.wake);
        tokio::select! {
            event = handle.events.recv() => match event {
                Some(event) => if let Err(fault) = take(turn, &mut fold, event, subscription, &handle.stop, effects).await {
                    handle.stop.stop();
                    handle.events.close(); // nobody takes them: the driver must not wait for us
                    let _ = timeout(BACKSTOP, &mut handle.end).await; // reaped before the lane goes on
                    return Err(fault);
                },
                None => break,
            },
            () = async { tokio::select! { () = user_stop.stopped() => (), () = shutdown.stopped() => () } }, if !asked => {
                asked = true;
                handle.stop.stop();
                backstop.as_mut().reset(tokio::time::Instant::now() + BACKSTOP);
            }
            () = running::wakes(wake, effects) => running::tick(turn, &handle.stop, effects).await?,
            () = &mut backstop => {
                let end = if asked || stopped { AttemptEnd::Stopped } else { AttemptEnd::Failed(overdue()) };
                let end = running::end_of(turn, end);
                return ended(turn, fold, end, effects).await;
            }
        }
    }
    let end = match timeout(BACKSTOP, &mut handle.end).await {
        Ok(Ok(end)) => end,
        _ => AttemptEnd::Failed(gone("the provider's driver ended without a word")),
    };
    let end = if asked && !matches!(end, AttemptEnd::Answered(_)) {
        AttemptEnd::Stopped
    } else {
        end
    };
    let end = running::end_of(turn, end);
    ended(turn, fold, end, effects).await
}

/// Takes one event: into the record, to the person, and to routing. What a switch has to say comes before its first text;
/// everything else is on record before anything follows from it.
async fn take(
    turn: &mut Turn,
    fold: &mut Fold,
    event: Event,
    subscription: &gateway_core::ids::SubscriptionId,
    stop: &providers::Stop,
    effects: &Effects,
) -> Result<(), StoreError> {
    if turn.rider.is_none() {
        return apply(turn, fold, event, subscription, effects).await;
    }
    if matches!(event, Event::Text { .. }) {
        running::hears(turn, &event, stop, effects).await?;
        return apply(turn, fold, event, subscription, effects).await;
    }
    apply(turn, fold, event.clone(), subscription, effects).await?;
    running::hears(turn, &event, stop, effects).await
}

async fn apply(
    turn: &mut Turn,
    fold: &mut Fold,
    event: Event,
    subscription: &gateway_core::ids::SubscriptionId,
    effects: &Effects,
) -> Result<(), StoreError> {
    turn.journal.record_event(&event, effects);
    turn.journal.check()?;
    effects
        .plugins
        .observe(&turn.profile.id, &turn.row.turn, &event);
    match event {
        Event::Session { id } => {
            effects
                .store
                .note_provider_session(&turn.conversation, subscription, &id)
                .await?;
            turn.session = Some(id);
        }
        Event::Text { block, delta } => {
            fold.text(block, &delta);
            turn.voice.answer(&fold.whole()).await;
        }
        Event::Retract { from_block } => {
            fold.retract(from_block);
            turn.voice.answer(&fold.whole()).await;
        }
        Event::ToolCall {
            id,
            name,
            arguments,
        } => {
            turn.journal.flush(effects).await?; // a call that is shown is on disk: it may run, so it must never be forgotten
            let line = tool_line(&name, &effects.redactor.redact(&arguments), None);
            let at = turn.voice.tool(None, line).await;
            fold.calls.push((id, name, arguments, at));
        }
        Event::ToolResult { id, outcome, .. } => {
            if let Some((_, name, arguments, at)) =
                fold.calls.iter().rev().find(|call| call.0 == id).cloned()
            {
                let line = tool_line(&name, &effects.redactor.redact(&arguments), Some(outcome));
                turn.voice.tool(Some(at), line).await;
            }
        }
        Event::Usage(usage) => fold.usage = usage,
        Event::Limit(reading) => effects.registry.hear(vec![reading], effects.now()),
        Event::Todos(_) | Event::Activity { .. } => {}
    }
    Ok(())
}

async fn ended(
    turn: &mut Turn,
    fold: Fold,
    end: AttemptEnd,
    effects: &Effects,
) -> Result<AttemptEnd, StoreError> {
    if matches!(end, AttemptEnd::Failed(_)) {
        effects.registry.settled().await; // what this attempt heard decides where the turn goes next
    }
    let end = match end {
        AttemptEnd::Answered(answer) => answered(turn, fold, answer, effects).await,
        other => other,
    };
    let end = match end {
        AttemptEnd::Failed(failure) => AttemptEnd::Failed(Failure {
            detail: effects.redactor.redact(&failure.detail).into_owned(),
            ..failure
        }),
        other => other,
    };
    match &end {
        AttemptEnd::Failed(failure) => {
            turn.journal.release(effects);
            turn.journal.record(JournalEntry::Failed {
                failure: failure.clone(),
                at: effects.now(),
            });
        }
        AttemptEnd::Stopped if !turn.stop.stop.is_stopped() => {} // the gateway ends: sealed for the next start
        AttemptEnd::Stopped => {
            turn.journal.release(effects);
            turn.journal
                .record(JournalEntry::Stopped { at: effects.now() });
        }
        AttemptEnd::Answered(_) => {}
    }
    turn.journal.flush(effects).await?;
    Ok(end)
}

/// An answer that came without deltas is shown now; an empty one is no answer.
async fn answered(turn: &mut Turn, fold: Fold, answer: Answer, effects: &Effects) -> AttemptEnd {
    let streamed = fold.whole();
    let text = if streamed.trim().is_empty() {
        answer.text
    } else {
        streamed
    };
    if text.trim().is_empty() && fold.calls.is_empty() {
        let why = "the provider said it was done and sent no text";
        return AttemptEnd::Failed(Failure::new(
            FailureKind::Transport,
            FailureScope::Request,
            why,
        ));
    }
    let text = if text.trim().is_empty() {
        NO_TEXT.to_owned()
    } else {
        text
    };
    if fold.blocks.is_empty() {
        turn.journal.record_event(
            &Event::Text {
                block: 0,
                delta: text.clone(),
            },
            effects,
        );
    }
    turn.voice.answer(&text).await;
    AttemptEnd::Answered(Answer {
        text,
        usage: if fold.usage == Default::default() {
            answer.usage
        } else {
            fold.usage
        },
    })
}

/// What is sent as the user message. A first try carries the claimed handoffs; a try after one that left text or tool
/// calls carries the request and what happened so far instead, and nothing is replayed.
async fn prompt(
    turn: &Turn,
    known: Option<&ProviderSessionRow>,
    provider: &dyn providers::Provider,
    effects: &Effects,
) -> Result<String, StoreError> {
    if turn.journal.has_effects() {
        let cut = Cut {
            id: &HandoffId::new(turn.row.turn.as_str()),
            turn: &turn.row,
            entries: turn.journal.entries(),
            carried: &turn.carried,
            reason: turn
                .failure
                .as_ref()
                .map_or("provider failure", |failure| failure.kind.reason()),
            next_reset: None,
            now: effects.now(),
        };
        if let Some(so_far) = assemble(&cut) {
            let told = match &turn.rider {
                Some(_) => render::context_within(&so_far, running::room_for_context(turn)),
                None => render::context(&so_far),
            };
            let mut context = render::fill(&told, &so_far.request);
            mark(&mut context, turn.carried.iter().map(|handoff| &handoff.id));
            return Ok(effects.redactor.redact_known(&context).into_owned());
        }
    }
    let Some(context) = injection(turn, known, provider, effects).await? else {
        // The first route is sent the person's words as they are; another one without the secrets the gateway knows.
        let request = turn.row.request.clone();
        let verbatim = turn.failure.is_none();
        return Ok(if verbatim {
            request
        } else {
            effects.redactor.redact_known(&request).into_owned()
        });
    };
    Ok(format!(
        "{}\n\n{}",
        turn.row.request,
        effects.redactor.redact_known(&context)
    ))
}

/// The claimed handoffs' text, ending in one marker per handoff. What the session's transcript already holds (a process
/// died between claim and answer) is not said to it a second time.
async fn injection(
    turn: &Turn,
    known: Option<&ProviderSessionRow>,
    provider: &dyn providers::Provider,
    effects: &Effects,
) -> Result<Option<String>, StoreError> {
    let Some(advised) = &turn.injected else {
        return Ok(None);
    };
    let mut parts = Vec::new();
    let mut trimmed = false;
    for handoff in &turn.carried {
        let untold = match known {
            Some(row) => untold(handoff, row, provider, effects).await?,
            None => None,
        };
        trimmed |= untold.is_some();
        parts.extend(untold.unwrap_or_else(|| vec![(handoff.id.clone(), handoff.clone())]));
    }
    if parts.is_empty() && trimmed {
        return Ok(None);
    }
    let text = if trimmed {
        parts
            .iter()
            .map(|(_, handoff)| render::context(handoff))
            .collect::<Vec<_>>()
            .join("\n\n")
    } else {
        advised.clone()
    };
    let fill = |text: String, (_, handoff): &(_, Handoff)| render::fill(&text, &handoff.request);
    let mut text = parts.iter().fold(text, fill);
    mark(&mut text, parts.iter().map(|(id, _)| id));
    Ok(Some(text))
}

/// What the session was not told yet of a handoff and of those it merged: each cut turn on its own, oldest first. `None` =
/// it was told nothing, so the handoff is injected as advised.
async fn untold(
    handoff: &Handoff,
    row: &ProviderSessionRow,
    provider: &dyn providers::Provider,
    effects: &Effects,
) -> Result<Option<Vec<(HandoffId, Handoff)>>, StoreError> {
    let (mut own, mut told, mut looking) = (Vec::new(), false, vec![handoff.clone()]);
    while let Some(next) = looking.pop() {
        if provider.session_holds(&row.id, &marker(&next.id)).await == Some(true) {
            told = true; // and with it everything it had merged
            continue;
        }
        for id in effects
            .store
            .turn(&next.turn)
            .await?
            .map(|row| row.carries)
            .unwrap_or_default()
        {
            looking.extend(
                effects
                    .store
                    .handoff(&id)
                    .await?
                    .map(|stored| stored.handoff),
            );
        }
        own.push(next);
    }
    if !told {
        return Ok(None);
    }
    own.sort_by_key(|handoff| handoff.created_at);
    let mut parts = Vec::new();
    for handoff in own {
        let alone = super::recovery::reassemble_alone(&handoff, effects).await?;
        parts.push((handoff.id.clone(), alone.unwrap_or(handoff)));
    }
    Ok(Some(parts))
}

fn mark<'a>(text: &mut String, told: impl Iterator<Item = &'a HandoffId>) {
    for id in told {
        text.push('\n');
        text.push_str(&marker(id));
    }
}

/// The line by which a transcript shows that it was told of a handoff.
pub fn marker(id: &HandoffId) -> String {
    format!("[handoff {id}]")
}

fn tool_line(name: &str, arguments: &str, outcome: Option<CallOutcome>) -> String {
    let mark = match outcome {
        None => "…",
        Some(CallOutcome::Completed) => "✓",
        Some(CallOutcome::Failed) => "✗ failed",
        Some(CallOutcome::Denied) => "✗ denied",
        Some(CallOutcome::Cancelled) => "✗ cancelled",
        Some(CallOutcome::Unknown) => "? outcome unknown",
    };
    let short: String = arguments.chars().take(120).collect();
    let short = if short.len() < arguments.len() {
        format!("{short}…")
    } else {
        short
    };
    format!("🔧 {name} {short} {mark}")
}

fn gone(why: &str) -> Failure {
    Failure::new(FailureKind::Crashed, FailureScope::Account, why)
}

fn overdue() -> Failure {
    Failure::new(
        FailureKind::Timeout,
        FailureScope::Request,
        "the attempt outlived its deadline and was dropped",
    )
}

/// The attempt so far.
#[derive(Default)]
struct Fold {
    blocks: Vec<(u32, String)>,
    calls: Vec<(String, String, String, usize)>,
    usage: gateway_core::event::TokenUsage,
}

impl Fold {
    fn text(&mut self, block: u32, delta: &str) {
        match self.blocks.last_mut() {
            Some((same, text)) if *same == block => text.push_str(delta),
            _ => self.blocks.push((block, delta.to_owned())),
        }
    }

    fn retract(&mut self, from: u32) {
        self.blocks.retain(|(block, _)| *block < from);
    }

    /// Blocks are paragraphs of one answer. What was whole before stays a prefix when more comes.
    fn whole(&self) -> String {
        let mut whole = String::new();
        for (_, text) in &self.blocks {
            if !whole.is_empty() && !text.is_empty() {
                let newlines = whole.len() - whole.trim_end_matches('\n').len();
                whole.push_str("\n\n".get(newlines.min(2)..).unwrap_or_default());
            }
            whole.push_str(text);
        }
        whole
    }
}
