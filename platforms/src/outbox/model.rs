//! A platform that misbehaves by a generated script, and owners that write to it; what must hold is checked at the
//! platform, from what it was asked and when.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::wire::Scope;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Limited(Option<u64>, Scope),
    NotDelivered,
    /// The request works and the answer is lost.
    AnswerLost,
    /// The request is lost, and nobody can tell.
    RequestLost,
    TooLong,
    EditTooOld,
    MessageGone,
}

/// One owner: a message that grows `texts` times, `gap` ms apart, and then ends.
#[derive(Debug, Clone)]
struct Talk {
    channel: u8,
    thread: Option<u8>,
    start: u64,
    texts: u64,
    gap: u64,
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    let scope = prop_oneof![
        Just(Scope::Channel),
        Just(Scope::Kind),
        Just(Scope::Everything)
    ];
    prop_oneof![
        6 => Just(None),
        2 => (prop::option::of(0_u64..9_000), scope).prop_map(|(after, scope)| Some(Fault::Limited(after, scope))),
        1 => Just(Some(Fault::NotDelivered)),
        1 => Just(Some(Fault::AnswerLost)),
        1 => Just(Some(Fault::RequestLost)),
        1 => Just(Some(Fault::TooLong)),
        1 => Just(Some(Fault::EditTooOld)),
        1 => Just(Some(Fault::MessageGone)),
    ]
}

fn talk() -> impl Strategy<Value = Talk> {
    (
        0_u8..3,
        prop::option::of(0_u8..2),
        0_u64..9_000,
        0_u64..12,
        1_u64..3_000,
    )
        .prop_map(|(channel, thread, start, texts, gap)| Talk {
            channel,
            thread,
            start,
            texts,
            gap,
        })
}

/// What stands in one place.
#[derive(Debug, Clone)]
struct Message {
    id: MessageId,
    nonce: String,
    text: String,
}

struct Platform {
    pace: Pace,
    faults: Vec<Option<Fault>>,
    asked: usize,
    messages: HashMap<Place, Vec<Message>>,
    ids: usize,
    /// Writes by channel and kind, for the limits.
    writes: Vec<(Instant, String, Kind)>,
}

impl Platform {
    fn answer(&mut self, work: &Work, now: Instant) -> Done {
        self.writes
            .push((now, work.place.channel.clone(), work.request.kind()));
        let fault = self.faults.get(self.asked).copied().flatten();
        self.asked += 1;
        let limited = |after: Option<u64>, scope| {
            Err(WireError::RateLimited {
                after: after.map(Duration::from_millis),
                scope,
            })
        };
        let lost = || Err(WireError::Uncertain("lost".to_owned()));
        match (fault, &work.request) {
            (Some(Fault::Limited(after, scope)), _) => limited(after, scope),
            (Some(Fault::NotDelivered), _) => Err(WireError::NotDelivered("down".to_owned())),
            (Some(Fault::RequestLost), _) => lost(),
            (Some(Fault::AnswerLost), _) => {
                let _ = self.perform(work);
                lost()
            }
            // A text that was taken once is not too long the second time.
            (Some(Fault::TooLong), Request::Post { nonce, .. })
                if !self.has(&work.place, nonce) =>
            {
                Err(WireError::TooLong)
            }
            (Some(Fault::TooLong), Request::Edit { body, .. }) if body.text.len() > 8 => {
                Err(WireError::TooLong)
            }
            (Some(Fault::EditTooOld), Request::Edit { .. }) => Err(WireError::EditTooOld),
            (Some(Fault::MessageGone), Request::Edit { message, .. }) => {
                let there = self.messages.entry(work.place.clone()).or_default();
                if let Some(at) = there.iter().position(|one| one.id == *message) {
                    there.remove(at);
                }
                Err(WireError::MessageGone)
            }
            _ => self.perform(work),
        }
    }

    fn has(&self, place: &Place, nonce: &str) -> bool {
        let there = self.messages.get(place);
        there.is_some_and(|there| there.iter().any(|one| one.nonce == nonce))
    }

    fn perform(&mut self, work: &Work) -> Done {
        let there = self.messages.entry(work.place.clone()).or_default();
        match &work.request {
            Request::Post { body, nonce } => {
                let known = there.iter().find(|one| one.nonce == *nonce);
                if let (Some(known), Uncertain::SendAgain) = (known, self.pace.uncertain) {
                    return Ok(Some(known.id.clone()));
                }
                self.ids += 1;
                let id = MessageId(self.ids.to_string());
                there.push(Message {
                    id: id.clone(),
                    nonce: nonce.clone(),
                    text: body.text.clone(),
                });
                Ok(Some(id))
            }
            Request::Edit { message, body } => {
                let Some(one) = there.iter_mut().find(|one| one.id == *message) else {
                    return Err(WireError::MessageGone);
                };
                one.text.clone_from(&body.text);
                Ok(None)
            }
            Request::Delete { message } => {
                there.retain(|one| one.id != *message);
                Ok(None)
            }
            Request::LookUp { nonce } => Ok(there
                .iter()
                .find(|one| one.nonce == *nonce)
                .map(|one| one.id.clone())),
        }
    }
}

/// Plays talks against a platform until nothing is left. Requests take 40 ms.
struct Play {
    outbox: Outbox,
    platform: Platform,
    under_way: Vec<(Instant, Work)>,
    slots: Vec<(SlotId, Place)>,
    reports: Vec<Report>,
    most_under_way: HashMap<String, usize>,
}

const LATENCY: Duration = Duration::from_millis(40);

fn play(pace: Pace, talks: &[Talk], faults: Vec<Option<Fault>>) -> Play {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let mut script: Vec<(Instant, usize, u64)> = Vec::new();
    for (index, talk) in talks.iter().enumerate() {
        script.extend((0..=talk.texts).map(|step| (at(talk.start + step * talk.gap), index, step)));
    }
    script.sort_by_key(|(at, index, step)| (*at, *index, *step));
    let mut script = script.into_iter().peekable();
    let mut open: HashMap<usize, SlotId> = HashMap::new();
    let mut play = Play {
        outbox: Outbox::new(pace, "p"),
        platform: Platform {
            pace,
            faults,
            asked: 0,
            messages: HashMap::new(),
            ids: 0,
            writes: Vec::new(),
        },
        under_way: Vec::new(),
        slots: Vec::new(),
        reports: Vec::new(),
        most_under_way: HashMap::new(),
    };
    let mut now = start;
    for _ in 0..200_000 {
        while let Some((_, index, step)) = script.next_if(|(at, ..)| *at <= now) {
            let talk = &talks[index];
            let stage = if step == talk.texts {
                Stage::Final
            } else {
                Stage::Live
            };
            let body = Body::text(format!("{index}: text {step}"));
            match open.get(&index) {
                Some(slot) => play.outbox.show(*slot, body, stage, now),
                None => {
                    let place = Place {
                        channel: talk.channel.to_string(),
                        thread: talk.thread.map(|thread| thread.to_string()),
                    };
                    let slot = play
                        .outbox
                        .open(place.clone(), Worth::Must, body, stage, now);
                    open.insert(index, slot);
                    play.slots.push((slot, place));
                }
            }
        }
        let next = play.start_all(now);
        let ends = play.under_way.iter().map(|(ends, _)| *ends).min();
        let Some(soonest) = [next, ends, script.peek().map(|(at, ..)| *at)]
            .into_iter()
            .flatten()
            .min()
        else {
            return play;
        };
        now = now.max(soonest);
        play.end_due(now, &open);
    }
    panic!("the outbox never comes to rest");
}

impl Play {
    fn start_all(&mut self, now: Instant) -> Option<Instant> {
        loop {
            match self.outbox.next(now) {
                Next::Do(work) => {
                    self.under_way.push((now + LATENCY, work.clone()));
                    let same = self
                        .under_way
                        .iter()
                        .filter(|(_, one)| one.place.channel == work.place.channel);
                    let most = self
                        .most_under_way
                        .entry(work.place.channel.clone())
                        .or_default();
                    *most = (*most).max(same.count());
                }
                Next::Wait(at) => return Some(at),
                Next::Idle => return None,
            }
        }
    }

    fn end_due(&mut self, now: Instant, open: &HashMap<usize, SlotId>) {
        let (due, later) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|(ends, _)| *ends <= now);
        self.under_way = later;
        let due: Vec<(Instant, Work)> = due;
        for (_, work) in due {
            let result = self.platform.answer(&work, now);
            self.outbox.done(work.slot, result, now);
        }
        for report in self.outbox.reports() {
            if let Report::TooLong { slot } = report {
                let index = open
                    .iter()
                    .find(|(_, one)| **one == slot)
                    .map_or(0, |(index, _)| *index);
                let body = Body::text(format!("{index}: cut"));
                self.outbox.show(slot, body, Stage::Final, now);
            }
            self.reports.push(report);
        }
    }

    fn finished(&self, slot: SlotId) -> usize {
        let same =
            |report: &&Report| matches!(report, Report::Finished { slot: one, .. } if *one == slot);
        self.reports.iter().filter(same).count()
    }
}

/// Two hundred conversations stream at once and end together. The last final is out within the platform's own limit for
/// that many plus ten seconds, though the limit was used up by growing texts until then.
#[test]
fn two_hundred_finals_at_once_go_out_as_fast_as_the_platform_allows() {
    let talks: Vec<Talk> = (0..200)
        .map(|channel| Talk {
            channel,
            thread: None,
            start: 0,
            texts: 60,
            gap: 1_000,
        })
        .collect();
    // Slack: 50 edits a minute; Discord: 50 requests a second.
    for (pace, allowed) in [(Pace::SLACK, 240 + 10), (Pace::DISCORD, 4 + 10)] {
        let played = play(pace, &talks, Vec::new());
        let first = played.platform.writes.first().map(|(at, ..)| *at);
        let last = played.platform.writes.last().map(|(at, ..)| *at);
        let ended =
            first.zip(last).map(|(first, last)| last - first).unwrap() - Duration::from_secs(60);
        assert!(
            ended <= Duration::from_secs(allowed),
            "{ended:?} of {allowed} s"
        );
        for (slot, _) in &played.slots {
            assert_eq!(played.finished(*slot), 1);
        }
    }
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![Just(Pace::DISCORD), Just(Pace::SLACK)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever goes wrong for a while: every final text stands exactly once, in the order the messages were opened.
    #[test]
    fn no_final_is_lost_doubled_or_out_of_order(
        pace in pace(),
        talks in prop::collection::vec(talk(), 1..7),
        faults in prop::collection::vec(fault(), 0..60),
    ) {
        let played = play(pace, &talks, faults);
        prop_assert!(played.outbox.is_idle());
        prop_assert_eq!(played.outbox.open_slots(), 0);
        for (slot, _) in &played.slots {
            prop_assert_eq!(played.finished(*slot), 1, "{:?}", played.reports);
        }
        let all: Vec<&Message> = played.platform.messages.values().flatten().collect();
        for (index, talk) in talks.iter().enumerate() {
            let mine: Vec<&str> = all
                .iter()
                .map(|one| one.text.as_str())
                .filter(|text| text.starts_with(&format!("{index}: ")))
                .collect();
            let last = format!("{index}: text {}", talk.texts);
            let cut = format!("{index}: cut");
            prop_assert!(mine == [last.as_str()] || mine == [cut.as_str()], "{mine:?}");
        }
        // In each place the messages that were never posted anew stand in the order they were opened.
        for there in played.platform.messages.values() {
            let order: Vec<u64> = there
                .iter()
                .filter(|one| !one.nonce.contains('.'))
                .map(|one| u64::from_str_radix(one.nonce.trim_start_matches('p'), 16).unwrap())
                .collect();
            prop_assert!(order.is_sorted(), "{order:?}");
        }
    }

    /// One request per channel at a time, and never more in any span than the platform allows.
    #[test]
    fn requests_stay_within_the_limits(
        pace in pace(),
        talks in prop::collection::vec(talk(), 1..7),
        faults in prop::collection::vec(fault(), 0..40),
    ) {
        let played = play(pace, &talks, faults);
        prop_assert!(played.most_under_way.values().all(|most| *most == 1));
        let writes: Vec<_> = played.platform.writes.iter().filter(|(_, _, kind)| *kind != Kind::LookUp).collect();
        let most = |rate: Option<Rate>, of: &dyn Fn(&(Instant, String, Kind)) -> bool| {
            let times: Vec<Instant> = writes.iter().filter(|one| of(one)).map(|(at, ..)| *at).collect();
            rate.is_none_or(|rate| times.iter().all(|first| {
                times.iter().filter(|one| *one >= first && **one < *first + rate.per).count() <= rate.count
            }))
        };
        for channel in ["0", "1", "2"] {
            prop_assert!(most(pace.channel_writes, &|(_, on, _)| on == channel));
            prop_assert!(most(pace.channel_posts, &|(_, on, kind)| on == channel && *kind == Kind::Post));
        }
        prop_assert!(most(pace.all_writes, &|_| true));
        prop_assert!(most(pace.all_edits, &|(_, _, kind)| *kind == Kind::Edit));
    }

    /// Texts between two edits are never sent: no more edits than the time allows.
    #[test]
    fn edits_of_one_message_keep_their_interval(texts in 2_u64..60, gap in 10_u64..400) {
        let talk = Talk { channel: 0, thread: None, start: 0, texts, gap };
        let played = play(Pace::SLACK, &[talk], Vec::new());
        let edits = played.platform.writes.iter().filter(|(_, _, kind)| *kind == Kind::Edit).count() as u64;
        prop_assert!(edits <= texts * gap / 1_500 + 2, "{edits} edits in {} ms", texts * gap);
    }
}
