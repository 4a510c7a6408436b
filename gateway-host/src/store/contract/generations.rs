//! Generations: a session is retired once, stays retired, and programs find their conversations again.

use gateway_core::bridge::Message;
use gateway_core::bridge::digest::{Digest, Key};
use gateway_core::bridge::lineage::Seen;
use gateway_core::bridge::rotation::{Reason, Swap};
use gateway_core::ids::{ConversationId, ProfileId, ProviderSessionId, SubscriptionId};
use gateway_core::journal::TurnStatus;

use super::super::generations::{LANDMARKS, RetiredSession, Retirement, Told};
use super::Place;
use super::samples::{at, close, exchange, lane, open_and_close, turn};

const BASE: &str = "baton-5a36669b9a22d7cc";

fn wish(session: &str) -> Retirement {
    Retirement {
        base: BASE.to_owned(),
        conversation: ConversationId::new("c1"),
        subscription: SubscriptionId::new("Claude-Work"),
        session: ProviderSessionId::new(session),
        reason: Reason::Overflow,
        at: at(1),
    }
}

async fn note(place: &Place, session: &str) {
    let wish = wish(session);
    let store = place.store().await;
    let noted = store.note_provider_session(&wish.conversation, &wish.subscription, &wish.session);
    noted.await.unwrap();
}

async fn live(place: &Place) -> Option<String> {
    let wish = wish("any");
    let store = place.store().await;
    let row = store
        .provider_session(&wish.conversation, &wish.subscription)
        .await
        .unwrap();
    row.map(|row| row.id.as_str().to_owned())
}

async fn retire(place: &Place, session: &str) -> Swap {
    place
        .store()
        .await
        .retire_session(&wish(session))
        .await
        .unwrap()
}

/// Cases 19, 22 and 53: whoever meets the same full session joins its successor, after a restart too.
pub(super) async fn a_session_is_retired_once(place: &Place) {
    note(place, "s0").await;
    assert_eq!(retire(place, "s0").await, Swap::Retired { generation: 1 });
    assert_eq!(live(place).await, None);
    assert_eq!(retire(place, "s0").await, Swap::Joined { generation: 1 });
    note(place, "s1").await;
    assert_eq!(retire(place, "s0").await, Swap::Joined { generation: 1 });
    assert_eq!(live(place).await.as_deref(), Some("s1"));
    assert_eq!(retire(place, "s1").await, Swap::Retired { generation: 2 });
    let store = place.store().await;
    let other = SubscriptionId::new("gpt-plus");
    assert_eq!(
        store
            .generation(BASE, &wish("").subscription)
            .await
            .unwrap(),
        2
    );
    assert_eq!(store.generation(BASE, &other).await.unwrap(), 0);
    assert_eq!(
        store
            .generation("baton-u-5a36669b9a22d7cc", &wish("").subscription)
            .await
            .unwrap(),
        0
    );
    let retired = |generation, session: &str| RetiredSession {
        subscription: wish("").subscription,
        generation,
        session: ProviderSessionId::new(session),
        reason: Reason::Overflow,
        at: at(1),
    };
    let known = store.retired_sessions(BASE).await.unwrap();
    assert_eq!(known, [retired(0, "s0"), retired(1, "s1")]);
}

/// A late report of a retired session changes nothing, neither while a turn runs nor when it ends.
pub(super) async fn a_retired_session_never_comes_back(place: &Place) {
    note(place, "s0").await;
    retire(place, "s0").await;
    note(place, "s0").await;
    assert_eq!(live(place).await, None);
    note(place, "s1").await;
    note(place, "s0").await;
    assert_eq!(live(place).await.as_deref(), Some("s1"));

    let lane = lane("a");
    let mut end = close("t1", TurnStatus::Answered);
    end.exchanges = vec![exchange(1)];
    end.session = Some((wish("").subscription, ProviderSessionId::new("s0")));
    let row = turn(&lane, "t1");
    let store = place.store().await;
    let retirement = Retirement {
        conversation: row.conversation.clone(),
        base: "baton-1111111111111111".to_owned(),
        ..wish("s0")
    };
    store
        .note_provider_session(
            &row.conversation,
            &retirement.subscription,
            &retirement.session,
        )
        .await
        .unwrap();
    store.retire_session(&retirement).await.unwrap();
    open_and_close(place, &lane, &end).await;
    let session = place
        .store()
        .await
        .provider_session(&row.conversation, &retirement.subscription)
        .await
        .unwrap();
    assert_eq!(session, None);
}

/// Case 26: what was opened for a request that does not fit is forgotten, and the generation stands still.
pub(super) async fn a_session_that_did_not_fit_is_forgotten(place: &Place) {
    let wish = wish("s0");
    let forget = async |session: &str| {
        let id = ProviderSessionId::new(session);
        let store = place.store().await;
        let forgotten = store.forget_session(&wish.conversation, &wish.subscription, &id);
        forgotten.await.unwrap();
    };
    note(place, "s0").await;
    forget("another").await;
    assert_eq!(live(place).await.as_deref(), Some("s0"));
    forget("s0").await;
    assert_eq!(live(place).await, None);
    let store = place.store().await;
    assert_eq!(store.generation(BASE, &wish.subscription).await.unwrap(), 0);
    note(place, "s1").await;
    assert_eq!(live(place).await.as_deref(), Some("s1"));
}

/// Cases 45 and 53: what was told is kept per lane, and replaced.
pub(super) async fn what_was_told_is_kept(place: &Place) {
    let key = Key::of_profile(&[7; 32], "default");
    let told = |text: &str| Told {
        conversation: ConversationId::new(text),
        seen: Seen::after(&key, &[Message::new("user", text)], "a"),
    };
    let (one, other) = (lane("a"), lane("b"));
    assert_eq!(place.store().await.told(&one).await.unwrap(), None);
    for (lane, text) in [(&one, "q1"), (&other, "x"), (&one, "q2")] {
        let store = place.store().await;
        store.tell(lane, &told(text), &[]).await.unwrap();
    }
    assert_eq!(
        place.store().await.told(&one).await.unwrap(),
        Some(told("q2"))
    );
    assert_eq!(
        place.store().await.told(&other).await.unwrap(),
        Some(told("x"))
    );
}

/// Cases 13 and 20: landmarks are bounded, the newest stay, and losing them loses no retirement.
pub(super) async fn landmarks_lead_back_and_are_bounded(place: &Place) {
    let key = Key::of_profile(&[7; 32], "default");
    let told = Told {
        conversation: ConversationId::new("c1"),
        seen: Seen::after(&key, &[], ""),
    };
    let (one, other) = (lane("a"), lane("b"));
    note(place, "s0").await;
    retire(place, "s0").await;
    let find = async |profile: &str, digests: &[u64]| {
        let digests: Vec<Digest> = digests.iter().copied().map(Digest).collect();
        let store = place.store().await;
        store
            .landmark(&ProfileId::new(profile), &digests)
            .await
            .unwrap()
    };
    let store = place.store().await;
    store
        .tell(&one, &told, &[Digest(1), Digest(2)])
        .await
        .unwrap();
    store
        .tell(&other, &told, &[Digest(2), Digest(3)])
        .await
        .unwrap();
    assert_eq!(
        find("default", &[9, 2, 1]).await,
        Some(other.session.clone())
    );
    assert_eq!(find("default", &[1]).await, Some(one.session.clone()));
    assert_eq!(find("other", &[1, 2, 3]).await, None);
    assert_eq!(find("default", &[]).await, None);
    let many: Vec<Digest> = (10..10 + LANDMARKS as u64 - 1).map(Digest).collect();
    store.tell(&one, &told, &many).await.unwrap();
    assert_eq!(find("default", &[1]).await, None);
    assert_eq!(find("default", &[2]).await, None);
    assert_eq!(find("default", &[3]).await, Some(other.session.clone()));
    assert_eq!(
        store
            .generation(BASE, &wish("").subscription)
            .await
            .unwrap(),
        1
    );
}
