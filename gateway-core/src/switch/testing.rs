//! Facts for tests, in few words.

use jiff::Timestamp;

use super::facts::{Facts, LimitReport, LoginState, Selection};
use crate::usage::identity::{Login, QuotaGroups};
use crate::usage::{Reading, ReadingSource, WindowStatus};

pub(crate) const HOUR_S: i64 = 3_600;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_789_981_200).unwrap()
}

/// The instant so many seconds from now.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

/// A login of its own at a provider's company.
pub(crate) fn login(id: &str, provider: &str) -> LoginState {
    LoginState {
        login: Login {
            id: id.into(),
            upstream: Some(format!("{provider}-company")),
            account_id: Some(format!("account-{id}")),
            fingerprint: None,
            email: None,
            plan: None,
            metered: provider == "api",
        },
        provider: provider.to_owned(),
        enabled: true,
        installed: true,
        authenticated: true,
        available: true,
        hub: false,
        lacks: Vec::new(),
        last_start_failed_at: None,
    }
}

/// A probe's reading of a minute ago; the window resets in three hours.
pub(crate) fn reading(id: &str, window: &str, used_pct: f64) -> Reading {
    Reading {
        subscription: id.into(),
        window: window.to_owned(),
        scope: None,
        used_pct: Some(used_pct),
        status: WindowStatus::Unknown,
        resets_at: Some(at(3 * HOUR_S)),
        duration_mins: None,
        observed_at: Some(at(-60)),
        source: ReadingSource::Probe,
    }
}

/// Routing on, a Claude that is out and one Codex with room.
pub(crate) fn base() -> Facts {
    let mut facts = Facts {
        source: Some(Selection::new("claude", Some("opus"))),
        chain: vec![Selection::new("codex", Some("gpt"))],
        logins: vec![login("claude", "claude"), login("codex", "codex")],
        readings: vec![
            reading("claude", "five_hour", 100.0),
            reading("codex", "primary", 40.0),
        ],
        ..Facts::default()
    };
    facts.settings.enabled = true;
    regroup(facts)
}

/// The facts with the quota groups of their logins.
pub(crate) fn regroup(mut facts: Facts) -> Facts {
    let logins: Vec<_> = facts
        .logins
        .iter()
        .map(|state| state.login.clone())
        .collect();
    facts.groups = QuotaGroups::of(&logins);
    facts
}

/// A refusal that names the session window.
pub(crate) fn refused() -> LimitReport {
    LimitReport {
        window: Some("five_hour".to_owned()),
        status: WindowStatus::Rejected,
        ..LimitReport::default()
    }
}
