//! What the host tells plugins and what they answer, in plain types: nothing outside `plugins/` sees the ABI.

use std::fmt;
use std::sync::Arc;

use gateway_core::failure::FailureKind;
use gateway_core::handoff::{Handoff, StoredHandoff};
use gateway_core::ids::{ConversationId, HandoffId, ProfileId, SessionKey, TurnId};
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::message::{Origin, ReplyTarget};
use jiff::Timestamp;

/// A turn's chain joined with the readings of its subscriptions, in the form plugins read. Built once per change of
/// either and shared by all turns that see the same; the records inside are what crosses the boundary, without a copy.
pub use super::sheet::FactSheet;

/// What every hook is told.
#[derive(Debug, Clone)]
pub struct TurnFacts {
    pub turn: TurnId,
    pub profile: ProfileId,
    pub session: SessionKey,
    pub conversation: ConversationId,
    pub origin: Origin,
    pub sheet: Arc<FactSheet>,
    pub now: Timestamp,
}

/// Asked once, before the first attempt.
#[derive(Debug, Clone)]
pub struct PrologueFacts {
    pub turn: TurnFacts,
    /// The lane's handoffs of this conversation in every state, newest first.
    pub documents: Vec<StoredHandoff>,
}

/// What plugins advise before the first attempt, merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrologueAdvice {
    /// Chain positions known to be spent, and until when.
    pub skips: Vec<Skip>,
    /// Whether a plugin's gate counts as run for this turn.
    pub gated: bool,
    pub status_line: Option<String>,
    /// Text for the user message. It holds one [`gateway_core::handoff::render::REQUEST_PLACEHOLDER`] for each claimed
    /// handoff that has a request, in the order of `claims`: the host fills in that handoff's own verbatim request.
    pub inject: Option<String>,
    /// Handoffs to claim with this turn and ack once it answers; never without `inject`.
    pub claims: Vec<HandoffId>,
}

/// A chain position to leave out of this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip {
    pub position: usize,
    pub until: Option<Timestamp>,
}

/// Asked after a quota failure, before the walk goes on.
#[derive(Debug, Clone)]
pub struct WalkFacts {
    pub turn: TurnFacts,
    /// The position that failed.
    pub failed: usize,
    pub reason: FailureKind,
    /// The first position not tried yet; entries before it are never advised on.
    pub cursor: usize,
    pub already_gated: bool,
    pub line_shown: bool,
    /// Positions skipped earlier in this turn.
    pub memo: Vec<usize>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WalkAdvice {
    pub skips: Vec<Skip>,
    pub gated: bool,
    pub status_line: Option<String>,
}

/// Asked when nothing answered.
#[derive(Debug, Clone)]
pub struct TerminalFacts {
    pub turn: TurnFacts,
    pub row: TurnRow,
    pub entries: Vec<JournalEntry>,
    /// Handoffs the turn had claimed, oldest first.
    pub carried: Vec<Handoff>,
    /// Short words: `rate limit`, …
    pub reason: String,
    pub next_reset: Option<Timestamp>,
    /// The id a sealed handoff gets.
    pub handoff: HandoffId,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TerminalAdvice {
    pub seal: Option<Handoff>,
    /// Lines of the notice, a message of its own.
    pub notice: Vec<String>,
    /// Appended to the terminal text; at most 2,000 characters.
    pub append: Option<String>,
    /// Whether every plugin that had to be asked answered in time and cleanly. `false` = a document may be missing: the
    /// journal stays open, and the host seals it with the same function of the core later.
    pub complete: bool,
}

/// Told when a command of a plugin is used.
#[derive(Debug, Clone)]
pub struct CommandFacts {
    pub name: String,
    /// The rest of the line.
    pub argument: String,
    pub profile: ProfileId,
    pub session: SessionKey,
    /// The platform's id of the person.
    pub user: String,
    pub target: ReplyTarget,
    pub now: Timestamp,
    /// The lane's handoffs of this conversation in every state, newest first.
    pub documents: Vec<StoredHandoff>,
}

/// What a plugin answers to its command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAdvice {
    /// At most 2,000 characters; `None` = nothing to say.
    pub text: Option<String>,
    /// What waits in this conversation and is to be dropped.
    pub discards: Vec<HandoffId>,
}

/// Where one plugin stands in one profile, for `/plugins` and `baton plugin list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginState {
    pub profile: ProfileId,
    pub name: String,
    pub version: Option<String>,
    pub file: Option<std::path::PathBuf>,
    pub state: State,
    pub calls: u64,
    pub failures: u64,
    /// Events that found its queue full.
    pub dropped_events: u64,
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Active,
    /// A call has outlived its budget and has not returned.
    Busy,
    Disabled(DisabledBecause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledBecause {
    Panics,
    Slow,
    Config,
    Load,
    Version,
    /// Switched off in the profile.
    Off,
}

/// A plugin that a profile enables and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    pub profile: ProfileId,
    pub name: String,
    pub because: DisabledBecause,
    /// One sentence that names the file or the key, for people.
    pub message: String,
    /// The profile cannot do without it: the gateway refuses to start.
    pub required: bool,
}

impl fmt::Display for LoadProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (profile, name) = (&self.profile, &self.name);
        write!(f, "profiles.{profile}.plugins.{name}: {}", self.message)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Busy => f.write_str("busy"),
            Self::Disabled(because) => write!(f, "disabled ({because})"),
        }
    }
}

impl fmt::Display for DisabledBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panics => "panics",
            Self::Slow => "slow",
            Self::Config => "config",
            Self::Load => "load",
            Self::Version => "version",
            Self::Off => "off",
        })
    }
}
