//! What a platform counts when it bounds a message.

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Unicode scalar values.
    Chars,
    /// UTF-16 code units. Discord does not say which unit its 2000 are; this is the larger count of the two, so it is safe.
    Utf16,
    /// UTF-16 code units after Slack's escaping: `&` becomes five, `<` and `>` four. Text split in this unit can be escaped
    /// piece by piece and still fits, and no entity is ever cut in two.
    SlackEscaped,
}

impl Unit {
    /// Returns the length of `text` in this unit.
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Chars => text.chars().count(),
            _ => text.chars().map(|c| self.width(c)).sum(),
        }
    }

    /// Returns the beginning of `text` up to and including the first character that no longer fits into `max`; all of it
    /// if it fits. Looks no further, so that cutting a very long line stays cheap.
    pub(super) fn head(self, text: &str, max: usize) -> &str {
        let mut taken = 0;
        let behind = text.char_indices().find_map(|(at, c)| {
            taken += self.width(c);
            (taken > max).then(|| at + c.len_utf8())
        });
        behind.map_or(text, |at| text.split_at(at).0)
    }

    /// Whether `text` is at most `max` long.
    pub(super) fn fits(self, text: &str, max: usize) -> bool {
        self.length(self.head(text, max)) <= max
    }

    /// The most one character can take: no limit below it can be held.
    pub const fn widest(self) -> usize {
        match self {
            Self::Chars => 1,
            Self::Utf16 => 2,
            Self::SlackEscaped => 5,
        }
    }

    pub(crate) fn width(self, c: char) -> usize {
        match (self, c) {
            (Self::Chars, _) => 1,
            (Self::SlackEscaped, '&') => 5,
            (Self::SlackEscaped, '<' | '>') => 4,
            _ => c.len_utf16(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_counts_its_own_way() {
        let rows = [("abc", 3, 3, 3), ("é👍", 2, 3, 3), ("a<b>&", 5, 5, 15)];
        for (text, chars, utf16, slack) in rows {
            assert_eq!(Unit::Chars.length(text), chars, "{text}");
            assert_eq!(Unit::Utf16.length(text), utf16, "{text}");
            assert_eq!(Unit::SlackEscaped.length(text), slack, "{text}");
        }
    }
}
