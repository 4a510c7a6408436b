//! When the gate speaks and what it says: at the head of a turn only if the first route is known to be spent, else after
//! the first quota failure; once per turn. Fails open: nothing known means nothing said.

use std::collections::BTreeSet;

use gateway_core::plan::{EntryVerdict, GateSettings, judge};
use plugin_api::prelude::*;

/// Before the first attempt. `None` = the head may be tried; the gate has not run.
pub(crate) fn head(
    context: &PrologueContext<'_>,
    settings: GateSettings,
) -> Option<PrologueAdvice> {
    let judged = Judged::from(&context.turn, 0, settings);
    let first = context
        .turn
        .routes()
        .iter()
        .position(|route| route.usable)?;
    judged
        .skips
        .iter()
        .find(|skip| skip.position as usize == first)?;
    // With nothing left to use there is no line: the turn ends with its closing line.
    let status_line = judged
        .left
        .map(|route| known_spent_line(judged.subscriptions, &route.subscription, &route.model));
    Some(PrologueAdvice {
        skips: judged.skips,
        gated: true,
        status_line,
        ..PrologueAdvice::default()
    })
}

/// After a failure. `None` = not about quota, or a gate has run in this turn.
pub(crate) fn rest(context: &WalkContext<'_>, settings: GateSettings) -> Option<WalkAdvice> {
    let reason = context.reason.known().filter(|reason| reason.is_quota())?;
    if context.already_gated {
        return None;
    }
    let judged = Judged::from(&context.turn, context.cursor, settings);
    let line = || gate_line(reason, failed(context), judged.subscriptions);
    let speak = !context.line_shown && judged.left.is_some();
    Some(WalkAdvice {
        gated: true,
        status_line: speak.then(line),
        skips: judged.skips,
    })
}

fn failed<'a>(context: &WalkContext<'a>) -> &'a str {
    let route = context.turn.routes().get(context.failed as usize);
    route.map_or("", |route| route.subscription.as_str())
}

/// The chain from a position on, judged.
struct Judged<'a> {
    skips: Vec<Skip>,
    /// The first route that may be tried.
    left: Option<&'a RouteRecord>,
    /// How many subscriptions (quota groups) the skipped entries are.
    subscriptions: usize,
}

impl<'a> Judged<'a> {
    fn from(turn: &TurnView<'a>, from: u32, settings: GateSettings) -> Self {
        let mut judged = Self {
            skips: Vec::new(),
            left: None,
            subscriptions: 0,
        };
        let mut counted = BTreeSet::new();
        for (position, route) in (0u32..).zip(turn.routes()) {
            if position < from || !route.usable {
                continue;
            }
            let windows = turn.windows_of(route).iter().map(WindowRecord::view);
            match judge(&route.model, windows, settings, turn.now_ms) {
                EntryVerdict::Skip { until_ms, .. } => {
                    judged.skips.push(Skip::until(position, until_ms));
                    counted.insert(route.counts_as.as_str());
                }
                EntryVerdict::Eligible => {
                    judged.left.get_or_insert(route);
                }
            }
        }
        judged.subscriptions = counted.len();
        judged
    }
}

fn gate_line(reason: gateway_core::failure::FailureKind, _failed: &str, skipped: usize) -> String {
    let plural = if skipped == 1 { "" } else { "s" };
    match (reason, skipped) {
        (_, 0) => "⚠️ Rate limited — switching to fallback provider...".to_owned(),
        _ => format!(
            "⚠️ Rate limited — skipping {skipped} exhausted sub{plural} (quota registry) and switching to fallback provider..."
        ),
    }
}

fn known_spent_line(skipped: usize, subscription: &str, model: &str) -> String {
    let plural = if skipped == 1 { "" } else { "s" };
    format!(
        "⚠️ Quota known to be spent — skipping {skipped} exhausted sub{plural} (quota registry) and using {subscription}/{model}..."
    )
}
