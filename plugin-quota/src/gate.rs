//! The two questions to the gate, put into `gateway-core`'s words and its answers into advice. Fails open: a reason of a
//! newer gateway is no opinion.

use gateway_core::plan::{
    self, EntryView, GateAdvice, GateSettings, GateSkip, WalkQuestion, WindowView,
};
use plugin_api::prelude::*;

/// Before the first attempt. `None` = the head may be tried, or nothing is known; the gate has not run.
pub(crate) fn head(
    context: &PrologueContext<'_>,
    settings: GateSettings,
) -> Option<PrologueAdvice> {
    let turn = &context.turn;
    let advice = plan::prologue(settings, turn.now_ms, entries(turn));
    advice.gated.then(|| PrologueAdvice {
        skips: skips(&advice),
        gated: true,
        status_line: advice.status_line,
        ..PrologueAdvice::default()
    })
}

/// After a quota failure. `None` = not about quota.
pub(crate) fn rest(context: &WalkContext<'_>, settings: GateSettings) -> Option<WalkAdvice> {
    let turn = &context.turn;
    let failed = turn.routes().get(context.failed as usize);
    let memo: Vec<usize> = context
        .memo
        .iter()
        .map(|position| *position as usize)
        .collect();
    let question = WalkQuestion {
        reason: context.reason.known().filter(|reason| reason.is_quota())?,
        failed: failed.map_or("", |route| route.subscription.as_str()),
        cursor: context.cursor as usize,
        already_gated: context.already_gated,
        line_shown: context.line_shown,
        relay_seat: false,
        memo: &memo,
        settings,
        now_ms: turn.now_ms,
    };
    let advice = plan::before_walk(&question, entries(turn));
    Some(WalkAdvice {
        skips: skips(&advice),
        gated: advice.gated,
        status_line: advice.status_line,
    })
}

/// The chain with its windows, read where it lies.
fn entries<'a>(
    turn: &TurnView<'a>,
) -> impl Iterator<Item = (EntryView<'a>, impl Iterator<Item = WindowView<'a>>)> {
    let turn = *turn;
    turn.routes().iter().map(move |route| {
        (
            route.view(),
            turn.windows_of(route).iter().map(WindowRecord::view),
        )
    })
}

fn skips(advice: &GateAdvice) -> Vec<Skip> {
    advice.skips.iter().map(skip).collect()
}

fn skip(skip: &GateSkip) -> Skip {
    Skip {
        // A chain is far shorter than that.
        position: u32::try_from(skip.position).unwrap_or(u32::MAX),
        until_ms: skip.until_ms.into(),
    }
}

#[cfg(test)]
mod tests {
    use plugin_api::testing::Facts;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn settings() -> GateSettings {
        GateSettings::default()
    }

    #[test]
    fn a_free_head_is_no_opinion_and_does_not_use_the_gate_up() {
        let mut facts = Facts::with_routes(3).all_spent(HOUR_MS);
        facts.routes[0].window_count = 0;
        assert_eq!(head(&facts.prologue(), settings()), None);
        assert_eq!(head(&Facts::with_routes(0).prologue(), settings()), None);
    }

    #[test]
    fn a_spent_head_is_said_once_with_the_route_in_use() {
        let mut facts = Facts::with_routes(3).all_spent(HOUR_MS);
        facts.routes[2].window_count = 0;
        let advice = head(&facts.prologue(), settings()).unwrap();
        let positions: Vec<u32> = advice.skips.iter().map(|skip| skip.position).collect();
        assert_eq!((positions, advice.gated), (vec![0, 1], true));
        assert_eq!(
            advice.status_line.as_deref(),
            Some(
                "⚠️ Quota known to be spent — skipping 2 exhausted subs (quota registry) and using sub-2/opus..."
            )
        );
    }

    #[test]
    fn after_a_quota_failure_the_rest_is_judged_once() {
        let mut facts = Facts::with_routes(4).all_spent(HOUR_MS);
        facts.routes[3].window_count = 0;
        let advice = rest(&facts.walk(), settings()).unwrap();
        let positions: Vec<u32> = advice.skips.iter().map(|skip| skip.position).collect();
        assert_eq!((positions, advice.gated), (vec![1, 2], true));
        assert!(
            advice
                .status_line
                .unwrap()
                .contains("skipping 2 exhausted subs")
        );
        facts.line_shown = true;
        assert_eq!(rest(&facts.walk(), settings()).unwrap().status_line, None);
        facts.already_gated = true;
        assert_eq!(rest(&facts.walk(), settings()).unwrap().skips, []);
    }

    #[test]
    fn other_reasons_and_unknown_ones_are_no_opinion() {
        let mut facts = Facts::with_routes(2).all_spent(HOUR_MS);
        for reason in [ReasonCode::Timeout, ReasonCode(200)] {
            facts.reason = reason;
            assert_eq!(rest(&facts.walk(), settings()), None);
        }
    }

    #[test]
    fn a_route_that_is_not_usable_is_neither_skipped_nor_counted() {
        let mut facts = Facts::with_routes(3).all_spent(HOUR_MS);
        facts.routes[1].usable = false;
        facts.routes[2].window_count = 0;
        let advice = head(&facts.prologue(), settings()).unwrap();
        let positions: Vec<u32> = advice.skips.iter().map(|skip| skip.position).collect();
        assert_eq!(positions, [0]);
    }

    #[test]
    fn the_settings_are_used() {
        let mut facts = Facts::with_routes(2).all_spent(HOUR_MS);
        facts.routes[1].window_count = 0;
        let far = GateSettings {
            horizon_ms: 2 * HOUR_MS,
            ..settings()
        };
        assert_eq!(head(&facts.prologue(), far), None);
    }
}
