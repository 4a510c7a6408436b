//! The two numbers an operator may change; the defaults are the product's.

use gateway_core::plan::GateSettings;
use plugin_api::prelude::{ConfigError, config};
use serde::Deserialize;

/// The configuration's JSON Schema.
pub(crate) const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "max_age": { "type": "string", "default": "6h", "description": "Evidence older than this is not used." },
    "horizon": { "type": "string", "default": "5m", "description": "A reset this close or closer is not worth a skip." }
  }
}"#;

const KEYS: [&str; 2] = ["max_age", "horizon"];
const UNITS_MS: [(&str, i64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
/// A month: beyond it a number is a mistake.
const LONGEST_MS: i64 = 31 * 86_400_000;

#[derive(Deserialize)]
struct Written {
    max_age: Option<String>,
    horizon: Option<String>,
}

/// Reads the configuration.
pub(crate) fn read(text: &str) -> Result<GateSettings, ConfigError> {
    let written: Written = config::parse(text, &KEYS)?;
    let mut settings = GateSettings::default();
    if let Some(text) = written.max_age {
        settings.max_age_ms = duration("max_age", &text)?;
    }
    if let Some(text) = written.horizon {
        settings.horizon_ms = duration("horizon", &text)?;
    }
    Ok(settings)
}

/// Reads `10m`, `6h`, `90s`.
fn duration(key: &str, text: &str) -> Result<i64, ConfigError> {
    let wrong = || {
        let words =
            format!("`{text}` is not a duration up to 31 days; write it like \"10m\" or \"6h\"");
        ConfigError::new(key, words)
    };
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let (_, factor) = UNITS_MS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    number
        .checked_mul(*factor)
        .filter(|ms| *ms <= LONGEST_MS)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_the_rest_keeps_its_default() {
        let settings = read(r#"{"max_age":"90m"}"#).unwrap();
        assert_eq!(settings.max_age_ms, 5_400_000);
        assert_eq!(settings.horizon_ms, GateSettings::default().horizon_ms);
        assert_eq!(read("{}").unwrap(), GateSettings::default());
    }

    #[test]
    fn a_wrong_value_names_its_key() {
        for text in [
            "6",
            "h",
            "6 hours",
            "-1h",
            "99999999999999999999h",
            "40d",
            "",
        ] {
            let config = format!(r#"{{"horizon":{}}}"#, plugin_api::serde_json::json!(text));
            let error = read(&config).unwrap_err();
            assert_eq!(error.path, "horizon", "{text}");
            assert!(error.message.contains("10m"), "{text}");
        }
        let typo = read(r#"{"horizont":"5m"}"#).unwrap_err();
        assert_eq!(
            typo.message,
            r#"unknown key "horizont" (did you mean "horizon"?)"#
        );
    }
}
