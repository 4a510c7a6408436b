//! Long text to platform-sized pieces. For messages a platform bounds; the console needs it not.
//!
//! Breaks fall between paragraphs where that leaves no piece less than half full, else between lines, else between words,
//! else between grapheme clusters; only a cluster longer than a whole piece is cut. A code fence that a break falls into
//! is closed at the end of the piece and opened again, with its language, at the start of the next; one that would only
//! just have begun moves whole. Apart from these added fence lines nothing is added and nothing is lost.
//!
//! A fence whose two extra lines would take more than half of a piece, and a run of thousands of backticks, are cut like
//! any other text.

mod fence;
mod unit;

#[cfg(test)]
mod tests;

use unicode_segmentation::UnicodeSegmentation;

use fence::{Fence, Open};
pub use unit::Unit;

/// Splits `text` into pieces of at most `limit` in `unit` (at least the width of the widest character). Empty text has no
/// pieces, and no piece is empty; one may be blank if the text is blank there.
pub fn split(text: &str, limit: usize, unit: Unit) -> Vec<String> {
    split_pieces(text, limit, unit)
        .into_iter()
        .map(|piece| piece.opening + &piece.body + &piece.closing)
        .collect()
}

/// Returns the longest beginning of `text` that fits, cut between words or clusters, marked with `…` if anything is cut.
pub fn shorten(text: &str, limit: usize, unit: Unit) -> String {
    if unit.length(text) <= limit {
        return text.to_owned();
    }
    let (head, _) = cut(text, limit.saturating_sub(1).max(unit.widest()), 0, unit);
    format!("{}…", head.trim_end())
}

fn split_pieces(text: &str, limit: usize, unit: Unit) -> Vec<Piece> {
    let mut splitter = Splitter {
        limit: limit.max(unit.widest()),
        unit,
        done: Vec::new(),
        piece: Piece::default(),
        open: Open::default(),
    };
    for line in text.split_inclusive('\n') {
        splitter.line(line);
    }
    splitter.finish()
}

/// A piece with what was added kept apart: the bodies joined are the text.
#[derive(Debug, Default)]
struct Piece {
    opening: String,
    body: String,
    closing: String,
    /// Length of opening and body.
    used: usize,
    /// Bytes of body up to the last blank line outside a fence; 0 = none.
    paragraph: usize,
    /// Where the line that opened the fence begins, in bytes, if nothing follows it.
    opener: Option<usize>,
    /// Whether the open fence is the one `opening` opened.
    again: bool,
}

impl Piece {
    /// A piece that continues inside `fence`.
    fn inside(fence: Option<&Fence>, unit: Unit) -> Self {
        let opening = fence.map(Fence::opening).unwrap_or_default();
        Self {
            used: unit.length(&opening),
            again: fence.is_some(),
            opening,
            ..Self::default()
        }
    }

    /// How much body may still be added, if the piece then ends inside `fence`. Room for the line feed before the closing
    /// marker is kept, needed or not.
    fn room(&self, limit: usize, fence: Option<&Fence>) -> usize {
        let closing = fence.map_or(0, |fence| fence.closing(self.again).len() + 1);
        limit.saturating_sub(self.used + closing)
    }

    fn add(&mut self, text: &str, unit: Unit) {
        self.body.push_str(text);
        self.used += unit.length(text);
    }

    fn close(mut self, fence: Option<&Fence>) -> Self {
        if let Some(fence) = fence {
            let feed = match self.body.is_empty() || self.body.ends_with('\n') {
                true => "",
                false => "\n",
            };
            self.closing = format!("{feed}{}", fence.closing(self.again));
        }
        self
    }

    /// Takes the body from byte `at` on off into a piece of its own.
    fn split_off(&mut self, at: usize, unit: Unit) -> Self {
        let body = self.body.split_off(at);
        let used = unit.length(&body);
        self.used -= used;
        Self {
            body,
            used,
            ..Self::default()
        }
    }
}

struct Splitter {
    limit: usize,
    unit: Unit,
    done: Vec<Piece>,
    piece: Piece,
    /// What is open at the end of `piece`.
    open: Open,
}

impl Splitter {
    fn line(&mut self, line: &str) {
        if self.open.fence.is_none() {
            self.piece.again = false;
        }
        let after = self.open.after(line, self.limit, self.unit);
        let size = self.unit.length(line);
        if size > self.piece.room(self.limit, after.fence.as_ref()) {
            self.break_before(size, &after);
        }
        let rest = self.cut_to_fit(line, &after);
        let was_inside = self.open.fence.is_some();
        let start = self.piece.body.len();
        self.piece.add(rest, self.unit);
        let opened = !was_inside && after.fence.is_some();
        self.piece.opener = (opened && rest.len() == line.len()).then_some(start);
        if after.fence.is_none() && line.trim().is_empty() {
            self.piece.paragraph = self.piece.body.len();
        }
        self.open = after;
    }

    /// Ends the piece where a reader minds least, so that a line of `size` has a chance to fit.
    fn break_before(&mut self, size: usize, after: &Open) {
        if self.piece.body.is_empty() {
            return;
        }
        let paragraph = self.piece.paragraph;
        match self.piece.opener {
            // The fence has only just begun: it moves to the next piece with its first line.
            Some(at) if at > 0 => return self.move_from(at, true),
            Some(_) => return,
            None if self.open.fence.is_none() && paragraph > 0 && self.is_half_full(paragraph) => {
                self.move_from(paragraph, false);
            }
            None => self.end_piece(),
        }
        let room = self.piece.room(self.limit, after.fence.as_ref());
        if size > room && !self.piece.body.is_empty() {
            self.end_piece();
        }
    }

    fn is_half_full(&self, at: usize) -> bool {
        let (head, _) = self.piece.body.split_at(at);
        self.unit.length(head) >= self.limit / 2
    }

    /// Ends the piece at byte `at` of its body, outside any fence; what follows begins the next one.
    fn move_from(&mut self, at: usize, opens: bool) {
        let mut next = self.piece.split_off(at, self.unit);
        next.opener = opens.then_some(0);
        let head = std::mem::replace(&mut self.piece, next);
        self.done.push(head.close(None));
    }

    fn end_piece(&mut self) {
        let fence = self.open.fence.as_ref();
        let next = Piece::inside(fence, self.unit);
        let piece = std::mem::replace(&mut self.piece, next);
        self.done.push(piece.close(fence));
    }

    /// Fills pieces from a line that fits into none, and returns what is left of it.
    fn cut_to_fit<'a>(&mut self, line: &'a str, after: &Open) -> &'a str {
        let mut rest = line;
        let mut keep = fence::marker_end(line, &self.open);
        if after.fence == self.open.fence {
            keep = 0; // not a fence line: nothing must stay together
        }
        loop {
            let room = self.piece.room(self.limit, after.fence.as_ref());
            if self.unit.fits(rest, room) {
                return rest;
            }
            if !self.piece.body.is_empty() && room < self.limit / 4 {
                self.end_piece();
                continue;
            }
            let (head, tail) = cut(rest, room.max(self.unit.widest()), keep, self.unit);
            self.piece.add(head, self.unit);
            self.open = after.clone();
            self.end_piece();
            (rest, keep) = (tail, 0);
        }
    }

    fn finish(mut self) -> Vec<Piece> {
        if !self.piece.body.is_empty() {
            self.done.push(self.piece.close(self.open.fence.as_ref()));
        }
        self.done
    }
}

/// Cuts at most `room` off the front, at least one character: behind the last space if one is there, else between
/// clusters, else inside the one cluster that is longer than the room. The first `keep` bytes stay together, and neither
/// half shall look like a fence to whoever meets it as a line of its own.
fn cut(text: &str, room: usize, keep: usize, unit: Unit) -> (&str, &str) {
    let mut taken = 0;
    let (mut spaces, mut clusters) = (Vec::new(), Vec::new());
    // One character beyond the room tells where the last cluster within it ends.
    for (start, cluster) in unit.head(text, room).grapheme_indices(true) {
        taken += unit.length(cluster);
        if taken > room {
            break;
        }
        let end = start + cluster.len();
        if end <= keep {
            continue;
        }
        clusters.push(end);
        if cluster == " " {
            spaces.push(end);
        }
    }
    let is_plain = |at: usize| {
        let (head, tail) = text.split_at(at);
        !fence::looks_like_one(tail) && (keep > 0 || !fence::looks_like_one(head))
    };
    let candidates = spaces.iter().rev().chain(clusters.iter().rev()).copied();
    let at = candidates
        .take(CANDIDATES)
        .find(|at| is_plain(*at))
        .or(clusters.last().copied())
        .unwrap_or_else(|| inside_cluster(text, room, unit));
    text.split_at(at)
}

/// How many places are tried before the best one is taken as it is; bounds the work on hostile text.
const CANDIDATES: usize = 64;

fn inside_cluster(text: &str, room: usize, unit: Unit) -> usize {
    let mut taken = 0;
    let mut at = 0;
    for (start, c) in text.char_indices() {
        taken += unit.width(c);
        if taken > room && at > 0 {
            break;
        }
        at = start + c.len_utf8();
    }
    at
}
