//! What `baton plugin …` does, as functions from arguments to a text and an exit code; printing is the caller's.
//! `probe` and `check_one` are the hidden halves of loading and checking: they run in a child process.

use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use abi_stable::std_types::RResult;
use serde_json::json;

use super::check::{self, CheckOne, CheckReport};
use super::facts::{DisabledBecause, PluginState};
use super::load::{self, LoadError, PROBE_ERROR, PROBE_OK, PROBE_VERSION};
use super::{PluginSet, install as installer};
use crate::config::Settings;

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// For stdout, ends with a line break unless empty.
    pub out: String,
    /// For stderr, one sentence; empty if all went well.
    pub err: String,
    /// 0 done, 1 found something, 2 could not run.
    pub code: u8,
}

impl Said {
    fn done(out: String) -> Self {
        Self {
            out,
            err: String::new(),
            code: 0,
        }
    }

    fn failed(code: u8, err: impl Into<String>) -> Self {
        Self {
            out: String::new(),
            err: err.into(),
            code,
        }
    }
}

/// `baton plugin list [--json]`: loads what the configuration enables and says where each plugin stands. Exit 1 if an enabled one is not there.
pub async fn list(settings: &Settings, exe: &Path, as_json: bool) -> Said {
    let (set, problems) = PluginSet::load(settings, exe).await;
    let states = set.states();
    set.shutdown().await;
    let out = if as_json {
        states_json(&states)
    } else {
        states_text(&states)
    };
    Said {
        out,
        err: String::new(),
        code: u8::from(!problems.is_empty()),
    }
}

/// The states as lines for people; also what `/plugins` shows.
pub fn states_text(states: &[PluginState]) -> String {
    if states.is_empty() {
        return "No plugin is configured in any profile.\n".to_owned();
    }
    let mut text = String::new();
    for state in states {
        let version = state.version.as_deref().unwrap_or("-");
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{}  {} {version}  {}",
            state.profile, state.name, state.state
        );
        if state.calls > 0 {
            let _ = write!(text, "  {} calls, {} failures", state.calls, state.failures);
        }
        if let Some(file) = &state.file {
            let _ = write!(text, "  {}", file.display());
        }
        text.push('\n');
        if let Some(error) = &state.last_error {
            let _ = writeln!(text, "    {error}");
        }
    }
    text
}

fn states_json(states: &[PluginState]) -> String {
    let all: Vec<serde_json::Value> = states
        .iter()
        .map(|state| {
            json!({
                "profile": state.profile,
                "name": state.name,
                "version": state.version,
                "file": state.file,
                "state": state.state.to_string(),
                "calls": state.calls,
                "failures": state.failures,
                "dropped_events": state.dropped_events,
                "last_error": state.last_error,
            })
        })
        .collect();
    format!("{}\n", serde_json::Value::Array(all))
}

/// `baton plugin check FILE [--config c.json] [--json]`.
pub async fn check(file: &Path, config: Option<&Path>, as_json: bool, exe: &Path) -> Said {
    let config = match config.map(std::fs::read_to_string).transpose() {
        Ok(config) => config,
        Err(error) => {
            return Said::failed(2, format!("the configuration cannot be read: {error}"));
        }
    };
    match check::check(file, config.as_deref(), exe).await {
        Err(why) => Said::failed(2, why),
        Ok(report) => {
            let code = u8::from(report.counts().1 > 0);
            let out = if as_json {
                report_json(&report)
            } else {
                report_text(&report)
            };
            Said {
                code,
                ..Said::done(out)
            }
        }
    }
}

fn report_text(report: &CheckReport) -> String {
    let mut text = String::new();
    for result in &report.results {
        let _ = match result.passed {
            true => writeln!(text, "ok      {}", result.test),
            false => writeln!(text, "FAILED  {}: {}", result.test, result.why),
        };
    }
    let (passed, failed) = report.counts();
    let _ = writeln!(text, "{passed} passed, {failed} failed");
    text
}

fn report_json(report: &CheckReport) -> String {
    let (passed, failed) = report.counts();
    let results = json!({
        "file": report.file,
        "results": report.results,
        "passed": passed,
        "failed": failed,
    });
    format!("{results}\n")
}

/// `baton plugin install FILE`.
pub async fn install(file: &Path, root: &Path, exe: &Path) -> Said {
    match installer::install(file, root, exe).await {
        Err(error) => Said::failed(1, error.to_string()),
        Ok(installed) => Said::done(format!(
            "Installed {} {} as {}\nsha256 {}\nEnable it in a profile: [profiles.NAME.plugins] {} = {{ enabled = true }}\n",
            installed.name,
            installed.version,
            installed.file.display(),
            installed.sha256,
            installed.name
        )),
    }
}

/// The hidden `baton plugin probe FILE`: loads the library, and makes and drops an instance for each configuration of the
/// JSON list on stdin. Its last line is its word.
pub fn probe(file: &Path) -> Said {
    let mut input = String::new();
    let configs: Vec<String> = match std::io::stdin().read_to_string(&mut input) {
        Ok(_) => serde_json::from_str(&input).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let line = |code, text: String| Said {
        out: format!("\n{text}\n"),
        err: String::new(),
        code,
    };
    let opened = match load::open_named(file) {
        Ok(opened) => opened,
        Err(error) => {
            let prefix = match error.because() {
                DisabledBecause::Version => PROBE_VERSION,
                _ => PROBE_ERROR,
            };
            return line(1, format!("{prefix}{}", flat(&error)));
        }
    };
    for config in configs {
        let (host, _) = plugin_api::testing::host();
        // Whether the configuration is right is said where the instance is used; here only that it can be tried.
        match (opened.module.create())(host.services(), config.as_str().into()) {
            RResult::ROk(plugin) => drop(plugin),
            RResult::RErr(error) => drop(error),
        }
    }
    line(0, PROBE_OK.to_owned())
}

fn flat(error: &LoadError) -> String {
    error.why().replace(['\n', '\r'], " ")
}

/// The hidden `baton plugin check-one FILE TEST [--config TEXT]`.
pub fn check_one(file: &Path, test: &str, config: Option<&str>) -> Said {
    let one = CheckOne {
        file: file.to_path_buf(),
        test: test.to_owned(),
        config: config.map(str::to_owned),
    };
    let (code, words) = match check::run_one(&one) {
        Ok(()) => (0, "passed".to_owned()),
        Err(why) => (1, format!("failed: {}", why.replace(['\n', '\r'], " "))),
    };
    Said {
        out: format!("{}{words}\n", check::VERDICT),
        err: String::new(),
        code,
    }
}
