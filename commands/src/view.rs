//! What a command sees: one conversation and the routes behind it, as values. The host fills it; no command looks
//! anywhere else, so the same view always gives the same words.

use gateway_core::command::CommandSpec;
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{ConversationId, ProfileId};
use gateway_core::message::Standing;
use gateway_core::route::{Billing, Route};
use gateway_core::usage::Reading;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Everything a command may know.
#[derive(Debug, Clone)]
pub struct View {
    pub profile: ProfileId,
    /// What the sender may do here.
    pub standing: Standing,
    pub now: Timestamp,
    /// The zone clock times are shown in: the host's.
    pub zone: TimeZone,
    /// The longest message of the platform in characters; `None` = no bound.
    pub message_chars: Option<usize>,
    pub conversation_started_at: Timestamp,
    /// The route that serves the conversation; `None` = nothing has answered in it yet.
    pub serving: Option<Serving>,
    /// The route chosen with `/model`; `None` = the chain decides.
    pub chosen: Option<Route>,
    /// The turn that runs now; `None` = none does.
    pub turn: Option<RunningTurn>,
    /// Messages that wait behind the running turn.
    pub queued: usize,
    /// The profile's chain, in order.
    pub chain: Vec<EntryState>,
    /// The conversation's handoffs in any state, newest first.
    pub handoffs: Vec<StoredHandoff>,
    /// Whether the handoff plugin is enabled for the profile.
    pub handoffs_enabled: bool,
    pub plugins: Vec<PluginLine>,
    /// The commands plugins of this profile bring beside [`COMMANDS`](crate::COMMANDS).
    pub brought: Vec<&'static CommandSpec>,
    /// The lane's earlier conversations, last used first; see [`looks_back`](crate::looks_back).
    pub earlier: Vec<EarlierConversation>,
    /// Saved handoffs the sender may see and drop, of every lane, newest first: an operator all of the profile, anybody
    /// else those of conversations they took part in. See [`looks_back`](crate::looks_back).
    pub saved: Vec<StoredHandoff>,
    /// What routing holds for the conversation; `None` = it is off for the profile.
    pub routing: Option<RoutingView>,
}

/// A conversation under routing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoutingView {
    pub paused: bool,
    /// Where the last automatic switch came from; `None` = there is none to take back.
    pub came_from: Option<String>,
    /// What it waits for; `None` = it does not wait.
    pub waits_for: Option<String>,
    /// When it is looked at again; `None` = unknown, or it does not wait.
    pub until: Option<Timestamp>,
    /// Automatic switches of the last 24 hours, and how many are allowed.
    pub switches: (usize, u32),
}

impl View {
    /// Whether the sender is an operator of the profile.
    pub fn is_operator(&self) -> bool {
        self.standing >= Standing::Operator
    }

    /// The chain entry of a route; `None` = the route is not in the chain.
    pub fn entry(&self, route: &Route) -> Option<&EntryState> {
        self.chain.iter().find(|entry| entry.route == *route)
    }

    /// Handoffs that the next message would carry.
    pub fn pending(&self) -> impl Iterator<Item = &StoredHandoff> {
        self.handoffs
            .iter()
            .filter(|stored| stored.standing(self.now) == HandoffState::Armed)
    }

    /// The soonest known reset, if every route of the chain is out of reach now and one of them is known to come back.
    pub fn waiting_until(&self) -> Option<Timestamp> {
        if self.chain.iter().any(|entry| entry.verdict.is_eligible()) {
            return None;
        }
        self.chain
            .iter()
            .filter_map(|entry| entry.verdict.until())
            .min()
    }
}

/// The route that answered last, since when, and why this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    pub route: Route,
    pub since: Timestamp,
    pub because: Because,
}

/// Why a route serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// Somebody chose it with `/model`.
    Chosen,
    FirstInChain,
    /// The entries before it were spent or failed; how many there are.
    Fallback {
        before: usize,
    },
    /// It is in the chain no longer.
    Earlier,
}

impl Serving {
    /// Tells the reason from the choice and the position in the chain.
    pub fn new(
        route: Route,
        since: Timestamp,
        chosen: Option<&Route>,
        chain: &[EntryState],
    ) -> Self {
        let position = chain.iter().position(|entry| entry.route == route);
        let because = match position {
            _ if chosen == Some(&route) => Because::Chosen,
            Some(0) => Because::FirstInChain,
            Some(before) => Because::Fallback { before },
            None => Because::Earlier,
        };
        Self {
            route,
            since,
            because,
        }
    }
}

/// A conversation of the lane that is not the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierConversation {
    pub id: ConversationId,
    /// Its number on the lane, from 1; it never changes.
    pub number: u32,
    pub started_at: Timestamp,
    pub used_at: Timestamp,
    /// Answered requests.
    pub exchanges: u64,
    /// Its first request, redacted; empty = it is not kept any more.
    pub first_request: String,
    /// Whether a saved handoff waits in it.
    pub has_handoff: bool,
}

/// The running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTurn {
    pub started_at: Timestamp,
}

/// One chain entry with what is known of it now.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryState {
    pub route: Route,
    pub billing: Billing,
    pub verdict: Verdict,
    /// The newest reading per window of its subscription; empty = nothing is known.
    pub readings: Vec<Reading>,
    /// The other subscriptions that draw on the same allowance.
    pub shares: Vec<String>,
}

/// What a turn would do with an entry now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Eligible,
    /// Known to be spent: the window that blocks longest, and when it resets.
    Spent {
        window: String,
        until: Timestamp,
    },
    /// Metered, and nobody opted in.
    PassedOver,
    /// Its login is refused until the operator acts.
    LockedOut,
}

impl Verdict {
    /// Whether a turn would try the entry.
    pub fn is_eligible(&self) -> bool {
        matches!(self, Self::Eligible)
    }

    /// When a spent entry comes back; `None` = it is not known to be spent.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Spent { until, .. } => Some(*until),
            Self::Eligible | Self::PassedOver | Self::LockedOut => None,
        }
    }
}

/// One plugin in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLine {
    pub name: String,
    /// `None` = it was not loaded.
    pub version: Option<String>,
    /// Its state in words, for example `active` or `disabled: panics`.
    pub state: String,
    /// How often it was asked or told something, and how often that failed.
    pub calls: u64,
    pub failures: u64,
    pub last_error: Option<String>,
}
