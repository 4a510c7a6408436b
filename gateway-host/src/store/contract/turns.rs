//! Turns: opened once, ended once, adopted once; and what the sweep takes.

use gateway_core::handoff::{HandoffState, PAYLOAD_VERSION};
use gateway_core::ids::{HandoffId, TurnId};
use gateway_core::journal::{JournalEntry, TurnStatus};
use jiff::SignedDuration;

use super::super::{Carried, StoreError};
use super::Place;
use super::samples::{self, at, close, entries, handoff, lane, open_and_close, seal, turn};

pub(super) async fn a_turn_opens_once_and_keeps_its_journal(place: &Place) {
    let row = turn(&lane("a"), "t1");
    assert!(place.store().await.open_turn(&row, &[]).await.unwrap());
    let again = place.store().await.open_turn(&row, &[]).await;
    assert!(matches!(again, Err(StoreError::TurnExists(id)) if id == row.turn));
    assert_eq!(
        place.store().await.open_turns().await.unwrap(),
        std::slice::from_ref(&row)
    );

    let all = entries();
    let (first, rest) = all.split_at(2);
    place.store().await.append(&row.turn, first).await.unwrap();
    place.store().await.append(&row.turn, &[]).await.unwrap();
    place.store().await.append(&row.turn, rest).await.unwrap();
    assert_eq!(place.store().await.journal(&row.turn).await.unwrap(), all);

    assert!(
        place
            .store()
            .await
            .close_turn(&close("t1", TurnStatus::Failed))
            .await
            .unwrap()
    );
    assert!(
        !place
            .store()
            .await
            .close_turn(&close("t1", TurnStatus::Answered))
            .await
            .unwrap()
    );
    let late = place.store().await.append(&row.turn, &all).await;
    assert!(matches!(late, Err(StoreError::NoSuchTurn(_))));
    assert_eq!(place.store().await.journal(&row.turn).await.unwrap(), all);
    assert!(place.store().await.open_turns().await.unwrap().is_empty());

    let nobody = TurnId::new("nobody");
    assert!(matches!(
        place.store().await.journal(&nobody).await,
        Err(StoreError::NoSuchTurn(_))
    ));
    assert!(matches!(
        place.store().await.append(&nobody, &all).await,
        Err(StoreError::NoSuchTurn(_))
    ));
    let unknown = place
        .store()
        .await
        .close_turn(&close("nobody", TurnStatus::Failed))
        .await;
    assert!(matches!(unknown, Err(StoreError::NoSuchTurn(_))));
    let no_end = place
        .store()
        .await
        .close_turn(&close("t1", TurnStatus::Open))
        .await;
    assert!(matches!(no_end, Err(StoreError::Damaged { .. })));
}

pub(super) async fn a_message_is_seen_exactly_if_its_turn_was_opened(place: &Place) {
    let row = turn(&lane("a"), "t1");
    let platform = row.target.platform.clone();
    let seen = async || {
        let store = place.store().await;
        store.was_seen(&platform, &row.inbound).await.unwrap()
    };
    // A claim that fails writes nothing: a message whose turn never stood is taken when it comes again.
    let stale = [(HandoffId::new("gone"), 1)];
    assert!(!place.store().await.open_turn(&row, &stale).await.unwrap());
    assert!(!seen().await);
    assert!(place.store().await.open_turn(&row, &[]).await.unwrap());
    assert!(seen().await);
    let mut again = turn(&lane("a"), "t2");
    again.inbound = row.inbound.clone();
    let refused = place.store().await.open_turn(&again, &[]).await;
    assert!(matches!(refused, Err(StoreError::SeenBefore(id)) if id == row.inbound));
    let turn = place.store().await.turn(&again.turn).await.unwrap();
    assert_eq!(turn, None, "nothing of it was written");
    let elsewhere = place
        .store()
        .await
        .first_sight(&platform, &row.inbound, at(0))
        .await;
    assert!(!elsewhere.unwrap(), "one memory for both ways in");
    place.store().await.sweep(at(9)).await.unwrap();
    assert!(!seen().await);
}

pub(super) async fn only_the_owner_given_loses_its_turn(place: &Place) {
    let row = turn(&lane("a"), "t1");
    place.store().await.open_turn(&row, &[]).await.unwrap();
    assert!(
        !place
            .store()
            .await
            .adopt_turn(&row.turn, "somebody", "new")
            .await
            .unwrap()
    );
    assert!(
        place
            .store()
            .await
            .adopt_turn(&row.turn, &row.owner, "new")
            .await
            .unwrap()
    );
    assert!(
        !place
            .store()
            .await
            .adopt_turn(&row.turn, &row.owner, "third")
            .await
            .unwrap()
    );
    assert_eq!(
        place.store().await.open_turns().await.unwrap()[0].owner,
        "new"
    );
    place
        .store()
        .await
        .close_turn(&close("t1", TurnStatus::Cut))
        .await
        .unwrap();
    assert!(
        !place
            .store()
            .await
            .adopt_turn(&row.turn, "new", "third")
            .await
            .unwrap()
    );
}

pub(super) async fn the_sweep_expires_then_purges(place: &Place) {
    let lane = lane("a");
    seal(place, &lane, "t1", "h1", HandoffState::Armed).await;
    seal(place, &lane, "t2", "h2", HandoffState::Stopped).await;
    let expires = handoff(&lane, "t1", "h1").expires_at;
    let before = expires - SignedDuration::from_millis(1);
    assert!(place.store().await.sweep(before).await.unwrap().is_empty());
    let expired = place.store().await.sweep(expires).await.unwrap();
    assert_eq!(
        expired
            .iter()
            .map(|e| (e.handoff.id.as_str(), e.state, e.revision))
            .collect::<Vec<_>>(),
        [("h1", HandoffState::Expired, 2)]
    );
    assert!(place.store().await.sweep(expires).await.unwrap().is_empty());
    assert_eq!(place.store().await.handoffs().await.unwrap().len(), 2);
    let days = |n: i64| SignedDuration::from_hours(24 * n);
    place.store().await.sweep(expires + days(30)).await.unwrap();
    assert_eq!(
        samples::states(place, &lane).await,
        [("h1".to_owned(), HandoffState::Expired)]
    );
    place.store().await.sweep(expires + days(31)).await.unwrap();
    assert!(samples::states(place, &lane).await.is_empty());
    let gone = place.store().await.journal(&TurnId::new("t1")).await;
    assert!(matches!(gone, Err(StoreError::NoSuchTurn(_))));
}

pub(super) async fn the_sweep_forgets_old_texts(place: &Place) {
    let lane = lane("a");
    let ends = [("t1", TurnStatus::Answered), ("t2", TurnStatus::Failed)];
    for (id, status) in ends {
        place
            .store()
            .await
            .open_turn(&turn(&lane, id), &[])
            .await
            .unwrap();
        place
            .store()
            .await
            .append(&TurnId::new(id), &entries())
            .await
            .unwrap();
        place
            .store()
            .await
            .close_turn(&close(id, status))
            .await
            .unwrap();
    }
    place
        .store()
        .await
        .open_turn(&turn(&lane, "t3"), &[])
        .await
        .unwrap();
    place
        .store()
        .await
        .append(&TurnId::new("t3"), &entries())
        .await
        .unwrap();
    let lengths = async || {
        let mut all = Vec::new();
        for id in ["t1", "t2", "t3"] {
            let journal = place.store().await.journal(&TurnId::new(id)).await;
            all.push(journal.map(|entries: Vec<JournalEntry>| entries.len()).ok());
        }
        all
    };
    let full = Some(entries().len());
    place.store().await.sweep(at(2)).await.unwrap();
    assert_eq!(lengths().await, [full, full, full]);
    place.store().await.sweep(at(5)).await.unwrap();
    assert_eq!(lengths().await, [Some(0), full, full]);
    place.store().await.sweep(at(40)).await.unwrap();
    assert_eq!(lengths().await, [None, None, full]);
    assert_eq!(
        place.store().await.open_turns().await.unwrap(),
        [turn(&lane, "t3")]
    );
}

pub(super) async fn a_newer_payload_is_not_guessed_at(place: &Place) {
    let lane = lane("a");
    let mut newer = handoff(&lane, "t1", "h1");
    newer.version = PAYLOAD_VERSION + 1;
    let mut end = close("t1", TurnStatus::Cut);
    end.seal = Some((newer, HandoffState::Armed));
    open_and_close(place, &lane, &end).await;
    let found = place
        .store()
        .await
        .handoff(&HandoffId::new("h1"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.state, found.revision), (HandoffState::Corrupt, 1));
    end.carried = Carried::Acked;
    assert!(!place.store().await.close_turn(&end).await.unwrap());
}
