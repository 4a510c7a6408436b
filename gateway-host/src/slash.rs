//! Runs a slash command: fills the view it reads, performs the effects it asks for, shows what it says.

use std::sync::Arc;

use commands::{EntryState, PluginLine, RunningTurn, Serving, Verdict, View};
use gateway_core::command::CommandEffect;
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::ConversationId;
use gateway_core::message::Inbound;
use gateway_core::plan::{EntryVerdict, GateSettings, judge};
use gateway_core::route::{Chain, ChainEntry};
use gateway_core::usage::probe::Occasion;
use gateway_core::walk::usable;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::delivery;
use crate::effects::Effects;
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
    let view = view(inbound, &lane, sessions, effects).await?;
    let reply = commands::dispatch(name, args, &view);
    for effect in &reply.effects {
        perform(effect, &lane, sessions, effects).await?;
    }
    delivery::reply(effects, &inbound.target, &reply.text, reply.audience).await;
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

async fn perform(
    effect: &CommandEffect,
    lane: &Lane,
    sessions: &Arc<Sessions>,
    effects: &Effects,
) -> Result<(), StoreError> {
    match effect {
        CommandEffect::NewConversation => {
            effects.store.new_conversation(lane, effects.now()).await?;
            effects.mirror(lane).await;
        }
        CommandEffect::StopTurn => drop(sessions.stop(lane)),
        CommandEffect::ChooseRoute(route) => {
            effects.store.choose_route(lane, route.as_ref()).await?
        }
        CommandEffect::Discard(id) => {
            if let Some(stored) = effects.store.handoff(id).await? {
                effects
                    .store
                    .move_handoff(id, stored.revision, HandoffState::Discarded)
                    .await?;
                effects.mirror(lane).await;
            }
        }
    }
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
            state: state.state.to_string(),
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
