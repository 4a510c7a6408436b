//! Random walks over whole conversations: every kind of end, tools, stops, restarts, queued messages, new conversations
//! and passing time, on several lanes at once. After each round the promises are checked against what was shown, sent
//! and stored. A failure names its seed; the same seed draws the same walk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway_core::event::CallOutcome;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::handoff::HandoffState;
use gateway_core::ids::SessionKey;
use gateway_core::message::{Content, Origin, ReplyOp};
use gateway_host::store::Lane;
use jiff::SignedDuration;
use platforms::recording::Record;
use providers::scripted::{Act, SeenAttempt};
use serde_json::json;
use support::World;

const SUBS: [&str; 3] = ["a", "b", "c"];
const KINDS: [FailureKind; 11] = [
    FailureKind::RateLimit,
    FailureKind::Billing,
    FailureKind::UpstreamRateLimit,
    FailureKind::Overloaded,
    FailureKind::Timeout,
    FailureKind::Transport,
    FailureKind::Auth,
    FailureKind::ContextOverflow,
    FailureKind::ContentFilter,
    FailureKind::BadRequest,
    FailureKind::Crashed,
];

#[tokio::test(flavor = "multi_thread")]
async fn random_walks_keep_the_promises() {
    Walk::run(1, 1, 20).await;
    Walk::run(2, 4, 24).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn soak_random_walks_keep_the_promises() {
    if std::env::var_os("BATON_SOAK").is_none() {
        println!("SKIPPED: the long walks run with BATON_SOAK=1 (scripts/soak)");
        return;
    }
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (points, seed) = (
        number("BATON_SOAK_POINTS", 300),
        number("BATON_SOAK_SEED", 1),
    );
    let mut left = points;
    for walk in 0.. {
        let turns = left.min(60);
        Walk::run(
            seed.wrapping_mul(1_000).wrapping_add(walk),
            [1, 3, 6][walk as usize % 3],
            turns,
        )
        .await;
        left -= turns;
        if left == 0 {
            break;
        }
    }
}

/// What a round does with the turns it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meddling {
    None,
    /// Every lane's turn is stopped while it works.
    Stop,
    /// The gateway is stopped in order and started again while they work.
    Restart,
}

/// The scripts' dice: what request `number` meets on a subscription depends on the seed alone.
#[derive(Debug, Clone, Copy)]
struct Dice(u64);

impl Dice {
    /// A number below `sides`. SplitMix64's finisher over the question.
    fn roll(self, question: &str, number: u64, sides: u64) -> u64 {
        let mut x = question.bytes().fold(self.0 ^ (number << 20), |x, byte| {
            x.rotate_left(7) ^ u64::from(byte)
        });
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            x = (x ^ (x >> 30)).wrapping_mul(factor);
        }
        (x ^ (x >> 31)) % sides
    }

    fn meddling(self, round: u64) -> Meddling {
        match self.roll("meddling", round, 6) {
            0 => Meddling::Stop,
            1 => Meddling::Restart,
            _ => Meddling::None,
        }
    }
}

struct Walk {
    world: World,
    dice: Dice,
    lanes: Vec<LaneModel>,
    /// Requests sent so far; request `n` goes to lane `n % lanes`.
    asked: u64,
    /// Prompts looked at so far, per subscription.
    read: BTreeMap<&'static str, usize>,
    seen_turns: usize,
    /// What was delivered before this round.
    delivered: usize,
    /// Whether scripts may wait to be stopped: somebody will.
    waits: Arc<AtomicBool>,
}

struct LaneModel {
    lane: Lane,
    /// Requests that stand in an armed handoff.
    pending: BTreeSet<u64>,
    /// Requests of cut turns that a later turn was told of.
    told: BTreeSet<u64>,
}

impl Walk {
    async fn run(seed: u64, lanes: u64, turns: u64) {
        let dice = Dice(seed);
        let builder = SUBS
            .iter()
            .fold(World::builder(), |world, sub| world.plan(sub));
        let world = builder.build().await;
        let waits = Arc::new(AtomicBool::new(false));
        for sub in SUBS {
            let waits = Arc::clone(&waits);
            let decide =
                move |seen: &SeenAttempt| script(dice, sub, seen, waits.load(Ordering::SeqCst));
            world.sub(sub).otherwise(decide);
        }
        let lane = |number| LaneModel {
            lane: Lane {
                profile: "default".into(),
                session: SessionKey::new(format!("agent:main:recording:{number}")),
            },
            pending: BTreeSet::new(),
            told: BTreeSet::new(),
        };
        let mut walk = Self {
            world,
            dice,
            lanes: (0..lanes).map(lane).collect(),
            asked: 0,
            read: BTreeMap::new(),
            seen_turns: 0,
            delivered: 0,
            waits,
        };
        let mut round = 0;
        while walk.asked < turns {
            let at = format!("seed {seed}, {lanes} lanes, round {round}");
            walk.round(round, &at).await;
            round += 1;
        }
        walk.world.stop().await;
        walk.check_transcripts(seed);
    }

    async fn round(&mut self, round: u64, at: &str) {
        let queued = self.dice.roll("queued", round, 4) == 0;
        let meddled = self.dice.meddling(round) != Meddling::None;
        self.waits.store(meddled, Ordering::SeqCst);
        self.delivered = self.world.surface.record().delivered.len();
        let mut asked = Vec::new();
        for _ in 0..(if queued { 2 } else { 1 }) {
            for lane in 0..self.lanes.len() {
                let number = self.asked;
                self.asked += 1;
                self.send(lane, Content::Text(format!("please do request-{number}.")))
                    .await;
                asked.push((lane, number));
            }
        }
        self.meddle(round, &asked).await;
        self.world.gateway().idle().await;
        self.check(&asked, at).await;
        self.world.pass(SignedDuration::from_mins(
            10 * i64::try_from(self.dice.roll("pass", round, 12)).unwrap_or(0),
        ));
        for lane in 0..self.lanes.len() {
            if self.dice.roll("new", round * 10 + lane as u64, 9) == 0 {
                self.new_conversation(lane, at).await;
            }
        }
    }

    async fn send(&mut self, lane: usize, content: Content) {
        let mut inbound = self.world.inbound(content, Origin::Human);
        inbound.session = self.lanes[lane].lane.session.clone();
        inbound.target.address = lane.to_string();
        self.world.gateway().receive(inbound).await;
    }

    async fn command(&mut self, lane: usize, name: &str) {
        let (name, args) = (name.to_owned(), String::new());
        self.send(lane, Content::Command { name, args }).await;
    }

    /// Once every first turn of the round works or has ended, what the dice say happens to them.
    async fn meddle(&mut self, round: u64, asked: &[(usize, u64)]) {
        let meddling = self.dice.meddling(round);
        if meddling == Meddling::None {
            return;
        }
        // The first message of each lane; another may be queued behind it.
        let first: Vec<_> = asked.iter().take(self.lanes.len()).copied().collect();
        let from = self.delivered;
        let works_or_ended = |record: &Record, (lane, number): &(usize, u64)| {
            let lane = lane.to_string();
            let new = record.delivered.iter().skip(from);
            new.filter(|one| one.to.address == lane)
                .any(|one| match &one.op {
                    ReplyOp::Answer { text, done, .. } => *done || text.contains(&working(*number)),
                    ReplyOp::Notice { .. } => true,
                    _ => false,
                })
        };
        self.world
            .surface
            .wait_for(|record| first.iter().all(|asked| works_or_ended(record, asked)))
            .await;
        self.waits.store(false, Ordering::SeqCst);
        match meddling {
            Meddling::Restart => self.world.restart().await,
            Meddling::Stop => {
                for (lane, _) in &first {
                    self.command(*lane, "stop").await;
                }
            }
            Meddling::None => (),
        }
    }

    async fn new_conversation(&mut self, lane: usize, at: &str) {
        self.command(lane, "new").await;
        self.lanes[lane].pending.clear();
        let armed = self.armed(lane).await;
        assert!(armed.is_empty(), "{at}: /new left {armed:?} armed");
    }

    /// The promises, for every request of the round.
    async fn check(&mut self, asked: &[(usize, u64)], at: &str) {
        let open = self.world.store.open_turns().await.expect("readable");
        assert!(open.is_empty(), "{at}: left open: {open:?}");
        let record = self.world.surface.record();
        let mut fates: BTreeMap<u64, Vec<Fate>> = BTreeMap::new();
        let turns = record.turns();
        for turn in turns.iter().skip(self.seen_turns) {
            let row = self
                .world
                .store
                .turn(turn)
                .await
                .expect("readable")
                .expect("a turn that was shown");
            let lines = record.status_lines(turn);
            assert!(lines.len() <= 1, "{at}: {lines:?}");
            let fate =
                Fate::of(record.times_done(turn), &record.notices(turn)).unwrap_or_else(|| {
                    panic!(
                        "{at}: {} has no single outcome: {:#?}",
                        row.request,
                        record.of(turn).collect::<Vec<_>>()
                    )
                });
            fates
                .entry(
                    numbers(&row.request)
                        .into_iter()
                        .max()
                        .expect("every request has a number"),
                )
                .or_default()
                .push(fate);
        }
        self.seen_turns = turns.len();
        let lockouts = gateway_host::cooling::lockout::Lockouts::of(&self.world.settings.root);
        for name in SUBS {
            lockouts.clear(&name.into()); // the operator logs in again: else nobody is left to walk to
        }
        let prompts = self.new_prompts();
        for (lane, number) in asked {
            self.check_request(*lane, *number, fates.remove(number), &prompts, at);
        }
        assert!(
            fates.is_empty(),
            "{at}: turns of nobody's request: {fates:?}"
        );
        for lane in 0..self.lanes.len() {
            let armed = self.armed(lane).await;
            let pending = &self.lanes[lane].pending;
            assert!(
                armed == *pending,
                "{at}: armed {armed:?}, expected {pending:?}"
            );
        }
    }

    fn check_request(
        &mut self,
        lane: usize,
        number: u64,
        fates: Option<Vec<Fate>>,
        prompts: &[String],
        at: &str,
    ) {
        let LaneModel { pending, told, .. } = &mut self.lanes[lane];
        let mine = prompts
            .iter()
            .filter(|prompt| numbers(prompt).into_iter().max() == Some(number));
        for prompt in mine {
            let carried: BTreeSet<u64> = numbers(prompt)
                .into_iter()
                .filter(|other| *other != number)
                .collect();
            assert!(
                carried.is_subset(pending),
                "{at}: request {number} was told of {carried:?}, pending were {pending:?}:\n{prompt}"
            );
            told.extend(carried);
        }
        match fates.as_deref() {
            Some([Fate::Answered]) => {
                assert!(
                    pending.is_subset(told),
                    "{at}: request {number} was answered without {pending:?}"
                );
                pending.clear();
            }
            // Stopped by the person: what it carried is shown, never injected again.
            Some([Fate::Stopped]) => pending.clear(),
            Some([Fate::Cut]) => drop(pending.insert(number)),
            // Queued when the gateway ended: sealed by the next start, which has nobody to tell.
            None => drop(pending.insert(number)),
            other => panic!("{at}: request {number} ended as {other:?}"),
        }
    }

    /// Prompts that left since the last look.
    fn new_prompts(&mut self) -> Vec<String> {
        let mut new = Vec::new();
        for sub in SUBS {
            let all = self.world.sub(sub).prompts();
            let read = self.read.insert(sub, all.len()).unwrap_or(0);
            new.extend(all.into_iter().skip(read));
        }
        new
    }

    /// Requests that stand in armed handoffs of the lane.
    async fn armed(&self, lane: usize) -> BTreeSet<u64> {
        let stored = self
            .world
            .store
            .handoffs_of(&self.lanes[lane].lane)
            .await
            .expect("readable");
        let armed = stored
            .iter()
            .filter(|stored| stored.state == HandoffState::Armed);
        armed
            .flat_map(|stored| numbers(&stored.handoff.request))
            .collect()
    }

    /// No session was told of the same handoff twice.
    fn check_transcripts(&self, seed: u64) {
        let mut files = 0;
        for sub in SUBS {
            let folder = self.world.home.path().join("transcripts").join(sub);
            for file in std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
            {
                files += 1;
                let text = std::fs::read_to_string(file.path()).expect("readable");
                let mut told = BTreeSet::new();
                for rest in text.split("[handoff ").skip(1) {
                    let id = rest.split(']').next().unwrap_or_default();
                    assert!(
                        told.insert(id.to_owned()),
                        "seed {seed}: {id} stands twice in {:?}",
                        file.path()
                    );
                }
            }
        }
        assert!(files > 0, "no session left a transcript");
    }
}

/// How a turn visibly ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Cut,
    Stopped,
}

impl Fate {
    /// `None` = there is no outcome, or more than one.
    fn of(times_done: usize, notices: &[&str]) -> Option<Self> {
        let count = |sign: &str| {
            notices
                .iter()
                .filter(|notice| notice.starts_with(sign))
                .count()
        };
        match (times_done, count("⏹️"), count("⛔ Turn cut")) {
            (1, 0, 0) if notices.is_empty() => Some(Self::Answered),
            (0, 1, 0) if notices.len() == 1 => Some(Self::Stopped),
            (0 | 1, 0, 1) => Some(Self::Cut),
            _ => None,
        }
    }
}

/// What a subscription does with an attempt.
fn script(dice: Dice, sub: &str, seen: &SeenAttempt, waits: bool) -> Vec<Act> {
    let number = numbers(&seen.prompt).into_iter().max().unwrap_or(0);
    let roll = |question: &str, sides| dice.roll(&format!("{question} {sub}"), number, sides);
    let mut acts = Vec::new();
    if roll("text", 3) > 0 {
        acts.push(Act::text(format!("Begun with {number}. ")));
    }
    if roll("retract", 6) == 0 {
        acts.extend([
            Act::NewBlock,
            Act::text("no, "),
            Act::Retract { from_block: 1 },
        ]);
    }
    let calls = roll("calls", 3);
    for call in 0..calls {
        let id = format!("c{call}");
        acts.push(Act::call(
            &id,
            "terminal",
            &json!({ "command": format!("step {call}") }),
        ));
        if roll("open call", 3) > 0 || call + 1 < calls {
            let outcome = [
                CallOutcome::Completed,
                CallOutcome::Failed,
                CallOutcome::Denied,
            ][call as usize % 3];
            acts.push(Act::result(&id, outcome, "done"));
        }
    }
    match roll("end", 10) {
        2..=7 if waits => acts.extend([Act::text(working(number)), Act::WaitForStop]),
        0..=5 => acts.extend([Act::text(format!("Answer to {number}.")), Act::Answer]),
        6 => acts.push(Act::Crash),
        _ => {
            let at = usize::try_from(roll("kind", KINDS.len() as u64)).unwrap_or(0);
            let scope = if at % 2 == 0 {
                FailureScope::Account
            } else {
                FailureScope::Request
            };
            acts.push(Act::Fail(Failure::new(KINDS[at], scope, "refused")));
        }
    }
    acts
}

fn working(number: u64) -> String {
    format!("Working on {number}!")
}

/// The numbers of the requests a text speaks of. What a successor of a full session is told of earlier ones is history, not carried.
fn numbers(text: &str) -> Vec<u64> {
    const RECAP: &str =
        "What was said earlier in this conversation, in a session that is full now:";
    let text = match text.split_once(RECAP) {
        Some((_, rest)) => rest
            .rsplit_once("The conversation goes on from here.")
            .map_or(rest, |(_, now)| now),
        None => text,
    };
    let after = text.split("request-").skip(1);
    after
        .filter_map(|rest| rest.split('.').next()?.parse().ok())
        .collect()
}
