//! The visible text of one attempt, part by part, so that nothing is shown twice and what the program abandons goes.
//!
//! A text comes as deltas and once more whole when its part is finished. After a broken stream the program starts the
//! step again with new parts and leaves the old ones where they are (`serve-cut`).

use std::collections::HashSet;

use gateway_core::event::Event;

/// The blocks shown so far, in order; a block's number is its place.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    shown: Vec<Block>,
    /// Parts that were taken back; what still comes of them is nothing.
    abandoned: HashSet<String>,
}

#[derive(Debug)]
struct Block {
    part: String,
    /// The model request it belongs to.
    step: u32,
    text: String,
    /// Deltas may be missing: only the whole text counts now.
    torn: bool,
}

impl Blocks {
    /// Adds streamed text to a part that was opened.
    pub(super) fn delta(&mut self, part: &str, text: &str) -> Vec<Event> {
        let at = self.shown.iter().position(|block| block.part == part);
        match at.and_then(|at| Some((at, self.shown.get_mut(at)?))) {
            Some((at, block)) if !block.torn && !text.is_empty() => {
                block.text.push_str(text);
                vec![event(at, text)]
            }
            _ => Vec::new(),
        }
    }

    /// Takes a part's text as far as it is stored. `open` = it is still being written, and what is stored may lag behind.
    pub(super) fn whole(&mut self, part: &str, step: u32, text: &str, open: bool) -> Vec<Event> {
        if self.abandoned.contains(part) {
            return Vec::new();
        }
        let Some(at) = self.shown.iter().position(|block| block.part == part) else {
            self.shown.push(Block {
                part: part.to_owned(),
                step,
                text: text.to_owned(),
                torn: false,
            });
            let at = self.shown.len() - 1;
            return (!text.is_empty())
                .then(|| event(at, text))
                .into_iter()
                .collect();
        };
        let Some(block) = self.shown.get_mut(at) else {
            return Vec::new();
        };
        block.torn &= open;
        if let Some(missing) = text.strip_prefix(block.text.as_str()) {
            block.text.push_str(missing);
            let missing = (!missing.is_empty()).then(|| event(at, missing));
            return missing.into_iter().collect();
        }
        if open {
            return Vec::new(); // stored late: the stream is ahead
        }
        text.clone_into(&mut block.text);
        self.shown_again_from(at)
    }

    /// Takes back what a model request has shown so far: it is made again.
    pub(super) fn abandon(&mut self, step: u32) -> Option<Event> {
        let from = self.shown.iter().position(|block| block.step == step)?;
        let gone = self.shown.drain(from..);
        self.abandoned.extend(gone.map(|block| block.part));
        Some(Event::Retract {
            from_block: number(from),
        })
    }

    /// Takes back one part; what was shown below it is shown again in its place.
    pub(super) fn forget(&mut self, part: &str) -> Vec<Event> {
        self.abandoned.insert(part.to_owned());
        let at = self.shown.iter().position(|block| block.part == part);
        let Some(at) = at.filter(|at| {
            self.shown
                .get(*at)
                .is_some_and(|block| !block.text.is_empty())
        }) else {
            return Vec::new();
        };
        self.shown.remove(at);
        self.shown_again_from(at)
    }

    /// Deltas may have been missed.
    pub(super) fn tear(&mut self) {
        for block in &mut self.shown {
            block.torn = true;
        }
    }

    /// Whether any text stands.
    pub(super) fn is_empty(&self) -> bool {
        self.shown.iter().all(|block| block.text.is_empty())
    }

    /// The whole text; blocks are paragraphs.
    pub(super) fn text(&self) -> String {
        let texts = self.shown.iter().map(|block| block.text.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    fn shown_again_from(&self, from: usize) -> Vec<Event> {
        let retract = Event::Retract {
            from_block: number(from),
        };
        let texts = self.shown.iter().enumerate().skip(from);
        let texts = texts.filter(|(_, block)| !block.text.is_empty());
        std::iter::once(retract)
            .chain(texts.map(|(at, block)| event(at, &block.text)))
            .collect()
    }
}

fn event(at: usize, text: &str) -> Event {
    Event::Text {
        block: number(at),
        delta: text.to_owned(),
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(block: u32, delta: &str) -> Event {
        Event::Text {
            block,
            delta: delta.to_owned(),
        }
    }

    #[test]
    fn a_finished_part_repeats_nothing_and_completes_what_is_missing() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.delta("p", "early"), []);
        assert_eq!(blocks.whole("p", 1, "", true), []);
        assert_eq!(blocks.delta("p", "one "), [text(0, "one ")]);
        assert_eq!(blocks.whole("p", 1, "", true), [], "stored late");
        assert_eq!(blocks.whole("p", 1, "one two", false), [text(0, "two")]);
        assert_eq!(blocks.whole("p", 1, "one two", false), []);
        assert_eq!(blocks.whole("q", 1, "whole", false), [text(1, "whole")]);
        assert_eq!(blocks.text(), "one two\n\nwhole");
    }

    #[test]
    fn after_a_gap_only_the_whole_text_counts() {
        let mut blocks = Blocks::default();
        blocks.whole("p", 1, "", true);
        blocks.delta("p", "one ");
        blocks.tear();
        assert_eq!(blocks.delta("p", "three"), [], "\"two\" was missed");
        assert_eq!(
            blocks.whole("p", 1, "one two three", false),
            [text(0, "two three")]
        );
    }

    #[test]
    fn a_text_that_was_replaced_is_shown_again_with_what_follows() {
        let mut blocks = Blocks::default();
        blocks.whole("p", 1, "draft", true);
        blocks.whole("q", 1, "after", false);
        assert_eq!(
            blocks.whole("p", 1, "final", false),
            [
                Event::Retract { from_block: 0 },
                text(0, "final"),
                text(1, "after")
            ]
        );
    }

    #[test]
    fn a_step_made_again_takes_its_text_back_and_nothing_comes_of_it_later() {
        let mut blocks = Blocks::default();
        blocks.whole("a", 1, "kept", false);
        blocks.whole("b", 2, "", true);
        blocks.delta("b", "half");
        assert_eq!(blocks.abandon(2), Some(Event::Retract { from_block: 1 }));
        assert_eq!(blocks.abandon(2), None);
        assert_eq!(blocks.whole("b", 2, "half of it", false), []);
        assert_eq!(blocks.delta("b", "x"), []);
        assert_eq!(blocks.whole("c", 3, "again", false), [text(1, "again")]);
        assert_eq!(blocks.text(), "kept\n\nagain");
    }
}
