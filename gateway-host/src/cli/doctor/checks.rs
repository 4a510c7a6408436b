//! The single looks of `baton doctor`.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use providers::Health;

use super::{Check, Status};
use crate::cli::executable;
use crate::clock::{Clock, SystemClock};
use crate::config::{Environment, RootPath, Settings, SubscriptionSettings};
use crate::cooling::lockout::Lockouts;
use crate::plugins::PluginSet;
use crate::plugins::facts::{DisabledBecause, PluginState, State};
use crate::provide;
use crate::store::sqlite::SqliteStore;

/// The largest published registry that is read; a larger one is left aside by the gate as well.
const SNAPSHOT_LIMIT: u64 = 64 * 1024 * 1024;

/// Whether what lies below the root is ours alone.
pub(super) fn folders(root: &RootPath) -> Vec<Check> {
    let all = [
        (root.0.clone(), "700"),
        (root.config_file(), "600"),
        (root.0.join("state"), "700"),
        (root.store_file(), "600"),
        (root.logs(), "700"),
    ];
    let exposed: Vec<Check> = all
        .iter()
        .filter_map(|(path, mode)| {
            let metadata = std::fs::metadata(path).ok()?;
            (metadata.mode() & 0o077 != 0).then(|| {
                let detail = format!(
                    "{} is open to others (mode {:o})",
                    path.display(),
                    metadata.mode() & 0o777
                );
                Check::warn(
                    "permissions",
                    detail,
                    format!("run `chmod {mode} {}`", path.display()),
                )
            })
        })
        .collect();
    if exposed.is_empty() {
        return vec![Check::ok(
            "permissions",
            format!("{} is yours alone", root.0.display()),
        )];
    }
    exposed
}

/// Whether the store opens, at its newest schema.
pub(super) async fn store(root: &RootPath) -> Check {
    let file = root.store_file();
    match SqliteStore::open(&file).await {
        Ok(store) => {
            store.close().await;
            match takes_a_file(&file) {
                Ok(()) => Check::ok(
                    "store",
                    format!("{} opens, and its folder takes a file", file.display()),
                ),
                Err(error) => Check::fail(
                    "store",
                    format!(
                        "{} opens, but nothing can be written beside it: {error}",
                        file.display()
                    ),
                    "free space on the disk or check the permissions of the state folder; until then no turn is taken",
                ),
            }
        }
        Err(error) => Check::fail(
            "store",
            error.to_string(),
            "nothing can be answered without the store: it holds what must not be lost",
        ),
    }
}

/// Writes a page beside the store, waits until it is on disk and removes it: a full disk shows only then.
fn takes_a_file(store: &Path) -> io::Result<()> {
    let folder = store.parent().unwrap_or(Path::new("."));
    let mut probe = tempfile::NamedTempFile::new_in(folder)?;
    probe.write_all(&[0; 4096])?;
    probe.as_file().sync_all()
}

/// Secrets, programs and logins, all at the same time. Only if none is ready can no turn be answered.
pub(super) async fn subscriptions(settings: &Settings, environment: &Environment) -> Vec<Check> {
    let looks = settings
        .subscriptions
        .values()
        .map(|subscription| subscription_health(subscription, settings, environment));
    let mut checks = join_all(looks).await;
    let in_a_chain = |name: &str| {
        let mut routes = settings
            .profiles
            .values()
            .flat_map(|profile| &profile.chain);
        routes.any(|route| name.strip_prefix("subscription ") == Some(route.subscription.as_str()))
    };
    for check in checks
        .iter_mut()
        .filter(|check| check.status == Status::Fail)
    {
        if !in_a_chain(&check.name) {
            check.status = Status::Warn; // nobody waits for it
        }
    }
    checks
}

async fn subscription_health(
    subscription: &SubscriptionSettings,
    settings: &Settings,
    environment: &Environment,
) -> Check {
    let name = format!("subscription {}", subscription.id);
    if let Some(Err(error)) = subscription.key().map(|key| key.resolve_in(environment)) {
        return Check::fail(
            name,
            error.to_string(),
            "turns pass this subscription over until then",
        );
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let provider = match provide::one(settings, subscription, &clock, None, &mut None) {
        Ok(provider) => provider,
        Err(problem) => {
            let hint = "check the subscription's section in config.toml";
            return Check::fail(name, problem.to_string(), hint);
        }
    };
    let lockouts = Lockouts::of(&settings.root);
    let locked_out = lockouts.of_subscription(&subscription.id);
    match provider.health().await {
        Health::Ready { version } => {
            let mut detail = match version {
                Some(version) => format!("ready, version {version}"),
                None => "ready".to_owned(),
            };
            if let Some(lockout) = locked_out {
                lockouts.clear(&subscription.id);
                detail.push_str(&format!(
                    "; its login was refused on {}, and it is tried again from now on",
                    lockout.since.strftime("%Y-%m-%d %H:%M UTC")
                ));
            }
            Check::ok(name, detail)
        }
        Health::Broken { problem, hint } if locked_out.is_some() => Check::fail(
            name,
            format!("{problem}; turns leave it out since its login was refused"),
            hint,
        ),
        Health::Broken { problem, hint } => Check::fail(name, problem, hint),
    }
}

/// Whether each plugin a profile enables is found and loads.
pub(super) async fn plugins(settings: &Settings) -> Vec<Check> {
    let executable = match executable() {
        Ok(executable) => executable,
        Err(error) => {
            return vec![Check::fail(
                "plugins",
                error.error.to_string(),
                "start baton by its full path",
            )];
        }
    };
    let (set, problems) = PluginSet::load(settings, &executable).await;
    let mut checks: Vec<Check> = set.states().iter().map(plugin).collect();
    for check in &mut checks {
        let problem = problems
            .iter()
            .find(|problem| check.name == plugin_name(problem.profile.as_str(), &problem.name));
        if let Some(problem) = problem {
            check.status = if problem.required {
                Status::Fail
            } else {
                Status::Warn
            };
            check.detail = problem.message.clone();
        }
    }
    set.shutdown().await;
    checks
}

fn plugin(state: &PluginState) -> Check {
    let name = plugin_name(state.profile.as_str(), &state.name);
    let detail = match &state.version {
        Some(version) => format!("{}, version {version}", state.state),
        None => state.state.to_string(),
    };
    match &state.state {
        State::Active | State::Busy | State::Disabled(DisabledBecause::Off) => {
            Check::ok(name, detail)
        }
        State::Disabled(_) => {
            let hint = "`baton plugin check FILE` says more; without it the profile runs as if the plugin were not there";
            Check::warn(name, state.last_error.clone().unwrap_or(detail), hint)
        }
    }
}

fn plugin_name(profile: &str, plugin: &str) -> String {
    format!("plugin {plugin} of {profile}")
}

/// Whether the published registry can be read. Missing or unreadable means that every subscription is tried.
pub(super) fn snapshot(path: &Path) -> Check {
    let broken = |why: String| {
        let hint = "subscriptions are tried without it; ask whoever publishes it, or point usage.snapshot elsewhere";
        Check::warn("usage registry", format!("{}: {why}", path.display()), hint)
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Check::ok(
                "usage registry",
                format!("none published yet at {}", path.display()),
            );
        }
        Err(error) => return broken(error.to_string()),
    };
    match file.metadata() {
        Ok(about) if !about.is_file() => return broken("this is not a file".to_owned()),
        Ok(about) if about.len() > SNAPSHOT_LIMIT => {
            return broken(format!("{} bytes are too many", about.len()));
        }
        Ok(_) => {}
        Err(error) => return broken(error.to_string()),
    }
    let document: serde_json::Value = match serde_json::from_reader(BufReader::new(file)) {
        Ok(document) => document,
        Err(error) => return broken(format!("this is not JSON: {error}")),
    };
    match document
        .get("accounts")
        .and_then(serde_json::Value::as_array)
    {
        Some(accounts) => Check::ok(
            "usage registry",
            format!("{}: {} account(s)", path.display(), accounts.len()),
        ),
        None => broken("it has no list of accounts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_registry_is_read_or_said_to_be_broken() {
        let read = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            snapshot(file.path()).status
        };
        assert_eq!(read(r#"{"accounts": []}"#), Status::Ok);
        assert_eq!(read(r#"{"accounts": ["#), Status::Warn);
        assert_eq!(read("{}"), Status::Warn);
        assert_eq!(snapshot(Path::new("/")).status, Status::Warn);
        assert_eq!(
            snapshot(Path::new("/nowhere/usage.json")).status,
            Status::Ok
        );
    }
}
