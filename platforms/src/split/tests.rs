use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::*;

fn chars(text: &str, limit: usize) -> Vec<String> {
    split(text, limit, Unit::Chars)
}

#[test]
fn short_text_is_one_piece_and_no_text_none() {
    assert_eq!(chars("hello", 5), ["hello"]);
    assert!(chars("", 5).is_empty());
}

#[test]
fn breaks_fall_between_paragraphs_then_lines_then_words() {
    assert_eq!(
        chars("one one\n\ntwo\nthree", 16),
        ["one one\n\n", "two\nthree"]
    );
    assert_eq!(
        chars("a\n\ntwo\nthree three", 16),
        ["a\n\ntwo\n", "three three"]
    );
    assert_eq!(chars("one\ntwo\nthree", 8), ["one\ntwo\n", "three"]);
    assert_eq!(chars("alpha beta gamma", 11), ["alpha beta ", "gamma"]);
    assert_eq!(chars("abcdefghij", 4), ["abcd", "efgh", "ij"]);
}

#[test]
fn a_fence_is_closed_and_opened_again_with_its_language() {
    let text = "see:\n```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\nend";
    assert_eq!(
        chars(text, 32),
        [
            "see:\n```rust\nlet a = 1;\n```",
            "```rust\nlet b = 2;\n```",
            "```rust\nlet c = 3;\n```\nend"
        ]
    );
}

#[test]
fn a_fence_that_only_begins_in_a_piece_moves_whole() {
    let text = "some words here\n```rust\nlet a = 1;\n```\n";
    assert_eq!(
        chars(text, 28),
        ["some words here\n", "```rust\nlet a = 1;\n```\n"]
    );
}

#[test]
fn a_long_info_string_is_not_said_again() {
    let text = format!("~~~ {}\n{}~~~\n", "i".repeat(25), "line\n".repeat(10));
    let pieces = chars(&text, 60);
    assert!(pieces[0].starts_with("~~~ iii"), "{pieces:?}");
    assert!(pieces[1].starts_with("~~~\nline\n"), "{pieces:?}");
}

#[test]
fn a_fence_in_a_list_is_closed_at_its_own_margin() {
    let text = format!("- ````sh\n{}  ````\nend", "  echo\n".repeat(8));
    let pieces = chars(&text, 48);
    assert!(pieces[0].ends_with("  echo\n  ````"), "{pieces:?}");
    assert!(pieces[1].starts_with("  ````sh\n  echo"), "{pieces:?}");
}

#[test]
fn a_long_line_inside_a_fence_keeps_the_fence_too() {
    for piece in chars(&format!("```\n{}\n```", "x".repeat(100)), 40) {
        assert!(
            piece.starts_with("```\n") && piece.ends_with("\n```"),
            "{piece:?}"
        );
    }
}

#[test]
fn a_cut_never_makes_a_fence_of_backticks_within_a_line() {
    for text in [
        "0123456789 ```x yz",
        "```a`b``` and so on",
        "```\n012345678901 ```x\n```",
    ] {
        for limit in 16..30 {
            for piece in chars(text, limit) {
                assert!(!leaves_code_open(&piece), "{limit}: {piece:?}");
            }
        }
    }
}

#[test]
fn limits_count_in_the_unit_of_the_platform() {
    let text = "👍".repeat(10);
    assert_eq!(split(&text, 10, Unit::Chars).len(), 1);
    assert_eq!(split(&text, 10, Unit::Utf16).len(), 2);
    assert_eq!(split("&&&&", 10, Unit::SlackEscaped), ["&&", "&&"]);
}

#[test]
fn a_family_stays_together_and_an_endless_cluster_is_cut() {
    let family = "👩‍👩‍👧‍👦";
    assert_eq!(chars(&family.repeat(3), 10), [family; 3]);
    let endless = format!("e{}", "\u{301}".repeat(50));
    assert!(
        chars(&endless, 10)
            .iter()
            .all(|piece| piece.chars().count() <= 10)
    );
}

/// One line of a quarter of a mebibyte, whatever it is made of, is cut in time that grows with its length alone.
#[test]
fn hostile_lines_are_cut_quickly() {
    for part in ["`", "~", " ", "a", "- ", "\u{301}", "```x "] {
        let text = part.repeat((1 << 18) / part.len());
        let pieces = split(&text, 1_900, Unit::Utf16);
        assert!(pieces.len() >= text.encode_utf16().count().div_ceil(1_900));
        assert!(
            pieces
                .iter()
                .all(|piece| Unit::Utf16.length(piece) <= 1_900),
            "{part:?}"
        );
    }
}

#[test]
fn code_within_a_line_is_not_torn_into_a_fence() {
    let text = " ```x```  ```x``` & A®𑠀A&A<é&aéaa&é&éé&a<aaéé&<&<aa&<é<<&éaéé<aé<aa<&ééa&ééaa<<éé<<&&a ```x``` ";
    let pieces = split(text, 190, Unit::SlackEscaped);
    assert_eq!(pieces.concat(), text);
    assert!(
        pieces.iter().all(|piece| !leaves_code_open(piece)),
        "{pieces:?}"
    );
}

#[test]
fn what_is_shortened_says_so() {
    assert_eq!(shorten("short", 5, Unit::Chars), "short");
    assert_eq!(shorten("alpha beta gamma", 12, Unit::Chars), "alpha beta…");
    assert!(Unit::Utf16.length(&shorten(&"👍".repeat(9), 7, Unit::Utf16)) <= 7);
}

/// A parser of others as the judge: would a paragraph behind the piece be swallowed by a code block? (Blocks of HTML may
/// take it, for example after `<?`; chat platforms know none.)
fn leaves_code_open(piece: &str) -> bool {
    let text = format!("{piece}\n\nSENTINEL");
    let mut inside = false;
    let mut swallowed = false;
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => inside = true,
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(words) if words.contains("SENTINEL") => swallowed = inside,
            _ => {}
        }
    }
    swallowed
}

/// Text as chat answers are: words, fences of every kind, lists, long lines, clusters.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z ]{0,30}",
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        "\n {0,3}(```|````|~~~|~~~~~)(rust|c\\+\\+ <&>|)\n",
        Just("\n```\n".to_owned()),
        Just("\n- a\n".to_owned()),
        Just("\n- ```sh\n".to_owned()),
        Just("\n  ```\n".to_owned()),
        Just(" ```x``` ".to_owned()),
        Just("👩‍👩‍👧‍👦 ".to_owned()),
        "[a-zé<&]{60,120}",
        "\\PC{0,20}",
    ];
    prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![
        Just(Unit::Chars),
        Just(Unit::Utf16),
        Just(Unit::SlackEscaped)
    ]
}

/// Whether every fence opened in the piece is closed in it, list items included.
fn is_balanced(piece: &str, limit: usize, unit: Unit) -> bool {
    let open = piece
        .split_inclusive('\n')
        .fold(Open::default(), |open, line| open.after(line, limit, unit));
    open.fence.is_none()
}

proptest! {
    #[test]
    fn nothing_is_lost_or_added_but_fences(text in text(), limit in 1_usize..200, unit in unit()) {
        let joined: String = split_pieces(&text, limit, unit).into_iter().map(|piece| piece.body).collect();
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn what_is_added_is_fence_lines_alone(text in text(), limit in 40_usize..200) {
        for piece in split_pieces(&text, limit, Unit::Utf16) {
            for added in [&piece.opening, &piece.closing] {
                prop_assert!(added.is_empty() || fence::looks_like_one(added.trim_start_matches('\n')), "{added:?}");
            }
        }
    }

    #[test]
    fn no_piece_is_too_long_or_empty(text in text(), limit in 5_usize..200, unit in unit()) {
        for piece in split(&text, limit, unit) {
            let length = unit.length(&piece);
            prop_assert!((1..=limit).contains(&length), "{length} > {limit}: {piece:?}");
        }
    }

    #[test]
    fn every_piece_is_balanced(text in text(), limit in 60_usize..200, unit in unit()) {
        for piece in split(&text, limit, unit) {
            prop_assert!(is_balanced(&piece, limit, unit), "{piece:?}");
        }
    }

    /// Without lists: there CommonMark ends a fence where its item ends, and this splitter does not.
    #[test]
    fn the_parser_of_others_agrees(text in text(), limit in 60_usize..200, unit in unit()) {
        for piece in split(&text.replace("- ", "x "), limit, unit) {
            prop_assert!(!leaves_code_open(&piece), "{piece:?}");
        }
    }

    #[test]
    fn clusters_stay_whole(text in text(), limit in 150_usize..250) {
        let clusters = |text: &str| text.graphemes(true).count();
        let pieces = split_pieces(&text, limit, Unit::Chars);
        let whole: usize = pieces.iter().map(|piece| clusters(&piece.body)).sum();
        prop_assert_eq!(whole, clusters(&text));
    }
}
