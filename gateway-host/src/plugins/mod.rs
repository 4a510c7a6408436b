//! Plugins: found, checked, loaded, asked, merged. Everything outside sees plain Rust; `abi_stable` types end here.
//! Fails open: a plugin that is missing, late, wrong or broken leaves a turn exactly as it would be without it, and
//! [`PluginSet::states`] says which one and why.

mod call;
pub mod check;
pub mod cli;
pub mod commands;
mod contexts;
mod elf;
pub mod facts;
mod find;
pub mod install;
mod load;
mod log;
mod merge;
pub mod sheet;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use abi_stable::std_types::{ROption, RResult, RVec};
use futures_util::future::join_all;
use gateway_core::event::Event;
use gateway_core::ids::{ProfileId, TurnId};
use plugin_api::command::CommandSpec;
use plugin_api::plugin::{Capabilities, ErrorKind, PluginBox, PluginError, Reply};

use self::call::{Asked, Instance};
use self::commands::Brought;
pub use self::facts::LoadProblem;
use self::facts::{
    CommandAdvice, CommandFacts, DisabledBecause, PluginState, PrologueAdvice, PrologueFacts,
    State, TerminalAdvice, TerminalFacts, WalkAdvice, WalkFacts,
};
pub use self::find::Places;
pub use self::load::LoadError;
use self::load::Opened;
pub use self::log::Metrics;
use self::merge::{Misbehaviour, Said};
use crate::config::{PluginFile, PluginUse, Settings};

/// How long an ordinary shutdown waits for plugin threads.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// The plugins of all profiles.
#[derive(Default)]
pub struct PluginSet {
    /// In the order of the configuration.
    profiles: BTreeMap<ProfileId, Vec<Slot>>,
    /// The slash commands of each profile's plugins, as they said at the start.
    commands: BTreeMap<ProfileId, Vec<Brought>>,
    metrics: Arc<Metrics>,
}

/// A plugin in a profile, running or not.
struct Slot {
    name: String,
    usage: PluginUse,
    version: Option<String>,
    file: Option<PathBuf>,
    capabilities: Capabilities,
    life: Life,
}

enum Life {
    Running(Instance),
    Not(DisabledBecause, Option<String>),
}

impl PluginSet {
    /// Loads every plugin that any profile enables: one library each, one instance per profile. `exe` is the gateway's
    /// executable, which also loads each library first in a child process. A problem never fails the whole; one with
    /// `required` means that the gateway should not start.
    pub async fn load(settings: &Settings, exe: &Path) -> (Self, Vec<LoadProblem>) {
        let places = Places::of(exe, &settings.root.0);
        Self::load_from(settings, exe, &places).await
    }

    /// The same, looking for libraries in these places.
    pub async fn load_from(
        settings: &Settings,
        exe: &Path,
        places: &Places,
    ) -> (Self, Vec<LoadProblem>) {
        let names = enabled_configs(settings);
        let run = settings.root.0.join("state").join("run");
        let none = PluginFile::default();
        let opening = names.iter().map(|(name, configs)| {
            let file = settings.plugins.get(name).unwrap_or(&none);
            open(name, file, configs, places, exe, &run)
        });
        let opened = join_all(opening).await;
        let libraries: BTreeMap<&String, Library> = names.keys().zip(opened).collect();
        let pruned = load::prune(&run, load::now());
        if pruned > 0 {
            tracing::info!(pruned, "copies of plugins that nobody uses were removed");
        }
        let metrics = Arc::new(Metrics::default());
        let mut set = Self {
            metrics,
            ..Self::default()
        };
        let mut problems = Vec::new();
        for (profile, settings) in &settings.profiles {
            let mut slots = Vec::new();
            let mut plugins: Vec<_> = settings.plugins.iter().collect();
            plugins.sort_by_key(|(name, usage)| (usage.order, *name));
            for (name, usage) in plugins {
                let slot = start(name, usage, libraries.get(name), &set.metrics).await;
                problems.extend(problem(profile, &slot));
                slots.push(slot);
            }
            set.commands.insert(profile.clone(), bring(&slots).await);
            set.profiles.insert(profile.clone(), slots);
        }
        for problem in &problems {
            tracing::warn!(plugin = %problem.name, profile = %problem.profile, "{problem}");
        }
        (set, problems)
    }

    /// Asks before the first attempt.
    pub async fn prologue(&self, profile: &ProfileId, facts: Arc<PrologueFacts>) -> PrologueAdvice {
        let (answers, _) = self
            .ask(profile, &PROLOGUE, || {
                let facts = facts.clone();
                Box::new(move |plugin| contexts::prologue(plugin, &facts))
            })
            .await;
        report(merge::prologue(answers, &facts))
    }

    /// Asks after a quota failure.
    pub async fn before_walk(&self, profile: &ProfileId, facts: Arc<WalkFacts>) -> WalkAdvice {
        let (answers, _) = self
            .ask(profile, &BEFORE_WALK, || {
                let facts = facts.clone();
                Box::new(move |plugin| contexts::before_walk(plugin, &facts))
            })
            .await;
        report(merge::walk(answers, &facts))
    }

    /// Asks when nothing answered.
    pub async fn on_terminal(
        &self,
        profile: &ProfileId,
        facts: Arc<TerminalFacts>,
    ) -> TerminalAdvice {
        let (answers, complete) = self
            .ask(profile, &ON_TERMINAL, || {
                let facts = facts.clone();
                Box::new(move |plugin| contexts::on_terminal(plugin, &facts))
            })
            .await;
        let sane = |(advice, bad): (TerminalAdvice, Vec<Misbehaviour>)| {
            let complete = complete && bad.is_empty();
            (TerminalAdvice { complete, ..advice }, bad)
        };
        report(sane(merge::terminal(answers, &facts)))
    }

    /// The slash commands the profile's plugins bring; none has the name of one of the gateway's.
    pub fn commands(&self, profile: &ProfileId) -> &[Brought] {
        self.commands.get(profile).map_or(&[], Vec::as_slice)
    }

    /// Asks the plugin a command is from. `None` = it did not answer in time, is switched off or in error.
    pub async fn on_command(
        &self,
        brought: Brought,
        facts: Arc<CommandFacts>,
    ) -> Option<CommandAdvice> {
        let mut slots = self.slots(&facts.profile).iter();
        let slot = slots.find(|slot| slot.name == brought.plugin)?;
        let Life::Running(instance) = &slot.life else {
            return None;
        };
        let told = Arc::clone(&facts);
        let asked: Asked<plugin_api::command::CommandAdvice> = instance
            .ask(ON_COMMAND.budget(&slot.usage), move |plugin| {
                contexts::on_command(plugin, &told)
            })
            .await;
        match asked {
            Asked::Advice(said) => Some(report(commands::answer(brought.plugin, said, &facts))),
            Asked::NoOpinion => Some(CommandAdvice::default()),
            Asked::Absent => None,
        }
    }

    /// Tells plugins what a running turn reports, without waiting.
    pub fn observe(&self, profile: &ProfileId, turn: &TurnId, event: &Event) {
        for slot in self.slots(profile) {
            let Life::Running(instance) = &slot.life else {
                continue;
            };
            if slot.capabilities.has(Capabilities::EVENTS)
                && let Some(event) = contexts::turn_event(turn, event)
            {
                instance.observe(event);
            }
        }
    }

    /// Where every plugin of every profile stands.
    pub fn states(&self) -> Vec<PluginState> {
        let all = self
            .profiles
            .iter()
            .flat_map(|(profile, slots)| slots.iter().map(move |slot| slot.state(profile)));
        all.collect()
    }

    /// Whether the profile has the plugin switched on, whatever its health.
    pub fn enabled(&self, profile: &ProfileId, name: &str) -> bool {
        self.slots(profile)
            .iter()
            .any(|slot| slot.name == name && slot.usage.enabled)
    }

    /// What plugins count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Ends the instances, all at once; a stuck one is left behind after a second.
    pub async fn shutdown(self) {
        let slots = self.profiles.into_values().flatten();
        let stopping = slots.filter_map(|slot| match slot.life {
            Life::Running(instance) => Some(instance.stop(SHUTDOWN)),
            Life::Not(..) => None,
        });
        join_all(stopping).await;
    }

    fn slots(&self, profile: &ProfileId) -> &[Slot] {
        self.profiles.get(profile).map_or(&[], Vec::as_slice)
    }

    /// Asks every plugin of the profile that wants the hook, at the same time; the answers in order of the configuration,
    /// and whether all that are switched on answered.
    async fn ask<W, A>(
        &self,
        profile: &ProfileId,
        hook: &Hook,
        call: impl Fn() -> Call<W>,
    ) -> (Vec<Said<A>>, bool)
    where
        W: 'static,
        A: From<W> + Send + 'static,
    {
        let slots = self.slots(profile).iter().filter(|slot| slot.usage.enabled);
        let asking = slots.filter_map(|slot| {
            let Life::Running(instance) = &slot.life else {
                return Some((slot, None));
            };
            let wants = slot.capabilities.has(hook.capability);
            wants.then(|| {
                let asked = instance.ask(hook.budget(&slot.usage), call());
                (slot, Some(asked))
            })
        });
        let asked = join_all(asking.map(|(slot, asked)| async move {
            match asked {
                Some(asked) => (slot.name.clone(), asked.await),
                None => (slot.name.clone(), Asked::Absent),
            }
        }))
        .await;
        let complete = asked
            .iter()
            .all(|(_, asked)| !matches!(asked, Asked::Absent));
        let answers = asked.into_iter().filter_map(|(name, asked)| match asked {
            Asked::Advice(advice) => Some((name, advice)),
            Asked::NoOpinion | Asked::Absent => None,
        });
        (answers.collect(), complete)
    }
}

type Call<W> = Box<dyn FnOnce(&mut PluginBox) -> Reply<W> + Send>;

/// A place where plugins are asked.
struct Hook {
    name: &'static str,
    capability: Capabilities,
    budget: Duration,
}

const PROLOGUE: Hook = Hook {
    name: "prologue",
    capability: Capabilities::PROLOGUE,
    budget: Duration::from_millis(200),
};
const BEFORE_WALK: Hook = Hook {
    name: "before_walk",
    capability: Capabilities::WALK,
    budget: Duration::from_millis(50),
};
const ON_TERMINAL: Hook = Hook {
    name: "on_terminal",
    capability: Capabilities::TERMINAL,
    budget: Duration::from_secs(2),
};

/// People wait longer for a command they typed than a turn may for a plugin.
const ON_COMMAND: Hook = Hook {
    name: "on_command",
    capability: Capabilities::COMMANDS,
    budget: Duration::from_secs(10),
};
/// To say which commands there are, at the start.
const COMMANDS_BUDGET: Duration = Duration::from_secs(1);

impl Hook {
    fn budget(&self, usage: &PluginUse) -> Duration {
        usage
            .budget_ms
            .get(self.name)
            .map_or(self.budget, |ms| Duration::from_millis(*ms))
    }
}

fn report<A>((advice, bad): (A, Vec<Misbehaviour>)) -> A {
    for Misbehaviour { plugin, what } in bad {
        tracing::warn!(target: "plugin", plugin, "PLUGIN_MISBEHAVING: {what}");
    }
    advice
}

/// What the plugins of one profile say they bring.
async fn bring(slots: &[Slot]) -> Vec<Brought> {
    let mut said = Vec::new();
    for slot in slots {
        if let Life::Running(instance) = &slot.life
            && slot.capabilities.has(ON_COMMAND.capability)
        {
            let asked: Asked<Brings> = instance
                .ask(COMMANDS_BUDGET, |plugin| match plugin.commands() {
                    RResult::ROk(specs) => RResult::ROk(ROption::RSome(specs)),
                    RResult::RErr(error) => RResult::RErr(error),
                })
                .await;
            if let Asked::Advice(Brings(specs)) = asked {
                said.push((slot.name.clone(), specs));
            }
        }
    }
    report(commands::offered(said))
}

/// Commands as they crossed.
struct Brings(Vec<CommandSpec>);

impl From<RVec<CommandSpec>> for Brings {
    fn from(specs: RVec<CommandSpec>) -> Self {
        Self(specs.into_vec())
    }
}

/// The plugins to load, each with the configurations its instances will get.
fn enabled_configs(settings: &Settings) -> BTreeMap<String, Vec<String>> {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for profile in settings.profiles.values() {
        for (name, usage) in &profile.plugins {
            if usage.enabled {
                names
                    .entry(name.clone())
                    .or_default()
                    .push(config_text(usage));
            }
        }
    }
    names
}

fn config_text(usage: &PluginUse) -> String {
    match &usage.config {
        serde_json::Value::Null => "{}".into(),
        config => config.to_string(),
    }
}

/// A library that was opened, or why it was not, with its file once that is known.
struct Library {
    file: Option<PathBuf>,
    opened: Result<Opened, LoadError>,
}

async fn open(
    name: &str,
    settings: &PluginFile,
    configs: &[String],
    places: &Places,
    exe: &Path,
    run: &Path,
) -> Library {
    let file = match find::find(name, settings, places) {
        Ok(file) => file,
        Err(error) => {
            return Library {
                file: None,
                opened: Err(error),
            };
        }
    };
    let opened = open_file(&file, settings, configs, places, exe, run).await;
    Library {
        file: Some(file),
        opened,
    }
}

async fn open_file(
    file: &Path,
    settings: &PluginFile,
    configs: &[String],
    places: &Places,
    exe: &Path,
    run: &Path,
) -> Result<Opened, LoadError> {
    let read = find::read(file, settings, places)?;
    elf::check(&read.bytes).map_err(|why| LoadError::NotALibrary {
        file: file.to_path_buf(),
        why,
    })?;
    let copy = load::private_copy(&read.bytes, &read.sha256, run).map_err(|error| {
        LoadError::Unreadable {
            file: run.to_path_buf(),
            error,
        }
    })?;
    let named = |error: LoadError| error.about(file);
    load::probe(exe, &copy, configs).await.map_err(named)?;
    load::open(&copy).map_err(named)
}

async fn start(
    name: &str,
    usage: &PluginUse,
    library: Option<&Library>,
    metrics: &Arc<Metrics>,
) -> Slot {
    let mut slot = Slot {
        name: name.to_owned(),
        usage: usage.clone(),
        version: None,
        file: None,
        capabilities: Capabilities::NONE,
        life: Life::Not(DisabledBecause::Off, None),
    };
    let Some(library) = library.filter(|_| usage.enabled) else {
        return slot;
    };
    slot.file.clone_from(&library.file);
    let opened = match &library.opened {
        Ok(opened) => opened,
        Err(error) => {
            slot.life = Life::Not(error.because(), Some(error.to_string()));
            return slot;
        }
    };
    slot.version = Some(opened.manifest.version.to_string());
    slot.capabilities = opened.manifest.capabilities;
    let made = Instance::start(name, maker(opened, &config_text(usage), name, metrics)).await;
    slot.life = match made {
        Ok(instance) => Life::Running(instance),
        Err(error) => Life::Not(start_failure(&error), Some(start_words(&error))),
    };
    slot
}

/// Makes instances of an opened library on the thread that will own them.
fn maker(opened: &Opened, config: &str, name: &str, metrics: &Arc<Metrics>) -> call::Make {
    let module = opened.module;
    let config = config.to_owned();
    let name = name.to_owned();
    let metrics = metrics.clone();
    Box::new(move || {
        let host = log::services(&name, metrics.clone());
        match (module.create())(host, config.as_str().into()) {
            RResult::ROk(plugin) => Ok(plugin),
            RResult::RErr(error) => Err(error),
        }
    })
}

fn start_failure(error: &PluginError) -> DisabledBecause {
    match error.kind {
        ErrorKind::Config => DisabledBecause::Config,
        ErrorKind::Panic => DisabledBecause::Panics,
        _ => DisabledBecause::Load,
    }
}

fn start_words(error: &PluginError) -> String {
    match (error.kind, error.path.as_str()) {
        (ErrorKind::Panic, _) => format!("panic while it started: {}", error.message),
        (_, "") => error.message.to_string(),
        (_, path) => format!("{path}: {}", error.message),
    }
}

fn problem(profile: &ProfileId, slot: &Slot) -> Option<LoadProblem> {
    let Life::Not(because, Some(message)) = &slot.life else {
        return None;
    };
    Some(LoadProblem {
        profile: profile.clone(),
        name: slot.name.clone(),
        because: *because,
        message: message.clone(),
        required: slot.usage.required,
    })
}

impl Slot {
    fn state(&self, profile: &ProfileId) -> PluginState {
        let mut state = PluginState {
            profile: profile.clone(),
            name: self.name.clone(),
            version: self.version.clone(),
            file: self.file.clone(),
            state: State::Active,
            calls: 0,
            failures: 0,
            dropped_events: 0,
            last_error: None,
        };
        match &self.life {
            Life::Not(because, error) => {
                state.state = State::Disabled(*because);
                state.last_error.clone_from(error);
            }
            Life::Running(instance) => {
                let health = instance.health();
                state.state = health.state;
                state.calls = health.calls;
                state.failures = health.failures;
                state.dropped_events = health.dropped_events;
                state.last_error = health.last_error;
            }
        }
        state
    }
}
