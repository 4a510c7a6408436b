//! Durations as Go, protobuf and people write them: `6m0s`, `88ms`, `34.07s`, `5 days 22 hours 11 minutes`, `5小时`.

use std::time::Duration;

use super::token::{Token, tokens};

/// Reads a text that is one duration; a bare number is none.
pub(in crate::failure) fn whole(text: &str) -> Option<Duration> {
    let tokens = tokens(text);
    leading(&tokens).map(|(wait, _)| wait)
}

/// Reads the duration at the head of the tokens; how many tokens it took.
pub(super) fn leading(tokens: &[Token]) -> Option<(Duration, usize)> {
    let mut seconds = 0.0;
    let mut taken = 0;
    let mut smallest = f64::INFINITY;
    while let Some((amount, scale, length)) = part(tokens.get(taken..)?) {
        // "5 minutes 2 hours" are two statements.
        if scale >= smallest {
            break;
        }
        smallest = scale;
        seconds += amount * scale;
        taken += length;
        let joins = matches!(tokens.get(taken), Some(token) if token.is(",") || token.is("and") || token.is("y") || token.is("und") || token.is("et") || token.is("e"));
        let goes_on = joins && part(tokens.get(taken + 1..).unwrap_or_default()).is_some();
        taken += usize::from(goes_on);
    }
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    (taken > 0).then_some((wait, taken))
}

/// One amount with its unit.
fn part(tokens: &[Token]) -> Option<(f64, f64, usize)> {
    let (amount, mut taken) = match tokens {
        [
            Token::Number(whole),
            Token::Symbol('.'),
            Token::Number(fraction),
            ..,
        ] => (format!("{whole}.{fraction}").parse().ok()?, 3),
        [Token::Number(whole), ..] => (whole.parse().ok()?, 1),
        [Token::Word(article), ..]
            if matches!(
                article.as_str(),
                "an" | "a" | "one" | "una" | "une" | "eine" | "einer" | "uma"
            ) =>
        {
            (1.0, 1)
        }
        _ => return None,
    };
    let rest = tokens.get(taken..)?;
    let (scale, length) = unit(rest)?;
    taken += length;
    Some((amount, scale, taken))
}

fn unit(tokens: &[Token]) -> Option<(f64, usize)> {
    let Some(Token::Word(word)) = tokens.first() else {
        return None;
    };
    let second = tokens.get(1).and_then(Token::word).unwrap_or_default();
    let third = tokens.get(2).and_then(Token::word).unwrap_or_default();
    let (scale, length) = match (word.as_str(), second) {
        ("个", "小") if third == "时" => (3_600.0, 3),
        ("小", "时") | ("時", "間") => (3_600.0, 2),
        ("分", "钟" | "鐘" | "間") => (60.0, 2),
        ("分", _) => (60.0, 1),
        ("秒", "钟" | "鐘" | "間") => (1.0, 2),
        ("秒", _) => (1.0, 1),
        ("天", _) => (86_400.0, 1),
        ("日", "間" | "后" | "後") => (86_400.0, 1),
        (other, _) => (latin_unit(other)?, 1),
    };
    let dotted = word.is_ascii()
        && word.len() <= 4
        && tokens.get(length).is_some_and(|token| token.is("."))
        && tokens
            .get(length + 1)
            .is_some_and(|token| matches!(token, Token::Number(_)));
    Some((scale, length + usize::from(dotted)))
}

fn latin_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "microseconds" => 1e-6,
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" | "segundo" | "segundos" | "seconde"
        | "secondes" | "sekunde" | "sekunden" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" | "minuto" | "minutos" | "minuten" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" | "hora" | "horas" | "heure" | "heures"
        | "stunde" | "stunden" | "std" => 3_600.0,
        "d" | "day" | "days" | "día" | "dia" | "días" | "dias" | "jour" | "jours" | "tag"
        | "tage" | "tagen" => 86_400.0,
        "w" | "wk" | "week" | "weeks" | "semana" | "semanas" | "semaine" | "semaines" | "woche"
        | "wochen" => 604_800.0,
        "month" | "months" => 2_592_000.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_form() {
        for (text, want) in [
            ("6m0s", 360.0),
            ("88ms", 0.088),
            ("34.07s", 34.07),
            ("23h47m36.648s", 85_656.648),
            ("108h48m20.795762633s", 391_700.795_762_633),
            ("577210.725405548s", 577_210.725_405_548),
            ("5 days 22 hours 11\nminutes.", 511_860.0),
            ("663 hours 23 minutes", 2_388_180.0),
            ("3h 47m — then", 13_620.0),
            ("1 hour and 5 minutes", 3_900.0),
            ("2 hours, 3 min", 7_380.0),
            ("an hour", 3_600.0),
            ("19hr", 68_400.0),
            ("5小时30分钟", 19_800.0),
            ("2 个小时", 7_200.0),
            ("3 horas y 5 minutos", 11_100.0),
            ("10s 5m", 10.0),
        ] {
            let got = whole(text)
                .unwrap_or_else(|| panic!("{text}"))
                .as_secs_f64();
            assert!((got - want).abs() < 1e-6, "{text}: {got}");
        }
        for text in ["", "5", "soon", "minutes", "-5 s", "Limit 6000", "5 times"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
