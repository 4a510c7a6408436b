//! Which turns are being shown, and which slot carries which of their messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::ids::TurnId;
use gateway_core::message::ReplyOp;
use tokio::time::Instant;
use tracing::warn;

use super::Style;
use crate::activity::Activity;
use crate::board::{Board, FILE_NAME, Move, Part, ToolsShown};
use crate::outbox::driver::Sender;
use crate::outbox::{Report, SlotId, Stage};
use crate::stream::IN_FILE;
use crate::wire::{Body, OutFile, Place};

/// How long a turn that has ended may still add to its status line.
const LINGER: Duration = Duration::from_secs(60);

/// How long a turn is remembered of which nothing is heard.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3_600);

pub(super) struct Tables {
    style: Style,
    pub(super) activity: Activity,
    /// In the order they first spoke.
    turns: BTreeMap<u64, Shown>,
    by_id: HashMap<TurnId, u64>,
    by_slot: HashMap<SlotId, (u64, Part)>,
    next: u64,
}

/// One turn being shown.
struct Shown {
    turn: TurnId,
    place: Place,
    board: Board,
    slots: HashMap<Part, SlotId>,
    ends: Instant,
}

impl Tables {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            activity: Activity::new(style.activity_every),
            turns: BTreeMap::new(),
            by_id: HashMap::new(),
            by_slot: HashMap::new(),
            next: 0,
        }
    }

    /// Takes one op of a turn.
    pub(super) fn apply(
        &mut self,
        turn: &TurnId,
        place: Place,
        tools: ToolsShown,
        op: &ReplyOp,
        now: Instant,
    ) {
        let number = self.by_id.get(turn).copied().unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            self.by_id.insert(turn.clone(), number);
            let shown = Shown {
                turn: turn.clone(),
                place,
                board: Board::new(self.style.shape, self.style.flow, tools),
                slots: HashMap::new(),
                ends: now,
            };
            self.turns.insert(number, shown);
            number
        });
        if let Some(shown) = self.turns.get_mut(&number) {
            shown.board.apply(op, now);
            shown.ends = now + FORGOTTEN_AFTER;
        }
    }

    /// A name for something said outside of any turn.
    pub(super) fn fresh_turn(&self) -> TurnId {
        TurnId::new(format!("said alone {}", self.next))
    }

    /// When anything is due.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let ends = self.turns.values().map(|shown| shown.ends).min();
        let dues = [self.next_text(now), ends, self.activity.due()];
        dues.into_iter().flatten().min()
    }

    /// When the next text is due; `None` = all texts are with the outbox.
    pub(super) fn next_text(&self, now: Instant) -> Option<Instant> {
        let due = |shown: &Shown| shown.board.due(now);
        self.turns.values().filter_map(due).min()
    }

    /// Hands what is due to the outbox and forgets turns that are over.
    pub(super) fn give_out(&mut self, sender: &Sender, now: Instant) {
        let numbers: Vec<u64> = self.turns.keys().copied().collect();
        for number in numbers {
            let Some(shown) = self.turns.get_mut(&number) else {
                continue;
            };
            let moves = shown.board.take(now);
            if !moves.is_empty() && shown.board.has_outcome() {
                shown.ends = now + LINGER;
                self.activity.stop(&shown.place);
            }
            for one in moves {
                self.perform(number, one, sender);
            }
            self.forget_if_over(number, sender, now);
        }
    }

    /// Hears what became of a slot.
    pub(super) fn hear(&mut self, report: Report, sender: &Sender, now: Instant) {
        match report {
            Report::Posted { .. } => {}
            Report::Finished { slot, .. } => {
                self.by_slot.remove(&slot);
            }
            Report::Dropped { slot, why, .. } => {
                if let Some((number, part)) = self.by_slot.remove(&slot) {
                    let turn = self.turns.get(&number).map(|shown| &shown.turn);
                    warn!(?turn, ?part, %why, "a message could not be shown");
                }
            }
            Report::TooLong { slot } => {
                let Some((number, part)) = self.by_slot.get(&slot).copied() else {
                    sender.remove(slot);
                    warn!("a message outside of any turn is too long for the platform");
                    return;
                };
                let shown = self.turns.get_mut(&number);
                let moves = shown.map(|shown| shown.board.too_long(part, now));
                for one in moves.unwrap_or_default() {
                    self.perform(number, one, sender);
                }
            }
        }
    }

    fn perform(&mut self, number: u64, one: Move, sender: &Sender) {
        let Some(shown) = self.turns.get_mut(&number) else {
            return;
        };
        let (part, body, stage) = match one {
            Move::Remove { part } => {
                if let Some(slot) = shown.slots.remove(&part) {
                    self.by_slot.remove(&slot);
                    sender.remove(slot);
                }
                return;
            }
            Move::Show { part, text, stage } => (part, Body::text(text), stage),
            Move::File { text } => (Part::File, file(text), Stage::Final),
        };
        if let Some(slot) = shown.slots.get(&part) {
            sender.show(*slot, body, stage);
        } else {
            let slot = sender.open(shown.place.clone(), part.worth(), body, stage);
            shown.slots.insert(part, slot);
            self.by_slot.insert(slot, (number, part));
        }
    }

    fn forget_if_over(&mut self, number: u64, sender: &Sender, now: Instant) {
        if self.turns.get(&number).is_none_or(|shown| shown.ends > now) {
            return;
        }
        if let Some(shown) = self.turns.remove(&number) {
            self.by_id.remove(&shown.turn);
            for slot in shown.slots.values() {
                self.by_slot.remove(slot);
                sender.close(*slot);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize, usize) {
        (self.turns.len(), self.by_id.len(), self.by_slot.len())
    }
}

fn file(text: String) -> Body {
    let file = OutFile {
        name: FILE_NAME.to_owned(),
        bytes: text.into_bytes(),
    };
    Body {
        text: IN_FILE.to_owned(),
        file: Some(Arc::new(file)),
        ..Body::default()
    }
}
