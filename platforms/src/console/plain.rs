//! Text without anything a terminal obeys. Used on every text that goes to the screen, whoever wrote it.

use std::borrow::Cow;

/// Removes control characters (all but line feed and tab) and the marks that reorder or hide text. What an escape
/// sequence leaves behind is ordinary text and harmless: without its first character nothing is a sequence.
pub fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(is_obeyed) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.chars().filter(|c| !is_obeyed(*c)).collect()),
    }
}

fn is_obeyed(c: char) -> bool {
    let is_control = c.is_control() && c != '\n' && c != '\t'; // C0, DEL and C1: ESC, BEL, CR, CSI, OSC, …
    let reorders =
        matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}');
    let breaks_lines = matches!(c, '\u{2028}' | '\u{2029}');
    is_control || reorders || breaks_lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        let rows = [
            ("plain\ttext\nstays", "plain\ttext\nstays"),
            ("\u{1b}[2Jclear", "[2Jclear"),
            ("\u{1b}]0;title\u{7}x", "]0;titlex"),
            ("\u{9b}2Jc1", "2Jc1"),
            ("over\rwrite\u{8}\u{7f}", "overwrite"),
            ("\u{202e}drowssap\u{2066}", "drowssap"),
            ("слак 👩‍👩‍👧 é", "слак 👩‍👩‍👧 é"),
        ];
        for (text, expected) in rows {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn a_sequence_cut_between_two_deltas_is_harmless_too() {
        assert_eq!(plain("\u{1b}") + plain("[31m"), "[31m");
    }
}
