//! Operators by pairing.

use gateway_core::ids::ProfileId;

use super::super::PairedOperator;
use super::Place;
use super::samples::at;

fn ann(profile: &str, platform: &str) -> PairedOperator {
    PairedOperator {
        profile: ProfileId::new(profile),
        platform: platform.to_owned(),
        person: "U1".to_owned(),
        name: "Ann".to_owned(),
        paired_at: at(1),
    }
}

pub(super) async fn a_paired_operator_stays_until_unpaired(place: &Place) {
    let (here, there) = (ann("default", "slack"), ann("work", "discord"));
    for one in [&there, &here, &here] {
        place.store().await.pair_operator(one).await.unwrap();
    }
    let renamed = PairedOperator {
        name: "Anna".to_owned(),
        ..here.clone()
    };
    place.store().await.pair_operator(&renamed).await.unwrap();
    let paired = place.store().await.paired_operators().await.unwrap();
    assert_eq!(paired, [renamed, there.clone()]);
    let store = place.store().await;
    let gone = store.unpair_operators(&here.profile, "slack").await;
    assert_eq!(gone.unwrap(), 1);
    let none = store.unpair_operators(&there.profile, "slack").await;
    assert_eq!(none.unwrap(), 0);
    assert_eq!(store.paired_operators().await.unwrap(), [there]);
}
