//! Joining two pieces of reported text that may repeat each other, in linear time.
//!
//! The rule: if one is part of the other, the longer one; else the longest end of the first that is the beginning of the
//! second stands once, if it has at least [`MIN_OVERLAP`] characters; else a blank line between them. What is left out is
//! always there already, letter for letter.

/// Shorter overlaps are chance: they stay doubled rather than glue two words together.
pub const MIN_OVERLAP: usize = 8;

/// Joins `earlier` and `later`, repeating nothing.
pub fn merge(earlier: &str, later: &str) -> String {
    if later.is_empty() || earlier.contains(later) {
        return earlier.to_owned();
    }
    if later.contains(earlier) {
        return later.to_owned();
    }
    match later.split_at_checked(overlap(earlier, later)) {
        Some((shared, rest)) if shared.chars().count() >= MIN_OVERLAP => format!("{earlier}{rest}"),
        _ => format!("{earlier}\n\n{later}"),
    }
}

/// Bytes of the longest end of `earlier` that `later` begins with. It ends between two characters of `later`, for it ends
/// where `earlier` ends and begins where `later` begins.
fn overlap(earlier: &str, later: &str) -> usize {
    let pattern = later.as_bytes();
    let borders = borders(pattern);
    let start = earlier.len().saturating_sub(pattern.len());
    let mut matched = 0;
    for byte in earlier.as_bytes().iter().skip(start) {
        matched = extend(pattern, &borders, matched, *byte);
    }
    matched
}

/// For each prefix of `pattern`, the length of its longest proper border (Knuth, Morris, Pratt).
fn borders(pattern: &[u8]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(pattern.len());
    let mut matched = 0;
    for (at, byte) in pattern.iter().enumerate() {
        if at > 0 {
            matched = extend(pattern, &borders, matched, *byte);
        }
        borders.push(matched);
    }
    borders
}

/// The length of the match after one more byte; `borders` covers at least the `matched` bytes matched so far.
fn extend(pattern: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if pattern.get(matched) == Some(&byte) {
            return matched + 1;
        }
        match matched.checked_sub(1).and_then(|last| borders.get(last)) {
            Some(shorter) => matched = *shorter,
            None => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same rule, written the slow and obvious way.
    fn by_the_book(earlier: &str, later: &str) -> String {
        if earlier.contains(later) {
            return earlier.to_owned();
        }
        if later.contains(earlier) {
            return later.to_owned();
        }
        let cut = later
            .char_indices()
            .map(|(at, _)| at)
            .filter(|at| earlier.ends_with(later.get(..*at).unwrap()))
            .max()
            .unwrap_or(0);
        if later.get(..cut).unwrap().chars().count() >= MIN_OVERLAP {
            format!("{earlier}{}", later.get(cut..).unwrap())
        } else {
            format!("{earlier}\n\n{later}")
        }
    }

    proptest! {
        #[test]
        fn merging_follows_the_rule(earlier in "[aäß]{0,40}", later in "[aäß]{0,40}") {
            prop_assert_eq!(merge(&earlier, &later), by_the_book(&earlier, &later));
        }

        #[test]
        fn merging_shared_text_keeps_it_once(a in "[a-z ]{1,30}", shared in "[A-Z喵]{8,20}", b in "[0-9 ]{1,30}") {
            let merged = merge(&format!("{a}{shared}"), &format!("{shared}{b}"));
            prop_assert_eq!(merged, format!("{a}{shared}{b}"));
        }

        #[test]
        fn merging_loses_neither_side(a in "\\PC{0,60}", b in "\\PC{0,60}") {
            let merged = merge(&a, &b);
            prop_assert!(merged.contains(&a) && merged.contains(&b));
        }
    }

    /// Two megabytes that match almost everywhere: the quadratic way needs hours for this, so a regression is a hang.
    #[test]
    fn merging_is_linear() {
        let earlier = format!("{}b", "a".repeat(1_000_000));
        let later = format!("{}c", "a".repeat(1_000_000));
        assert_eq!(
            merge(&earlier, &later).len(),
            earlier.len() + later.len() + 2
        );
    }
}
