//! The visible text of one attempt, one block per message item, so that nothing is shown twice and what a broken stream
//! left half said goes.

use gateway_core::event::Event;

/// The blocks shown so far, in order; a block's number is its place.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<Block>);

#[derive(Debug)]
struct Block {
    item: String,
    text: String,
    finished: bool,
}

impl Text {
    /// Adds streamed text of an item.
    pub(super) fn delta(&mut self, item: &str, delta: &str) -> Option<Event> {
        if delta.is_empty() {
            return None;
        }
        let known = self
            .0
            .iter()
            .rposition(|block| block.item == item && !block.finished);
        let at = known.unwrap_or(self.0.len());
        match self.0.get_mut(at) {
            Some(block) => block.text.push_str(delta),
            None => self.0.push(Block {
                item: item.to_owned(),
                text: delta.to_owned(),
                finished: false,
            }),
        }
        Some(Event::Text {
            block: number(at),
            delta: delta.to_owned(),
        })
    }

    /// Takes a finished item: adds only what the deltas did not bring. What differs otherwise was streamed and seen; the
    /// stream is believed.
    pub(super) fn whole(&mut self, item: &str, text: &str) -> Option<Event> {
        let open = self
            .0
            .iter()
            .rposition(|block| block.item == item && !block.finished);
        let shown = open.and_then(|at| self.0.get(at));
        let missing = match shown {
            Some(block) => text.strip_prefix(block.text.as_str()).unwrap_or_default(),
            None => text,
        };
        let event = self.delta(item, missing);
        let last = self.0.iter_mut().rev().find(|block| block.item == item);
        if let Some(block) = last {
            block.finished = true;
        }
        event
    }

    /// Drops the items that were never finished: after a broken stream the program asks again and sends new ones.
    pub(super) fn abandon(&mut self) -> Option<Event> {
        let from = self.0.iter().position(|block| !block.finished)?;
        self.0.truncate(from);
        Some(Event::Retract {
            from_block: number(from),
        })
    }

    /// The whole text; blocks are paragraphs.
    pub(super) fn all(&self) -> String {
        let texts: Vec<&str> = self.0.iter().map(|block| block.text.as_str()).collect();
        texts.join("\n\n")
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
    fn a_finished_item_adds_only_what_is_missing() {
        let mut shown = Text::default();
        assert_eq!(shown.delta("a", "Hel"), text(0, "Hel"));
        assert_eq!(shown.whole("a", "Hello"), text(0, "lo"));
        assert_eq!(shown.whole("b", "whole"), text(1, "whole"));
        assert_eq!(shown.whole("c", ""), None);
        assert_eq!(shown.all(), "Hello\n\nwhole");
        assert_eq!(shown.abandon(), None);
    }

    #[test]
    fn what_was_never_finished_goes_and_the_second_try_may_reuse_the_id() {
        let mut shown = Text::default();
        shown.whole("a", "kept");
        shown.delta("b", "half");
        assert_eq!(shown.abandon(), Some(Event::Retract { from_block: 1 }));
        assert_eq!(shown.delta("b", "whole"), text(1, "whole"));
        assert_eq!(shown.whole("b", "whole"), None);
        assert_eq!(shown.all(), "kept\n\nwhole");
    }
}
