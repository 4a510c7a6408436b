//! Gemini's Code Assist and Antigravity: `retrieveUserQuota` (`buckets[]`) and `fetchAvailableModels` (`models`).
//!
//! Every model has a window of its own, told as what is left of 1. A missing fraction is unknown (the wire format drops
//! zeros, and drops what does not apply just the same).

use serde_json::Value;

use super::Origin;
use super::fields::{self, number_of, text_of};
use crate::usage::{Reading, WindowScope};

/// Reads either payload.
pub fn quota(payload: &Value, origin: &Origin<'_>) -> Vec<Reading> {
    let buckets = payload.get("buckets").and_then(Value::as_array);
    let of_buckets = buckets.into_iter().flatten().filter_map(|bucket| {
        let model = text_of(bucket, &["modelId", "model_id"])?;
        Some(reading(model, bucket, origin))
    });
    let models = payload.get("models").and_then(Value::as_object);
    let of_models = models
        .into_iter()
        .flatten()
        .filter_map(|(model, facts)| Some(reading(model, facts.get("quotaInfo")?, origin)));
    of_buckets.chain(of_models).collect()
}

fn reading(model: &str, facts: &Value, origin: &Origin<'_>) -> Reading {
    let left = number_of(facts, &["remainingFraction", "remaining_fraction"]);
    Reading {
        scope: Some(WindowScope::Model(model.to_owned())),
        used_pct: left.and_then(|left| fields::left(left * 100.0)),
        resets_at: fields::reset_of(origin, facts, &["resetTime", "reset_time"], &[]),
        ..origin.reading(model)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::usage::source::testing::{lines, origin};

    #[test]
    fn every_model_has_a_window_told_as_what_is_left() {
        let buckets = json!({"buckets": [
            {"modelId": "gemini-2.5-pro", "remainingFraction": 0.85, "resetTime": "2026-12-01T07:00:00Z"},
            {"modelId": "gemini-2.5-flash", "resetTime": "2026-12-01T07:00:00Z"}, {"remainingFraction": 1}]});
        assert_eq!(
            lines(&quota(&buckets, &origin())),
            [
                "gemini-2.5-pro model:gemini-2.5-pro 15% - 2026-12-01T07:00:00Z -",
                "gemini-2.5-flash model:gemini-2.5-flash - - 2026-12-01T07:00:00Z -",
            ]
        );
        let models = json!({"models": {"claude-opus-4-8": {"displayName": "Opus", "quotaInfo": {"remainingFraction": 0}}, "x": {}}});
        assert_eq!(
            lines(&quota(&models, &origin())),
            ["claude-opus-4-8 model:claude-opus-4-8 100% - - -"]
        );
    }
}
