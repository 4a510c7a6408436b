//! Instants in words: a clock time in the host's zone with its distance from now. The same instant always reads the same
//! in `/usage`, `/status`, `/model` and `/new`.

use gateway_core::duration::time_until;
use jiff::Timestamp;

use crate::view::View;

/// `16:00 (in 6h)`, with the day when it is another one: `Thu 24 Sep 18:00 (in 3.4d)`.
pub(crate) fn clock(at: Timestamp, view: &View) -> String {
    let there = at.to_zoned_datetime(view.zone.clone());
    let here = view.now.to_zoned_datetime(view.zone.clone());
    let form = match there.date() == here.date() {
        true => "%H:%M",
        false => "%a %-d %b %H:%M",
    };
    format!("{} ({})", there.strftime(form), distance(at, view.now))
}

/// `in 6h`, `3m ago` or `now`. What is to come is worded as in every other notice.
pub(crate) fn distance(at: Timestamp, now: Timestamp) -> String {
    let ago = now.as_second() - at.as_second();
    match ago {
        0 => "now".to_owned(),
        1.. => format!("{} ago", span(ago)),
        _ => format!("in {}", time_until(Some(at), now)),
    }
}

/// A length of time that has passed, in one unit: seconds below two minutes, minutes below 90, then hours and days with one decimal.
pub(crate) fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds}s"),
        120..5_400 => format!("{}m", seconds / 60),
        5_400..172_800 => tenths(seconds, 3_600, "h"),
        _ => tenths(seconds, 86_400, "d"),
    }
}

fn tenths(seconds: i64, unit: i64, letter: &str) -> String {
    let tenths = (seconds * 10 + unit / 2) / unit;
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{letter}"),
        (whole, part) => format!("{whole}.{part}{letter}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_says_enough() {
        let rows = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (5_399, "89m"),
            (5_400, "1.5h"),
            (21_600, "6h"),
            (172_799, "48h"),
            (172_800, "2d"),
            (293_760, "3.4d"),
        ];
        for (seconds, text) in rows {
            assert_eq!(span(seconds), text, "{seconds} s");
        }
    }

    #[test]
    fn both_directions_and_now() {
        let now = Timestamp::from_second(1_000).unwrap();
        let at = |second| distance(Timestamp::from_second(second).unwrap(), now);
        assert_eq!([at(1_000), at(1_030), at(700)], ["now", "in 1m", "5m ago"]);
    }
}
