//! Generic budgets: `x-ratelimit-{limit,remaining,reset}[-what]` and the `ratelimit-*` of the IETF draft.
//!
//! Most of these are minute budgets. Those are bursts, which pace the same account and say nothing about a subscription:
//! they become no readings. A budget counts as a window only if its name says day, week or month, or if it is empty and its
//! reset lies further off than the gate's horizon of five minutes. Budgets of compatible APIs hold per model, so the caller
//! names the model asked; without one the whole account is meant. `reset` is an epoch in s or ms, seconds from receipt, or a
//! duration (`2m59.56s`).

use jiff::Timestamp;

use super::fields;
use super::{Headers, Origin, span};
use crate::plan::GateSettings;
use crate::usage::{Reading, WindowScope};

const FAMILIES: [&str; 2] = ["x-ratelimit-", "ratelimit-"];

/// Reads the headers of an answer about `model`.
pub fn readings(headers: &Headers, model: Option<&str>, origin: &Origin<'_>) -> Vec<Reading> {
    let budgets = FAMILIES.iter().flat_map(|family| {
        let remaining = headers.after(family);
        let named = remaining.filter_map(|rest| rest.strip_prefix("remaining"));
        named.filter_map(|what| budget(headers, family, what, model, origin))
    });
    budgets.collect()
}

fn budget(
    headers: &Headers,
    family: &str,
    what: &str,
    model: Option<&str>,
    origin: &Origin<'_>,
) -> Option<Reading> {
    let left = headers.number(&format!("{family}remaining{what}"))?;
    let limit = headers.number(&format!("{family}limit{what}"));
    let resets_at = headers
        .get(&format!("{family}reset{what}"))
        .and_then(|text| reset(text, origin));
    let mins = length(what);
    let far = far_off(resets_at, origin) && left <= 0.0;
    if mins == Some(0) || (mins.is_none() && !far) {
        return None;
    }
    let empty = (left <= 0.0).then_some(100.0);
    let used = limit.and_then(|limit| fields::counted(limit - left, limit));
    let scope = model.map_or(WindowScope::Account, |model| {
        WindowScope::Model(model.to_owned())
    });
    Some(Reading {
        scope: Some(scope),
        used_pct: used.or(empty),
        resets_at,
        duration_mins: mins,
        ..origin.reading(format!("ratelimit{}", what.replace('-', "_")))
    })
}

/// The length a name states; 0 = a burst, `None` = it states none.
fn length(what: &str) -> Option<u32> {
    let says = |word: &str| what.split(['-', '_']).any(|part| part == word);
    if says("minute") || says("second") || says("hour") {
        Some(0)
    } else if says("day") || says("daily") {
        Some(span::DAY)
    } else if says("week") || says("weekly") {
        Some(span::WEEK)
    } else if says("month") || says("monthly") {
        Some(span::MONTH)
    } else {
        None
    }
}

fn reset(text: &str, origin: &Origin<'_>) -> Option<Timestamp> {
    fields::reset_words(origin, &text.into())
}

fn far_off(resets_at: Option<Timestamp>, origin: &Origin<'_>) -> bool {
    let (Some(at), Some(now)) = (resets_at, origin.observed_at) else {
        return false;
    };
    at.as_millisecond() - now.as_millisecond() > GateSettings::default().horizon_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn minute_budgets_are_bursts_and_no_windows() {
        type Row = (
            &'static [(&'static str, &'static str)],
            &'static [&'static str],
        );
        let rows: [Row; 6] = [
            (
                &[
                    ("x-ratelimit-limit-tokens", "8000"),
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                &["ratelimit_tokens model:m 100% - 2026-11-30T12:06:00Z -"],
            ),
            (
                &[
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "2m59.56s"),
                ],
                &[],
            ),
            (
                &[
                    ("x-ratelimit-remaining-tokens-minute", "0"),
                    ("x-ratelimit-reset-tokens-minute", "600"),
                ],
                &[],
            ),
            (
                &[
                    ("x-ratelimit-limit-requests-day", "100"),
                    ("x-ratelimit-remaining-requests-day", "25"),
                    ("x-ratelimit-reset-requests-day", "3600.5"),
                ],
                &["ratelimit_requests_day model:m 75% - 2026-11-30T13:00:00.5Z 1440m"],
            ),
            (
                &[
                    ("X-RateLimit-Limit", "50"),
                    ("X-RateLimit-Remaining", "0"),
                    ("X-RateLimit-Reset", "1796083200000"),
                ],
                &["ratelimit model:m 100% - 2026-12-01T00:00:00Z -"],
            ),
            (
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "soon")],
                &[],
            ),
        ];
        for (pairs, want) in rows {
            let seen: Headers = pairs.iter().copied().collect();
            assert_eq!(
                lines(&readings(&seen, Some("m"), &origin())),
                want,
                "{pairs:?}"
            );
        }
    }
}
