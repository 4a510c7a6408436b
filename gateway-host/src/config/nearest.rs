//! The name somebody probably meant.

/// The known name closest to `written`: at most one edit for each three letters, case ignored; ties go to the first.
/// `None` = nothing is close enough to be a slip of the fingers.
pub(super) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    let allowed = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&written, &name.to_lowercase()), name))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// ` (did you mean "…"?)`, or nothing.
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_left = None;
    for (row, &a) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        let mut previous_right = None;
        for (column, &b) in right.iter().enumerate() {
            let at =
                |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut edits = (at(&last, column) + usize::from(a != b))
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            if previous_left == Some(b) && previous_right == Some(a) {
                edits = edits.min(at(&before_last, column.saturating_sub(1)) + 1);
            }
            current.push(edits);
            previous_right = Some(b);
        }
        before_last = std::mem::replace(&mut last, current);
        previous_left = Some(a);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, edits) in [
            ("chain", "chain", 0),
            ("chian", "chain", 1),
            ("home", "hom", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn far_names_are_not_suggested() {
        assert_eq!(nearest("limt", ["limit", "list"]), Some("limit"));
        assert_eq!(nearest("colour", ["chain", "workdir"]), None);
        assert_eq!(nearest("Chain", ["chain"]), Some("chain"));
    }
}
