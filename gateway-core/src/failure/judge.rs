//! What a refused answer means, in the contract's order: was it a failure at all; then, on the unwrapped evidence, the rows
//! of `rows.rs`; the HTTP status last, because it lies most often.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::action::Action;
use super::evidence::Evidence;
use super::members::Verdict;
use super::resets::clock::Clock;
use super::resets::when::china;
use super::resets::{self, Reset, Source};
use super::rows::{self, Facts, Row};
use super::signs::{Sign, Signs};
use super::vendors::{self, Vendor};
use super::{Failure, FailureKind, FailureScope, detail, size};

/// Which endpoint refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Endpoint {
    #[default]
    Model,
    /// Where usage is asked for: its refusals say nothing of the account.
    Usage,
    /// Where a login is refreshed: its refusals are final.
    Refresh,
}

/// What is known beside the answer.
#[derive(Debug, Clone)]
pub struct Context<'c> {
    /// The moment of receipt.
    pub now: Timestamp,
    /// The vendor's or provider's name in lower case; empty = not known.
    pub provider: &'c str,
    /// The zone of the program that wrote the text; `None` = not known.
    pub host_zone: Option<TimeZone>,
    pub endpoint: Endpoint,
    /// Whether the login is one that can be refreshed; `None` = not known.
    pub refreshable: Option<bool>,
    /// The moment the answer was received, if that was before `now`: relative waits count from it.
    pub received: Option<Timestamp>,
    /// The request asked for a window beyond the standard one.
    pub long_context: bool,
    /// The request carried its secret in a header meant for another kind: a mistake of ours.
    pub wrong_header: bool,
    /// Whether text of this answer was shown already.
    pub shown: bool,
    /// How full the session's window was, as a share of 1; `None` = not known.
    pub session_share: Option<f64>,
}

impl Context<'_> {
    /// Nothing known but the moment.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            provider: "",
            host_zone: None,
            endpoint: Endpoint::Model,
            refreshable: None,
            received: None,
            long_context: false,
            wrong_header: false,
            shown: false,
            session_share: None,
        }
    }
}

/// The verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// `None` = it was no failure.
    pub kind: Option<FailureKind>,
    pub scope: FailureScope,
    /// When to ask again; `None` = nothing says so.
    pub retry_at: Option<Timestamp>,
    /// Whether that is the length of the named window rather than an instant the answer states: a minute budget is full
    /// again after a minute.
    pub guessed: bool,
    pub action: Action,
    /// The window a limit names.
    pub window: Option<String>,
    /// One line for people and logs, without markup and secrets.
    pub detail: String,
}

impl Judgement {
    /// The failure, if it was one, with the stated instant only.
    pub fn failure(self) -> Option<Failure> {
        let kind = self.kind?;
        let stated = self.retry_at.filter(|_| !self.guessed);
        Some(
            Failure::new(kind, self.scope, self.detail)
                .retry_at(stated)
                .window(self.window),
        )
    }
}

/// Judges one answer. `key` is a secret to strike out of the detail line.
pub fn judge(evidence: &Evidence, context: &Context<'_>, key: Option<&str>) -> Judgement {
    let vendor = vendors::vendor(context.provider, evidence);
    let names = Signs::of(&evidence.names.join(" . ")).and(vendors::coded(vendor, &evidence.names));
    let message = Signs::of(&evidence.message);
    let around = Signs::of(&evidence.outer);
    let said = names.and(message);
    let clock = Clock {
        now: context.now,
        received: context.received.unwrap_or(context.now),
        host_zone: context.host_zone.as_ref(),
        vendor_zone: writes_china_time(vendor, evidence, context).then(china),
        window: window_length(evidence, said),
    };
    let long = said.any(&[Sign::Day, Sign::Month]);
    let reset = resets::stated(evidence, &clock, long);
    let facts = Facts {
        evidence,
        context,
        vendor,
        names,
        message,
        said,
        all: said.and(around),
        status: status(evidence),
        reset,
        wait: reset.at.map(|at| at.duration_since(context.now)),
    };
    let row = match no_failure(&facts) {
        true => Row::none(),
        false => rows::decide(&facts),
    };
    let retry_at = row.kind.map_or_else(
        || polled_again(&facts),
        |kind| retry_at(kind, &row, &facts, &clock),
    );
    Judgement {
        kind: row.kind,
        action: action(&row, retry_at, reset, context.shown || evidence.shown),
        scope: row.scope,
        retry_at,
        guessed: retry_at.is_some() && reset.at.is_none(),
        window: evidence.window.clone(),
        detail: line(&facts, row.kind, key),
    }
}

/// The innermost status; failing that, one written in the text.
fn status(evidence: &Evidence) -> Option<u16> {
    let outer = evidence.status.filter(|status| *status >= 400);
    let written =
        || size::status_in(&evidence.message).or_else(|| size::status_in(&evidence.outer));
    evidence
        .inner_status
        .or(outer)
        .or_else(written)
        .or(evidence.status)
}

/// Vendors in China write their own time without saying so; a Chinese sentence of nobody in particular does too, unless the
/// zone of its host is known.
fn writes_china_time(vendor: Vendor, evidence: &Evidence, context: &Context<'_>) -> bool {
    let chinese = || {
        let kana = evidence
            .message
            .contains(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
        !kana
            && evidence
                .message
                .contains(|c| matches!(c, '\u{4e00}'..='\u{9fff}'))
    };
    matches!(vendor, Vendor::Glm | Vendor::MiniMax) || context.host_zone.is_none() && chinese()
}

/// The length of the window a limit names, for times without a date.
fn window_length(evidence: &Evidence, said: Signs) -> Option<SignedDuration> {
    let named = evidence.window.as_deref() == Some("five_hour");
    let text = evidence.message.to_lowercase();
    let session = [
        "session limit",
        "5-hour",
        "5 hour",
        "5h ",
        "five-hour",
        "five hour",
    ]
    .iter()
    .any(|words| text.contains(words));
    let longer = said.any(&[Sign::Day, Sign::Month]);
    (named || session && !longer).then(|| SignedDuration::from_hours(5))
}

fn no_failure(facts: &Facts<'_>) -> bool {
    let evidence = facts.evidence;
    let refused =
        evidence.status.is_some_and(|status| status >= 400) || evidence.inner_status.is_some();
    if facts.context.endpoint == Endpoint::Usage && facts.status == Some(429) {
        return true;
    }
    if refused || evidence.empty || evidence.html || evidence.is_cut() {
        return false;
    }
    match evidence.event {
        Some(Verdict::Allowed) => return !evidence.errored,
        Some(Verdict::Rejected) => return false,
        None => {}
    }
    if evidence.errored {
        return false;
    }
    if evidence.synthetic {
        return !facts.message.any(rows::DECISIVE);
    }
    if evidence.succeeded {
        return true;
    }
    let rejected = evidence.headers.get("anthropic-ratelimit-unified-status") == Some("rejected");
    let silent = evidence.message.is_empty() && evidence.names.is_empty();
    match evidence.status {
        Some(_) => !facts.message.any(rows::DECISIVE),
        None => silent && !rejected,
    }
}

/// A poller's own refusal says when to poll again.
fn polled_again(facts: &Facts<'_>) -> Option<Timestamp> {
    (facts.context.endpoint == Endpoint::Usage && facts.status == Some(429))
        .then_some(facts.reset.at)
        .flatten()
}

/// The instant that may be believed for a kind of failure.
fn retry_at(
    kind: FailureKind,
    row: &Row,
    facts: &Facts<'_>,
    clock: &Clock<'_>,
) -> Option<Timestamp> {
    if row.clockless {
        return None;
    }
    let stated = facts.reset.at;
    // A time that has just passed is asked about soon; no wait is guessed over it.
    let guess = || {
        row.guess
            .filter(|_| !facts.reset.just_passed)
            .and_then(|wait| clock.after(wait))
    };
    match kind {
        FailureKind::RateLimit | FailureKind::UpstreamRateLimit | FailureKind::Overloaded => stated
            .or(row.until)
            .or_else(guess)
            .filter(|_| row.action != Some(Action::DisableUntilOperator) || stated.is_some()),
        // A generic header does not bring money; a date in the vendor's words does.
        FailureKind::Billing => stated.filter(|_| facts.reset.source != Some(Source::Hint)),
        FailureKind::Transport | FailureKind::Timeout => {
            stated.filter(|_| facts.reset.source == Some(Source::Hint))
        }
        _ => None,
    }
}

fn action(row: &Row, retry_at: Option<Timestamp>, reset: Reset, shown: bool) -> Action {
    let Some(kind) = row.kind else {
        return Action::None;
    };
    let action = row
        .action
        .unwrap_or_else(|| usual(kind, &row.scope, retry_at, reset));
    // Sent again, what was shown would come twice.
    match action {
        Action::RetrySameAfter | Action::RetrySameThenFailover if shown => {
            Action::HandoffThenFailover
        }
        action => action,
    }
}

fn usual(
    kind: FailureKind,
    scope: &FailureScope,
    retry_at: Option<Timestamp>,
    reset: Reset,
) -> Action {
    match (kind, scope) {
        (FailureKind::RateLimit, _) if reset.just_passed => Action::ProbeSoon,
        (FailureKind::RateLimit, FailureScope::Burst) | (FailureKind::UpstreamRateLimit, _) => {
            match retry_at {
                Some(_) => Action::RetrySameAfter,
                None => Action::RetrySameThenFailover,
            }
        }
        (FailureKind::RateLimit | FailureKind::Billing, FailureScope::AccountModel)
            if retry_at.is_some() =>
        {
            Action::SkipModelUntil
        }
        (FailureKind::RateLimit | FailureKind::Billing, _) if retry_at.is_some() => {
            Action::SkipAccountUntil
        }
        (FailureKind::RateLimit, _) => Action::FailoverNow,
        (FailureKind::Billing | FailureKind::Auth, _) => Action::DisableUntilOperator,
        (FailureKind::Overloaded, _) if retry_at.is_some() => Action::RetrySameAfter,
        (
            FailureKind::Overloaded
            | FailureKind::Timeout
            | FailureKind::Transport
            | FailureKind::Crashed,
            _,
        ) => Action::RetrySameThenFailover,
        (FailureKind::ContextOverflow, _) => Action::RotateSession,
        (FailureKind::ContentFilter | FailureKind::BadRequest, _) => Action::TellUserNoRetry,
    }
}

fn line(facts: &Facts<'_>, kind: Option<FailureKind>, key: Option<&str>) -> String {
    let evidence = facts.evidence;
    let line = detail::line(&evidence.message, evidence.html, key);
    match (line.is_empty(), evidence.status) {
        (false, _) => line,
        (true, Some(status)) if kind.is_some() => format!("status {status} without a message"),
        (true, _) if kind.is_none() => "no failure".to_owned(),
        (true, _) => "an error without a message".to_owned(),
    }
}
