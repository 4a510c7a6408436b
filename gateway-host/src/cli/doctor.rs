//! `baton doctor`: looks at everything a turn will need and spends nothing. Each line is ok, warn or fail with a hint; one
//! fail makes the exit code 1.

mod chats;
mod checks;

use serde_json::json;

use super::Surroundings;
use super::answer::Answer;
use super::colour::{self, Colour};
use super::outcome::{Exit, Failure};
use crate::config::{ConfigError, load};

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) status: Status,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Ok,
    /// Something will not work; the rest does.
    Warn,
    /// No turn can be answered, or a promise cannot be kept.
    Fail,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Self::Ok => Colour::Green,
            Self::Warn => Colour::Yellow,
            Self::Fail => Colour::Red,
        }
    }
}

impl Check {
    pub(crate) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status: Status::Ok,
            detail: detail.into(),
            hint: None,
        }
    }

    pub(crate) fn warn(
        name: impl Into<String>,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Warn,
            hint: Some(hint.into()),
            ..Self::ok(name, detail)
        }
    }

    pub(crate) fn fail(
        name: impl Into<String>,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Fail,
            ..Self::warn(name, detail, hint)
        }
    }
}

pub(crate) fn run(around: &Surroundings, answer: &mut Answer) -> Result<Exit, Failure> {
    let checks = look(around)?;
    let worst = checks.iter().map(|check| check.status).max();
    let ok = worst != Some(Status::Fail);
    if answer.is_json() {
        let lines: Vec<_> = checks.iter().map(|check| json!({
            "name": check.name, "status": check.status.word(), "detail": check.detail, "hint": check.hint,
        })).collect();
        answer.json(&json!({"ok": ok, "checks": lines}))?;
    } else {
        let coloured = colour::on_stdout();
        for check in &checks {
            let word = colour::paint(
                &format!("{:<4}", check.status.word()),
                check.status.colour(),
                coloured,
            );
            answer.line(&format!("{word}  {}: {}", check.name, check.detail))?;
            if let Some(hint) = &check.hint {
                answer.line(&format!("      next: {hint}"))?;
            }
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn look(around: &Surroundings) -> Result<Vec<Check>, Failure> {
    let root = around.root()?;
    let loaded = match load(&root, &around.environment) {
        Ok(loaded) => loaded,
        Err(ConfigError::Refused(problems)) => {
            let refused = problems.iter().map(|problem| {
                Check::fail(
                    "config",
                    problem.line(),
                    problem.hint.clone().unwrap_or_else(|| {
                        "run `baton config check` to see where it stands".to_owned()
                    }),
                )
            });
            return Ok(refused.collect());
        }
        Err(error) => {
            return Ok(vec![Check::fail(
                "config",
                error.to_string(),
                "everything else is looked at once there is a configuration",
            )]);
        }
    };
    let settings = &loaded.settings;
    let mut checks = vec![Check::ok(
        "config",
        format!(
            "{} ({} subscription(s), {} profile(s))",
            root.config_file().display(),
            settings.subscriptions.len(),
            settings.profiles.len()
        ),
    )];
    checks.extend(loaded.warnings.iter().map(|warning| {
        Check::warn(
            "config",
            warning.line(),
            warning.hint.clone().unwrap_or_default(),
        )
    }));
    checks.extend(checks::folders(&root));
    super::block_on(async {
        checks.push(checks::store(&root).await);
        checks.extend(checks::subscriptions(settings, &around.environment).await);
        checks.extend(checks::plugins(settings).await);
    })?;
    checks.extend(chats::chats(settings, &around.environment));
    checks.push(checks::snapshot(&settings.usage_snapshot));
    Ok(checks)
}
