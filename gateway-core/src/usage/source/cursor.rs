//! Cursor: `DashboardService/GetCurrentPeriodUsage` and `usage-summary`.
//!
//! The included allowance has a pool for its own models (`auto`) and one for all others (`api`); the total is no third pool,
//! it stands in only where neither is told. Times are epoch milliseconds as text, or RFC 3339.

use serde_json::Value;

use super::fields::{self, number_of};
use super::{Origin, span};
use crate::usage::{Reading, WindowScope};

/// Reads either payload.
pub fn period(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let plan = payload
        .get("planUsage")
        .or_else(|| payload.pointer("/individualUsage/plan"));
    let Some(plan) = plan else {
        return Vec::new();
    };
    let resets_at = fields::reset_of(origin, payload, &["billingCycleEnd"], &[]);
    let pool = |name: &str, scope, used| Reading {
        scope: Some(scope),
        used_pct: used,
        resets_at,
        duration_mins: Some(span::MONTH),
        ..origin.reading(name)
    };
    let pools: Vec<Reading> = [("autoPercentUsed", "auto"), ("apiPercentUsed", "api")]
        .into_iter()
        .filter_map(|(name, bucket)| {
            let used = fields::points(number_of(plan, &[name])?);
            Some(pool(name, WindowScope::Bucket(bucket.to_owned()), used))
        })
        .collect();
    if !pools.is_empty() {
        return pools;
    }
    let limit = number_of(plan, &["limit"]);
    let spent = number_of(plan, &["includedSpend", "used"]);
    let counted = || fields::counted(spent?, limit?);
    let total = number_of(plan, &["totalPercentUsed"]).and_then(fields::points);
    let used = total.or_else(counted);
    used.map(|used| pool("totalPercentUsed", WindowScope::Account, Some(used)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn the_total_is_no_third_pool() {
        let payload = json!({"billingCycleEnd": "1796400000000", "planUsage": {"limit": 2000, "totalPercentUsed": 71.2,
            "autoPercentUsed": 100, "apiPercentUsed": 3.5}, "spendLimitUsage": {"individualLimit": 0}});
        assert_eq!(
            lines(&period(&payload, &origin())),
            [
                "autoPercentUsed bucket:auto 100% - 2026-12-04T16:00:00Z 43200m",
                "apiPercentUsed bucket:api 3.5% - 2026-12-04T16:00:00Z 43200m",
            ]
        );
    }

    #[test]
    fn cents_will_do_and_a_zero_is_left_out() {
        let payload = json!({"billingCycleEnd": "2026-12-04T16:00:00Z", "individualUsage": {"plan": {"used": 2000, "limit": 2000}}});
        assert_eq!(
            lines(&period(&payload, &origin())),
            ["totalPercentUsed account 100% - 2026-12-04T16:00:00Z 43200m"]
        );
    }
}
