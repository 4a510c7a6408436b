//! The time a sentence states for trying again. Only what stands beside a word of resetting or waiting counts: limits,
//! log stamps and "every 5h" are numbers too.

use std::time::Duration;

use jiff::Timestamp;

use super::clock::Clock;
use super::token::{Token, tokens};
use super::when::{self, Found};
use super::{duration, member, number};

/// How far behind such a word a time is looked for.
const REACH: usize = 14;
/// How far before it, for languages that say the time first.
const REACH_BACK: usize = 24;

/// What a text states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::failure) struct Prose {
    /// An instant: an epoch, or a date or time in words.
    pub(in crate::failure) at: Option<Found>,
    /// A wait.
    pub(in crate::failure) wait: Option<Duration>,
}

/// Reads one expression that is the whole text, for example the value of a field.
pub(super) fn expression(text: &str, clock: &Clock<'_>) -> Option<Found> {
    let tokens = tokens(text);
    let (when, _) = when::leading(&tokens)?;
    when.found(clock)
}

/// Reads a text.
pub(in crate::failure) fn read(text: &str, clock: &Clock<'_>) -> Prose {
    let mut prose = Prose {
        at: epoch_behind_bar(text, clock).map(Found::At),
        wait: None,
    };
    if !may_state_a_time(text) {
        return prose;
    }
    let tokens = tokens(text);
    for (at, _) in tokens
        .iter()
        .enumerate()
        .filter(|(at, _)| is_anchor(&tokens, *at) && !is_own_backoff(&tokens, *at))
    {
        prose.look_behind(tokens.get(at + 1..).unwrap_or_default(), clock);
        if prose.at.is_none() && prose.wait.is_none() {
            prose.look_before(
                tokens
                    .get(at.saturating_sub(REACH_BACK)..at)
                    .unwrap_or_default(),
                clock,
            );
        }
        if prose.at.is_some() {
            break;
        }
    }
    if prose.at.is_none() && prose.wait.is_none() {
        prose.wait = member::wait(text);
    }
    prose
}

/// A longer pause beside a count of attempts is one the vendor asked for: no program waits hours on its own account.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// "Retrying in 4 seconds… (attempt 3/10)" is what the program means to do, and not what the vendor asks for.
fn is_own_backoff(tokens: &[Token], at: usize) -> bool {
    let behind = tokens.get(at + 1..).unwrap_or_default();
    let behind = behind.get(..REACH.min(behind.len())).unwrap_or_default();
    let counts = || {
        behind
            .iter()
            .any(|token| token.word().is_some_and(|word| word.starts_with("attempt")))
            || behind.windows(3).any(|three| {
                matches!(
                    three,
                    [Token::Number(_), Token::Symbol('/'), Token::Number(_)]
                )
            })
    };
    let summed = || {
        let before = tokens.get(at.saturating_sub(3)..at).unwrap_or_default();
        before.iter().any(|token| token.is("total"))
    };
    match tokens.get(at).and_then(Token::word) {
        Some("retrying") => {
            let wait = (0..behind.len()).find_map(|at| duration::leading(behind.get(at..)?));
            counts() && wait.is_none_or(|(wait, _)| wait <= LONGEST_BACKOFF)
        }
        Some("wait" | "retry") => summed(),
        _ => false,
    }
}

/// Nearly every time has a digit; a text without one is not looked at further.
fn may_state_a_time(text: &str) -> bool {
    const IN_WORDS: &[&str] = &[
        "midnight",
        "noon",
        "hour",
        "minute",
        "tomorrow",
        "minuit",
        "medianoche",
        "mitternacht",
    ];
    text.bytes().any(|byte| byte.is_ascii_digit())
        || IN_WORDS.iter().any(|word| text.contains(word))
}

/// `…limit reached|1762952400`.
fn epoch_behind_bar(text: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    text.split('|').skip(1).take(8).find_map(|part| {
        let digits: String = part
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let epoch: f64 = digits.parse().ok().filter(|_| digits.len() >= 9)?;
        number::instant(epoch, clock.now)
    })
}

impl Prose {
    /// Takes the first time behind a word of resetting.
    fn look_behind(&mut self, tokens: &[Token], clock: &Clock<'_>) {
        let end = tokens
            .iter()
            .position(|token| *token == Token::Stop)
            .unwrap_or(tokens.len());
        let sentence = tokens.get(..end).unwrap_or_default();
        let mut at = 0;
        while at < sentence.len().min(REACH) {
            let rest = sentence.get(at..).unwrap_or_default();
            if rest
                .first()
                .and_then(Token::word)
                .is_some_and(is_description)
            {
                return;
            }
            if let (None, Some((wait, taken))) = (self.wait, duration::leading(rest))
                && is_wait(rest.get(taken..).unwrap_or_default())
            {
                self.wait = Some(wait);
                at += taken;
                continue;
            }
            if let Some(found) = found(tokens.get(..at).unwrap_or_default(), rest, clock) {
                self.at = found;
                return;
            }
            at += 1;
        }
    }

    /// Takes the last time before a word of resetting.
    fn look_before(&mut self, tokens: &[Token], clock: &Clock<'_>) {
        let start = tokens
            .iter()
            .rposition(|token| *token == Token::Stop)
            .map_or(0, |at| at + 1);
        let sentence = tokens.get(start..).unwrap_or_default();
        for at in 0..sentence.len() {
            let rest = sentence.get(at..).unwrap_or_default();
            if let Some((wait, taken)) = duration::leading(rest) {
                let then = rest.get(taken).and_then(Token::word).unwrap_or_default();
                if matches!(then, "后" | "後" | "以" | "之" | "内" | "later") {
                    self.wait = Some(wait);
                    return;
                }
            }
            // The stamp of a log line stands before everything and is past.
            let found = found(sentence.get(..at).unwrap_or_default(), rest, clock);
            if let Some(found) = found.filter(|found| *found != Some(Found::JustPassed)) {
                self.at = found;
                return;
            }
        }
    }
}

/// A time at the head of the tokens; `Some(None)` = there is one, and what it means cannot be known. A clock beside a year
/// belongs to a date in words nobody here knows: it is not today's.
fn found(before: &[Token], tokens: &[Token], clock: &Clock<'_>) -> Option<Option<Found>> {
    if let Some(Token::Number(digits)) = tokens
        .first()
        .filter(|_| !tokens.get(1).is_some_and(|token| token.is("-")))
    {
        // An epoch in the sentence itself.
        if matches!(digits.len(), 10 | 13 | 16 | 19) {
            return Some(number::instant(digits.parse().ok()?, clock.now).map(Found::At));
        }
    }
    let (when, taken) = when::leading(tokens)?;
    let behind = tokens.get(taken..).unwrap_or_default();
    let beside = before
        .iter()
        .rev()
        .take(NEAR)
        .chain(behind.iter().take(NEAR));
    if when.is_clock_alone() && beside.into_iter().any(is_year) {
        return Some(None);
    }
    Some(when.found(clock))
}

/// How many tokens away a year still belongs to a clock: `10 lipca 2026 r., 11:52`.
const NEAR: usize = 4;

fn is_year(token: &Token) -> bool {
    matches!(token, Token::Number(digits) if digits.len() == 4)
        && token
            .number(4)
            .is_some_and(|year| (2000..2200).contains(&year))
}

/// Words after which a rhythm or a sum follows, no time: "every 5h", "total 92 s".
fn is_description(word: &str) -> bool {
    matches!(
        word,
        "every"
            | "each"
            | "per"
            | "total"
            | "elapsed"
            | "limited"
            | "cada"
            | "chaque"
            | "jede"
            | "每"
    )
}

/// Whether a duration is a wait: "5 hour limit" names a window.
fn is_wait(after: &[Token]) -> bool {
    let next = after.first().and_then(Token::word).unwrap_or_default();
    // "15h30" is a time of day.
    let clock = matches!(after.first(), Some(Token::Number(_)));
    !clock
        && !matches!(
            next,
            "limit"
                | "limits"
                | "window"
                | "windows"
                | "quota"
                | "usage"
                | "rolling"
                | "session"
                | "cap"
                | "period"
                | "ago"
                | "timeout"
                | "限"
                | "窗"
        )
}

/// A word of resetting, waiting or coming back.
fn is_anchor(tokens: &[Token], at: usize) -> bool {
    let Some(word) = tokens.get(at).and_then(Token::word) else {
        return false;
    };
    let next = tokens.get(at + 1).and_then(Token::word).unwrap_or_default();
    if word.contains('_') {
        let mut parts = word.split('_');
        return parts.any(|part| matches!(part, "reset" | "resets" | "retry"));
    }
    match word {
        "reset" | "resets" | "resetting" | "resettime" | "renew" | "renews" | "renewed"
        | "refresh" | "refreshes" | "refreshed" | "retry" | "retrying" | "retried" | "again"
        | "wait" | "waiting" | "back" | "until" | "available" | "regain" | "restored"
        | "restore" | "resume" | "resumes" | "unlock" | "unlocks" | "unlocked" | "lifted"
        | "lifts" | "cooldown" | "replenish" | "replenishes" | "replenished" | "unblocked"
        | "returns" | "next" | "ends" | "expire" | "expires" | "retryafter" | "reopens"
        | "reactivated" | "delay" => true,
        // Spanish, French, German, Portuguese, Italian.
        "restablece" | "restablecerá" | "reinicia" | "reiniciará" | "renueva" | "nuevo"
        | "disponible" | "inténtalo" | "intente" | "espere" | "espera" | "réinitialise"
        | "réinitialisé" | "réinitialisée" | "réinitialisation" | "réinitialisera"
        | "réessayez" | "réessayer" | "zurückgesetzt" | "erneut" | "verfügbar" | "wieder"
        | "zurücksetzung" | "novamente" | "redefine" | "redefinido" | "redefinida" | "renova"
        | "disponível" | "aguarde" | "tente" | "reiniciado" | "riprova" => true,
        // Russian, Korean.
        "сбросится"
        | "повторите"
        | "попробуйте"
        | "снова"
        | "доступен"
        | "доступно"
        | "재설정"
        | "초기화"
        | "다시" => true,
        "重" | "恢" | "刷" | "解" | "等" | "再" | "重新" => matches!(
            (word, next),
            ("重", "置" | "试" | "試" | "新")
                | ("恢", "复")
                | ("刷", "新")
                | ("解", "除" | "封" | "锁")
                | ("等", "待")
                | ("再", "试" | "試" | "度")
        ),
        _ => ["リセット", "再試行", "利用可能"]
            .iter()
            .any(|known| word.contains(known)),
    }
}
