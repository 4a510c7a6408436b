//! A turn reads like a story: prologue, plan, attempts, terminal.

pub mod attempt;
pub mod journal;
pub mod pace;
pub mod prologue;
pub mod recovery;
pub mod report;
pub mod rotation;
pub mod terminal;

use std::sync::Arc;

use gateway_core::cooling;
use gateway_core::event::TokenUsage;
use gateway_core::failure::Failure;
use gateway_core::handoff::Handoff;
use gateway_core::ids::{ConversationId, TurnId};
use gateway_core::journal::TurnRow;
use gateway_core::message::Inbound;
use gateway_core::notice;
use gateway_core::route::{Chain, Route};
use gateway_core::turn::{Answer, AttemptEnd, Outcome};
use gateway_core::walk::{GiveUp, Step, Walk};
use providers::{Exchange, Permissions, Stop};
use tracing::info;

use crate::config::ProfileSettings;
use crate::cooling::Aside;
use crate::delivery::Voice;
use crate::effects::Effects;
use crate::plugins::facts::{TurnFacts, WalkFacts};
use crate::routing::ride::{self, Next, Rider};
use crate::store::{Lane, StoreError};
use journal::Journal;
use pace::Pace;
use report::TurnReport;

/// What intake hands over: a message that has its lane and its owner's word that it may run.
#[derive(Debug, Clone)]
pub struct Request {
    pub inbound: Inbound,
    pub text: String,
    /// The turn's row, if the message had to wait and was written down then.
    pub queued: Option<TurnRow>,
    pub permissions: Permissions,
    /// The names of the turn and of the run that goes on by itself; `None` = a person has just asked.
    pub resumes: Option<(TurnId, TurnId)>,
    /// The program that waits for the turn's end; `None` = people look at what is shown.
    pub ask: Option<Arc<report::Ask>>,
}

/// Everything one turn carries between its phases.
pub struct Turn {
    pub row: TurnRow,
    pub lane: Lane,
    pub conversation: ConversationId,
    pub profile: Arc<ProfileSettings>,
    pub permissions: Permissions,
    pub chain: Chain,
    pub facts: TurnFacts,
    pub history: Vec<Exchange>,
    pub history_len: u64,
    /// Handoffs this turn has claimed, oldest first, and the text they put beside the request.
    pub carried: Vec<Handoff>,
    pub injected: Option<String>,
    pub journal: Journal,
    pub voice: Voice,
    pub stop: TurnStop,
    pub first_row: prologue::FirstRow,
    /// Another living gateway runs a turn of this conversation: its CLI session must not be resumed beside it.
    pub shared: bool,
    /// Which entries are tried last or left out for what earlier turns learned, by position.
    pub asides: Vec<Aside>,
    /// Which positions may be used at all: not metered without an opt-in, and not set aside.
    pub usable: Vec<bool>,
    pub pace: Pace,
    /// The last failure of the turn that the walk went on from.
    pub failure: Option<Failure>,
    /// Said among the turn's activity once it has been answered; a cut turn says the same in its closing text.
    pub remarks: Vec<String>,
    /// Whether routing speaks in this turn: then the gate is not asked.
    pub routed: bool,
    /// The turn's ride, from its first decision on; `None` = routing has no part in it.
    pub rider: Option<Rider>,
    /// The provider session of the attempt that answered.
    pub session: Option<gateway_core::ids::ProviderSessionId>,
    pub rotation: rotation::Rotation,
    pub ask: Option<Arc<report::Ask>>,
}

/// Why a running turn is asked to stop.
#[derive(Debug, Clone, Default)]
pub struct TurnStop {
    pub stop: Stop,
    /// Set when the gateway itself ends: the turn is sealed for the next start instead of "stopped by you".
    pub shutdown: Stop,
}

impl TurnStop {
    /// Whether the turn is to end, by the person or with the gateway.
    pub fn is_asked(&self) -> bool {
        self.stop.is_stopped() || self.shutdown.is_stopped()
    }
}

/// Runs one turn to its outcome. `Err` is a fault of ours (the store); the person has been told.
pub async fn run_turn(
    request: Request,
    stop: TurnStop,
    effects: &Effects,
) -> Result<Outcome, StoreError> {
    let resumes = request.resumes.as_ref().map(|(_, run)| run.clone());
    let (mut turn, mut walk) = prologue::open(request, stop, effects).await?;
    let next = ride::begin(&mut turn, resumes.as_ref(), effects).await?;
    let mut step = match next {
        Next::Park(say, until) => return terminal::parked(*turn, &say, until, effects).await,
        Next::Try(position) => walk.take(position),
        Next::Walk => walk.first(),
    };
    if let Step::Try(first) = &step
        && !turn.routed
    {
        say_aside(&mut turn, *first, effects).await;
    }
    loop {
        let over = matches!(step, Step::Done(_) | Step::GiveUp(GiveUp::Stopped));
        if !over && turn.stop.is_asked() {
            ride::given_up(&turn, effects).await?;
            return finish(*turn, &walk, Ending::Stopped, effects).await; // also before the first attempt and between two
        }
        let position = match step {
            Step::Try(position) => position,
            Step::Done(answer) => {
                return finish(*turn, &walk, Ending::Answered(answer), effects).await;
            }
            Step::GiveUp(GiveUp::Stopped) => {
                return finish(*turn, &walk, Ending::Stopped, effects).await;
            }
            Step::GiveUp(why) => return finish(*turn, &walk, Ending::Cut(why), effects).await,
        };
        turn.pace.begins(position, effects.now());
        let mut end = attempt::run(&mut turn, position, effects).await?;
        if let AttemptEnd::Failed(failure) = &mut end
            && rotation::after(&mut turn, position, failure, effects).await?
        {
            turn.pace.forget();
            step = Step::Try(position);
            continue;
        }
        if let AttemptEnd::Failed(failure) = &end
            && let Some(at) = pace::again(&turn, &walk, failure, effects)
        {
            pace::wait(&mut turn, position, at, effects).await;
            step = Step::Try(position);
            continue;
        }
        walk.note(&end);
        if let AttemptEnd::Failed(failure) = &end {
            learn(&mut turn, &mut walk, position, failure, effects).await;
        }
        match ride::attempt_ended(&mut turn, &end, effects).await? {
            Next::Park(say, until) => return terminal::parked(*turn, &say, until, effects).await,
            Next::Try(position) => {
                step = walk.take(position);
                continue;
            }
            Next::Walk => {}
        }
        step = walk.next_step(end);
        ride::walked(&turn, &step, effects).await?;
        if let (Step::Try(next), Some(failure), false) =
            (&step, turn.failure.clone(), turn.stop.is_asked())
        {
            announce(&mut turn, *next, &failure).await;
        }
    }
}

/// How a turn ends.
enum Ending {
    Answered(Answer),
    Stopped,
    Cut(GiveUp),
}

/// Closes the turn, and tells the program that waits for it.
async fn finish(
    turn: Turn,
    walk: &Walk,
    ending: Ending,
    effects: &Effects,
) -> Result<Outcome, StoreError> {
    let waiting = turn.ask.clone();
    let (usage, gave_up) = match &ending {
        Ending::Answered(answer) => (answer.usage, None),
        Ending::Stopped => (TokenUsage::default(), None),
        Ending::Cut(why) => (TokenUsage::default(), Some(why.clone())),
    };
    let report = TurnReport::of(&turn, usage, gave_up);
    let outcome = match ending {
        Ending::Answered(answer) => terminal::answered(turn, walk, answer, effects).await?,
        Ending::Stopped => terminal::stopped(turn, effects).await?,
        Ending::Cut(why) => terminal::cut(turn, walk, why, effects).await?,
    };
    if let Some(ask) = waiting {
        ask.tell(TurnReport {
            outcome: outcome.clone(),
            ..report
        });
    }
    Ok(outcome)
}

/// After a failure: remember it, and for a quota failure ask the walk hook; its advice is one more fact.
async fn learn(
    turn: &mut Turn,
    walk: &mut Walk,
    position: usize,
    failure: &Failure,
    effects: &Effects,
) {
    info!(turn = %turn.row.turn, position, kind = ?failure.kind, retry_at = ?failure.retry_at, detail = %failure.detail, "attempt failed");
    turn.failure = Some(failure.clone());
    let now = effects.now();
    let route = turn.route(position).cloned();
    if let Some(entry) = turn.chain.entries.get(position) {
        let model = entry.route.model.as_str();
        effects
            .registry
            .refused(&entry.slug, model, failure, now)
            .await;
    }
    let Some(route) = route else {
        return;
    };
    if effects
        .cooling
        .learn(&route, cooling::lesson(failure, now), now)
    {
        effects
            .cooling
            .tell(&turn.conversation, &route.subscription);
        let subscription = route.subscription.as_str();
        turn.remarks.push(notice::login_refused(subscription));
    }
    if !failure.kind.is_quota() || turn.routed {
        return;
    }
    turn.facts.now = now;
    // What this very failure proved is evidence too: another model of the same subscription may be out with it.
    let evidence = effects.registry.current(now).await;
    turn.facts.sheet = effects
        .sheets
        .of(&turn.profile.id, &turn.chain, &turn.usable, &evidence);
    let facts = WalkFacts {
        turn: turn.facts.clone(),
        failed: position,
        reason: failure.kind,
        cursor: walk.cursor(),
        already_gated: walk.gated,
        line_shown: turn.voice.has_status(),
        memo: walk.skipped(),
    };
    let advice = effects
        .plugins
        .before_walk(&turn.profile.id, Arc::new(facts))
        .await;
    walk.gated |= advice.gated;
    for skip in &advice.skips {
        walk.skip(skip.position, skip.until);
    }
    if let Some(line) = advice.status_line.filter(|_| !turn.voice.has_status()) {
        turn.voice.status(&line).await;
    }
}

/// One line where the turn does not start with the route it usually would, unless that was said.
async fn say_aside(turn: &mut Turn, first: usize, effects: &Effects) {
    let usual = gateway_core::walk::usable(&turn.chain)
        .iter()
        .position(|usable| *usable);
    let Some(usual) = usual.filter(|usual| *usual != first && !turn.voice.has_status()) else {
        return;
    };
    let (Some(left), Some(onto)) = (turn.route(usual), turn.route(first).cloned()) else {
        return;
    };
    let name = left.subscription.as_str();
    let line = match turn.asides.get(usual) {
        Some(Aside::Cooling) => notice::cooling_line(name, &onto),
        Some(Aside::LockedOut) if effects.cooling.tell(&turn.conversation, &left.subscription) => {
            notice::locked_out_line(name, &onto)
        }
        _ => return,
    };
    turn.voice.status(&line).await;
}

/// One line per turn when the work moves on for a reason nobody has announced yet.
async fn announce(turn: &mut Turn, next: usize, failure: &Failure) {
    if turn.voice.has_status() || turn.route(next).is_none() {
        return;
    }
    let failed = turn
        .chain
        .entries
        .iter()
        .find(|entry| Some(&entry.route) == turn.journal.route());
    let from = failed
        .map(|entry| entry.route.subscription.as_str())
        .unwrap_or_default();
    turn.voice
        .status(&notice::walk_line(failure.kind, from))
        .await;
}

impl Turn {
    /// The route at a chain position.
    pub fn route(&self, position: usize) -> Option<&Route> {
        self.chain.entries.get(position).map(|entry| &entry.route)
    }
}
