//! Reading a plugin's configuration: unknown keys are errors that suggest the nearest name.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::plugin::ConfigError;

/// Parses the configuration. `keys` are all the keys there are; anything else at the top level is refused.
///
/// # Errors
/// Not JSON, not an object, an unknown key, or a value of the wrong type.
pub fn parse<T: DeserializeOwned>(config: &str, keys: &[&str]) -> Result<T, ConfigError> {
    let value: Value = serde_json::from_str(config)
        .map_err(|error| ConfigError::new("", format!("not JSON: {error}")))?;
    let Value::Object(map) = &value else {
        return Err(ConfigError::new("", "the configuration must be an object"));
    };
    if let Some(key) = map.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(ConfigError::new("", unknown_key(key, keys)));
    }
    serde_json::from_value(value).map_err(|error| ConfigError::new("", error.to_string()))
}

/// `unknown key "limt" (did you mean "limit"?)`
fn unknown_key(key: &str, keys: &[&str]) -> String {
    let nearest = keys
        .iter()
        .map(|known| (distance(key, known), *known))
        .min()
        .filter(|(steps, _)| *steps <= 3);
    match nearest {
        Some((_, known)) => format!("unknown key \"{key}\" (did you mean \"{known}\"?)"),
        None if keys.is_empty() => format!("unknown key \"{key}\" (there are none)"),
        None => format!("unknown key \"{key}\" (there are: {})", keys.join(", ")),
    }
}

/// Edits between two names.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, one) in from.chars().enumerate() {
        let mut next = vec![index + 1];
        for (other, pair) in to.iter().zip(row.windows(2)) {
            let [diagonal, above] = pair else { continue };
            let left = next.last().copied().unwrap_or(usize::MAX);
            next.push(
                (diagonal + usize::from(one != *other))
                    .min(above + 1)
                    .min(left + 1),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Limits {
        limit: Option<u32>,
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_name() {
        let error = parse::<Limits>(r#"{"limt":1}"#, &["limit"])
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            error.message,
            r#"unknown key "limt" (did you mean "limit"?)"#
        );
        let error = parse::<Limits>(r#"{"zzzzzzz":1}"#, &["limit"])
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.message, r#"unknown key "zzzzzzz" (there are: limit)"#);
    }

    #[test]
    fn only_an_object_is_a_configuration() {
        for text in ["[]", "1", "nonsense", r#"{"limit":"x"}"#] {
            assert!(parse::<Limits>(text, &["limit"]).is_err(), "{text}");
        }
        let limits = parse::<Limits>(r#"{"limit":2}"#, &["limit"]).ok();
        assert_eq!(limits.and_then(|limits| limits.limit), Some(2));
    }
}
