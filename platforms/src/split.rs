//! Long text to platform-sized pieces. For messages a platform bounds; the console needs it not.
//!
//! Breaks fall between lines where they can, else between words, else between grapheme clusters; only a cluster longer
//! than a whole piece is cut. A code fence that a break falls into is closed at the end of the piece and opened again,
//! with its language, at the start of the next. Apart from these added fence lines nothing is added and nothing is lost.

use unicode_segmentation::UnicodeSegmentation;

/// Splits `text` into pieces of at most `limit` characters (Unicode scalar values), at least 1. Empty text has no pieces.
pub fn split(text: &str, limit: usize) -> Vec<String> {
    split_pieces(text, limit)
        .into_iter()
        .map(|piece| piece.opening + &piece.body + &piece.closing)
        .collect()
}

/// A piece with what was added kept apart: the bodies joined are the text.
#[derive(Debug, Default)]
struct Piece {
    opening: String,
    body: String,
    closing: String,
}

impl Piece {
    /// A piece that continues inside `fence`.
    fn inside(fence: Option<&Fence>) -> Self {
        Self {
            opening: fence.map(Fence::opening).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// How many characters of body may still be added, if the piece then ends inside `fence`. Room for the line feed
    /// before the closing marker is kept, needed or not.
    fn room(&self, limit: usize, fence: Option<&Fence>) -> usize {
        let used = length(&self.opening) + length(&self.body);
        let closing = fence.map_or(0, |fence| length(&fence.marker) + 1);
        limit.saturating_sub(used + closing)
    }

    fn close(mut self, fence: Option<&Fence>) -> Self {
        if let Some(fence) = fence {
            let feed = if self.body.is_empty() || self.body.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            self.closing = format!("{feed}{}", fence.marker);
        }
        self
    }
}

fn split_pieces(text: &str, limit: usize) -> Vec<Piece> {
    let limit = limit.max(1);
    let mut done = Vec::new();
    let mut piece = Piece::default();
    let mut fence: Option<Fence> = None;
    for line in text.split_inclusive('\n') {
        let after = fence_after(line, fence.as_ref(), limit);
        if length(line) > piece.room(limit, after.as_ref()) && !piece.body.is_empty() {
            done.push(piece.close(fence.as_ref()));
            piece = Piece::inside(fence.as_ref());
        }
        fence = after;
        let mut rest = line;
        while length(rest) > piece.room(limit, fence.as_ref()) {
            let (head, tail) = cut(rest, piece.room(limit, fence.as_ref()));
            piece.body.push_str(head);
            done.push(piece.close(fence.as_ref()));
            piece = Piece::inside(fence.as_ref());
            rest = tail;
        }
        piece.body.push_str(rest);
    }
    if !piece.body.is_empty() {
        done.push(piece.close(fence.as_ref()));
    }
    done
}

/// An open code fence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fence {
    /// Its run of backticks or tildes.
    marker: String,
    /// The language behind it, if short enough to be said again.
    language: String,
}

impl Fence {
    fn opening(&self) -> String {
        format!("{}{}\n", self.marker, self.language)
    }
}

/// The open fence behind `line`, given the one before it. A line is a fence if it starts with three or more backticks or
/// tildes after at most three spaces; it closes one if it is at least as long, of the same kind, and nothing follows.
fn fence_after(line: &str, open: Option<&Fence>, limit: usize) -> Option<Fence> {
    let Some((marker, rest)) = fence_line(line) else {
        return open.cloned();
    };
    match open {
        Some(fence) => {
            let closes = marker.starts_with(fence.marker.as_str()) && rest.is_empty();
            (!closes).then(|| fence.clone())
        }
        None => open_fence(marker, rest, limit),
    }
}

/// The marker and the trimmed rest of a fence line.
fn fence_line(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    let kind = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(kind);
    let marker = text.strip_suffix(rest)?;
    let indent = line.len() - text.len();
    (marker.len() >= 3 && indent <= 3).then(|| (marker, rest.trim()))
}

/// A fence that can be closed and opened again within `limit` and leave half of each piece to its content; others are
/// treated as text, because repeating them would cost more than it helps.
fn open_fence(marker: &str, info: &str, limit: usize) -> Option<Fence> {
    if marker.starts_with('`') && info.contains('`') {
        return None; // inline code, not a fence
    }
    let around = 2 * marker.len() + 2;
    if around > limit / 2 {
        return None;
    }
    let said_again = around + length(info) <= limit / 2;
    Some(Fence {
        marker: marker.to_owned(),
        language: if said_again { info } else { "" }.to_owned(),
    })
}

/// Cuts at most `room` characters off the front, at least one: behind the last space if one is there, else between
/// clusters, else inside the one cluster that is longer than the room.
fn cut(text: &str, room: usize) -> (&str, &str) {
    let room = room.max(1);
    let mut taken = 0;
    let mut at_cluster = 0;
    let mut at_space = 0;
    for (start, cluster) in text.grapheme_indices(true) {
        taken += length(cluster);
        if taken > room {
            break;
        }
        at_cluster = start + cluster.len();
        if cluster == " " {
            at_space = at_cluster;
        }
    }
    let inside = || {
        text.char_indices()
            .nth(room)
            .map_or(text.len(), |(at, _)| at)
    };
    let at = [at_space, at_cluster]
        .into_iter()
        .find(|at| *at > 0)
        .unwrap_or_else(inside);
    text.split_at(at)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_text_is_one_piece_and_no_text_none() {
        assert_eq!(split("hello", 5), ["hello"]);
        assert!(split("", 5).is_empty());
    }

    #[test]
    fn breaks_fall_between_lines_then_between_words() {
        assert_eq!(split("one\ntwo\nthree", 8), ["one\ntwo\n", "three"]);
        assert_eq!(split("alpha beta gamma", 11), ["alpha beta ", "gamma"]);
        assert_eq!(split("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    }

    #[test]
    fn a_fence_is_closed_and_opened_again_with_its_language() {
        let text = "see:\n```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\nend";
        assert_eq!(
            split(text, 32),
            [
                "see:\n```rust\nlet a = 1;\n```",
                "```rust\nlet b = 2;\n```",
                "```rust\nlet c = 3;\n```\nend"
            ]
        );
    }

    #[test]
    fn a_long_line_inside_a_fence_keeps_the_fence_too() {
        for piece in split(&format!("```\n{}\n```", "x".repeat(100)), 40) {
            assert!(
                piece.starts_with("```\n") && piece.ends_with("\n```"),
                "{piece:?}"
            );
        }
    }

    #[test]
    fn a_family_stays_together_and_an_endless_cluster_is_cut() {
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(split(&family.repeat(3), 10), [family; 3]);
        let endless = format!("e{}", "\u{301}".repeat(50));
        assert!(split(&endless, 10).iter().all(|piece| length(piece) <= 10));
    }

    #[test]
    fn inline_backticks_and_unequal_fences_close_nothing() {
        assert_eq!(fence_after("```a`b```\n", None, 200), None);
        let open = fence_after("````md\n", None, 200);
        for line in ["```\n", "~~~~\n", "````x\n", "     ````\n"] {
            assert_eq!(fence_after(line, open.as_ref(), 200), open, "{line:?}");
        }
        assert_eq!(fence_after("  `````  \n", open.as_ref(), 200), None);
    }

    /// Text as chat answers are: words, fences, long lines, clusters.
    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-z ]{0,30}",
            Just("\n".to_owned()),
            Just("\n```rust\n".to_owned()),
            Just("\n```\n".to_owned()),
            Just("\n~~~~\n".to_owned()),
            Just("👩‍👩‍👧‍👦 ".to_owned()),
            "[a-zé]{60,120}",
            any::<String>(),
        ];
        prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
    }

    /// Whether every fence a reader sees opened in the piece is closed in it.
    fn is_balanced(piece: &str, limit: usize) -> bool {
        piece
            .split_inclusive('\n')
            .fold(None, |open: Option<Fence>, line| {
                fence_after(line, open.as_ref(), limit)
            })
            .is_none()
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_added_but_fences(text in text(), limit in 1_usize..200) {
            let joined: String = split_pieces(&text, limit).into_iter().map(|piece| piece.body).collect();
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn no_piece_is_too_long_or_empty(text in text(), limit in 1_usize..200) {
            for piece in split(&text, limit) {
                prop_assert!((1..=limit).contains(&length(&piece)), "{} > {limit}: {piece:?}", length(&piece));
            }
        }

        #[test]
        fn every_piece_is_balanced(text in text(), limit in 40_usize..200) {
            for piece in split(&text, limit) {
                prop_assert!(is_balanced(&piece, limit), "{piece:?}");
            }
        }

        #[test]
        fn clusters_stay_whole(text in text(), limit in 100_usize..200) {
            let clusters = |text: &str| text.graphemes(true).count();
            let pieces = split_pieces(&text, limit);
            let whole: usize = pieces.iter().map(|piece| clusters(&piece.body)).sum();
            prop_assert_eq!(whole, clusters(&text));
        }
    }
}
