//! The conformance kit: every test of a plugin in a child process of its own, so that a crash is a result and not the end
//! of the check. The parent decides nothing about the plugin: it starts tests, reads their last line, and counts.

mod kit;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;

pub use self::kit::{CheckOne, run_one};
use self::kit::{QUIET, names};

/// How long one test may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The prefix of a test's last line.
pub(crate) const VERDICT: &str = "check: ";

/// One test's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    pub test: String,
    pub passed: bool,
    /// Why it failed; empty if it passed.
    pub why: String,
}

/// The whole check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    pub file: PathBuf,
    pub results: Vec<CheckResult>,
}

impl CheckReport {
    /// How many passed and how many failed.
    pub fn counts(&self) -> (usize, usize) {
        let passed = self.results.iter().filter(|result| result.passed).count();
        (passed, self.results.len() - passed)
    }
}

/// Runs every test on a library with `<exe> plugin check-one FILE TEST [--config TEXT]`.
///
/// # Errors
/// The check could not run: the file cannot be read or the child cannot be started.
pub async fn check(file: &Path, config: Option<&str>, exe: &Path) -> Result<CheckReport, String> {
    std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut results = Vec::new();
    let mut printed = Vec::new();
    for name in names() {
        let ran = child(exe, file, name, config).await?;
        printed.extend(ran.printed.map(|text| format!("{name}: {text}")));
        let broken = !ran.result.passed;
        results.push(ran.result);
        // A library that cannot be loaded fails everything else for the same reason.
        if broken && name == "loads" {
            break;
        }
    }
    results.push(CheckResult {
        test: QUIET.to_owned(),
        passed: printed.is_empty(),
        why: printed.join("; "),
    });
    Ok(CheckReport {
        file: file.to_path_buf(),
        results,
    })
}

struct Ran {
    result: CheckResult,
    /// What the plugin wrote to stdout or stderr itself, cut.
    printed: Option<String>,
}

async fn child(exe: &Path, file: &Path, name: &str, config: Option<&str>) -> Result<Ran, String> {
    let mut command = tokio::process::Command::new(exe);
    command
        .args(["plugin", "check-one"])
        .arg(file)
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    let failed = |why: String| Ran {
        result: CheckResult {
            test: name.to_owned(),
            passed: false,
            why,
        },
        printed: None,
    };
    match tokio::time::timeout(LIMIT, command.output()).await {
        Err(_) => Ok(failed(format!("did not end within {} s", LIMIT.as_secs()))),
        Ok(Err(error)) => Err(format!("could not start {}: {error}", exe.display())),
        Ok(Ok(output)) => Ok(read(name, &output)),
    }
}

fn read(name: &str, output: &std::process::Output) -> Ran {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<&str> = out.lines().collect();
    let verdict = lines.last().and_then(|last| last.strip_prefix(VERDICT));
    let why = match verdict {
        Some("passed") if output.status.success() => String::new(),
        Some(words) => words.trim_start_matches("failed: ").to_owned(),
        None => format!("ended its process ({})", output.status),
    };
    if verdict.is_some() {
        lines.pop();
    }
    let printed: String = lines
        .join(" ")
        .chars()
        .chain(err.chars())
        .take(120)
        .collect();
    Ran {
        result: CheckResult {
            test: name.to_owned(),
            passed: why.is_empty(),
            why,
        },
        printed: Some(printed).filter(|text| !text.trim().is_empty()),
    }
}
