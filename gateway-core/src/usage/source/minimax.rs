//! MiniMax coding and token plans: `GET /v1/api/openplatform/coding_plan/remains` (also `token_plan/remains`).
//!
//! `model_remains[]`, a row per kind of model with an interval (five hours) and a week. The name `…_usage_count` lies: it is
//! what is **left** of `…_total_count` (MiniMax-M2 #99). Since mid 2026 the counts may be zero, with the truth in
//! `…_remaining_percent`; so a stated percentage wins, and no total is no share. Times are epoch milliseconds.

use serde_json::Value;

use super::fields::{self, member, number_of, text_of};
use super::{Origin, span};
use crate::usage::{Reading, WindowScope};

/// Reads the payload or its `data`.
pub fn remains(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let data = member(payload, &["data"]).unwrap_or(payload);
    let rows = data.get("model_remains").and_then(Value::as_array);
    let alone = rows.is_some_and(|rows| rows.len() == 1);
    let read = |row| {
        let name = text_of(row, &["model_name"]).unwrap_or_default();
        let scope = if alone || is_text_plan(name) {
            WindowScope::Account
        } else {
            WindowScope::Model(name.to_owned())
        };
        let interval = window(
            row,
            "current_interval",
            "end_time",
            span::SESSION,
            &scope,
            origin,
        );
        let weekly = window(
            row,
            "current_weekly",
            "weekly_end_time",
            span::WEEK,
            &scope,
            origin,
        );
        interval.into_iter().chain(weekly)
    };
    rows.into_iter().flatten().flat_map(read).collect()
}

/// The row that turns draw on: `general`, `MiniMax-M*`, `MiniMax-M2`. Others are video, speech and pictures.
fn is_text_plan(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "general" || name.starts_with("minimax-m") || name.contains("coding")
}

fn window(
    row: &Value,
    prefix: &str,
    end: &str,
    mins: u32,
    scope: &WindowScope,
    origin: &Origin<'_>,
) -> Option<Reading> {
    let field = |names: &[&str]| {
        let named: Vec<String> = names
            .iter()
            .map(|name| format!("{prefix}_{name}"))
            .collect();
        number_of(row, &named.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let counted = || {
        let total = field(&["total_count"])?;
        let left = field(&["remaining_count", "remains_count", "usage_count"])?;
        fields::counted(total - left, total)
    };
    let stated = field(&["remaining_percent"]).and_then(fields::left);
    let used = stated.or_else(counted)?;
    Some(Reading {
        scope: Some(scope.clone()),
        used_pct: Some(used),
        resets_at: fields::reset_of(origin, row, &[end], &[]),
        duration_mins: Some(mins),
        ..origin.reading(span::id(mins).unwrap_or(prefix))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn what_is_called_usage_is_what_is_left() {
        let payload = json!({"base_resp": {"status_code": 0}, "model_remains": [
            {"model_name": "MiniMax-M*", "current_interval_total_count": 1500, "current_interval_usage_count": 1495,
             "end_time": 1_796_050_000_000_i64, "remains_time": 10_000_000,
             "current_weekly_total_count": 15000, "current_weekly_usage_count": 0, "weekly_end_time": 1_796_400_000_000_i64},
            {"model_name": "speech-hd", "current_interval_total_count": 100, "current_interval_usage_count": 0},
            {"model_name": "video", "current_interval_total_count": 0, "current_interval_usage_count": 0},
        ]});
        assert_eq!(
            lines(&remains(&payload, &origin())),
            [
                "five_hour account 0.3333% - 2026-11-30T14:46:40Z 300m",
                "seven_day account 100% - 2026-12-04T16:00:00Z 10080m",
                "five_hour model:speech-hd 100% - - 300m",
            ]
        );
    }

    #[test]
    fn a_stated_percentage_wins_over_empty_counts() {
        let payload = json!({"data": {"model_remains": [{"model_name": "general",
            "current_interval_total_count": 0, "current_interval_usage_count": 0, "current_interval_status": 1,
            "current_interval_remaining_percent": 93, "current_weekly_remaining_percent": 0,
            "end_time": 1_796_050_000_000_i64}]}});
        assert_eq!(
            lines(&remains(&payload, &origin())),
            [
                "five_hour account 7% - 2026-11-30T14:46:40Z 300m",
                "seven_day account 100% - - 10080m",
            ]
        );
    }
}
