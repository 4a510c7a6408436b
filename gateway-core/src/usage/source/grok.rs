//! Grok: `cli-chat-proxy.grok.com/v1/billing`, with and without `?format=credits`.
//!
//! The credits view tells `creditUsagePercent` of a week or a month; the plain view `used` of `monthlyLimit`, which are zero
//! on newer plans. On-demand spending and prepaid balance are money and not read.

use serde_json::Value;

use super::fields::{self, member, number_of, text_of};
use super::{Origin, span};
use crate::usage::Reading;

/// Reads either payload.
pub fn billing(payload: &Value, origin: &Origin<'_>) -> Option<Reading> {
    let config = member(payload, &["config"]).unwrap_or(payload);
    let period = config.get("currentPeriod");
    let amount = |name: &str| {
        config
            .get(name)
            .and_then(|amount| number_of(amount, &["val"]))
    };
    let stated = number_of(config, &["creditUsagePercent"]).and_then(fields::points);
    let counted = || fields::counted(amount("used")?, amount("monthlyLimit")?);
    let used = stated.or_else(counted)?;
    let kind = period
        .and_then(|period| text_of(period, &["type"]))
        .unwrap_or_default();
    let mins = if kind.contains("WEEKLY") {
        span::WEEK
    } else {
        span::MONTH
    };
    let end = period.and_then(|period| fields::reset_of(origin, period, &["end"], &[]));
    Some(Reading {
        used_pct: Some(used),
        resets_at: end.or_else(|| fields::reset_of(origin, config, &["billingPeriodEnd"], &[])),
        duration_mins: Some(mins),
        ..origin.reading(span::id(mins).unwrap_or("monthly"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn credits_of_a_week_or_money_of_a_month() {
        let week = json!({"config": {"currentPeriod": {"type": "USAGE_PERIOD_TYPE_WEEKLY", "end": "2026-12-03T04:17:34.67+00:00"},
            "creditUsagePercent": 4.0, "onDemandCap": {"val": 0}, "billingPeriodEnd": "2026-12-09T00:00:00Z"}});
        let month = json!({"config": {"monthlyLimit": {"val": 150_000}, "used": {"val": 150_300}, "billingPeriodEnd": "2026-12-09T00:00:00Z"}});
        let nothing = json!({"config": {"monthlyLimit": {"val": 0}, "used": {"val": 14}}});
        let read =
            |payload: &Value| lines(&billing(payload, &origin()).into_iter().collect::<Vec<_>>());
        assert_eq!(
            read(&week),
            ["seven_day account 4% - 2026-12-03T04:17:34.67Z 10080m"]
        );
        assert_eq!(
            read(&month),
            ["monthly account 100.2% - 2026-12-09T00:00:00Z 43200m"]
        );
        assert!(read(&nothing).is_empty());
    }
}
