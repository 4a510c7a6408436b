//! `kill -9` of the real gateway at points spread over a turn's life: what was acknowledged is answered, carried or
//! visible; nothing is injected twice, nothing is replayed, nothing is left running. Counted from what a program that
//! plays `claude` was told and did, and from the transcripts it wrote.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gateway_host::store::Store;
use gateway_host::store::sqlite::SqliteStore;
use serde_json::{Value, json};
use support::gateway::Rig;

/// Kills in `scripts/test`; `scripts/soak` does [`SOAK_POINTS`], or as many as `BATON_SOAK_POINTS` says.
const POINTS: usize = 60;
const SOAK_POINTS: usize = 300;
/// How many points run at once.
const AT_ONCE: usize = 2;
/// The latest extra between the event that marks a point and the kill, in microseconds.
const EXTRA_US: u64 = 8_000;

const ALPHA: &str = "alpha: tidy the shed";
const BETA: &str = "beta: sweep the yard";
const GAMMA: &str = "gamma: go on";
const DELTA: &str = "delta: anything left?";

/// How a request looks when a handoff carries it.
fn carried(request: &str) -> String {
    format!("Original request: {request}")
}

/// What the program does when it reads which request; the first that fits.
fn script() -> Value {
    let job = |when: &str, name: &str, end: &str| {
        json!({"when": when, "steps": [
            {"text": format!("Looking at {name}. ")},
            {"call": {"id": format!("{name}-1"), "input": {"command": format!("first {name}")}}},
            {"pause_ms": 6},
            {"result": {"id": format!("{name}-1"), "text": "first done"}},
            {"text": format!("More of {name}. ")},
            {"call": {"id": format!("{name}-2"), "input": {"command": format!("second {name}")}, "helper": true}},
            {"pause_ms": 6},
            {"result": {"id": format!("{name}-2"), "text": "second done"}},
            {"text": format!("END-{name}")},
            {"end": end},
        ]})
    };
    let says = |when: &str, name: &str| json!({"when": when, "steps": [{"text": format!("END-{name}")}, {"end": "answered"}]});
    json!([
        says(DELTA, "delta"),
        says(GAMMA, "gamma"),
        job(BETA, "beta", "answered"),
        job("alpha: tidy the shed, and fail", "alpha", "limit"),
        job(ALPHA, "alpha", "answered"),
    ])
}

/// A plain first turn, or one that carries a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    Plain,
    Carrying,
}

impl Scene {
    fn request(self) -> &'static str {
        match self {
            Self::Plain => ALPHA,
            Self::Carrying => BETA,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "alpha",
            Self::Carrying => "beta",
        }
    }

    /// A home in which the scene's turn is the next thing to happen.
    fn prepare(self, cut: &Rig) -> Rig {
        match self {
            Self::Plain => Rig::new(&script()),
            Self::Carrying => Rig::like(cut, &script()),
        }
    }
}

/// Where one kill falls: after so many events of the turn (`None` = once it is closed), and a little later.
#[derive(Debug, Clone, Copy)]
struct Point {
    scene: Scene,
    after: Option<usize>,
    extra: Duration,
}

#[test]
fn crash_kill_9_at_60_points_of_a_turn() {
    kill_at(POINTS);
}

#[test]
fn soak_kill_9_at_300_points_of_a_turn() {
    if std::env::var("BATON_SOAK").is_err() {
        println!("SKIPPED: set BATON_SOAK=1 (scripts/soak does)");
        return;
    }
    let points = std::env::var("BATON_SOAK_POINTS")
        .ok()
        .map(|points| points.parse().expect("BATON_SOAK_POINTS is a number"));
    kill_at(points.unwrap_or(SOAK_POINTS));
}

/// A home in which a first turn was cut by the plan's limit.
fn cut_once() -> Rig {
    let rig = Rig::new(&script());
    let mut chat = rig.chat();
    chat.say("alpha: tidy the shed, and fail");
    chat.sees("Handoff saved");
    chat.leave();
    rig
}

fn kill_at(count: usize) {
    let cut = cut_once();
    let points = points(count, &cut);
    let next = AtomicUsize::new(0);
    let outcomes = parking_lot::Mutex::new(BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = strike(*point, &cut);
                    *outcomes
                        .lock()
                        .entry(format!("{:?} {outcome}", point.scene))
                        .or_default() += 1;
                }
            });
        }
    });
    let outcomes = outcomes.into_inner();
    println!("{count} kills: {outcomes:?}");
    assert_eq!(outcomes.values().sum::<usize>(), count);
    // The points were spread over the turn's life, not bunched at one end.
    for scene in [Scene::Plain, Scene::Carrying] {
        for fate in ["carried", "answered"] {
            assert!(
                outcomes.contains_key(&format!("{scene:?} {fate}")),
                "no kill of {scene:?} ended as {fate}: {outcomes:?}"
            );
        }
    }
}

/// Half of the points per scene, evenly over its events; the seeded extra moves each one a little.
fn points(count: usize, cut: &Rig) -> Vec<Point> {
    let seed = std::env::var("BATON_SOAK_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_130);
    println!("BATON_SOAK_SEED={seed}");
    let mut random = Random(seed);
    let spread = |scene: Scene, count: usize, random: &mut Random| -> Vec<Point> {
        let events = rehearse(scene, cut);
        println!("{scene:?}: {events} events");
        let running = count - count / 10; // the others fall behind the turn's end
        let point = |at: usize| Point {
            scene,
            after: (at < running).then(|| at * (events + 1) / running),
            extra: Duration::from_micros(random.below(EXTRA_US)),
        };
        (0..count).map(point).collect()
    };
    let mut points = spread(Scene::Plain, count / 2, &mut random);
    points.extend(spread(Scene::Carrying, count - count / 2, &mut random));
    points
}

/// SplitMix64: the same numbers from the same seed, everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// How many events an undisturbed turn has.
fn rehearse(scene: Scene, cut: &Rig) -> usize {
    let rig = scene.prepare(cut);
    let mut chat = rig.chat();
    chat.say(scene.request());
    let events = chat.events_until(&format!("END-{}", scene.name()));
    chat.leave();
    assert!(
        rig.alive().is_empty(),
        "an orderly end leaves nothing running: {:?}",
        rig.alive()
    );
    events
}

/// Kills the gateway at the point, starts another, talks on, and checks the promises; says what became of the request.
fn strike(point: Point, cut: &Rig) -> &'static str {
    let rig = point.scene.prepare(cut);
    let mut chat = rig.chat();
    chat.say(point.scene.request());
    let end = format!("END-{}", point.scene.name());
    match point.after {
        Some(count) => chat.events(count, &end),
        None => {
            chat.sees(&end);
            wait_until_closed(&rig);
        }
    }
    std::thread::sleep(point.extra); // not a wait: it moves the point
    let shown = chat.kill();
    let told_before = prompts(&rig).len();
    let on_disk = acknowledged(&rig, point.scene.request());

    let mut chat = rig.chat();
    chat.say(GAMMA);
    chat.sees("END-gamma");
    let left = rig.gone_within(Duration::from_secs(5));
    chat.say(DELTA);
    chat.sees("END-delta");
    chat.leave();

    let judge = Judge {
        point,
        rig: &rig,
        shown: &shown,
        told_before,
    };
    judge.nothing_runs_on(&left);
    judge.nothing_is_replayed();
    judge.nothing_is_told_twice();
    judge.the_handoff_is_not_lost();
    judge.what_was_answered_is_over();
    judge.fate_of_the_request(on_disk)
}

/// Whether the store holds the request's row as that of an open turn: from then on it must not be lost.
fn acknowledged(rig: &Rig, request: &str) -> bool {
    runtime().block_on(async {
        let store = SqliteStore::open(rig.store_file())
            .await
            .expect("a crash leaves a store that opens");
        let open = store.open_turns().await.expect("readable");
        store.close().await;
        open.iter().any(|row| row.request == request)
    })
}

/// Waits until the turn that has shown its last word is closed in the store.
fn wait_until_closed(rig: &Rig) {
    let closed = async {
        let store = SqliteStore::open(rig.store_file())
            .await
            .expect("several processes share a store");
        while !store.open_turns().await.expect("readable").is_empty() {
            tokio::task::yield_now().await;
        }
        store.close().await;
    };
    let closed = async { tokio::time::timeout(Duration::from_secs(60), closed).await };
    runtime().block_on(closed).expect("the turn is closed");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn prompts(rig: &Rig) -> Vec<Value> {
    rig.evidence()
        .into_iter()
        .filter(|line| line["what"] == "prompt")
        .collect()
}

fn text(line: &Value) -> &str {
    line["text"].as_str().unwrap_or_default()
}

/// Everything known after a point.
struct Judge<'a> {
    point: Point,
    rig: &'a Rig,
    /// What the killed gateway had shown.
    shown: &'a str,
    /// How many prompts had been sent when it was killed.
    told_before: usize,
}

impl Judge<'_> {
    fn nothing_runs_on(&self, left: &[String]) {
        assert!(left.is_empty(), "{:?}: still running: {left:?}", self.point);
    }

    fn nothing_is_replayed(&self) {
        let prompts = prompts(self.rig);
        let begins = |line: &&Value| text(line).starts_with(self.point.scene.request());
        let plain = prompts.iter().filter(begins).count();
        assert!(
            plain <= 1,
            "{:?}: the request was sent {plain} times:\n{prompts:#?}",
            self.point
        );
        let mut effects = BTreeMap::<String, usize>::new();
        for line in self
            .rig
            .evidence()
            .iter()
            .filter(|line| line["what"] == "effect")
        {
            *effects.entry(text(line).to_owned()).or_default() += 1;
        }
        assert!(
            effects.values().all(|count| *count == 1),
            "{:?}: {effects:?}",
            self.point
        );
    }

    /// Once per session: each handoff's marker, and each carried request.
    fn nothing_is_told_twice(&self) {
        for transcript in self.rig.transcripts() {
            let told: Vec<&str> = transcript
                .split("[handoff ")
                .skip(1)
                .filter_map(|rest| rest.split(']').next())
                .collect();
            let mut once = told.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(told.len(), once.len(), "{:?}: {told:?}", self.point);
            for request in [ALPHA, BETA] {
                let times = transcript.matches(&carried(request)).count();
                assert!(
                    times <= 1,
                    "{:?}: {request} was carried {times} times into one session:\n{transcript}",
                    self.point
                );
            }
        }
    }

    /// The armed handoff of the scene stands in the history of the session that answered in the end.
    fn the_handoff_is_not_lost(&self) {
        if self.point.scene == Scene::Carrying {
            let sessions = self.rig.transcripts();
            let whole = sessions
                .iter()
                .any(|one| one.contains(&carried(ALPHA)) && one.contains("END-gamma"));
            assert!(whole, "{:?}:\n{}", self.point, sessions.join("\n=====\n"));
        }
    }

    /// The turn after the answered one carries nothing any more.
    fn what_was_answered_is_over(&self) {
        let prompts = prompts(self.rig);
        let last = prompts.last().map(text).unwrap_or_default();
        assert_eq!(last, DELTA, "{:?}", self.point);
    }

    fn fate_of_the_request(&self, on_disk: bool) -> &'static str {
        let (scene, prompts) = (self.point.scene, prompts(self.rig));
        let gamma = prompts
            .iter()
            .map(text)
            .find(|prompt| prompt.contains(GAMMA))
            .unwrap_or_default();
        let is_carried = gamma.contains(scene.request());
        let is_answered = self.shown.contains(&format!("END-{}", scene.name()));
        assert!(
            !on_disk || is_carried,
            "{:?}: a turn left open is carried by the next one:\n{gamma}",
            self.point
        );
        match (is_carried, is_answered) {
            (true, _) => "carried",
            (false, true) => "answered",
            (false, false) => {
                let begun = prompts
                    .iter()
                    .take(self.told_before)
                    .any(|line| text(line).starts_with(scene.request()));
                let visible = self.shown.contains(scene.name());
                assert!(
                    !begun && !visible,
                    "{:?}: lost after it had begun:\n{}",
                    self.point,
                    self.shown
                );
                "never acknowledged"
            }
        }
    }
}
