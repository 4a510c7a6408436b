//! Trigger `gate`: the walk of a fallback chain after a failure, with registry evidence. The same [`before_walk`] that
//! the quota plugin calls in a real turn.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::scenario::{self, Selection};
use crate::failure::FailureKind;
use crate::ids::SubscriptionId;
use crate::notice::{self, Spent};
use crate::plan::{
    EntryView, GateAdvice, GateRuling, ScopeView, WalkQuestion, WindowView, before_walk,
};
use crate::usage::identity::QuotaGroups;
use crate::usage::{Reading, merge};

/// Answers a gate scenario.
pub(super) fn verdict(scenario: &Value) -> Result<Value, String> {
    let now = scenario::now(scenario)?;
    let chain = scenario::chain(scenario);
    let groups = QuotaGroups::of(&scenario::logins(scenario));
    let evidence = Evidence::of(scenario, &groups, now);
    let entries = addressable(&chain);
    let views: Vec<_> = entries
        .iter()
        .map(|entry| (entry.view(&groups), evidence.windows(entry, &groups)))
        .collect();
    let asked = Asked::of(scenario, chain.len());
    let memo = asked.memo_positions(&entries);
    let source = scenario::source(scenario);
    let question = WalkQuestion {
        reason: asked.reason,
        failed: source.as_ref().map_or("", SubscriptionId::as_str),
        cursor: entries.partition_point(|entry| entry.position < asked.cursor),
        already_gated: asked.already_gated,
        line_shown: asked.line_emitted,
        relay_seat: asked.relay_seat,
        memo: &memo,
        settings: scenario::settings(scenario),
        now_ms: now.as_millisecond(),
    };
    let advice = before_walk(&question, views);
    Ok(render(scenario, &advice, &entries, now))
}

/// A chain entry with a subscription. Entries without one are left alone: neither tried nor skipped.
struct Entry<'c> {
    position: usize,
    subscription: &'c SubscriptionId,
    selection: &'c Selection,
}

impl<'c> Entry<'c> {
    fn view<'a>(&'a self, groups: &'a QuotaGroups) -> EntryView<'a> {
        EntryView {
            subscription: self.subscription.as_str(),
            model: self.selection.model.as_deref().unwrap_or_default(),
            counts_as: groups.head(self.subscription),
            usable: true,
        }
    }
}

fn addressable(chain: &[Selection]) -> Vec<Entry<'_>> {
    chain
        .iter()
        .enumerate()
        .filter_map(|(position, selection)| {
            let subscription = selection.subscription.as_ref()?;
            Some(Entry {
                position,
                subscription,
                selection,
            })
        })
        .collect()
}

/// The newest readings, by quota group.
struct Evidence {
    by_group: HashMap<String, Vec<Reading>>,
}

impl Evidence {
    fn of(scenario: &Value, groups: &QuotaGroups, now: Timestamp) -> Self {
        let group = |reading: &Reading| groups.head(&reading.subscription).to_owned();
        let mut by_group: HashMap<String, Vec<Reading>> = HashMap::new();
        for reading in merge::newest_per(scenario::readings(scenario), now, group) {
            by_group.entry(group(&reading)).or_default().push(reading);
        }
        Self { by_group }
    }

    /// The windows an entry sees: with a bucket only that bucket's, as if they were the account's; else no bucket's.
    fn windows<'a>(&'a self, entry: &Entry<'_>, groups: &QuotaGroups) -> Vec<WindowView<'a>> {
        let bucket = entry.selection.bucket.as_deref();
        self.by_group
            .get(groups.head(entry.subscription))
            .into_iter()
            .flatten()
            .map(Reading::view)
            .filter_map(|window| match (bucket, window.scope) {
                (Some(wanted), ScopeView::Bucket(of)) => {
                    of.eq_ignore_ascii_case(wanted).then_some(WindowView {
                        scope: ScopeView::Account,
                        ..window
                    })
                }
                (Some(_), _) | (None, ScopeView::Bucket(_)) => None,
                (None, _) => Some(window),
            })
            .collect()
    }
}

/// The scenario's member `gate`.
struct Asked {
    reason: FailureKind,
    cursor: usize,
    already_gated: bool,
    line_emitted: bool,
    relay_seat: bool,
    memo: HashSet<SubscriptionId>,
}

impl Asked {
    fn of(scenario: &Value, chain_len: usize) -> Self {
        let gate = scenario.get("gate").unwrap_or(&Value::Null);
        let flag = |member: &str| gate.get(member).and_then(Value::as_bool) == Some(true);
        Self {
            reason: gate.get("reason").map_or(FailureKind::RateLimit, reason),
            cursor: cursor(gate.get("cursor"), chain_len),
            already_gated: flag("already_gated"),
            line_emitted: flag("line_emitted"),
            relay_seat: flag("relay_seat"),
            memo: scenario::items(gate, "memo")
                .filter_map(scenario::subscription_id)
                .collect(),
        }
    }

    fn memo_positions(&self, entries: &[Entry<'_>]) -> Vec<usize> {
        let held = |entry: &&Entry<'_>| self.memo.contains(entry.subscription);
        let places = entries.iter().enumerate();
        places
            .filter(|(_, entry)| held(&entry))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Only the three quota reasons open the gate; any other word stands for "not about quota".
fn reason(value: &Value) -> FailureKind {
    match value.as_str().map(str::trim) {
        Some("rate_limit") => FailureKind::RateLimit,
        Some("billing") => FailureKind::Billing,
        Some("upstream_rate_limit") => FailureKind::UpstreamRateLimit,
        _ => FailureKind::Timeout,
    }
}

/// Negative and unreadable cursors start at the head; one past the end has walked everything.
fn cursor(value: Option<&Value>, chain_len: usize) -> usize {
    let Some(Value::Number(number)) = value else {
        return 0;
    };
    match number.as_u64() {
        Some(cursor) => usize::try_from(cursor).unwrap_or(usize::MAX).min(chain_len),
        None if number.as_f64().is_some_and(|cursor| cursor >= 1.0) => (1..=chain_len)
            .take_while(|at| number.as_f64() >= usize_as_f64(*at))
            .count(),
        None => 0,
    }
}

fn usize_as_f64(at: usize) -> Option<f64> {
    u32::try_from(at).ok().map(f64::from)
}

fn render(scenario: &Value, advice: &GateAdvice, entries: &[Entry<'_>], now: Timestamp) -> Value {
    let (decision, reason) = words(advice.ruling);
    let target = advice.target.and_then(|at| entries.get(at));
    let until = advice
        .all_spent_until_ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let closing = (advice.ruling == GateRuling::AllExhausted)
        .then(|| notice::closing_line(Spent::PerRegistry, until, now));
    json!({
        "id": scenario.get("id"),
        "decision": decision,
        "reason": reason,
        "target": target.map(|entry| entry.subscription.as_str()),
        "target_model": target.and_then(|entry| entry.selection.model.as_deref()),
        "until": until,
        "skipped": skipped(advice, entries),
        "skipped_count": advice.count,
        "status_line": advice.status_line,
        "closing_line": closing,
    })
}

fn skipped(advice: &GateAdvice, entries: &[Entry<'_>]) -> Vec<Value> {
    let one = |at: usize, until_ms: Option<i64>| {
        let entry = entries.get(at)?;
        Some(json!({
            "subscription": entry.subscription.as_str(),
            "model": entry.selection.model,
            "until": until_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        }))
    };
    advice
        .skips
        .iter()
        .filter_map(|skip| one(skip.position, skip.until_ms))
        .collect()
}

fn words(ruling: GateRuling) -> (&'static str, &'static str) {
    match ruling {
        GateRuling::Walk => ("switch", "fallback"),
        GateRuling::AllExhausted => ("wait", "all_exhausted"),
        GateRuling::NotQuota => ("noop", "not_quota"),
        GateRuling::RelaySeat => ("noop", "relay_seat"),
        GateRuling::AlreadyGated => ("noop", "already_gated"),
        GateRuling::EmptyChain | GateRuling::HeadFree => ("noop", "empty_chain"),
    }
}
