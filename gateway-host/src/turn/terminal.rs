//! The end of a turn: exactly one visible outcome. An answered turn acks what it carried; a cut one is sealed (by the
//! plugin's advice, else by the host from the same journal) and says what was lost and what was not; a stopped one is
//! sealed quietly. Fails loud: if the seal cannot be written, the person is told that nothing was saved.

use std::sync::Arc;

use gateway_core::cooling;
use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::handoff::{Handoff, HandoffState, render};
use gateway_core::ids::HandoffId;
use gateway_core::journal::TurnStatus;
use gateway_core::notice::{self, Spent};
use gateway_core::turn::{Answer, Outcome};
use gateway_core::walk::{GiveUp, Standing, Walk};
use jiff::Timestamp;
use providers::Exchange;
use tracing::{info, warn};

use super::Turn;
use crate::effects::Effects;
use crate::plugins::facts::{TerminalAdvice, TerminalFacts};
use crate::store::{Carried, StoreError, TurnClose};

/// The name under which the handoff plugin is switched on or off.
pub const HANDOFF_PLUGIN: &str = "handoff";

/// Closes an answered turn.
pub async fn answered(
    mut turn: Turn,
    walk: &Walk,
    answer: Answer,
    effects: &Effects,
) -> Result<Outcome, StoreError> {
    turn.voice.finish().await;
    let position = walk
        .standings()
        .iter()
        .position(|standing| *standing == Standing::Answered);
    let route = position.and_then(|at| turn.route(at)).cloned();
    let mut exchanges: Vec<Exchange> = turn.carried.iter().map(cut_exchange).collect();
    exchanges.push(Exchange {
        request: turn.row.request.clone(),
        answer: effects.redactor.redact(&turn.voice.whole()).into_owned(),
    });
    let session = route
        .as_ref()
        .and_then(|route| Some((route.subscription.clone(), turn.session.clone()?)));
    let close = TurnClose {
        turn: turn.row.turn.clone(),
        status: TurnStatus::Answered,
        at: effects.now(),
        seal: None,
        carried: Carried::Acked,
        exchanges,
        answered_by: route.clone(),
        session,
    };
    if let Err(fault) = effects.store.close_turn(&close).await {
        warn!(turn = %turn.row.turn, %fault, "an answer could not be recorded");
        let say = format!(
            "⚠️ The answer above could not be recorded: {fault}. The next message may bring it up again."
        );
        turn.voice.notice(&say).await;
        return Ok(Outcome::Cut {
            reason: "the store".to_owned(),
            handoff: None,
            next_reset: None,
        });
    }
    if !turn.carried.is_empty() {
        effects.mirror(&turn.lane).await;
    }
    let Some(route) = route else {
        return Ok(Outcome::Stopped);
    };
    if !turn.routed {
        turn.voice.add_to_status(&notice::answered_by(&route)).await;
    }
    if let Some(entry) = position.and_then(|at| turn.chain.entries.get(at)) {
        effects
            .registry
            .answered(&entry.slug, entry.route.model.as_str(), effects.now())
            .await;
    }
    effects.cooling.served(&route);
    for remark in std::mem::take(&mut turn.remarks) {
        turn.voice.tool(None, remark).await; // not a notice: the answer is the turn's one outcome
    }
    info!(turn = %turn.row.turn, %route, tokens = ?answer.usage, "answered");
    Ok(Outcome::Answered { route })
}

/// A cut turn whose remains were carried becomes part of the conversation once they are answered.
fn cut_exchange(handoff: &Handoff) -> Exchange {
    let answer = if handoff.progress.is_empty() {
        "(cut before an answer)"
    } else {
        &handoff.progress
    };
    Exchange {
        request: handoff.request.clone(),
        answer: answer.to_owned(),
    }
}

/// Closes a turn the person stopped, or one that the gateway's own end cut.
pub async fn stopped(mut turn: Turn, effects: &Effects) -> Result<Outcome, StoreError> {
    turn.first_row.durable().await?;
    if turn.stop.shutdown.is_stopped() && !turn.stop.stop.is_stopped() {
        let (handoff, _) = seal(&mut turn, "the gateway was shut down", None, effects).await?;
        turn.voice
            .notice(&cut_notice("the gateway was shut down", handoff.as_ref()))
            .await;
        let handoff = handoff.map(|handoff| handoff.id);
        return Ok(Outcome::Cut {
            reason: "the gateway was shut down".to_owned(),
            handoff,
            next_reset: None,
        });
    }
    turn.journal.flush(effects).await?;
    let saved = handoffs_on(&turn, effects)
        .then(|| host_seal(&turn, "your stop", None, effects))
        .flatten();
    let carried = if saved.is_some() {
        Carried::Chained
    } else {
        Carried::Released
    };
    close(
        &turn,
        TurnStatus::Stopped,
        saved.map(|handoff| (handoff, HandoffState::Stopped)),
        carried,
        effects,
    )
    .await?;
    turn.voice.notice("⏹️ Stopped.").await;
    Ok(Outcome::Stopped)
}

/// Closes a turn that goes on by itself later: what was in flight is saved, and one sentence says when it goes on.
pub async fn parked(
    mut turn: Turn,
    say: &str,
    until: Option<Timestamp>,
    effects: &Effects,
) -> Result<Outcome, StoreError> {
    turn.first_row.durable().await?;
    let reason = turn
        .failure
        .as_ref()
        .map_or("rate limit", |failure| failure.kind.reason())
        .to_owned();
    let (handoff, _) = seal(&mut turn, &reason, until, effects).await?;
    if !turn.voice.whole().is_empty() {
        turn.voice.finish().await;
    }
    turn.voice.status(&format!("⏳ {say}")).await;
    let handoff = handoff.map(|handoff| handoff.id);
    info!(turn = %turn.row.turn, ?until, handoff = ?handoff, "waits");
    Ok(Outcome::Cut {
        reason,
        handoff,
        next_reset: until,
    })
}

/// Closes a turn that nothing answered.
pub async fn cut(
    mut turn: Turn,
    walk: &Walk,
    why: GiveUp,
    effects: &Effects,
) -> Result<Outcome, StoreError> {
    turn.first_row.durable().await?;
    let now = effects.now();
    let reason = turn
        .failure
        .as_ref()
        .map_or_else(|| reason_of(&why), |failure| failure.kind.reason())
        .to_owned();
    let next_reset = walk.soonest_reset();
    let text = closing_text(&turn, walk, &why, now);
    let (handoff, advice) = seal(&mut turn, &reason, next_reset, effects).await?;
    let text = match &advice.append {
        Some(more) => format!("{text}\n\n{more}"),
        None => text,
    };
    if !turn.voice.whole().is_empty() {
        turn.voice.finish().await;
    }
    turn.voice.notice(&text).await;
    if let Some(notice) = notice_text(&turn, &reason, handoff.as_ref(), &advice, effects) {
        turn.voice.notice(&notice).await;
    }
    let handoff = handoff.map(|handoff| handoff.id);
    info!(turn = %turn.row.turn, %reason, handoff = ?handoff, "cut");
    Ok(Outcome::Cut {
        reason,
        handoff,
        next_reset,
    })
}

/// Seals what is worth saving and closes the turn. The plugin advises; the host writes, and seals by itself if the
/// plugin is switched on but gave no word.
async fn seal(
    turn: &mut Turn,
    reason: &str,
    next_reset: Option<Timestamp>,
    effects: &Effects,
) -> Result<(Option<Handoff>, TerminalAdvice), StoreError> {
    turn.journal.flush(effects).await?;
    turn.facts.now = effects.now();
    let facts = TerminalFacts {
        turn: turn.facts.clone(),
        row: turn.row.clone(),
        entries: turn.journal.entries().to_vec(),
        carried: turn.carried.clone(),
        reason: reason.to_owned(),
        next_reset,
        handoff: HandoffId::new(uuid::Uuid::now_v7().to_string()),
    };
    let advice = effects
        .plugins
        .on_terminal(&turn.profile.id, Arc::new(facts))
        .await;
    let mut handoff = advice
        .seal
        .clone()
        .map(|handoff| effects.redactor.remains(handoff));
    if handoff.is_none() && handoffs_on(turn, effects) {
        handoff = host_seal(turn, reason, next_reset, effects);
    }
    let carried = if handoff.is_some() {
        Carried::Chained
    } else {
        Carried::Released
    };
    let status = if handoff.is_some() {
        TurnStatus::Cut
    } else {
        TurnStatus::Failed
    };
    let stopped = turn.stop.stop.is_stopped(); // the stop may have come while the plugins were asked
    let state = if stopped {
        HandoffState::Stopped
    } else {
        HandoffState::Armed
    };
    let sealed = handoff.clone().map(|handoff| (handoff, state));
    if let Err(error) = close(turn, status, sealed, carried, effects).await {
        warn!(turn = %turn.row.turn, %error, "the handoff could not be saved; the journal stays open");
        let text = format!(
            "⚠️ The handoff could not be saved: {error}. What is on disk so far is picked up at the next start."
        );
        turn.voice.notice(&text).await;
        return Ok((
            None,
            TerminalAdvice {
                notice: Vec::new(),
                ..advice
            },
        ));
    }
    Ok((handoff, advice))
}

fn host_seal(
    turn: &Turn,
    reason: &str,
    next_reset: Option<Timestamp>,
    effects: &Effects,
) -> Option<Handoff> {
    let sealed = assemble(&Cut {
        id: &HandoffId::new(uuid::Uuid::now_v7().to_string()),
        turn: &turn.row,
        entries: turn.journal.entries(),
        carried: &turn.carried,
        reason,
        next_reset,
        now: effects.now(),
    });
    sealed.map(|handoff| effects.redactor.remains(handoff))
}

async fn close(
    turn: &Turn,
    status: TurnStatus,
    seal: Option<(Handoff, HandoffState)>,
    carried: Carried,
    effects: &Effects,
) -> Result<(), StoreError> {
    let close = TurnClose {
        turn: turn.row.turn.clone(),
        status,
        at: effects.now(),
        seal,
        carried,
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    };
    effects.store.close_turn(&close).await?;
    effects.mirror(&turn.lane).await;
    Ok(())
}

/// Whether handoffs are switched on for the turn's profile, healthy or not.
fn handoffs_on(turn: &Turn, effects: &Effects) -> bool {
    effects.plugins.enabled(&turn.profile.id, HANDOFF_PLUGIN)
}

fn notice_text(
    turn: &Turn,
    reason: &str,
    handoff: Option<&Handoff>,
    advice: &TerminalAdvice,
    effects: &Effects,
) -> Option<String> {
    match (handoff, advice.notice.is_empty()) {
        (Some(_), false) if advice.seal.is_some() => Some(advice.notice.join("\n")),
        (Some(handoff), false) => Some(format!(
            "{}\n{}",
            render::notice(handoff),
            advice.notice.join("\n")
        )),
        (Some(handoff), true) => Some(render::notice(handoff)),
        (None, _) if handoffs_on(turn, effects) => None,
        (None, _) => Some(cut_notice(reason, None)),
    }
}

fn cut_notice(reason: &str, handoff: Option<&Handoff>) -> String {
    handoff.map_or_else(|| format!("⛔ Turn cut — {reason}."), render::notice)
}

fn reason_of(why: &GiveUp) -> &'static str {
    match why {
        GiveUp::KnownSpent | GiveUp::FallbacksSpent => "rate limit",
        GiveUp::EmptyChain => "no route is configured",
        GiveUp::LockedOut => "authentication failed",
        GiveUp::NetworkDown | GiveUp::ChainEnded | GiveUp::NotRetryable | GiveUp::Stopped => {
            "provider failure"
        }
    }
}

/// What happened, and when it gets better.
fn closing_text(turn: &Turn, walk: &Walk, why: &GiveUp, now: Timestamp) -> String {
    let head = turn
        .failure
        .as_ref()
        .map(|failure| notice::failed(failure, turn.journal.route()));
    let quota = turn
        .failure
        .as_ref()
        .is_none_or(|failure| failure.kind.is_quota());
    let closing = match why {
        GiveUp::FallbacksSpent => Some(notice::closing_line(
            Spent::PerRegistry,
            walk.soonest_skipped(),
            now,
        )),
        GiveUp::KnownSpent => Some(notice::closing_line(
            Spent::Tried,
            walk.soonest_reset(),
            now,
        )),
        GiveUp::ChainEnded if quota => Some(notice::closing_line(
            Spent::Tried,
            walk.soonest_reset(),
            now,
        )),
        GiveUp::EmptyChain => {
            Some("No route is configured for this profile; add one to its `chain`.".to_owned())
        }
        GiveUp::NetworkDown => Some(notice::network_down().to_owned()),
        GiveUp::ChainEnded | GiveUp::LockedOut | GiveUp::NotRetryable | GiveUp::Stopped => None,
    };
    let logins = logins_refused(turn, walk);
    let parts: Vec<String> = head.into_iter().chain(closing).chain(logins).collect();
    if parts.is_empty() {
        "Nothing answered.".to_owned()
    } else {
        parts.join("\n\n")
    }
}

/// What the operator has to do about logins that are refused; `None` = nothing.
fn logins_refused(turn: &Turn, walk: &Walk) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for (position, standing) in walk.standings().iter().enumerate() {
        let refused = match standing {
            Standing::LockedOut => true,
            Standing::Failed(failure) => {
                cooling::lesson(failure, turn.facts.now) == cooling::Lesson::LoginRefused
            }
            _ => false,
        };
        if let Some(route) = turn.route(position).filter(|_| refused) {
            names.push(route.subscription.as_str());
        }
    }
    names.dedup();
    (!names.is_empty()).then(|| notice::locked_out(&names))
}
