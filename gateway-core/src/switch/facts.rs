//! Everything a decision looks at, gathered by whoever asks. `None` is unknown everywhere.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::ids::SubscriptionId;
use crate::spend::{Spent, Usd};
use crate::usage::identity::{Login, QuotaGroups};
use crate::usage::{Reading, WindowScope, WindowStatus};

/// A context window nobody stated, in tokens.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

/// The facts of one decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub settings: Settings,
    pub class: Class,
    pub thread: Thread,
    /// Automatic switches of the whole root.
    pub environment_switches: Vec<Timestamp>,
    /// When this process started; older readings do not admit. `None` = long ago.
    pub restarted_at: Option<Timestamp>,
    /// What the turn (or the child) uses or asks for now; `None` = not known, and then nothing is proven about it.
    pub source: Option<Selection>,
    /// Candidates in the person's order.
    pub chain: Vec<Selection>,
    /// Every login known to this machine, in the chain or not.
    pub logins: Vec<LoginState>,
    pub groups: QuotaGroups,
    /// All observations, several per window if there are; not only the newest.
    pub readings: Vec<Reading>,
    pub burn: Vec<Burn>,
    /// Burn of the work about to run, for candidates without samples of their own.
    pub expected_burn_pct: Option<f64>,
    pub reservations: Vec<Reservation>,
    pub spent: Spent,
}

/// Whose work it is; decides which reserve it keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// A person waits for it.
    #[default]
    Interactive,
    Background,
}

/// A model on a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    pub subscription: SubscriptionId,
    pub model: Option<String>,
    /// The metered bucket this model draws from; it replaces the subscription's main windows.
    pub bucket: Option<String>,
    /// In tokens; `None` = [`DEFAULT_CONTEXT_WINDOW`].
    pub context_window: Option<u64>,
    /// Worst case of the next turn on a metered subscription; `None` = unpriced, and then it does not run.
    pub price: Option<Usd>,
    /// It can resume the source's native session, and that was verified.
    pub native_resume: bool,
}

impl Selection {
    /// Builds a selection of which nothing else is known.
    pub fn new(subscription: &str, model: Option<&str>) -> Self {
        Self {
            subscription: SubscriptionId::new(subscription),
            model: model.map(str::to_owned),
            bucket: None,
            context_window: None,
            price: None,
            native_resume: false,
        }
    }
}

/// A login and what state it is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoginState {
    pub login: Login,
    /// The back end (`claude`, `codex`, `opencode-go`, …), folded.
    pub provider: String,
    pub enabled: bool,
    pub installed: bool,
    /// Proven to be logged in; unknown is not.
    pub authenticated: bool,
    pub available: bool,
    /// Reached through a hub, which lists its logins by mail.
    pub hub: bool,
    /// Abilities this back end does not have.
    pub lacks: Vec<String>,
    pub last_start_failed_at: Option<Timestamp>,
}

/// What the person makes of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ThreadStatus {
    #[default]
    Active,
    Paused,
    Archived,
    Settled,
}

/// The conversation a decision is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub status: ThreadStatus,
    /// The person has started a newer run; this one decides nothing any more.
    pub superseded: bool,
    pub auto_switches: Vec<Timestamp>,
    /// Tried in this episode already; their whole quota groups are spent for it.
    pub tried: Vec<SubscriptionId>,
    pub approval_pending: bool,
    /// A tool is open: milliseconds since the limit was reported while it ran. `None` = no tool is open.
    pub tool_in_flight_ms: Option<i64>,
    /// Native sub-agents or background commands still running.
    pub children_running: bool,
    /// Milliseconds since an interrupt that nobody acknowledged; `None` = none was sent.
    pub interrupting_ms: Option<i64>,
    /// Abilities the thread needs: approvals, plan_mode, a tool's name.
    pub requires: Vec<String>,
    /// The pending request with the native prompt, in tokens; `None` = nothing to fit.
    pub request_tokens: Option<u64>,
    pub undone_at: Option<Timestamp>,
}

/// Accepted samples of one window, oldest first, in points; `None` = a discarded sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Burn {
    pub subscription: SubscriptionId,
    pub window: String,
    pub samples: Vec<Option<f64>>,
}

/// Room promised to a switch or a child in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    pub subscription: SubscriptionId,
    pub pct: f64,
    /// `None` = not known, and then it counts.
    pub at: Option<Timestamp>,
}

/// What a provider said of a limit: with a refusal that ended a turn, or while one runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    /// `None` = it named no window.
    pub window: Option<String>,
    pub scope: Option<WindowScope>,
    pub status: WindowStatus,
    pub used_pct: Option<f64>,
    pub resets_at: Option<Timestamp>,
    pub duration_mins: Option<u32>,
    /// The provider would carry on for money.
    pub overage_offered: bool,
    /// The turn has ended well already.
    pub turn_completed: bool,
}

impl Default for LimitReport {
    fn default() -> Self {
        Self {
            window: None,
            scope: None,
            status: WindowStatus::Unknown,
            used_pct: None,
            resets_at: None,
            duration_mins: None,
            overage_offered: false,
            turn_completed: false,
        }
    }
}

/// What kind of failure ended a turn, as far as routing cares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitClass {
    #[default]
    UsageLimit,
    Billing,
    /// A throttle, an overload, a lost connection …: the ordinary retry path.
    NotQuota,
}
