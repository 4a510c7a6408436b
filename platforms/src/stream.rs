//! An answer that grows, as few messages that are edited. Pure: text and `now` come in, [`Change`]s go out; the
//! [outbox](crate::outbox) sends them at the platform's pace.
//!
//! The first text is shown after about a second, so that a short answer is one message and no edit. Then it is edited
//! once per interval if it changed, continues in a new message at the limit, and its final text is given out exactly
//! once. What is longer than a few messages stops growing in the channel and ends with the whole as a file.

use std::time::Duration;

use tokio::time::Instant;

use crate::escape::Shape;
use crate::outbox::Stage;
use crate::split::shorten;

/// When and how much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// How long the first text gathers.
    pub first_after: Duration,
    /// The least time between two looks at a growing text.
    pub interval: Duration,
    /// The most messages of one answer, the file's not counted; at least 1.
    pub messages_max: usize,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            first_after: Duration::from_secs(1),
            interval: Duration::from_millis(1_300),
            messages_max: 5,
        }
    }
}

/// What to do with the answer's messages; `at` counts them from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Post message `at`, or edit it. New ones come in order. The text is ready to send.
    Show {
        at: usize,
        text: String,
        stage: Stage,
    },
    /// Take the last message, `at`, away again.
    Remove { at: usize },
    /// The whole answer as a file, behind the messages. Given out at most once, with the final texts.
    File { text: String },
}

/// One answer.
#[derive(Debug)]
pub struct Stream {
    shape: Shape,
    flow: Flow,
    text: String,
    /// What was given out per message.
    shown: Vec<String>,
    phase: Phase,
    /// Whether a message had to be shortened, so that the file must have the whole.
    needs_file: bool,
    gave_file: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No text has come.
    Silent,
    /// Changed since it was given out; due then.
    Due(Instant),
    /// Given out as it is, last at that instant.
    Rested(Instant),
    /// The final text has come.
    Ending,
    Ended,
}

impl Stream {
    /// An answer without text.
    pub fn new(shape: Shape, flow: Flow) -> Self {
        Self {
            shape,
            flow,
            text: String::new(),
            shown: Vec::new(),
            phase: Phase::Silent,
            needs_file: false,
            gave_file: false,
        }
    }

    /// Sets the text so far: longer than before, or another one where the provider took something back. Nothing is
    /// accepted behind the final text.
    pub fn set(&mut self, text: &str, now: Instant) {
        if matches!(self.phase, Phase::Ending | Phase::Ended) || text == self.text {
            return;
        }
        text.clone_into(&mut self.text);
        self.phase = match self.phase {
            Phase::Silent => Phase::Due(now + self.flow.first_after),
            Phase::Rested(last) => Phase::Due((last + self.flow.interval).max(now)),
            other => other,
        };
    }

    /// Sets the final text. Only the first one counts.
    pub fn finish(&mut self, text: &str) {
        if !matches!(self.phase, Phase::Ending | Phase::Ended) {
            text.clone_into(&mut self.text);
            self.phase = Phase::Ending;
        }
    }

    /// When [`Self::take`] has something to give; `None` = not before a new text.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Due(at) => Some(at),
            Phase::Ending => Some(now),
            Phase::Silent | Phase::Rested(_) | Phase::Ended => None,
        }
    }

    /// Whether the final text was given out.
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Gives out what is due.
    pub fn take(&mut self, now: Instant) -> Vec<Change> {
        let stage = match self.phase {
            Phase::Ending => Stage::Final,
            Phase::Due(at) if at <= now => Stage::Live,
            _ => return Vec::new(),
        };
        let mut messages = self.shape.messages(&self.text);
        let is_long = messages.len() > self.flow.messages_max.max(1);
        messages.truncate(self.flow.messages_max.max(1));
        let mut changes: Vec<Change> = (messages.len()..self.shown.len())
            .rev()
            .map(|at| Change::Remove { at })
            .collect();
        for (at, text) in messages.iter().enumerate() {
            if stage == Stage::Final || self.shown.get(at) != Some(text) {
                let text = text.clone();
                changes.push(Change::Show { at, text, stage });
            }
        }
        self.shown = messages;
        if stage == Stage::Final {
            self.phase = Phase::Ended;
            self.needs_file |= is_long;
            changes.extend(self.file());
        } else {
            self.phase = Phase::Rested(now);
        }
        changes
    }

    /// Answers a platform that called message `at` too long. While the answer grows, all of it is cut smaller from here
    /// on; at its end the one message is shortened and the whole follows as a file.
    pub fn too_long(&mut self, at: usize, now: Instant) -> Vec<Change> {
        let smaller = self.shape.halved();
        if let (Some(smaller), false) = (smaller, self.has_ended()) {
            self.shape = smaller;
            if let Some(shown) = self.shown.get_mut(at) {
                shown.clear();
            }
            if self.phase != Phase::Ending {
                self.phase = Phase::Due(now);
            }
            return Vec::new();
        }
        self.needs_file = true;
        let stage = match self.has_ended() {
            true => Stage::Final,
            false => Stage::Live,
        };
        let text = match (smaller, self.shown.get(at)) {
            (Some(smaller), Some(shown)) => {
                self.shape = smaller;
                shorten(shown, smaller.limit, smaller.dialect.unit())
            }
            _ => IN_FILE.to_owned(),
        };
        if let Some(shown) = self.shown.get_mut(at) {
            text.clone_into(shown);
        }
        let mut changes = vec![Change::Show { at, text, stage }];
        changes.extend(self.file());
        changes
    }

    /// The file, if it is needed, due and was not given out.
    fn file(&mut self) -> Option<Change> {
        let due = self.needs_file && self.has_ended() && !self.gave_file;
        self.gave_file |= due;
        due.then(|| Change::File {
            text: self.text.clone(),
        })
    }
}

/// Stands where a message's own text could not.
pub const IN_FILE: &str = "The whole answer is in the file.";

#[cfg(test)]
mod tests;
