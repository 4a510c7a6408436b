//! Takes reasoning that leaked into visible text out again. Works on whole text: a tag split over chunks is whole by then.
//!
//! Closed pairs go, wherever they stand. An open tag that is never closed hides the rest only at the beginning of a line
//! (in the middle of one it is somebody talking about the tag). A close tag without its open tag goes alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let names = "think|thinking|reasoning|thought|reasoning_scratchpad|思考|反思|推理|推敲";
    Regex::new(&format!(r"(?i)<(/?)({names})(?:\s[^<>]*)?>"))
        .expect("a fixed pattern that tests compile")
});

struct Tag {
    range: Range<usize>,
    name: String,
    closes: bool,
}

/// Returns the text without reasoning, trimmed.
pub fn strip(text: &str) -> String {
    let tags = tags(text);
    if tags.is_empty() {
        return text.trim().to_owned();
    }
    let ends = ends(&tags);
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for (tag, end) in tags.iter().zip(ends) {
        if tag.range.start < at {
            at = at.max(end.unwrap_or(at)); // inside what is gone already; crossing pairs reach further
            continue;
        }
        let hidden_to = match end {
            Some(end) => end,
            None if tag.closes => tag.range.end,
            None if at_line_start(text, tag.range.start) => text.len(),
            None => continue,
        };
        kept.push_str(text.get(at..tag.range.start).unwrap_or(""));
        at = hidden_to;
    }
    kept.push_str(text.get(at..).unwrap_or(""));
    kept.trim().to_owned()
}

fn tags(text: &str) -> Vec<Tag> {
    TAG.captures_iter(text)
        .filter_map(|found| {
            Some(Tag {
                range: found.get(0)?.range(),
                closes: !found.get(1)?.is_empty(),
                name: found.get(2)?.as_str().to_lowercase(),
            })
        })
        .collect()
}

/// Where what each open tag hides ends: at its own close tag, pairs nested; else at the next close tag of its name, for
/// hiding too much is the smaller harm. `None` for close tags and for open tags with no close tag after them.
fn ends(tags: &[Tag]) -> Vec<Option<usize>> {
    let mut ends = vec![None; tags.len()];
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, tag) in tags.iter().enumerate() {
        let waiting = open.entry(&tag.name).or_default();
        if !tag.closes {
            waiting.push(index);
        } else if let Some(end) = waiting.pop().and_then(|opener| ends.get_mut(opener)) {
            *end = Some(tag.range.end);
        }
    }
    let mut next_close: HashMap<&str, usize> = HashMap::new();
    for (tag, end) in tags.iter().zip(ends.iter_mut()).rev() {
        if tag.closes {
            next_close.insert(&tag.name, tag.range.end);
        } else if end.is_none() {
            *end = next_close.get(tag.name.as_str()).copied();
        }
    }
    ends
}

fn at_line_start(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let line = before.rsplit('\n').next().unwrap_or("");
    line.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasoning_tags_table() {
        let rows = [
            (
                "pair_at_start",
                "<think>secret</think>Half-written answer",
                "Half-written answer",
            ),
            ("pair_in_the_middle", "a <thinking>s</thinking>b", "a b"),
            (
                "any_case_and_attributes",
                "<REASONING_scratchpad x=\"1\">s</Reasoning_Scratchpad>b",
                "b",
            ),
            (
                "chinese_names",
                "<思考>s</思考>甲<反思>s</反思>乙<推理>s</推理>丙<推敲>s</推敲>丁",
                "甲乙丙丁",
            ),
            (
                "pair_over_lines",
                "a\n<thought>s\n\ns</thought>\nb",
                "a\n\nb",
            ),
            (
                "unterminated_at_line_start_hides_the_rest",
                "a\n  <think>s\nmore",
                "a",
            ),
            (
                "unterminated_in_a_line_is_text",
                "the <think> tag",
                "the <think> tag",
            ),
            ("orphan_close_goes_alone", "a</think> b", "a b"),
            (
                "nested_pairs_go_whole",
                "<think>a<think>b</think>c</think>d",
                "d",
            ),
            (
                "open_twice_closed_once_goes",
                "x <think>a<think>b</think> y",
                "x  y",
            ),
            (
                "another_tag_inside_a_pair",
                "<reasoning>\n<think>s</reasoning>b",
                "b",
            ),
            (
                "crossing_pairs_go_whole",
                "<think>a<reasoning>b</think>c</reasoning>d",
                "d",
            ),
            (
                "other_tags_stay",
                "<b>x</b> <thinker>y</thinker>",
                "<b>x</b> <thinker>y</thinker>",
            ),
            ("only_reasoning_is_empty", "<think>s</think>", ""),
        ];
        for (name, text, expected) in rows {
            assert_eq!(strip(text), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_stands_in_a_pair_never_survives(before in "[a-z\n ]{0,20}", hidden in "[A-Z\n ]{1,20}X", after in "[a-z\n ]{0,20}") {
            let stripped = strip(&format!("{before}<think>{hidden}</think>{after}"));
            let expected = format!("{before}{after}");
            prop_assert_eq!(stripped, expected.trim());
        }

        #[test]
        fn text_without_tags_is_only_trimmed(text in "[a-z<>/\n ]{0,40}") {
            prop_assume!(!TAG.is_match(&text));
            prop_assert_eq!(strip(&text), text.trim());
        }
    }
}
