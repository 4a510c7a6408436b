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
        if let Ok(at) = HTTP_DATE.parse_timestamp(text) {
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

/// Reads an HTTP date, past or future.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    HTTP_DATE.parse_timestamp(text).ok()
}
