//! Plugins from their files: what the gateway does with good ones, bad ones and files that are none. Each load starts
//! the child probe, as in the product; `examples/plugin_child` plays `baton`'s hidden commands.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gateway_core::event::{CallOutcome, Event};
use gateway_core::failure::FailureKind;
use gateway_core::ids::{ProfileId, SubscriptionId, TurnId};
use gateway_core::message::Origin;
use gateway_core::route::{Billing, Chain, ChainEntry, Route};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use gateway_host::config::{
    PluginFile, PluginUse, ProfilePath, ProfileSettings, RootPath, Settings,
};
use gateway_host::plugins::facts::{
    DisabledBecause, FactSheet, PluginState, PrologueAdvice, PrologueFacts, State, TurnFacts,
    WalkFacts,
};
use gateway_host::plugins::{LoadProblem, Places, PluginSet, cli};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const NOW: i64 = 1_789_981_200;

/// Settings with plugins in profile `p`, and the places of a gateway nobody installed anything for.
struct World {
    dir: tempfile::TempDir,
    files: BTreeMap<String, PluginFile>,
    uses: BTreeMap<String, PluginUse>,
}

impl World {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            files: BTreeMap::new(),
            uses: BTreeMap::new(),
        }
    }

    fn with(mut self, name: &str, file: &Path, config: Value) -> Self {
        let file = Some(file.to_path_buf());
        self.files
            .insert(name.into(), PluginFile { file, sha256: None });
        let usage = PluginUse {
            order: 0,
            enabled: true,
            required: false,
            budget_ms: BTreeMap::new(),
            config,
        };
        self.uses.insert(name.into(), usage);
        self
    }

    fn fixture(config: Value) -> Self {
        Self::new().with("fixture", &fixture_library(), config)
    }

    fn settings(&self) -> Settings {
        let root = RootPath(self.dir.path().to_path_buf());
        let profile = ProfileSettings {
            id: ProfileId::new("p"),
            home: ProfilePath(self.dir.path().join("profiles/p")),
            chain: Vec::new(),
            workdir: self.dir.path().to_path_buf(),
            permissions: None,
            plugins: self.uses.clone(),
            chat: BTreeMap::new(),
            attempt_deadline: Duration::from_secs(60),
            silence: Duration::from_secs(60),
            routing: Default::default(),
        };
        Settings {
            usage_snapshot: self.dir.path().join("usage.json"),
            root,
            subscriptions: BTreeMap::new(),
            profiles: BTreeMap::from([(profile.id.clone(), profile)]),
            plugins: self.files.clone(),
        }
    }

    async fn load(&self) -> (PluginSet, Vec<LoadProblem>) {
        let places = Places::beside(&self.dir.path().join("bin/baton"), self.dir.path());
        PluginSet::load_from(&self.settings(), &child(), &places).await
    }

    /// Loads and insists that everything is there.
    async fn running(&self) -> PluginSet {
        let (set, problems) = self.load().await;
        assert_eq!(problems, []);
        set
    }

    /// Loads one plugin that must be refused, and checks that a turn is as if it were not there.
    async fn refused(&self) -> LoadProblem {
        let (set, mut problems) = self.load().await;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(
            set.prologue(&p(), prologue(3)).await,
            PrologueAdvice::default()
        );
        set.shutdown().await;
        problems.remove(0)
    }
}

fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().to_path_buf()
}

fn child() -> PathBuf {
    target().join("examples/plugin_child")
}

fn fixture_library() -> PathBuf {
    target().join("examples/libfixture_plugin.so")
}

fn bundled(name: &str) -> PathBuf {
    target().join(format!("deps/libplugin_{name}.so"))
}

fn p() -> ProfileId {
    ProfileId::new("p")
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

/// A chain of `count` subscriptions, all but the last spent for an hour.
fn turn(count: usize) -> TurnFacts {
    let entries = (0..count).map(|index| ChainEntry {
        route: Route::new(&format!("sub-{index}"), "opus"),
        slug: SubscriptionId::new(format!("sub-{index}")),
        billing: Billing::Plan,
        group: None,
    });
    let readings: Vec<Reading> = (0..count.saturating_sub(1))
        .map(|index| Reading {
            subscription: SubscriptionId::new(format!("sub-{index}")),
            window: "five_hour".into(),
            scope: None,
            used_pct: Some(100.0),
            status: WindowStatus::Rejected,
            resets_at: Some(now() + SignedDuration::from_hours(1)),
            duration_mins: None,
            observed_at: Some(now()),
            source: ReadingSource::Probe,
        })
        .collect();
    let chain = Chain {
        entries: entries.collect(),
    };
    TurnFacts {
        turn: TurnId::new("turn"),
        profile: p(),
        session: "lane".into(),
        conversation: "conversation".into(),
        origin: Origin::Human,
        sheet: Arc::new(FactSheet::build(&chain, &vec![true; count], &readings)),
        now: now(),
    }
}

fn prologue(count: usize) -> Arc<PrologueFacts> {
    Arc::new(PrologueFacts {
        turn: turn(count),
        documents: Vec::new(),
    })
}

fn walk(count: usize, cursor: usize) -> Arc<WalkFacts> {
    Arc::new(WalkFacts {
        turn: turn(count),
        failed: cursor - 1,
        reason: FailureKind::RateLimit,
        cursor,
        already_gated: false,
        line_shown: false,
        memo: Vec::new(),
    })
}

fn state(set: &PluginSet, name: &str) -> PluginState {
    let states = set.states();
    let found = states.iter().find(|state| state.name == name);
    found.unwrap().clone()
}

/// Waits until the condition holds; the test's own limit ends it otherwise.
async fn until(condition: impl Fn() -> bool) {
    let held = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), held)
        .await
        .expect("the condition holds in the end");
}

fn write(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Compiles a C source into a library.
fn compile(dir: &Path, source: &str) -> PathBuf {
    let code = dir.join("fixture.c");
    write(&code, source.as_bytes());
    let out = dir.join("libfixture.so");
    let done = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&out)
        .arg(&code)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    out
}

/// The descriptor as a C plugin would export it.
fn descriptor(major: u32, minor: u32, flags: u32, abi: &str) -> String {
    format!(
        r#"
#include <stdint.h>
#include <stddef.h>
struct Str {{ const char *data; size_t len; }};
struct Descriptor {{ char magic[16]; uint32_t size, major, minor, flags; struct Str id, version, rustc, abi; }};
struct Descriptor BATON_PLUGIN_V1 = {{ "baton-plugin/v1", sizeof(struct Descriptor), {major}, {minor}, {flags},
  {{ "handmade", 8 }}, {{ "1.0.0", 5 }}, {{ "cc", 2 }}, {{ "{abi}", {} }} }};
"#,
        abi.len()
    )
}

// --- good plugins ---

#[tokio::test]
async fn plugins_of_one_interface_stand_side_by_side_and_are_merged_in_order() {
    let world = World::fixture(json!({ "line": "the fixture speaks" }))
        .with("quota", &bundled("quota"), json!({}))
        .with("handoff", &bundled("handoff"), json!({}));
    let set = world.running().await;
    let versions: Vec<_> = set
        .states()
        .into_iter()
        .map(|state| (state.name, state.version, state.state))
        .collect();
    let ours = Some(env!("CARGO_PKG_VERSION").to_owned());
    assert_eq!(
        versions,
        [
            ("fixture".into(), Some("0.3.1".into()), State::Active),
            ("handoff".into(), ours.clone(), State::Active),
            ("quota".into(), ours, State::Active),
        ]
    );
    let advice = set.prologue(&p(), prologue(4)).await;
    assert!(advice.gated, "quota found the head spent");
    let positions: Vec<usize> = advice.skips.iter().map(|skip| skip.position).collect();
    assert_eq!(positions, [0, 1, 2]);
    assert_eq!(
        advice.skips[0].until,
        Some(now() + SignedDuration::from_hours(1))
    );
    // `fixture` comes before `quota`, so its line wins.
    assert_eq!(advice.status_line.as_deref(), Some("the fixture speaks"));
    set.shutdown().await;
}

#[tokio::test]
async fn quota_alone_says_its_line_and_nothing_when_asked_again() {
    let world = World::new().with("quota", &bundled("quota"), json!({}));
    let set = world.running().await;
    let advice = set.before_walk(&p(), walk(4, 1)).await;
    assert_eq!(
        advice.status_line.as_deref(),
        Some(
            "⚠️ Rate limited — skipping 2 exhausted subs (quota registry) and switching to fallback provider..."
        )
    );
    let positions: Vec<usize> = advice.skips.iter().map(|skip| skip.position).collect();
    assert_eq!(positions, [1, 2]);
    let again = WalkFacts {
        already_gated: true,
        line_shown: true,
        ..(*walk(4, 1)).clone()
    };
    let advice = set.before_walk(&p(), Arc::new(again)).await;
    assert_eq!((advice.skips, advice.status_line), (vec![], None));
    set.shutdown().await;
}

#[tokio::test]
async fn each_profile_has_an_instance_of_its_own() {
    let world = World::fixture(json!({ "note": "one" }));
    let mut settings = world.settings();
    let mut other = settings.profiles[&p()].clone();
    other.id = ProfileId::new("q");
    other.plugins.get_mut("fixture").unwrap().config = json!({ "note": "two" });
    settings.profiles.insert(other.id.clone(), other.clone());
    let mut off = other.clone();
    off.id = ProfileId::new("off");
    off.plugins.get_mut("fixture").unwrap().enabled = false;
    settings.profiles.insert(off.id.clone(), off.clone());
    let places = Places::beside(Path::new("/nowhere/baton"), world.dir.path());
    let (set, problems) = PluginSet::load_from(&settings, &child(), &places).await;
    assert_eq!(problems, []);
    for _ in 0..2 {
        set.prologue(&p(), prologue(1)).await;
    }
    let line = |advice: PrologueAdvice| advice.status_line.unwrap_or_default();
    assert_eq!(
        line(set.prologue(&p(), prologue(1)).await),
        "fixture one call 3"
    );
    assert_eq!(
        line(set.prologue(&other.id, prologue(1)).await),
        "fixture two call 1"
    );
    assert_eq!(line(set.prologue(&off.id, prologue(1)).await), "");
    assert!(set.enabled(&p(), "fixture") && !set.enabled(&off.id, "fixture"));
    let off_state = set
        .states()
        .into_iter()
        .find(|state| state.profile == off.id)
        .unwrap();
    assert_eq!(off_state.state, State::Disabled(DisabledBecause::Off));
    let calls = set.metrics().values();
    assert_eq!(calls, [("fixture".into(), "calls".into(), 4.0)]);
    set.shutdown().await;
}

#[tokio::test]
async fn a_library_is_found_in_the_folder_beside_the_executable() {
    let mut world = World::new().with("quota", Path::new("unused"), json!({}));
    world.files.clear();
    let (set, problems) = PluginSet::load_from(
        &world.settings(),
        &child(),
        &Places::beside(&target().join("baton"), world.dir.path()),
    )
    .await;
    assert_eq!(problems, []);
    let file = state(&set, "quota").file.unwrap();
    assert_eq!(file, target().join("deps/libplugin_quota.so"));
    set.shutdown().await;
}

// --- files that are no plugins ---

#[tokio::test]
async fn bad_files_are_refused_with_their_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let good = std::fs::read(fixture_library()).unwrap();
    let patched = |name: &str, place: usize, bytes: &[u8]| {
        let mut library = good.clone();
        library[place..place + bytes.len()].copy_from_slice(bytes);
        write(&at(name), &library);
        at(name)
    };
    write(&at("empty"), b"");
    write(&at("text"), b"hello");
    write(&at("long text"), &b"hello ".repeat(100));
    std::fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let undefined = tempfile::tempdir().unwrap();
    let plain = compile(nothing.path(), "int answer(void) { return 42; }");
    let import = compile(
        undefined.path(),
        "extern int nope(void); int answer(void) { return nope(); }",
    );
    let rows: [(&str, PathBuf, &str); 12] = [
        ("missing", at("missing"), "No such file or directory"),
        ("empty", at("empty"), "too short to be a library (0 bytes)"),
        (
            "short text",
            at("text"),
            "too short to be a library (5 bytes)",
        ),
        ("text", at("long text"), "not a library (no ELF header)"),
        ("folder", at("folder"), "not a regular file"),
        (
            "symlink loop",
            at("loop"),
            "Too many levels of symbolic links",
        ),
        (
            "wrong cpu",
            patched("cpu", 18, &[243, 0]),
            "built for another CPU (ELF machine 243, this gateway needs",
        ),
        (
            "32-bit",
            patched("32", 4, &[1]),
            "not a 64-bit little-endian library",
        ),
        (
            "big-endian",
            patched("big", 5, &[2]),
            "not a 64-bit little-endian library",
        ),
        ("an executable", child(), "cannot dynamically load"),
        (
            "some library",
            plain,
            "not a gateway plugin (no descriptor)",
        ),
        ("undefined import", import, "undefined symbol: nope"),
    ];
    for (name, file, words) in rows {
        let world = World::new().with("bad", &file, json!({}));
        let problem = world.refused().await;
        assert!(
            problem.message.contains(words),
            "{name}: {}",
            problem.message
        );
        let shown = file.display().to_string();
        assert!(
            problem.message.contains(&shown),
            "{name}: {}",
            problem.message
        );
        assert_eq!(problem.because, DisabledBecause::Load, "{name}");
    }
}

#[tokio::test]
async fn a_library_cut_at_any_of_fifteen_points_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let good = std::fs::read(bundled("quota")).unwrap();
    // What is needed to load: the last byte of the last segment.
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| u16::from_le_bytes(good[at..at + 2].try_into().unwrap()) as usize;
    let (table, size, count) = (word(32), half(54), half(56));
    let needed = (0..count)
        .map(|index| word(table + index * size + 8) + word(table + index * size + 32))
        .max()
        .unwrap();
    for permille in [
        0, 5, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 950, 999,
    ] {
        let file = dir.path().join(format!("cut-{permille}.so"));
        write(&file, &good[..needed * permille / 1000]);
        let problem = World::new().with("quota", &file, json!({})).refused().await;
        let refused =
            problem.message.contains("truncated: ") || problem.message.contains("too short");
        assert!(refused, "{permille}: {}", problem.message);
    }
}

#[tokio::test]
async fn a_library_overwritten_while_loaded_goes_on_working() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("libplugin_fixture.so");
    let good = std::fs::read(fixture_library()).unwrap();
    write(&file, &good);
    let world = World::new().with("fixture", &file, json!({ "note": "old" }));
    let set = world.running().await;
    // In place, as `cp new old` does: the same inode.
    write(&file, &vec![0u8; good.len()]);
    let advice = set.prologue(&p(), prologue(1)).await;
    assert_eq!(advice.status_line.as_deref(), Some("fixture old call 1"));
    set.shutdown().await;
    let problem = world.refused().await;
    assert!(
        problem.message.contains("no ELF header"),
        "{}",
        problem.message
    );
}

#[tokio::test]
async fn a_missing_library_names_every_place_that_was_tried() {
    let mut world = World::new().with("weather", Path::new("unused"), json!({}));
    world.files.clear();
    let problem = world.refused().await;
    for place in [
        "lib/baton/plugins",
        "plugins/libplugin_weather.so",
        "bin/deps",
        "baton plugin install",
    ] {
        assert!(problem.message.contains(place), "{}", problem.message);
    }
    assert!(!problem.required);
    world.uses.get_mut("weather").unwrap().required = true;
    assert!(
        world.refused().await.required,
        "the gateway refuses to start"
    );
}

#[tokio::test]
async fn a_library_that_crashes_or_exits_while_loading_is_an_error_line() {
    let constructor = |body: &str| {
        format!(
            "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) {{ {body} }}"
        )
    };
    let rows = [
        (
            "exit",
            constructor("exit(0);"),
            "ended the process that loaded it",
        ),
        (
            "abort",
            constructor("abort();"),
            "ended the process that loaded it (signal: 6",
        ),
        (
            "null",
            constructor("*(volatile int *)0 = 1;"),
            "ended the process that loaded it (signal: 11",
        ),
    ];
    for (name, source, words) in rows {
        let dir = tempfile::tempdir().unwrap();
        let file = compile(dir.path(), &source);
        let problem = World::new().with("bad", &file, json!({})).refused().await;
        assert!(
            problem.message.contains(words),
            "{name}: {}",
            problem.message
        );
    }
    let problem = World::fixture(json!({ "mode": "exit in create" }))
        .refused()
        .await;
    assert!(
        problem.message.contains("(exit status: 7)"),
        "{}",
        problem.message
    );
}

// --- versions ---

#[tokio::test]
async fn the_descriptor_is_read_first_and_both_versions_are_named() {
    let rows = [
        (
            "next major",
            descriptor(2, 0, 1, "abi_stable 0.11"),
            DisabledBecause::Version,
            "plugin was built for plugin-api 2.0.0, this gateway has plugin-api 1.0.0",
        ),
        (
            "older abi_stable",
            descriptor(1, 0, 1, "abi_stable 0.10"),
            DisabledBecause::Version,
            "abi_stable 0.10 in plugin, 0.11 in gateway",
        ),
        (
            "panic = abort",
            descriptor(1, 0, 0, "abi_stable 0.11"),
            DisabledBecause::Load,
            "panic = \"abort\"",
        ),
        (
            "descriptor only",
            descriptor(1, 7, 1, "abi_stable 0.11"),
            DisabledBecause::Load,
            "not a gateway plugin",
        ),
        (
            "damaged",
            "char BATON_PLUGIN_V1[128] = \"something else\";".into(),
            DisabledBecause::Load,
            "its descriptor is damaged",
        ),
    ];
    for (name, source, because, words) in rows {
        let dir = tempfile::tempdir().unwrap();
        let file = compile(dir.path(), &source);
        let problem = World::new().with("bad", &file, json!({})).refused().await;
        assert!(
            problem.message.contains(words),
            "{name}: {}",
            problem.message
        );
        assert_eq!(problem.because, because, "{name}");
    }
}

// --- misbehaviour ---

#[tokio::test]
async fn what_goes_wrong_in_create_is_said_and_the_turn_goes_on() {
    let rows = [
        (
            json!({ "mode": "panic in create" }),
            DisabledBecause::Panics,
            "boom in create",
        ),
        (
            json!({ "mode": "error in create" }),
            DisabledBecause::Config,
            "mode: not today",
        ),
        (
            json!({ "moed": "x" }),
            DisabledBecause::Config,
            "unknown key \"moed\" (did you mean \"mode\"?)",
        ),
    ];
    for (config, because, words) in rows {
        let problem = World::fixture(config).refused().await;
        assert!(problem.message.contains(words), "{}", problem.message);
        assert_eq!(problem.because, because);
        assert!(
            problem
                .to_string()
                .starts_with("profiles.p.plugins.fixture: ")
        );
    }
}

#[tokio::test]
async fn the_third_panic_switches_a_plugin_off_and_its_neighbour_goes_on() {
    for mode in ["panic", "panic payload"] {
        let world =
            World::fixture(json!({ "mode": mode })).with("quota", &bundled("quota"), json!({}));
        let set = world.running().await;
        for round in 1..=3 {
            let advice = set.prologue(&p(), prologue(3)).await;
            assert_eq!(advice.skips.len(), 2, "quota's advice stands");
            until(|| state(&set, "fixture").failures == round).await; // counted after the turn has its answer
        }
        let is_off = || state(&set, "fixture").state == State::Disabled(DisabledBecause::Panics);
        until(is_off).await;
        let off = state(&set, "fixture");
        assert!(off.last_error.unwrap().contains("panic"));
        let calls = off.calls;
        set.prologue(&p(), prologue(3)).await;
        assert_eq!(
            state(&set, "fixture").calls,
            calls,
            "it is not asked any more"
        );
        set.shutdown().await;
    }
}

#[tokio::test]
async fn a_fresh_instance_takes_the_place_of_one_that_panicked() {
    let set = World::fixture(json!({ "mode": "panic on event", "note": "n" }))
        .running()
        .await;
    assert_eq!(
        set.prologue(&p(), prologue(1)).await.status_line.as_deref(),
        Some("fixture n call 1")
    );
    let event = Event::ToolResult {
        id: "t".into(),
        outcome: CallOutcome::Failed,
        text: String::new(),
    };
    set.observe(&p(), &TurnId::new("turn"), &event);
    until(|| state(&set, "fixture").failures == 1).await;
    assert_eq!(
        set.prologue(&p(), prologue(1)).await.status_line.as_deref(),
        Some("fixture n call 1"),
        "a new instance counts from one"
    );
    set.shutdown().await;
}

#[tokio::test]
async fn a_hung_hook_costs_one_budget_and_holds_up_neither_turn_nor_exit() {
    let world =
        World::fixture(json!({ "mode": "hang" })).with("quota", &bundled("quota"), json!({}));
    let set = world.running().await;
    let start = Instant::now();
    let advice = set.before_walk(&p(), walk(3, 1)).await;
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(advice.skips.len(), 1, "quota's advice stands");
    assert_eq!(state(&set, "fixture").state, State::Busy);
    let asked = state(&set, "fixture").calls;
    let again = set.before_walk(&p(), walk(3, 1)).await;
    assert_eq!(again.skips.len(), 1);
    assert_eq!(
        state(&set, "fixture").calls,
        asked,
        "a busy instance is not asked"
    );
    let start = Instant::now();
    set.shutdown().await;
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "took {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn the_third_late_answer_switches_a_plugin_off() {
    let set = World::fixture(json!({ "mode": "slow" })).running().await;
    for _ in 0..3 {
        let advice = set.prologue(&p(), prologue(1)).await;
        assert_eq!(
            advice,
            PrologueAdvice::default(),
            "a late answer is no opinion"
        );
        until(|| state(&set, "fixture").state != State::Busy).await;
    }
    let off = state(&set, "fixture");
    assert_eq!(off.state, State::Disabled(DisabledBecause::Slow));
    set.shutdown().await;
}

#[tokio::test]
async fn a_budget_of_the_configuration_is_kept() {
    let mut world = World::fixture(json!({ "mode": "slow", "note": "n" }));
    let usage = world.uses.get_mut("fixture").unwrap();
    usage.budget_ms.insert("prologue".into(), 20_000);
    let set = world.running().await;
    let advice = set.prologue(&p(), prologue(1)).await;
    assert_eq!(advice.status_line.as_deref(), Some("fixture n call 1"));
    set.shutdown().await;
}

#[tokio::test]
async fn an_error_is_no_opinion_and_is_remembered() {
    let set = World::fixture(json!({ "mode": "error" })).running().await;
    assert_eq!(
        set.prologue(&p(), prologue(1)).await,
        PrologueAdvice::default()
    );
    until(|| state(&set, "fixture").failures == 1).await;
    let state = state(&set, "fixture");
    assert_eq!(state.state, State::Active);
    assert_eq!(state.last_error.as_deref(), Some("no opinion today"));
    set.shutdown().await;
}

#[tokio::test]
async fn impossible_answers_are_taken_out() {
    let set = World::fixture(json!({ "mode": "bad positions" }))
        .running()
        .await;
    let advice = set.prologue(&p(), prologue(3)).await;
    let positions: Vec<usize> = advice.skips.iter().map(|skip| skip.position).collect();
    assert_eq!(positions, [0], "99 does not exist, 0 is named twice");
    assert_eq!(advice.status_line.as_deref(), Some("one"));
    assert_eq!((advice.claims, advice.inject), (vec![], None));
    let advice = set.before_walk(&p(), walk(3, 2)).await;
    let positions: Vec<usize> = advice.skips.iter().map(|skip| skip.position).collect();
    assert_eq!(
        positions,
        [2],
        "what was walked already is nobody's to skip"
    );
    set.shutdown().await;
}

#[tokio::test]
async fn huge_answers_are_cut_or_dropped() {
    let mut world = World::fixture(json!({ "mode": "huge" }));
    let usage = world.uses.get_mut("fixture").unwrap();
    usage.budget_ms.insert("prologue".into(), 20_000);
    let set = world.running().await;
    let advice = set.prologue(&p(), prologue(3)).await;
    assert_eq!(advice.skips.len(), 3);
    assert_eq!(
        advice.status_line.map(|line| line.chars().count()),
        Some(500)
    );
    assert_eq!(advice.inject, None);
    set.shutdown().await;
}

#[tokio::test]
async fn a_log_flood_and_a_panic_in_drop_leave_the_gateway_alone() {
    let set = World::fixture(json!({ "mode": "flood", "note": "n" }))
        .running()
        .await;
    let advice = set.prologue(&p(), prologue(1)).await;
    assert_eq!(advice.status_line.as_deref(), Some("fixture n call 1"));
    set.shutdown().await;
    let set = World::fixture(json!({ "mode": "panic in drop" }))
        .running()
        .await;
    set.shutdown().await;
}

// --- the command line ---

#[tokio::test]
async fn the_conformance_kit_passes_ours_and_fails_the_misbehaved() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["quota", "handoff"] {
        let said = cli::check(&bundled(name), None, false, &child()).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
        assert!(said.out.ends_with("16 passed, 0 failed\n"), "{}", said.out);
    }
    let config = dir.path().join("c.json");
    write(&config, br#"{"mode":"exit in create"}"#);
    let said = cli::check(&fixture_library(), Some(&config), false, &child()).await;
    assert_eq!(said.code, 1, "{}", said.out);
    let words = "FAILED  create: ended its process (exit status: 7)";
    assert!(said.out.contains(words), "{}", said.out);
    for (mode, test, words) in [
        (
            "panic",
            "hooks",
            "check: failed: prologue: panic: boom in prologue",
        ),
        (
            "bad positions",
            "answers within limits",
            "check: failed: 4 skips out of range",
        ),
        ("flood", "log volume", "check: failed: 10001 log lines"),
    ] {
        let ran = std::process::Command::new(child())
            .args(["plugin", "check-one"])
            .arg(fixture_library())
            .args([test, "--config", &json!({ "mode": mode }).to_string()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(said.contains(words), "{mode}: {said}");
        assert!(!ran.status.success());
    }
    let said = cli::check(&dir.path().join("none.so"), None, true, &child()).await;
    assert_eq!(said.code, 2);
    let bad = dir.path().join("bad.so");
    write(&bad, b"text");
    let said = cli::check(&bad, None, true, &child()).await;
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (said.code, &report["results"][0]["passed"]),
        (1, &json!(false))
    );
}

#[tokio::test]
async fn an_installed_plugin_is_found_and_must_stay_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let source = root.path().join("libplugin_weather.so");
    write(&source, &std::fs::read(fixture_library()).unwrap());
    let said = cli::install(&source, root.path(), &child()).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let mut world = World::new().with("weather", Path::new("unused"), json!({}));
    world.files.clear();
    world.dir = root;
    let set = world.running().await;
    assert_eq!(state(&set, "weather").version.as_deref(), Some("0.3.1"));
    set.shutdown().await;
    let installed = world.dir.path().join("plugins/libplugin_weather.so");
    let mut bytes = std::fs::read(&installed).unwrap();
    bytes.push(0);
    write(&installed, &bytes);
    let problem = world.refused().await;
    assert!(problem.message.contains("checksum"), "{}", problem.message);
    let said = cli::install(Path::new("/dev/null"), world.dir.path(), &child()).await;
    assert_eq!(said.code, 1);
    assert!(said.err.contains("not a regular file"), "{}", said.err);
}

// The reverse, an old plugin in a gateway of the next version, is a test of the loader.
#[tokio::test]
async fn a_plugin_of_the_next_minor_version_works_in_this_gateway() {
    let next = target().join("examples/libnext_plugin.so");
    let set = World::new().with("next", &next, json!({})).running().await;
    let advice = set.prologue(&p(), prologue(3)).await;
    assert_eq!(
        advice.status_line.as_deref(),
        Some("said by a plugin of the next version")
    );
    assert_eq!(state(&set, "next").state, State::Active);
    set.shutdown().await;
}
