//! The messages of one turn, from its [`ReplyOp`]s: one status line that is edited, one message of tool activity, the
//! growing answer, and what the gateway says in its own voice. Pure; the slots of the [outbox](crate::outbox) carry them,
//! which also posts a status line anew that has grown too old to be edited.

use gateway_core::message::ReplyOp;
use tokio::time::Instant;

use crate::escape::Shape;
use crate::outbox::{Stage, Worth};
use crate::split::shorten;
use crate::stream::{Change, Flow, Stream};

/// One message of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Status,
    Tools,
    /// The n-th message of the answer.
    Answer(usize),
    /// The whole answer as a file.
    File,
    /// The n-th message in the gateway's voice.
    Notice(usize),
}

impl Part {
    /// What becomes of it if somebody deletes it.
    pub fn worth(self) -> Worth {
        match self {
            Self::Status | Self::Tools => Worth::May,
            Self::Answer(_) | Self::File | Self::Notice(_) => Worth::Must,
        }
    }
}

/// What is to be done for one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Show {
        part: Part,
        text: String,
        stage: Stage,
    },
    Remove {
        part: Part,
    },
    /// Post [`Part::File`]: `text` as a file named [`FILE_NAME`].
    File {
        text: String,
    },
}

/// The name of the file a long answer ends in.
pub const FILE_NAME: &str = "answer.md";

/// Whether tool activity is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsShown {
    Yes,
    /// The default in channels that many people share.
    No,
}

/// The most messages of a turn in the gateway's own voice; what comes beyond joins none. A turn has one outcome, so this
/// is only reached if something is wrong.
const NOTICES_MAX: usize = 8;

/// The messages of one turn.
#[derive(Debug)]
pub struct Board {
    shape: Shape,
    tools: ToolsShown,
    answer: Stream,
    status: Option<String>,
    tool_text: Option<String>,
    notices: Vec<String>,
    ready: Vec<Move>,
}

impl Board {
    /// A turn that has said nothing.
    pub fn new(shape: Shape, flow: Flow, tools: ToolsShown) -> Self {
        Self {
            shape,
            tools,
            answer: Stream::new(shape, flow),
            status: None,
            tool_text: None,
            notices: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Takes one op of the turn. Command replies do not belong to a turn and are ignored.
    pub fn apply(&mut self, op: &ReplyOp, now: Instant) {
        match op {
            ReplyOp::Status { text } => {
                let text = self.one_message(text);
                show_changed(&mut self.status, Part::Status, text, &mut self.ready);
            }
            ReplyOp::Tools { text } if self.tools == ToolsShown::Yes => {
                let text = self.last_lines(text);
                show_changed(&mut self.tool_text, Part::Tools, text, &mut self.ready);
            }
            ReplyOp::Answer {
                text, done: true, ..
            } => self.answer.finish(text),
            ReplyOp::Answer { text, .. } => self.answer.set(text, now),
            ReplyOp::Notice { text } => self.notice(text),
            ReplyOp::Tools { .. } | ReplyOp::Reply { .. } | ReplyOp::Settle { .. } => {}
        }
    }

    /// When [`Self::take`] has something to give; `None` = not before the next op.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match self.ready.is_empty() {
            true => self.answer.due(now),
            false => Some(now),
        }
    }

    /// Gives out what is due, in the order it shall appear.
    pub fn take(&mut self, now: Instant) -> Vec<Move> {
        // What was said before a notice stands above it, so the answer so far goes first.
        let mut moves = std::mem::take(&mut self.ready);
        let speaks = moves.iter().position(|one| {
            matches!(
                one,
                Move::Show {
                    part: Part::Notice(_),
                    ..
                }
            )
        });
        let notices = moves.split_off(speaks.unwrap_or(moves.len()));
        moves.extend(self.answer.take(now).into_iter().map(into_move));
        moves.extend(notices);
        moves
    }

    /// Answers a platform that called a part's text too long.
    pub fn too_long(&mut self, part: Part, now: Instant) -> Vec<Move> {
        if let Part::Answer(at) = part {
            return self
                .answer
                .too_long(at, now)
                .into_iter()
                .map(into_move)
                .collect();
        }
        let Some(smaller) = self.shape.halved() else {
            return vec![Move::Remove { part }];
        };
        self.shape = smaller;
        let (text, stage) = match part {
            Part::Status => (self.status.as_ref(), Stage::Live),
            Part::Tools => (self.tool_text.as_ref(), Stage::Live),
            Part::Notice(at) => (self.notices.get(at), Stage::Final),
            Part::Answer(_) | Part::File => (None, Stage::Final),
        };
        let Some(text) = text else {
            return vec![Move::Remove { part }];
        };
        let text = shorten(text, smaller.limit, smaller.dialect.unit());
        vec![Move::Show { part, text, stage }]
    }

    /// Whether the turn has said how it ended.
    pub fn has_outcome(&self) -> bool {
        self.answer.has_ended() || !self.notices.is_empty()
    }

    fn notice(&mut self, text: &str) {
        for text in self.shape.messages(text) {
            if self.notices.len() < NOTICES_MAX {
                self.ready.push(Move::Show {
                    part: Part::Notice(self.notices.len()),
                    text: text.clone(),
                    stage: Stage::Final,
                });
                self.notices.push(text);
            }
        }
    }

    fn one_message(&self, text: &str) -> String {
        let dialect = self.shape.dialect;
        let short = shorten(text, self.shape.limit - ROOM, dialect.unit());
        dialect.disarm(&short).into_owned()
    }

    /// The newest lines that fit into one message.
    fn last_lines(&self, text: &str) -> String {
        let unit = self.shape.dialect.unit();
        let mut left = self.shape.limit - ROOM;
        let mut kept: Vec<&str> = Vec::new();
        for line in text.lines().rev() {
            let length = unit.length(line) + 1;
            if length > left {
                break;
            }
            left -= length;
            kept.push(line);
        }
        if kept.is_empty() {
            return self.one_message(text);
        }
        let cut = kept.len() < text.lines().count();
        kept.reverse();
        let lines = kept.join("\n");
        let text = if cut { format!("…\n{lines}") } else { lines };
        self.shape.dialect.disarm(&text).into_owned()
    }
}

/// Kept free for the marks of cutting and disarming.
const ROOM: usize = 40;

fn show_changed(stands: &mut Option<String>, part: Part, text: String, ready: &mut Vec<Move>) {
    if stands.as_deref() == Some(text.as_str()) || crate::escape::is_blank(&text) {
        return;
    }
    *stands = Some(text.clone());
    ready.retain(|one| !matches!(one, Move::Show { part: other, .. } if *other == part));
    ready.push(Move::Show {
        part,
        text,
        stage: Stage::Live,
    });
}

fn into_move(change: Change) -> Move {
    match change {
        Change::Show { at, text, stage } => Move::Show {
            part: Part::Answer(at),
            text,
            stage,
        },
        Change::Remove { at } => Move::Remove {
            part: Part::Answer(at),
        },
        Change::File { text } => Move::File { text },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn board(tools: ToolsShown) -> Board {
        Board::new(Shape::DISCORD, Flow::default(), tools)
    }

    fn said(moves: Vec<Move>) -> Vec<String> {
        let line = |one| match one {
            Move::Show { part, text, stage } => format!("{part:?} {text} {stage:?}"),
            Move::Remove { part } => format!("{part:?} away"),
            Move::File { text } => format!("file of {}", text.len()),
        };
        moves.into_iter().map(line).collect()
    }

    fn status(text: &str) -> ReplyOp {
        ReplyOp::Status {
            text: text.to_owned(),
        }
    }

    fn answer(text: &str, done: bool) -> ReplyOp {
        ReplyOp::Answer {
            text: text.to_owned(),
            delta: String::new(),
            replaced: false,
            done,
        }
    }

    fn notice(text: &str) -> ReplyOp {
        ReplyOp::Notice {
            text: text.to_owned(),
        }
    }

    #[test]
    fn one_status_line_is_edited_through_the_turn() {
        let (mut board, now) = (board(ToolsShown::No), Instant::now());
        board.apply(&status("one"), now);
        assert_eq!(said(board.take(now)), ["Status one Live"]);
        board.apply(&status("one"), now);
        board.apply(&answer("text", true), now);
        board.apply(&status("one two"), now);
        assert_eq!(
            said(board.take(now)),
            ["Status one two Live", "Answer(0) text Final"]
        );
        assert!(board.take(now).is_empty() && board.has_outcome());
    }

    #[test]
    fn a_cut_answer_stays_above_the_notice() {
        let (mut board, now) = (board(ToolsShown::No), Instant::now());
        board.apply(&answer("so far", false), now);
        board.apply(&answer("so far", true), now);
        board.apply(&notice("❌ spent"), now);
        board.apply(&notice("⏸️ saved"), now);
        assert_eq!(
            said(board.take(now)),
            [
                "Answer(0) so far Final",
                "Notice(0) ❌ spent Final",
                "Notice(1) ⏸️ saved Final"
            ]
        );
    }

    #[test]
    fn tools_are_one_message_of_the_newest_lines_and_off_in_shared_places() {
        let lines: Vec<String> = (0..500).map(|n| format!("tool {n} <@1>")).collect();
        let op = ReplyOp::Tools {
            text: lines.join("\n"),
        };
        let (mut shown, mut shared, now) = (
            board(ToolsShown::Yes),
            board(ToolsShown::No),
            Instant::now(),
        );
        shared.apply(&op, now);
        assert!(shared.take(now).is_empty());
        shown.apply(&op, now);
        let said = said(shown.take(now)).concat();
        assert!(
            said.starts_with("Tools …\ntool ") && said.contains("tool 499") && !said.contains("<@")
        );
        assert!(said.len() < 2_400);
    }

    #[test]
    fn a_turn_cannot_flood_a_channel() {
        let (mut board, now) = (board(ToolsShown::Yes), Instant::now());
        let mut parts = std::collections::BTreeSet::new();
        for n in 0..100_u64 {
            let now = now + Duration::from_secs(2 * n);
            board.apply(&status(&format!("s{n}")), now);
            board.apply(
                &ReplyOp::Tools {
                    text: format!("t{n}"),
                },
                now,
            );
            board.apply(
                &answer(
                    &"long text ".repeat(200 * usize::try_from(n).unwrap()),
                    n == 99,
                ),
                now,
            );
            board.apply(&notice(&format!("n{n}")), now);
            for one in board.take(now) {
                match one {
                    Move::Show { part, .. } | Move::Remove { part } => parts.insert(part),
                    Move::File { .. } => parts.insert(Part::File),
                };
            }
        }
        assert_eq!(parts.len(), 1 + 1 + 5 + 1 + NOTICES_MAX);
    }
}
