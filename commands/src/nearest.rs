//! The nearest name to what somebody typed, for "did you mean". Never used to run anything.

/// Returns the candidate closest to `typed`: one that begins with it, else the one with the fewest edits, at most a
/// third of its length. `None` = nothing is close.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let begins = candidates
        .clone()
        .find(|name| typed.len() >= 2 && name.to_lowercase().starts_with(&typed));
    begins.or_else(|| {
        candidates
            .map(|name| (edits(&typed, &name.to_lowercase()), name))
            .filter(|(edits, name)| *edits <= (name.chars().count() / 3).max(1))
            .min_by_key(|(edits, _)| *edits)
            .map(|(_, name)| name)
    })
}

/// Insertions, deletions and substitutions between two words (Levenshtein), one row at a time.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = i + 1;
        next.push(left);
        for ((b, diagonal), above) in to.iter().zip(&row).zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(a != *b))
                .min(above + 1)
                .min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["help", "status", "stop", "resume-handoff"];

    #[test]
    fn typos_and_beginnings_find_their_name_and_nonsense_finds_none() {
        let rows = [
            ("hlp", Some("help")),
            ("HELP!", Some("help")),
            ("stats", Some("status")),
            ("resume", Some("resume-handoff")),
            ("", None),
            ("weather", None),
        ];
        for (typed, expected) in rows {
            assert_eq!(nearest(typed, NAMES.into_iter()), expected, "{typed}");
        }
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
