//! Cutting text to a length, with a marker that says so. Lengths are code points; a code point is never split.

/// Keeps the first `keep` characters: `xxx… [truncated, 5000 chars total]`.
pub fn head(text: &str, keep: usize) -> String {
    match text.char_indices().nth(keep) {
        None => text.to_owned(),
        Some((end, _)) => {
            let kept = text.get(..end).unwrap_or(text);
            format!("{kept}… [truncated, {} chars total]", text.chars().count())
        }
    }
}

/// Keeps the last `keep` characters: `[truncated, 5000 chars total] …xxx`.
pub fn tail(text: &str, keep: usize) -> String {
    let total = text.chars().count();
    if total <= keep {
        return text.to_owned();
    }
    let kept = text.char_indices().nth(total - keep);
    let kept = kept.and_then(|(start, _)| text.get(start..)).unwrap_or("");
    format!("[truncated, {total} chars total] …{kept}")
}

/// Keeps as much of the end as fits into `bytes`, the marker included; empty if not even the marker fits.
pub fn tail_within(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let marker = format!("[truncated, {} chars total] …", text.chars().count());
    let Some(room) = bytes.checked_sub(marker.len()) else {
        return String::new();
    };
    let start = text.ceil_char_boundary(text.len() - room);
    format!("{marker}{}", text.get(start..).unwrap_or(""))
}

/// Cuts to one message of `limit` characters, the marker included.
pub fn message(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let marker = format!("\n… [cut to one message, {total} chars total]");
    match limit.checked_sub(marker.chars().count()) {
        Some(room) => text.chars().take(room).chain(marker.chars()).collect(),
        None => text.chars().take(limit).collect(),
    }
}

/// Makes one line of it: every run of white space and control characters becomes one space.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cut_keeps_exactly_the_named_end(text in ".{0,80}", keep in 0usize..90) {
            let chars: Vec<char> = text.chars().collect();
            if chars.len() <= keep {
                prop_assert_eq!(head(&text, keep), text.clone());
                prop_assert_eq!(tail(&text, keep), text);
            } else {
                let first: String = chars[..keep].iter().collect();
                let last: String = chars[chars.len() - keep..].iter().collect();
                let total = chars.len();
                prop_assert_eq!(head(&text, keep), format!("{first}… [truncated, {total} chars total]"));
                prop_assert_eq!(tail(&text, keep), format!("[truncated, {total} chars total] …{last}"));
            }
        }

        #[test]
        fn a_byte_budget_is_never_passed_and_nothing_but_the_end_is_kept(text in "\\PC{0,200}", bytes in 0usize..300) {
            let cut = tail_within(&text, bytes);
            prop_assert!(cut.len() <= bytes);
            let kept = cut.split_once(" …").map_or(cut.as_str(), |(_, kept)| kept);
            prop_assert!(text.ends_with(kept) || cut == text);
        }

        #[test]
        fn a_message_is_never_longer_than_its_limit(text in "\\PC{0,200}", limit in 0usize..220) {
            let cut = message(&text, limit);
            prop_assert!(cut.chars().count() <= limit);
            prop_assert!(cut == text || text.chars().count() > limit);
        }
    }

    #[test]
    fn one_line_has_no_line_ends() {
        assert_eq!(one_line(" a\n\tb\u{1}c "), "a b c");
    }
}
