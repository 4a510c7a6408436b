//! Names of months, weekdays and zones in the languages people's programs speak.

use jiff::civil::Weekday;
use jiff::tz::{self, TimeZone};

use super::token::Token;

/// The month a word names, by its beginning: `jul`, `juillet`, `julio`, `Juli`.
pub(super) fn month(word: &str) -> Option<i8> {
    const MONTHS: &[(&[&str], i8)] = &[
        (
            &[
                "january", "janvier", "januar", "janeiro", "enero", "gennaio", "januari", "ene",
                "jänner",
            ],
            1,
        ),
        (
            &[
                "february",
                "février",
                "fevrier",
                "febrero",
                "februar",
                "fevereiro",
                "febbraio",
                "fév",
            ],
            2,
        ),
        (
            &[
                "march", "mars", "marzo", "märz", "maerz", "março", "marco", "mär", "mrz",
            ],
            3,
        ),
        (&["april", "avril", "abril", "aprile"], 4),
        (&["may", "mai", "mayo", "maio", "maggio", "mei"], 5),
        (&["june", "juin", "junio", "juni", "junho", "giugno"], 6),
        (&["july", "juillet", "julio", "juli", "julho", "luglio"], 7),
        (&["august", "août", "aout", "agosto", "ago", "augustus"], 8),
        (
            &[
                "september",
                "septembre",
                "septiembre",
                "setembro",
                "settembre",
                "set",
            ],
            9,
        ),
        (
            &[
                "october", "octobre", "octubre", "oktober", "outubro", "ottobre",
            ],
            10,
        ),
        (&["november", "novembre", "noviembre", "novembro"], 11),
        (
            &[
                "december",
                "décembre",
                "decembre",
                "diciembre",
                "dezember",
                "dezembro",
                "dicembre",
                "déc",
            ],
            12,
        ),
    ];
    let length = word.chars().count();
    if length < 3 {
        return None;
    }
    if let Some(number) = by_stem(word) {
        return Some(number);
    }
    // "ma" words are too much alike for beginnings: mar, may, mai.
    MONTHS.iter().find_map(|(names, number)| {
        let named = names.iter().any(|name| {
            *name == word || (name.starts_with(word) && (length >= 4 || name.chars().count() > 3))
        });
        named.then_some(*number)
    })
}

/// Months of languages that bend the word: Russian, Polish, Turkish, and short forms that begin no month's name.
fn by_stem(word: &str) -> Option<i8> {
    const STEMS: [(&[&str], i8); 12] = [
        (&["янв", "sty", "oca"], 1),
        (&["фев", "lut", "şub"], 2),
        (&["мар", "mrt"], 3),
        (&["апр", "kwi", "nis"], 4),
        (&["май", "мая", "maj"], 5),
        (&["июн", "cze", "haz"], 6),
        (&["июл", "lip", "tem"], 7),
        (&["авг", "sie", "ağu"], 8),
        (&["сен", "wrz", "eyl"], 9),
        (&["окт", "paź", "eki"], 10),
        (&["ноя", "lis", "kas"], 11),
        (&["дек", "gru", "ara", "des"], 12),
    ];
    // Beside the short form only the Cyrillic words are told by their beginning: the others begin words of all kinds.
    let named = |stem: &&str| word == *stem || !word.is_ascii() && word.starts_with(*stem);
    STEMS
        .iter()
        .find(|(stems, _)| stems.iter().any(named))
        .map(|(_, number)| *number)
}

/// The weekday a word names.
pub(super) fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" | "lunes" | "lundi" | "montag" | "segunda" => Weekday::Monday,
        "tuesday" | "tue" | "tues" | "martes" | "mardi" | "dienstag" | "terça" => Weekday::Tuesday,
        "wednesday" | "wed" | "miércoles" | "mercredi" | "mittwoch" | "quarta" => {
            Weekday::Wednesday
        }
        "thursday" | "thu" | "thur" | "thurs" | "jueves" | "jeudi" | "donnerstag" | "quinta" => {
            Weekday::Thursday
        }
        "friday" | "fri" | "viernes" | "vendredi" | "freitag" | "sexta" => Weekday::Friday,
        "saturday" | "sat" | "sábado" | "samedi" | "samstag" => Weekday::Saturday,
        "sunday" | "sun" | "domingo" | "dimanche" | "sonntag" => Weekday::Sunday,
        _ => return None,
    })
}

/// A zone as written.
#[derive(Debug, Clone)]
pub(super) enum Zone {
    Known(TimeZone),
    /// Words for a zone that mean several (`CST`, `IST`): nothing can be said.
    Ambiguous,
}

/// Reads a zone at the head of the tokens; how many tokens it took.
pub(super) fn zone(tokens: &[Token]) -> Option<(Zone, usize)> {
    let open = usize::from(tokens.first().is_some_and(|token| token.is("(")));
    let rest = tokens.get(open..)?;
    let (zone, taken) = offset(rest)
        .or_else(|| region(rest))
        .or_else(|| abbreviation(rest))?;
    let closed = open == 1 && rest.get(taken).is_some_and(|token| token.is(")"));
    Some((zone, open + taken + usize::from(closed)))
}

/// `UTC`, `Z`, `GMT-3`, `UTC+05:30`, `+0200`.
fn offset(tokens: &[Token]) -> Option<(Zone, usize)> {
    let named = tokens
        .first()
        .and_then(Token::word)
        .is_some_and(|word| matches!(word, "utc" | "gmt" | "z" | "zulu"));
    let start = usize::from(named);
    let sign = match tokens.get(start) {
        Some(Token::Symbol('+')) => 1,
        Some(Token::Symbol('-' | '\u{2212}')) => -1,
        _ => return named.then_some((Zone::Known(TimeZone::UTC), 1)),
    };
    let Some(Token::Number(digits)) = tokens.get(start + 1) else {
        return named.then_some((Zone::Known(TimeZone::UTC), 1));
    };
    let number: i32 = digits.parse().ok()?;
    let colon = tokens.get(start + 2).is_some_and(|token| token.is(":"));
    let (hours, minutes, taken) = match (digits.len(), tokens.get(start + 3)) {
        (1 | 2, Some(Token::Number(minutes))) if colon && minutes.len() == 2 => {
            (number, minutes.parse().ok()?, start + 4)
        }
        (1 | 2, _) if named => (number, 0, start + 2),
        (2, _) => (number, 0, start + 2),
        (4, _) => (number / 100, number % 100, start + 2),
        _ => return None,
    };
    if hours > 14 || minutes > 59 {
        return None;
    }
    let offset = tz::Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()?;
    Some((Zone::Known(TimeZone::fixed(offset)), taken))
}

/// `America/Los_Angeles`, `America/Argentina/Buenos_Aires`, `Etc/GMT+3`.
fn region(tokens: &[Token]) -> Option<(Zone, usize)> {
    let mut name = tokens.first()?.word()?.to_owned();
    let mut taken = 1;
    while taken < 12 {
        match (tokens.get(taken), tokens.get(taken + 1)) {
            (Some(Token::Symbol(joint @ ('/' | '-' | '+'))), Some(Token::Word(next))) => {
                name.push(*joint);
                name.push_str(next);
            }
            (Some(Token::Symbol(joint @ ('-' | '+'))), Some(Token::Number(next)))
                if name.contains('/') =>
            {
                name.push(*joint);
                name.push_str(next);
            }
            _ => break,
        }
        taken += 2;
    }
    if !name.contains('/') {
        return None;
    }
    let zone = TimeZone::get(&name).map_or(Zone::Ambiguous, Zone::Known);
    Some((zone, taken))
}

fn abbreviation(tokens: &[Token]) -> Option<(Zone, usize)> {
    let word = tokens.first()?.word()?;
    let hours = match word {
        "pst" => -8,
        "pdt" | "mst" => -7,
        "mdt" => -6,
        "cdt" | "est" => -5,
        "edt" => -4,
        "brt" | "art" => -3,
        "wet" => 0,
        "cet" => 1,
        "cest" | "eet" => 2,
        "eest" | "msk" => 3,
        "pkt" => 5,
        "wib" => 7,
        "sgt" | "hkt" | "awst" => 8,
        "jst" | "kst" => 9,
        "aest" => 10,
        "aedt" => 11,
        "nzst" => 12,
        "nzdt" => 13,
        _ => return place(tokens),
    };
    let offset = tz::Offset::from_hours(hours).ok()?;
    Some((Zone::Known(TimeZone::fixed(offset)), 1))
}

/// A zone by the name people have for it.
fn place(tokens: &[Token]) -> Option<(Zone, usize)> {
    let word = tokens.first()?.word()?;
    let region = match word {
        "pt" | "pacific" => "America/Los_Angeles",
        "et" | "eastern" => "America/New_York",
        "mt" | "mountain" => "America/Denver",
        "ct" | "central" => "America/Chicago",
        "beijing" | "shanghai" | "china" => "Asia/Shanghai",
        "北" if tokens.get(1).is_some_and(|next| next.is("京")) => "Asia/Shanghai",
        "cst" | "ist" | "bst" | "ast" | "amt" | "gst" | "ect" | "sst" => {
            return Some((Zone::Ambiguous, 1));
        }
        _ => return None,
    };
    let mut taken = if word == "北" { 2 } else { 1 };
    for tail in ["standard", "daylight", "time", "时", "時", "间", "間"] {
        taken += usize::from(tokens.get(taken).is_some_and(|token| token.is(tail)));
    }
    let zone = TimeZone::get(region).map_or(Zone::Ambiguous, Zone::Known);
    Some((zone, taken))
}
