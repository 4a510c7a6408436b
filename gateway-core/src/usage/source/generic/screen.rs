//! Screens that programs show people: `/usage` of Claude Code, `/status` of Codex, pages pasted from a browser.
//!
//! A window is a line with a percentage; its title stands before it on the line or above it, its reset behind it on the line
//! or below. Only titles that name a length count: a screen is full of other percentages.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Map;

use super::naming;
use crate::failure::reset_in_words;
use crate::usage::source::{MAX_WINDOWS, Origin, fields, span};
use crate::usage::{Reading, WindowScope};

#[expect(
    clippy::unwrap_used,
    reason = "a constant pattern, compiled in every test"
)]
static SHARE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(\d{1,3}(?:\.\d+)?)\s?%\s*(used|left|remaining|available|consumed)?").unwrap()
});

/// More lines are no screen.
const MAX_LINES: usize = 200;

/// Reads a screen that was shown at `now`. `zone` is that of the program's host, for clocks without one.
pub(in crate::usage::source) fn readings(
    text: &str,
    now: Timestamp,
    zone: Option<&TimeZone>,
    origin: &Origin<'_>,
) -> Vec<Reading> {
    let mut found: Vec<Reading> = Vec::new();
    let mut title = "";
    for line in text.lines().take(MAX_LINES).map(str::trim) {
        if line.is_empty() || found.len() >= MAX_WINDOWS {
            continue;
        }
        let reset = || {
            let at = line.to_ascii_lowercase().find("reset")?;
            reset_in_words(line.get(at..)?, now, zone)
        };
        if let Some(share) = SHARE.captures(line) {
            let before = line.split_once(':').map_or("", |(before, _)| before);
            let named = if naming::length(before).is_some() {
                before
            } else {
                title
            };
            if let Some(reading) = window(named, &share, reset(), origin) {
                found.push(reading);
            }
        } else if line.to_ascii_lowercase().starts_with("reset") {
            if let Some(last) = found.last_mut().filter(|last| last.resets_at.is_none()) {
                last.resets_at = reset();
            }
        } else if line.chars().any(char::is_alphabetic) {
            title = line;
        }
    }
    found
}

fn window(
    title: &str,
    share: &regex::Captures<'_>,
    resets_at: Option<Timestamp>,
    origin: &Origin<'_>,
) -> Option<Reading> {
    let mins = naming::length(title)?;
    if naming::is_spend(title) {
        return None;
    }
    let number: f64 = share.get(1)?.as_str().parse().ok()?;
    let word = share
        .get(2)
        .map_or("", |word| word.as_str())
        .to_ascii_lowercase();
    let used_pct = match word.as_str() {
        "left" | "remaining" | "available" => fields::left(number),
        _ => fields::points(number),
    };
    let id = span::id(mins)?;
    let model = naming::model_in(title, &Map::new());
    let window = model
        .as_ref()
        .map_or_else(|| id.to_owned(), |model| format!("{id}_{model}"));
    Some(Reading {
        scope: Some(model.map_or(WindowScope::Account, WindowScope::Model)),
        used_pct,
        resets_at,
        duration_mins: Some(mins),
        ..origin.reading(window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::source::testing::{lines, now, origin};

    #[test]
    fn screens_are_read_as_people_see_them() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for (screen, want) in [
            (
                "Current session\n\u{2588}\u{2588} 29% used\nResets 6pm (Europe/Berlin)\n\nCurrent week (all models)\n\u{2588} 11% used\nResets Dec 3, 2am (Europe/Berlin)\n\nCurrent week (Sonnet only)\n0% used\n\nExtra usage\n7% used",
                vec![
                    "five_hour account 29% - 2026-11-30T17:00:00Z 300m",
                    "seven_day account 11% - 2026-12-03T01:00:00Z 10080m",
                    "seven_day_sonnet model:sonnet 0% - - 10080m",
                ],
            ),
            (
                "  5h limit:     [\u{2588}\u{2591}] 28% left (resets 18:20)\n  Weekly limit: [\u{2588}] 96% left (resets 10:20 on 4 Dec)\n  Context window: 40% left",
                vec![
                    "five_hour account 72% - 2026-11-30T17:20:00Z 300m",
                    "seven_day account 4% - 2026-12-04T09:20:00Z 10080m",
                ],
            ),
            ("battery 50%\nnothing here", vec![]),
        ] {
            let found = readings(screen, now(), Some(&berlin), &origin());
            assert_eq!(lines(&found), want, "{screen}");
        }
    }
}
