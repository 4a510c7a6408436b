//! Text as the reader of times sees it: numbers, words, single symbols, sentence ends. Everything in lower case.

/// How much of a text is looked at for a time.
const MAX_TOKENS: usize = 2_000;

/// One piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// Digits as written.
    Number(String),
    /// Letters and `_`; an ideograph is a word of its own.
    Word(String),
    Symbol(char),
    /// The end of a sentence.
    Stop,
}

impl Token {
    /// Whether it is this word or symbol.
    pub(super) fn is(&self, text: &str) -> bool {
        match self {
            Self::Word(word) => word == text,
            Self::Symbol(symbol) => text.chars().eq([*symbol]),
            _ => false,
        }
    }

    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A number of at most `digits` digits.
    pub(super) fn number(&self, digits: usize) -> Option<i16> {
        match self {
            Self::Number(text) if text.len() <= digits => text.parse().ok(),
            _ => None,
        }
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::with_capacity(64);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if found.len() >= MAX_TOKENS {
            break;
        }
        if c.is_ascii_digit() {
            let mut digits = String::from(c);
            while let Some(next) = rest.next_if(char::is_ascii_digit) {
                digits.push(next);
            }
            found.push(Token::Number(digits));
        } else if is_ideograph(c) {
            found.push(Token::Word(c.to_string()));
        } else if c.is_alphabetic() {
            let mut word: String = c.to_lowercase().collect();
            while let Some(next) =
                rest.next_if(|next| (next.is_alphabetic() && !is_ideograph(*next)) || *next == '_')
            {
                word.extend(next.to_lowercase());
            }
            found.push(Token::Word(word));
        } else if ends_sentence(c, &found, rest.peek().copied())
            && !joins_date(&found, rest.clone())
        {
            found.push(Token::Stop);
        } else if !c.is_whitespace() {
            found.push(Token::Symbol(c));
        }
    }
    found
}

/// `2026. 7. 23.`: a stop behind a year with a number behind it.
fn joins_date(before: &[Token], mut behind: impl Iterator<Item = char>) -> bool {
    let year = matches!(before.last(), Some(Token::Number(digits)) if digits.len() == 4 && digits.starts_with("20"));
    year && behind
        .find(|c| !c.is_whitespace())
        .is_some_and(|c| c.is_ascii_digit())
}

/// A full stop behind an abbreviation (`jul.`, `p.m.`) ends nothing.
fn ends_sentence(c: char, before: &[Token], next: Option<char>) -> bool {
    match c {
        '!' | '?' | '。' | ';' => true,
        '.' => {
            let at_word_end = next.is_none_or(char::is_whitespace);
            let short = match before.last() {
                Some(Token::Word(word)) => word.chars().count() <= 4,
                Some(Token::Number(digits)) => digits.len() <= 2, // "20. Juni"
                _ => false,
            };
            at_word_end && !short
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_falls_into_numbers_words_symbols_and_stops() {
        let word = |text: &str| Token::Word(text.into());
        let number = |text: &str| Token::Number(text.into());
        assert_eq!(
            tokens("10 de jul. de 2026, 11:52 again. x"),
            [
                number("10"),
                word("de"),
                word("jul"),
                Token::Symbol('.'),
                word("de"),
                number("2026"),
                Token::Symbol(','),
                number("11"),
                Token::Symbol(':'),
                number("52"),
                word("again"),
                Token::Stop,
                word("x"),
            ]
        );
        assert_eq!(
            tokens("7月1日后"),
            [number("7"), word("月"), number("1"), word("日"), word("后")]
        );
    }
}
