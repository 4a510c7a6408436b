//! One request, from its place to its end: it waits for its conversation, then for one of the turns that may run at once,
//! then it is a turn like any other, bounded by the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::InboundId;
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use gateway_core::turn::Outcome;
use gateway_core::walk::GiveUp;
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

use super::answer::{Answered, Form};
use super::conversation::{self, Place, Words};
use super::error::ApiError;
use super::flight::{Boarding, End, Flights, Progress, Seat};
use super::locks::Locks;
use super::models::{self, Target};
use super::request::ChatRequest;
use super::{HttpPlatform, NAME, Options};
use crate::effects::Effects;
use crate::intake;
use crate::sessions::Sessions;
use crate::store::StoreError;
use crate::turn::report::{Ask, TurnReport};

/// Everything requests share.
pub(super) struct Bridge {
    pub(super) effects: Arc<Effects>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) platform: Arc<HttpPlatform>,
    pub(super) options: Options,
    /// The secret of the installation under which conversations are known.
    pub(super) secret: Vec<u8>,
    pub(super) locks: Arc<Locks>,
    pub(super) flights: Arc<Flights>,
    pub(super) turns: Arc<Semaphore>,
    pub(super) rotations: AtomicU64,
    pub(super) tasks: tokio_util::task::TaskTracker,
}

/// A request that runs, or that joined an equal one.
pub(super) struct Running {
    pub(super) progress: watch::Receiver<Progress>,
    pub(super) form: Form,
}

impl Bridge {
    /// Starts a request, or joins the equal one that runs. What it leads to runs on if nobody looks any more.
    pub(super) async fn start(
        self: &Arc<Self>,
        request: ChatRequest,
        idempotency: Option<&str>,
    ) -> Result<Running, ApiError> {
        let target = models::resolve(request.model.as_deref(), &self.effects.settings)?;
        let key = conversation::key(&self.secret, &target.profile);
        let id = format!("chatcmpl-{}", Uuid::now_v7().simple());
        let form = Form {
            stream: request.stream,
            include_usage: request.include_usage,
            ignored: request.ignored.clone(),
            id: id.clone(),
            created: self.effects.now().as_second(),
            model: request
                .model
                .clone()
                .unwrap_or_else(|| target.profile.to_string()),
        };
        let (sender, progress) = watch::channel(Progress::default());
        let seat = match conversation::flight(&request, idempotency, &key) {
            None => Seat::alone(),
            Some(flight) => match self.flights.board(flight, &progress) {
                Boarding::Lead(seat) => seat,
                Boarding::Join(progress) => return Ok(Running { progress, form }),
            },
        };
        let place = conversation::find(&request, &target.profile, key, &self.effects).await;
        let place = place.map_err(|fault| ours(&fault, false))?;
        let (bridge, named) = (Arc::clone(self), form.clone());
        self.tasks.spawn(async move {
            bridge.platform.expect(&id, sender.clone());
            let end = bridge
                .run(&request, &target, &place, &named, &sender.subscribe())
                .await;
            bridge.platform.forget(&id);
            drop(seat); // from here on an equal request is a new one
            sender.send_modify(|progress| progress.end = Some(Arc::new(end)));
        });
        Ok(Running { progress, form })
    }

    async fn run(
        &self,
        request: &ChatRequest,
        target: &Target,
        place: &Place,
        form: &Form,
        progress: &watch::Receiver<Progress>,
    ) -> End {
        let queue = async {
            let held = self.locks.hold(place.lane.clone()).await;
            // After the lane: who waits for a conversation takes nobody's place.
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            (held, turn)
        };
        let Ok((_held, _turn)) = timeout(self.options.queue_wait, queue).await else {
            let why = "every turn that may run at once is taken; ask again shortly.";
            return Err(ApiError::new(503, "busy", why).retry_after(Some(2)));
        };
        let prepared = async {
            let words = place.words(request, &self.effects).await?;
            place.choose(target.route.as_ref(), &self.effects).await?;
            Ok(words)
        };
        let words = prepared
            .await
            .map_err(|fault: StoreError| ours(&fault, false))?;
        if words.text.len() > intake::REQUEST_MAX {
            let why = format!(
                "the new messages are {} bytes long; at most {} are taken.",
                words.text.len(),
                intake::REQUEST_MAX
            );
            return Err(ApiError::new(413, "request_too_large", why));
        }
        let report = self.turn(request, place, &words, &form.id).await?;
        self.rotations
            .fetch_add(u64::from(report.rotated), Ordering::Relaxed);
        let Outcome::Answered { route } = &report.outcome else {
            let notices = progress.borrow().notices.join(" ");
            return Err(refusal(&report, &notices, self.effects.now()));
        };
        let told = place
            .tell(request, words.conversation, &report.text, &self.effects)
            .await;
        if let Err(fault) = told {
            warn!(%fault, "an answered request could not be noted; its next one opens a session");
        }
        info!(id = form.id, %route, title = report.title, rotated = report.rotated, "answered a request");
        Ok(Answered {
            id: form.id.clone(),
            created: form.created,
            model: form.model.clone(),
            text: report.text.clone(),
            subscription: route.subscription.as_str().to_owned(),
            route_model: route.model.as_str().to_owned(),
            usage: report.usage,
            title: report.title.clone(),
            generation: report.generation,
            rotated: report.rotated,
            opened: words.opening.map(|opening| opening.word()),
        })
    }

    /// Runs the turn within the budget. A turn that is late is stopped, and its process is gone before this returns.
    async fn turn(
        &self,
        request: &ChatRequest,
        place: &Place,
        words: &Words,
        id: &str,
    ) -> Result<TurnReport, ApiError> {
        let (instructions, _) = gateway_core::bridge::split(&request.messages);
        let (ask, mut report) = Ask::new(instructions.to_vec(), words.bare);
        let asked = crate::turn::Request {
            inbound: self.inbound(place, words, id),
            text: words.text.clone(),
            queued: None,
            permissions: self
                .effects
                .profile(&place.lane.profile)
                .permissions
                .unwrap_or_default()
                .min(providers::Permissions::ReadOnly),
            resumes: None,
            ask: Some(Arc::new(ask)),
        };
        let admitted = intake::admit(asked, &place.lane, &self.sessions, &self.effects).await;
        admitted.map_err(|fault| ours(&fault, false))?;
        let reported = match timeout(self.options.budget, &mut report).await {
            Ok(reported) => reported,
            Err(_) => {
                warn!(id, budget = ?self.options.budget, "a request is over its budget; its turn is stopped");
                self.sessions.stop(&place.lane);
                return match report.await {
                    Ok(report) if matches!(report.outcome, Outcome::Answered { .. }) => Ok(report), // just in time
                    _ => Err(late(&self.options)),
                };
            }
        };
        reported.map_err(|_| {
            let why = "the gateway made a mistake with this request; its log says where.";
            ApiError::new(500, "internal_error", why).may_have_reached(true)
        })
    }

    fn inbound(&self, place: &Place, words: &Words, id: &str) -> Inbound {
        Inbound {
            id: InboundId::new(id),
            profile: place.lane.profile.clone(),
            session: place.lane.session.clone(),
            sender: Sender {
                id: NAME.to_owned(),
                name: NAME.to_owned(),
                standing: Standing::Member,
            },
            origin: Origin::Human,
            target: ReplyTarget {
                platform: NAME.to_owned(),
                address: id.to_owned(),
            },
            received_at: self.effects.now(),
            content: Content::Text(words.text.clone()),
        }
    }
}

fn ours(fault: &StoreError, reached: bool) -> ApiError {
    ApiError::new(500, "internal_error", format!("{fault}.")).may_have_reached(reached)
}

fn late(options: &Options) -> ApiError {
    let why = format!(
        "there was no answer within {} s; the turn was stopped.",
        options.budget.as_secs()
    );
    ApiError::new(504, "timeout", why).may_have_reached(true)
}

/// What a turn without an answer is in HTTP's terms. `words` = what the gateway said about it.
pub(super) fn refusal(report: &TurnReport, words: &str, now: Timestamp) -> ApiError {
    let (status, code) = status_of(report);
    let words = match words {
        "" => "nothing answered.",
        words => words,
    };
    let reset = match &report.outcome {
        Outcome::Cut { next_reset, .. } => *next_reset,
        _ => None,
    };
    let seconds = reset.map(|at| u64::try_from((at - now).as_secs()).unwrap_or(0).max(1));
    ApiError::new(status, code, words)
        .retry_after(seconds.filter(|_| status == 429 || status == 503))
        .may_have_reached(report.route.is_some())
}

fn status_of(report: &TurnReport) -> (u16, &'static str) {
    match &report.gave_up {
        Some(GiveUp::KnownSpent | GiveUp::FallbacksSpent) => return (429, "rate_limit_exceeded"),
        Some(GiveUp::LockedOut) => return (502, "upstream_auth"),
        Some(GiveUp::EmptyChain) => return (503, "no_route"),
        Some(GiveUp::NetworkDown) => return (502, "upstream_unreachable"),
        _ => {}
    }
    match (&report.outcome, &report.failure) {
        (Outcome::Stopped, _) => (503, "stopped"),
        (_, None) => (503, "shutting_down"),
        (_, Some(failure)) => failed(failure),
    }
}

fn failed(failure: &Failure) -> (u16, &'static str) {
    match failure.kind {
        FailureKind::RateLimit | FailureKind::UpstreamRateLimit => (429, "rate_limit_exceeded"),
        FailureKind::Billing => (429, "insufficient_quota"),
        FailureKind::Overloaded => (503, "overloaded"),
        FailureKind::Timeout => (504, "timeout"),
        FailureKind::Transport => (502, "upstream_unreachable"),
        FailureKind::Auth => (502, "upstream_auth"),
        FailureKind::ContextOverflow if failure.scope == FailureScope::Session => {
            (413, "session_full")
        }
        FailureKind::ContextOverflow => (413, "context_length_exceeded"),
        FailureKind::ContentFilter => (400, "content_filter"),
        FailureKind::BadRequest => (400, "provider_refused"),
        FailureKind::Crashed => (502, "provider_failed"),
    }
}
