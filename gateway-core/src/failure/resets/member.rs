//! A wait as a member of something printed: `retryAfterMs=42694000`, `Retry-After: 30`, `resets_in_seconds=120`.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use super::number::SMALLEST_EPOCH;

#[expect(
    clippy::unwrap_used,
    reason = "a constant pattern, compiled in every test"
)]
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b(?:retry[-_ ]?after|retry[-_]?delay|resets?[-_]?(?:in|after))[-_ ]?(ms|millis|milliseconds|s|secs|seconds)?["']?\s*[:=]\s*["']?(\d+(?:\.\d+)?)\s*(ms|s|sec|secs|seconds|m|min|minutes|h|hours)?(?:[^\w.]|\.\s|\.?$)"#,
    )
    .unwrap()
});

/// The first of them. Seconds, unless the name or the value says otherwise.
pub(super) fn wait(text: &str) -> Option<Duration> {
    let found = MEMBER.captures(text)?;
    let amount: f64 = found.get(2)?.as_str().parse().ok()?;
    let unit = found
        .get(3)
        .or(found.get(1))
        .map_or("s", |unit| unit.as_str());
    let scale = match unit.to_ascii_lowercase().as_str() {
        "ms" | "millis" | "milliseconds" => 0.001,
        "m" | "min" | "minutes" => 60.0,
        "h" | "hours" => 3_600.0,
        _ => 1.0,
    };
    let seconds = amount * scale;
    (seconds > 0.0 && seconds < SMALLEST_EPOCH)
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_printed_members() {
        for (text, want) in [
            ("status=429 retryAfterMs=42694000", Some(42_694.0)),
            ("429, Retry-After: 30", Some(30.0)),
            ("retry_after_seconds=120 x", Some(120.0)),
            ("retry-after=\"1.5\"", Some(1.5)),
            ("retry_after: 2m,", Some(120.0)),
            ("retry-after: 1789992000", None),
            ("retry-after: 0", None),
            ("please wait: 5 people", None),
            ("reset in a while", None),
        ] {
            assert_eq!(wait(text).map(|wait| wait.as_secs_f64()), want, "{text}");
        }
    }
}
