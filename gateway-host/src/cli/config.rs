//! `baton config check | schema | show`.

use serde_json::{Value, json};

use super::Surroundings;
use super::answer::Answer;
use super::args::ConfigTopic;
use super::outcome::{Exit, Failure};
use crate::config::{ConfigError, Loaded, Origin, Problem, Row, Severity, load, rows, schema};

pub(crate) fn run(
    topic: ConfigTopic,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    match topic {
        ConfigTopic::Check => check(around, answer),
        ConfigTopic::Schema => {
            let text = serde_json::to_string_pretty(&schema()).map_err(anyhow::Error::from)?;
            answer.line(&text)?;
            Ok(Exit::Done)
        }
        ConfigTopic::Show => show(&around.loaded()?, around, answer),
    }
}

fn check(around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let root = around.root()?;
    match load(&root, &around.environment) {
        Ok(loaded) => {
            say(&loaded.warnings, true, answer)?;
            if !answer.is_json() {
                let settings = &loaded.settings;
                let (subscriptions, profiles) =
                    (settings.subscriptions.len(), settings.profiles.len());
                answer.line(&format!(
                    "{} is in order: {subscriptions} subscription(s), {profiles} profile(s), {} warning(s).",
                    root.config_file().display(),
                    loaded.warnings.len()
                ))?;
            }
            Ok(Exit::Done)
        }
        Err(ConfigError::Refused(problems)) => {
            say(&problems, false, answer)?;
            Ok(Exit::Failed)
        }
        // Nothing was checked.
        Err(error) => Err(Failure::usage(error)),
    }
}

fn say(problems: &[Problem], ok: bool, answer: &mut Answer) -> Result<(), Failure> {
    if answer.is_json() {
        let problems: Vec<Value> = problems.iter().map(problem_json).collect();
        answer.json(&json!({"ok": ok, "problems": problems}))?;
        return Ok(());
    }
    for problem in problems {
        answer.line(&format!("{problem}\n"))?;
    }
    Ok(())
}

fn problem_json(problem: &Problem) -> Value {
    let place = problem.at.as_ref().map(|spot| {
        (
            spot.source.path.display().to_string(),
            spot.line_and_column(),
        )
    });
    json!({
        "severity": match problem.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        },
        "key": problem.path.to_string(),
        "message": problem.message,
        "hint": problem.hint,
        "file": place.as_ref().map(|(file, _)| file),
        "line": place.as_ref().map(|(_, (line, _))| line),
        "column": place.as_ref().map(|(_, (_, column))| column),
    })
}

fn show(loaded: &Loaded, around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let rows = rows(loaded, &around.environment);
    if answer.is_json() {
        let values: Vec<Value> = rows.iter().map(row_json).collect();
        answer.json(&json!({"values": values}))?;
        return Ok(Exit::Done);
    }
    for row in rows {
        answer.line(&format!("{} = {}  # {}", row.key, row.value, row.origin))?;
    }
    Ok(Exit::Done)
}

fn row_json(row: &Row) -> Value {
    let (origin, file, line) = match &row.origin {
        Origin::File { path, line } => ("file", Some(path.display().to_string()), Some(*line)),
        Origin::Environment(name) => {
            return json!({"key": row.key.to_string(), "value": row.value, "origin": "environment", "variable": name});
        }
        Origin::Default => ("default", None, None),
    };
    json!({"key": row.key.to_string(), "value": row.value, "origin": origin, "file": file, "line": line})
}
