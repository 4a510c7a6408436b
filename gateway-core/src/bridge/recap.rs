//! What a successor is told of the sessions before it: a bounded text made of the record alone, so that the same record
//! gives the same text and a model is never asked to make it (at the wall it could not).
//!
//! The last exchanges are told whole, as far as they fit; of the earlier ones the beginning of each question and answer,
//! the first exchange (what it was all about) before the newest others; what is left out is counted.

/// Bounds of a recap, in bytes of UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The whole text.
    pub total: usize,
    /// How much of it the exchanges told whole may take.
    pub whole: usize,
    /// How many exchanges are told whole at most.
    pub last: usize,
    /// One question or answer of an earlier exchange.
    pub excerpt: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            total: 24 * 1024,
            whole: 16 * 1024,
            last: 6,
            excerpt: 240,
        }
    }
}

/// A recap and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recap {
    pub text: String,
    /// Exchanges told whole.
    pub whole: usize,
    /// Exchanges told by their beginnings.
    pub excerpts: usize,
    /// Exchanges not told at all.
    pub dropped: usize,
}

const HEAD: &str = "What was said earlier in this conversation, in a session that is full now:";
const TAIL: &str = "The conversation goes on from here.";

/// Tells a successor of these exchanges (question, answer), oldest first; `None` = there are none.
pub fn recap(exchanges: &[(&str, &str)], bounds: Bounds) -> Option<Recap> {
    if exchanges.is_empty() {
        return None;
    }
    let frame = HEAD.len() + TAIL.len() + 2 * GAP.len() + LEFT_OUT_BYTES;
    let mut room = bounds.total.saturating_sub(frame);
    let (whole, used) = told_whole(exchanges, bounds, room.min(bounds.whole));
    room -= used.min(room);
    let earlier = exchanges
        .get(..exchanges.len() - whole.len())
        .unwrap_or_default();
    let excerpts = excerpts(earlier, bounds.excerpt, room);
    let told = excerpts.iter().flatten().count();
    let dropped = earlier.len() - told;
    let mut parts = vec![HEAD.to_owned()];
    let mut said = false;
    for excerpt in &excerpts {
        match excerpt {
            Some(text) => parts.push(text.clone()),
            None if !said => {
                said = true;
                parts.push(left_out(dropped));
            }
            None => {}
        }
    }
    parts.extend(whole.iter().cloned());
    parts.push(TAIL.to_owned());
    Some(Recap {
        text: parts.join(GAP),
        whole: whole.len(),
        excerpts: told,
        dropped,
    })
}

const GAP: &str = "\n\n";
/// More than [`left_out`] ever takes.
const LEFT_OUT_BYTES: usize = 64;

fn left_out(count: usize) -> String {
    format!("({count} exchanges are left out here.)")
}

/// The newest exchanges that fit, oldest first, and their bytes.
fn told_whole(exchanges: &[(&str, &str)], bounds: Bounds, room: usize) -> (Vec<String>, usize) {
    let mut told = Vec::new();
    let mut used = 0;
    for (question, answer) in exchanges.iter().rev().take(bounds.last) {
        let text = exchange(question, answer);
        if used + text.len() + GAP.len() > room {
            break;
        }
        used += text.len() + GAP.len();
        told.push(text);
    }
    told.reverse();
    (told, used)
}

/// The beginnings of the first exchange and of the newest others, as many as fit; `None` where one is left out.
fn excerpts(earlier: &[(&str, &str)], bytes: usize, room: usize) -> Vec<Option<String>> {
    let mut told: Vec<Option<String>> = vec![None; earlier.len()];
    let mut left = room;
    let order = (0..earlier.len().min(1)).chain((1..earlier.len()).rev());
    for at in order {
        let Some((question, answer)) = earlier.get(at) else {
            break;
        };
        let text = exchange(&excerpt(question, bytes), &excerpt(answer, bytes));
        let Some(rest) = left.checked_sub(text.len() + GAP.len()) else {
            break;
        };
        left = rest;
        if let Some(slot) = told.get_mut(at) {
            *slot = Some(text);
        }
    }
    told
}

fn exchange(question: &str, answer: &str) -> String {
    format!("[user]\n{question}\n\n[assistant]\n{answer}")
}

/// The beginning of a text on one line, at most this many bytes, cut at a character.
fn excerpt(text: &str, bytes: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= bytes {
        return line;
    }
    let mut cut = bytes.saturating_sub('…'.len_utf8());
    while !line.is_char_boundary(cut) {
        cut -= 1;
    }
    let (beginning, _) = line.split_at(cut);
    format!("{beginning}…")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Bounds = Bounds {
        total: 600,
        whole: 200,
        last: 2,
        excerpt: 20,
    };

    fn numbered(count: usize) -> Vec<(String, String)> {
        (0..count)
            .map(|n| {
                (
                    format!("question {n}"),
                    format!("answer {n} and the rest of it"),
                )
            })
            .collect()
    }

    fn recapped(said: &[(String, String)], bounds: Bounds) -> Option<Recap> {
        let said: Vec<(&str, &str)> = said.iter().map(|(q, a)| (q.as_str(), a.as_str())).collect();
        recap(&said, bounds)
    }

    #[test]
    fn nothing_was_said() {
        assert_eq!(recap(&[], Bounds::default()), None);
    }

    #[test]
    fn the_last_are_whole_the_first_is_kept_and_the_rest_is_counted() {
        let told = recapped(&numbered(30), SMALL).unwrap();
        assert_eq!((told.whole, told.excerpts + told.dropped), (2, 28));
        insta::assert_snapshot!(told.text, @r"
        What was said earlier in this conversation, in a session that is full now:

        [user]
        question 0

        [assistant]
        answer 0 and the …

        (23 exchanges are left out here.)

        [user]
        question 24

        [assistant]
        answer 24 and the…

        [user]
        question 25

        [assistant]
        answer 25 and the…

        [user]
        question 26

        [assistant]
        answer 26 and the…

        [user]
        question 27

        [assistant]
        answer 27 and the…

        [user]
        question 28

        [assistant]
        answer 28 and the rest of it

        [user]
        question 29

        [assistant]
        answer 29 and the rest of it

        The conversation goes on from here.
        ");
    }

    #[test]
    fn what_fits_is_told_without_a_gap() {
        let told = recapped(&numbered(3), Bounds::default()).unwrap();
        assert_eq!((told.whole, told.excerpts, told.dropped), (3, 0, 0));
        assert!(!told.text.contains("left out"), "{}", told.text);
    }

    #[test]
    fn one_exchange_that_is_too_long_is_told_by_its_beginning() {
        let told = recap(&[("q", &"x".repeat(100_000))], Bounds::default()).unwrap();
        assert_eq!((told.whole, told.excerpts, told.dropped), (0, 1, 0));
    }

    proptest! {
        #[test]
        fn a_recap_keeps_its_bounds_and_counts_everything(
            said in prop::collection::vec(("[a-zä ]{0,300}", "[a-zä\n]{0,300}"), 0..40),
            total in 300usize..4000,
        ) {
            let bounds = Bounds { total, whole: total / 2, last: 4, excerpt: 60 };
            match recapped(&said, bounds) {
                None => prop_assert!(said.is_empty()),
                Some(told) => {
                    prop_assert!(told.text.len() <= total, "{} > {total}", told.text.len());
                    prop_assert_eq!(told.whole + told.excerpts + told.dropped, said.len());
                    prop_assert_eq!(Some(told), recapped(&said, bounds));
                }
            }
        }
    }
}
