//! Buttons: an undo acts once, on what it was made for and on nothing else.

use gateway_core::action::{Action, ActionId, ActionKind, ActionState, Offer, Undoes};
use gateway_core::journal::TurnStatus;
use gateway_core::route::Route;

use super::super::{Lane, StoreError};
use super::Place;
use super::samples::{at, close, lane, turn};

fn offer(n: u32) -> Offer {
    Offer {
        id: ActionId::new(ActionKind::UndoModel, &format!("{n:032x}")).unwrap(),
        platform: "discord".to_owned(),
        only_for: (n % 2 == 1).then(|| "ann".to_owned()),
        made_at: at(0),
        expires_at: at(2),
    }
}

fn route(name: &str) -> Option<Route> {
    Some(Route::new(name, "m"))
}

async fn choose(place: &Place, lane: &Lane, to: Option<&Route>, n: u32) -> String {
    let (store, offer) = (place.store().await, offer(n));
    store.session(lane, at(0)).await.unwrap();
    store.choose_route_undoably(lane, to, &offer).await.unwrap();
    offer.id.token().to_owned()
}

async fn press(place: &Place, token: &str, day: i64) -> bool {
    place
        .store()
        .await
        .use_action(token, at(day))
        .await
        .unwrap()
}

async fn chosen(place: &Place, lane: &Lane) -> Option<Route> {
    let session = place.store().await.session(lane, at(0)).await;
    session.unwrap().chosen
}

async fn state(place: &Place, token: &str) -> Option<ActionState> {
    let found = place.store().await.action(token).await.unwrap();
    found.map(|action| action.state)
}

pub(super) async fn an_undo_goes_back_once(place: &Place) {
    let lane = lane("a");
    let early = place.store().await;
    let early = early.choose_route_undoably(&lane, None, &offer(9)).await;
    assert!(matches!(early, Err(StoreError::NoSuchSession(_))));
    choose(place, &lane, route("x").as_ref(), 1).await;
    let token = choose(place, &lane, route("y").as_ref(), 2).await;
    let session = place.store().await.session(&lane, at(0)).await.unwrap();
    let kept = Action {
        offer: offer(2),
        profile: lane.profile.clone(),
        session: lane.session.clone(),
        conversation: session.conversation,
        undoes: Undoes::Choice {
            made: route("y"),
            former: route("x"),
        },
        state: ActionState::Open,
    };
    assert_eq!(
        place.store().await.action(&token).await.unwrap(),
        Some(kept)
    );
    assert!(press(place, &token, 1).await);
    assert_eq!(chosen(place, &lane).await, route("x"));
    assert_eq!(state(place, &token).await, Some(ActionState::Used));
    assert!(!press(place, &token, 1).await);
    assert_eq!(chosen(place, &lane).await, route("x"));
    assert!(!press(place, &"f".repeat(32), 1).await);
    assert_eq!(state(place, &"f".repeat(32)).await, None);
}

pub(super) async fn an_undo_can_lead_to_the_chain_and_away_from_it(place: &Place) {
    let lane = lane("a");
    let token = choose(place, &lane, route("x").as_ref(), 1).await;
    assert!(press(place, &token, 1).await);
    assert_eq!(chosen(place, &lane).await, None);
    choose(place, &lane, route("y").as_ref(), 2).await;
    let token = choose(place, &lane, None, 3).await;
    assert_eq!(chosen(place, &lane).await, None);
    assert!(press(place, &token, 1).await);
    assert_eq!(chosen(place, &lane).await, route("y"));
}

pub(super) async fn a_newer_choice_ends_older_undos(place: &Place) {
    let lane = lane("a");
    let first = choose(place, &lane, route("x").as_ref(), 1).await;
    let other = choose(place, &super::samples::lane("b"), route("x").as_ref(), 2).await;
    place.store().await.choose_route(&lane, None).await.unwrap();
    assert_eq!(state(place, &first).await, Some(ActionState::Replaced));
    // Chosen again: the old button still speaks of the old choice.
    choose(place, &lane, route("x").as_ref(), 3).await;
    assert!(!press(place, &first, 1).await);
    assert_eq!(chosen(place, &lane).await, route("x"));
    assert!(press(place, &other, 1).await, "another lane's is untouched");
}

pub(super) async fn an_undo_is_of_its_conversation(place: &Place) {
    let lane = lane("a");
    let token = choose(place, &lane, route("x").as_ref(), 1).await;
    let store = place.store().await;
    let mut row = turn(&lane, "t1");
    row.conversation = store.session(&lane, at(0)).await.unwrap().conversation;
    assert!(store.open_turn(&row, &[]).await.unwrap());
    let end = close("t1", TurnStatus::Failed);
    assert!(store.close_turn(&end).await.unwrap());
    store.new_conversation(&lane, at(1)).await.unwrap();
    store
        .choose_route(&lane, route("x").as_ref())
        .await
        .unwrap();
    let again = choose(place, &lane, route("x").as_ref(), 2).await;
    assert!(!press(place, &token, 1).await);
    assert_eq!(chosen(place, &lane).await, route("x"));
    // Back where the second button is not at home.
    let back = place.store().await;
    let back = back.resume_conversation(&lane, &row.conversation).await;
    assert_eq!(back.unwrap().unwrap().chosen, route("x"));
    assert!(!press(place, &again, 1).await);
    assert_eq!(state(place, &again).await, Some(ActionState::Replaced));
    assert_eq!(chosen(place, &lane).await, route("x"));
}

pub(super) async fn an_expired_one_does_nothing_and_is_swept_later(place: &Place) {
    let lane = lane("a");
    let token = choose(place, &lane, route("x").as_ref(), 1).await;
    assert!(!press(place, &token, 2).await);
    assert_eq!(chosen(place, &lane).await, route("x"));
    place.store().await.sweep(at(9)).await.unwrap();
    assert_eq!(state(place, &token).await, Some(ActionState::Open));
    place.store().await.sweep(at(10)).await.unwrap();
    assert_eq!(state(place, &token).await, None);
}
