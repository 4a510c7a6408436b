//! GitHub Copilot: `GET /copilot_internal/user`, and the quota headers of its answers.
//!
//! `quota_snapshots` by kind (or a list of them), each with `percent_remaining` (negative beyond the allowance) or `remaining` of `entitlement`;
//! unlimited ones and those without an entitlement are no windows. Turns draw on `premium_interactions`; a free plan has
//! none and draws on `chat`. All kinds reset together, monthly; a snapshot's own reset may be 0, the top one counts then.

use jiff::Timestamp;
use serde_json::Value;

use super::fields::{self, flag_of, member, number_of, text_of};
use super::{Headers, MAX_WINDOWS, Origin, span};
use crate::usage::{Reading, WindowScope};

const PREMIUM: &str = "premium_interactions";
const RESETS: [&str; 4] = [
    "quota_reset_date_utc",
    "quota_reset_date",
    "limited_user_reset_date",
    "quota_reset_at",
];
const HEADER: &str = "x-quota-snapshot-";

/// Reads the payload.
pub fn user(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let resets_at = reset(payload, origin);
    let snapshots = payload.get("quota_snapshots");
    let by_kind = snapshots.and_then(Value::as_object).into_iter().flatten();
    let listed = snapshots.and_then(Value::as_array).into_iter().flatten();
    let listed = listed
        .filter_map(|row| Some((text_of(row, &["metric", "quota_id", "name", "id"])?, row)))
        .take(MAX_WINDOWS);
    let paid = by_kind
        .map(|(kind, snapshot)| (kind.as_str(), snapshot))
        .chain(listed)
        .filter_map(|(kind, snapshot)| {
            let used = share(snapshot)?;
            Some((kind, used, reset(snapshot, origin).or(resets_at)))
        });
    let totals = payload.get("monthly_quotas").and_then(Value::as_object);
    let free = totals.into_iter().flatten().filter_map(|(kind, total)| {
        let total = fields::number(total)?;
        let left = number_of(payload.get("limited_user_quotas")?, &[kind])?;
        Some((
            kind.as_str(),
            fields::counted(total - left, total)?,
            resets_at,
        ))
    });
    readings(paid.chain(free).collect(), origin)
}

/// Reads `x-quota-snapshot-<kind>: ent=300&ov=0.0&ovPerm=false&rem=97.0&rst=2026-12-01T00:00:00Z`; `rem` is in percent.
pub fn headers(headers: &Headers, origin: &Origin<'_>) -> Vec<Reading> {
    let read = |kind| {
        let text = headers.get(&format!("{HEADER}{kind}"))?;
        let part = |name: &str| {
            let mut parts = text.split('&').filter_map(|part| part.split_once('='));
            parts.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
        };
        let number = |name: &str| part(name)?.parse::<f64>().ok();
        let entitled = number("ent").is_none_or(|entitlement| entitlement > 0.0);
        let used = number("rem").filter(|_| entitled).and_then(fields::left)?;
        let at = part("rst").map(|at| at.replace("%3A", ":").replace("%3a", ":"));
        Some((
            kind,
            used,
            at.and_then(|at| fields::reset(origin, &at.into())),
        ))
    };
    readings(headers.after(HEADER).filter_map(read).collect(), origin)
}

fn readings(windows: Vec<(&str, f64, Option<Timestamp>)>, origin: &Origin<'_>) -> Vec<Reading> {
    let premium = windows.iter().any(|(kind, ..)| *kind == PREMIUM);
    let main = if premium { PREMIUM } else { "chat" };
    let read = |(kind, used, resets_at): (&str, f64, Option<Timestamp>)| Reading {
        scope: Some(if kind == main {
            WindowScope::Account
        } else {
            WindowScope::Bucket(kind.to_owned())
        }),
        used_pct: Some(used),
        resets_at,
        duration_mins: Some(span::MONTH),
        ..origin.reading(format!("copilot_{kind}"))
    };
    windows.into_iter().map(read).collect()
}

fn share(snapshot: &Value) -> Option<f64> {
    let entitlement = number_of(snapshot, &["entitlement"]);
    let none = entitlement.is_some_and(|entitlement| entitlement <= 0.0);
    if none || flag_of(snapshot, &["unlimited"]) == Some(true) {
        return None;
    }
    let stated = number_of(snapshot, &["percent_remaining"]).and_then(fields::left);
    let counted = || {
        let total = entitlement?;
        fields::counted(
            total - number_of(snapshot, &["remaining", "quota_remaining"])?,
            total,
        )
    };
    stated.or_else(counted)
}

/// An instant, or a date, which means its beginning in UTC.
fn reset(object: &Value, origin: &Origin<'_>) -> Option<Timestamp> {
    let at = |name: &&str| {
        let value = member(object, &[name])?;
        let midnight = || fields::reset(origin, &format!("{}T00:00:00Z", value.as_str()?).into());
        fields::reset(origin, value).or_else(midnight)
    };
    RESETS.iter().find_map(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn premium_requests_are_what_turns_draw_on() {
        let payload = json!({"login": "someone", "copilot_plan": "individual_pro", "quota_reset_date_utc": "2026-12-01T00:00:00.000Z",
            "quota_snapshots": {
                "chat": {"entitlement": 0, "percent_remaining": 100.0, "unlimited": true},
                "completions": {"entitlement": 2000, "percent_remaining": 25, "unlimited": false},
                "premium_interactions": {"entitlement": 300, "percent_remaining": -4.5, "quota_reset_at": 0,
                    "overage_permitted": true, "unlimited": false}}});
        assert_eq!(
            lines(&user(&payload, &origin())),
            [
                "copilot_completions bucket:completions 75% - 2026-12-01T00:00:00Z 43200m",
                "copilot_premium_interactions account 104.5% - 2026-12-01T00:00:00Z 43200m",
            ]
        );
    }

    #[test]
    fn counts_and_bare_dates_will_do() {
        let payload = json!({"quota_reset_date": "2027-01-01", "quota_snapshots": {
            "premium_interactions": {"entitlement": 1500, "remaining": -3000}, "chat": {"entitlement": -1, "remaining": -1}}});
        assert_eq!(
            lines(&user(&payload, &origin())),
            ["copilot_premium_interactions account 300% - 2027-01-01T00:00:00Z 43200m"]
        );
    }

    #[test]
    fn a_free_plan_draws_on_chat() {
        let payload = json!({"limited_user_quotas": {"chat": 0, "completions": 4000},
            "monthly_quotas": {"chat": 500, "completions": 4000}, "limited_user_reset_date": "2026-12-11"});
        assert_eq!(
            lines(&user(&payload, &origin())),
            [
                "copilot_chat account 100% - 2026-12-11T00:00:00Z 43200m",
                "copilot_completions bucket:completions 0% - 2026-12-11T00:00:00Z 43200m",
            ]
        );
    }

    #[test]
    fn answers_carry_the_quota_in_headers() {
        let seen = [
            (
                "x-quota-snapshot-premium_interactions",
                "ent=300&ov=0.0&ovPerm=false&rem=97.0&rst=2026-12-01T00%3A00%3A00Z",
            ),
            ("x-quota-snapshot-chat", "ent=-1&rem=100.0"),
        ];
        assert_eq!(
            lines(&headers(&seen.into_iter().collect(), &origin())),
            ["copilot_premium_interactions account 3% - 2026-12-01T00:00:00Z 43200m"]
        );
    }
}
