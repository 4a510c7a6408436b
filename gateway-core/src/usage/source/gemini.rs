//! Gemini's Code Assist and Antigravity: `retrieveUserQuota` (`buckets[]`), `fetchAvailableModels` (`models`), and
//! `retrieveUserQuotaSummary` (`groups[]`).
//!
//! Every model has a window of its own, in a summary every family of models a session and a week; told as what is left of 1. A missing fraction is unknown (the wire format drops
//! zeros, and drops what does not apply just the same).

use serde_json::Value;

use super::fields::{self, number_of, text_of};
use super::{MAX_WINDOWS, Origin, span};
use crate::usage::{Reading, WindowScope};

/// Reads any of the payloads.
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
    let groups = payload.get("groups").and_then(Value::as_array);
    let of_groups = groups
        .into_iter()
        .flatten()
        .flat_map(|group| of_group(group, origin));
    of_buckets
        .chain(of_models)
        .chain(of_groups)
        .take(MAX_WINDOWS)
        .collect()
}

/// The buckets of a group, once for each family of models that the group's name holds.
fn of_group<'g>(group: &'g Value, origin: &Origin<'g>) -> impl Iterator<Item = Reading> + use<'g> {
    const FAMILIES: [&str; 3] = ["gemini", "claude", "gpt"];
    let name = text_of(group, &["displayName", "display_name", "name"]).unwrap_or("models");
    let told = name.to_lowercase();
    let mut families: Vec<String> = FAMILIES
        .iter()
        .filter(|family| told.contains(*family))
        .map(|family| (*family).to_owned())
        .collect();
    if families.is_empty() {
        families.push(name.to_owned());
    }
    let origin = *origin;
    let buckets = group.get("buckets").and_then(Value::as_array);
    buckets.into_iter().flatten().flat_map(move |bucket| {
        let id = text_of(bucket, &["bucketId", "window"]).unwrap_or("bucket");
        let mins = match text_of(bucket, &["window"]).unwrap_or(id) {
            word if word.contains("5h") => Some(span::SESSION),
            word if word.contains("week") => Some(span::WEEK),
            _ => None,
        };
        let of = |family: &String| Reading {
            window: id.to_owned(),
            duration_mins: mins,
            ..reading(family, bucket, &origin)
        };
        families.iter().map(of).collect::<Vec<_>>()
    })
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
        let groups = json!({"groups": [
            {"displayName": "Gemini Models", "buckets": [{"bucketId": "gemini-weekly", "window": "weekly", "remainingFraction": 0.25}]},
            {"displayName": "Claude and GPT models", "buckets": [{"bucketId": "3p-5h", "remainingFraction": 0, "resetTime": "2026-12-01T07:00:00Z"}]}]});
        assert_eq!(
            lines(&quota(&groups, &origin())),
            [
                "gemini-weekly model:gemini 75% - - 10080m",
                "3p-5h model:claude 100% - 2026-12-01T07:00:00Z 300m",
                "3p-5h model:gpt 100% - 2026-12-01T07:00:00Z 300m",
            ]
        );
    }
}
