//! `baton usage [--watch] [--no-probe] [--profile P]`: every subscription's windows. What is stale or unknown is asked for
//! first, of the subscriptions' own surfaces and within seconds; what was read before is shown whatever becomes of that.
//! The shape of `--json` is described in `docs/usage.md`.

mod sheet;
mod watch;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

use commands::usage::{UsageSheet, render, subscriptions};
use commands::{EntryState, Verdict};
use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::usage::probe::Occasion;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::SharedProvider;

use super::answer::Answer;
use super::args::UsageArgs;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on, chat, colour};
use crate::clock::{Clock, SystemClock};
use crate::config::Settings;
use crate::cooling::Cooling;
use crate::provide;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::store::sqlite::SqliteStore;
use crate::usage::probes::{Probes, Told};
use crate::usage::{Evidence, Registry, identity};

pub(crate) fn run(
    args: &UsageArgs,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let settings = around.loaded()?.settings;
    let profile = args.profile.as_deref().map(ProfileId::new);
    if let Some(profile) = &profile {
        chat::known(profile, &settings)?;
    }
    block_on(async {
        let desk = Desk::open(settings, profile, !args.no_probe).await?;
        if args.watch {
            watch::run(&desk, answer).await?;
        } else {
            let told = desk.ask().await;
            let evidence = desk.registry.current(desk.now()).await;
            desk.show(&evidence, &told, terminal_width(), answer)?;
        }
        desk.registry.settled().await;
        Ok(Exit::Done)
    })?
}

/// What is looked at, and with what.
struct Desk {
    settings: Settings,
    /// `None` = every subscription there is.
    profile: Option<ProfileId>,
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    /// For logins that are refused.
    cooling: Cooling,
    /// `None` = nobody is asked.
    probes: Option<Arc<Probes>>,
}

/// What the subscriptions asked had to say.
type Answers = BTreeMap<SubscriptionId, Told>;

impl Desk {
    /// Looking alone makes no store.
    async fn open(
        settings: Settings,
        profile: Option<ProfileId>,
        probing: bool,
    ) -> Result<Self, Failure> {
        let file = settings.root.store_file();
        let store: Arc<dyn Store> = match probing || file.exists() {
            true => Arc::new(SqliteStore::open(&file).await?),
            false => Arc::new(MemoryStore::new()),
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registry = Arc::new(Registry::new(&settings, Arc::clone(&store)));
        let mut probes = None;
        if probing {
            let providers = providers(&settings, &clock);
            identity::introduce(&settings, &providers, &registry).await;
            probes = Some(Probes::new(
                &settings, &providers, &registry, &store, &clock,
            ));
        }
        Ok(Self {
            cooling: Cooling::new(&settings),
            settings,
            profile,
            clock,
            registry,
            probes,
        })
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Asks for what is not fresh; returns within seconds.
    async fn ask(&self) -> Answers {
        let Some(probes) = &self.probes else {
            return Answers::new();
        };
        let nothing = Evidence::default();
        let entries = sheet::entries(&self.settings, self.profile.as_ref(), &nothing, self.now());
        let shown = subscriptions(&entries).map(|entry| entry.route.subscription.clone());
        let told = probes
            .ask(shown.collect::<Vec<_>>(), Occasion::Demand)
            .await;
        told.into_iter().collect()
    }

    fn entries(&self, evidence: &Evidence) -> Vec<EntryState> {
        let mut entries =
            sheet::entries(&self.settings, self.profile.as_ref(), evidence, self.now());
        for entry in &mut entries {
            if self.cooling.appears_locked_out(&entry.route.subscription) {
                entry.verdict = Verdict::LockedOut;
            }
        }
        entries
    }

    fn show(
        &self,
        evidence: &Evidence,
        told: &Answers,
        width: Option<usize>,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        if answer.is_json() {
            let entries = self.entries(evidence);
            let document = sheet::document(&self.settings, &entries, evidence, told, self.now());
            answer.json(&document)?;
        } else {
            answer.line(&self.text(evidence, told, width, colour::on_stdout()))?;
        }
        Ok(())
    }

    fn text(
        &self,
        evidence: &Evidence,
        told: &Answers,
        width: Option<usize>,
        colour: bool,
    ) -> String {
        let entries = self.entries(evidence);
        if entries.is_empty() {
            return "No subscription is configured: there is nothing to show. `baton init` proposes some.".to_owned();
        }
        let mut text = render(&UsageSheet {
            now: self.now(),
            zone: &TimeZone::system(),
            entries: &entries,
            width,
            colour,
        });
        for line in sheet::remarks(evidence, told) {
            text.push('\n');
            text.push_str(&line);
        }
        text
    }
}

/// Those that can be built; the others are shown from what is known, and `baton doctor` says what is wrong with them.
fn providers(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> BTreeMap<SubscriptionId, SharedProvider> {
    let mut client = None;
    let mut built = BTreeMap::new();
    for (id, subscription) in &settings.subscriptions {
        match provide::one(settings, subscription, clock, None, &mut client) {
            Ok(provider) => drop(built.insert(id.clone(), provider)),
            Err(why) => tracing::warn!(subscription = %id, %why, "it cannot be asked"),
        }
    }
    built
}

/// Columns of the terminal; `None` = stdout is none, and lines are as long as they are.
fn terminal_width() -> Option<usize> {
    terminal_size().map(|(width, _)| width)
}

fn terminal_size() -> Option<(usize, usize)> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    (size.ws_col > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use gateway_core::route::Billing;

    use super::*;
    use crate::config::{ProviderSettings, RootPath, SubscriptionSettings};
    use crate::cooling::lockout::Lockouts;

    #[tokio::test]
    async fn a_refused_login_is_shown_as_left_out_and_looking_removes_no_record() {
        let home = tempfile::tempdir().unwrap();
        let root = RootPath(home.path().to_owned());
        let subscription = |name: &str| {
            let id = SubscriptionId::new(name);
            let settings = SubscriptionSettings {
                slug: id.clone(),
                id: id.clone(),
                billing: Billing::Plan,
                provider: ProviderSettings::Scripted,
            };
            (id, settings)
        };
        let settings = Settings {
            usage_snapshot: root.usage_file(),
            subscriptions: ["a", "b", "c"].map(subscription).into(),
            profiles: BTreeMap::new(),
            plugins: BTreeMap::new(),
            root: root.clone(),
        };
        let lockouts = Lockouts::of(&root);
        let (a, c) = (SubscriptionId::new("a"), SubscriptionId::new("c"));
        lockouts.record(&a, "", Timestamp::UNIX_EPOCH); // the login of a scripted one
        lockouts.record(&c, "another login", Timestamp::UNIX_EPOCH);
        let desk = Desk::open(settings, None, false).await.ok().unwrap();
        let entries = desk.entries(&Evidence::default());
        let left_out = entries
            .iter()
            .map(|entry| entry.verdict == Verdict::LockedOut);
        assert_eq!(left_out.collect::<Vec<_>>(), [true, false, false]);
        assert!(lockouts.of_subscription(&c).is_some());
    }
}
