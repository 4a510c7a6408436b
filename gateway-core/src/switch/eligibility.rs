//! Which entries of the chain may take the work, in which order, and why each other one may not (section 3.4 of the contract).
//!
//! The tests run in a fixed order and the first one that fails names the reason; each looks at all windows before the next is
//! tried. Tests about the login come before tests about its numbers, so "not logged in" is never reported as "no data".
//! Headroom decides who may, never who comes first: the order is the person's.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;

use super::evidence::Board;
use super::facts::{DEFAULT_CONTEXT_WINDOW, LoginState, Selection};
use super::room::Room;
use super::settings::ChainOrder;
use crate::ids::SubscriptionId;
use crate::usage::kinship::Kinship;

/// After a failed start a login rests this long, in milliseconds.
pub const COOLING_MS: i64 = 10 * 60_000;
/// What a handover costs at least, in tokens: a pointer to where the rest can be read.
pub const POINTER_TOKENS: u64 = 512;

/// Why an entry may not take the work; in the order of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// The same subscription and model stands further up.
    Duplicate,
    /// No login goes by this name.
    Unknown,
    Disabled,
    NotInstalled,
    /// Not logged in, or not known to be.
    Unauthenticated,
    Unavailable,
    /// Nobody can prove that it is another quota than the source's.
    IdentityUnknown,
    SameQuota,
    Cooling,
    /// It lacks an ability the thread needs.
    Privilege,
    ContextTooSmall,
    PaidNotAllowed,
    SpendCap,
    NoData,
    Ambiguous,
    Stale,
    WindowRolled,
    Exhausted,
    Headroom,
    /// Not enough emptier than the source to move on a mere prediction.
    Hysteresis,
}

impl RejectReason {
    /// Its word in verdicts and in the audit.
    pub fn word(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Unknown => "unknown",
            Self::Disabled => "disabled",
            Self::NotInstalled => "not_installed",
            Self::Unauthenticated => "unauthenticated",
            Self::Unavailable => "unavailable",
            Self::IdentityUnknown => "identity_unknown",
            Self::SameQuota => "same_quota",
            Self::Cooling => "cooling",
            Self::Privilege => "privilege",
            Self::ContextTooSmall => "context_too_small",
            Self::PaidNotAllowed => "paid_not_allowed",
            Self::SpendCap => "spend_cap",
            Self::NoData => "no_data",
            Self::Ambiguous => "ambiguous",
            Self::Stale => "stale",
            Self::WindowRolled => "window_rolled",
            Self::Exhausted => "exhausted",
            Self::Headroom => "headroom",
            Self::Hysteresis => "hysteresis",
        }
    }
}

/// An entry that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Its place in the chain.
    pub position: usize,
    pub subscription: SubscriptionId,
    pub reason: RejectReason,
}

/// Why somebody is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Purpose {
    /// The source is out, or a child needs a place: money may be spent if the person opted in.
    Need,
    /// The source is only predicted to run out: money is never spent, and the move must be worth it. Carries the source's
    /// fullest usable window.
    Prediction { source_level: f64 },
}

/// The chain, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// Positions of the eligible entries, best first.
    pub eligible: Vec<usize>,
    /// Every other entry, in chain order.
    pub rejected: Vec<Rejection>,
}

impl Candidates {
    /// Judges every entry of the chain, also those behind the best.
    pub fn of(board: &Board<'_>, purpose: Purpose) -> Self {
        let mut seen = HashSet::new();
        let (mut eligible, mut rejected) = (Vec::new(), Vec::new());
        for (position, entry) in board.facts.chain.iter().enumerate() {
            let model = entry.model.as_deref().map(str::trim);
            let first = seen.insert((entry.subscription.key(), model));
            let verdict = if first {
                judge(board, entry, purpose)
            } else {
                Err(RejectReason::Duplicate)
            };
            match verdict {
                Ok(tier) => eligible.push((tier, position)),
                Err(reason) => rejected.push(Rejection {
                    position,
                    subscription: entry.subscription.clone(),
                    reason,
                }),
            }
        }
        if board.facts.settings.order == ChainOrder::Tiered {
            eligible.sort_by_key(|(tier, _)| *tier);
        }
        Self {
            eligible: eligible.into_iter().map(|(_, position)| position).collect(),
            rejected,
        }
    }
}

/// Where an eligible entry stands before the chain order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    SameModelNative,
    SameModel,
    Subscription,
    OpencodeGo,
    Paid,
}

fn judge(board: &Board<'_>, entry: &Selection, purpose: Purpose) -> Result<Tier, RejectReason> {
    let state = usable(board, &entry.subscription)?;
    is_another_quota(board, state)?;
    if cooling_ends_in(board, state).is_some() {
        return Err(RejectReason::Cooling);
    }
    fits_the_work(board, entry, state)?;
    if matches!(purpose, Purpose::Prediction { .. }) && state.login.metered {
        return Err(RejectReason::PaidNotAllowed);
    }
    may_spend(board, entry, state)?;
    let room = Room::of(board, entry, state);
    room.has_any()?;
    if let Purpose::Prediction { source_level } = purpose {
        room.is_worth_it(source_level)?;
    }
    Ok(tier(board, entry, state))
}

/// The login, if it can be started at all.
pub fn usable<'f>(board: &Board<'f>, id: &SubscriptionId) -> Result<&'f LoginState, RejectReason> {
    let state = board.login(id).ok_or(RejectReason::Unknown)?;
    let failed = [
        (state.enabled, RejectReason::Disabled),
        (state.installed, RejectReason::NotInstalled),
        (state.authenticated, RejectReason::Unauthenticated),
        (state.available, RejectReason::Unavailable),
    ];
    match failed.iter().find(|(passes, _)| !passes) {
        Some((_, reason)) => Err(*reason),
        None => Ok(state),
    }
}

/// The entry is proven to draw on another allowance than the source and everything tried in this episode.
fn is_another_quota(board: &Board<'_>, state: &LoginState) -> Result<(), RejectReason> {
    let source = board.facts.source.as_ref();
    let is_source = source.is_some_and(|source| source.subscription == state.login.id);
    let known = source.and_then(|source| board.login(&source.subscription));
    let kin = match known {
        _ if is_source => Kinship::Same,
        Some(known) => board.kinship(&known.login, &state.login),
        // A source nobody knows is taken for a subscription, and a metered login never shares with one.
        None if state.login.metered => Kinship::Separate,
        None => Kinship::Unproven,
    };
    match kin {
        Kinship::Unproven => Err(RejectReason::IdentityUnknown),
        Kinship::Same => Err(RejectReason::SameQuota),
        Kinship::Separate if board.is_tried(&state.login.id) => Err(RejectReason::SameQuota),
        Kinship::Separate => Ok(()),
    }
}

/// Milliseconds until a login whose start failed may be tried again; `None` = it may.
pub fn cooling_ends_in(board: &Board<'_>, state: &LoginState) -> Option<i64> {
    let age = board.age_ms(state.last_start_failed_at?);
    (age < COOLING_MS).then(|| COOLING_MS.saturating_sub(age))
}

/// The back end can do what the thread needs, and the request fits its model's window.
pub fn fits_the_work(
    board: &Board<'_>,
    entry: &Selection,
    state: &LoginState,
) -> Result<(), RejectReason> {
    let thread = &board.facts.thread;
    let lacks = |needed: &String| {
        let needed = needed.trim();
        let mut lacking = state.lacks.iter();
        lacking.any(|lacking| lacking.trim().eq_ignore_ascii_case(needed))
    };
    if thread.requires.iter().any(lacks) {
        return Err(RejectReason::Privilege);
    }
    let window = entry.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW);
    match thread.request_tokens {
        Some(tokens) if tokens.saturating_add(POINTER_TOKENS) > window => {
            Err(RejectReason::ContextTooSmall)
        }
        _ => Ok(()),
    }
}

/// A metered entry is opted in, priced, and within the caps.
pub fn may_spend(
    board: &Board<'_>,
    entry: &Selection,
    state: &LoginState,
) -> Result<(), RejectReason> {
    if !state.login.metered {
        return Ok(());
    }
    let paid = &board.facts.settings.paid;
    if !paid.allows(&entry.subscription) {
        return Err(RejectReason::PaidNotAllowed);
    }
    let admitted = paid.caps.admit(board.facts.spent, entry.price);
    admitted.map(drop).map_err(|_| RejectReason::SpendCap)
}

/// The order of the tiers: a paid entry is last, whatever it runs.
fn tier(board: &Board<'_>, entry: &Selection, state: &LoginState) -> Tier {
    if state.login.metered {
        Tier::Paid
    } else if runs_the_same(board, entry, state) {
        match entry.native_resume {
            true => Tier::SameModelNative,
            false => Tier::SameModel,
        }
    } else if state.provider == "opencode-go" {
        Tier::OpencodeGo
    } else {
        Tier::Subscription
    }
}

fn runs_the_same(board: &Board<'_>, entry: &Selection, state: &LoginState) -> bool {
    let Some(source) = &board.facts.source else {
        return false;
    };
    let provider = board.login(&source.subscription).map(|from| &from.provider);
    let model = |selection: &Selection| {
        let model = selection.model.as_deref().map(str::trim);
        model.map(str::to_lowercase)
    };
    provider == Some(&state.provider) && model(source) == model(entry)
}

#[cfg(test)]
mod tests;
