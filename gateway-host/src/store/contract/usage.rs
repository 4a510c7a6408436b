//! The usage registry: which reading stays, and when others are told.

use gateway_core::ids::SubscriptionId;
use gateway_core::usage::identity::Login;
use gateway_core::usage::probe::{ProbeEnd, ProbeState};
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};

use super::Place;
use super::samples::at;

fn reading(subscription: &str, used: f64, day: Option<i64>, source: ReadingSource) -> Reading {
    Reading {
        subscription: SubscriptionId::new(subscription),
        window: "five_hour".to_owned(),
        scope: None,
        used_pct: Some(used),
        status: WindowStatus::Allowed,
        resets_at: Some(at(9)),
        duration_mins: Some(300),
        observed_at: day.map(at),
        source,
    }
}

async fn put(place: &Place, readings: &[Reading]) -> i64 {
    let store = place.store().await;
    store.put_readings(readings, at(3)).await.unwrap();
    place.store().await.readings_revision().await.unwrap()
}

pub(super) async fn the_newest_reading_wins(place: &Place) {
    use ReadingSource::{Event, Probe};
    let newest = reading("Claude-Work", 40.0, Some(2), Probe);
    put(
        place,
        &[
            reading("claude-work", 10.0, None, Event),
            reading("claude-work", 20.0, Some(1), Event),
            newest.clone(),
            reading("claude-work", 30.0, Some(1), Event),
        ],
    )
    .await;
    assert_eq!(
        place.store().await.readings().await.unwrap(),
        std::slice::from_ref(&newest)
    );
    // Another window, another scope and another subscription are others.
    let mut weekly = newest.clone();
    weekly.window = "seven_day".to_owned();
    let mut opus = weekly.clone();
    opus.scope = Some(WindowScope::Model("opus".to_owned()));
    let other = reading("a", 1.0, Some(0), Event);
    put(place, &[weekly.clone(), opus.clone(), other.clone()]).await;
    assert_eq!(
        place.store().await.readings().await.unwrap(),
        [other, newest, weekly, opus]
    );
}

pub(super) async fn on_equal_age_the_better_source_wins(place: &Place) {
    use ReadingSource::{Failure, Header, Hub, Rollout};
    for (source, used, stays) in [
        (Hub, 1.0, 1.0),
        (Rollout, 2.0, 1.0),
        (Header, 3.0, 3.0),
        (Header, 4.0, 4.0),
        (Failure, 5.0, 5.0),
        (Hub, 6.0, 5.0),
    ] {
        put(place, &[reading("s", used, Some(1), source)]).await;
        let kept = place.store().await.readings().await.unwrap();
        assert_eq!(kept[0].used_pct, Some(stays), "{source:?}");
    }
}

pub(super) async fn the_revision_grows_with_real_changes_only(place: &Place) {
    use ReadingSource::Event;
    let start = place.store().await.readings_revision().await.unwrap();
    assert_eq!(put(place, &[]).await, start);
    let first = reading("s", 1.0, Some(1), Event);
    let one = put(place, &[first.clone(), reading("t", 1.0, Some(1), Event)]).await;
    assert!(one > start);
    assert_eq!(put(place, &[first.clone(), first]).await, one);
    assert_eq!(put(place, &[reading("s", 9.0, Some(0), Event)]).await, one);
    let nan = reading("s", f64::NAN, Some(2), Event);
    let two = put(place, std::slice::from_ref(&nan)).await;
    assert!(two > one);
    assert_eq!(put(place, &[nan]).await, two);
    assert_eq!(
        place.store().await.readings().await.unwrap()[0].used_pct,
        None
    );
}

pub(super) async fn what_changed_since_is_read_alone(place: &Place) {
    use ReadingSource::Event;
    let (a, b) = (
        reading("a", 1.0, Some(1), Event),
        reading("b", 1.0, Some(1), Event),
    );
    let first = put(place, &[a.clone(), b.clone()]).await;
    let newer = reading("a", 2.0, Some(2), Event);
    let second = put(place, std::slice::from_ref(&newer)).await;
    let store = place.store().await;
    let since = async |seq| store.readings_since(seq).await.unwrap();
    assert_eq!(since(-1).await, [(first, b), (second, newer.clone())]);
    assert_eq!(since(first).await, [(second, newer)]);
    assert_eq!(since(second).await, []);
}

pub(super) async fn what_is_ahead_of_the_clock_gives_way(place: &Place) {
    use ReadingSource::{Event, Failure};
    // `put` says that it is day 3: the clock was set back, or was wrong.
    put(place, &[reading("s", 1.0, Some(9), Event)]).await;
    put(place, &[reading("s", 2.0, Some(2), Failure)]).await;
    put(place, &[reading("s", 3.0, Some(8), Event)]).await;
    let kept = place.store().await.readings().await.unwrap();
    assert_eq!(kept[0].used_pct, Some(2.0));
}

pub(super) async fn a_rollout_never_hides_what_decides(place: &Place) {
    use ReadingSource::{Hub, Rollout};
    put(place, &[reading("s", 1.0, Some(2), Rollout)]).await;
    put(place, &[reading("s", 2.0, Some(1), Hub)]).await;
    put(place, &[reading("s", 3.0, Some(3), Rollout)]).await;
    let kept = place.store().await.readings().await.unwrap();
    assert_eq!(kept[0].used_pct, Some(2.0));
}

pub(super) async fn logins_are_replaced_and_tell_others(place: &Place) {
    let login = |id: &str, mark: &str| Login {
        id: SubscriptionId::new(id),
        upstream: Some("anthropic".to_owned()),
        account_id: None,
        fingerprint: Some(mark.to_owned()),
        email: None,
        plan: None,
        metered: false,
    };
    let put = async |logins: &[Login]| {
        let store = place.store().await;
        store.put_logins(logins).await.unwrap();
        store.readings_revision().await.unwrap()
    };
    let first = put(&[login("b", "1"), login("A", "1")]).await;
    assert_eq!(put(&[login("b", "1")]).await, first, "nothing new");
    assert!(put(&[login("b", "2")]).await > first);
    assert_eq!(
        place.store().await.logins().await.unwrap(),
        [login("A", "1"), login("b", "2")]
    );
}

pub(super) async fn when_a_surface_may_be_asked_again_is_kept(place: &Place) {
    assert_eq!(place.store().await.probe_state("g").await.unwrap(), None);
    let state = ProbeState::default().after(ProbeEnd::Throttled(None), at(1));
    for state in [ProbeState::default(), state] {
        let store = place.store().await;
        store.put_probe_state("g", &state).await.unwrap();
    }
    assert_eq!(
        place.store().await.probe_state("g").await.unwrap(),
        Some(state)
    );
}
