//! Rows beside the contract's cases.

use super::*;
use crate::spend::Usd;
use crate::switch::facts::{Class, Selection};
use crate::switch::testing::{HOUR_S, at, base, login, now, regroup};

/// A child that wants Claude, which is out for three hours; Codex has room.
fn child(change: impl FnOnce(&mut Facts, &mut ChildRequest)) -> Admission {
    let (mut facts, mut request) = (base(), ChildRequest::default());
    facts.class = Class::Background;
    change(&mut facts, &mut request);
    admit(&regroup(facts), &request, now()).admission
}

/// Only a paid fallback, and Claude back in so many seconds.
fn paid_only(facts: &mut Facts, resets_in: i64) {
    facts.logins.push(login("prepaid", "api"));
    facts.settings.paid.enabled = true;
    facts.readings[0].resets_at = Some(at(resets_in));
    facts.chain = vec![Selection {
        price: Some(Usd::ZERO),
        ..Selection::new("prepaid", None)
    }];
}

#[test]
fn a_child_starts_falls_back_waits_or_learns_why_not() {
    use RejectReason::{Cooling, Exhausted, Privilege, Stale};
    let fallback = Admission::Fallback(Exhausted, 0);
    assert_eq!(child(|_, _| ()), fallback);
    let late = child(|_, request| request.waiting_since = Some(at(-25 * HOUR_S)));
    assert_eq!(late, fallback, "room found at the deadline still admits");
    let waited = |seconds: i64| {
        child(move |facts, request| {
            facts.chain.clear();
            request.waiting_since = Some(at(-seconds));
        })
    };
    let wait = Admission::Wait(AdmissionWait::Target(Exhausted), Some(at(3 * HOUR_S)));
    assert_eq!(waited(24 * HOUR_S - 1), wait);
    assert_eq!(waited(24 * HOUR_S), Admission::Expired);
    let cooling = child(|facts, _| {
        facts.chain.clear();
        facts.readings[0].used_pct = Some(10.0);
        facts.logins[0].last_start_failed_at = Some(at(-120));
    });
    assert_eq!(
        cooling,
        Admission::Wait(AdmissionWait::Target(Cooling), Some(at(480)))
    );
    let cooling_and_unable = child(|facts, _| {
        facts.logins[0].last_start_failed_at = Some(at(-120));
        facts.logins[0].lacks = vec!["approvals".to_owned()];
        facts.thread.requires = vec!["approvals".to_owned()];
    });
    assert_eq!(
        cooling_and_unable,
        Admission::Refuse(Privilege),
        "no wait helps"
    );
    let stale = child(|facts, _| {
        facts.chain.clear();
        facts.readings[0].observed_at = Some(at(-601));
    });
    assert_eq!(
        stale,
        Admission::Wait(AdmissionWait::Target(Stale), None),
        "nobody knows until when"
    );
}

#[test]
fn money_waits_for_a_near_reset_and_a_free_fallback_does_not() {
    use RejectReason::Exhausted;
    let near = child(|facts, _| paid_only(facts, HOUR_S));
    assert_eq!(
        near,
        Admission::Wait(AdmissionWait::CheaperThanPaid, Some(at(HOUR_S)))
    );
    let far = child(|facts, _| paid_only(facts, HOUR_S + 1));
    assert_eq!(far, Admission::Fallback(Exhausted, 0));
    let free = child(|facts, _| facts.readings[0].resets_at = Some(at(60)));
    assert_eq!(free, Admission::Fallback(Exhausted, 0));
}

#[test]
fn what_ends_before_any_number_is_looked_at() {
    let off = child(|facts, _| facts.settings.enabled = false);
    assert_eq!(off, Admission::Admit(AdmitReason::Disabled));
    let refused = child(|facts, _| {
        facts.settings.enabled = false;
        facts.logins[0].enabled = false;
    });
    assert_eq!(refused, Admission::Refuse(RejectReason::Disabled));
    let twice = child(|_, request| request.duplicate = true);
    assert_eq!(twice, Admission::Duplicate);
    let both = child(|_, request| (request.duplicate, request.cancelled) = (true, true));
    assert_eq!(both, Admission::Cancelled);
    assert_eq!(
        child(|facts, _| facts.source = None),
        Admission::Refuse(RejectReason::Unknown)
    );
}
