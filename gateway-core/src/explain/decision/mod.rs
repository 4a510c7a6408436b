//! The triggers of `baton explain decision` that routing answers: the scenario becomes the facts, the decision becomes the
//! verdict, and the functions in between are the ones that route real turns.

mod facts;
mod words;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::words::{Said, Words};
use super::scenario::{self, flag, number};
use crate::handoff::carriage::{self, Freight};
use crate::switch::admission::{self, ChildRequest};
use crate::switch::facts::{LimitClass, Selection};
use crate::switch::recovery::{self, Waiting};
use crate::switch::{Facts, Rejection, decide};
use crate::usage::instant::instant;

/// Answers a routing scenario; `None` = routing does not know this trigger.
pub(super) fn verdict(trigger: &str, scenario: &Value) -> Option<Result<Value, String>> {
    let answer = match trigger {
        "limit_failure" => limit_failure,
        "mid_turn_event" => mid_turn,
        "pre_turn" => before_turn,
        "delegate" => delegate,
        "reset_check" => reset_check,
        "switch_back" => switch_back,
        "handoff" => handoff,
        _ => return None,
    };
    Some(scenario::now(scenario).map(|now| answer(scenario, now)))
}

fn limit_failure(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let event = scenario.get("event").unwrap_or(&Value::Null);
    let class = match event.get("class").and_then(Value::as_str).map(str::trim) {
        None | Some("usage_limit") => LimitClass::UsageLimit,
        Some("billing") => LimitClass::Billing,
        Some(_) => LimitClass::NotQuota,
    };
    let verdict = decide::limit_failure(&facts, class, &facts::report(event), now);
    render_turn(scenario, &facts, verdict)
}

fn mid_turn(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let event = scenario.get("event").unwrap_or(&Value::Null);
    let verdict = decide::mid_turn(&facts, &facts::report(event), now);
    render_turn(scenario, &facts, verdict)
}

fn before_turn(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    render_turn(scenario, &facts, decide::before_turn(&facts, now))
}

fn render_turn(scenario: &Value, facts: &Facts, verdict: decide::Verdict) -> Value {
    render(
        scenario,
        facts,
        &verdict.decision.said(),
        verdict.rejected.as_deref(),
    )
}

fn delegate(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let child = scenario.get("delegate").unwrap_or(&Value::Null);
    let duplicate = child.get("duplicate_of").and_then(Value::as_str);
    let request = ChildRequest {
        waiting_since: child.get("waiting_since").and_then(instant),
        cancelled: flag(child, "cancelled"),
        duplicate: duplicate.is_some_and(|task| !task.trim().is_empty()),
    };
    let verdict = admission::admit(&facts, &request, now);
    let said = verdict.admission.said();
    render(scenario, &facts, &said, verdict.rejected.as_deref())
}

fn reset_check(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let waiting = scenario
        .get("waiting")
        .filter(|waiting| waiting.is_object());
    let waiting = waiting.map(|waiting| Waiting {
        subscription: waiting
            .get("subscription")
            .and_then(scenario::subscription_id),
        until: waiting.get("until").and_then(instant),
    });
    let recovery = recovery::look_again(&facts, waiting.as_ref(), now);
    render(scenario, &facts, &recovery.said(), None)
}

fn switch_back(scenario: &Value, now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let asked = scenario.get("switch_back").unwrap_or(&Value::Null);
    let Some(mut target) = facts::selection(asked) else {
        // Nobody is named, so nobody is known.
        let unnamed = Selection::new("", None);
        let answer = recovery::switch_back(&facts, &unnamed, flag(asked, "duplicate"), now);
        return render(scenario, &facts, &answer.said(), None);
    };
    let known = facts.chain.iter().chain(&facts.source);
    if let Some(entry) = known
        .filter(|entry| entry.subscription == target.subscription)
        .find(|entry| target.model.is_none() || entry.model == target.model)
    {
        target.model = target.model.or_else(|| entry.model.clone());
        target.bucket = target.bucket.or_else(|| entry.bucket.clone());
    }
    let answer = recovery::switch_back(&facts, &target, flag(asked, "duplicate"), now);
    let said = Said {
        selection: Some(&target),
        ..answer.said()
    };
    render(scenario, &facts, &said, None)
}

fn handoff(scenario: &Value, _now: Timestamp) -> Value {
    let facts = facts::facts(scenario);
    let asked = scenario.get("handoff").unwrap_or(&Value::Null);
    let count = |member: &str| asked.get(member).and_then(number).map(facts::count);
    let bytes = || count("request_bytes").map(carriage::tokens_of_bytes);
    let freight = Freight {
        context_window: count("context_window").filter(|window| *window > 0),
        native_tokens: count("native_tokens").unwrap_or(0),
        request_tokens: count("request_tokens").or_else(bytes).unwrap_or(0),
        native_resume_verified: flag(asked, "native_resume_verified"),
        returning: flag(asked, "returning"),
        delivery_ambiguous: flag(asked, "delivery_ambiguous"),
    };
    let carriage = carriage::carry(&freight, facts.settings.handoff_cap_tokens);
    render(scenario, &facts, &carriage.said(), None)
}

fn render(
    scenario: &Value,
    facts: &Facts,
    said: &Said<'_>,
    rejected: Option<&[Rejection]>,
) -> Value {
    let entry = said.entry.and_then(|position| facts.chain.get(position));
    let asked_for = facts.source.as_ref().filter(|_| said.stays);
    let target = entry
        .or(asked_for)
        .or(said.selection.filter(|_| said.switches()));
    let mut verdict = Map::new();
    let mut say = |member: &str, value: Value| drop(verdict.insert(member.to_owned(), value));
    say("id", json!(scenario.get("id")));
    say("decision", json!(said.decision));
    say("reason", json!(said.reason));
    say(
        "target",
        json!(target.map(|entry| entry.subscription.as_str())),
    );
    say(
        "target_model",
        json!(target.and_then(|entry| entry.model.as_deref())),
    );
    say("until", json!(said.until));
    if let Some(rejected) = rejected {
        say("rejected", rejected.iter().map(rejection).collect());
    }
    if let Some(tokens) = said.budget_tokens {
        say("budget_tokens", json!(tokens));
    }
    if let Some(warning) = said.warning {
        say("warning", json!(warning));
    }
    Value::Object(verdict)
}

fn rejection(rejection: &Rejection) -> Value {
    json!({
        "subscription": rejection.subscription.as_str(),
        "reason": rejection.reason.word(),
    })
}

#[cfg(test)]
mod tests;
