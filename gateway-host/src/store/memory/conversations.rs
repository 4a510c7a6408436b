//! Conversations a lane has left and can pick up again.

use gateway_core::ids::ConversationId;
use gateway_core::route::Route;
use jiff::Timestamp;

use super::super::rules::{EARLIER_MAX, in_ms};
use super::super::{ConversationRow, Lane, SessionRow};
use super::State;

/// A conversation that was left once.
#[derive(Debug)]
pub(super) struct Left {
    row: SessionRow,
    number: u32,
    used_at: Timestamp,
}

impl State {
    pub(super) fn leave(&mut self, left: &SessionRow) {
        let turns = || {
            let all = self.turns.values();
            all.filter(|turn| turn.row.conversation == left.conversation)
        };
        let is_answered = self
            .history
            .get(&left.conversation)
            .is_some_and(|history| !history.is_empty());
        if turns().next().is_none() && !is_answered {
            return;
        }
        let last = turns()
            .map(|turn| turn.ended_at.unwrap_or(turn.row.started_at))
            .max();
        let answered_at = left.answered_by.as_ref().map(|(_, at)| *at);
        let used_at = in_ms(last.or(answered_at).unwrap_or(left.started_at));
        let of_lane = self.left.values().filter(|one| one.row.lane == left.lane);
        let next = of_lane.map(|one| one.number).max().unwrap_or(0) + 1;
        let known = self.left.get(&left.conversation);
        let number = known.map_or(next, |known| known.number);
        let row = left.clone();
        self.left.insert(
            left.conversation.clone(),
            Left {
                row,
                number,
                used_at,
            },
        );
    }

    pub(super) fn earlier(&self, lane: &Lane) -> Vec<ConversationRow> {
        let current = self.sessions.get(lane).map(|row| &row.conversation);
        let mut found: Vec<ConversationRow> = self
            .left
            .values()
            .filter(|left| left.row.lane == *lane && Some(&left.row.conversation) != current)
            .map(|left| self.earlier_one(left))
            .collect();
        found.sort_by_key(|row| std::cmp::Reverse((row.used_at, row.number)));
        found.truncate(EARLIER_MAX as usize);
        found
    }

    fn earlier_one(&self, left: &Left) -> ConversationRow {
        let conversation = &left.row.conversation;
        let history = self
            .history
            .get(conversation)
            .map_or(&[][..], Vec::as_slice);
        let answered = history.first().map(|exchange| &exchange.request);
        let asked = || {
            let all = self.turns.values().map(|turn| &turn.row);
            all.filter(|row| row.conversation == *conversation && !row.request.is_empty())
                .min_by_key(|row| (row.started_at, row.turn.clone()))
                .map(|row| &row.request)
        };
        ConversationRow {
            conversation: conversation.clone(),
            number: left.number,
            started_at: left.row.started_at,
            used_at: left.used_at,
            exchanges: history.len() as u64,
            first_request: answered.or_else(asked).cloned().unwrap_or_default(),
        }
    }

    pub(super) fn resume(
        &mut self,
        lane: &Lane,
        conversation: &ConversationId,
    ) -> Option<SessionRow> {
        let current = self.sessions.get(lane).cloned();
        if let Some(current) = current
            .as_ref()
            .filter(|row| row.conversation == *conversation)
        {
            return Some(current.clone());
        }
        let left = self.left.get(conversation);
        let row = left.filter(|left| left.row.lane == *lane)?.row.clone();
        if let Some(current) = &current {
            self.leave(current);
        }
        self.sessions.insert(lane.clone(), row.clone());
        Some(row)
    }

    /// A turn of the conversation ended; the lane may have left it meanwhile.
    pub(super) fn used(
        &mut self,
        conversation: &ConversationId,
        at: Timestamp,
        answered_by: Option<&Route>,
    ) {
        if let Some(left) = self.left.get_mut(conversation) {
            left.used_at = in_ms(at);
            if let Some(route) = answered_by {
                left.row.answered_by = Some((route.clone(), in_ms(at)));
            }
        }
    }

    /// Whether a conversation is one the lane has left, not the one it holds.
    pub(super) fn is_elsewhere(&self, lane: &Lane, conversation: &ConversationId) -> bool {
        let current = self.sessions.get(lane).map(|row| &row.conversation);
        current != Some(conversation)
            && self
                .left
                .get(conversation)
                .is_some_and(|left| left.row.lane == *lane)
    }
}
