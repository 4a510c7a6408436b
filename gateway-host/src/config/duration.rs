//! Durations as the configuration writes them: `"45s"`, `"10m"`, `"1h30m"`, `"2d"`.

use std::time::Duration;

/// Reads one or more numbers with their unit (`s`, `m`, `h`, `d`), largest unit first. `None` = not a duration, or zero.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    let mut smaller_than = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let mut letters = tail.chars();
        let unit = seconds_of(letters.next()?)?;
        if unit >= smaller_than {
            return None;
        }
        smaller_than = unit;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = letters.as_str();
    }
    (total > 0).then(|| Duration::from_secs(total))
}

/// Writes a duration the way [`parse`] reads it.
pub fn show(duration: Duration) -> String {
    let mut left = duration.as_secs();
    let mut text = String::new();
    for (unit, letter) in [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')] {
        if left >= unit {
            text.push_str(&format!("{}{letter}", left / unit));
            left %= unit;
        }
    }
    text
}

fn seconds_of(unit: char) -> Option<u64> {
    match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3_600),
        'd' => Some(86_400),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("45s", Some(45)),
            ("10m", Some(600)),
            ("1h30m", Some(5_400)),
            (" 2d ", Some(172_800)),
            ("10", None),
            ("m", None),
            ("0s", None),
            ("30m1h", None),
            ("-1m", None),
            ("1.5h", None),
            ("10 m", None),
            ("99999999999999999999d", None),
            ("", None),
            ("10µ", None),
        ] {
            assert_eq!(parse(text), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(show(Duration::from_secs(5_400)), "1h30m");
    }
}
