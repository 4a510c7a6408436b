//! Titles of sessions, for people: `baton-<16 hex>` or `baton-u-<16 hex>`, and `-g<N>` from the first successor on.
//!
//! The strict form only: lowercase digits, N from 1 without sign or leading zero. `u` is no hexadecimal digit, so the two
//! spaces cannot meet whatever a caller calls itself. A session is found by its provider's id, never by its title.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;

/// What a digest was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// The transcript: callers that do not name themselves.
    Transcript,
    /// The name a caller gave itself.
    Identity,
}

/// The part of a title that stays over all generations: one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Base {
    pub space: Space,
    pub digest: Digest,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.space {
            Space::Transcript => write!(f, "baton-{}", self.digest),
            Space::Identity => write!(f, "baton-u-{}", self.digest),
        }
    }
}

/// A title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Title {
    pub base: Base,
    /// How many sessions of this conversation were retired before this one; 0 is not written.
    pub generation: u32,
}

impl Title {
    /// The title of a conversation's first session.
    pub fn first(base: Base) -> Self {
        Self {
            base,
            generation: 0,
        }
    }

    /// The next generation; `None` = there are no more numbers.
    pub fn successor(self) -> Option<Self> {
        let generation = self.generation.checked_add(1)?;
        Some(Self { generation, ..self })
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{}", self.base),
            generation => write!(f, "{}-g{generation}", self.base),
        }
    }
}

/// The text is not a title of ours; a person or another program chose it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a title this gateway gives; sessions of others are left alone")]
pub struct Foreign(pub String);

impl FromStr for Title {
    type Err = Foreign;

    fn from_str(text: &str) -> Result<Self, Foreign> {
        parse(text).ok_or_else(|| Foreign(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Title> {
    let rest = text.strip_prefix("baton-")?;
    let (space, rest) = match rest.strip_prefix("u-") {
        Some(rest) => (Space::Identity, rest),
        None => (Space::Transcript, rest),
    };
    let (digest, rest) = rest.split_at_checked(16)?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !digest.bytes().all(is_hex) {
        return None;
    }
    let digest = Digest(u64::from_str_radix(digest, 16).ok()?);
    let generation = match rest {
        "" => 0,
        _ => generation(rest.strip_prefix("-g")?)?,
    };
    Some(Title {
        base: Base { space, digest },
        generation,
    })
}

/// From 1, without sign or leading zero: what the parser of numbers would let through besides was never given.
fn generation(text: &str) -> Option<u32> {
    let strict = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| strict)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "5a36669b9a22d7cc";

    fn title(text: &str) -> Result<Title, Foreign> {
        text.parse()
    }

    #[test]
    fn cases_15_and_16_generations_follow_one_another() {
        let mut at = title(&format!("baton-{HEX}")).unwrap();
        for n in 1..=4 {
            at = at.successor().unwrap();
            assert_eq!(at.to_string(), format!("baton-{HEX}-g{n}"));
        }
    }

    #[test]
    fn case_17_a_title_of_somebody_else_has_no_successor() {
        let foreign = [
            "my holiday",
            "baton-",
            "baton-5a36669b9a22d7cx",
            "baton-5a36669b9a22d7c",
            "baton-5a36669b9a22d7cc1",
            "baton-5a36669b9a22d7cc-g",
            "baton-5a36669b9a22d7cc-gx",
            "baton-5a36669b9a22d7cc-g-1",
            "baton-5a36669b9a22d7cc-g1-g2",
            "baton-u-",
            "baton-u",
            "baton-u-5a36669b9a22d7cx",
            "baton-u-5a36669b9a22d7c",
            "baton-u-5a36669b9a22d7cc1",
            "baton-u-5a36669b9a22d7cc-gx",
            "baton-u-u-5a36669b9a22d7cc",
            "",
            "hytte-bridge-5a36669b9a22d7cc",
            " baton-5a36669b9a22d7cc",
            "baton-5a36669b9a22d7c\u{e4}",
        ];
        for text in foreign {
            assert_eq!(title(text), Err(Foreign(text.to_owned())));
        }
    }

    #[test]
    fn case_18_what_a_number_parser_lets_through_is_foreign_as_well() {
        for tail in ["-g+1", "-g01", "-g0", "-g4294967296", "-g00", "-g "] {
            assert!(title(&format!("baton-{HEX}{tail}")).is_err(), "{tail}");
        }
        assert!(title(&format!("baton-{}", HEX.to_uppercase())).is_err());
        let last = title(&format!("baton-{HEX}-g4294967295")).unwrap();
        assert_eq!(last.successor(), None);
    }

    #[test]
    fn case_41_a_successor_stays_in_its_space() {
        let named = title(&format!("baton-u-{HEX}")).unwrap();
        let next = named.successor().unwrap();
        assert_eq!(next.to_string(), format!("baton-u-{HEX}-g1"));
        assert_eq!(next.base.space, Space::Identity);
    }

    proptest! {
        #[test]
        fn titles_are_read_back_as_given(digest: u64, named: bool, generation: u32) {
            let space = if named { Space::Identity } else { Space::Transcript };
            let given = Title { base: Base { space, digest: Digest(digest) }, generation };
            prop_assert_eq!(title(&given.to_string()), Ok(given));
        }

        #[test]
        fn whatever_parses_is_written_the_same(text in "baton-(u-)?[0-9a-fA-F]{15,17}(-g[+-]?[0-9]{0,11})?") {
            if let Ok(parsed) = title(&text) {
                prop_assert_eq!(parsed.to_string(), text);
            }
        }
    }
}
