//! What is to be shown, in order and at the platform's pace. A pure state machine: `now` comes in, [`Work`] goes out, and
//! the result of each work comes back with [`Outbox::done`]. The [driver](self::driver) does the work.
//!
//! A **slot** is one message as its owner sees it: posted once, then edited. What always holds:
//! - First posts of one place go out in the order the slots were opened; one that cannot be delivered is reported and
//!   then no longer holds up the rest.
//! - At most one request per channel is under way, so never two edits of one message.
//! - The newest text wins: texts between two edits are never sent. A final text is the last one, is sent exactly once
//!   and goes before everything that is still growing.
//! - A message keeps its id: a failed edit is an edit again, never a new message. Only where the platform refuses the
//!   edit for good (too old, deleted) the text is posted anew.
//! - Nothing is dropped without a [`Report`].

pub mod driver;
mod pace;
mod settle;
mod slot;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use tokio::time::Instant;

use pace::{Gate, Kind, Urgency};
pub use pace::{Pace, Rate, Uncertain};
use slot::{Slot, Want};

use crate::wire::{Body, MessageId, Place, WireError};

/// One message as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(u64);

/// What becomes of a message somebody deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// Its final text is posted anew: answers, notices.
    Must,
    /// It stays deleted: status lines, tool activity.
    May,
}

/// Whether a text may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Live,
    /// The last one; later texts of the slot are ignored.
    Final,
}

/// One request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub slot: SlotId,
    pub place: Place,
    pub request: Request,
}

/// What to ask of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Post {
        body: Body,
        nonce: String,
    },
    Edit {
        message: MessageId,
        body: Body,
    },
    Delete {
        message: MessageId,
    },
    /// Look for a post of unknown fate.
    LookUp {
        nonce: String,
    },
}

impl Request {
    fn kind(&self) -> Kind {
        match self {
            Self::Post { .. } => Kind::Post,
            Self::Edit { .. } => Kind::Edit,
            Self::Delete { .. } => Kind::Delete,
            Self::LookUp { .. } => Kind::LookUp,
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Do(Work),
    /// Nothing before this instant, unless something new comes.
    Wait(Instant),
    /// Nothing until something new comes.
    Idle,
}

/// What a request brought: the message posted or found; `None` for edits, deletions and look-ups without a find.
pub type Done = Result<Option<MessageId>, WireError>;

/// What an owner is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The slot has a message now, or another one than before.
    Posted { slot: SlotId, message: MessageId },
    /// The final text is shown; the slot is closed.
    Finished { slot: SlotId, message: MessageId },
    /// The platform takes no text this long: show a shorter one. Until then the slot waits.
    TooLong { slot: SlotId },
    /// The slot is closed and `unsent` was not shown; `None` = all of it was shown before.
    Dropped {
        slot: SlotId,
        why: WireError,
        unsent: Option<Body>,
    },
}

/// Everything that is to be shown on one connection.
#[derive(Debug)]
pub struct Outbox {
    pace: Pace,
    gate: Gate,
    /// Tells the nonces of this process from those of others.
    prefix: String,
    slots: BTreeMap<SlotId, Slot>,
    next: u64,
    /// Channels with a request under way.
    busy: HashSet<String>,
    reports: Vec<Report>,
}

impl Outbox {
    /// An empty one. `prefix` (at most 12 characters) begins every nonce; two processes must not share one.
    pub fn new(pace: Pace, prefix: impl Into<String>) -> Self {
        Self {
            pace,
            gate: Gate::new(pace),
            prefix: prefix.into(),
            slots: BTreeMap::new(),
            next: 0,
            busy: HashSet::new(),
            reports: Vec::new(),
        }
    }

    /// Adds a message behind all others of its place.
    pub fn open(
        &mut self,
        place: Place,
        worth: Worth,
        body: Body,
        stage: Stage,
        now: Instant,
    ) -> SlotId {
        let id = SlotId(self.next);
        self.next += 1;
        let nonce = format!("{}{:x}", self.prefix, id.0);
        self.slots.insert(id, Slot::new(place, worth, nonce));
        self.show(id, body, stage, now);
        id
    }

    /// Sets what a slot shows. Ignored if its final text is known already or the slot is closed.
    pub fn show(&mut self, id: SlotId, body: Body, stage: Stage, now: Instant) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if slot.is_ending() {
            return;
        }
        let since = slot.want.as_ref().map_or(now, |want| want.since);
        slot.want = Some(Want { body, stage, since });
        slot.too_long = false;
        self.conclude(id);
    }

    /// Takes a message away again, posted or not.
    pub fn remove(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.remove();
            if slot.is_over() {
                self.slots.remove(&id);
            }
        }
    }

    /// Says that no more texts will come: what the slot wants now is final; without a wish it is closed.
    pub fn close(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if let Some(want) = &mut slot.want {
            want.stage = Stage::Final;
        } else if slot.has_work() || slot.busy.is_some() {
            slot.keep_only_stale();
        } else {
            self.slots.remove(&id);
        }
    }

    /// Chooses the next request and marks it as under way. Ask again until it answers `Wait` or `Idle`.
    pub fn next(&mut self, now: Instant) -> Next {
        let ending: HashSet<&Place> = self
            .slots
            .values()
            .filter(|slot| slot.ends())
            .map(|slot| &slot.place)
            .collect();
        let mut blocked: HashSet<&Place> = HashSet::new();
        let mut best: Option<(Rank, SlotId)> = None;
        let mut soonest: Option<Instant> = None;
        for (id, slot) in &self.slots {
            let queued = slot.is_unposted();
            if queued && !blocked.insert(&slot.place) {
                continue; // an earlier message of this place is not posted yet
            }
            if slot.busy.is_some() || self.busy.contains(&slot.place.channel) {
                continue;
            }
            let Some(kind) = slot.kind(&self.pace, now) else {
                continue;
            };
            let urgency = match slot.ends() || (queued && ending.contains(&slot.place)) {
                true => Urgency::Ending,
                false => Urgency::Underway,
            };
            let opens = self
                .gate
                .opens(&slot.place.channel, kind, urgency, now)
                .max(slot.not_before(urgency, &self.pace).unwrap_or(now));
            if opens > now {
                soonest = Some(soonest.map_or(opens, |at| at.min(opens)));
                continue;
            }
            let rank = Rank::new(urgency, kind, slot);
            if best.as_ref().is_none_or(|(other, _)| rank < *other) {
                best = Some((rank, *id));
            }
        }
        match (best, soonest) {
            (Some((_, id)), _) => self.begin(id, now),
            (None, Some(at)) => Next::Wait(at),
            (None, None) => Next::Idle,
        }
    }

    fn begin(&mut self, id: SlotId, now: Instant) -> Next {
        let Some(slot) = self.slots.get_mut(&id) else {
            return Next::Idle;
        };
        let Some(request) = slot.begin(&self.pace, now) else {
            return Next::Idle;
        };
        let place = slot.place.clone();
        self.gate.passed(&place.channel, request.kind(), now);
        self.busy.insert(place.channel.clone());
        Next::Do(Work {
            slot: id,
            place,
            request,
        })
    }

    /// What there is to tell, oldest first; each report is given once.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// Whether nothing is waiting or under way.
    pub fn is_idle(&self) -> bool {
        self.busy.is_empty() && self.slots.values().all(|slot| !slot.has_work())
    }

    /// Slots that are open; what a long-lived owner holds on to.
    pub fn open_slots(&self) -> usize {
        self.slots.len()
    }
}

/// Smaller goes first: what ends an answer, then what posts, then the text that waited longest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    underway: bool,
    post_after: bool,
    since: Option<Instant>,
}

impl Rank {
    fn new(urgency: Urgency, kind: Kind, slot: &Slot) -> Self {
        Self {
            underway: urgency == Urgency::Underway,
            post_after: !matches!(kind, Kind::Post | Kind::LookUp),
            since: slot.want.as_ref().map(|want| want.since),
        }
    }
}
