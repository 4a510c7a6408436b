//! What `baton run` tells whoever started it.

use std::fmt;
use std::sync::Arc;

use gateway_core::ids::ProfileId;
use platforms::adapter::{Finding, Severity};
use serde_json::{Value, json};

use crate::config::ChatKind;

/// Where it is told: a terminal, a list in a test.
pub type Say = Arc<dyn Fn(Said) + Send + Sync>;

/// One thing that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Found at the start, about one bot.
    Found {
        bot: String,
        finding: Finding,
    },
    /// Who is operator of a profile by pairing.
    PairedOperator {
        kind: ChatKind,
        profile: ProfileId,
        name: String,
        person: String,
    },
    /// A code was offered. Never logged and never said in a chat.
    Code {
        kind: ChatKind,
        profile: ProfileId,
        code: String,
    },
    /// A bot can hear.
    Ready {
        bot: String,
    },
    /// A bot will not be heard any more.
    Ended {
        bot: String,
        finding: Finding,
    },
    /// It was told to stop, and running turns get this many seconds.
    Stopping {
        seconds: u64,
    },
    Stopped,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { bot, finding } => {
                write!(f, "{bot}: {}{finding}", word(finding.severity))
            }
            Self::PairedOperator {
                kind,
                profile,
                name,
                person,
            } => write!(
                f,
                "{} ({profile}): {name} ({person}) is operator by pairing; `baton run --pair` forgets them, and so do operators named in the configuration",
                kind.name()
            ),
            Self::Code {
                kind,
                profile,
                code,
            } => write!(
                f,
                "{0} ({profile}): no operator is named. If it is you, send the bot in {0} the message `/pair {code}` within 15 minutes, directly or by mention.",
                kind.name()
            ),
            Self::Ready { bot } => write!(f, "{bot}: ready"),
            Self::Ended { bot, finding } => write!(f, "{bot}: ended: {finding}"),
            Self::Stopping { seconds } => write!(
                f,
                "stopping: running turns get {seconds} s, then they are saved; once more stops at once"
            ),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Fine => "",
        Severity::Warning => "warning: ",
        Severity::Fatal => "error: ",
    }
}

impl Said {
    /// The same for programs.
    pub fn json(&self) -> Value {
        let severity = |finding: &Finding| match finding.severity {
            Severity::Fine => "fine",
            Severity::Warning => "warning",
            Severity::Fatal => "fatal",
        };
        match self {
            Self::Found { bot, finding } => json!({
                "event": "found", "bot": bot, "severity": severity(finding),
                "what": finding.what, "hint": finding.hint,
            }),
            Self::PairedOperator {
                kind,
                profile,
                name,
                person,
            } => json!({
                "event": "paired_operator", "platform": kind.name(), "profile": profile.as_str(),
                "name": name, "person": person,
            }),
            Self::Code {
                kind,
                profile,
                code,
            } => json!({
                "event": "code", "platform": kind.name(), "profile": profile.as_str(), "code": code,
            }),
            Self::Ready { bot } => json!({"event": "ready", "bot": bot}),
            Self::Ended { bot, finding } => json!({
                "event": "ended", "bot": bot, "what": finding.what, "hint": finding.hint,
            }),
            Self::Stopping { seconds } => json!({"event": "stopping", "seconds": seconds}),
            Self::Stopped => json!({"event": "stopped"}),
        }
    }
}
