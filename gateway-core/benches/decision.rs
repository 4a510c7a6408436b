//! What one routing decision costs: the whole of it over prepared facts, as the host holds them, and once with the quota
//! groups and the JSON of `baton explain decision` on top. Targets: 21 routes under 50 µs, 1,000 under 3 ms.
//!
//! `cargo bench -p gateway-core --bench decision`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gateway_core::explain::decision_line;
use gateway_core::switch::Facts;
use gateway_core::switch::decide::{self, Decision, SwitchReason};
use gateway_core::switch::facts::{LimitClass, LimitReport, LoginState, Selection};
use gateway_core::usage::identity::{Login, QuotaGroups};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::Timestamp;
use serde_json::json;

const NOW_S: i64 = 1_789_981_200;

fn at(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(NOW_S + seconds).ok()
}

fn login(at: usize) -> LoginState {
    let (company, provider) = match at % 2 {
        0 => ("anthropic", "claude"),
        _ => ("openai", "codex"),
    };
    LoginState {
        login: Login {
            id: name(at).as_str().into(),
            upstream: Some(company.to_owned()),
            account_id: Some(format!("account-{at}")),
            fingerprint: None,
            email: Some(format!("person-{at}@example.com")),
            plan: None,
            metered: false,
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

fn name(at: usize) -> String {
    format!("subscription-{at:04}")
}

fn reading(at_login: usize, window: &str, used_pct: f64, age_s: i64) -> Reading {
    Reading {
        subscription: name(at_login).as_str().into(),
        window: window.to_owned(),
        scope: None,
        used_pct: Some(used_pct),
        status: WindowStatus::Unknown,
        resets_at: at(3 * 3_600),
        duration_mins: None,
        observed_at: at(-age_s),
        source: ReadingSource::Probe,
    }
}

/// A source that is out and `routes` candidates, two windows each, seen twice; only the last one has room.
fn facts(routes: usize) -> Facts {
    let mut facts = Facts {
        source: Some(Selection::new(&name(0), Some("opus"))),
        ..Facts::default()
    };
    facts.settings.enabled = true;
    for at_login in 0..=routes {
        let used = if at_login == routes { 40.0 } else { 100.0 };
        facts.logins.push(login(at_login));
        for age in [60, 300] {
            for window in ["five_hour", "seven_day"] {
                facts.readings.push(reading(at_login, window, used, age));
            }
        }
        if at_login > 0 {
            facts
                .chain
                .push(Selection::new(&name(at_login), Some("gpt")));
        }
    }
    facts.groups = groups(&facts);
    facts
}

fn groups(facts: &Facts) -> QuotaGroups {
    let logins: Vec<_> = facts
        .logins
        .iter()
        .map(|state| state.login.clone())
        .collect();
    QuotaGroups::of(&logins)
}

fn decide(facts: &Facts) -> Decision {
    let now = at(0).unwrap_or_default();
    let report = LimitReport::default();
    decide::limit_failure(facts, LimitClass::UsageLimit, &report, now).decision
}

fn decision(c: &mut Criterion) {
    let mut group = c.benchmark_group("decision");
    for routes in [21, 1_000] {
        let facts = facts(routes);
        let last = Decision::Switch(SwitchReason::Exhausted, routes - 1);
        assert_eq!(decide(&facts), last);
        group.bench_function(BenchmarkId::new("limit_failure", routes), |b| {
            b.iter(|| decide(black_box(&facts)));
        });
        group.bench_function(BenchmarkId::new("quota_groups", routes), |b| {
            b.iter(|| groups(black_box(&facts)));
        });
        let line = scenario(routes);
        group.bench_function(BenchmarkId::new("explain_line", routes), |b| {
            b.iter(|| decision_line(black_box(&line)));
        });
    }
    group.finish();
}

/// The same as a line of `baton explain decision`.
fn scenario(routes: usize) -> String {
    let facts = facts(routes);
    let logins = facts.logins.iter().map(|state| {
        json!({"id": state.login.id, "provider": state.provider,
            "identity": {"account_id": state.login.account_id, "email": state.login.email}})
    });
    let readings = facts.readings.iter().map(|reading| {
        json!({"subscription": reading.subscription, "window": reading.window, "used_pct": reading.used_pct,
            "resets_at": reading.resets_at, "observed_at": reading.observed_at})
    });
    let chain = facts
        .chain
        .iter()
        .map(|entry| json!({"subscription": entry.subscription, "model": entry.model}));
    json!({
        "id": "bench", "now": at(0), "trigger": "limit_failure", "settings": {"quota.enabled": true},
        "source": {"subscription": name(0), "model": "opus"},
        "subscriptions": logins.collect::<Vec<_>>(),
        "readings": readings.collect::<Vec<_>>(),
        "chain": chain.collect::<Vec<_>>(),
    })
    .to_string()
}

criterion_group!(benches, decision);
criterion_main!(benches);
