//! The terminal: what is shown ([`Console`]) and what is typed ([`ConsoleInput`]).
//!
//! A console cannot edit what it has printed. So an answer grows by its deltas, a status or tool line that changes is
//! printed again, and a withdrawn answer is marked and printed anew. Model text never reaches the terminal with its
//! control characters: it cannot move the cursor, set the title or ring the bell.

mod input;
mod plain;
mod terminal;

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, ReplyOp, ReplyTarget};
use parking_lot::Mutex;

use crate::{DeliveryError, Limits, Platform, Receipt};

pub use input::{ConsoleInput, ConsoleLine, InputOptions, parse_line};
pub use plain::plain;
pub use terminal::{Terminal, WriterTerminal};

/// The platform's name in [`ReplyTarget::platform`].
pub const NAME: &str = "console";

/// A terminal that shows one conversation.
pub struct Console {
    screen: Mutex<Screen>,
}

impl Console {
    /// Shows on this terminal; see [`ConsoleInput::start`] for one that shares the screen with a prompt.
    pub fn new(terminal: Box<dyn Terminal>) -> Self {
        Self {
            screen: Mutex::new(Screen {
                terminal,
                at_line_start: true,
                shown: 0,
                current: None,
            }),
        }
    }

    /// Prints a line of the program's own (a greeting, a hint), outside any turn.
    pub fn say(&self, text: &str) -> io::Result<()> {
        let mut screen = self.screen.lock();
        screen.block(text)?;
        screen.terminal.flush()
    }
}

#[async_trait]
impl Platform for Console {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        Limits {
            message_chars: None,
            edits: false,
            edit_interval: Duration::ZERO,
            private_replies: true,
        }
    }

    /// A line that was printed cannot be pressed.
    fn has_buttons(&self) -> bool {
        false
    }

    async fn deliver(
        &self,
        _to: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        let mut screen = self.screen.lock();
        screen
            .show(turn, op)
            .map_err(|source| DeliveryError::Transient {
                platform: NAME,
                source,
            })
    }
}

/// The terminal and what stands on it.
struct Screen {
    terminal: Box<dyn Terminal>,
    at_line_start: bool,
    /// Ops shown so far: the receipts' number.
    shown: u64,
    /// What the newest turn has shown.
    current: Option<TurnScreen>,
}

/// What one turn has on the screen.
struct TurnScreen {
    turn: Option<TurnId>,
    status: String,
    /// The answer as the provider gave it, control characters included: what later deltas are measured against.
    answer: String,
    tools: Vec<String>,
}

impl Screen {
    fn show(&mut self, turn: Option<&TurnId>, op: &ReplyOp) -> io::Result<Receipt> {
        match op {
            ReplyOp::Status { text } => self.status(turn, text)?,
            ReplyOp::Answer {
                text,
                delta,
                replaced,
                done,
            } => self.answer(turn, text, delta, *replaced, *done)?,
            ReplyOp::Tools { text } => self.tools(turn, text)?,
            ReplyOp::Notice { text } => self.block(text)?,
            ReplyOp::Reply { text, audience, .. } => self.reply(text, *audience)?,
            ReplyOp::Settle { .. } => {}
        }
        self.terminal.flush()?;
        self.shown += 1;
        Ok(Receipt(format!("{NAME}-{}", self.shown)))
    }

    /// The status stands on a line of its own, once: of an edit that adds to it, only what it adds is printed.
    fn status(&mut self, turn: Option<&TurnId>, text: &str) -> io::Result<()> {
        let before = std::mem::replace(&mut self.of(turn).status, text.to_owned());
        match text
            .strip_prefix(before.as_str())
            .filter(|_| !before.is_empty())
        {
            Some("") => Ok(()),
            Some(added) => self.block(added.trim_start()),
            None => self.block(text),
        }
    }

    fn answer(
        &mut self,
        turn: Option<&TurnId>,
        text: &str,
        delta: &str,
        replaced: bool,
        done: bool,
    ) -> io::Result<()> {
        let before = std::mem::replace(&mut self.of(turn).answer, text.to_owned());
        match text.strip_prefix(before.as_str()) {
            Some(rest) => self.write(rest)?,
            None if replaced => self.again(text)?,
            None => self.write(delta)?,
        }
        match done {
            true => self.end_line(),
            false => Ok(()),
        }
    }

    /// What was printed cannot be taken back: it is marked, and the whole answer follows.
    fn again(&mut self, text: &str) -> io::Result<()> {
        self.block("[the part above was withdrawn; the answer again:]")?;
        self.write(text)
    }

    /// Tool activity is one text that grows; only its new and changed lines are printed.
    fn tools(&mut self, turn: Option<&TurnId>, text: &str) -> io::Result<()> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.of(turn).tools, lines.clone());
        for (position, line) in lines.iter().enumerate() {
            if before.get(position) != Some(line) {
                self.block(&format!("  · {line}"))?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, text: &str, audience: Audience) -> io::Result<()> {
        if audience == Audience::Asker {
            self.block("(only you see this)")?;
        }
        self.block(text)
    }

    /// What the turn has shown; another turn begins with nothing.
    fn of(&mut self, turn: Option<&TurnId>) -> &mut TurnScreen {
        let fresh = || TurnScreen {
            turn: turn.cloned(),
            status: String::new(),
            answer: String::new(),
            tools: Vec::new(),
        };
        let same = |screen: &TurnScreen| screen.turn.as_ref() == turn;
        if !self.current.as_ref().is_some_and(same) {
            self.current = None;
        }
        self.current.get_or_insert_with(fresh)
    }

    /// Text on lines of its own.
    fn block(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.write(text)?;
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        match self.at_line_start {
            true => Ok(()),
            false => self.write("\n"),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let text = plain(text);
        if let Some(last) = text.chars().last() {
            self.at_line_start = last == '\n';
            self.terminal.write(&text)?;
        }
        Ok(())
    }
}
