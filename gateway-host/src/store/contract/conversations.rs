//! Conversations that are left and picked up again, and who took part in them.

use gateway_core::handoff::HandoffState;
use gateway_core::ids::{ConversationId, HandoffId};
use gateway_core::journal::TurnStatus;
use gateway_core::route::Route;

use super::super::{ConversationRow, Lane, SessionRow, TurnClose};
use super::Place;
use super::samples::{at, close, handoff, lane, states, turn};

/// A turn of the lane's current conversation that ends like this.
async fn end_in_current(place: &Place, lane: &Lane, end: &TurnClose) -> ConversationId {
    let store = place.store().await;
    let mut row = turn(lane, end.turn.as_str());
    row.conversation = store.session(lane, at(0)).await.unwrap().conversation;
    row.request = format!("request of {}", end.turn);
    assert!(store.open_turn(&row, &[]).await.unwrap());
    assert!(store.close_turn(end).await.unwrap());
    row.conversation
}

fn answered(name: &str) -> TurnClose {
    let mut end = close(name, TurnStatus::Answered);
    end.exchanges = vec![super::samples::exchange(1)];
    end.answered_by = Some(Route::new("claude-work", "opus"));
    end
}

async fn new(place: &Place, lane: &Lane, day: i64) -> SessionRow {
    let store = place.store().await;
    store.new_conversation(lane, at(day)).await.unwrap().0
}

async fn earlier(place: &Place, lane: &Lane) -> Vec<ConversationRow> {
    place
        .store()
        .await
        .earlier_conversations(lane)
        .await
        .unwrap()
}

async fn numbers(place: &Place, lane: &Lane) -> Vec<u32> {
    let rows = earlier(place, lane).await;
    rows.iter().map(|row| row.number).collect()
}

async fn resume(place: &Place, lane: &Lane, id: &ConversationId) -> Option<SessionRow> {
    let store = place.store().await;
    store.resume_conversation(lane, id).await.unwrap()
}

pub(super) async fn one_that_was_left_is_picked_up_as_it_was(place: &Place) {
    let lane = lane("a");
    let first = end_in_current(place, &lane, &answered("t1")).await;
    let route = Route::new("s", "m");
    let store = place.store().await;
    store.choose_route(&lane, Some(&route)).await.unwrap();
    let was = store.session(&lane, at(0)).await.unwrap();

    let second = new(place, &lane, 3).await;
    let row = ConversationRow {
        conversation: first.clone(),
        number: 1,
        started_at: at(0),
        used_at: at(1),
        exchanges: 1,
        first_request: "question 1".to_owned(),
    };
    assert_eq!(earlier(place, &lane).await, [row]);
    assert_eq!(resume(place, &lane, &first).await, Some(was.clone()));
    let now = place.store().await.session(&lane, at(9)).await.unwrap();
    assert_eq!(now, was);
    // Nothing was said in the second one.
    assert!(earlier(place, &lane).await.is_empty());
    assert_eq!(resume(place, &lane, &second.conversation).await, None);
    assert_eq!(resume(place, &lane, &first).await, Some(was));
}

pub(super) async fn numbers_stay_and_the_last_used_comes_first(place: &Place) {
    let lane = lane("a");
    let mut conversations = Vec::new();
    for n in 1..=3 {
        let mut end = answered(&format!("t{n}"));
        end.at = at(n);
        conversations.push(end_in_current(place, &lane, &end).await);
        new(place, &lane, n).await;
    }
    assert_eq!(numbers(place, &lane).await, [3, 2, 1]);
    resume(place, &lane, &conversations[0]).await.unwrap();
    assert_eq!(numbers(place, &lane).await, [3, 2]);
    let mut cut = close("t4", TurnStatus::Cut);
    cut.at = at(7);
    end_in_current(place, &lane, &cut).await;
    new(place, &lane, 8).await;
    assert_eq!(numbers(place, &lane).await, [1, 3, 2]);
    assert_eq!(earlier(place, &lane).await[0].used_at, at(7));
}

pub(super) async fn another_lanes_conversation_is_no_ones_here(place: &Place) {
    let (here, there) = (lane("a"), lane("b"));
    let other = end_in_current(place, &there, &answered("t1")).await;
    new(place, &there, 1).await;
    let mine = end_in_current(place, &here, &answered("t2")).await;
    assert!(earlier(place, &here).await.is_empty());
    assert_eq!(resume(place, &here, &other).await, None);
    let session = place.store().await.session(&here, at(2)).await.unwrap();
    assert_eq!(session.conversation, mine);
}

pub(super) async fn what_was_asked_names_one_that_was_never_answered(place: &Place) {
    let lane = lane("a");
    end_in_current(place, &lane, &close("t1", TurnStatus::Failed)).await;
    end_in_current(place, &lane, &close("t2", TurnStatus::Failed)).await;
    new(place, &lane, 3).await;
    let rows = earlier(place, &lane).await;
    assert_eq!(
        (rows[0].first_request.as_str(), rows[0].exchanges),
        ("request of t1", 0)
    );
}

pub(super) async fn handoffs_stay_with_their_conversation(place: &Place) {
    let lane = lane("a");
    let mut cut = close("t1", TurnStatus::Cut);
    let store = place.store().await;
    let first = store.session(&lane, at(0)).await.unwrap().conversation;
    end_in_current(place, &lane, &answered("t0")).await;
    let second = new(place, &lane, 1).await.conversation;
    let mut sealed = handoff(&lane, "t1", "h1");
    sealed.conversation = second.clone();
    cut.seal = Some((sealed, HandoffState::Armed));
    end_in_current(place, &lane, &cut).await;

    // Leaving it drops nothing, and `/new` in the other one does not reach it.
    resume(place, &lane, &first).await.unwrap();
    let armed = [("h1".to_owned(), HandoffState::Armed)];
    assert_eq!(states(place, &lane).await, armed);
    new(place, &lane, 2).await;
    assert_eq!(states(place, &lane).await, armed);
    // Back in its own, `/new` drops it.
    resume(place, &lane, &second).await.unwrap();
    let store = place.store().await;
    let (_, dropped) = store.new_conversation(&lane, at(3)).await.unwrap();
    let dropped: Vec<&HandoffId> = dropped.iter().map(|one| &one.handoff.id).collect();
    assert_eq!(dropped, [&HandoffId::new("h1")]);
}

/// Another gateway's turn may end after its conversation was left.
pub(super) async fn a_turn_that_ends_late_counts_for_its_conversation(place: &Place) {
    let lane = lane("a");
    let store = place.store().await;
    let mut row = turn(&lane, "t1");
    row.conversation = store.session(&lane, at(0)).await.unwrap().conversation;
    assert!(store.open_turn(&row, &[]).await.unwrap());
    let second = new(place, &lane, 1).await;
    let mut end = answered("t1");
    end.at = at(5);
    assert!(place.store().await.close_turn(&end).await.unwrap());
    assert_eq!(earlier(place, &lane).await[0].used_at, at(5));
    let current = place.store().await.session(&lane, at(5)).await.unwrap();
    assert_eq!(current, second);
    let back = resume(place, &lane, &row.conversation).await.unwrap();
    let answered_by = Some((Route::new("claude-work", "opus"), at(5)));
    assert_eq!(back.answered_by, answered_by);
}

pub(super) async fn who_took_part_is_known(place: &Place) {
    let store = || place.store();
    let (one, two) = (ConversationId::new("c1"), ConversationId::new("c2"));
    for (conversation, platform, sender) in [
        (&two, "discord", "ann"),
        (&one, "discord", "ann"),
        (&one, "discord", "ann"),
        (&one, "slack", "ann"),
        (&one, "discord", "bob"),
    ] {
        let store = store().await;
        store
            .note_participant(conversation, platform, sender)
            .await
            .unwrap();
    }
    let took = async |platform, sender| store().await.took_part(platform, sender).await.unwrap();
    assert_eq!(took("discord", "ann").await, [one.clone(), two]);
    assert_eq!(took("discord", "bob").await, std::slice::from_ref(&one));
    assert_eq!(took("slack", "ann").await, [one]);
    assert!(took("slack", "bob").await.is_empty());
}
