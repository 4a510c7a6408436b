//! What an instant is read against: the moment of receipt, the zone of the program's host, the vendor's own zone.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::when::Found;
use super::{number, prose};

static HTTP_DATE: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);

/// The frame of reference of one judgement.
#[derive(Debug, Clone)]
pub(in crate::failure) struct Clock<'c> {
    /// The moment of judgement.
    pub(in crate::failure) now: Timestamp,
    /// The moment it was received; relative values count from here.
    pub(in crate::failure) received: Timestamp,
    /// The zone a program on its host writes times in; `None` = not known.
    pub(in crate::failure) host_zone: Option<&'c TimeZone>,
    /// The zone of a vendor who writes times without one.
    pub(in crate::failure) vendor_zone: Option<TimeZone>,
    /// The length of the window a limit names; `None` = not named.
    pub(in crate::failure) window: Option<SignedDuration>,
}

impl Clock<'_> {
    pub(in crate::failure) fn after(&self, wait: Duration) -> Option<Timestamp> {
        let wait = SignedDuration::try_from(wait).ok()?;
        self.plausible(self.received.checked_add(wait).ok()?)
    }

    pub(in crate::failure) fn plausible(&self, at: Timestamp) -> Option<Timestamp> {
        number::plausible(at, self.now)
    }

    /// The zone of a time that is written without one.
    pub(super) fn unwritten_zone(&self) -> Option<TimeZone> {
        self.vendor_zone.clone().or_else(|| self.host_zone.cloned())
    }

    /// Reads an instant from a field or a header: a number, RFC 3339, an HTTP date, a date in words. A field without an
    /// offset is in the vendor's zone, else in UTC.
    pub(in crate::failure) fn written(&self, text: &str) -> Option<Timestamp> {
        let text = text.trim();
        if let Ok(number) = text.parse::<f64>() {
            return number::instant(number, self.now);
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return self.plausible(at);
        }
        if let Some(at) = http_date(text) {
            return self.plausible(at);
        }
        if let (true, Ok(civil)) = (text.contains(':'), text.parse::<DateTime>()) {
            let zone = self.vendor_zone.clone().unwrap_or(TimeZone::UTC);
            return self.plausible(zone.to_timestamp(civil).ok()?);
        }
        match prose::expression(text, self)? {
            Found::At(at) => Some(at),
            Found::JustPassed => None,
        }
    }
}

/// Reads an HTTP date, past or future, in any of the three forms of RFC 9110 5.6.7.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    HTTP_DATE
        .parse_timestamp(text)
        .ok()
        .or_else(|| HTTP_DATE.parse_timestamp(&old_http_date(text)?).ok())
}

/// `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994` in the words of the newer form.
fn old_http_date(text: &str) -> Option<String> {
    let parts: Vec<&str> = text
        .split([' ', ',', '-'])
        .filter(|part| !part.is_empty())
        .collect();
    let (day, month, year, time) = match parts.as_slice() {
        [_, day, month, year, time, "GMT"] if year.len() == 2 => (day, month, year, time),
        [_, month, day, time, year] if time.contains(':') => (day, month, year, time),
        _ => return None,
    };
    let short: i16 = year.parse().ok()?;
    let year = match short {
        0..70 => short + 2000,
        70..100 => short + 1900,
        year => year,
    };
    Some(format!("{day} {month} {year} {time} GMT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_three_forms_are_read() {
        let want = http_date("Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(want.is_some());
        assert_eq!(http_date("Sunday, 06-Nov-94 08:49:37 GMT"), want);
        assert_eq!(http_date("Sun Nov  6 08:49:37 1994"), want);
        for text in ["", "soon", "Fri, 31 Dec 99999 23:59:59 GMT", "a b c d e"] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }
}
