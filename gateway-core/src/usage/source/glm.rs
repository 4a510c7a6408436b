//! GLM coding plans (Z.ai, bigmodel.cn): `GET /api/monitor/usage/quota/limit`.
//!
//! `limits[]` of `{type, unit, number, usage, currentValue, remaining, percentage, nextResetTime}`. The names lie: `usage` is
//! the allowance and `currentValue` what is used; `percentage` is used of 100, rounded by the server. Unit 3 counts hours,
//! 5 months, 6 weeks. `TIME_LIMIT` is the budget of the MCP tools, which no turn draws on. Rows of plan generations that
//! count tokens say `TOKENS_LIMIT`, newer ones `CREDIT_LIMIT` (seen 2026-09).

use serde_json::Value;

use super::fields::{self, member, number_of, text_of};
use super::{Origin, span};
use crate::usage::scope::MCP_TOOLS;
use crate::usage::{Reading, WindowScope};

/// Reads the payload or its `data`.
pub fn quota(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let data = member(payload, &["data"]).unwrap_or(payload);
    let rows = data.get("limits").and_then(Value::as_array);
    rows.into_iter()
        .flatten()
        .filter_map(|row| window(row, origin))
        .collect()
}

fn window(row: &Value, origin: &Origin<'_>) -> Option<Reading> {
    let kind = text_of(row, &["type"])?;
    let mins = minutes(row);
    let stated = number_of(row, &["percentage"]).and_then(fields::points);
    let counted = || {
        let allowance = number_of(row, &["usage"])?;
        let left = || Some(allowance - number_of(row, &["remaining"])?);
        fields::counted(number_of(row, &["currentValue"]).or_else(left)?, allowance)
    };
    let tools = kind == "TIME_LIMIT";
    let id = if tools {
        MCP_TOOLS
    } else {
        mins.and_then(span::id).unwrap_or(kind)
    };
    Some(Reading {
        scope: Some(if tools {
            WindowScope::Bucket(MCP_TOOLS.to_owned())
        } else {
            WindowScope::Account
        }),
        used_pct: stated.or_else(counted),
        resets_at: fields::reset_of(origin, row, &["nextResetTime"], &[]),
        duration_mins: mins,
        ..origin.reading(id)
    })
}

fn minutes(row: &Value) -> Option<u32> {
    let Some(unit) = number_of(row, &["unit"]) else {
        // The first generation told no unit and had one window of tokens.
        return (text_of(row, &["type"]) == Some("TOKENS_LIMIT")).then_some(span::SESSION);
    };
    let each = match unit {
        3.0 => 60,
        5.0 => span::MONTH,
        6.0 => span::WEEK,
        _ => return None,
    };
    fields::minutes(number_of(row, &["number"]).unwrap_or(1.0) * f64::from(each))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn the_names_lie_and_the_units_are_numbers() {
        let payload = json!({"code": 200, "data": {"level": "max", "limits": [
            {"type": "CREDIT_LIMIT", "unit": 3, "number": 5, "usage": 28000, "currentValue": 5184, "remaining": 22815,
             "percentage": 18, "nextResetTime": 1_796_050_000_000_i64},
            {"type": "CREDIT_LIMIT", "unit": 6, "number": 1, "usage": 140_000, "currentValue": 35_000},
            {"type": "TIME_LIMIT", "unit": 5, "number": 1, "usage": 4000, "currentValue": 4000, "percentage": 100},
            {"type": "TOKENS_LIMIT", "unit": 42, "percentage": 7}, null, {},
        ]}});
        assert_eq!(
            lines(&quota(&payload, &origin())),
            [
                "five_hour account 18% - 2026-11-30T14:46:40Z 300m",
                "seven_day account 25% - - 10080m",
                "mcp_tools bucket:mcp_tools 100% - - 43200m",
                "TOKENS_LIMIT account 7% - - -",
            ]
        );
    }
}
