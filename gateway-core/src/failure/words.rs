//! A text as words, and phrases with gaps over them.
//!
//! Providers reword their messages from one version to the next, so no rule looks for a whole sentence. A phrase names the
//! few words that carry the meaning and how many others may stand between them: `credit ~3 low` is found in "your credit
//! balance is too low". Typed names are read the same way: `rate_limit_exceeded` and `RateLimitExceeded` are three words.
//! Matching is linear in the text: words become small numbers once, and a phrase is only tried where its first word is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most of a text that is read; an error says what it is at its beginning.
const MAX_BYTES: usize = 16 * 1024;
/// A word nobody asks for.
const OTHER: u16 = 0;
/// A number.
const NUMBER: u16 = 1;
/// The end of a sentence: no gap reaches over it.
const STOP: u16 = 2;
const FIRST_WORD: u16 = 3;

/// Calls `take` with every lower-case word of the text; `.` stands for the end of a sentence. Web addresses are left out:
/// a link to a billing page says nothing about billing.
fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::with_capacity(24);
    let mut before = ' ';
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if at > MAX_BYTES {
            break;
        }
        if c == 'h' && word.is_empty() && is_address(text.get(at..).unwrap_or_default()) {
            while rest.next_if(|(_, c)| !ends_address(*c)).is_some() {}
            before = ' ';
            continue;
        }
        let next = rest.peek().map(|(_, next)| *next);
        let inside_number = matches!(c, '.' | ',')
            && before.is_ascii_digit()
            && next.is_some_and(|next| next.is_ascii_digit());
        let hump = c.is_uppercase() && (before.is_lowercase());
        if hump || is_ideograph(c) || is_ideograph(before) {
            flush(&mut word, &mut take);
        }
        if c.is_alphanumeric() || inside_number {
            match c.is_ascii() {
                true => word.push(c.to_ascii_lowercase()),
                false => word.extend(c.to_lowercase()),
            }
        } else if !matches!(c, '\'' | '\u{2019}' | '\u{2bc}' | '`') || word.is_empty() {
            flush(&mut word, &mut take);
            let ends = matches!(c, '!' | '?' | '。' | ';')
                || c == '.' && next.is_none_or(char::is_whitespace);
            if ends {
                take(".");
            }
        }
        before = c;
    }
    flush(&mut word, &mut take);
}

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word);
        word.clear();
    }
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn ends_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | ')' | '>' | '\'' | '\\')
}

/// Scripts without spaces between words: every character counts as one.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// FNV-1a: the words are ours and short, and nobody can make them collide.
#[derive(Default)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

struct Step {
    /// Any of these words.
    words: Vec<u16>,
    /// How many words may stand before it.
    gap: usize,
}

struct Phrase {
    steps: Vec<Step>,
    meaning: u8,
}

/// Phrases, ready to be looked for in any text.
pub(super) struct Phrasebook {
    ids: HashMap<&'static str, u16, BuildHasherDefault<Fnv>>,
    phrases: Vec<Phrase>,
    /// By their first word.
    starting: Vec<Vec<usize>>,
    /// Words no gap reaches over.
    barriers: Vec<u16>,
    /// Figures that stand in phrases as words of their own; they are numbers all the same.
    figures: Vec<u16>,
}

impl Phrasebook {
    /// Builds from `(meaning, phrases)`. In a phrase, `a|b` is either word, `~3` allows three words before the next, `#` is
    /// any number. No gap reaches over a barrier word.
    pub(super) fn new(table: &[(u8, &'static [&'static str])], barriers: &[&'static str]) -> Self {
        let mut book = Self {
            ids: HashMap::default(),
            phrases: Vec::new(),
            starting: Vec::new(),
            barriers: vec![STOP],
            figures: Vec::new(),
        };
        for part in table.iter().flat_map(|(_, phrases)| *phrases) {
            for word in part.split([' ', '|']).filter(|word| is_figure(word)) {
                let id = book.id(word);
                book.figures.push(id);
            }
        }
        for word in barriers {
            let id = book.id(word);
            book.barriers.push(id);
        }
        for (meaning, phrases) in table {
            for phrase in *phrases {
                book.add(*meaning, phrase);
            }
        }
        book
    }

    fn add(&mut self, meaning: u8, text: &'static str) {
        let mut steps: Vec<Step> = Vec::new();
        let mut gap = 0;
        for part in text.split_whitespace() {
            if let Some(number) = part.strip_prefix('~') {
                gap = number.parse().unwrap_or_default();
                continue;
            }
            for alternatives in pieces(part) {
                let mut words: Vec<u16> =
                    alternatives.split('|').map(|word| self.id(word)).collect();
                if words.contains(&NUMBER) {
                    words.extend(&self.figures);
                }
                steps.push(Step { words, gap });
                gap = 0;
            }
        }
        let number = self.phrases.len();
        for word in steps.first().map(|step| &step.words).into_iter().flatten() {
            let place = usize::from(*word);
            if self.starting.len() <= place {
                self.starting.resize_with(place + 1, Vec::new);
            }
            if let Some(phrases) = self.starting.get_mut(place) {
                phrases.push(number);
            }
        }
        self.phrases.push(Phrase { steps, meaning });
    }

    fn id(&mut self, word: &'static str) -> u16 {
        if word == "#" {
            return NUMBER;
        }
        let next = FIRST_WORD + u16::try_from(self.ids.len()).unwrap_or(u16::MAX - FIRST_WORD);
        *self.ids.entry(word).or_insert(next)
    }

    /// The meanings of all phrases found, one bit each.
    pub(super) fn meanings(&self, text: &str) -> u64 {
        let mut words: Vec<u16> = Vec::with_capacity(64);
        each_word(text, |word| words.push(self.known(word)));
        let mut found = 0_u64;
        for (at, word) in words.iter().enumerate() {
            let Some(candidates) = self.starting.get(usize::from(*word)) else {
                continue;
            };
            let after = words.get(at + 1..).unwrap_or_default();
            for phrase in candidates.iter().filter_map(|n| self.phrases.get(*n)) {
                let bit = 1_u64 << phrase.meaning;
                if found & bit == 0 && self.continues(phrase.steps.get(1..), after) {
                    found |= bit;
                }
            }
        }
        found
    }

    fn known(&self, word: &str) -> u16 {
        match self.ids.get(word) {
            Some(id) => *id,
            None if word == "." => STOP,
            None if word.starts_with(|c: char| c.is_ascii_digit())
                && word
                    .chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',')) =>
            {
                NUMBER
            }
            None => OTHER,
        }
    }

    /// Whether the rest of a phrase follows. The nearest place of each step is tried only: gaps are short.
    fn continues(&self, steps: Option<&[Step]>, mut words: &[u16]) -> bool {
        for step in steps.unwrap_or_default() {
            let mut found = None;
            for (at, word) in words.iter().enumerate().take(step.gap + 1) {
                if step.words.contains(word) {
                    found = Some(at);
                    break;
                }
                if self.barriers.contains(word) {
                    break;
                }
            }
            let Some(at) = found else { return false };
            words = words.get(at + 1..).unwrap_or_default();
        }
        true
    }
}

fn is_figure(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A run of ideographs is one step per character; anything else is one step.
fn pieces(part: &'static str) -> Vec<&'static str> {
    if !part.chars().all(is_ideograph) {
        return vec![part];
    }
    part.char_indices()
        .filter_map(|(at, c)| part.get(at..at + c.len_utf8()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_and_prose_become_the_same_words() {
        let same = ["rate", "limit", "exceeded"];
        for text in [
            "rate_limit_exceeded",
            "RateLimitExceeded",
            "Rate-limit (exceeded)",
        ] {
            assert_eq!(words(text), same, "{text}");
        }
        assert_eq!(words("You\u{2019}ve hit 5h."), ["youve", "hit", "5h", "."]);
        assert_eq!(words("limit 80,000; 1.5"), ["limit", "80,000", ".", "1.5"]);
        assert_eq!(words("see https://a.b/billing?x=1 now"), ["see", "now"]);
        assert_eq!(words("余额不足a"), ["余", "额", "不", "足", "a"]);
    }

    #[test]
    fn gaps_are_bounded_and_stop_at_sentences_and_barriers() {
        let book = Phrasebook::new(
            &[
                (0, &["credit ~3 low|empty"]),
                (1, &["limit # requested #"]),
                (2, &["余额不足"]),
                (3, &["limit 0"]),
                (4, &["tools # name"]),
            ],
            &["rate"],
        );
        for (text, want) in [
            ("Your credit balance is too low", 1),
            ("credit low", 1),
            ("credit a b c d low", 0),
            ("credit. low", 0),
            ("credit rate low", 0),
            ("Limit 30,000, Requested 35064", 2),
            ("账户余额不足", 4),
            ("limit: 0", 8),
            ("tools[0].name, tools[7]", 16),
        ] {
            assert_eq!(book.meanings(text), want, "{text}");
        }
    }
}
