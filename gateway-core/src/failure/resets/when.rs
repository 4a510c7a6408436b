//! A date or time in words, and the instant it means at a given moment.
//!
//! Understood are the parts people's programs write in any order: weekday, day and month, year, clock with or without
//! `am`, zone, "tomorrow", "midnight". What could mean two things (`10/07/2026`, `CST`) means nothing.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::civil::{clock_time, is_no_date, is_unclear_date, numeric_date};
use super::clock::Clock;
use super::names::{self, Zone};
use super::token::Token;

/// A time without a date that was reached this long ago has passed; it does not mean tomorrow.
const JUST_PASSED: SignedDuration = SignedDuration::from_mins(60);
/// How much later than its length a window may seem to end (clocks differ).
const SLACK: SignedDuration = SignedDuration::from_mins(20);

/// What a time in words comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::failure) enum Found {
    At(Timestamp),
    /// The stated time was reached moments ago: ask again soon rather than in a day.
    JustPassed,
}

/// The parts of one expression.
#[derive(Debug, Clone, Default)]
pub(super) struct When {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    weekday: Option<Weekday>,
    time: Option<Time>,
    zone: Option<Zone>,
    /// A date that could be two.
    unclear: bool,
    /// Days from today: "today", "tomorrow".
    days: Option<i64>,
}

/// Words that may stand between the parts.
const JOINTS: &[&str] = &[
    "at",
    "on",
    "the",
    "of",
    "de",
    "del",
    "à",
    "a",
    "às",
    "as",
    "las",
    "los",
    "la",
    "le",
    "el",
    "den",
    "dem",
    "der",
    "am",
    "um",
    "um",
    "kl",
    "by",
    "around",
    "about",
    "approximately",
    "next",
    "this",
    "em",
    "en",
    "dia",
    "día",
    "el",
    "os",
    "t",
    "г",
    ",",
    "·",
    ".",
    "-",
    "–",
    "—",
    "(",
    "~",
    ":",
    "、",
];

/// Reads the expression at the head of the tokens; how many tokens it took.
pub(super) fn leading(tokens: &[Token]) -> Option<(When, usize)> {
    let mut when = When::default();
    let (mut at, mut end) = (0, 0);
    while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(taken) = when.take(rest) {
            at += taken;
            end = at;
        } else if end > 0
            && at - end < 3
            && rest
                .first()
                .is_some_and(|token| JOINTS.iter().any(|joint| token.is(joint)))
        {
            at += 1;
        } else {
            break;
        }
    }
    when.says_something().then_some((when, end))
}

impl When {
    fn says_something(&self) -> bool {
        let dated = self.day.is_some() && self.month.is_some();
        self.unclear || self.time.is_some() || (dated && self.zone.is_some())
    }

    /// A time of day without any date.
    pub(super) fn is_clock_alone(&self) -> bool {
        let dated = self.month.is_some() || self.day.is_some() || self.year.is_some();
        self.time.is_some() && !dated && self.weekday.is_none() && self.days.is_none()
    }

    /// Takes one part; how many tokens it took.
    fn take(&mut self, tokens: &[Token]) -> Option<usize> {
        self.take_date(tokens)
            .or_else(|| self.take_time(tokens))
            .or_else(|| self.take_word(tokens))
            .or_else(|| self.take_zone(tokens))
    }

    fn take_date(&mut self, tokens: &[Token]) -> Option<usize> {
        if self.day.is_some() && self.month.is_some() && self.year.is_some() {
            return None;
        }
        if self.month.is_none() && (is_unclear_date(tokens) || is_no_date(tokens)) {
            self.unclear = true;
            return Some(5);
        }
        let (year, month, day, taken) = numeric_date(tokens)?;
        if let (None, None) = (self.month, self.day) {
            (self.year, self.month, self.day) = (year.or(self.year), Some(month), Some(day));
            return Some(taken);
        }
        None
    }

    fn take_time(&mut self, tokens: &[Token]) -> Option<usize> {
        if self.time.is_some() {
            return None;
        }
        let (time, taken) = clock_time(tokens)?;
        self.time = Some(time);
        Some(taken)
    }

    fn take_word(&mut self, tokens: &[Token]) -> Option<usize> {
        match tokens.first()? {
            Token::Word(word) => {
                if let (None, Some(weekday)) = (self.weekday, names::weekday(word)) {
                    self.weekday = Some(weekday);
                    return Some(1);
                }
                if let (None, Some(month)) = (self.month, names::month(word)) {
                    self.month = Some(month);
                    return Some(1);
                }
                let days = match word.as_str() {
                    "today" | "hoy" | "heute" | "hoje" => 0,
                    "tomorrow" | "mañana" | "demain" | "morgen" | "amanhã" => 1,
                    "今" if tokens.get(1)?.is("天") => 0,
                    "明" if tokens.get(1)?.is("天") => 1,
                    _ => return None,
                };
                self.days = Some(days);
                Some(if matches!(word.as_str(), "今" | "明") {
                    2
                } else {
                    1
                })
            }
            number @ Token::Number(text) if text.len() >= 4 => {
                let dated = self.month.is_some() && self.day.is_some() && self.year.is_none();
                if !dated {
                    return None;
                }
                self.year = number.number(4).filter(|year| (2000..2200).contains(year));
                // A year that cannot be makes the whole of it meaningless, the clock beside it too.
                self.unclear |= self.year.is_none();
                Some(1)
            }
            number @ Token::Number(_) => {
                // A day stands beside its month; a number before anything else may be anything.
                let beside = self.month.is_some()
                    || tokens
                        .iter()
                        .skip(1)
                        .take(3)
                        .any(|token| token.word().and_then(names::month).is_some());
                let day = i8::try_from(number.number(2)?)
                    .ok()
                    .filter(|day| (1..=31).contains(day))?;
                if !beside || self.day.is_some() {
                    return None;
                }
                self.day = Some(day);
                let ordinal = tokens
                    .get(1)
                    .and_then(Token::word)
                    .is_some_and(|word| matches!(word, "st" | "nd" | "rd" | "th" | "er" | "º"));
                Some(1 + usize::from(ordinal))
            }
            _ => None,
        }
    }

    fn take_zone(&mut self, tokens: &[Token]) -> Option<usize> {
        if self.zone.is_some() || self.time.is_none() && self.day.is_none() {
            return None;
        }
        let (zone, taken) = names::zone(tokens)?;
        self.zone = Some(zone);
        Some(taken)
    }

    /// The instant it means; `None` if that cannot be known.
    pub(super) fn found(&self, clock: &Clock<'_>) -> Option<Found> {
        if self.unclear {
            return None;
        }
        let zone = match &self.zone {
            Some(Zone::Known(zone)) => zone.clone(),
            Some(Zone::Ambiguous) => return None,
            None => clock.unwritten_zone()?,
        };
        let time = self.time.unwrap_or_else(Time::midnight);
        let today = zone.to_datetime(clock.now).date();
        let at = |date: Date| {
            zone.to_ambiguous_timestamp(date.to_datetime(time))
                .compatible()
                .ok()
        };
        if let (Some(month), Some(day)) = (self.month, self.day) {
            return self.on_date(month, day, today, &at, clock);
        }
        if let Some(days) = self.days {
            let date = today.checked_add(days.days()).ok()?;
            return clock.plausible(at(date)?).map(Found::At);
        }
        if let Some(weekday) = self.weekday {
            let mut date = today;
            while date.weekday() != weekday {
                date = date.tomorrow().ok()?;
            }
            let next = at(date)?;
            return match passed(next, clock) {
                _ if next > clock.now => Some(Found::At(next)),
                true => Some(Found::JustPassed),
                false => clock
                    .plausible(at(date.checked_add(7.days()).ok()?)?)
                    .map(Found::At),
            };
        }
        self.next_occurrence(today, &at, clock)
    }

    fn on_date(
        &self,
        month: i8,
        day: i8,
        today: Date,
        at: &impl Fn(Date) -> Option<Timestamp>,
        clock: &Clock<'_>,
    ) -> Option<Found> {
        let years = match self.year {
            Some(year) => vec![year],
            None => vec![today.year(), today.year() + 1],
        };
        for year in years {
            let Some(instant) = Date::new(year, month, day).ok().and_then(at) else {
                continue;
            };
            if passed(instant, clock) {
                return Some(Found::JustPassed);
            }
            if let Some(instant) = clock.plausible(instant) {
                return Some(Found::At(instant));
            }
        }
        None
    }

    /// A time of day alone.
    fn next_occurrence(
        &self,
        today: Date,
        at: &impl Fn(Date) -> Option<Timestamp>,
        clock: &Clock<'_>,
    ) -> Option<Found> {
        let yesterday = at(today.yesterday().ok()?)?;
        let this = at(today)?;
        let (last, next) = if this > clock.now {
            (yesterday, this)
        } else {
            (this, at(today.tomorrow().ok()?)?)
        };
        let too_far = clock.window.is_some_and(|window| {
            let recently = clock.now.duration_since(last) <= window;
            recently && next.duration_since(clock.now) > window + SLACK
        });
        if passed(last, clock) || too_far {
            return Some(Found::JustPassed);
        }
        clock.plausible(next).map(Found::At)
    }
}

fn passed(at: Timestamp, clock: &Clock<'_>) -> bool {
    at <= clock.now && clock.now.duration_since(at) <= JUST_PASSED
}

/// The zone of vendors in China who write times without one; evidence: the dates of the reports.
pub(in crate::failure) fn china() -> TimeZone {
    TimeZone::fixed(jiff::tz::offset(8))
}
