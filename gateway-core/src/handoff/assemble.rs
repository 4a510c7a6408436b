//! Journal rows to payload.

use jiff::Timestamp;

use super::Handoff;
use crate::ids::HandoffId;
use crate::journal::{JournalEntry, TurnRow};

/// Everything known at a cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    pub id: &'a HandoffId,
    pub turn: &'a TurnRow,
    pub entries: &'a [JournalEntry],
    /// Handoffs the turn had claimed, oldest first: a second cut merges them.
    pub carried: &'a [Handoff],
    pub reason: &'a str,
    pub next_reset: Option<Timestamp>,
    pub now: Timestamp,
}

/// Builds the handoff of a cut turn; `None` = nothing worth saving.
pub fn assemble(_cut: &Cut<'_>) -> Option<Handoff> {
    unimplemented!()
}
