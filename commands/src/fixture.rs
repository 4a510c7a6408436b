//! A conversation to look at: Monday 09:00 UTC, a chain of three, the first one spent.

use gateway_core::handoff::{Handoff, HandoffState, PAYLOAD_VERSION, StoredHandoff};
use gateway_core::message::Standing;
use gateway_core::route::{Billing, Route};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::view::{EntryState, PluginLine, Serving, Verdict, View};

/// 2026-09-21T09:00:00Z.
pub(crate) const NOW: i64 = 1_789_981_200;

pub(crate) fn at(offset_seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + offset_seconds).unwrap()
}

pub(crate) fn view() -> View {
    let chain = vec![
        entry(
            "claude-work/opus",
            Billing::Plan,
            Verdict::Spent {
                window: "five_hour".to_owned(),
                until: at(21_600),
            },
            vec![
                reading(
                    "claude-work",
                    "five_hour",
                    Some(101.0),
                    21_600,
                    WindowStatus::Rejected,
                ),
                reading(
                    "claude-work",
                    "seven_day",
                    Some(34.4),
                    293_760,
                    WindowStatus::Allowed,
                ),
            ],
        ),
        entry(
            "gpt-plus/gpt-6.1-sol",
            Billing::Plan,
            Verdict::Eligible,
            vec![],
        ),
        entry(
            "fireworks/kimi-k3",
            Billing::Metered,
            Verdict::PassedOver,
            vec![],
        ),
    ];
    View {
        profile: "default".into(),
        standing: Standing::Member,
        now: at(0),
        zone: TimeZone::UTC,
        message_chars: None,
        conversation_started_at: at(-2_880),
        serving: Some(Serving::new(
            Route::new("gpt-plus", "gpt-6.1-sol"),
            at(-300),
            None,
            &chain,
        )),
        chosen: None,
        turn: None,
        queued: 0,
        chain,
        handoffs: Vec::new(),
        handoffs_enabled: true,
        plugins: vec![plugin("quota", "active"), plugin("handoff", "active")],
        brought: Vec::new(),
        earlier: Vec::new(),
        saved: Vec::new(),
        routing: None,
    }
}

pub(crate) fn entry(
    route: &str,
    billing: Billing,
    verdict: Verdict,
    readings: Vec<Reading>,
) -> EntryState {
    EntryState {
        route: route.parse().unwrap(),
        billing,
        verdict,
        readings,
        shares: Vec::new(),
    }
}

pub(crate) fn reading(
    subscription: &str,
    window: &str,
    used_pct: Option<f64>,
    resets_in: i64,
    status: WindowStatus,
) -> Reading {
    Reading {
        subscription: subscription.into(),
        window: window.to_owned(),
        scope: None,
        used_pct,
        status,
        resets_at: Some(at(resets_in)),
        duration_mins: None,
        observed_at: Some(at(-180)),
        source: ReadingSource::Event,
    }
}

pub(crate) fn handoff(state: HandoffState) -> StoredHandoff {
    StoredHandoff {
        handoff: Handoff {
            version: PAYLOAD_VERSION,
            id: "0192-handoff".into(),
            turn: "0192-turn".into(),
            profile: "default".into(),
            session: "agent:default:console:local".into(),
            conversation: "c-1".into(),
            created_at: at(-600),
            expires_at: at(85_800),
            reason: "rate limit".to_owned(),
            route: Some(Route::new("claude-work", "opus")),
            request: "count the files".to_owned(),
            request_id: "m-1".into(),
            progress: "Half of it.".to_owned(),
            calls: Vec::new(),
            open_todos: Vec::new(),
            next_reset: None,
            earlier_cuts: 0,
        },
        state,
        revision: 1,
        claimed_by: None,
    }
}

fn plugin(name: &str, state: &str) -> PluginLine {
    PluginLine {
        name: name.to_owned(),
        version: Some("0.1.0".to_owned()),
        state: state.to_owned(),
        calls: 12,
        failures: 0,
        last_error: None,
    }
}
