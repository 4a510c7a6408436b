//! A refused turn as evidence: what a failure says about the window that refused it.

use jiff::Timestamp;

use super::scope::{self, Reach};
use super::{Reading, ReadingSource, WindowScope, WindowStatus};
use crate::failure::{Failure, FailureKind, FailureScope};
use crate::ids::SubscriptionId;
use crate::plan::ScopeView;

/// The window id of a refusal that names none. It carries an explicit scope, as its id says nothing.
pub const UNNAMED_WINDOW: &str = "refusal";

/// Turns a failure into a reading: a rate limit or a billing stop of the account or of this model, with a stated reset
/// ahead. `None` = the failure proves nothing about a window, or nobody knows until when.
pub fn reading_of_failure(
    slug: &SubscriptionId,
    model: &str,
    failure: &Failure,
    now: Timestamp,
) -> Option<Reading> {
    if !matches!(failure.kind, FailureKind::RateLimit | FailureKind::Billing) {
        return None;
    }
    let resets_at = failure.retry_at.filter(|at| *at > now)?;
    let window = failure
        .window
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty());
    let window = window.unwrap_or(UNNAMED_WINDOW);
    let scope = match failure.scope {
        FailureScope::Account => account_scope(window),
        FailureScope::AccountModel => model_scope(window, model),
        _ => return None,
    };
    Some(Reading {
        subscription: slug.clone(),
        window: window.to_owned(),
        scope,
        used_pct: None,
        status: WindowStatus::Rejected,
        resets_at: Some(resets_at),
        duration_mins: None,
        observed_at: Some(now),
        source: ReadingSource::Failure,
    })
}

/// The account refuses: said explicitly wherever the id alone would not mean it.
fn account_scope(window: &str) -> Option<WindowScope> {
    match scope::reach(window, ScopeView::Unstated) {
        Reach::Account | Reach::Model(_) => None,
        _ => Some(WindowScope::Account),
    }
}

/// Only this model is refused. An id that names a family speaks for itself.
fn model_scope(window: &str, model: &str) -> Option<WindowScope> {
    match scope::reach(window, ScopeView::Unstated) {
        Reach::Model(family) if scope::fits(family, model) => None,
        _ => Some(WindowScope::Model(model.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EntryVerdict, GateSettings, judge};

    fn now() -> Timestamp {
        Timestamp::from_second(1_789_981_200).unwrap()
    }

    fn failure(
        kind: FailureKind,
        scope: FailureScope,
        window: Option<&str>,
        left_s: Option<i64>,
    ) -> Failure {
        let at = left_s.and_then(|s| Timestamp::from_second(now().as_second() + s).ok());
        Failure::new(kind, scope, "x")
            .retry_at(at)
            .window(window.map(str::to_owned))
    }

    fn blocks(failure: &Failure, model: &str) -> bool {
        let reading = reading_of_failure(&"s".into(), "claude-opus-4-8", failure, now());
        let verdict = judge(
            model,
            reading.iter().map(Reading::view),
            GateSettings::default(),
            now().as_millisecond(),
        );
        verdict != EntryVerdict::Eligible
    }

    #[test]
    fn a_refusal_blocks_what_it_is_about_and_nothing_else() {
        use FailureKind::{Billing, Overloaded, RateLimit, UpstreamRateLimit};
        use FailureScope::{Account, AccountModel, Burst};
        let hour = Some(3_600);
        let rows = [
            (RateLimit, Account, Some("five_hour"), hour, true, true),
            (RateLimit, Account, None, hour, true, true),
            (Billing, Account, Some("overage"), hour, true, true),
            (RateLimit, Account, Some("lunar_cycle"), hour, true, true),
            (
                RateLimit,
                Account,
                Some("seven_day_opus"),
                hour,
                true,
                false,
            ),
            (RateLimit, AccountModel, None, hour, true, false),
            (
                RateLimit,
                AccountModel,
                Some("seven_day"),
                hour,
                true,
                false,
            ),
            (
                RateLimit,
                AccountModel,
                Some("seven_day_opus"),
                hour,
                true,
                false,
            ),
            (RateLimit, Account, Some("five_hour"), None, false, false),
            (
                RateLimit,
                Account,
                Some("five_hour"),
                Some(-1),
                false,
                false,
            ),
            (RateLimit, Burst, None, hour, false, false),
            (UpstreamRateLimit, Account, None, hour, false, false),
            (Overloaded, Account, None, hour, false, false),
        ];
        for (kind, scope, window, left, same, other) in rows {
            let failure = failure(kind, scope.clone(), window, left);
            assert_eq!(
                blocks(&failure, "claude-opus-4-8"),
                same,
                "{kind:?} {scope:?} {window:?}"
            );
            assert_eq!(
                blocks(&failure, "claude-sonnet-5"),
                other,
                "{kind:?} {scope:?} {window:?}"
            );
        }
    }
}
