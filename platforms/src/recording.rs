//! A platform that remembers: for tests and for the demo's counters. It shows nothing itself; what it counts is what a
//! chat surface would have shown.

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, ReplyOp, ReplyTarget};
use tokio::sync::watch;

use crate::{DeliveryError, Limits, Platform, Receipt};

/// One op as it was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub to: ReplyTarget,
    /// `None` = the reply of a command.
    pub turn: Option<TurnId>,
    pub op: ReplyOp,
}

/// Everything delivered so far, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    pub delivered: Vec<Delivered>,
}

impl Record {
    /// The ops of one turn, in order.
    pub fn of<'a, 't>(
        &'a self,
        turn: &'t TurnId,
    ) -> impl Iterator<Item = &'a ReplyOp> + use<'a, 't> {
        self.delivered
            .iter()
            .filter(move |one| one.turn.as_ref() == Some(turn))
            .map(|one| &one.op)
    }

    /// Turns in the order they first showed something.
    pub fn turns(&self) -> Vec<TurnId> {
        let mut turns: Vec<TurnId> = Vec::new();
        for turn in self.delivered.iter().filter_map(|one| one.turn.as_ref()) {
            if !turns.contains(turn) {
                turns.push(turn.clone());
            }
        }
        turns
    }

    /// The status messages of one turn. A text that only adds to the one before it is an edit of it, not another one.
    pub fn status_lines(&self, turn: &TurnId) -> Vec<&str> {
        let mut lines: Vec<&str> = Vec::new();
        for op in self.of(turn) {
            let ReplyOp::Status { text } = op else {
                continue;
            };
            match lines.last_mut() {
                Some(last) if text.starts_with(*last) => *last = text,
                _ => lines.push(text),
            }
        }
        lines
    }

    /// The most status lines any one turn showed.
    pub fn most_status_lines(&self) -> usize {
        let lines = |turn: TurnId| self.status_lines(&turn).len();
        self.turns().into_iter().map(lines).max().unwrap_or(0)
    }

    /// The answer of a turn as it stands now; `None` = it has shown none.
    pub fn answer(&self, turn: &TurnId) -> Option<&str> {
        self.of(turn)
            .filter_map(|op| match op {
                ReplyOp::Answer { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .last()
    }

    /// How many times a turn's answer was declared done: one, if all is well.
    pub fn times_done(&self, turn: &TurnId) -> usize {
        self.of(turn)
            .filter(|op| matches!(op, ReplyOp::Answer { done: true, .. }))
            .count()
    }

    /// The notices of a turn, in order.
    pub fn notices(&self, turn: &TurnId) -> Vec<&str> {
        self.of(turn)
            .filter_map(|op| match op {
                ReplyOp::Notice { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The replies of commands, with who sees them, in order.
    pub fn replies(&self) -> Vec<(&str, Audience)> {
        self.delivered
            .iter()
            .filter_map(|one| match &one.op {
                ReplyOp::Reply { text, audience, .. } => Some((text.as_str(), *audience)),
                _ => None,
            })
            .collect()
    }
}

/// The platform itself; share it in an `Arc` with whoever looks.
#[derive(Debug)]
pub struct Recording {
    name: &'static str,
    limits: Limits,
    record: watch::Sender<Record>,
}

impl Recording {
    /// A surface called `name` without a bound on length that cannot edit.
    pub fn new(name: &'static str) -> Self {
        let limits = Limits {
            message_chars: None,
            edits: false,
            edit_interval: Duration::ZERO,
            private_replies: true,
        };
        Self {
            name,
            limits,
            record: watch::Sender::new(Record::default()),
        }
    }

    /// The same with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What was delivered up to now.
    pub fn record(&self) -> Record {
        self.record.borrow().clone()
    }

    /// Waits until what was delivered satisfies `is_enough`, and returns it. Looks after every op; never sleeps.
    pub async fn wait_for(&self, mut is_enough: impl FnMut(&Record) -> bool) -> Record {
        let mut watching = self.record.subscribe();
        let seen = watching.wait_for(|record| is_enough(record)).await;
        seen.map(|record| record.clone())
            .expect("self holds the sender, so the channel is open")
    }

    /// Waits until a turn's answer is done, or it has said something in the gateway's voice instead.
    pub async fn wait_for_outcome(&self, turn: &TurnId) -> Record {
        self.wait_for(|record| record.times_done(turn) > 0 || !record.notices(turn).is_empty())
            .await
    }
}

#[async_trait]
impl Platform for Recording {
    fn name(&self) -> &'static str {
        self.name
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn deliver(
        &self,
        to: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        let mut number = 0;
        self.record.send_modify(|record| {
            record.delivered.push(Delivered {
                to: to.clone(),
                turn: turn.cloned(),
                op: op.clone(),
            });
            number = record.delivered.len();
        });
        Ok(Receipt(format!("{}-{number}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn target() -> ReplyTarget {
        ReplyTarget {
            platform: "test".to_owned(),
            address: "here".to_owned(),
        }
    }

    fn status(text: &str) -> ReplyOp {
        ReplyOp::Status {
            text: text.to_owned(),
        }
    }

    fn done(text: &str) -> ReplyOp {
        ReplyOp::Answer {
            text: text.to_owned(),
            delta: String::new(),
            replaced: false,
            done: true,
        }
    }

    #[tokio::test]
    async fn every_turn_is_counted_by_itself() {
        let platform = Recording::new("test");
        let (one, two) = (TurnId::from("1"), TurnId::from("2"));
        for (turn, op) in [
            (&one, status("a")),
            (&one, status("a")),
            (&two, status("a")),
            (&two, status("b")),
            (&two, done("x")),
        ] {
            platform.deliver(&target(), Some(turn), &op).await.unwrap();
        }
        let record = platform.record();
        assert_eq!(record.status_lines(&one), ["a"]);
        assert_eq!(record.status_lines(&two), ["a", "b"]);
        assert_eq!(record.most_status_lines(), 2);
        assert_eq!(
            (record.answer(&one), record.answer(&two)),
            (None, Some("x"))
        );
        assert_eq!((record.times_done(&one), record.times_done(&two)), (0, 1));
        assert_eq!(record.turns(), [one, two]);
    }

    #[tokio::test]
    async fn a_waiter_wakes_when_its_condition_holds_and_not_before() {
        let platform = Arc::new(Recording::new("test"));
        let turn = TurnId::from("1");
        let waiting = {
            let (platform, turn) = (Arc::clone(&platform), turn.clone());
            tokio::spawn(async move { platform.wait_for_outcome(&turn).await })
        };
        platform
            .deliver(&target(), Some(&turn), &status("a"))
            .await
            .unwrap();
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        platform
            .deliver(&target(), Some(&turn), &done("x"))
            .await
            .unwrap();
        assert_eq!(waiting.await.unwrap().answer(&turn), Some("x"));
    }
}
