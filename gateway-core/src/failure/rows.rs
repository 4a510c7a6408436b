//! The rows of judgement, read from the top; the first that applies decides. Two gates stand before quota, since no wait
//! helps there: is the request too large, is it a feature the plan lacks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::FailureKind::{
    self, Auth, BadRequest, Billing, ContentFilter, ContextOverflow, Overloaded, Timeout,
    Transport, UpstreamRateLimit,
};
use super::FailureScope::{
    self, Account, AccountModel, NetworkEdge, Request, Session, UpstreamShared,
};
use super::action::Action;
use super::evidence::Evidence;
use super::judge::{Context, Endpoint};
use super::quota::{money_or_quota, named_window, throttle};
use super::resets::Reset;
use super::signs::{Sign, Signs};
use super::size;
use super::vendors::Vendor;

/// From here on a refusal without words is worth one rotation.
const NEARLY_FULL: f64 = 0.9;

/// Signs that make a failure of what came under a success status.
pub(super) const DECISIVE: &[Sign] = &[
    Sign::EdgeBlock,
    Sign::ContentFilter,
    Sign::TierGate,
    Sign::Overflow,
    Sign::Money,
    Sign::SpendCap,
    Sign::QuotaOrMoney,
    Sign::UsageLimit,
    Sign::Overload,
    Sign::Throttle,
    Sign::AuthDead,
    Sign::Transport,
    Sign::Unreached,
    Sign::Timeout,
];

/// Everything the rows look at.
pub(super) struct Facts<'f> {
    pub(super) evidence: &'f Evidence,
    pub(super) context: &'f Context<'f>,
    pub(super) vendor: Vendor,
    /// Signs of the typed names.
    pub(super) names: Signs,
    /// Signs of the innermost message.
    pub(super) message: Signs,
    /// Names and message.
    pub(super) said: Signs,
    /// With the texts around them.
    pub(super) all: Signs,
    pub(super) status: Option<u16>,
    pub(super) reset: Reset,
    /// The stated wait.
    pub(super) wait: Option<SignedDuration>,
}

/// A verdict before its instant is chosen.
pub(super) struct Row {
    pub(super) kind: Option<FailureKind>,
    pub(super) scope: FailureScope,
    /// `None` = what follows from kind, scope and instant.
    pub(super) action: Option<Action>,
    /// The wait when none is stated.
    pub(super) guess: Option<Duration>,
    /// The instant when none is stated.
    pub(super) until: Option<Timestamp>,
    /// No clock helps, whatever instant the answer states.
    pub(super) clockless: bool,
}

impl Row {
    pub(super) fn none() -> Self {
        Self {
            kind: None,
            ..row(BadRequest, Request)
        }
    }

    /// Moves on, and no clock brings it back.
    pub(super) fn clockless(self) -> Self {
        Self {
            action: Some(Action::FailoverNow),
            clockless: true,
            ..self
        }
    }

    pub(super) fn act(self, action: Action) -> Self {
        Self {
            action: Some(action),
            ..self
        }
    }
}

pub(super) fn row(kind: FailureKind, scope: FailureScope) -> Row {
    Row {
        kind: Some(kind),
        scope,
        action: None,
        guess: None,
        until: None,
        clockless: false,
    }
}

/// The first row that applies.
pub(super) fn decide(facts: &Facts<'_>) -> Row {
    edge(facts)
        .or_else(|| content(facts))
        .or_else(|| size(facts))
        .or_else(|| upstream(facts))
        .or_else(|| money_or_quota(facts))
        .or_else(|| named_window(facts))
        .or_else(|| load_or_login(facts))
        .or_else(|| network(facts))
        .or_else(|| request(facts))
        .unwrap_or_else(|| by_status(facts))
}

/// A wall before the service, or no API at all.
fn edge(facts: &Facts<'_>) -> Option<Row> {
    let evidence = facts.evidence;
    let walled = evidence.headers.get("cf-mitigated").is_some() || facts.all.has(Sign::EdgeBlock);
    if walled {
        return Some(row(Transport, NetworkEdge).act(Action::FailoverNow));
    }
    if evidence.is_cut() && facts.status.is_none_or(|status| status < 400) {
        return Some(row(Transport, Request));
    }
    if evidence.empty && facts.status.is_none_or(|status| status < 400) {
        return Some(row(Transport, Request));
    }
    // No API of a model speaks HTML: something between us and it does.
    let html = evidence.html.then_some(facts.status);
    html.map(|status| match status {
        Some(413) => row(ContextOverflow, Session),
        Some(408 | 504 | 522 | 524) => row(Timeout, NetworkEdge),
        Some(401 | 403 | 429) => row(Transport, NetworkEdge).act(Action::FailoverNow),
        _ => row(Transport, NetworkEdge),
    })
}

fn content(facts: &Facts<'_>) -> Option<Row> {
    if facts.said.has(Sign::ContentFilter) {
        return Some(row(ContentFilter, Request));
    }
    let refused_as_malformed =
        matches!(facts.status, None | Some(200..=299 | 400 | 404 | 422 | 500));
    (facts.said.has(Sign::BrokenHistory) && refused_as_malformed)
        .then(|| row(BadRequest, Session).act(Action::RepairHistoryThenRetry))
}

fn size(facts: &Facts<'_>) -> Option<Row> {
    let (said, message) = (facts.said, &facts.evidence.message);
    let compacting = facts.all.has(Sign::Compaction);
    if said.has(Sign::TierGate) {
        let gate = row(ContextOverflow, if compacting { Session } else { Request });
        return Some(gate.act(if compacting {
            Action::RotateSession
        } else {
            Action::ShrinkRequest
        }));
    }
    if said.has(Sign::Afford) {
        return Some(match size::affordable(message) {
            Some(0) => row(Billing, Account),
            // Each retry of an inner layer has cost some of it.
            _ if facts.evidence.retried => row(Billing, Account).act(Action::FailoverNow),
            _ => row(Billing, Request).act(Action::ShrinkRequest),
        });
    }
    if facts.status == Some(402) && said.any(&[Sign::Money, Sign::SpendCap]) {
        return None;
    }
    if let Some(above) = size::above_the_limit(message) {
        return above.then(|| row(ContextOverflow, Request));
    }
    let load = said.has(Sign::Overload) && facts.status == Some(429);
    if (said.has(Sign::TooLarge) || said.has(Sign::Bytes)) && !load {
        // A file can be left out; the rest of the conversation is kept.
        let media = said.has(Sign::Bytes) && said.has(Sign::Media);
        return Some(match (media, said.has(Sign::Bytes)) {
            (true, _) => row(ContextOverflow, Request).act(Action::ShrinkRequest),
            (false, true) => row(ContextOverflow, Session),
            (false, false) => row(ContextOverflow, Request),
        });
    }
    let limited = said.any(&[Sign::Minute, Sign::Day, Sign::Throttle, Sign::QuotaOrMoney])
        && facts.status != Some(400);
    let too_long = [Sign::Overflow, Sign::OutputTooBig, Sign::OutputCap];
    if said.any(&too_long) && !limited && !said.has(Sign::BadShape) {
        let fits = said.has(Sign::OutputCap)
            || size::question_fits(message).unwrap_or(!said.has(Sign::Overflow));
        return Some(match fits {
            true if !compacting => row(ContextOverflow, Request).act(Action::ShrinkRequest),
            _ => row(ContextOverflow, Session),
        });
    }
    None
}

/// The aggregator's own account with the vendor: ours is fine.
fn upstream(facts: &Facts<'_>) -> Option<Row> {
    let (said, evidence) = (facts.said, facts.evidence);
    let throttled = said.has(Sign::Throttle) || facts.status == Some(429);
    if evidence.wrapped && said.any(&[Sign::Money, Sign::SpendCap, Sign::QuotaOrMoney]) {
        return Some(row(UpstreamRateLimit, AccountModel).act(Action::FailoverNow));
    }
    let named = || names_provider(&evidence.message) || names_provider(&evidence.outer);
    let passed_on = || {
        evidence.wrapped
            || evidence
                .message
                .to_lowercase()
                .contains("provider returned error")
    };
    if said.has(Sign::UpstreamShared) || throttled && (named() || passed_on()) {
        return Some(row(UpstreamRateLimit, UpstreamShared));
    }
    let windowless = !said.any(&[
        Sign::LimitZero,
        Sign::Minute,
        Sign::Day,
        Sign::UsageLimit,
        Sign::QuotaOrMoney,
    ]);
    let silent = facts.reset.at.is_none() && evidence.stated.is_empty();
    (facts.message.has(Sign::SharedExhausted) && windowless && silent)
        .then(|| row(UpstreamRateLimit, UpstreamShared))
}

/// `from provider (Xiaomi)`; `from provider(429)` is a proxy's own wrapper.
fn names_provider(text: &str) -> bool {
    let text = text.to_lowercase();
    text.split("from provider").skip(1).any(|rest| {
        let inside = rest.trim_start().strip_prefix(['(', '[']);
        inside.is_some_and(|name| name.starts_with(char::is_alphabetic))
    })
}

fn load_or_login(facts: &Facts<'_>) -> Option<Row> {
    let said = facts.said;
    let login_status = matches!(facts.status, Some(401 | 403));
    if said.has(Sign::Overload) && !login_status {
        return Some(row(Overloaded, UpstreamShared));
    }
    // A refresh the service could not serve says nothing about the login.
    let served =
        !matches!(facts.status, Some(500..)) && !said.any(&[Sign::Unreached, Sign::Timeout]);
    if facts.context.endpoint == Endpoint::Refresh && (served || said.has(Sign::AuthDead)) {
        return Some(row(Auth, Account));
    }
    let throttled = said.any(&[Sign::Throttle, Sign::Concurrency, Sign::RampUp]);
    if throttled && facts.status != Some(401) || facts.status == Some(429) {
        return Some(throttle(facts));
    }
    let login = said.any(&[Sign::AuthDead, Sign::AuthExpired]) || facts.status == Some(401);
    let denied = said.has(Sign::Auth)
        && (facts.status == Some(403)
            || matches!(facts.status, None | Some(400)) && !said.has(Sign::ModelMissing));
    // A typed name outranks a status that says the service broke.
    let denied = denied || facts.names.has(Sign::Auth) && matches!(facts.status, Some(500 | 502));
    (login || denied).then(|| row_of_login(facts))
}

/// Auth is never a timed pause: it is mended by a refresh, or by a person.
fn row_of_login(facts: &Facts<'_>) -> Row {
    let said = facts.said;
    let failed = row(Auth, Account);
    if facts.context.wrong_header {
        return failed.act(Action::TellUserNoRetry);
    }
    // The answer of OAuth (RFC 6750) to a token that is expired, revoked or broken: a new one is fetched.
    let token_refused = facts
        .evidence
        .headers
        .get("www-authenticate")
        .is_some_and(|challenge| challenge.contains("invalid_token"));
    let expired = said.has(Sign::AuthExpired) || token_refused;
    if said.has(Sign::AuthDead)
        || facts.context.refreshable == Some(false)
        || facts.status == Some(403) && !expired
    {
        return failed;
    }
    let login_of_a_program = ["claude", "codex", "copilot", "gemini", "opencode"]
        .iter()
        .any(|name| facts.context.provider.contains(name));
    let oauth = token_refused
        || facts.all.has(Sign::AuthExpired)
        || facts.evidence.message.to_lowercase().contains("oauth");
    let told = facts.context.refreshable == Some(true) || login_of_a_program;
    let program_says = facts.evidence.outer.contains("Failed to authenticate")
        || facts.evidence.message.contains("Failed to authenticate");
    if oauth || told || program_says {
        failed.act(Action::RefreshAuthThenRetry)
    } else {
        failed
    }
}

fn network(facts: &Facts<'_>) -> Option<Row> {
    let said = facts.all;
    // The service itself has answered: a word like "timeout" or "connection" in its sentence is not about the way to it.
    let answered = matches!(facts.status, Some(400..=402 | 404..=406 | 409..=428));
    let typed = facts.names.any(&[Sign::Transport, Sign::Unreached]);
    if answered && !typed || facts.said.has(Sign::BadShape) {
        return None;
    }
    match () {
        () if said.has(Sign::LocalNetwork) => {
            Some(row(Transport, NetworkEdge).act(Action::TellUserNoRetry))
        }
        () if said.has(Sign::Timeout) => Some(row(Timeout, Request)),
        () if said.has(Sign::Unreached) => Some(row(Transport, NetworkEdge)),
        () if said.has(Sign::Transport) => Some(row(Transport, Request)),
        () => None,
    }
}

fn request(facts: &Facts<'_>) -> Option<Row> {
    let server = matches!(facts.status, Some(500..));
    if server || matches!(facts.status, Some(401 | 402 | 403 | 429)) {
        return None;
    }
    if facts.said.has(Sign::ModelMissing) || facts.status == Some(404) {
        return Some(row(BadRequest, AccountModel).act(Action::FailoverNow));
    }
    if facts
        .context
        .session_share
        .is_some_and(|share| share >= NEARLY_FULL)
        && facts.status == Some(400)
    {
        return Some(row(ContextOverflow, Session));
    }
    if facts.said.has(Sign::BadMedia) {
        return Some(row(BadRequest, Request).act(Action::ShrinkRequest));
    }
    let bad = facts.said.any(&[Sign::BadShape, Sign::BadRequest]) || facts.status == Some(400);
    if bad && names_a_message(&facts.evidence.message) {
        return Some(row(BadRequest, Session).act(Action::RepairHistoryThenRetry));
    }
    facts
        .said
        .any(&[Sign::BadShape, Sign::BadRequest])
        .then(|| row(BadRequest, Request))
}

/// Whether a validator points at a message of the conversation: `messages.5.content.0`, `input[3]`, `contents[2]`.
fn names_a_message(text: &str) -> bool {
    ["messages.", "messages[", "contents[", "contents.", "input["]
        .iter()
        .any(|place| {
            text.split(place)
                .skip(1)
                .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
}

fn by_status(facts: &Facts<'_>) -> Row {
    match facts.status {
        Some(413) => row(ContextOverflow, Session),
        Some(401 | 403) => row_of_login(facts),
        Some(402) => row(Billing, Account),
        Some(408 | 504 | 522 | 524) => row(Timeout, Request),
        // The other side, or a proxy between, gave up on the request.
        Some(499) => row(Transport, Request),
        Some(429) => throttle(facts),
        Some(404) => row(BadRequest, AccountModel).act(Action::FailoverNow),
        Some(400..=499) => row(BadRequest, Request),
        Some(502 | 520..=526) => row(Transport, Request),
        Some(500..) => row(Overloaded, UpstreamShared),
        Some(_) => row(Transport, Request),
        None if facts.evidence.exited => row(Transport, Request),
        // An error whose type nobody knows is theirs and passes.
        None => row(Overloaded, UpstreamShared),
    }
}
