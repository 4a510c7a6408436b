//! The visible text of one attempt, block by block, so that nothing is shown twice and what the program abandons goes.
//!
//! The same text comes twice: as deltas (keyed by message id and content index) and once more in the `assistant` record
//! of the finished block. After a broken stream only the second form may come (the program's non-streaming fallback).

use gateway_core::event::Event;

/// The blocks shown so far, in order; a block's number is its place.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

#[derive(Debug)]
struct Block {
    message: String,
    /// `None` = it came whole, without deltas.
    index: Option<u64>,
    text: String,
    /// Its `assistant` record has come.
    finished: bool,
}

impl Blocks {
    /// Adds streamed text.
    pub(super) fn delta(&mut self, message: &str, index: u64, text: &str) -> Option<Event> {
        let known = self.0.iter().rposition(|block| {
            block.message == message && block.index == Some(index) && !block.finished
        });
        self.append(known, message, Some(index), text)
    }

    /// Takes the record of a finished block: adds only what the deltas did not bring.
    pub(super) fn whole(&mut self, message: &str, text: &str) -> Option<Event> {
        let streamed = self
            .0
            .iter()
            .position(|block| block.message == message && !block.finished);
        let missing = match streamed.and_then(|at| self.0.get_mut(at)) {
            // What differs otherwise was streamed and seen; the stream is believed.
            Some(block) => {
                block.finished = true;
                text.strip_prefix(block.text.as_str()).unwrap_or_default()
            }
            None => text,
        };
        let event = self.append(streamed, message, None, missing);
        if let (None, Some(_), Some(block)) = (streamed, &event, self.0.last_mut()) {
            block.finished = true;
        }
        event
    }

    /// Drops what the program abandoned, from this content index of this message on.
    pub(super) fn abandon(&mut self, message: &str, from_index: u64) -> Option<Event> {
        let from = self.0.iter().position(|block| {
            block.message == message && block.index.is_some_and(|index| index >= from_index)
        })?;
        self.0.truncate(from);
        Some(Event::Retract {
            from_block: number(from),
        })
    }

    /// Whether any text stands.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole text; blocks are paragraphs.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self.0.iter().map(|block| block.text.as_str()).collect();
        texts.join("\n\n")
    }

    fn append(
        &mut self,
        at: Option<usize>,
        message: &str,
        index: Option<u64>,
        text: &str,
    ) -> Option<Event> {
        if text.is_empty() {
            return None;
        }
        let at = at.unwrap_or(self.0.len());
        match self.0.get_mut(at) {
            Some(block) => block.text.push_str(text),
            None => self.0.push(Block {
                message: message.to_owned(),
                index,
                text: text.to_owned(),
                finished: false,
            }),
        }
        Some(Event::Text {
            block: number(at),
            delta: text.to_owned(),
        })
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(block: u32, delta: &str) -> Option<Event> {
        Some(Event::Text {
            block,
            delta: delta.to_owned(),
        })
    }

    #[test]
    fn a_finished_block_repeats_nothing_and_completes_what_is_missing() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.delta("m", 0, "one "), text(0, "one "));
        assert_eq!(blocks.whole("m", "one two"), text(0, "two"));
        assert_eq!(blocks.delta("m", 2, "x"), text(1, "x"));
        assert_eq!(blocks.whole("m", "x"), None);
        assert_eq!(blocks.whole("m", "unstreamed"), text(2, "unstreamed"));
        assert_eq!(blocks.text(), "one two\n\nx\n\nunstreamed");
    }

    #[test]
    fn an_abandoned_attempt_takes_its_open_blocks_along() {
        let mut blocks = Blocks::default();
        blocks.delta("a", 0, "kept");
        blocks.delta("b", 0, "half");
        assert_eq!(blocks.abandon("b", 1), None);
        assert_eq!(
            blocks.abandon("b", 0),
            Some(Event::Retract { from_block: 1 })
        );
        assert_eq!(blocks.whole("c", "again"), text(1, "again"));
        assert_eq!(blocks.text(), "kept\n\nagain");
    }
}
