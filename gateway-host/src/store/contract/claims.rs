//! Claims: one winner, all or nothing, and nothing lost whatever becomes of the turn.

use std::sync::Arc;

use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{HandoffId, TurnId};
use gateway_core::journal::TurnStatus;

use super::super::memory::MemoryStore;
use super::super::sqlite::SqliteStore;
use super::super::{Carried, Store, StoreError};
use super::Place;
use super::samples::{close, handoff, lane, seal, states, turn};

async fn one(place: &Place, id: &str) -> StoredHandoff {
    let found = place
        .store()
        .await
        .handoff(&HandoffId::new(id))
        .await
        .unwrap();
    found.expect("it was sealed")
}

async fn claim(place: &Place, by: &str, claims: &[(&str, i64)]) -> bool {
    let claims: Vec<_> = claims
        .iter()
        .map(|(id, revision)| (HandoffId::new(*id), *revision))
        .collect();
    place
        .store()
        .await
        .open_turn(&turn(&lane("a"), by), &claims)
        .await
        .unwrap()
}

pub(super) async fn armed_claimed_acked(place: &Place) {
    seal(place, &lane("a"), "t1", "h1", HandoffState::Armed).await;
    let sealed = one(place, "h1").await;
    assert_eq!(sealed.handoff, handoff(&lane("a"), "t1", "h1"));
    assert_eq!(
        (sealed.state, sealed.revision, sealed.claimed_by),
        (HandoffState::Armed, 1, None)
    );

    assert!(claim(place, "t2", &[("h1", 1)]).await);
    let by = Some(TurnId::new("t2"));
    let held = one(place, "h1").await;
    assert_eq!(
        (held.state, held.revision, &held.claimed_by),
        (HandoffState::Claimed, 2, &by)
    );

    let mut end = close("t2", TurnStatus::Answered);
    end.carried = Carried::Acked;
    assert!(place.store().await.close_turn(&end).await.unwrap());
    assert!(!place.store().await.close_turn(&end).await.unwrap());
    let done = one(place, "h1").await;
    assert_eq!(
        (done.state, done.revision, done.claimed_by),
        (HandoffState::Acked, 3, by)
    );
    assert!(place.store().await.handoffs().await.unwrap().is_empty());
    assert!(
        place
            .store()
            .await
            .handoff(&HandoffId::new("h9"))
            .await
            .unwrap()
            .is_none()
    );
}

pub(super) async fn a_stale_claim_writes_nothing(place: &Place) {
    seal(place, &lane("a"), "t1", "h1", HandoffState::Armed).await;
    seal(place, &lane("a"), "t2", "h2", HandoffState::Armed).await;
    seal(place, &lane("a"), "t3", "h3", HandoffState::Stopped).await;
    for refused in [
        &[("h1", 1), ("h2", 7)][..],
        &[("h1", 1), ("h1", 1)],
        &[("h1", 1), ("h3", 1)],
        &[("h1", 1), ("nothing", 1)],
    ] {
        assert!(!claim(place, "t4", refused).await, "{refused:?}");
        assert!(place.store().await.open_turns().await.unwrap().is_empty());
        assert_eq!(one(place, "h1").await.revision, 1);
    }
    assert!(claim(place, "t4", &[("h1", 1), ("h2", 1)]).await);
}

pub(super) async fn released_and_chained(place: &Place) {
    seal(place, &lane("a"), "t1", "h1", HandoffState::Armed).await;
    assert!(claim(place, "t2", &[("h1", 1)]).await);
    place
        .store()
        .await
        .close_turn(&close("t2", TurnStatus::Failed))
        .await
        .unwrap();
    let back = one(place, "h1").await;
    assert_eq!(
        (back.state, back.revision, back.claimed_by),
        (HandoffState::Armed, 3, None)
    );

    assert!(claim(place, "t3", &[("h1", 3)]).await);
    let mut cut = close("t3", TurnStatus::Cut);
    cut.carried = Carried::Chained;
    cut.seal = Some((handoff(&lane("a"), "t3", "h2"), HandoffState::Armed));
    assert!(place.store().await.close_turn(&cut).await.unwrap());
    let expected = [
        ("h2".to_owned(), HandoffState::Armed),
        ("h1".to_owned(), HandoffState::Chained),
    ];
    assert_eq!(states(place, &lane("a")).await, expected);
    // The turn that merged it stays on record.
    assert_eq!(one(place, "h1").await.claimed_by, Some("t3".into()));
    let live = place.store().await.handoffs().await.unwrap();
    assert_eq!(live.len(), 1);
}

pub(super) async fn an_older_armed_handoff_is_left(place: &Place) {
    seal(place, &lane("a"), "t1", "h1", HandoffState::Armed).await;
    seal(place, &lane("a"), "t2", "h2", HandoffState::Armed).await;
    let expected = [
        ("h2".to_owned(), HandoffState::Armed),
        ("h1".to_owned(), HandoffState::Armed),
    ];
    assert_eq!(states(place, &lane("a")).await, expected);
    // An id is sealed once, and a seal that is refused leaves its turn open.
    let row = turn(&lane("a"), "t3");
    assert!(place.store().await.open_turn(&row, &[]).await.unwrap());
    let mut end = close("t3", TurnStatus::Cut);
    end.seal = Some((handoff(&lane("a"), "t3", "h1"), HandoffState::Armed));
    let refused = place.store().await.close_turn(&end).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })));
    assert_eq!(place.store().await.open_turns().await.unwrap(), [row]);
}

pub(super) async fn moves_need_the_revision_and_a_way(place: &Place) {
    seal(place, &lane("a"), "t1", "h1", HandoffState::Armed).await;
    let id = HandoffId::new("h1");
    for (id, revision, to, moved) in [
        ("h9", 1, HandoffState::Discarded, false),
        ("h1", 2, HandoffState::Discarded, false),
        ("h1", 1, HandoffState::Claimed, false),
        ("h1", 1, HandoffState::Acked, false),
        ("h1", 1, HandoffState::Discarded, true),
        ("h1", 1, HandoffState::Expired, false),
        ("h1", 2, HandoffState::Armed, false),
    ] {
        let done = place
            .store()
            .await
            .move_handoff(&HandoffId::new(id), revision, to)
            .await;
        assert_eq!(done.unwrap(), moved, "{id} {revision} {to:?}");
    }
    assert_eq!(one(place, id.as_str()).await.state, HandoffState::Discarded);
}

/// Two sides claim the same handoff, a thousand times over: each time one wins, and only its turn is there.
async fn race(left: Arc<dyn Store>, right: Arc<dyn Store>) {
    let lane = lane("a");
    let first = turn(&lane, "t0");
    left.open_turn(&first, &[]).await.unwrap();
    let mut end = close("t0", TurnStatus::Cut);
    end.seal = Some((handoff(&lane, "t0", "h"), HandoffState::Armed));
    left.close_turn(&end).await.unwrap();
    for round in 0..1000 {
        let now = left.handoff(&HandoffId::new("h")).await.unwrap().unwrap();
        assert_eq!(now.state, HandoffState::Armed);
        let claim = |store: &Arc<dyn Store>, side: &str| {
            let (store, row) = (Arc::clone(store), turn(&lane, &format!("{side}{round}")));
            let claims = [(now.handoff.id.clone(), now.revision)];
            tokio::spawn(async move { store.open_turn(&row, &claims).await.unwrap() })
        };
        let (one, two) = (claim(&left, "l"), claim(&right, "r"));
        let won = (one.await.unwrap(), two.await.unwrap());
        assert!(won.0 != won.1, "round {round}: {won:?}");
        let winner = if won.0 { "l" } else { "r" };
        let open = left.open_turns().await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].turn.as_str(), format!("{winner}{round}"));
        let end = close(open[0].turn.as_str(), TurnStatus::Failed);
        assert!(right.close_turn(&end).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_claim_wins_in_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    race(Arc::clone(&store), store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_claim_wins_between_two_handles_on_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("baton.db");
    let left = SqliteStore::open(&path).await.unwrap();
    let right = SqliteStore::open(&path).await.unwrap();
    race(Arc::new(left), Arc::new(right)).await;
}
