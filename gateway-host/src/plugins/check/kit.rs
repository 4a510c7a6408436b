//! The tests themselves, run inside the child: one name, one function, one verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi_stable::std_types::{ROption, RResult};
use plugin_api::event::{TurnEvent, TurnEvent_NE};
use plugin_api::plugin::{Capabilities, ErrorKind, PluginBox, PluginError};
use plugin_api::records::{OriginCode, ReasonCode, ScopeCode, SourceCode, StatusCode};
use plugin_api::services::Host;
use plugin_api::testing::{self, Facts};

use super::super::call::{Asked, Instance};
use super::super::load::{self, Opened};
use super::super::{elf, find, log, merge};

/// The test the parent judges itself.
pub(super) const QUIET: &str = "writes nothing to stdout or stderr";

const BUDGET_P99: [(&str, Duration); 3] = [
    ("prologue", Duration::from_millis(200)),
    ("before_walk", Duration::from_millis(50)),
    ("on_terminal", Duration::from_secs(2)),
];
const CALLS: usize = 10_000;
const GROWTH_BYTES: u64 = 8 * 1024 * 1024;
const SIZES: [u32; 4] = [0, 1, 21, 1_000];

/// What one test is given.
#[derive(Debug, Clone)]
pub struct CheckOne {
    pub file: PathBuf,
    pub test: String,
    /// JSON text; `None` = `{}`.
    pub config: Option<String>,
}

/// Runs one test in this process.
///
/// # Errors
/// What the plugin did wrong, or that there is no such test.
pub fn run_one(check: &CheckOne) -> Result<(), String> {
    let test = TESTS.iter().find(|(name, _)| *name == check.test);
    let (_, run) = test.ok_or_else(|| format!("there is no test `{}`", check.test))?;
    run(&Subject {
        file: check.file.clone(),
        config: check.config.clone().unwrap_or_else(|| "{}".to_owned()),
    })
}

type Test = fn(&Subject) -> Result<(), String>;

const TESTS: [(&str, Test); 15] = [
    ("file", file),
    ("loads", loads),
    ("manifest", manifest),
    ("schema", schema),
    ("create", create),
    ("create refuses junk", junk),
    ("hooks", hooks),
    ("unknown values", unknown_values),
    ("answers within limits", answers),
    ("speed", speed),
    ("memory", memory),
    ("create and drop 100 times", again_and_again),
    ("two instances", two_instances),
    ("log volume", log_volume),
    ("drop while busy", drop_while_busy),
];

/// The names of all tests, in order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|(name, _)| *name)
}

struct Subject {
    file: PathBuf,
    config: String,
}

impl Subject {
    fn open(&self) -> Result<Opened, String> {
        load::open_named(&self.file).map_err(|error| error.why())
    }

    /// An instance; `None` = the plugin does not accept this configuration, which the test `create` judges.
    fn make(&self, opened: &Opened, host: &Host) -> Result<Option<PluginBox>, String> {
        match create_with(opened, host, &self.config) {
            RResult::ROk(plugin) => Ok(Some(plugin)),
            RResult::RErr(error) if error.kind == ErrorKind::Config => Ok(None),
            RResult::RErr(error) => Err(words(&error)),
        }
    }

    /// Opens, makes one instance and runs the rest of a test with it.
    fn with(
        &self,
        test: impl FnOnce(&mut PluginBox, Capabilities) -> Result<(), String>,
    ) -> Result<(), String> {
        let opened = self.open()?;
        let (host, _) = testing::host();
        match self.make(&opened, &host)? {
            Some(mut plugin) => test(&mut plugin, opened.manifest.capabilities),
            None => Err("it does not start with this configuration; give one with --config".into()),
        }
    }
}

fn create_with(opened: &Opened, host: &Host, config: &str) -> RResult<PluginBox, PluginError> {
    (opened.module.create())(host.services(), config.into())
}

fn words(error: &PluginError) -> String {
    let kind = match error.kind {
        ErrorKind::Panic => "panic: ",
        _ => "",
    };
    format!("{kind}{}", error.message)
}

fn file(subject: &Subject) -> Result<(), String> {
    let read = find::read_named(&subject.file).map_err(|error| error.why())?;
    elf::check(&read)
}

/// Descriptor, version, unwinding, header and layout.
fn loads(subject: &Subject) -> Result<(), String> {
    subject.open().map(|_| ())
}

fn manifest(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let id = opened.manifest.id.as_str();
    let good_start = id.starts_with(|c: char| c.is_ascii_lowercase());
    let good_rest = id
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !good_start || !good_rest || id.len() > 32 {
        return Err(format!("the id `{id}` is not ^[a-z][a-z0-9-]{{0,31}}$"));
    }
    let version = opened.manifest.version.as_str();
    semver::Version::parse(version)
        .map_err(|error| format!("the version `{version}` is not a semantic version: {error}"))?;
    if opened.described.id != id || opened.described.version != version {
        return Err("the descriptor and the manifest name different plugins".into());
    }
    match opened.manifest.capabilities {
        Capabilities::NONE => Err("it asks for no hook".into()),
        _ => Ok(()),
    }
}

fn schema(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let text = opened.manifest.config_schema.as_str();
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => Err("the schema is not an object".into()),
        Err(error) => Err(format!("the schema is not JSON: {error}")),
    }
}

fn create(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let (host, _) = testing::host();
    match create_with(&opened, &host, &subject.config) {
        RResult::ROk(_) => Ok(()),
        RResult::RErr(error) => Err(words(&error)),
    }
}

fn junk(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let (host, _) = testing::host();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let junk = [
        "",
        "nonsense",
        "[]",
        "7",
        "\"text\"",
        "null",
        "{\"no such key\":1}",
        "{\"é\":\"\\u0000\"}",
        &deep,
    ];
    for config in junk {
        let shown: String = config.chars().take(30).collect();
        match create_with(&opened, &host, config) {
            RResult::ROk(_) => return Err(format!("it accepts `{shown}`")),
            RResult::RErr(error) if error.kind == ErrorKind::Config => {}
            RResult::RErr(error) => {
                return Err(format!("on `{shown}`: {}", words(&error)));
            }
        }
    }
    Ok(())
}

fn hooks(subject: &Subject) -> Result<(), String> {
    subject.with(|plugin, wants| {
        for facts in SIZES.iter().flat_map(|count| variants(*count)) {
            ask_all(plugin, wants, &facts)?;
        }
        Ok(())
    })
}

/// The same chain unknown, spent, in other scripts, and at extreme clocks.
fn variants(count: u32) -> Vec<Facts> {
    let plain = Facts::with_routes(count);
    let spent = Facts::with_routes(count).all_spent(3_600_000);
    let mut foreign = spent.clone();
    foreign.request = "Überprüfe 進捗 👩‍👩‍👧 \u{202e}abc\u{0}".into();
    for route in &mut foreign.routes {
        route.subscription = "подписка-①".into();
    }
    let clocks = [0, -1, i64::MIN, i64::MAX].map(|now_ms| Facts {
        now_ms,
        ..spent.clone()
    });
    let synthetic = Facts {
        origin: OriginCode::Synthetic,
        ..spent.clone()
    };
    let mut all = vec![plain, spent, foreign, synthetic];
    all.extend(clocks);
    all
}

fn unknown_values(subject: &Subject) -> Result<(), String> {
    let mut facts = Facts::with_routes(21).all_spent(3_600_000);
    facts.origin = OriginCode(200);
    facts.reason = ReasonCode(200);
    facts.cursor = u32::MAX;
    facts.failed = u32::MAX;
    facts.memo = vec![u32::MAX];
    for window in &mut facts.windows {
        window.status = StatusCode(200);
        window.scope = ScopeCode(200);
        window.source = SourceCode(200);
        window.used_pct = ROption::RSome(f64::NAN);
    }
    for route in &mut facts.routes {
        route.first_window = u32::MAX;
        route.window_count = u32::MAX;
    }
    subject.with(|plugin, wants| ask_all(plugin, wants, &facts))
}

/// Asks every hook the plugin wants; only a panic is wrong here.
fn ask_all(plugin: &mut PluginBox, wants: Capabilities, facts: &Facts) -> Result<(), String> {
    if wants.has(Capabilities::PROLOGUE) {
        no_panic("prologue", plugin.prologue(&facts.prologue()))?;
    }
    if wants.has(Capabilities::WALK) {
        no_panic("before_walk", plugin.before_walk(&facts.walk()))?;
    }
    if wants.has(Capabilities::TERMINAL) {
        no_panic("on_terminal", plugin.on_terminal(&facts.terminal()))?;
    }
    if wants.has(Capabilities::EVENTS) {
        let turn = facts.turn.as_str().into();
        let text = facts.request.as_str().into();
        let event = TurnEvent_NE::new(TurnEvent::Text { turn, text });
        no_panic("on_event", plugin.on_event(&event))?;
    }
    if wants.has(Capabilities::COMMANDS) {
        no_panic("commands", plugin.commands())?;
    }
    Ok(())
}

fn no_panic<T>(hook: &str, reply: RResult<T, PluginError>) -> Result<Option<T>, String> {
    match reply {
        RResult::ROk(answer) => Ok(Some(answer)),
        RResult::RErr(error) if error.kind == ErrorKind::Panic => {
            Err(format!("{hook}: {}", words(&error)))
        }
        RResult::RErr(_) => Ok(None),
    }
}

/// Nothing that the gateway would have to take out.
fn answers(subject: &Subject) -> Result<(), String> {
    subject.with(|plugin, wants| {
        for facts in SIZES.iter().flat_map(|count| variants(*count)) {
            let positions = facts.routes.len();
            let mut bad = Vec::new();
            if wants.has(Capabilities::PROLOGUE) {
                let reply = no_panic("prologue", plugin.prologue(&facts.prologue()))?;
                if let Some(ROption::RSome(answer)) = reply {
                    bad.extend(merge::prologue_faults(answer.into(), positions));
                }
            }
            if wants.has(Capabilities::WALK) {
                let reply = no_panic("before_walk", plugin.before_walk(&facts.walk()))?;
                if let Some(ROption::RSome(answer)) = reply {
                    let cursor = facts.cursor as usize;
                    bad.extend(merge::walk_faults(answer.into(), cursor..positions));
                }
            }
            if let Some(what) = bad.first() {
                return Err(what.clone());
            }
        }
        Ok(())
    })
}

fn speed(subject: &Subject) -> Result<(), String> {
    let facts = Facts::with_routes(21).all_spent(3_600_000);
    subject.with(|plugin, wants| {
        for (hook, budget) in BUDGET_P99 {
            let mut took: Vec<Duration> = (0..200)
                .map(|_| {
                    let start = Instant::now();
                    let wanted = match hook {
                        "prologue" => {
                            wants.has(Capabilities::PROLOGUE) && {
                                drop(plugin.prologue(&facts.prologue()));
                                true
                            }
                        }
                        "before_walk" => {
                            wants.has(Capabilities::WALK) && {
                                drop(plugin.before_walk(&facts.walk()));
                                true
                            }
                        }
                        _ => {
                            wants.has(Capabilities::TERMINAL) && {
                                drop(plugin.on_terminal(&facts.terminal()));
                                true
                            }
                        }
                    };
                    if wanted {
                        start.elapsed()
                    } else {
                        Duration::ZERO
                    }
                })
                .collect();
            took.sort();
            let p99 = took.get(197).copied().unwrap_or_default();
            if p99 > budget {
                return Err(format!("{hook}: p99 {p99:?}, its budget is {budget:?}"));
            }
        }
        Ok(())
    })
}

fn memory(subject: &Subject) -> Result<(), String> {
    let facts = Facts::with_routes(21).all_spent(3_600_000);
    let opened = subject.open()?;
    // The gateway's own services: a recording host would grow by what it records.
    let host = Host::new(log::services("check", Arc::default()));
    let Some(mut plugin) = subject.make(&opened, &host)? else {
        return Err("it does not start with this configuration".into());
    };
    let wants = opened.manifest.capabilities;
    let rounds = CALLS / wants.0.count_ones().max(1) as usize;
    let mut ask = |rounds: usize| (0..rounds).try_for_each(|_| ask_all(&mut plugin, wants, &facts));
    ask(rounds / 10)?; // warm
    let before = resident_bytes();
    ask(rounds)?;
    let grown = resident_bytes().saturating_sub(before);
    if grown > GROWTH_BYTES {
        return Err(format!("grew by {grown} bytes in {CALLS} calls"));
    }
    Ok(())
}

/// Resident memory of this process; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

fn again_and_again(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let (host, _) = testing::host();
    for _ in 0..100 {
        drop(subject.make(&opened, &host)?);
    }
    Ok(())
}

/// Dropping one instance, and asking it things, changes nothing for another.
fn two_instances(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let wants = opened.manifest.capabilities;
    let (host, _) = testing::host();
    let facts = Facts::with_routes(21).all_spent(3_600_000);
    let fresh = || subject.make(&opened, &host);
    let (Some(mut one), Some(mut two)) = (fresh()?, fresh()?) else {
        return Err("it does not start with this configuration".into());
    };
    for _ in 0..10 {
        ask_all(&mut one, wants, &facts)?;
    }
    drop(one);
    let Some(mut three) = fresh()? else {
        return Err("it starts twice but not three times".into());
    };
    if wants.has(Capabilities::PROLOGUE) {
        let used = format!("{:?}", two.prologue(&facts.prologue()));
        let unused = format!("{:?}", three.prologue(&facts.prologue()));
        if used != unused {
            return Err("an instance answers differently because another one was used".into());
        }
    }
    Ok(())
}

fn log_volume(subject: &Subject) -> Result<(), String> {
    const LINES: usize = 10;
    let opened = subject.open()?;
    let (host, recorded) = testing::host();
    let Some(mut plugin) = subject.make(&opened, &host)? else {
        return Err("it does not start with this configuration".into());
    };
    let facts = Facts::with_routes(21).all_spent(3_600_000);
    let before = recorded.lines().len();
    ask_all(&mut plugin, opened.manifest.capabilities, &facts)?;
    let lines = recorded.lines().len() - before;
    if lines > LINES * 5 {
        return Err(format!("{lines} log lines for one round of hooks"));
    }
    if let Some((_, line)) = recorded
        .lines()
        .iter()
        .find(|(_, line)| line.len() > 8 * 1024)
    {
        return Err(format!("a log line of {} bytes", line.len()));
    }
    Ok(())
}

/// The gateway ends while a hook runs.
fn drop_while_busy(subject: &Subject) -> Result<(), String> {
    let opened = subject.open()?;
    let config = subject.config.clone();
    let wants = opened.manifest.capabilities;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let make = Box::new(move || {
        let (host, _) = testing::host();
        create_with(&opened, &host, &config).into_result()
    });
    runtime.block_on(async move {
        let instance = Instance::start("check", make)
            .await
            .map_err(|error| words(&error))?;
        let _: Asked<()> = instance
            .ask(Duration::ZERO, move |plugin| {
                let facts = Facts::with_routes(1_000).all_spent(3_600_000);
                match ask_all(plugin, wants, &facts) {
                    Ok(()) => RResult::ROk(ROption::RSome(())),
                    Err(_) => RResult::ROk(ROption::RNone),
                }
            })
            .await;
        match instance.stop(Duration::from_secs(5)).await {
            true => Ok(()),
            false => Err("its instance was not gone five seconds after the end".into()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_test_is_an_error() {
        let check = CheckOne {
            file: "x".into(),
            test: "nothing".into(),
            config: None,
        };
        assert!(run_one(&check).unwrap_err().contains("nothing"));
    }
}
