//! The reset in the words of a usage limit, for when no header stated it. Codex 0.171 writes the body's `resets_at` in its
//! own zone, which is the gateway's: `try again at 5:33 PM.` on the same day, else `try again at Nov 30th, 2026 12:59 AM.`
//! Other words state nothing.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const MARK: &str = "try again at ";
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// The furthest future a reset may lie in: the longest window is a month.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 62);

/// The instant the words state; `None` = none, or one that has passed: then nothing is known of the next.
pub(super) fn stated(words: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let (_, after) = words.split_once(MARK)?;
    let parts: Vec<&str> = after.split_whitespace().take(5).collect();
    let today = now.to_zoned_datetime(zone.clone()).date();
    let at = match parts.as_slice() {
        [clock, half, ..] if clock.contains(':') => DateTime::from_parts(today, time(clock, half)?),
        [month, day, year, clock, half] => {
            DateTime::from_parts(date(month, day, year)?, time(clock, half)?)
        }
        _ => return None,
    };
    let at = zone.to_timestamp(at).ok()?;
    let ahead = at.duration_since(now);
    (ahead > SignedDuration::ZERO && ahead <= HORIZON).then_some(at)
}

fn date(month: &str, day: &str, year: &str) -> Option<Date> {
    let month = month.to_lowercase();
    let number = MONTHS.iter().position(|name| month.starts_with(name))? + 1;
    let day = day.trim_end_matches(|c: char| !c.is_ascii_digit());
    let year = year.trim_end_matches(',');
    Date::new(
        year.parse().ok()?,
        i8::try_from(number).ok()?,
        day.parse().ok()?,
    )
    .ok()
}

fn time(clock: &str, half: &str) -> Option<Time> {
    let (hour, minute) = clock.split_once(':')?;
    let hour: i8 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let afternoon = match half.trim_end_matches('.').to_ascii_uppercase().as_str() {
        "AM" => 0,
        "PM" => 12,
        _ => return None,
    };
    Time::new(hour % 12 + afternoon, minute.parse().ok()?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str, zone: &str) -> Option<String> {
        let now: Timestamp = "2026-11-30T16:35:00Z".parse().unwrap();
        stated(words, now, &TimeZone::get(zone).unwrap()).map(|at| at.to_string())
    }

    #[test]
    fn both_forms_are_read_in_the_zone_of_the_program() {
        let visit =
            "visit https://chatgpt.com/settings/usage to purchase more credits or try again at";
        let rows = [
            ("5:33 PM.", "UTC", Some("2026-11-30T17:33:00Z")),
            ("5:33 PM.", "America/New_York", Some("2026-11-30T22:33:00Z")),
            (
                "Dec 1st, 2026 12:59 AM.",
                "UTC",
                Some("2026-12-01T00:59:00Z"),
            ),
            (
                "Dec 3rd, 2026 12:59 PM.",
                "Europe/Berlin",
                Some("2026-12-03T11:59:00Z"),
            ),
            ("1:02 AM.", "UTC", None),
            ("Nov 30th, 2025 12:59 AM.", "UTC", None),
            ("Nov 30th, 9999 12:59 AM.", "UTC", None),
            ("13:02 PM.", "UTC", None),
            ("later.", "UTC", None),
            ("Smarch 1st, 2026 1:00 AM.", "UTC", None),
        ];
        for (words, zone, expected) in rows {
            assert_eq!(
                read(&format!("{visit} {words}"), zone).as_deref(),
                expected,
                "{words} {zone}"
            );
        }
        assert_eq!(read("Try again later.", "UTC"), None);
    }
}
