//! Small records for the suite; every instant is a whole number of days after one fixed moment.

use gateway_core::event::CallOutcome;
use gateway_core::handoff::{CallRecord, Handoff, HandoffState, PAYLOAD_VERSION};
use gateway_core::ids::{
    AttemptId, ConversationId, HandoffId, InboundId, ProfileId, SessionKey, TurnId,
};
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use gateway_core::message::{Origin, ReplyTarget};
use gateway_core::route::Route;
use jiff::{SignedDuration, Timestamp};
use providers::Exchange;

use super::super::{Carried, Lane, TurnClose};
use super::Place;

/// That many days after the first moment.
pub(in crate::store) fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap() + SignedDuration::from_hours(24 * day)
}

pub(in crate::store) fn lane(name: &str) -> Lane {
    Lane {
        profile: ProfileId::new("default"),
        session: SessionKey::new(format!("agent:default:console:{name}")),
    }
}

pub(in crate::store) fn turn(lane: &Lane, id: &str) -> TurnRow {
    TurnRow {
        turn: TurnId::new(id),
        profile: lane.profile.clone(),
        session: lane.session.clone(),
        conversation: ConversationId::new(format!("conversation of {}", lane.session)),
        inbound: InboundId::new(format!("message of {id}")),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: "console".to_owned(),
            address: "local".to_owned(),
        },
        request: "fix the tests\n\u{1F9F5} \0 'quoted'".to_owned(),
        started_at: at(0),
        owner: "owner".to_owned(),
        carries: vec![HandoffId::new("h0")],
    }
}

pub(in crate::store) fn close(turn: &str, status: TurnStatus) -> TurnClose {
    TurnClose {
        turn: TurnId::new(turn),
        status,
        at: at(1),
        seal: None,
        carried: Carried::Released,
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    }
}

pub(super) fn exchange(n: u32) -> Exchange {
    Exchange {
        request: format!("question {n}"),
        answer: format!("answer {n}"),
    }
}

pub(super) fn entries() -> Vec<JournalEntry> {
    vec![
        JournalEntry::Attempt {
            attempt: AttemptId::new("a1"),
            route: Route::new("claude-work", "opus"),
            at: at(0),
        },
        JournalEntry::Text {
            block: 0,
            text: "first".to_owned(),
        },
        JournalEntry::ToolCall {
            id: "c1".to_owned(),
            name: "Bash".to_owned(),
            arguments: "{}".to_owned(),
        },
        JournalEntry::Stopped { at: at(0) },
    ]
}

pub(in crate::store) fn handoff(lane: &Lane, turn: &str, id: &str) -> Handoff {
    let row = self::turn(lane, turn);
    Handoff {
        version: PAYLOAD_VERSION,
        id: HandoffId::new(id),
        turn: row.turn,
        profile: row.profile,
        session: row.session,
        conversation: row.conversation,
        created_at: at(0),
        expires_at: at(2),
        reason: "rate limit".to_owned(),
        route: Some(Route::new("claude-work", "opus")),
        request: row.request,
        request_id: row.inbound,
        progress: "half".to_owned(),
        calls: vec![CallRecord {
            id: "c1".to_owned(),
            name: "Bash".to_owned(),
            arguments: "{}".to_owned(),
            outcome: CallOutcome::Unknown,
            result: None,
        }],
        open_todos: Vec::new(),
        next_reset: Some(at(1)),
        earlier_cuts: 0,
    }
}

/// A turn that is cut and leaves this handoff.
pub(super) async fn seal(place: &Place, lane: &Lane, turn: &str, id: &str, state: HandoffState) {
    let mut end = close(turn, TurnStatus::Cut);
    end.seal = Some((handoff(lane, turn, id), state));
    open_and_close(place, lane, &end).await;
}

pub(super) async fn open_and_close(place: &Place, lane: &Lane, end: &TurnClose) {
    let row = turn(lane, end.turn.as_str());
    assert!(place.store().await.open_turn(&row, &[]).await.unwrap());
    assert!(place.store().await.close_turn(end).await.unwrap());
}

/// The lane's handoffs with their states, newest first.
pub(super) async fn states(place: &Place, lane: &Lane) -> Vec<(String, HandoffState)> {
    let all = place.store().await.handoffs_of(lane).await.unwrap();
    all.iter()
        .map(|stored| (stored.handoff.id.as_str().to_owned(), stored.state))
        .collect()
}
