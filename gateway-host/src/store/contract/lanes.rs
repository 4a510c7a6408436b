//! Lanes: messages seen once, sessions, what a provider has seen, history.

use gateway_core::handoff::HandoffState;
use gateway_core::ids::{HandoffId, InboundId, ProviderSessionId, SubscriptionId};
use gateway_core::journal::TurnStatus;
use gateway_core::route::Route;

use super::super::{ProviderSessionRow, StoreError};
use super::Place;
use super::samples::{self, at, close, exchange, lane, open_and_close, seal, turn};

pub(super) async fn a_message_is_new_once(place: &Place) {
    let id = InboundId::new("m1");
    let store = || place.store();
    assert!(
        store()
            .await
            .first_sight("console", &id, at(0))
            .await
            .unwrap()
    );
    assert!(
        !store()
            .await
            .first_sight("console", &id, at(1))
            .await
            .unwrap()
    );
    assert!(
        store()
            .await
            .first_sight("discord", &id, at(1))
            .await
            .unwrap()
    );
    store().await.sweep(at(6)).await.unwrap();
    assert!(
        !store()
            .await
            .first_sight("console", &id, at(6))
            .await
            .unwrap()
    );
    store().await.sweep(at(9)).await.unwrap();
    assert!(
        store()
            .await
            .first_sight("console", &id, at(9))
            .await
            .unwrap()
    );
}

pub(super) async fn a_lane_keeps_its_session(place: &Place) {
    let lane = lane("a");
    let early = place.store().await.choose_route(&lane, None).await;
    assert!(matches!(early, Err(StoreError::NoSuchSession(_))));
    let first = place.store().await.session(&lane, at(0)).await.unwrap();
    assert_eq!((&first.lane, first.started_at), (&lane, at(0)));
    assert_eq!(
        place.store().await.session(&lane, at(5)).await.unwrap(),
        first
    );
    let other = place
        .store()
        .await
        .session(&samples::lane("b"), at(0))
        .await
        .unwrap();
    assert_ne!(other.conversation, first.conversation);

    let route = Route::new("claude-work", "opus");
    place
        .store()
        .await
        .choose_route(&lane, Some(&route))
        .await
        .unwrap();
    assert_eq!(
        place
            .store()
            .await
            .session(&lane, at(5))
            .await
            .unwrap()
            .chosen,
        Some(route)
    );
    place.store().await.choose_route(&lane, None).await.unwrap();
    assert_eq!(
        place.store().await.session(&lane, at(5)).await.unwrap(),
        first
    );
}

pub(super) async fn a_new_conversation_drops_what_waits(place: &Place) {
    let lane = lane("a");
    let old = place.store().await.session(&lane, at(0)).await.unwrap();
    place
        .store()
        .await
        .choose_route(&lane, Some(&Route::new("s", "m")))
        .await
        .unwrap();
    for (turn, handoff, state) in [
        ("t1", "h1", HandoffState::Armed),
        ("t2", "h2", HandoffState::Stopped),
        ("t3", "h3", HandoffState::Armed),
    ] {
        seal(place, &lane, turn, handoff, state).await;
    }
    seal(
        place,
        &samples::lane("b"),
        "t4",
        "other",
        HandoffState::Armed,
    )
    .await;
    let claim = [(HandoffId::new("h3"), 1)];
    assert!(
        place
            .store()
            .await
            .open_turn(&turn(&lane, "t5"), &claim)
            .await
            .unwrap()
    );

    let (row, dropped) = place
        .store()
        .await
        .new_conversation(&lane, at(1))
        .await
        .unwrap();
    assert_ne!(row.conversation, old.conversation);
    assert_eq!(
        (
            row.started_at,
            row.chosen.as_ref(),
            row.answered_by.as_ref()
        ),
        (at(1), None, None)
    );
    let names: Vec<_> = dropped
        .iter()
        .map(|d| (d.handoff.id.as_str(), d.state, d.revision))
        .collect();
    assert_eq!(
        names,
        [
            ("h2", HandoffState::Discarded, 2),
            ("h1", HandoffState::Discarded, 2)
        ]
    );
    assert_eq!(
        place.store().await.session(&lane, at(2)).await.unwrap(),
        row
    );
    let left = samples::states(place, &lane).await;
    assert_eq!(
        left,
        [
            ("h3".to_owned(), HandoffState::Claimed),
            ("h2".to_owned(), HandoffState::Discarded),
            ("h1".to_owned(), HandoffState::Discarded)
        ]
    );
    assert_eq!(
        samples::states(place, &samples::lane("b")).await,
        [("other".to_owned(), HandoffState::Armed)]
    );
}

pub(super) async fn an_answered_turn_is_remembered(place: &Place) {
    let lane = lane("a");
    let session = place.store().await.session(&lane, at(0)).await.unwrap();
    let mut row = turn(&lane, "t1");
    row.conversation = session.conversation.clone();
    place.store().await.open_turn(&row, &[]).await.unwrap();
    let mut end = close("t1", TurnStatus::Answered);
    let route = Route::new("claude-work", "opus");
    end.exchanges = vec![exchange(1), exchange(2)];
    end.answered_by = Some(route.clone());
    end.session = Some((
        SubscriptionId::new("Claude-Work"),
        ProviderSessionId::new("s1"),
    ));
    assert!(place.store().await.close_turn(&end).await.unwrap());

    let (history, all) = place
        .store()
        .await
        .history(&session.conversation, 10)
        .await
        .unwrap();
    assert_eq!((history, all), (vec![exchange(1), exchange(2)], 2));
    let seen = place
        .store()
        .await
        .provider_session(&session.conversation, &SubscriptionId::new("claude-work"))
        .await
        .unwrap();
    assert_eq!(
        seen,
        Some(ProviderSessionRow {
            id: ProviderSessionId::new("s1"),
            seen: 2
        })
    );
    let after = place.store().await.session(&lane, at(1)).await.unwrap();
    assert_eq!(after.answered_by, Some((route, end.at)));
}

pub(super) async fn the_provider_session_keeps_what_it_saw(place: &Place) {
    let (conversation, sub) = (
        turn(&lane("a"), "t1").conversation,
        SubscriptionId::new("s"),
    );
    assert_eq!(
        place
            .store()
            .await
            .provider_session(&conversation, &sub)
            .await
            .unwrap(),
        None
    );
    let (one, two) = (ProviderSessionId::new("one"), ProviderSessionId::new("two"));
    place
        .store()
        .await
        .note_provider_session(&conversation, &sub, &one)
        .await
        .unwrap();
    let mut end = close("t1", TurnStatus::Answered);
    end.exchanges = vec![exchange(1)];
    end.session = Some((sub.clone(), one.clone()));
    open_and_close(place, &lane("a"), &end).await;
    for (noted, expected) in [(&one, 1), (&two, 0), (&one, 0)] {
        place
            .store()
            .await
            .note_provider_session(&conversation, &sub, noted)
            .await
            .unwrap();
        let row = place
            .store()
            .await
            .provider_session(&conversation, &sub)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((&row.id, row.seen), (noted, expected));
    }
}

pub(super) async fn history_is_the_newest_in_order(place: &Place) {
    let conversation = turn(&lane("a"), "t1").conversation;
    for n in 1..=4u32 {
        let mut end = close(&format!("t{n}"), TurnStatus::Answered);
        end.exchanges = vec![exchange(n)];
        open_and_close(place, &lane("a"), &end).await;
    }
    for (limit, expected) in [
        (0, vec![]),
        (2, vec![exchange(3), exchange(4)]),
        (9, (1..=4).map(exchange).collect()),
    ] {
        let found = place
            .store()
            .await
            .history(&conversation, limit)
            .await
            .unwrap();
        assert_eq!(found, (expected, 4));
    }
}
