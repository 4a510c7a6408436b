//! Runs a slash command: fills the view it reads, performs the effects it asks for, shows what it says.

use std::sync::Arc;

use commands::{EarlierConversation, EntryState, PluginLine, RunningTurn, Serving, Verdict, View};
use gateway_core::action::{ActionId, ActionKind, Offer, UNDO_FOR};
use gateway_core::command::{CommandEffect, CommandReply};
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{ConversationId, HandoffId};
use gateway_core::message::{Button, Inbound};
use gateway_core::plan::{EntryVerdict, GateSettings, judge};
use gateway_core::route::{Chain, ChainEntry};
use gateway_core::usage::probe::Occasion;
use gateway_core::walk::usable;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::delivery;
use crate::effects::Effects;
use crate::plugins::commands::Brought;
use crate::plugins::facts::CommandFacts;
use crate::routing;
use crate::sessions::Sessions;
use crate::store::{Lane, SessionRow, StoreError};
use crate::turn::prologue::chain_of;
use crate::turn::terminal::HANDOFF_PLUGIN;
use crate::usage::Evidence;

/// Answers one command.
pub async fn run(
    inbound: &Inbound,
    name: &str,
    args: &str,
    sessions: &Arc<Sessions>,
    effects: &Arc<Effects>,
) -> Result<(), StoreError> {
    let lane = Lane {
        profile: inbound.profile.clone(),
        session: inbound.session.clone(),
    };
    let busy = sessions.busy(&lane);
    if busy.is_some() && commands::find(name).is_some_and(|command| !command.spec.while_busy) {
        let say = format!("/{name} has to wait until the running turn has ended; /stop ends it.");
        delivery::reply(
            effects,
            &inbound.target,
            &say,
            gateway_core::message::Audience::Asker,
        )
        .await;
        return Ok(());
    }
    // A disk that takes nothing must not keep people from looking.
    if let Err(fault) = crate::turn::recovery::seal_left_on(&lane, false, effects).await {
        tracing::warn!(%fault, "what a dead gateway left could not be sealed yet");
    }
    let mut view = view(inbound, &lane, sessions, effects).await?;
    let mut brought = effects.plugins.commands(&lane.profile).iter();
    if let Some(brought) = brought.find(|one| one.spec.name.eq_ignore_ascii_case(name)) {
        return ask_plugin(*brought, args, inbound, &view, effects).await;
    }
    if commands::looks_back(name) {
        look_back(&mut view, inbound, &lane, effects).await?;
    }
    let reply = commands::dispatch(name, args, &view);
    let (text, buttons) = carry_out(&reply, inbound, &lane, sessions, effects).await?;
    delivery::reply_with(effects, &inbound.target, &text, reply.audience, buttons).await;
    if commands::find(name).is_some_and(|command| command.spec.name == "usage") {
        freshen(&view, effects);
    }
    Ok(())
}

/// Asks for what is not fresh, without anybody waiting: who looks again soon finds it.
fn freshen(view: &View, effects: &Arc<Effects>) {
    let shown = view
        .chain
        .iter()
        .map(|entry| entry.route.subscription.clone());
    let shown: Vec<_> = shown.collect();
    let probes = Arc::clone(&effects.probes);
    tokio::spawn(async move { probes.ask(shown, Occasion::Demand).await });
}

/// Has the plugin a command is from answer it. Nothing it says can do more than a person's own command could.
async fn ask_plugin(
    brought: Brought,
    args: &str,
    inbound: &Inbound,
    view: &View,
    effects: &Effects,
) -> Result<(), StoreError> {
    let (name, plugin) = (brought.spec.name, brought.plugin);
    if brought.spec.operators_only && !view.is_operator() {
        let say = format!("/{name} is for operators only.");
        delivery::reply(effects, &inbound.target, &say, brought.spec.audience).await;
        return Ok(());
    }
    let facts = CommandFacts {
        name: name.to_owned(),
        argument: args.trim().to_owned(),
        profile: inbound.profile.clone(),
        session: inbound.session.clone(),
        user: inbound.sender.id.clone(),
        target: inbound.target.clone(),
        now: view.now,
        documents: view.handoffs.clone(),
    };
    let advice = effects.plugins.on_command(brought, Arc::new(facts)).await;
    let say = match advice {
        Some(advice) => {
            for id in &advice.discards {
                discard(id, effects).await?;
            }
            advice
                .text
                .unwrap_or_else(|| format!("/{name} has nothing to say."))
        }
        None => format!(
            "The plugin {plugin}, which brings /{name}, did not answer. /plugins shows operators how it fares."
        ),
    };
    delivery::reply(effects, &inbound.target, &say, brought.spec.audience).await;
    Ok(())
}

/// Performs the effects, and says with which words and buttons the reply goes out. What a button does is in the store
/// before anybody can press it.
async fn carry_out(
    reply: &CommandReply,
    inbound: &Inbound,
    lane: &Lane,
    sessions: &Arc<Sessions>,
    effects: &Effects,
) -> Result<(String, Vec<Button>), StoreError> {
    let (mut text, mut buttons) = (reply.text.clone(), Vec::new());
    for effect in &reply.effects {
        match (effect, undo_of(reply, inbound, effects)) {
            (CommandEffect::ChooseRoute(route), Some(offer)) => {
                effects
                    .store
                    .choose_route_undoably(lane, route.as_ref(), &offer)
                    .await?;
                routing::word::chose(lane, inbound, effects).await?;
                buttons.push(Button {
                    label: offer.id.kind().label().to_owned(),
                    custom_id: offer.id.to_string(),
                });
            }
            _ => {
                if let Some(instead) = perform(effect, inbound, lane, sessions, effects).await? {
                    text = instead;
                }
            }
        }
    }
    Ok((text, buttons))
}

/// The undo a reply asks for; `None` = it asks for none, or it is shown where nothing can be pressed.
fn undo_of(reply: &CommandReply, inbound: &Inbound, effects: &Effects) -> Option<Offer> {
    let kind = ActionKind::UndoModel;
    let platform = effects.platforms.get(inbound.target.platform.as_str())?;
    if !reply.buttons.contains(&kind) || !platform.has_buttons() {
        return None;
    }
    let now = effects.now();
    Some(Offer {
        id: ActionId::new(kind, &uuid::Uuid::new_v4().simple().to_string())?,
        platform: inbound.target.platform.clone(),
        only_for: Some(inbound.sender.id.clone()),
        made_at: now,
        expires_at: now + UNDO_FOR,
    })
}

/// Does one thing a command asked for. `Some` = it came to nothing, and this is said instead of the reply.
async fn perform(
    effect: &CommandEffect,
    inbound: &Inbound,
    lane: &Lane,
    sessions: &Arc<Sessions>,
    effects: &Effects,
) -> Result<Option<String>, StoreError> {
    match effect {
        CommandEffect::NewConversation => {
            let left = effects.store.session(lane, effects.now()).await?;
            routing::resume::leave(&left.conversation, effects).await?;
            effects.store.new_conversation(lane, effects.now()).await?;
            effects.mirror(lane).await;
        }
        CommandEffect::StopTurn => drop(sessions.stop(lane)),
        CommandEffect::ChooseRoute(route) => {
            effects.store.choose_route(lane, route.as_ref()).await?;
            routing::word::chose(lane, inbound, effects).await?;
        }
        CommandEffect::ResumeConversation(id) => {
            let left = effects.store.session(lane, effects.now()).await?;
            if effects.store.resume_conversation(lane, id).await?.is_none() {
                let gone = "That conversation is not there any more; nothing was changed. `/resume` lists those that are.";
                return Ok(Some(gone.to_owned()));
            }
            if left.conversation != *id {
                routing::resume::leave(&left.conversation, effects).await?;
            }
            effects.mirror(lane).await;
        }
        CommandEffect::Discard(id) => return Ok(discard(id, effects).await?.map(str::to_owned)),
        CommandEffect::SwitchBack => {
            let said = routing::word::switch_back(lane, inbound, effects).await?;
            return Ok(Some(said));
        }
        CommandEffect::PauseRouting(on) => {
            routing::word::pause(*on, lane, inbound, effects).await?;
        }
    }
    Ok(None)
}

/// Drops a handoff of whatever lane, if it still stands as it did when it was looked at.
async fn discard(id: &HandoffId, effects: &Effects) -> Result<Option<&'static str>, StoreError> {
    const CHANGED: &str =
        "It has just changed; nothing was dropped. `/handoffs` shows how it stands now.";
    let Some(stored) = effects.store.handoff(id).await? else {
        return Ok(Some(CHANGED));
    };
    let moved = effects
        .store
        .move_handoff(id, stored.revision, HandoffState::Discarded)
        .await?;
    let lane = Lane {
        profile: stored.handoff.profile,
        session: stored.handoff.session,
    };
    effects.mirror(&lane).await;
    Ok((!moved).then_some(CHANGED))
}

/// Adds what only a few commands look at: earlier conversations of the lane, and saved handoffs of every lane.
async fn look_back(
    view: &mut View,
    inbound: &Inbound,
    lane: &Lane,
    effects: &Effects,
) -> Result<(), StoreError> {
    let waiting: Vec<ConversationId> = effects
        .store
        .handoffs_of(lane)
        .await?
        .into_iter()
        .filter(|stored| stored.standing(view.now) == HandoffState::Armed)
        .map(|stored| stored.handoff.conversation)
        .collect();
    let earlier = effects.store.earlier_conversations(lane).await?;
    view.earlier = earlier
        .into_iter()
        .map(|row| EarlierConversation {
            has_handoff: waiting.contains(&row.conversation),
            id: row.conversation,
            number: row.number,
            started_at: row.started_at,
            used_at: row.used_at,
            exchanges: row.exchanges,
            first_request: effects.redactor.redact(&row.first_request).into_owned(),
        })
        .collect();
    let (platform, sender) = (&inbound.target.platform, &inbound.sender.id);
    let own = effects.store.took_part(platform, sender).await?;
    let saved = effects.store.handoffs().await?.into_iter();
    view.saved = saved
        .filter(|stored| stored.handoff.profile == lane.profile)
        .filter(|stored| view.is_operator() || own.contains(&stored.handoff.conversation))
        .map(|stored| StoredHandoff {
            handoff: effects.redactor.handoff(&stored.handoff),
            ..stored
        })
        .collect();
    Ok(())
}

/// Everything a command may know.
pub async fn view(
    inbound: &Inbound,
    lane: &Lane,
    sessions: &Sessions,
    effects: &Effects,
) -> Result<View, StoreError> {
    let now = effects.now();
    let session = match effects.store.session(lane, now).await {
        Err(StoreError::Write(_)) => SessionRow {
            lane: lane.clone(),
            conversation: ConversationId::new(uuid::Uuid::now_v7().to_string()),
            started_at: now,
            chosen: None,
            answered_by: None,
        },
        row => row?,
    };
    let profile = effects.profile(&lane.profile);
    let evidence = effects.registry.current(now).await;
    let chain = chain_of(&profile, &session, &evidence, effects);
    let mut chain = entries(&chain, &evidence, now);
    for entry in &mut chain {
        if effects.cooling.is_locked_out(&entry.route.subscription) {
            entry.verdict = Verdict::LockedOut;
        }
    }
    let handoffs = effects.store.handoffs_of(lane).await?;
    let busy = sessions.busy(lane);
    let platform = effects.platforms.get(inbound.target.platform.as_str());
    Ok(View {
        profile: lane.profile.clone(),
        standing: inbound.sender.standing,
        now,
        zone: TimeZone::system(),
        message_chars: platform.and_then(|platform| platform.limits().message_chars),
        conversation_started_at: session.started_at,
        serving: serving(&session, &chain),
        chosen: session.chosen.clone(),
        turn: busy.map(|busy| RunningTurn {
            started_at: busy.since,
        }),
        queued: busy.map_or(0, |busy| busy.waiting),
        chain,
        handoffs: handoffs
            .into_iter()
            .filter(|stored| stored.handoff.conversation == session.conversation)
            .map(|stored| StoredHandoff {
                handoff: effects.redactor.handoff(&stored.handoff),
                ..stored
            })
            .collect(),
        handoffs_enabled: effects.plugins.enabled(&lane.profile, HANDOFF_PLUGIN),
        plugins: plugin_lines(lane, effects),
        brought: effects
            .plugins
            .commands(&lane.profile)
            .iter()
            .map(|brought| brought.spec)
            .collect(),
        earlier: Vec::new(),
        saved: Vec::new(),
        routing: routing::word::view(lane, &session.conversation, effects).await?,
    })
}

fn serving(session: &SessionRow, chain: &[EntryState]) -> Option<Serving> {
    let (route, since) = session.answered_by.clone()?;
    Some(Serving::new(route, since, session.chosen.as_ref(), chain))
}

fn plugin_lines(lane: &Lane, effects: &Effects) -> Vec<PluginLine> {
    let states = effects
        .plugins
        .states()
        .into_iter()
        .filter(|state| state.profile == lane.profile);
    states
        .map(|state| PluginLine {
            name: state.name,
            version: state.version,
            state: state.state.to_string(),
            calls: state.calls,
            failures: state.failures,
            last_error: state.last_error,
        })
        .collect()
}

/// The chain with what is known of each entry: the same arithmetic as the gate's.
pub fn entries(chain: &Chain, evidence: &Evidence, now: Timestamp) -> Vec<EntryState> {
    let usable = usable(chain);
    chain
        .entries
        .iter()
        .zip(usable)
        .map(|(entry, usable)| entry_state(entry, usable, evidence, now))
        .collect()
}

fn entry_state(
    entry: &ChainEntry,
    usable: bool,
    evidence: &Evidence,
    now: Timestamp,
) -> EntryState {
    let readings: Vec<_> = evidence.of(&entry.slug).cloned().collect();
    let windows = readings.iter().map(gateway_core::usage::Reading::view);
    let settings = GateSettings::default();
    let verdict = match judge(
        entry.route.model.as_str(),
        windows,
        settings,
        now.as_millisecond(),
    ) {
        _ if !usable => Verdict::PassedOver,
        EntryVerdict::Eligible => Verdict::Eligible,
        EntryVerdict::Skip { window, until_ms } => Verdict::Spent {
            window: window.to_owned(),
            until: Timestamp::from_millisecond(until_ms).unwrap_or(now),
        },
    };
    EntryState {
        route: entry.route.clone(),
        billing: entry.billing,
        verdict,
        readings,
        shares: evidence
            .groups
            .others(&entry.slug)
            .map(str::to_owned)
            .collect(),
    }
}
