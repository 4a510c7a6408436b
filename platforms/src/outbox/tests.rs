use std::time::Duration;

use super::*;
use crate::wire::Scope;

const SECOND: Duration = Duration::from_secs(1);

fn place(channel: &str) -> Place {
    Place {
        channel: channel.to_owned(),
        thread: None,
    }
}

fn id(text: &str) -> MessageId {
    MessageId(text.to_owned())
}

/// An outbox, its clock, and short words for what happens.
struct Scene {
    outbox: Outbox,
    now: Instant,
}

impl Scene {
    fn new(pace: Pace) -> Self {
        Self {
            outbox: Outbox::new(pace, "t"),
            now: Instant::now(),
        }
    }

    fn open(&mut self, text: &str, stage: Stage) -> SlotId {
        self.outbox
            .open(place("c"), Worth::Must, Body::text(text), stage, self.now)
    }

    fn show(&mut self, slot: SlotId, text: &str, stage: Stage) {
        self.outbox.show(slot, Body::text(text), stage, self.now);
    }

    /// The next work, the clock moved there.
    fn work(&mut self) -> Option<Work> {
        loop {
            match self.outbox.next(self.now) {
                Next::Do(work) => return Some(work),
                Next::Wait(at) => self.now = at,
                Next::Idle => return None,
            }
        }
    }

    fn line(&mut self) -> String {
        match self.work().map(|work| work.request) {
            Some(Request::Post { body, nonce }) => format!("post {} {nonce}", body.text),
            Some(Request::Edit { message, body }) => format!("edit {message} {}", body.text),
            Some(Request::Delete { message }) => format!("delete {message}"),
            Some(Request::LookUp { nonce }) => format!("look for {nonce}"),
            None => "idle".to_owned(),
        }
    }

    fn done(&mut self, slot: SlotId, result: Done) {
        self.outbox.done(slot, result, self.now);
    }

    fn posted(&mut self, slot: SlotId, message: &str) {
        self.done(slot, Ok(Some(id(message))));
    }
}

#[test]
fn the_newest_text_wins_and_the_last_is_sent_once() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("a", Stage::Live);
    assert_eq!(scene.line(), "post a t0");
    for text in ["ab", "abc"] {
        scene.show(slot, text, Stage::Live);
    }
    assert_eq!(
        scene.outbox.next(scene.now),
        Next::Idle,
        "one request per channel"
    );
    scene.posted(slot, "m");
    assert_eq!(scene.line(), "edit m abc");
    scene.show(slot, "abcd", Stage::Final);
    scene.show(slot, "too late", Stage::Live);
    scene.done(slot, Ok(None));
    assert_eq!(scene.line(), "edit m abcd");
    scene.done(slot, Ok(None));
    assert_eq!(scene.line(), "idle");
    assert!(scene.outbox.is_idle() && scene.outbox.open_slots() == 0);
    let finished = Report::Finished {
        slot,
        message: id("m"),
    };
    assert_eq!(scene.outbox.reports().last(), Some(&finished));
}

#[test]
fn a_final_that_stands_already_needs_no_request() {
    let mut scene = Scene::new(Pace::SLACK);
    let slot = scene.open("a", Stage::Live);
    scene.line();
    scene.posted(slot, "m");
    scene.show(slot, "a", Stage::Final);
    assert_eq!(scene.line(), "idle");
    assert_eq!(scene.outbox.reports().len(), 2);
}

#[test]
fn a_429_is_waited_out_for_as_long_as_it_says() {
    for (after, want) in [(Some(SECOND * 3), SECOND * 3), (None, SECOND * 5)] {
        let mut scene = Scene::new(Pace::DISCORD);
        let slot = scene.open("a", Stage::Final);
        scene.line();
        let scope = Scope::Channel;
        scene.done(slot, Err(WireError::RateLimited { after, scope }));
        assert_eq!(scene.outbox.next(scene.now), Next::Wait(scene.now + want));
        assert_eq!(scene.line(), "post a t0");
    }
}

#[test]
fn a_limit_on_one_kind_stops_only_that_kind_and_a_global_one_all() {
    let limited = |scope| WireError::RateLimited {
        after: Some(SECOND * 9),
        scope,
    };
    for (scope, posts) in [(Scope::Kind, true), (Scope::Everything, false)] {
        let mut scene = Scene::new(Pace::SLACK);
        let first = scene.open("a", Stage::Live);
        scene.line();
        scene.posted(first, "m");
        scene.show(first, "ab", Stage::Live);
        assert_eq!(scene.line(), "edit m ab");
        scene.done(first, Err(limited(scope)));
        let other = Body::text("b");
        scene
            .outbox
            .open(place("d"), Worth::Must, other, Stage::Final, scene.now);
        let goes = matches!(scene.outbox.next(scene.now), Next::Do(_));
        assert_eq!(goes, posts, "{scope:?}");
    }
}

#[test]
fn what_ends_an_answer_goes_before_what_grows() {
    let mut scene = Scene::new(Pace::SLACK);
    let growing: Vec<SlotId> = (0..3)
        .map(|n| {
            let name = place(&format!("c{n}"));
            let slot =
                scene
                    .outbox
                    .open(name, Worth::Must, Body::text("a"), Stage::Live, scene.now);
            scene.work();
            scene.posted(slot, &format!("m{n}"));
            slot
        })
        .collect();
    scene.now += SECOND * 5;
    scene.show(growing[0], "ab", Stage::Live);
    scene.show(growing[1], "ab", Stage::Live);
    scene.now += SECOND;
    scene.show(growing[2], "end", Stage::Final);
    assert_eq!(scene.line(), "edit m2 end");
    assert_eq!(scene.line(), "edit m0 ab");
}

#[test]
fn a_message_too_old_to_edit_is_posted_anew_and_the_old_one_taken_away() {
    for told in [false, true] {
        let mut scene = Scene::new(Pace {
            edit_within: (!told).then_some(SECOND * 3_600),
            ..Pace::DISCORD
        });
        let slot = scene.open("a", Stage::Live);
        scene.line();
        scene.posted(slot, "m");
        scene.now += SECOND * 3_600;
        scene.show(slot, "ab", Stage::Final);
        if told {
            assert_eq!(scene.line(), "edit m ab");
            scene.done(slot, Err(WireError::EditTooOld));
        }
        assert_eq!(scene.line(), "post ab t0.1");
        scene.posted(slot, "n");
        assert_eq!(scene.line(), "delete m");
        scene.done(slot, Err(WireError::MessageGone));
        assert_eq!(scene.line(), "idle");
        assert_eq!(scene.outbox.open_slots(), 0);
    }
}

#[test]
fn a_deleted_answer_comes_back_with_its_final_text_and_a_status_line_does_not() {
    let mut scene = Scene::new(Pace::DISCORD);
    let answer = scene.open("a", Stage::Live);
    scene.line();
    scene.posted(answer, "m");
    scene.show(answer, "ab", Stage::Live);
    scene.line();
    scene.done(answer, Err(WireError::MessageGone));
    scene.show(answer, "abc", Stage::Live);
    assert_eq!(scene.line(), "idle");
    scene.show(answer, "abcd", Stage::Final);
    assert_eq!(scene.line(), "post abcd t0.1");
    scene.posted(answer, "n");
    assert_eq!(scene.line(), "idle");

    let status = Body::text("s");
    let status = scene
        .outbox
        .open(place("c"), Worth::May, status, Stage::Live, scene.now);
    scene.line();
    scene.posted(status, "o");
    scene.show(status, "s2", Stage::Final);
    scene.line();
    scene.outbox.reports();
    scene.done(status, Err(WireError::MessageGone));
    assert_eq!(scene.line(), "idle");
    assert!(matches!(
        scene.outbox.reports()[..],
        [Report::Dropped {
            unsent: Some(_),
            ..
        }]
    ));
}

#[test]
fn a_place_that_is_gone_drops_what_was_meant_for_it_and_says_so() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slots = [scene.open("a", Stage::Final), scene.open("b", Stage::Live)];
    scene.line();
    scene.done(slots[0], Err(WireError::PlaceGone("archived".to_owned())));
    assert_eq!(scene.line(), "idle");
    let dropped: Vec<Option<String>> = scene
        .outbox
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::Dropped { unsent, .. } => Some(unsent.map(|body| body.text)),
            _ => None,
        })
        .collect();
    assert_eq!(dropped, [Some("a".to_owned()), Some("b".to_owned())]);
}

#[test]
fn a_post_of_unknown_fate_is_not_posted_twice() {
    let unknown = || Err(WireError::Uncertain("reset".to_owned()));
    // Where the nonce is known, the same words under the same nonce, though newer ones wait.
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("a", Stage::Live);
    scene.line();
    scene.show(slot, "ab", Stage::Final);
    scene.done(slot, unknown());
    assert_eq!(scene.line(), "post a t0");
    scene.posted(slot, "m");
    assert_eq!(scene.line(), "edit m ab");

    // Where it is not, by looking.
    let mut scene = Scene::new(Pace::SLACK);
    let slot = scene.open("a", Stage::Final);
    scene.line();
    scene.done(slot, unknown());
    assert_eq!(scene.line(), "look for t0");
    scene.done(slot, Ok(None));
    assert_eq!(scene.line(), "post a t0");
    scene.done(slot, unknown());
    assert_eq!(scene.line(), "look for t0");
    scene.posted(slot, "m");
    assert_eq!(scene.line(), "idle");
    assert_eq!(scene.outbox.open_slots(), 0);
}

#[test]
fn what_stays_undeliverable_is_given_up_with_a_report() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("a", Stage::Final);
    let next = scene.open("b", Stage::Final);
    let start = scene.now;
    while let Some(work) = scene.work() {
        if work.slot == next {
            break;
        }
        scene.done(slot, Err(WireError::NotDelivered("refused".to_owned())));
    }
    let waited = scene.now - start;
    assert!(
        waited >= Pace::DISCORD.give_up_after && waited < Pace::DISCORD.give_up_after + SECOND * 31
    );
    assert!(matches!(
        scene.outbox.reports()[..],
        [Report::Dropped { .. }]
    ));
}

#[test]
fn a_text_too_long_waits_for_a_shorter_one() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("long", Stage::Final);
    scene.line();
    scene.done(slot, Err(WireError::TooLong));
    assert_eq!(scene.outbox.reports(), [Report::TooLong { slot }]);
    assert_eq!(scene.line(), "idle");
    scene.show(slot, "short", Stage::Final);
    assert_eq!(scene.line(), "post short t0");
}

#[test]
fn a_message_taken_away_leaves_nothing() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("a", Stage::Live);
    scene.line();
    scene.outbox.remove(slot);
    scene.posted(slot, "m");
    assert_eq!(scene.line(), "delete m");
    scene.done(slot, Ok(None));
    assert_eq!(
        (scene.line(), scene.outbox.open_slots()),
        ("idle".to_owned(), 0)
    );
    let unposted = scene.open("b", Stage::Live);
    scene.outbox.remove(unposted);
    assert_eq!(scene.line(), "idle");
}

#[test]
fn quiet_channels_are_forgotten() {
    let mut scene = Scene::new(Pace::DISCORD);
    for n in 0..50 {
        let name = place(&n.to_string());
        let slot = scene
            .outbox
            .open(name, Worth::Must, Body::text("a"), Stage::Final, scene.now);
        scene.work();
        scene.now += SECOND;
        scene.posted(slot, "m");
    }
    assert!(scene.outbox.gate.channels() < 8);
}

#[test]
fn a_slot_that_is_closed_shows_its_last_text_and_is_forgotten() {
    let mut scene = Scene::new(Pace::DISCORD);
    let slot = scene.open("a", Stage::Live);
    scene.line();
    scene.posted(slot, "m");
    scene.show(slot, "ab", Stage::Live);
    scene.outbox.close(slot);
    assert_eq!(scene.line(), "edit m ab");
    scene.done(slot, Ok(None));
    let other = scene.open("b", Stage::Live);
    scene.line();
    scene.posted(other, "n");
    scene.outbox.close(other);
    assert_eq!(
        (scene.line(), scene.outbox.open_slots()),
        ("idle".to_owned(), 0)
    );
}
