//! Dates in figures and times of day, as people's programs write them.

use jiff::civil::{Date, Time};

use super::token::Token;

/// `2026-08-25`, `2026/08/25`, `2026年8月25日`, `8月25日`, `25.08.2026`, `25/08/2026`.
pub(super) fn numeric_date(tokens: &[Token]) -> Option<(Option<i16>, i8, i8, usize)> {
    let small = |at: usize| i8::try_from(tokens.get(at)?.number(2)?).ok();
    let symbol = |at: usize| match tokens.get(at) {
        Some(Token::Symbol(symbol)) => Some(*symbol),
        _ => None,
    };
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let four = |at: usize| {
        tokens
            .get(at)
            .filter(|token| matches!(token, Token::Number(text) if text.len() == 4))?
            .number(4)
    };
    let checked = |year: Option<i16>, month: i8, day: i8, taken: usize| {
        let valid = Date::new(year.unwrap_or(2024), month, day).is_ok()
            && year.is_none_or(|year| (2000..2200).contains(&year));
        valid.then_some((year, month, day, taken))
    };
    if let Some(year) = four(0) {
        if is(1, "年") && is(3, "月") {
            return checked(
                Some(year),
                small(2)?,
                small(4)?,
                5 + usize::from(is(5, "日") || is(5, "号")),
            );
        }
        let joint = symbol(1).filter(|joint| matches!(joint, '-' | '/' | '.'))?;
        return (symbol(3) == Some(joint)).then(|| checked(Some(year), small(2)?, small(4)?, 5))?;
    }
    let first = small(0)?;
    if is(1, "月") && (is(3, "日") || is(3, "号")) {
        return checked(None, first, small(2)?, 4);
    }
    let joint = symbol(1).filter(|joint| matches!(joint, '.' | '/'))?;
    if symbol(3) != Some(joint) {
        return None;
    }
    let (second, year) = (small(2)?, four(4)?);
    match joint {
        '.' => checked(Some(year), second, first, 5),
        _ if first > 12 => checked(Some(year), second, first, 5),
        _ if second > 12 => checked(Some(year), first, second, 5),
        _ => None, // month or day first: nobody can tell
    }
}

/// Written like a date and none: `9999-01-01`, `1970-01-01`, `2026-13-45`. The clock beside it means nothing either.
pub(super) fn is_no_date(tokens: &[Token]) -> bool {
    let digits = |at: usize| match tokens.get(at) {
        Some(Token::Number(text)) => text.len(),
        _ => 0,
    };
    let joint = |at: usize| match tokens.get(at) {
        Some(Token::Symbol(symbol)) if matches!(symbol, '-' | '/') => Some(*symbol),
        _ => None,
    };
    let shaped = digits(0) >= 4
        && (1..=2).contains(&digits(2))
        && (1..=2).contains(&digits(4))
        && joint(1).is_some()
        && joint(1) == joint(3);
    shaped && numeric_date(tokens).is_none()
}

/// `07/06/2026`: month or day first, nobody can tell.
pub(super) fn is_unclear_date(tokens: &[Token]) -> bool {
    let small = |at: usize| {
        tokens
            .get(at)
            .and_then(|token| token.number(2))
            .is_some_and(|number| (1..=12).contains(&number))
    };
    let slash = |at: usize| matches!(tokens.get(at), Some(Token::Symbol('/' | '-')));
    small(0)
        && slash(1)
        && small(2)
        && slash(3)
        && matches!(tokens.get(4), Some(Token::Number(year)) if year.len() == 4 || year.len() == 2)
}

/// `3pm`, `10:30 a.m.`, `07:41:44.123`, `15h30`, `11 Uhr`, `上午10:30`, `10点30分`, `noon`, `midnight`.
pub(super) fn clock_time(tokens: &[Token]) -> Option<(Time, usize)> {
    let word = |at: usize| tokens.get(at).and_then(Token::word).unwrap_or_default();
    match word(0) {
        "midnight" | "medianoche" | "minuit" | "mitternacht" => return Some((Time::midnight(), 1)),
        "noon" | "midday" | "mediodía" | "midi" | "mittag" => {
            return Some((Time::constant(12, 0, 0, 0), 1));
        }
        _ => {}
    }
    let half = match (word(0), word(1)) {
        ("上" | "凌", "午" | "晨") | ("午", "前") | ("早", "上") => Some(false),
        ("下" | "中", "午") | ("午", "後" | "后") | ("晚", "上") => Some(true),
        ("오전", _) => Some(false),
        ("오후", _) => Some(true),
        _ => None,
    };
    let start = match half {
        None => 0,
        Some(_) if word(0).starts_with('오') => 1,
        Some(_) => 2,
    };
    let two = |at: usize| i8::try_from(tokens.get(at)?.number(2)?).ok();
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let hour = two(start)?;
    let mut at = start + 1;
    let (mut minute, mut second) = (0, 0);
    let mut marked = half.is_some();
    if (is(at, ":") || is(at, "：")) && two(at + 1).is_some() {
        minute = two(at + 1)?;
        at += 2;
        marked = true;
        if is(at, ":") && two(at + 1).is_some() {
            second = two(at + 1)?;
            at += 2;
            if is(at, ".") && matches!(tokens.get(at + 1), Some(Token::Number(_))) {
                at += 2;
            }
        }
    } else if is(at, "点")
        || is(at, "點")
        || is(at, "時")
        || is(at, "时")
        || (is(at, "h") && !is(at + 2, "m") && !is(at + 2, "min"))
        || is(at, "uhr")
    {
        at += 1;
        marked = true;
        if let Some(stated) = two(at).filter(|_| !is(at + 1, "s")) {
            minute = stated;
            at += 1 + usize::from(is(at + 1, "分"));
        }
    }
    let (half, taken) = half_of_day(tokens.get(at..).unwrap_or_default())
        .map_or((half, 0), |(pm, taken)| (Some(pm), taken));
    at += taken;
    marked |= taken > 0;
    // A bare hour is one only beside a zone: "15 UTC".
    let zoned = !marked && minute == 0 && matches!(word(at), "utc" | "gmt");
    if !(marked || zoned) {
        return None;
    }
    at += usize::from(is(at, "uhr") || is(at, "hs") || is(at, "hrs"));
    let hour = match half {
        Some(_) if !(0..=12).contains(&hour) => hour,
        Some(true) if hour < 12 => hour + 12,
        Some(false) if hour == 12 => 0,
        _ => hour,
    };
    if (hour, minute, second) == (24, 0, 0) {
        return Some((Time::midnight(), at));
    }
    Time::new(hour, minute, second, 0)
        .ok()
        .map(|time| (time, at))
}

/// `am`, `p.m.`; whether it is the second half.
fn half_of_day(tokens: &[Token]) -> Option<(bool, usize)> {
    let first = tokens.first()?.word()?;
    match first {
        "am" => Some((false, 1)),
        "pm" => Some((true, 1)),
        "a" | "p"
            if tokens.get(1).is_some_and(|dot| dot.is("."))
                && tokens.get(2).is_some_and(|m| m.is("m")) =>
        {
            let dot = tokens.get(3).is_some_and(|dot| dot.is("."));
            Some((first == "p", 3 + usize::from(dot)))
        }
        _ => None,
    }
}
