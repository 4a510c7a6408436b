//! Text as it was meant: without what a terminal, a table or a typesetter put around it.

use std::borrow::Cow;

/// Takes out colours and cursor moves; frames and special spaces become plain spaces, so that a line wrapped inside a box
/// reads on.
pub(super) fn tidy(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dressing) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                // "ESC [ 31 m": parameters, then one letter.
                if rest.next_if_eq(&'[').is_some() {
                    while rest.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                    rest.next();
                }
            }
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            c if is_dressing(c) => plain.push(' '),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

fn is_dressing(c: char) -> bool {
    matches!(
        c,
        '\u{1b}'
            | '\u{a0}'
            | '\u{2000}'..='\u{200d}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{2060}'
            | '\u{2500}'..='\u{257f}'
            | '\u{3000}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_frames_and_spaces_go() {
        for (text, want) in [
            ("plain", "plain"),
            ("\u{1b}[1;31mHTTP 404\u{1b}[0m", "HTTP 404"),
            ("\u{2502} resets 3\u{202f}PM \u{2502}", "  resets 3 PM  "),
            ("a\u{200b}b\u{1b}", "ab"),
        ] {
            assert_eq!(tidy(text), want);
        }
    }
}
