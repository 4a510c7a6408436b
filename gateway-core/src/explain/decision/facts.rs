//! A scenario as the facts of a routing decision. Tolerant in form: what cannot be read counts as absent, except where that
//! would spend money, touch an open tool or trust a login; there it counts against the move.

use jiff::Timestamp;
use serde_json::Value;

use super::super::scenario::{self, flag, items, milliseconds, number, text};
use crate::spend::{SpendCaps, Spent, Usd};
use crate::switch::facts::{
    Burn, Class, Facts, LimitReport, LoginState, Reservation, Selection, Thread, ThreadStatus,
};
use crate::switch::settings::{ChainOrder, Guard, Paid, Settings};
use crate::usage::identity::{Login, QuotaGroups};
use crate::usage::instant::{instant, percent};
use crate::usage::{blocking, scope};

pub(super) fn facts(scenario: &Value) -> Facts {
    let environment = member(scenario, "environment");
    let logins: Vec<_> = items(scenario, "subscriptions")
        .filter_map(login_state)
        .collect();
    let known: Vec<Login> = logins.iter().map(|state| state.login.clone()).collect();
    Facts {
        settings: settings(member(scenario, "settings")),
        class: class(scenario),
        thread: thread(member(scenario, "thread")),
        environment_switches: instants(environment, "auto_switches"),
        restarted_at: environment.get("restarted_at").and_then(instant),
        source: selection(member(scenario, "source")),
        chain: items(scenario, "chain").filter_map(selection).collect(),
        groups: QuotaGroups::of(&known),
        logins,
        readings: scenario::readings(scenario),
        burn: items(scenario, "burn").filter_map(burn).collect(),
        expected_burn_pct: points(scenario, "expected_burn_pct"),
        reservations: items(scenario, "reservations")
            .filter_map(reservation)
            .collect(),
        spent: spent(member(scenario, "spend")),
    }
}

/// A selection; `None` = it names no subscription and is left alone.
pub(super) fn selection(value: &Value) -> Option<Selection> {
    let model = value.get("model").and_then(Value::as_str);
    Some(Selection {
        subscription: value
            .get("subscription")
            .and_then(scenario::subscription_id)?,
        model: model.map(str::to_owned),
        bucket: text(value, "bucket").map(str::to_owned),
        context_window: points(value, "context_window")
            .map(count)
            .filter(|window| *window > 0),
        price: present(value, "price_estimate_usd")
            .and_then(number)
            .and_then(Usd::from_dollars),
        native_resume: flag(value, "native_resume"),
    })
}

/// What the provider said, from the scenario's `event`.
pub(super) fn report(event: &Value) -> LimitReport {
    LimitReport {
        window: text(event, "window").map(str::to_owned),
        scope: text(event, "scope").and_then(scope::parse),
        status: blocking::status(text(event, "status").unwrap_or_default()),
        used_pct: event.get("used_pct").and_then(percent),
        resets_at: event.get("resets_at").and_then(instant),
        duration_mins: event.get("duration_mins").and_then(scenario::minutes),
        overage_offered: flag(event, "overage_offered"),
        turn_completed: flag(event, "turn_completed"),
    }
}

/// A whole number of things; a fraction is cut off, a negative one is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates at both ends"
)]
pub(super) fn count(number: f64) -> u64 {
    number as u64
}

fn class(scenario: &Value) -> Class {
    let child = text(scenario, "trigger") == Some("delegate");
    match text(scenario, "class").map(str::to_lowercase).as_deref() {
        Some("background") => Class::Background,
        Some("interactive") => Class::Interactive,
        _ if child => Class::Background,
        _ => Class::Interactive,
    }
}

fn settings(value: &Value) -> Settings {
    let default = Settings::default();
    let read = |name: &str| points(value, name);
    let mins = |name: &str| read(name).map(|minutes| milliseconds(minutes * 60.0));
    let secs = |name: &str| read(name).map(milliseconds);
    let cap = |name: &str| read(name).map(|cap| u32::try_from(count(cap)).unwrap_or(u32::MAX));
    let absolute = text(value, "chain_order") == Some("absolute");
    Settings {
        enabled: flag(value, "quota.enabled"),
        auto_resume: flag(value, "auto_resume"),
        order: match absolute {
            true => ChainOrder::Absolute,
            false => ChainOrder::Tiered,
        },
        fresh_max_ms: mins("fresh_max_mins").unwrap_or(default.fresh_max_ms),
        wait_within_ms: mins("wait_if_reset_within_mins").unwrap_or(default.wait_within_ms),
        paid_wait_within_ms: mins("paid_wait_if_reset_within_mins")
            .unwrap_or(default.paid_wait_within_ms),
        weekly_nearly_gone_pct: read("weekly_nearly_gone_pct")
            .unwrap_or(default.weekly_nearly_gone_pct),
        guard: guard(value),
        reserve_interactive_pct: read("reserve.interactive_pct")
            .unwrap_or(default.reserve_interactive_pct),
        reserve_background_pct: read("reserve.background_pct")
            .unwrap_or(default.reserve_background_pct),
        cap_thread: cap("cap.thread").unwrap_or(default.cap_thread),
        cap_environment: cap("cap.environment").unwrap_or(default.cap_environment),
        paid: paid(value),
        overage_allowed: flag(value, "overage.allowed"),
        drain_ms: secs("drain_timeout_s").unwrap_or(default.drain_ms),
        interrupt_ack_ms: secs("interrupt_ack_s").unwrap_or(default.interrupt_ack_ms),
        admission_max_wait_ms: mins("admission.max_wait_mins")
            .unwrap_or(default.admission_max_wait_ms),
        handoff_cap_tokens: read("handoff.cap_tokens").map_or(default.handoff_cap_tokens, count),
        ..default
    }
}

fn guard(value: &Value) -> Guard {
    let default = Guard::default();
    let read = |name: &str| points(value, name);
    let many =
        |name: &str| read(name).map(|many| usize::try_from(count(many)).unwrap_or(usize::MAX));
    Guard {
        margin_pct: read("guard.margin_pct").unwrap_or(default.margin_pct),
        safety: read("guard.safety").unwrap_or(default.safety),
        samples: many("guard.samples").unwrap_or(default.samples),
        min_samples: many("guard.min_samples").unwrap_or(default.min_samples),
        hard_pct: read("guard.hard_pct").unwrap_or(default.hard_pct),
        hysteresis_pct: read("guard.hysteresis_pct").unwrap_or(default.hysteresis_pct),
    }
}

/// Fails closed: a cap that cannot be read is none, a list that cannot be read opts nobody in.
fn paid(value: &Value) -> Paid {
    let default = Paid::default();
    let cap = |name: &str, default: Usd| match present(value, name) {
        None => default,
        Some(cap) => number(cap).and_then(Usd::from_dollars).unwrap_or(Usd::ZERO),
    };
    let accounts = present(value, "paid.accounts").map(|_| {
        items(value, "paid.accounts")
            .filter_map(scenario::subscription_id)
            .collect()
    });
    Paid {
        enabled: flag(value, "paid.enabled"),
        accounts,
        caps: SpendCaps {
            day: cap("paid.cap_day_usd", default.caps.day),
            thread: cap("paid.cap_thread_usd", default.caps.thread),
        },
    }
}

/// Fails closed: an amount that cannot be read is too much.
fn spent(value: &Value) -> Spent {
    let amount = |name: &str| match present(value, name) {
        None => Usd::ZERO,
        Some(amount) => match number(amount) {
            Some(dollars) => Usd::from_dollars(dollars.max(0.0)).unwrap_or(Usd::UNREADABLE),
            None => Usd::UNREADABLE,
        },
    };
    Spent {
        day: amount("today_usd"),
        thread: amount("thread_usd"),
    }
}

fn thread(value: &Value) -> Thread {
    Thread {
        status: match text(value, "status").map(str::to_lowercase).as_deref() {
            Some("paused") => ThreadStatus::Paused,
            Some("archived") => ThreadStatus::Archived,
            Some("settled") => ThreadStatus::Settled,
            _ => ThreadStatus::Active,
        },
        superseded: flag(value, "superseded"),
        auto_switches: instants(value, "auto_switches"),
        tried: items(value, "tried")
            .filter_map(scenario::subscription_id)
            .collect(),
        approval_pending: flag(value, "approval_pending"),
        tool_in_flight_ms: present(value, "tool_in_flight_s")
            .filter(|open| **open != Value::Bool(false))
            .map(|open| number(open).map_or(0, milliseconds)),
        children_running: points(value, "children_running").is_some_and(|many| many > 0.0)
            || flag(value, "children_running"),
        interrupting_ms: present(value, "interrupting_s")
            .and_then(number)
            .map(milliseconds),
        requires: words(value, "requires"),
        request_tokens: points(value, "request_tokens").map(count),
        undone_at: value.get("undone_at").and_then(instant),
    }
}

fn login_state(value: &Value) -> Option<LoginState> {
    let on = |name: &str| value.get(name).and_then(Value::as_bool) != Some(false);
    Some(LoginState {
        login: scenario::login(value)?,
        provider: text(value, "provider").unwrap_or_default().to_lowercase(),
        enabled: on("enabled"),
        installed: on("installed"),
        authenticated: match present(value, "auth") {
            None => true,
            Some(auth) => auth.as_str().is_some_and(|auth| auth.trim() == "ok"),
        },
        available: on("available"),
        hub: text(value, "via") == Some("hub"),
        lacks: words(value, "lacks"),
        last_start_failed_at: value.get("last_start_failed_at").and_then(instant),
    })
}

fn burn(value: &Value) -> Option<Burn> {
    Some(Burn {
        subscription: value
            .get("subscription")
            .and_then(scenario::subscription_id)?,
        window: text(value, "window")?.to_owned(),
        samples: items(value, "deltas").map(number).collect(),
    })
}

fn reservation(value: &Value) -> Option<Reservation> {
    Some(Reservation {
        subscription: value
            .get("subscription")
            .and_then(scenario::subscription_id)?,
        pct: points(value, "pct").unwrap_or(0.0),
        at: value.get("at").and_then(instant),
    })
}

/// A number that is not negative; what is below counts as 0.
fn points(value: &Value, member: &str) -> Option<f64> {
    Some(number(value.get(member)?)?.max(0.0))
}

fn words(value: &Value, member: &str) -> Vec<String> {
    items(value, member)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn instants(value: &Value, member: &str) -> Vec<Timestamp> {
    items(value, member).filter_map(instant).collect()
}

fn member<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn present<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).filter(|value| !value.is_null())
}
